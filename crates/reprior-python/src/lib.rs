//! The extension module `reprior._lib` of the Python package: tables in, runs made on threads of their own, predictions out as arrays.
//!
//! Everything is decided by [`reprior_run`]; what is convenient in Python is written in Python (`python/reprior`). Whatever computes lets go
//! of Python's lock. Files: `table` (columns in), `run` (a run that is made or open), `work` (the thread that makes it), `predictor`,
//! `density` (a log-density of one's own), `density_folder` (its run folder), `shard` (rows of a posterior
//! whose other rows are elsewhere, and predictions), `failure` (exceptions),
//! `interruptible` (work that Ctrl-C ends).

mod density;
mod density_folder;
mod failure;
mod interruptible;
mod predictor;
mod run;
mod shard;
mod table;
mod work;

use pyo3::prelude::*;

/// The program's command line: its exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| reprior_cli::run(arguments))
}

/// Names of all settings, as keywords.
#[pyfunction]
fn setting_names() -> Vec<String> {
    let names = reprior_cli::setting_names().into_iter();
    names.map(|name| name.replace('-', "_")).collect()
}

#[pymodule]
fn _lib(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("RunError", module.py().get_type::<failure::RunError>())?;
    module.add_class::<run::Run>()?;
    module.add_class::<predictor::Predictor>()?;
    module.add_class::<density::DensityRun>()?;
    module.add_class::<shard::Shard>()?;
    module.add_class::<shard::ShardPredictor>()?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(density::diagnose, module)?)?;
    module.add_function(wrap_pyfunction!(setting_names, module)?)
}
