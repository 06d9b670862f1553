//! A kernel that lives between calls from Python: its lock, its threads, and the names that its errors need.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

use chicle_core::Result;
use chicle_core::parallel::Cancel;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::enter::enter;
use crate::errors::Names;

/// The state of a kernel; each call on it is one bounded step.
pub struct Handle<K> {
    kernel: Mutex<K>,
    threads: Option<NonZero<usize>>,
    names: Names,
}

impl<K: Send> Handle<K> {
    /// Make a kernel.
    pub fn new(
        py: Python<'_>,
        threads: Option<NonZero<usize>>,
        names: Names,
        make: impl FnOnce(&Cancel) -> Result<K> + Send,
    ) -> PyResult<Self> {
        let kernel = enter(py, threads, &names, make)?.into();
        Ok(Self { kernel, threads, names })
    }

    /// Run a step of the kernel, one call at a time.
    ///
    /// The calling thread waits for the lock, detached from the interpreter. A thread of the pool must not wait: a
    /// running call could be waiting for that thread.
    pub fn with<T: Send>(&self, py: Python<'_>, step: impl FnOnce(&mut K, &Cancel) -> Result<T> + Send) -> PyResult<T> {
        let mut guard = self.kernel.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let kernel = &mut *guard;
        enter(py, self.threads, &self.names, |cancel| step(kernel, cancel))
    }

    /// The names that errors need.
    pub fn names(&self) -> &Names {
        &self.names
    }
}
