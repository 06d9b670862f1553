//! The one way from Python into a kernel.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use chicle_core::Result;
use chicle_core::parallel::{self, Cancel};
use pyo3::prelude::*;

use crate::errors::{Names, defect};

/// Time between two checks for Ctrl-C.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

/// Run a kernel in a pool of `threads` threads (all there are, if `None`), detached from the interpreter.
///
/// The calling thread checks for signals meanwhile: on Ctrl-C it cancels the kernel and raises once it has stopped.
pub fn enter<T: Send>(
    py: Python<'_>,
    threads: Option<NonZero<usize>>,
    names: &Names,
    kernel: impl FnOnce(&Cancel) -> Result<T> + Send,
) -> PyResult<T> {
    let pool = parallel::pool(threads.unwrap_or_else(parallel::available)).map_err(|error| names.explain(error))?;
    let cancel = Cancel::default();
    let (outcome, signal) = py.detach(|| {
        let (sender, receiver) = channel();
        pool.in_place_scope(|scope| {
            scope.spawn(|_| {
                let outcome = catch_unwind(AssertUnwindSafe(|| kernel(&cancel)));
                // The receiver waits below for as long as it takes.
                let _ = sender.send(outcome);
            });
            let mut signal = None;
            loop {
                match receiver.recv_timeout(SIGNAL_CHECK) {
                    Ok(outcome) => return (Some(outcome), signal),
                    Err(RecvTimeoutError::Timeout) => {
                        #[expect(clippy::redundant_closure_for_method_calls, reason = "its lifetime must stay general")]
                        let checked = Python::attach(|py| py.check_signals());
                        if let Err(raised) = checked {
                            cancel.cancel();
                            signal = Some(raised);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => return (None, signal),
                }
            }
        })
    });
    match (outcome, signal) {
        (_, Some(raised)) => Err(raised),
        (Some(Ok(outcome)), None) => outcome.map_err(|error| names.explain(error)),
        _ => Err(defect()),
    }
}
