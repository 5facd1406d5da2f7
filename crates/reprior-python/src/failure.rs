//! Failures as exceptions: a wrong request is a ValueError, a run that failed a RunError.

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use reprior_run::Failure;

create_exception!(
    reprior,
    RunError,
    PyRuntimeError,
    "A run that failed or was stopped; what was drawn before is kept."
);

/// The exception of a failure, with the program's own words.
pub fn raise(failure: Failure) -> PyErr {
    match failure {
        Failure::Request(text) => PyValueError::new_err(text),
        Failure::Run(text) => RunError::new_err(text),
        Failure::Stopped => RunError::new_err(Failure::Stopped.to_string()),
    }
}
