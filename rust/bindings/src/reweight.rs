//! Weights on the cells of a domain or on rows, update by update.

use std::num::NonZero;

use chicle_core::reweight as kernel;
use chicle_core::reweight::points::Points;
use chicle_core::table::{Codes as Owned, Table};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::convert::{Axes, Codes, Target, arrays, columns, queries, tables};
use crate::errors::Names;
use crate::handle::Handle;

/// Weights that updates fit to measured shares.
#[pyclass(module = "chicle._core", frozen)]
pub struct Reweight {
    attributes: Vec<String>,
    cardinalities: Vec<u32>,
    memory_limit: u64,
    handle: Handle<kernel::Reweight>,
}

#[pymethods]
impl Reweight {
    #[new]
    #[pyo3(signature = (attributes, cardinalities, rows, weights, most_cells, memory_limit, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "a signature for Python")]
    fn new(
        py: Python<'_>,
        attributes: Vec<String>,
        cardinalities: Vec<u32>,
        rows: Option<Vec<Codes<'_>>>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        most_cells: u64,
        memory_limit: u64,
        threads: Option<NonZero<usize>>,
    ) -> PyResult<Self> {
        let names = Names::new(attributes.clone(), std::iter::empty());
        let rows = rows.as_deref().map(columns).transpose()?;
        let weights = weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        let sizes = cardinalities.clone();
        let handle = Handle::new(py, threads, names, |_| {
            let points = match rows {
                None => Points::domain(sizes, most_cells)?,
                Some(columns) => {
                    let table = Table::new(columns, sizes)?;
                    let columns = table.columns().iter().map(Owned::copy).collect();
                    Points::rows(table.cardinalities().to_vec(), columns)?
                }
            };
            kernel::Reweight::new(points, weights)
        })?;
        Ok(Self { attributes, cardinalities, memory_limit, handle })
    }

    /// Remember a cell: the codes that some attributes have, by position.
    fn tell(&self, py: Python<'_>, cell: Vec<(usize, u32)>) -> PyResult<()> {
        self.handle.with(py, |weights, _| weights.tell(cell))
    }

    /// The share of each cell that was told.
    fn answers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(self.handle.with(py, |weights, _| Ok(weights.answers()))?.into_pyarray(py))
    }

    fn mwem(&self, py: Python<'_>, measured: PyReadonlyArray1<'_, f64>, seed: u64) -> PyResult<()> {
        let measured = measured.as_slice()?;
        self.handle.with(py, |weights, _| weights.mwem(measured, seed))
    }

    fn pep(&self, py: Python<'_>, measured: PyReadonlyArray1<'_, f64>, steps: usize) -> PyResult<f64> {
        let measured = measured.as_slice()?;
        self.handle.with(py, |weights, cancel| weights.pep(measured, steps, cancel))
    }

    /// Sweeps over whole tables of shares; the weight of each target is its tolerance.
    fn fit(&self, py: Python<'_>, targets: Vec<Target<'_>>, sweeps: usize) -> PyResult<f64> {
        let names = Names::new(self.attributes.clone(), targets.iter().map(|(axes, ..)| axes));
        let tolerances: Vec<f64> = targets.iter().map(|(.., tolerance)| *tolerance).collect();
        let targets = crate::convert::targets(&names, &self.cardinalities, &targets)?;
        self.handle.with(py, |weights, cancel| weights.fit(&targets, &tolerances, sweeps, cancel))
    }

    /// The tables of queries, in shares.
    fn tables<'py>(&self, py: Python<'py>, asked: Vec<Axes<'py>>) -> PyResult<Vec<Bound<'py, PyArray1<f64>>>> {
        let names = Names::new(self.attributes.clone(), asked.iter());
        let asked = queries(&names, &self.cardinalities, &asked)?;
        let limit = self.memory_limit;
        Ok(tables(py, self.handle.with(py, |weights, cancel| weights.tables(&asked, limit, cancel))?))
    }

    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(self.handle.with(py, |weights, _| Ok(weights.weights().to_vec()))?.into_pyarray(py))
    }

    fn draw<'py>(&self, py: Python<'py>, records: usize, seed: u64) -> PyResult<Vec<Bound<'py, PyAny>>> {
        Ok(arrays(py, self.handle.with(py, |weights, _| weights.draw(records, seed))?))
    }
}
