//! Records updated towards marginals.

use std::num::NonZero;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chicle_core::Error;
use chicle_core::gum::plan::{Growth, Pairing, Removal, Step};
use chicle_core::gum::{self as kernel, Marginal};
use chicle_core::table::{Codes as Owned, Table};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::convert::{Codes, columns};
use crate::enter::enter;
use crate::errors::Names;

/// Synthetic records on their way to the targets; each call is one bounded step.
#[pyclass(module = "chicle._core", frozen)]
pub struct Gum {
    attributes: Vec<String>,
    cliques: Vec<Vec<usize>>,
    threads: Option<NonZero<usize>>,
    kernel: Mutex<kernel::Gum>,
}

impl Gum {
    fn names(&self) -> Names<'_> {
        Names { attributes: &self.attributes, cliques: &self.cliques }
    }

    fn lock(&self) -> MutexGuard<'_, kernel::Gum> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Gum {
    #[new]
    #[pyo3(signature = (codes, attributes, cardinalities, cliques, targets, ranks, seed, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "one Python call")]
    fn new(
        py: Python<'_>,
        codes: Vec<Codes<'_>>,
        attributes: Vec<String>,
        cardinalities: Vec<u32>,
        cliques: Vec<Vec<usize>>,
        targets: Vec<PyReadonlyArray1<'_, f64>>,
        ranks: Vec<usize>,
        seed: u64,
        threads: Option<NonZero<usize>>,
    ) -> PyResult<Self> {
        let columns = columns(&codes)?;
        let targets = targets.iter().map(|t| Ok(t.as_slice()?)).collect::<PyResult<Vec<_>>>()?;
        let names = Names { attributes: &attributes, cliques: &cliques };
        let gum = enter(py, threads, &names, |_| {
            let pairs = cliques.iter().zip(&targets);
            let marginals = pairs.map(|(clique, t)| Marginal::new(clique, &cardinalities, t.to_vec())).collect();
            Ok(kernel::Gum::new(&Table::new(columns, cardinalities)?, marginals, &ranks, seed))
        })?;
        Ok(Self { attributes, cliques, threads, kernel: gum.into() })
    }

    /// The error of each marginal.
    fn errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let errors = enter(py, self.threads, &self.names(), |cancel| self.lock().errors(cancel))?;
        Ok(errors.into_pyarray(py))
    }

    /// One pass over the marginals in the given order; the errors it found.
    #[expect(clippy::too_many_arguments, reason = "one Python call")]
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
        let unknown = |name: &str| self.names().explain(Error::InvalidParameter(format!("no such option: {name:?}")));
        let step = Step {
            alpha,
            duplicate,
            growth: match growth {
                "multiplicative" => Growth::Multiplicative,
                "proportional" => Growth::Proportional,
                other => return Err(unknown(other)),
            },
            removal: match removal {
                "capped" => Removal::Capped,
                "excess" => Removal::Excess,
                other => return Err(unknown(other)),
            },
            pairing: match pairing {
                "random" => Pairing::Random,
                "matched" => Pairing::Matched,
                "flow" => Pairing::Flow,
                other => return Err(unknown(other)),
            },
        };
        let found = enter(py, self.threads, &self.names(), |cancel| self.lock().pass(&order, round, &step, cancel))?;
        Ok(found.into_pyarray(py))
    }

    /// The codes of each attribute, as they are now.
    fn records<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let columns = enter(py, self.threads, &self.names(), |_| Ok(self.lock().records().to_vec()))?;
        let arrays = columns.into_iter().map(|codes| match codes {
            Owned::U8(codes) => codes.into_pyarray(py).into_any(),
            Owned::U16(codes) => codes.into_pyarray(py).into_any(),
            Owned::U32(codes) => codes.into_pyarray(py).into_any(),
        });
        Ok(arrays.collect())
    }
}
