//! What is printed: text to stdout and stderr, and whether all of it was.

use std::io::{self, ErrorKind, Write};
use std::sync::{Mutex, PoisonError};

/// The first failure to write to stdout.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Takes note of the outcome of writing to stdout.
pub fn note(written: io::Result<()>) {
    if let Err(error) = written {
        let mut lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
        lost.get_or_insert(error);
    }
}

/// Writes a line to stdout. A failure is noted, and [`finish_stdout`] tells of it.
pub fn to_stdout(text: &str) {
    note(writeln!(io::stdout().lock(), "{text}"));
}

/// Writes bytes to stdout, as [`to_stdout`] does a line.
pub fn bytes_to_stdout(bytes: &[u8]) {
    note(io::stdout().lock().write_all(bytes));
}

/// Writes out what is still held back, and says why stdout has not got everything, if it has not. A closed pipe is no failure:
/// its reader has seen enough.
///
/// # Errors
/// What the system said when it refused the first time.
pub fn finish_stdout() -> io::Result<()> {
    note(io::stdout().lock().flush());
    let lost = LOST.lock().unwrap_or_else(PoisonError::into_inner).take();
    match lost {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Writes a line to stderr.
pub fn to_stderr(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
