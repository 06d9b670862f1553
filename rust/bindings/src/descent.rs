//! Residual descent, sweep by sweep.

use std::num::NonZero;

use chicle_core::descent as kernel;
use chicle_core::table::Codes as Owned;
use pyo3::prelude::*;

use crate::convert::{Codes, Target, arrays, columns};
use crate::errors::Names;
use crate::handle::Handle;

/// Records that descend towards the targets.
#[pyclass(module = "chicle._core", frozen)]
pub struct Descent(Handle<kernel::Descent>);

#[pymethods]
impl Descent {
    #[new]
    #[pyo3(signature = (codes, attributes, cardinalities, targets, seed, memory_limit, threads=None, place=None))]
    #[expect(clippy::too_many_arguments, reason = "a signature for Python")]
    fn new(
        py: Python<'_>,
        codes: Vec<Codes<'_>>,
        attributes: Vec<String>,
        cardinalities: Vec<u32>,
        targets: Vec<Target<'_>>,
        seed: u64,
        memory_limit: u64,
        threads: Option<NonZero<usize>>,
        place: Option<(f64, f64)>,
    ) -> PyResult<Self> {
        let columns = columns(&codes)?;
        let names = Names::new(attributes, targets.iter().map(|(axes, ..)| axes));
        let targets = crate::convert::targets(&names, &cardinalities, &targets)?;
        let make = |cancel: &_| {
            let columns = columns.iter().map(Owned::copy).collect();
            match place {
                None => kernel::Descent::new(columns, &cardinalities, targets, seed, memory_limit),
                Some(bar) => kernel::Descent::placed(columns, &cardinalities, targets, seed, memory_limit, bar, cancel),
            }
        };
        Handle::new(py, threads, names, make).map(Self)
    }

    /// Leave attributes as they are from now on.
    fn freeze(&self, py: Python<'_>, attributes: Vec<usize>) -> PyResult<()> {
        self.0.with(py, |descent, _| {
            descent.freeze(&attributes);
            Ok(())
        })
    }

    /// One sweep; the number of moves.
    fn sweep(&self, py: Python<'_>, threshold: f64, noise: f64) -> PyResult<usize> {
        self.0.with(py, |descent, cancel| descent.sweep(threshold, noise, cancel))
    }

    /// One visit to each ordinal attribute, with moments in the loss; the number of moves.
    fn polish(
        &self,
        py: Python<'_>,
        amounts: Vec<Option<Vec<f64>>>,
        strength: f64,
        sigma: f64,
        threshold: f64,
        noise: f64,
    ) -> PyResult<usize> {
        let pull = kernel::Pull { strength, sigma };
        self.0.with(py, |descent, cancel| descent.polish(&amounts, pull, threshold, noise, cancel))
    }

    /// Mean target error and loss.
    fn fit(&self, py: Python<'_>) -> PyResult<(f64, f64)> {
        let fit = self.0.with(py, |descent, _| Ok(descent.fit()))?;
        Ok((fit.error, fit.loss))
    }

    /// The records as they are now.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        Ok(arrays(py, self.0.with(py, |descent, _| Ok(descent.columns().to_vec()))?))
    }

    /// The records, moved out of the state.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        Ok(arrays(py, self.0.with(py, |descent, _| Ok(descent.finish()))?))
    }
}
