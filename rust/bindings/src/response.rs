//! Best responses to weighted queries.

use std::num::NonZero;

use chicle_core::response::Response;
use chicle_core::table::Codes;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::convert::arrays;
use crate::enter::enter;
use crate::errors::Names;

/// Records that gain most from weighted cells, as columns of codes, each record with random costs of its own.
#[pyfunction]
#[pyo3(signature = (attributes, cardinalities, cells, weights, records, starts, scale, seed, threads=None))]
#[expect(clippy::too_many_arguments, reason = "flat arrays cross the seam, not objects")]
pub fn best_responses<'py>(
    py: Python<'py>,
    attributes: Vec<String>,
    cardinalities: Vec<u32>,
    cells: Vec<Vec<(usize, u32)>>,
    weights: PyReadonlyArray1<'py, f64>,
    records: usize,
    starts: usize,
    scale: f64,
    seed: u64,
    threads: Option<NonZero<usize>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let weights = weights.as_slice()?;
    let names = Names::new(attributes, std::iter::empty());
    let columns = enter(py, threads, &names, |cancel| {
        let response = Response::new(cardinalities.clone(), &cells, weights)?;
        let found = response.records(records, starts, scale, seed, cancel)?;
        let column = |(a, &size): (usize, &u32)| Codes::of(size, found.iter().map(|record| record[a]));
        cardinalities.iter().enumerate().map(column).collect()
    })?;
    Ok(arrays(py, columns))
}
