//! Marginals: all at once, or batch by batch.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

use chicle_core::count as kernel;
use chicle_core::parallel::Cancel;
use chicle_core::table::Table;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

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
    kernel: Mutex<kernel::stream::Counter>,
}

impl Counter {
    fn names(&self) -> Names<'_> {
        Names { attributes: &self.attributes, cliques: &self.cliques }
    }

    /// Run a kernel on the counter, one call at a time.
    ///
    /// The calling thread waits for the lock, detached from the interpreter; a thread of the pool must not, since it
    /// could be the one that a call under way waits for.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        kernel: impl FnOnce(&mut kernel::stream::Counter, &Cancel) -> chicle_core::Result<T> + Send,
    ) -> PyResult<T> {
        let mut guard = self.kernel.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let counter = &mut *guard;
        enter(py, self.threads, &self.names(), |cancel| kernel(counter, cancel))
    }
}

#[pymethods]
impl Counter {
    #[new]
    #[pyo3(signature = (attributes, cardinalities, cliques, memory_limit, threads=None))]
    fn new(
        py: Python<'_>,
        attributes: Vec<String>,
        cardinalities: Vec<u32>,
        cliques: Vec<Vec<usize>>,
        memory_limit: u64,
        threads: Option<NonZero<usize>>,
    ) -> PyResult<Self> {
        let names = Names { attributes: &attributes, cliques: &cliques };
        let counter =
            enter(py, threads, &names, |_| kernel::stream::Counter::new(&cardinalities, &cliques, memory_limit))?;
        Ok(Self { attributes, cardinalities, cliques, threads, kernel: counter.into() })
    }

    fn update(&self, py: Python<'_>, codes: Vec<Codes<'_>>) -> PyResult<()> {
        let columns = columns(&codes)?;
        let cardinalities = self.cardinalities.clone();
        self.with(py, |counter, cancel| counter.update(&Table::new(columns, cardinalities)?, cancel))
    }

    fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        // A copy, lest two counters that are merged into each other wait for each other's lock.
        let other = other.with(py, |other, _| Ok(other.clone()))?;
        self.with(py, |counter, cancel| counter.merge(&other, cancel))
    }

    fn add_tables(&self, py: Python<'_>, tables: Vec<PyReadonlyArray1<'_, i64>>) -> PyResult<()> {
        let tables = tables.iter().map(|table| Ok(table.as_slice()?)).collect::<PyResult<Vec<_>>>()?;
        self.with(py, |counter, _| counter.add_tables(&tables))
    }

    fn result<'py>(&self, py: Python<'py>) -> PyResult<Tables<'py>> {
        let tables = self.with(py, kernel::stream::Counter::result)?;
        Ok(hand_back(py, tables))
    }
}
