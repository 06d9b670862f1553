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
    let shares = match &shares {
        Some(shares) => Some(shares.iter().map(|s| Ok(s.as_slice()?)).collect::<PyResult<Vec<_>>>()?),
        None => None,
    };
    let cliques: Vec<Vec<usize>> = pairs.iter().map(|pair| pair.to_vec()).collect();
    let names = Names { attributes: &attributes, cliques: &cliques };
    let scores = enter(py, threads, &names, |cancel| {
        let table = Table::new(columns, cardinalities)?;
        let reference = match &shares {
            Some(shares) => Reference::Given { shares, total },
            None => Reference::Own,
        };
        kernel::indif(&table, &pairs, reference, memory_limit, cancel)
    })?;
    Ok(scores.into_pyarray(py))
}
