//! Sets that tell most about pairs and triples.

use chicle_core::sets::{self as kernel, Item, Problem};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::enter::enter;
use crate::errors::Names;

/// Sets of attributes, each with the position of its noise, that are worth their price.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "flat arrays cross the seam, not objects")]
pub fn choose_sets(
    py: Python<'_>,
    sizes: Vec<u32>,
    items: Vec<(Vec<usize>, f64, f64)>,
    sigmas: PyReadonlyArray1<'_, f64>,
    options: usize,
    noise_errors: PyReadonlyArray1<'_, f64>,
    price: f64,
    max_order: usize,
    max_cells: u64,
    budget: f64,
) -> PyResult<Vec<(Vec<usize>, usize)>> {
    let (sigmas, noise_errors) = (sigmas.as_slice()?, noise_errors.as_slice()?);
    let items: Vec<Item> =
        items.into_iter().map(|(attributes, error, weight)| Item { attributes, error, weight }).collect();
    let problem =
        Problem { sizes: &sizes, items: &items, sigmas, options, noise_errors, price, max_order, max_cells, budget };
    let sets = enter(py, None, &Names::default(), |cancel| kernel::choose(&problem, cancel))?;
    Ok(sets.into_iter().map(|set| (set.attributes, set.noise)).collect())
}
