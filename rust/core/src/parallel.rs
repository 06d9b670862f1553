//! Shared by the kernels: thread pools, cancellation, and large allocations that may fail.
//!
//! Kernels use rayon's parallel iterators and are started inside a pool of the size the caller asked for. Results never
//! depend on that size: counts are integers, and random streams belong to chunks, not to threads.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, Result};

/// Requests for more bytes than this are tried before they are made.
const ASK_FIRST: usize = 1 << 24;

/// A flag that asks a kernel to stop; kernels check it every few milliseconds.
#[derive(Debug, Default)]
pub struct Cancel(AtomicBool);

impl Cancel {
    /// Ask the kernel to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// `Err(Interrupted)` once asked to stop, for `?`.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// That many zeros, if there is memory for them: trying first keeps a large request from aborting the process.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn zeros<T: Clone + Default>(length: usize) -> Result<Vec<T>> {
    let bytes = length.saturating_mul(size_of::<T>());
    if bytes > ASK_FIRST {
        let asked = Vec::<T>::new().try_reserve_exact(length);
        asked.map_err(|_| Error::OutOfMemory { bytes })?;
    }
    Ok(vec![T::default(); length])
}

/// As many threads as the process may use at once.
#[must_use]
pub fn available() -> NonZero<usize> {
    std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}

/// The pool of `threads` threads, kept for the next call.
///
/// Pools are kept per process: a forked child has none of its parent's threads, and waiting for them would hang.
///
/// # Errors
/// [`Error::NoThreads`].
pub fn pool(threads: NonZero<usize>) -> Result<Arc<ThreadPool>> {
    type Pools = HashMap<(u32, usize), Arc<ThreadPool>>;
    static POOLS: LazyLock<Mutex<Pools>> = LazyLock::new(Mutex::default);

    let key = (std::process::id(), threads.get());
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = pools.get(&key) {
        return Ok(Arc::clone(pool));
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads.get())
        .thread_name(|i| format!("chicle-{i}"))
        .build()
        .map_err(|error| Error::NoThreads { threads: threads.get(), reason: error.to_string() })?;
    let pool = Arc::new(pool);
    pools.insert(key, Arc::clone(&pool));
    Ok(pool)
}
