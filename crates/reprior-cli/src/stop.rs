//! Ctrl-C stops cleanly.

use std::sync::atomic::{AtomicBool, Ordering};

use reprior_run::Failure;

/// Set by Ctrl-C.
pub static STOP: AtomicBool = AtomicBool::new(false);

/// Ctrl-C sets [`STOP`] from now on; a second one ends at once: files are whole at any moment.
///
/// # Errors
/// A system that does not let it be caught.
pub fn catch_ctrl_c() -> Result<&'static AtomicBool, Failure> {
    let handler = || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(handler)
        .map_err(|error| Failure::run(format!("Ctrl-C cannot be caught: {error}")))?;
    Ok(&STOP)
}
