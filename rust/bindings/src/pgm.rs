//! Graphical models, some steps at a time.

use std::num::NonZero;

use chicle_core::pgm as kernel;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::convert::{Axes, Target, arrays, queries, slices, tables};
use crate::enter::enter;
use crate::errors::Names;
use crate::handle::Handle;

/// Forbidden cells as Python gives them: the axes of a query, and whether each of its cells is forbidden.
type Zeros<'py> = (Axes<'py>, PyReadonlyArray1<'py, bool>);

/// A model that is fitted to the targets.
#[pyclass(module = "chicle._core", frozen)]
pub struct Pgm {
    cardinalities: Vec<u32>,
    handle: Handle<kernel::Pgm>,
}

#[pymethods]
impl Pgm {
    #[new]
    #[pyo3(signature = (attributes, cardinalities, targets, zeros, total, start, memory_limit, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "a signature for Python")]
    fn new(
        py: Python<'_>,
        attributes: Vec<String>,
        cardinalities: Vec<u32>,
        targets: Vec<Target<'_>>,
        zeros: Vec<Zeros<'_>>,
        total: f64,
        start: Option<Vec<PyReadonlyArray1<'_, f64>>>,
        memory_limit: u64,
        threads: Option<NonZero<usize>>,
    ) -> PyResult<Self> {
        let names = Names::new(attributes, targets.iter().map(|(axes, ..)| axes));
        let targets = crate::convert::targets(&names, &cardinalities, &targets)?;
        let (axes, forbidden): (Vec<Axes<'_>>, Vec<_>) = zeros.into_iter().unzip();
        let forbidden = slices(&forbidden)?.into_iter().map(<[bool]>::to_vec);
        let zeros: Vec<kernel::Zeros> = queries(&names, &cardinalities, &axes)?.into_iter().zip(forbidden).collect();
        let start = start.as_deref().map(slices).transpose()?;
        let handle = Handle::new(py, threads, names, |cancel| {
            kernel::Pgm::new(&cardinalities, &targets, &zeros, total, start.as_deref(), memory_limit, cancel)
        })?;
        Ok(Self { cardinalities, handle })
    }

    /// Up to that many steps; the loss after each.
    fn steps(&self, py: Python<'_>, count: usize) -> PyResult<Vec<f64>> {
        self.handle.with(py, |model, cancel| {
            let mut losses = Vec::new();
            while losses.len() < count && !model.is_exhausted() {
                losses.push(model.step(cancel)?);
            }
            Ok(losses)
        })
    }

    #[getter]
    fn loss(&self, py: Python<'_>) -> PyResult<f64> {
        self.handle.with(py, |model, _| Ok(model.loss()))
    }

    #[getter]
    fn cells(&self, py: Python<'_>) -> PyResult<usize> {
        self.handle.with(py, |model, _| Ok(model.cells()))
    }

    fn potentials<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyArray1<f64>>>> {
        Ok(tables(py, self.handle.with(py, |model, _| Ok(model.potentials().map(<[f64]>::to_vec).collect()))?))
    }

    /// The tables of queries, in counts.
    fn marginals<'py>(&self, py: Python<'py>, queries: Vec<Axes<'py>>) -> PyResult<Vec<Bound<'py, PyArray1<f64>>>> {
        let queries = self::queries(self.handle.names(), &self.cardinalities, &queries)?;
        Ok(tables(py, self.handle.with(py, |model, cancel| model.marginals(&queries, cancel))?))
    }

    /// As `marginals`; `None` for a query that takes more multiplications or more memory than the limits.
    fn marginals_within<'py>(
        &self,
        py: Python<'py>,
        most: u64,
        queries: Vec<Axes<'py>>,
    ) -> PyResult<Vec<Option<Bound<'py, PyArray1<f64>>>>> {
        let queries = self::queries(self.handle.names(), &self.cardinalities, &queries)?;
        let tables = self.handle.with(py, |model, cancel| model.marginals_within(most, &queries, cancel))?;
        Ok(tables.into_iter().map(|table| table.map(|table| table.into_pyarray(py))).collect())
    }

    fn records<'py>(&self, py: Python<'py>, records: usize, seed: u64) -> PyResult<Vec<Bound<'py, PyAny>>> {
        Ok(arrays(py, self.handle.with(py, |model, cancel| model.records(records, seed, cancel))?))
    }
}

/// Cells of the junction tree of some cliques with each of the candidates; no tree is built.
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
