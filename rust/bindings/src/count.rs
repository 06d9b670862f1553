//! Tables of queries: all at once, or batch by batch.

use std::num::NonZero;

use chicle_core::count as kernel;
use chicle_core::table::Table;
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::convert::{Axes, Codes, columns, tables};
use crate::enter::enter;
use crate::errors::Names;
use crate::handle::Handle;

type Tables<'py> = Vec<Bound<'py, PyArray1<i64>>>;

/// Flat counts of each query.
#[pyfunction]
#[pyo3(signature = (codes, attributes, cardinalities, queries, memory_limit, threads=None))]
pub fn count<'py>(
    py: Python<'py>,
    codes: Vec<Codes<'py>>,
    attributes: Vec<String>,
    cardinalities: Vec<u32>,
    queries: Vec<Axes<'py>>,
    memory_limit: u64,
    threads: Option<NonZero<usize>>,
) -> PyResult<Tables<'py>> {
    let columns = columns(&codes)?;
    let names = Names::new(attributes, queries.iter());
    let queries = crate::convert::queries(&names, &cardinalities, &queries)?;
    let counts = enter(py, threads, &names, |cancel| {
        let table = Table::new(columns, cardinalities)?;
        kernel::count(&table, &queries, memory_limit, cancel)
    })?;
    Ok(tables(py, counts))
}

/// Counts over batches of records.
#[pyclass(module = "chicle._core", frozen)]
pub struct Counter(Handle<kernel::stream::Counter>);

#[pymethods]
impl Counter {
    #[new]
    #[pyo3(signature = (attributes, cardinalities, queries, memory_limit, threads=None))]
    fn new(
        py: Python<'_>,
        attributes: Vec<String>,
        cardinalities: Vec<u32>,
        queries: Vec<Axes<'_>>,
        memory_limit: u64,
        threads: Option<NonZero<usize>>,
    ) -> PyResult<Self> {
        let names = Names::new(attributes, queries.iter());
        let queries = crate::convert::queries(&names, &cardinalities, &queries)?;
        let make = |_: &_| kernel::stream::Counter::new(&cardinalities, &queries, memory_limit);
        Handle::new(py, threads, names, make).map(Self)
    }

    fn update(&self, py: Python<'_>, codes: Vec<Codes<'_>>) -> PyResult<()> {
        let columns = columns(&codes)?;
        self.0.with(py, |counter, cancel| {
            let batch = Table::new(columns, counter.cardinalities().to_vec())?;
            counter.update(&batch, cancel)
        })
    }

    fn result<'py>(&self, py: Python<'py>) -> PyResult<Tables<'py>> {
        Ok(tables(py, self.0.with(py, kernel::stream::Counter::result)?))
    }
}
