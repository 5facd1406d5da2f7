//! Rows of a posterior whose other rows are in other processes: their parts of its sums.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use reprior::model::dataset::Targets;
use reprior::posterior::{Shard as OfPrecision, Total};
use reprior_run::{
    Failure, Precision, PredictedRows, Settings, ShardPositions, ShardRows, Stored,
    predict_by_shards, shard,
};

use crate::failure::raise;
use crate::interruptible::interruptible;

/// In one of the two precisions.
enum Inner {
    Single(OfPrecision<f32>),
    Double(OfPrecision<f64>),
}

/// Work with a shard of either precision.
macro_rules! with {
    ($inner:expr, $shard:ident => $work:expr) => {
        match $inner {
            Inner::Single($shard) => $work,
            Inner::Double($shard) => $work,
        }
    };
}

/// Some rows, and their parts of the sums that the logarithm of a posterior against its prior is made of.
#[pyclass(frozen, module = "reprior._lib")]
pub struct Shard {
    inner: Mutex<Inner>,
    dimension: usize,
    moment_count: usize,
    rows: usize,
}

/// Targets of rows (× outputs), or labels where classes have names.
fn coded(values: Vec<f64>, outputs: usize, classes: Option<Vec<String>>) -> Targets {
    match classes {
        None => Targets::Real {
            names: (0..outputs).map(|at| format!("y{at}")).collect(),
            values,
        },
        Some(names) => Targets::Classes {
            labels: values.iter().map(|&label| label as u32).collect(),
            names,
        },
    }
}

fn position<R: Stored>(z: &[f64]) -> Vec<R> {
    z.iter().map(|&z| R::from_f64(z)).collect()
}

fn moments<R: Stored>(shard: &mut OfPrecision<R>, z: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; shard.moment_count()];
    shard.moments(&position(z), true, &mut out);
    out
}

/// NaN where the density cannot be evaluated, which rejects the position.
fn value_and_gradient<R: Stored>(
    shard: &mut OfPrecision<R>,
    z: &[f64],
    total: Total<'_>,
) -> Vec<f64> {
    let mut out = vec![0.0; 1 + shard.dim()];
    if shard
        .value_and_gradient(&position(z), total, &mut out)
        .is_err()
    {
        out.fill(f64::NAN);
    }
    out
}

fn check(what: &str, found: usize, expected: usize) -> PyResult<()> {
    match found == expected {
        true => Ok(()),
        false => Err(raise(Failure::Request(format!(
            "there are {found} {what} and the shard has {expected}"
        )))),
    }
}

impl Shard {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Shard {
    /// Rows (n × columns) with their targets (n × outputs; n × 1 labels where classes have names), as shard number `number`.
    #[new]
    #[pyo3(signature = (flags, inputs, targets, classes, number))]
    fn new(
        py: Python<'_>,
        flags: Vec<String>,
        inputs: PyReadonlyArray2<'_, f64>,
        targets: PyReadonlyArray2<'_, f64>,
        classes: Option<Vec<String>>,
        number: usize,
    ) -> PyResult<Self> {
        let settings: Settings = reprior_cli::settings(&flags).map_err(raise)?;
        let [rows, columns] = [inputs.shape()[0], inputs.shape()[1]];
        check("targets", targets.shape()[0], rows)?;
        let values: Vec<f64> = targets.as_array().iter().copied().collect();
        let targets = coded(values, targets.shape()[1], classes);
        let inputs = inputs.as_array().iter().copied().collect();
        let rows = ShardRows {
            inputs,
            columns,
            targets,
        };
        py.detach(|| {
            let inner = match settings.sampler.precision {
                Precision::F64 => Inner::Double(shard(&settings, rows, number)?),
                Precision::Auto | Precision::F32 => Inner::Single(shard(&settings, rows, number)?),
            };
            let sizes = with!(&inner, shard => (shard.dim(), shard.moment_count(), shard.rows()));
            Ok(Self {
                inner: Mutex::new(inner),
                dimension: sizes.0,
                moment_count: sizes.1,
                rows: sizes.2,
            })
        })
        .map_err(raise)
    }

    /// Coordinates of a position.
    #[getter]
    fn dim(&self) -> usize {
        self.dimension
    }

    /// Numbers of the first round; 0 where there is none.
    #[getter]
    fn moment_count(&self) -> usize {
        self.moment_count
    }

    /// Rows of this shard.
    #[getter]
    fn rows(&self) -> usize {
        self.rows
    }

    /// The first round at a position.
    fn moments<'py>(
        &self,
        py: Python<'py>,
        z: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        check("coordinates", z.len(), self.dimension)?;
        let z = z.as_array().to_vec();
        let found = py.detach(|| with!(&mut *self.lock(), shard => moments(shard, &z)));
        Ok(PyArray1::from_vec(py, found))
    }

