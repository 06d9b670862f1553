//! Small attributes packed into sets.

use std::num::NonZero;

use chicle_core::pack::{self as kernel, Problem, Set};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::enter::enter;
use crate::errors::Names;

/// Sets of attributes, each with the position of its noise, that replace the given pairs.
#[pyfunction]
#[pyo3(signature = (
    sizes, sigmas, fine, unmeasured, pairs, price, max_order, max_cells, triple_bonus, triple_error, triple_weight,
    budget, seed,
    threads=None
))]
#[expect(clippy::too_many_arguments, reason = "flat arrays cross the seam, not objects")]
pub fn pack(
    py: Python<'_>,
    sizes: Vec<u32>,
    sigmas: PyReadonlyArray1<'_, f64>,
    fine: PyReadonlyArray1<'_, f64>,
    unmeasured: PyReadonlyArray1<'_, f64>,
    pairs: Vec<(Vec<usize>, usize)>,
    price: f64,
    max_order: usize,
    max_cells: u32,
    triple_bonus: f64,
    triple_error: f64,
    triple_weight: f64,
    budget: f64,
    seed: u64,
    threads: Option<NonZero<usize>>,
) -> PyResult<Vec<(Vec<usize>, usize)>> {
    let (sigmas, fine, unmeasured) = (sigmas.as_slice()?, fine.as_slice()?, unmeasured.as_slice()?);
    let problem = Problem {
        sizes: &sizes,
        sigmas,
        fine,
        unmeasured,
        price,
        max_order,
        max_cells,
        triple_bonus,
        triple_error,
        triple_weight,
        budget,
    };
    let pairs = pairs.into_iter().map(|(attributes, noise)| Set { attributes, noise }).collect();
    let sets = enter(py, threads, &Names::default(), |cancel| kernel::pack(&problem, pairs, seed, cancel))?;
    Ok(sets.into_iter().map(|set| (set.attributes, set.noise)).collect())
}
