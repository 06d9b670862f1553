//! Scores of pairs of attributes, and of any cliques against public tables.

use std::num::NonZero;

use chicle_core::select::apart as apart_kernel;
use chicle_core::select::{self as kernel, Reference};
use chicle_core::table::Table;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::convert::{Codes, columns};
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
    pairs: Vec<[usize; 2]>,
    shares: Option<Vec<PyReadonlyArray1<'py, f64>>>,
    total: f64,
    memory_limit: u64,
    threads: Option<NonZero<usize>>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let columns = columns(&codes)?;
    let shares = borrow(shares.as_deref())?;
    let cliques: Vec<Vec<usize>> = pairs.iter().map(|pair| pair.to_vec()).collect();
    let names = Names { attributes: &attributes, cliques: &cliques };
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
    pairs: Vec<[usize; 2]>,
    records: u64,
    shares: Option<Vec<PyReadonlyArray1<'py, f64>>>,
    total: f64,
    threads: Option<NonZero<usize>>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let tables = slices(&tables)?;
    let shares = borrow(shares.as_deref())?;
    let scores = enter(py, threads, &Names::default(), |cancel| {
        let reference = reference(shares.as_deref(), total);
        kernel::indif_of_counts(&tables, &pairs, &cardinalities, records, reference, cancel)
    })?;
    Ok(scores.into_pyarray(py))
}

/// The distance of each clique's counts from a table of expected counts, in units.
#[pyfunction]
#[pyo3(signature = (codes, attributes, cardinalities, cliques, references, memory_limit, threads=None))]
#[expect(clippy::too_many_arguments, reason = "flat arrays cross the seam, not objects")]
pub fn distances<'py>(
    py: Python<'py>,
    codes: Vec<Codes<'py>>,
    attributes: Vec<String>,
    cardinalities: Vec<u32>,
    cliques: Vec<Vec<usize>>,
    references: Vec<PyReadonlyArray1<'py, f64>>,
    memory_limit: u64,
    threads: Option<NonZero<usize>>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let columns = columns(&codes)?;
    let references = slices(&references)?;
    let names = Names { attributes: &attributes, cliques: &cliques };
    let scores = enter(py, threads, &names, |cancel| {
        let table = Table::new(columns, cardinalities)?;
        apart_kernel::distances(&table, &cliques, &references, memory_limit, cancel)
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
        apart_kernel::distances_of_counts(&tables, &references, records, cancel)
    })?;
    Ok(scores.into_pyarray(py))
}

fn slices<'a, T: numpy::Element>(arrays: &'a [PyReadonlyArray1<'_, T>]) -> PyResult<Vec<&'a [T]>> {
    arrays.iter().map(|array| Ok(array.as_slice()?)).collect()
}

fn borrow<'a>(shares: Option<&'a [PyReadonlyArray1<'_, f64>]>) -> PyResult<Option<Vec<&'a [f64]>>> {
    shares.map(slices).transpose()
}

fn reference<'a>(shares: Option<&'a [&'a [f64]]>, total: f64) -> Reference<'a> {
    shares.map_or(Reference::Own, |shares| Reference::Given { shares, total })
}
