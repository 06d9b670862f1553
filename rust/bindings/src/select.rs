//! Scores of pairs of attributes.

use std::num::NonZero;

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
    let tables = tables.iter().map(|table| Ok(table.as_slice()?)).collect::<PyResult<Vec<_>>>()?;
    let shares = borrow(shares.as_deref())?;
    let scores = enter(py, threads, &Names::default(), |cancel| {
        let reference = reference(shares.as_deref(), total);
        kernel::indif_of_counts(&tables, &pairs, &cardinalities, records, reference, cancel)
    })?;
    Ok(scores.into_pyarray(py))
}

fn borrow<'a>(shares: Option<&'a [PyReadonlyArray1<'_, f64>]>) -> PyResult<Option<Vec<&'a [f64]>>> {
    shares.map(|shares| shares.iter().map(|share| Ok(share.as_slice()?)).collect()).transpose()
}

fn reference<'a>(shares: Option<&'a [&'a [f64]]>, total: f64) -> Reference<'a> {
    shares.map_or(Reference::Own, |shares| Reference::Given { shares, total })
}
