//! Work that Ctrl-C interrupts: on a thread of its own, while Python's thread looks for signals.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use reprior_run::Failure;

use crate::failure::raise;

/// Between two looks at whether Python has a signal to handle.
pub const SLICE: Duration = Duration::from_millis(50);

/// Whether nobody waits for the work any more.
pub struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    /// # Errors
    /// [`Failure::Stopped`] if so: for the work to end at its next good place.
    pub fn check(&self) -> Result<(), Failure> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(Failure::Stopped),
            false => Ok(()),
        }
    }
}

/// What `work` makes, without Python's lock.
///
/// # Errors
/// Its own; what a signal raises, at once: the work is then left to end by itself.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Abandoned) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let is_abandoned = Arc::new(AtomicBool::new(false));
    let abandoned = Abandoned(Arc::clone(&is_abandoned));
    let (sender, mut receiver) = channel();
    let worker = thread::Builder::new().spawn(move || {
        // nobody may be there to receive it
        let _ = sender.send(work(&abandoned));
    });
    let worker = worker.map_err(|error| raise(Failure::run(error)))?;
    loop {
        let made = &mut receiver;
        match py.detach(move || made.recv_timeout(SLICE)) {
            Ok(made) => return made.map_err(raise),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = py.check_signals() {
                    is_abandoned.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            Err(RecvTimeoutError::Disconnected) => match py.detach(|| worker.join()) {
                Err(panic) => resume_unwind(panic),
                Ok(()) => return Err(raise(Failure::run("the work ended without a result"))),
            },
        }
    }
}
