//! Exact noise.

use std::num::NonZero;

use chicle_core::noise::{self as kernel, DiscreteLaplace, Entropy, RoundedGaussian, Sampler, fill};
use chicle_core::parallel::zeros;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::enter::enter;
use crate::errors::Names;

fn draw<'py, S: Sampler>(
    py: Python<'py>,
    scales: &[f64],
    sizes: &[usize],
    test_seed: Option<u64>,
    threads: Option<NonZero<usize>>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let entropy = test_seed.map_or(Entropy::OperatingSystem, Entropy::TestOnly);
    let noise = enter(py, threads, &Names::default(), |cancel| {
        let mut noise = zeros(sizes.iter().sum())?;
        fill::<S>(scales, sizes, entropy, &mut noise, cancel)?;
        Ok(noise)
    })?;
    Ok(noise.into_pyarray(py))
}

/// `sizes[i]` draws of `round(sigmas[i] * z)` one after another.
#[pyfunction]
#[pyo3(signature = (sigmas, sizes, test_seed=None, threads=None))]
pub fn rounded_gaussian(
    py: Python<'_>,
    sigmas: Vec<f64>,
    sizes: Vec<usize>,
    test_seed: Option<u64>,
    threads: Option<NonZero<usize>>,
) -> PyResult<Bound<'_, PyArray1<i64>>> {
    draw::<RoundedGaussian>(py, &sigmas, &sizes, test_seed, threads)
}

/// `sizes[i]` draws of the discrete Laplace of scale `scales[i]` one after another.
#[pyfunction]
#[pyo3(signature = (scales, sizes, test_seed=None, threads=None))]
pub fn discrete_laplace(
    py: Python<'_>,
    scales: Vec<f64>,
    sizes: Vec<usize>,
    test_seed: Option<u64>,
    threads: Option<NonZero<usize>>,
) -> PyResult<Bound<'_, PyArray1<i64>>> {
    draw::<DiscreteLaplace>(py, &scales, &sizes, test_seed, threads)
}

/// A position, drawn with probability proportional to `exp(-gaps[i] / scale)`.
#[pyfunction]
#[pyo3(signature = (gaps, scale, test_seed=None))]
pub fn choose(py: Python<'_>, gaps: PyReadonlyArray1<'_, u64>, scale: f64, test_seed: Option<u64>) -> PyResult<usize> {
    let gaps = gaps.as_slice()?;
    let entropy = test_seed.map_or(Entropy::OperatingSystem, Entropy::TestOnly);
    enter(py, NonZero::new(1), &Names::default(), |cancel| kernel::choose(gaps, scale, entropy, cancel))
}
