//! Residual descent, sweep by sweep.

use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chicle_core::descent as kernel;
use chicle_core::table::Codes as Owned;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::convert::{Codes, array, columns};
use crate::enter::enter;
use crate::errors::Names;

/// A target as Python gives it: values, weight, and for each axis its size and the map from code to bucket, if any.
pub type Target<'py> = (PyReadonlyArray1<'py, f64>, f64, Vec<(u32, Option<PyReadonlyArray1<'py, u32>>)>);

/// Records on their way to targets.
#[pyclass(module = "chicle._core", frozen)]
pub struct Descent {
    attributes: Vec<String>,
    cliques: Vec<Vec<usize>>,
    threads: Option<NonZero<usize>>,
    kernel: Mutex<kernel::Descent>,
}

impl Descent {
    fn lock(&self) -> MutexGuard<'_, kernel::Descent> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Descent {
    #[new]
    #[pyo3(signature = (codes, attributes, cardinalities, cliques, targets, seed, memory_limit, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    fn new(
        py: Python<'_>,
        codes: Vec<Codes<'_>>,
        attributes: Vec<String>,
        cardinalities: Vec<u32>,
        cliques: Vec<Vec<usize>>,
        targets: Vec<Target<'_>>,
        seed: u64,
        memory_limit: u64,
        threads: Option<NonZero<usize>>,
    ) -> PyResult<Self> {
        let columns = columns(&codes)?;
        let targets =
            targets.iter().zip(&cliques).map(|(t, clique)| target(t, clique)).collect::<PyResult<Vec<_>>>()?;
        let names = Names { attributes: &attributes, cliques: &cliques };
        let kernel = enter(py, threads, &names, |_| {
            let columns = columns.iter().map(Owned::copy).collect();
            kernel::Descent::new(columns, &cardinalities, targets, seed, memory_limit)
        })?;
        Ok(Self { attributes, cliques, threads, kernel: kernel.into() })
    }

    /// One sweep; the number of moves.
    fn sweep(&self, py: Python<'_>, threshold: f64, noise: f64) -> PyResult<usize> {
        let names = Names { attributes: &self.attributes, cliques: &self.cliques };
        enter(py, self.threads, &names, |cancel| self.lock().sweep(threshold, noise, cancel))
    }

    /// Mean target error and loss.
    fn fit(&self, py: Python<'_>) -> PyResult<(f64, f64)> {
        let fit = enter(py, self.threads, &Names::default(), |_| Ok(self.lock().fit()))?;
        Ok((fit.error, fit.loss))
    }

    /// The records as they are now.
    fn columns<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        self.lock().columns().iter().map(|codes| array(py, codes.clone())).collect()
    }

    /// The records, handed over: none are left.
    fn finish<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        self.lock().finish().into_iter().map(|codes| array(py, codes)).collect()
    }
}

/// A target as the kernels take it.
pub fn target((values, weight, axes): &Target<'_>, clique: &[usize]) -> PyResult<kernel::Target> {
    let seen = |((size, map), &attribute): (&(u32, Option<PyReadonlyArray1<'_, u32>>), &usize)| {
        let map = map.as_ref().map(|map| Ok::<_, PyErr>(Arc::from(map.as_slice()?))).transpose()?;
        Ok(kernel::Axis { attribute, map, size: *size })
    };
    let axes = axes.iter().zip(clique).map(seen).collect::<PyResult<_>>()?;
    Ok(kernel::Target { axes, values: values.as_slice()?.to_vec(), weight: *weight })
}
