//! A keyed digest of rows, in any order.

use std::num::NonZero;

use chicle_core::digest as kernel;
use chicle_core::table::Table;
use pyo3::prelude::*;

use crate::convert::{Codes, columns};
use crate::enter::enter;
use crate::errors::Names;

/// The digest of each column, and of the rows.
#[pyfunction]
#[pyo3(signature = (codes, attributes, cardinalities, keys, threads=None))]
pub fn digest(
    py: Python<'_>,
    codes: Vec<Codes<'_>>,
    attributes: Vec<String>,
    cardinalities: Vec<u32>,
    keys: Vec<u64>,
    threads: Option<NonZero<usize>>,
) -> PyResult<(Vec<u64>, u64)> {
    let columns = columns(&codes)?;
    let names = Names::new(attributes, std::iter::empty());
    let digest = enter(py, threads, &names, |cancel| {
        let table = Table::new(columns, cardinalities)?;
        kernel::digest(&table, &keys, cancel)
    })?;
    Ok((digest.columns, digest.rows))
}
