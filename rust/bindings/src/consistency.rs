//! Tables on their way to agreement, sweep by sweep.

use std::num::NonZero;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chicle_core::Error;
use chicle_core::consistency::{self as kernel, Problem, Rule};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::enter::enter;
use crate::errors::Names;

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

/// A projection, and the names that its errors need.
#[pyclass(module = "chicle._core", frozen)]
pub struct Projection {
    attributes: Vec<String>,
    cliques: Vec<Vec<usize>>,
    threads: Option<NonZero<usize>>,
    kernel: Mutex<kernel::Projection>,
}

impl Projection {
    fn names(&self) -> Names<'_> {
        Names { attributes: &self.attributes, cliques: &self.cliques }
    }

    fn lock(&self) -> MutexGuard<'_, kernel::Projection> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Projection {
    #[new]
    #[pyo3(signature = (
        attributes, cardinalities, cliques, tables, sigmas, rule, memory_limit, total=None, threads=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "a signature for Python")]
    fn new(
        py: Python<'_>,
        attributes: Vec<String>,
        cardinalities: Vec<u32>,
        cliques: Vec<Vec<usize>>,
        tables: Vec<PyReadonlyArray1<'_, f64>>,
        sigmas: Vec<f64>,
        rule: &str,
        memory_limit: u64,
        total: Option<f64>,
        threads: Option<NonZero<usize>>,
    ) -> PyResult<Self> {
        let tables = tables.iter().map(|table| Ok(table.as_slice()?)).collect::<PyResult<Vec<_>>>()?;
        let names = Names { attributes: &attributes, cliques: &cliques };
        let kernel = enter(py, threads, &names, |cancel| {
            let problem = Problem {
                cardinalities: &cardinalities,
                cliques: &cliques,
                tables: &tables,
                sigmas: &sigmas,
                total,
                rule: self::rule(rule)?,
                memory_limit,
            };
            kernel::Projection::new(&problem, cancel)
        })?;
        Ok(Self { attributes, cliques, threads, kernel: kernel.into() })
    }

    #[getter]
    fn total(&self) -> f64 {
        self.lock().total()
    }

    fn sweep(&self, py: Python<'_>) -> PyResult<f64> {
        enter(py, self.threads, &self.names(), |cancel| self.lock().sweep(cancel))
    }

    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyArray1<f64>>>> {
        let tables = enter(py, self.threads, &self.names(), |cancel| self.lock().tables(cancel))?;
        Ok(tables.into_iter().map(|table| table.into_pyarray(py)).collect())
    }
}
