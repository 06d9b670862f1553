//! Scores of pairs of attributes, and of any queries against public tables.

use std::num::NonZero;

use chicle_core::score::distance as distance_kernel;
use chicle_core::score::{self as kernel, Reference};
use chicle_core::table::Table;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::convert::{Axes, Codes, columns, slices};
use crate::enter::enter;
use crate::errors::Names;

/// `InDif` of each pair in units: against public shares times `total`, or against its own margins without them.
#[pyfunction]
#[pyo3(signature = (codes, attributes, cardinalities, pairs, shares, total, memory_limit, threads=None))]
#[expect(clippy::too_many_arguments, reason = "flat arrays cross the seam, not objects")]
pub fn indif<'py>(
    py: Python<'py>,
    codes: Vec<Codes<'py>>,
    attributes: Vec<String>,
    cardinalities: Vec<u32>,
    pairs: Vec<Axes<'py>>,
    shares: Option<Vec<PyReadonlyArray1<'py, f64>>>,
    total: f64,
    memory_limit: u64,
    threads: Option<NonZero<usize>>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let columns = columns(&codes)?;
    let shares = shares.as_deref().map(slices).transpose()?;
    let names = Names::new(attributes, pairs.iter());
    let pairs = crate::convert::queries(&names, &cardinalities, &pairs)?;
    let scores = enter(py, threads, &names, |cancel| {
        let table = Table::new(columns, cardinalities)?;
        let reference = reference(shares.as_deref(), total);
        kernel::indif(&table, &pairs, reference, memory_limit, cancel)
    })?;
    Ok(scores.into_pyarray(py))
}

/// The same of tables that were counted already.
#[pyfunction]
#[pyo3(signature = (tables, cardinalities, pairs, records, shares, total, threads=None))]
#[expect(clippy::too_many_arguments, reason = "flat arrays cross the seam, not objects")]
pub fn indif_of_counts<'py>(
    py: Python<'py>,
    tables: Vec<PyReadonlyArray1<'py, i64>>,
    cardinalities: Vec<u32>,
    pairs: Vec<Axes<'py>>,
    records: u64,
    shares: Option<Vec<PyReadonlyArray1<'py, f64>>>,
    total: f64,
    threads: Option<NonZero<usize>>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let tables = slices(&tables)?;
    let shares = shares.as_deref().map(slices).transpose()?;
    let pairs = crate::convert::queries(&Names::default(), &cardinalities, &pairs)?;
    let scores = enter(py, threads, &Names::default(), |cancel| {
        let reference = reference(shares.as_deref(), total);
        kernel::indif_of_counts(&tables, &pairs, records, reference, cancel)
    })?;
    Ok(scores.into_pyarray(py))
}

/// The distance of each query's counts from a table of expected counts, in units.
#[pyfunction]
#[pyo3(signature = (codes, attributes, cardinalities, queries, references, memory_limit, threads=None))]
#[expect(clippy::too_many_arguments, reason = "flat arrays cross the seam, not objects")]
pub fn distances<'py>(
    py: Python<'py>,
    codes: Vec<Codes<'py>>,
    attributes: Vec<String>,
    cardinalities: Vec<u32>,
    queries: Vec<Axes<'py>>,
    references: Vec<PyReadonlyArray1<'py, f64>>,
    memory_limit: u64,
    threads: Option<NonZero<usize>>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let columns = columns(&codes)?;
    let references = slices(&references)?;
    let names = Names::new(attributes, queries.iter());
    let queries = crate::convert::queries(&names, &cardinalities, &queries)?;
    let scores = enter(py, threads, &names, |cancel| {
        let table = Table::new(columns, cardinalities)?;
        distance_kernel::distances(&table, &queries, &references, memory_limit, cancel)
    })?;
    Ok(scores.into_pyarray(py))
}

/// The same of tables that were counted already.
#[pyfunction]
#[pyo3(signature = (tables, references, records, threads=None))]
pub fn distances_of_counts<'py>(
    py: Python<'py>,
    tables: Vec<PyReadonlyArray1<'py, i64>>,
    references: Vec<PyReadonlyArray1<'py, f64>>,
    records: u64,
    threads: Option<NonZero<usize>>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let tables = slices(&tables)?;
    let references = slices(&references)?;
    let scores = enter(py, threads, &Names::default(), |cancel| {
        distance_kernel::distances_of_counts(&tables, &references, records, cancel)
    })?;
    Ok(scores.into_pyarray(py))
}

fn reference<'a>(shares: Option<&'a [&'a [f64]]>, total: f64) -> Reference<'a> {
    shares.map_or(Reference::Own, |shares| Reference::Given { shares, total })
}
