//! Records updated towards marginals.

use std::num::NonZero;

use chicle_core::Error;
use chicle_core::gum as kernel;
use chicle_core::gum::plan::{Growth, Pairing, Removal, Step};
use chicle_core::table::Table;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::convert::{Codes, Target, arrays, columns};
use crate::errors::Names;
use crate::handle::Handle;

/// Synthetic records that are updated towards the targets; each call is one bounded step.
#[pyclass(module = "chicle._core", frozen)]
pub struct Gum(Handle<kernel::Gum>);

#[pymethods]
impl Gum {
    #[new]
    #[pyo3(signature = (codes, attributes, cardinalities, targets, ranks, seed, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "a signature for Python")]
    fn new(
        py: Python<'_>,
        codes: Vec<Codes<'_>>,
        attributes: Vec<String>,
        cardinalities: Vec<u32>,
        targets: Vec<Target<'_>>,
        ranks: Vec<usize>,
        seed: u64,
        threads: Option<NonZero<usize>>,
    ) -> PyResult<Self> {
        let columns = columns(&codes)?;
        let names = Names::new(attributes, targets.iter().map(|(axes, ..)| axes));
        let targets = crate::convert::targets(&names, &cardinalities, &targets)?;
        let make = |_: &_| kernel::Gum::new(&Table::new(columns, cardinalities)?, targets, &ranks, seed);
        Handle::new(py, threads, names, make).map(Self)
    }

    /// The error of each marginal.
    fn errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(self.0.with(py, |gum, cancel| gum.errors(cancel))?.into_pyarray(py))
    }

    /// One pass over the marginals in the given order; the errors it found.
    #[expect(clippy::too_many_arguments, reason = "a signature for Python")]
    fn update<'py>(
        &self,
        py: Python<'py>,
        order: Vec<usize>,
        round: u64,
        alpha: f64,
        duplicate: f64,
        growth: &str,
        removal: &str,
        pairing: &str,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let found = self.0.with(py, |gum, cancel| {
            let (growth, removal, pairing) = (self::growth(growth)?, self::removal(removal)?, self::pairing(pairing)?);
            gum.pass(&order, round, &Step { alpha, duplicate, growth, removal, pairing }, cancel)
        })?;
        Ok(found.into_pyarray(py))
    }

    /// The codes of each attribute, as they are now.
    fn records<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        Ok(arrays(py, self.0.with(py, |gum, _| Ok(gum.records().to_vec()))?))
    }
}

fn growth(name: &str) -> Result<Growth, Error> {
    match name {
        "multiplicative" => Ok(Growth::Multiplicative),
        "proportional" => Ok(Growth::Proportional),
        other => Err(unknown(other)),
    }
}

fn removal(name: &str) -> Result<Removal, Error> {
    match name {
        "capped" => Ok(Removal::Capped),
        "excess" => Ok(Removal::Excess),
        other => Err(unknown(other)),
    }
}

fn pairing(name: &str) -> Result<Pairing, Error> {
    match name {
        "random" => Ok(Pairing::Random),
        "matched" => Ok(Pairing::Matched),
        "flow" => Ok(Pairing::Flow),
        other => Err(unknown(other)),
    }
}

fn unknown(name: &str) -> Error {
    Error::InvalidParameter(format!("no such option: {name:?}"))
}
