//! Marginals: all at once, or batch by batch.

use std::num::NonZero;

use chicle_core::count as kernel;
use chicle_core::table::Table;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::convert::{Codes, columns};
use crate::enter::enter;
use crate::errors::Names;

type Tables<'py> = Vec<Bound<'py, PyArray1<i64>>>;

fn hand_back(py: Python<'_>, tables: Vec<Vec<i64>>) -> Tables<'_> {
    tables.into_iter().map(|table| table.into_pyarray(py)).collect()
}

/// Flat counts of each clique.
#[pyfunction]
#[pyo3(signature = (codes, attributes, cardinalities, cliques, memory_limit, threads=None))]
pub fn count<'py>(
    py: Python<'py>,
    codes: Vec<Codes<'py>>,
    attributes: Vec<String>,
    cardinalities: Vec<u32>,
    cliques: Vec<Vec<usize>>,
    memory_limit: u64,
    threads: Option<NonZero<usize>>,
) -> PyResult<Tables<'py>> {
    let columns = columns(&codes)?;
    let names = Names { attributes: &attributes, cliques: &cliques };
    let tables = enter(py, threads, &names, |cancel| {
        let table = Table::new(columns, cardinalities)?;
        kernel::count(&table, &cliques, memory_limit, cancel)
    })?;
    Ok(hand_back(py, tables))
}

/// Counts over batches of records.
#[pyclass(module = "chicle._core", frozen)]
pub struct Counter {
    attributes: Vec<String>,
    cardinalities: Vec<u32>,
    cliques: Vec<Vec<usize>>,
    threads: Option<NonZero<usize>>,
    kernel: std::sync::Mutex<kernel::stream::Counter>,
}

impl Counter {
    fn names(&self) -> Names<'_> {
        Names { attributes: &self.attributes, cliques: &self.cliques }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, kernel::stream::Counter> {
        self.kernel.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[pymethods]
impl Counter {
    #[new]
    #[pyo3(signature = (attributes, cardinalities, cliques, memory_limit, threads=None))]
    fn new(
        attributes: Vec<String>,
        cardinalities: Vec<u32>,
        cliques: Vec<Vec<usize>>,
        memory_limit: u64,
        threads: Option<NonZero<usize>>,
    ) -> PyResult<Self> {
        let counter = kernel::stream::Counter::new(&cardinalities, &cliques, memory_limit)
            .map_err(|error| Names { attributes: &attributes, cliques: &cliques }.explain(error))?;
        Ok(Self { attributes, cardinalities, cliques, threads, kernel: counter.into() })
    }

    fn update(&self, py: Python<'_>, codes: Vec<Codes<'_>>) -> PyResult<()> {
        let columns = columns(&codes)?;
        enter(py, self.threads, &self.names(), |cancel| {
            let batch = Table::new(columns, self.cardinalities.clone())?;
            self.lock().update(&batch, cancel)
        })
    }

    fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        enter(py, self.threads, &self.names(), |cancel| {
            let other = other.lock().clone();
            self.lock().merge(&other, cancel)
        })
    }

    fn add_tables(&self, py: Python<'_>, tables: Vec<PyReadonlyArray1<'_, i64>>) -> PyResult<()> {
        let tables = tables.iter().map(|table| Ok(table.as_slice()?)).collect::<PyResult<Vec<_>>>()?;
        enter(py, self.threads, &self.names(), |_| self.lock().add_tables(&tables))
    }

    fn result<'py>(&self, py: Python<'py>) -> PyResult<Tables<'py>> {
        let tables = enter(py, self.threads, &self.names(), |cancel| self.lock().result(cancel))?;
        Ok(hand_back(py, tables))
    }
}
