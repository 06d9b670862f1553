//! The simulated census.

use std::num::NonZero;

use chicle_census::{Attribute, attributes, generate};
use pyo3::prelude::*;

use crate::convert::arrays;
use crate::enter::enter;
use crate::errors::Names;

type Columns<'py> = (Vec<String>, Vec<u32>, Vec<Bound<'py, PyAny>>);

/// Names, cardinalities and codes of a simulated population.
#[pyfunction]
#[pyo3(signature = (records, attributes, seed, threads=None))]
pub fn census(
    py: Python<'_>,
    records: usize,
    attributes: usize,
    seed: u64,
    threads: Option<NonZero<usize>>,
) -> PyResult<Columns<'_>> {
    let columns = enter(py, threads, &Names::default(), |cancel| generate(records, attributes, seed, cancel))?;
    let spec = self::attributes(attributes);
    let (names, cardinalities) = spec.into_iter().map(|Attribute { name, cardinality }| (name, cardinality)).unzip();
    Ok((names, cardinalities, arrays(py, columns)))
}
