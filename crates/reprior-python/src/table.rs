//! Data from Python: a table, whose columns are arrays of numbers or lists of true, false and text; or an archive of arrays, as its bytes.

use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use reprior_io::data::{Given, GivenColumn, GivenValues};
use reprior_run::Failure;

use crate::interruptible::interruptible;

/// A name with what the column holds: `numbers` (float64), `booleans` or `texts` (lists with None where a cell is missing).
pub type PyColumn<'py> = (String, String, Bound<'py, PyAny>);

/// What Python gives.
#[derive(FromPyObject)]
pub enum PyData<'py> {
    /// An `.npz` archive.
    Arrays(Bound<'py, PyBytes>),
    /// Columns of a table.
    Table(Vec<PyColumn<'py>>),
}

/// The data that these are. Python's lock is let go of while columns become a table.
///
/// # Errors
/// A kind of column that is none of these; columns that make no table.
pub fn given(py: Python<'_>, data: PyData<'_>) -> PyResult<Given> {
    let columns = match data {
        PyData::Arrays(bytes) => return Ok(Given::arrays(bytes.as_bytes().to_vec())),
        PyData::Table(columns) => columns,
    };
    let columns: Vec<GivenColumn> = columns
        .into_iter()
        .map(|(name, kind, values)| {
            let values = match kind.as_str() {
                "numbers" => GivenValues::Numbers(numbers(&values)?),
                "booleans" => GivenValues::Booleans(values.extract()?),
                "texts" => GivenValues::Texts(values.extract()?),
                other => {
                    let message = format!("a column holds numbers, booleans or texts, not {other}");
                    return Err(PyTypeError::new_err(message));
                }
            };
            Ok(GivenColumn { name, values })
        })
        .collect::<PyResult<_>>()?;
    interruptible(py, move |_| {
        Given::table(&columns).map_err(Failure::request)
    })
}

/// The numbers of an array of float64, whatever its strides.
///
/// # Errors
/// Another object.
pub fn numbers(values: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let array: PyReadonlyArray1<'_, f64> = values.extract()?;
    let mut numbers = Vec::with_capacity(array.len());
    numbers.extend(array.as_array().iter());
    Ok(numbers)
}
