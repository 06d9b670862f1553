//! `chicle._core`: the Python door to the kernels.
//!
//! The only crate that uses Python. A binding borrows arrays ([`convert`]), goes through [`enter`], and hands arrays
//! back; a kernel that lives between calls is held by a [`handle`]. The Python interface is in `_core.pyi`.

#![allow(clippy::needless_pass_by_value, reason = "arguments that come from Python are owned")]

mod census;
mod convert;
mod count;
mod descent;
mod digest;
mod draw;
mod enter;
mod errors;
mod gum;
mod handle;
mod mixture;
mod noise;
mod pack;
mod people;
mod pgm;
mod project;
mod response;
mod reweight;
mod score;
mod sets;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("MEMORY_LIMIT", chicle_core::count::MEMORY_LIMIT)?;
    module.add("MIN_SCALE", chicle_core::noise::MIN_SCALE)?;
    module.add("MAX_SCALE", chicle_core::noise::MAX_SCALE)?;
    module.add_function(wrap_pyfunction!(count::count, module)?)?;
    module.add_class::<count::Counter>()?;
    module.add_class::<project::Projection>()?;
    module.add_class::<gum::Gum>()?;
    module.add_class::<descent::Descent>()?;
    module.add_class::<mixture::Mixture>()?;
    module.add_class::<pgm::Pgm>()?;
    module.add_function(wrap_pyfunction!(pgm::model_cells, module)?)?;
    module.add_class::<reweight::Reweight>()?;
    module.add_function(wrap_pyfunction!(response::best_responses, module)?)?;
    module.add_function(wrap_pyfunction!(draw::draw, module)?)?;
    module.add_function(wrap_pyfunction!(noise::rounded_gaussian, module)?)?;
    module.add_function(wrap_pyfunction!(noise::discrete_laplace, module)?)?;
    module.add_function(wrap_pyfunction!(noise::choose, module)?)?;
    module.add_function(wrap_pyfunction!(census::census, module)?)?;
    module.add("INDIF_UNITS", chicle_core::score::UNITS)?;
    module.add_function(wrap_pyfunction!(score::indif, module)?)?;
    module.add_function(wrap_pyfunction!(score::indif_of_counts, module)?)?;
    module.add_function(wrap_pyfunction!(score::distances, module)?)?;
    module.add_function(wrap_pyfunction!(score::distances_of_counts, module)?)?;
    module.add_function(wrap_pyfunction!(pack::pack, module)?)?;
    module.add_function(wrap_pyfunction!(sets::choose_sets, module)?)?;
    module.add_function(wrap_pyfunction!(people::id_hashes, module)?)?;
    module.add_class::<people::FirstRows>()?;
    module.add_function(wrap_pyfunction!(digest::digest, module)?)?;
    Ok(())
}
