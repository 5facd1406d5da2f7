//! Predictions of a run for new rows, as arrays.

use std::sync::{Arc, Mutex, PoisonError};

use numpy::PyArray1;
use pyo3::prelude::*;
use reprior::model::dataset::{InputKind, InputValues};
use reprior_run::{DataDescription, Failure, PredictedRows, PredictionRequest};

use crate::failure::raise;
use crate::interruptible::{Abandoned, interruptible};
use crate::table::{PyData, given, numbers};

type Array<'py> = Bound<'py, PyArray1<f64>>;

/// A run that predicts, for one thread at a time.
#[pyclass(frozen, module = "reprior._lib")]
pub struct Predictor {
    own: Arc<Mutex<reprior_run::Predictor>>,
    /// What the run's data are like: beside the lock, so that nobody who asks waits for who computes.
    description: Arc<DataDescription>,
    likelihood: (String, Option<f64>),
}

impl Predictor {
    pub fn new(predictor: reprior_run::Predictor) -> Self {
        let model = &predictor.settings().model;
        let likelihood = model.likelihood();
        let degrees_of_freedom = likelihood
            .has_degrees_of_freedom()
            .then(|| model.degrees_of_freedom());
        Self {
            description: Arc::new(predictor.description().clone()),
            likelihood: (likelihood.to_string(), degrees_of_freedom),
            own: Arc::new(Mutex::new(predictor)),
        }
    }

    /// What is computed with it, without Python's lock: other threads of Python go on, and may wait here.
    fn compute<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&reprior_run::Predictor, &Abandoned) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        let own = Arc::clone(&self.own);
        interruptible(py, move |abandoned| {
            let own = own.lock().unwrap_or_else(PoisonError::into_inner);
            abandoned.check()?;
            work(&own, abandoned)
        })
    }

    /// Rows as the run takes them.
    fn inputs(&self, py: Python<'_>, data: PyData<'_>) -> PyResult<InputValues> {
        let given = given(py, data)?;
        let description = Arc::clone(&self.description);
        interruptible(py, move |_| Ok(description.given_inputs(&given)?.values))
    }

    /// What `each` collects from the predictions for some rows, one block of rows after another.
    fn collect<T: Default + Send + 'static>(
        &self,
        py: Python<'_>,
        data: PyData<'_>,
        without_noise: bool,
        mut each: impl FnMut(&mut T, &PredictedRows) -> Result<(), Failure> + Send + 'static,
    ) -> PyResult<T> {
        let inputs = self.inputs(py, data)?;
        let request = PredictionRequest {
            without_noise,
            detect: None,
        };
        self.compute(py, move |own, abandoned| {
            let mut all = T::default();
            own.predict(&inputs, None, request, &mut |rows: &PredictedRows| {
                abandoned.check()?;
                each(&mut all, rows)
            })?;
            Ok(all)
        })
    }

    fn outputs(&self) -> usize {
        self.description.output_names.len()
    }
}

#[pymethods]
impl Predictor {
    /// Names of outputs or classes.
    fn output_names(&self) -> Vec<String> {
        self.description.output_names.clone()
    }

    /// Whether targets are classes.
    fn is_classification(&self) -> bool {
        self.description.is_classification
    }

    /// Height, width and channels of the images that it takes; none of tables.
    fn image(&self) -> Option<[usize; 3]> {
        match self.description.kind {
            InputKind::Table => None,
            InputKind::Image {
                height,
                width,
                channels,
            } => Some([height, width, channels]),
        }
    }

    /// Names of the columns that are used, in the order of the training table.
    fn columns(&self) -> Vec<String> {
        match &self.description.encoding {
            Some(encoding) => encoding.used().map(|own| own.column.clone()).collect(),
            None => self.description.column_names.clone(),
        }
    }

    /// The name of the likelihood, and the degrees of freedom that it may have.
    fn likelihood(&self) -> (String, Option<f64>) {
        self.likelihood.clone()
    }

    /// Means and standard deviations, rows x outputs.
    fn moments<'py>(
        &self,
        py: Python<'py>,
        data: PyData<'py>,
        without_noise: bool,
    ) -> PyResult<(Array<'py>, Array<'py>)> {
        type Moments = (Vec<f64>, Vec<f64>);
        let (means, sds) = self.collect(py, data, without_noise, |all: &mut Moments, rows| {
            let (means, sds) = rows.all_moments()?;
            all.0.extend(means);
            all.1.extend(sds);
            Ok(())
        })?;
        Ok((PyArray1::from_vec(py, means), PyArray1::from_vec(py, sds)))
    }

    /// Quantiles at these probabilities, rows x outputs x probabilities.
    fn quantiles<'py>(
        &self,
        py: Python<'py>,
        data: PyData<'py>,
        probabilities: Vec<f64>,
        without_noise: bool,
    ) -> PyResult<Array<'py>> {
        let all = self.collect(py, data, without_noise, move |all: &mut Vec<f64>, rows| {
            all.extend(rows.all_quantiles(&probabilities)?);
            Ok(())
        })?;
        Ok(PyArray1::from_vec(py, all))
    }

    /// Logarithms of the predictive densities of true targets, one for each row.
    fn log_densities<'py>(
        &self,
        py: Python<'py>,
        data: PyData<'py>,
        truth: &Bound<'py, PyAny>,
    ) -> PyResult<Array<'py>> {
        let truth = numbers(truth)?;
        let (outputs, given) = (self.outputs(), truth.len());
        let all = self.collect(py, data, false, move |all: &mut Vec<f64>, rows| {
            let at = all.len() * outputs;
            let own = truth.get(at..at + rows.len() * outputs).ok_or_else(|| {
                Failure::request("there are fewer true targets than rows: give one for each")
            })?;
            all.extend(rows.log_densities(own)?);
            Ok(())
        })?;
        if all.len() * outputs != given {
            let message = "there are more true targets than rows: give one for each";
            return Err(raise(Failure::request(message)));
        }
        Ok(PyArray1::from_vec(py, all))
    }

    /// Logarithms of class probabilities, rows x classes.
    fn log_probabilities<'py>(&self, py: Python<'py>, data: PyData<'py>) -> PyResult<Array<'py>> {
        let all = self.collect(py, data, false, |all: &mut Vec<f64>, rows| {
            all.extend(rows.log_probabilities());
            Ok(())
        })?;
        Ok(PyArray1::from_vec(py, all))
    }

    /// Functions of all draws for these rows together, squared scales of the noise (both draws x rows x outputs), and of a closed form the
    /// covariance of the function (outputs x rows x rows); with the number of draws.
    #[allow(clippy::type_complexity)]
    fn joint<'py>(
        &self,
        py: Python<'py>,
        data: PyData<'py>,
    ) -> PyResult<(usize, Array<'py>, Array<'py>, Option<Array<'py>>)> {
        let inputs = self.inputs(py, data)?;
        let found = self.compute(py, move |own, _| own.joint(&inputs))?;
        Ok((
            found.draws,
            PyArray1::from_vec(py, found.functions),
            PyArray1::from_vec(py, found.noise),
            found.covariance.map(|all| PyArray1::from_vec(py, all)),
        ))
    }
}
