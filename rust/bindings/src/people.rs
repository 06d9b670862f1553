//! Which rows are the first of each person.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

use chicle_core::people as kernel;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::enter::enter;
use crate::errors::Names;

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

/// Counts of the rows of each person met, over batches.
#[pyclass(module = "chicle._core", frozen)]
pub struct FirstRows {
    kernel: Mutex<kernel::FirstRows>,
}

#[pymethods]
impl FirstRows {
    #[new]
    fn new(most: NonZero<u32>, persons: usize) -> Self {
        Self { kernel: kernel::FirstRows::new(most, persons).into() }
    }

    fn update<'py>(&self, py: Python<'py>, hashes: PyReadonlyArray2<'_, u64>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let (hashes, _) = hashes.as_slice()?.as_chunks::<2>();
        let mut guard = self.kernel.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let first = &mut *guard;
        let kept = enter(py, NonZero::new(1), &Names::default(), |cancel| first.update(hashes, cancel))?;
        Ok(kept.into_pyarray(py))
    }

    fn next_pass(&self, py: Python<'_>) -> bool {
        self.kernel.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).next_pass()
    }
}
