//! Tables that are made to agree, sweep by sweep.

use std::num::NonZero;

use chicle_core::Error;
use chicle_core::project::{self as kernel, Problem, Rule};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::convert::{Target, tables};
use crate::errors::Names;
use crate::handle::Handle;

fn rule(name: &str) -> Result<Rule, Error> {
    match name {
        "least-squares" => Ok(Rule::Joint),
        "norm-sub" => Ok(Rule::NormSub),
        "norm-cut" => Ok(Rule::NormCut),
        "norm-mul" => Ok(Rule::NormMul),
        "base-pos" => Ok(Rule::BasePos),
        "none" => Ok(Rule::None),
        _ => Err(Error::InvalidParameter(format!("there is no way {name:?} to make tables non-negative"))),
    }
}

/// Tables that are made to agree.
#[pyclass(module = "chicle._core", frozen)]
pub struct Projection(Handle<kernel::Projection>);

#[pymethods]
impl Projection {
    #[new]
    #[pyo3(signature = (attributes, cardinalities, targets, rule, memory_limit, total=None, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "a signature for Python")]
    fn new(
        py: Python<'_>,
        attributes: Vec<String>,
        cardinalities: Vec<u32>,
        targets: Vec<Target<'_>>,
        rule: &str,
        memory_limit: u64,
        total: Option<f64>,
        threads: Option<NonZero<usize>>,
    ) -> PyResult<Self> {
        let names = Names::new(attributes, targets.iter().map(|(axes, ..)| axes));
        let targets = crate::convert::targets(&names, &cardinalities, &targets)?;
        let make = |cancel: &_| {
            let rule = self::rule(rule)?;
            let problem = Problem { cardinalities: &cardinalities, targets, total, rule, memory_limit };
            kernel::Projection::new(problem, cancel)
        };
        Handle::new(py, threads, names, make).map(Self)
    }

    #[getter]
    fn total(&self, py: Python<'_>) -> PyResult<f64> {
        self.0.with(py, |projection, _| Ok(projection.total()))
    }

    fn sweep(&self, py: Python<'_>) -> PyResult<f64> {
        self.0.with(py, kernel::Projection::sweep)
    }

    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyArray1<f64>>>> {
        Ok(tables(py, self.0.with(py, |projection, cancel| projection.tables(cancel))?))
    }
}