    /// The second round: the part of the logarithm, then that of its gradient. `moments` are summed over shards of `rows` rows in all.
    fn value_and_gradient<'py>(
        &self,
        py: Python<'py>,
        z: PyReadonlyArray1<'_, f64>,
        moments: PyReadonlyArray1<'_, f64>,
        rows: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        check("coordinates", z.len(), self.dimension)?;
        check("moments", moments.len(), self.moment_count)?;
        let (z, moments) = (z.as_array().to_vec(), moments.as_array().to_vec());
        let found = py.detach(|| {
            let total = Total {
                moments: &moments,
                rows,
            };
            with!(&mut *self.lock(), shard => value_and_gradient(shard, &z, total))
        });
        Ok(PyArray1::from_vec(py, found))
    }
}

type Array<'py> = Bound<'py, PyArray1<f64>>;

/// What positions of a posterior whose rows are in shards predict at new inputs.
#[pyclass(frozen, module = "reprior._lib")]
pub struct ShardPredictor {
    settings: Settings,
    inputs: Vec<f64>,
    /// A row of no meaning, which says what rows are.
    one: ShardRows,
    with_noise: bool,
    found: Mutex<Option<PredictedRows>>,
}

impl ShardPredictor {
    /// What is read off the predictions; nothing of none.
    fn read<T: Default>(
        &self,
        read: impl FnOnce(&PredictedRows) -> Result<T, Failure>,
    ) -> PyResult<T> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let read = found.as_ref().map(read).transpose();
        read.map(Option::unwrap_or_default).map_err(raise)
    }
}

#[pymethods]
impl ShardPredictor {
    /// For inputs (n* × columns) of a posterior of so many outputs, or of classes.
    #[new]
    #[pyo3(signature = (flags, inputs, outputs, classes, with_noise))]
    fn new(
        flags: Vec<String>,
        inputs: PyReadonlyArray2<'_, f64>,
        outputs: usize,
        classes: Option<Vec<String>>,
        with_noise: bool,
    ) -> PyResult<Self> {
        let columns = inputs.shape()[1];
        Ok(Self {
            settings: reprior_cli::settings(&flags).map_err(raise)?,
            inputs: inputs.as_array().iter().copied().collect(),
            one: ShardRows {
                inputs: vec![0.0; columns],
                columns,
                targets: coded(vec![0.0; outputs], outputs, classes),
            },
            with_noise,
            found: Mutex::new(None),
        })
    }

    /// Adds positions (× coordinates) with the moments of each of them over all shards (× moments), of `rows` rows in all; `first` is the number of the
    /// first of them.
    fn add(
        &self,
        py: Python<'_>,
        positions: PyReadonlyArray2<'_, f64>,
        moments: PyReadonlyArray2<'_, f64>,
        rows: usize,
        first: u64,
    ) -> PyResult<()> {
        let count = positions.shape()[0];
        check("moments", moments.shape()[0], count)?;
        let [positions, moments] =
            [positions, moments].map(|all| all.as_array().iter().copied().collect::<Vec<f64>>());
        let (settings, one, inputs) =
            (self.settings.clone(), self.one.clone(), self.inputs.clone());
        let with_noise = self.with_noise;
        let more = interruptible(py, move |_| {
            let at = ShardPositions {
                count,
                positions: &positions,
                moments: &moments,
                rows,
                first,
            };
            match settings.sampler.precision {
                Precision::F64 => predict_by_shards::<f64>(&settings, one, &inputs, at, with_noise),
                Precision::Auto | Precision::F32 => {
                    predict_by_shards::<f32>(&settings, one, &inputs, at, with_noise)
                }
            }
        })?;
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *found {
            Some(found) => found.append(more),
            none => *none = Some(more),
        }
        Ok(())
    }

    /// Means and standard deviations, rows x outputs.
    fn moments<'py>(&self, py: Python<'py>) -> PyResult<(Array<'py>, Array<'py>)> {
        let (means, sds) = self.read(PredictedRows::all_moments)?;
        Ok((PyArray1::from_vec(py, means), PyArray1::from_vec(py, sds)))
    }

    /// Quantiles at these probabilities, rows x outputs x probabilities.
    fn quantiles<'py>(&self, py: Python<'py>, probabilities: Vec<f64>) -> PyResult<Array<'py>> {
        let all = self.read(|rows| rows.all_quantiles(&probabilities))?;
        Ok(PyArray1::from_vec(py, all))
    }

    /// Class probabilities, rows x classes.
    fn probabilities<'py>(&self, py: Python<'py>) -> PyResult<Array<'py>> {
        let all = self.read(|rows| Ok(rows.probabilities()))?;
        Ok(PyArray1::from_vec(py, all))
    }
}
