//! Graphical models, some steps at a time.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

use chicle_core::parallel::Cancel;
use chicle_core::pgm as kernel;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::convert::array;
use crate::descent::{Target, target};
use crate::enter::enter;
use crate::errors::Names;

/// Forbidden cells as Python gives them: a clique, and whether each of its cells is one.
type Zeros<'py> = (Vec<usize>, PyReadonlyArray1<'py, bool>);

/// A model on its way to the targets.
#[pyclass(module = "chicle._core", frozen)]
pub struct Pgm {
    threads: Option<NonZero<usize>>,
    kernel: Mutex<kernel::Pgm>,
}

impl Pgm {
    /// Run a kernel on the model, one call at a time; the calling thread waits for the lock, not one of the pool.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        kernel: impl FnOnce(&mut kernel::Pgm, &Cancel) -> chicle_core::Result<T> + Send,
    ) -> PyResult<T> {
        let mut guard = self.kernel.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let model = &mut *guard;
        enter(py, self.threads, &Names::default(), |cancel| kernel(model, cancel))
    }
}

#[pymethods]
impl Pgm {
    #[new]
    #[pyo3(signature = (cardinalities, cliques, targets, zeros, total, start, memory_limit, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "a signature for Python")]
    fn new(
        py: Python<'_>,
        cardinalities: Vec<u32>,
        cliques: Vec<Vec<usize>>,
        targets: Vec<Target<'_>>,
        zeros: Vec<Zeros<'_>>,
        total: f64,
        start: Option<Vec<PyReadonlyArray1<'_, f64>>>,
        memory_limit: u64,
        threads: Option<NonZero<usize>>,
    ) -> PyResult<Self> {
        let targets =
            targets.iter().zip(&cliques).map(|(t, clique)| target(t, clique)).collect::<PyResult<Vec<_>>>()?;
        let zeros = zeros.iter().map(|(clique, cells)| Ok((clique.clone(), cells.as_slice()?.to_vec())));
        let zeros = zeros.collect::<PyResult<Vec<_>>>()?;
        let start = match &start {
            None => None,
            Some(parts) => Some(parts.iter().map(|part| Ok(part.as_slice()?)).collect::<PyResult<Vec<_>>>()?),
        };
        let kernel = enter(py, threads, &Names::default(), |cancel| {
            kernel::Pgm::new(&cardinalities, &targets, &zeros, total, start.as_deref(), memory_limit, cancel)
        })?;
        Ok(Self { threads, kernel: kernel.into() })
    }

    /// Up to that many steps; the loss after each.
    fn steps(&self, py: Python<'_>, count: usize) -> PyResult<Vec<f64>> {
        self.with(py, |model, cancel| {
            let mut losses = Vec::new();
            while losses.len() < count && !model.is_exhausted() {
                losses.push(model.step(cancel)?);
            }
            Ok(losses)
        })
    }

    #[getter]
    fn loss(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |model, _| Ok(model.loss()))
    }

    #[getter]
    fn cells(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |model, _| Ok(model.cells()))
    }

    fn potentials<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyArray1<f64>>>> {
        let potentials = self.with(py, |model, _| Ok(model.potentials().map(<[f64]>::to_vec).collect::<Vec<_>>()))?;
        Ok(potentials.into_iter().map(|part| part.into_pyarray(py)).collect())
    }

    fn marginals<'py>(&self, py: Python<'py>, cliques: Vec<Vec<usize>>) -> PyResult<Vec<Bound<'py, PyArray1<f64>>>> {
        let tables = self.with(py, |model, cancel| model.marginals(&cliques, cancel))?;
        Ok(tables.into_iter().map(|table| table.into_pyarray(py)).collect())
    }

    /// As `marginals`; `None` for a clique that takes more multiplications than that, or more memory than it may.
    fn marginals_within<'py>(
        &self,
        py: Python<'py>,
        most: u64,
        cliques: Vec<Vec<usize>>,
    ) -> PyResult<Vec<Option<Bound<'py, PyArray1<f64>>>>> {
        let tables = self.with(py, |model, cancel| model.marginals_within(most, &cliques, cancel))?;
        Ok(tables.into_iter().map(|table| table.map(|table| table.into_pyarray(py))).collect())
    }

    fn records<'py>(&self, py: Python<'py>, records: usize, seed: u64) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let columns = self.with(py, |model, cancel| model.records(records, seed, cancel))?;
        Ok(columns.into_iter().map(|codes| array(py, codes)).collect())
    }
}

/// Cells of the junction tree of some cliques with each of the candidates, none of which is built.
#[pyfunction]
#[pyo3(signature = (cardinalities, cliques, candidates, threads=None))]
pub fn model_cells(
    py: Python<'_>,
    cardinalities: Vec<u32>,
    cliques: Vec<Vec<usize>>,
    candidates: Vec<Vec<usize>>,
    threads: Option<NonZero<usize>>,
) -> PyResult<Vec<u64>> {
    let cells = enter(py, threads, &Names::default(), |cancel| {
        kernel::eliminate::model_cells_with(&cardinalities, &cliques, &candidates, cancel)
    })?;
    Ok(cells.into_iter().map(|cells| u64::try_from(cells).unwrap_or(u64::MAX)).collect())
}
