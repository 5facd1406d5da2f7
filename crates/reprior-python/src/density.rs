//! A log-density of one's own, as a Python function, sampled by the library's chains: threads take turns at Python's lock.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use numpy::{PyArray1, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use reprior::chain::{Chain, Collect, Control, RunOutcome, Schedule, run};
use reprior::diagnostics::{Draws, Estimator};
use reprior::posterior::{EvaluationError, Target};
use reprior::sampler::{Method, SamplerSettings};
use reprior_run::Failure;

use crate::failure::raise;
use crate::run::wait_until;
use crate::work::{CHECKPOINT_EVERY, Work};

/// The density of the function's values against the standard normal: ℓ(z) = log p(z) + ½‖z‖², or the function itself.
struct PythonTarget {
    function: Arc<Py<PyAny>>,
    dimension: usize,
    /// Whether the function's values are against the standard normal already.
    is_relative: bool,
    /// What the function raised.
    raised: Arc<Mutex<Option<PyErr>>>,
    spare: Vec<f64>,
}

impl PythonTarget {
    fn call(&self, z: &[f64], gradient: &mut [f64]) -> PyResult<f64> {
        Python::attach(|py| {
            let found = self.function.call1(py, (PyArray1::from_slice(py, z),))?;
            let (value, own): (f64, Bound<'_, PyAny>) = found.extract(py)?;
            let numpy = py.import("numpy")?;
            let own = numpy.call_method1("asarray", (own, "float64"))?;
            let own: PyReadonlyArray1<'_, f64> = own.call_method0("ravel")?.extract()?;
            if own.len() != self.dimension {
                return Err(raise(Failure::Request(format!(
                    "the gradient has {} numbers and the density {} dimensions: they must be as many",
                    own.len(),
                    self.dimension
                ))));
            }
            gradient
                .iter_mut()
                .zip(own.as_array())
                .for_each(|(to, from)| *to = *from);
            Ok(value)
        })
    }
}

impl Target for PythonTarget {
    type Real = f64;

    fn dim(&self) -> usize {
        self.dimension
    }

    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        let mut spare = std::mem::take(&mut self.spare);
        let value = self.log_ratio_and_gradient(z, &mut spare);
        self.spare = spare;
        value
    }

    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        let value = self.call(z, gradient).map_err(|error| {
            let message = format!("the density's function raised: {error}");
            let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
            raised.get_or_insert(error);
            EvaluationError::Fatal(message)
        })?;
        if self.is_relative {
            return Ok(value);
        }
        let squares: f64 = z.iter().map(|z| z * z).sum();
        gradient.iter_mut().zip(z).for_each(|(to, z)| *to += z);
        Ok(value + 0.5 * squares)
    }
}

/// What chains have drawn.
#[derive(Default)]
struct Drawn {
    /// chains x draws x dimensions.
    positions: Vec<f64>,
    /// Of each chain.
    draws: Vec<usize>,
    acceptance_rate: Vec<f64>,
    step_size: Vec<Option<f64>>,
    divergences: Vec<u64>,
    gradients: u64,
}

/// A run of a density of one's own.
#[pyclass(frozen, module = "reprior._lib")]
pub struct DensityRun {
    work: Arc<Work>,
    drawn: Arc<Mutex<Drawn>>,
    raised: Arc<Mutex<Option<PyErr>>>,
    dimension: usize,
}

