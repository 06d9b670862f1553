//! One kernel error, one Python exception, with the names that kernels do not know.

use chicle_core::Error;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError};
use pyo3::{PyErr, import_exception};

import_exception!(chicle.errors, ChicleError);
import_exception!(chicle.errors, DomainError);
import_exception!(chicle.errors, InfeasibleError);
import_exception!(chicle.errors, ParameterError);
import_exception!(chicle.errors, PrivacyError);

/// The names of attributes, and the cliques asked for as positions among them.
#[derive(Default)]
pub struct Names<'a> {
    pub attributes: &'a [String],
    pub cliques: &'a [Vec<usize>],
}

impl Names<'_> {
    fn clique(&self, clique: usize) -> String {
        let names: Vec<_> = self.cliques[clique].iter().map(|&a| &self.attributes[a][..]).collect();
        format!("({})", names.join(", "))
    }

    /// The Python exception for a kernel's error.
    pub fn explain(&self, error: Error) -> PyErr {
        match error {
            Error::CodeOutOfDomain { attribute, cardinality } => DomainError::new_err(format!(
                "attribute {:?}: a code is outside its domain 0..{}; the column was changed after it was checked. \
                 Build Records from an array that nobody writes to",
                self.attributes[attribute],
                cardinality - 1
            )),
            Error::UnequalLengths { attribute, .. } => DomainError::new_err(format!(
                "attribute {:?} has another number of codes than {:?}; every column describes the same records",
                self.attributes[attribute], self.attributes[0]
            )),
            Error::WrongWidth { attribute, found, expected } => DomainError::new_err(format!(
                "attribute {:?} has codes of {found} bytes; its cardinality takes {expected}",
                self.attributes[attribute]
            )),
            Error::TableTooLarge { clique, cells, bytes, limit } => InfeasibleError::new_err(format!(
                "clique {}: its table of {cells} cells takes the counts to {bytes} bytes, above the limit of {limit}. \
                 Ask for fewer or smaller cliques, or raise memory_limit (a table has fewer than 2^32 cells)",
                self.clique(clique)
            )),
            Error::ModelTooLarge { cells, bytes, limit } => InfeasibleError::new_err(format!(
                "the graphical model needs tables of {cells} cells and {bytes} bytes, above the limit of {limit}: its \
                 cliques are too many or too large for a junction tree. Measure fewer or smaller cliques, raise \
                 memory_limit, or use gum or descent, which have no such limit"
            )),
            Error::CounterMismatch => DomainError::new_err(error.to_string()),
            Error::CounterIncomplete => ChicleError::new_err(error.to_string()),
            Error::ScaleOutOfRange { .. } => PrivacyError::new_err(error.to_string()),
            Error::InvalidParameter(_) | Error::NoThreads { .. } => ParameterError::new_err(error.to_string()),
            Error::OutOfMemory { .. } => InfeasibleError::new_err(format!("{error}; ask for less")),
            Error::Interrupted => PyKeyboardInterrupt::new_err("interrupted"),
            Error::Entropy(_) => PyOSError::new_err(error.to_string()),
        }
    }
}

/// A kernel that panicked: a defect of chicle, said as such.
pub fn defect() -> PyErr {
    PyRuntimeError::new_err("a kernel of chicle failed; this is a defect, please report it")
}
