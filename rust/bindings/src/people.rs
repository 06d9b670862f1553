//! Which rows are the first of each person.

use std::num::NonZero;

use chicle_core::people as kernel;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::enter::enter;
use crate::errors::Names;
use crate::handle::Handle;

/// A keyed 128-bit hash of each id: of 64-bit words, or of texts given by their offsets.
#[pyfunction]
#[pyo3(signature = (key, words=None, texts=None, threads=None))]
pub fn id_hashes<'py>(
    py: Python<'py>,
    key: [u64; 2],
    words: Option<PyReadonlyArray1<'py, u64>>,
    texts: Option<(PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, u8>)>,
    threads: Option<NonZero<usize>>,
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    let ids = match (&words, &texts) {
        (_, Some((offsets, bytes))) => kernel::Ids::Texts { offsets: offsets.as_slice()?, bytes: bytes.as_slice()? },
        (Some(words), None) => kernel::Ids::Words(words.as_slice()?),
        (None, None) => kernel::Ids::Words(&[]),
    };
    let hashes = enter(py, threads, &Names::default(), |_| kernel::hashes(ids, key))?;
    let rows = hashes.len();
    hashes.into_flattened().into_pyarray(py).reshape([rows, 2])
}

/// Counts of the rows of each person, over batches.
#[pyclass(module = "chicle._core", frozen)]
pub struct FirstRows(Handle<kernel::FirstRows>);

#[pymethods]
impl FirstRows {
    #[new]
    fn new(py: Python<'_>, most: NonZero<u32>, persons: usize) -> PyResult<Self> {
        let make = |_: &_| Ok(kernel::FirstRows::new(most, persons));
        Handle::new(py, NonZero::new(1), Names::default(), make).map(Self)
    }

    fn update<'py>(&self, py: Python<'py>, hashes: PyReadonlyArray2<'_, u64>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let (hashes, _) = hashes.as_slice()?.as_chunks::<2>();
        Ok(self.0.with(py, |first, cancel| first.update(hashes, cancel))?.into_pyarray(py))
    }

    fn next_pass(&self, py: Python<'_>) -> PyResult<bool> {
        self.0.with(py, |first, _| Ok(first.next_pass()))
    }
}