#[pymethods]
impl DensityRun {
    /// Starts chains for `function`, which gives the logarithm of a density and its gradient at an array.
    #[staticmethod]
    #[pyo3(signature = (function, dimension, is_relative, method, step_size, chains, warmup, draws, thin, seed, threads))]
    #[allow(clippy::too_many_arguments)]
    fn start(
        py: Python<'_>,
        function: Py<PyAny>,
        dimension: usize,
        is_relative: bool,
        method: &str,
        step_size: Option<f64>,
        chains: usize,
        warmup: Option<u64>,
        draws: Option<u64>,
        thin: Option<u64>,
        seed: u64,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let method: Method = method
            .parse()
            .map_err(|error| raise(Failure::request(error)))?;
        let settings = SamplerSettings {
            method,
            step_size,
            ..SamplerSettings::default()
        };
        settings
            .check()
            .map_err(|error| raise(Failure::request(error)))?;
        let [own_warmup, own_draws, own_thin] = method.default_lengths();
        let schedule = Schedule {
            chains,
            warmup: warmup.unwrap_or(own_warmup),
            draws: draws.unwrap_or(own_draws),
            thin: thin.unwrap_or(own_thin),
            seed,
        };
        schedule
            .check()
            .map_err(|error| raise(Failure::request(error)))?;
        let work = Arc::new(Work::default());
        let drawn = Arc::new(Mutex::new(Drawn::default()));
        let raised = Arc::new(Mutex::new(None));
        let function = Arc::new(function);
        let (to, errors) = (Arc::clone(&drawn), Arc::clone(&raised));
        let target = move || PythonTarget {
            function: Arc::clone(&function),
            dimension,
            is_relative,
            raised: Arc::clone(&errors),
            spare: vec![0.0; dimension],
        };
        let started = py.detach(|| {
            work.start(threads, CHECKPOINT_EVERY, None, move |work, options| {
                let chains = (0..schedule.chains)
                    .map(|index| {
                        let chain = Chain::start(index, schedule, &settings, target());
                        Ok((chain.map_err(Failure::run)?, Collect::default()))
                    })
                    .collect::<Result<Vec<_>, Failure>>()?;
                options.watcher.begin(&vec![0; schedule.chains], 0)?;
                let cores = std::thread::available_parallelism().map_or(1, usize::from);
                let control = Control {
                    threads: options.threads.unwrap_or(cores),
                    checkpoint_every: Duration::from_secs(3600),
                    stop: &work.stop,
                };
                let (chains, outcome) = run(chains, control, &|at| options.watcher.update(at));
                let mut drawn = to.lock().unwrap_or_else(PoisonError::into_inner);
                for (chain, collected) in &chains {
                    let sampling = &chain.snapshot().sampling;
                    drawn.draws.push(collected.positions.len());
                    drawn.positions.extend(collected.positions.iter().flatten());
                    drawn.acceptance_rate.push(sampling.acceptance_rate());
                    drawn.step_size.push(sampling.step_size);
                    drawn.divergences.push(sampling.divergences);
                    let own = collected.statistics.iter();
                    drawn.gradients += own.map(|one| one.n_gradients).sum::<u64>();
                }
                match outcome {
                    Ok(RunOutcome::Complete) => Ok(()),
                    Ok(RunOutcome::Stopped) => Err(Failure::Stopped),
                    Err(error) => Err(Failure::run(error)),
                }
            })
        });
        started.map_err(raise)?;
        Ok(Self {
            work,
            drawn,
            raised,
            dimension,
        })
    }

    /// Waits for its end, or until so many seconds are over; whether it has ended. Raises what signals raise.
    #[pyo3(signature = (seconds=None))]
    fn wait(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<bool> {
        wait_until(&self.work, py, seconds, |state| state.end.is_some())
    }

    /// Asks it to stop.
    fn stop(&self) {
        self.work.stop();
    }

    /// Whether it has ended.
    fn is_finished(&self) -> bool {
        self.work.state().end.is_some()
    }

    /// Raises what the function raised, or what else it ended with, if it has not come to its end well.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = &*raised {
            return Err(error.clone_ref(py));
        }
        match &self.work.state().end {
            Some(Err(Failure::Run(text))) => Err(raise(Failure::Run(text.clone()))),
            _ => Ok(()),
        }
    }

    /// Draws that every chain has, and all of them: chains x draws x dimensions.
    fn positions<'py>(&self, py: Python<'py>) -> (usize, Bound<'py, PyArray1<f64>>) {
        let drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let count = drawn.draws.iter().copied().min().unwrap_or(0);
        let (mut all, mut start) = (Vec::new(), 0);
        for draws in &drawn.draws {
            all.extend(&drawn.positions[start..start + count * self.dimension]);
            start += draws * self.dimension;
        }
        (count, PyArray1::from_vec(py, all))
    }

    /// Of each chain after warm-up: acceptance rates, step sizes, divergences; and gradients of all.
    #[allow(clippy::type_complexity)]
    fn statistics(&self) -> (Vec<f64>, Vec<Option<f64>>, Vec<u64>, u64) {
        let drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        (
            drawn.acceptance_rate.clone(),
            drawn.step_size.clone(),
            drawn.divergences.clone(),
            drawn.gradients,
        )
    }
}

/// Mean, standard deviation, error of the mean, effective draws (bulk, tail) and R-hat of one variable: chains one after another.
#[pyfunction]
pub fn diagnose(values: PyReadonlyArray1<'_, f64>, chains: usize) -> PyResult<[f64; 6]> {
    let values: Vec<f64> = values.as_array().iter().copied().collect();
    let draws = Draws::new(&values, chains).map_err(|error| raise(Failure::request(error)))?;
    let found = Estimator::new().summary(draws);
    Ok([
        found.mean,
        found.sd,
        found.mcse_mean,
        found.ess_bulk,
        found.ess_tail,
        found.rhat,
    ])
}
