//! Initial records.

use std::num::NonZero;

use chicle_core::draw as kernel;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::convert::{arrays, slices};
use crate::enter::enter;
use crate::errors::Names;

/// Columns drawn from weights, each alone or given a parent column.
#[pyfunction]
#[pyo3(signature = (cardinalities, parents, weights, records, seed, threads=None))]
pub fn draw<'py>(
    py: Python<'py>,
    cardinalities: Vec<u32>,
    parents: Vec<Option<usize>>,
    weights: Vec<PyReadonlyArray1<'py, f64>>,
    records: usize,
    seed: u64,
    threads: Option<NonZero<usize>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let weights = slices(&weights)?;
    let laws = cardinalities.iter().zip(parents).zip(weights);
    let laws: Vec<_> =
        laws.map(|((&cardinality, parent), weights)| kernel::Law { cardinality, parent, weights }).collect();
    let columns = enter(py, threads, &Names::default(), |cancel| kernel::draw(&laws, records, seed, cancel))?;
    Ok(arrays(py, columns))
}
