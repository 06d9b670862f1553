//! Each kernel error becomes one Python exception, with the names that kernels do not know.

use chicle_core::Error;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError};
use pyo3::{PyErr, import_exception};

use crate::convert::Axes;

import_exception!(chicle.errors, ChicleError);
import_exception!(chicle.errors, DomainError);
import_exception!(chicle.errors, InfeasibleError);
import_exception!(chicle.errors, ParameterError);
import_exception!(chicle.errors, PrivacyError);

/// The names of attributes, and for each query asked for the positions of its attributes.
#[derive(Default)]
pub struct Names {
    attributes: Vec<String>,
    queries: Vec<Vec<usize>>,
}

impl Names {
    /// Names for the errors of queries.
    pub fn new<'a>(attributes: Vec<String>, queries: impl Iterator<Item = &'a Axes<'a>>) -> Self {
        let positions = |axes: &Axes<'_>| axes.iter().map(|(attribute, _)| *attribute).collect();
        Self { attributes, queries: queries.map(positions).collect() }
    }

    fn attribute(&self, attribute: usize) -> String {
        self.attributes.get(attribute).map_or_else(|| format!("number {attribute}"), |name| format!("{name:?}"))
    }

    fn query(&self, query: usize) -> String {
        let attributes = self.queries.get(query).map_or(&[][..], Vec::as_slice);
        let name = |&a: &usize| self.attributes.get(a).map_or("?", String::as_str);
        format!("({})", attributes.iter().map(name).collect::<Vec<_>>().join(", "))
    }

    /// The Python exception for a kernel's error.
    pub fn explain(&self, error: Error) -> PyErr {
        match error {
            Error::CodeOutOfDomain { attribute, cardinality } => DomainError::new_err(format!(
                "attribute {}: a code is outside its domain 0..{}; the column was changed after it was checked. \
                 Build Records from an array that nobody writes to",
                self.attribute(attribute),
                cardinality - 1
            )),
            Error::UnequalLengths { attribute, .. } => DomainError::new_err(format!(
                "attribute {} has another number of codes than {}; every column describes the same records",
                self.attribute(attribute),
                self.attribute(0)
            )),
            Error::WrongWidth { attribute, found, expected } => DomainError::new_err(format!(
                "attribute {} has codes of {found} bytes; its cardinality takes {expected}",
                self.attribute(attribute)
            )),
            Error::NoSuchAttribute { attribute, attributes } => DomainError::new_err(format!(
                "there is no attribute number {attribute}; the domain has {attributes}, numbered from 0 on"
            )),
            Error::WrongAxis { attribute, cardinality, size } => DomainError::new_err(format!(
                "attribute {}: an axis of size {size} does not fit its {cardinality} codes; give one bucket for each \
                 code, below the size of the axis, or without buckets an axis as long as there are codes",
                self.attribute(attribute)
            )),
            Error::AttributeTwice { attribute } => DomainError::new_err(format!(
                "attribute {} is on two axes of one query; only counting takes that, and only in different buckets",
                self.attribute(attribute)
            )),
            Error::InBuckets { attribute } => DomainError::new_err(format!(
                "attribute {} is in buckets, which this kernel does not take; use descent or a graphical model",
                self.attribute(attribute)
            )),
            Error::WrongValues { values, cells } => {
                DomainError::new_err(format!("{values} values for a table of {cells} cells; give one for each cell"))
            }
            Error::TableTooLarge { query, cells, bytes, limit } => InfeasibleError::new_err(format!(
                "clique {}: its table of {cells} cells takes the counts to {bytes} bytes, above the limit of {limit}. \
                 Ask for fewer or smaller cliques, or raise memory_limit (a table has fewer than 2^32 cells)",
                self.query(query)
            )),
            Error::ModelTooLarge { cells, bytes, limit } => InfeasibleError::new_err(format!(
                "the graphical model needs tables of {cells} cells and {bytes} bytes, above the limit of {limit}: its \
                 cliques are too many or too large for a junction tree. Measure fewer or smaller cliques, raise \
                 memory_limit, or use gum or descent, which have no such limit"
            )),
            Error::CounterIncomplete => ChicleError::new_err(error.to_string()),
            Error::ScaleOutOfRange { .. } => PrivacyError::new_err(error.to_string()),
            Error::InvalidParameter(_) | Error::NoThreads { .. } => ParameterError::new_err(error.to_string()),
            Error::OutOfMemory { .. } => InfeasibleError::new_err(format!("{error}; ask for less")),
            Error::Interrupted => PyKeyboardInterrupt::new_err("interrupted"),
            Error::Entropy(_) => PyOSError::new_err(error.to_string()),
        }
    }
}

/// A kernel that panicked: reported as a defect of chicle.
pub fn defect() -> PyErr {
    PyRuntimeError::new_err("a kernel of chicle failed; this is a defect, please report it")
}
