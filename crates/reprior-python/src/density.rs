//! A log-density of one's own, as a Python function, sampled by the library's chains: threads take turns at Python's lock.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use reprior::chain::driver::ChainDriver;
use reprior::chain::snapshot::Snapshot;
use reprior::chain::{
    Chain, Control, DriverError, Observer, Progress, RunOutcome, Schedule, Statistics, run,
};
use reprior::diagnostics::{Draws, Estimator};
use reprior::posterior::{EvaluationError, Target};
use reprior::sampler::{Method, SamplerSettings, State};
use reprior_io::run::RunError;
use reprior_run::Failure;

use crate::density_folder::{DensityFolder, DensityPlan, Record, read, statistics};
use crate::failure::raise;
use crate::run::{progress, wait_until};
use crate::work::{Work, checkpoint_every};

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
            let found = self
                .function
                .bind(py)
                .call1((PyArray1::from_slice(py, z),))?;
            let pair = found.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>();
            let (value, own) = pair.map_err(|_| {
                let kind = found.get_type();
                PyTypeError::new_err(format!(
                    "logp_and_grad returned a {}: it must return a pair, the logarithm of the density and its gradient",
                    kind.name().map_or_else(|_| "thing".to_owned(), |name| name.to_string())
                ))
            })?;
            // also an array of one number, as JAX and NumPy have them
            let value: f64 = value.extract()?;
            // one that came over a network may begin at any byte
            let plain = own.extract::<PyReadonlyArray1<'_, f64>>().ok();
            let plain = plain.filter(|own| own.data().is_aligned());
            let own: PyReadonlyArray1<'_, f64> = match plain {
                Some(own) => own,
                None => {
                    let numpy = py.import("numpy")?;
                    let own = numpy.call_method1("array", (own, "float64"))?;
                    own.call_method0("ravel")?.extract()?
                }
            };
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

/// What a chain did for the draws that it has: without what it did since.
fn recorded(snapshot: &Snapshot<f64>) -> Statistics {
    let (all, since) = (&snapshot.sampling, &snapshot.since_record);
    Statistics {
        transitions: all.transitions.saturating_sub(since.transitions),
        acceptance_sum: all.acceptance_sum - since.acceptance_sum,
        divergences: all.divergences.saturating_sub(since.divergences),
        n_gradients: all.n_gradients.saturating_sub(since.n_gradients),
        ..all.clone()
    }
}

/// Time that a chain goes on before it lets go of what Python keeps for its thread.
const TURN: Duration = Duration::from_millis(5);

/// A chain of a density of one's own. What Python keeps for a thread is made anew with each call out of a thread that it does not know, which takes longer
/// than most functions do; so a turn of many transitions is one such call.
struct DensityChain {
    own: (Chain<PythonTarget>, Keep),
}

impl ChainDriver for DensityChain {
    type Error = RunError;

    fn advance(&mut self, halted: &(dyn Fn() -> bool + Sync)) -> Result<(), DriverError<RunError>> {
        let own = &mut self.own;
        Python::attach(|py| {
            py.detach(|| {
                let start = Instant::now();
                own.advance(halted)?;
                while start.elapsed() < TURN && !own.progress().is_done() && !halted() {
                    own.advance(halted)?;
                }
                Ok(())
            })
        })
    }

    fn checkpoint(&mut self) -> Result<(), DriverError<RunError>> {
        self.own.checkpoint()
    }

    fn progress(&self) -> Progress {
        self.own.progress()
    }
}

/// What one chain has drawn so far, after warm-up.
#[derive(Clone, Default)]
struct Drawn {
    /// draws x dimensions; of a run in a folder they are there.
    positions: Vec<f64>,
    statistics: Statistics,
}

/// Keeps draws where they can be seen before the chain has ended - a function may take long to return, and is not waited for when it is stopped - or writes
/// them into a folder.
struct Keep {
    drawn: Arc<Mutex<Drawn>>,
    record: Option<Record>,
}

impl Observer<PythonTarget> for Keep {
    type Error = RunError;

    fn warmup(&mut self, _: &Statistics, _: [f64; 2]) -> Result<(), RunError> {
        Ok(())
    }

    fn draw(
        &mut self,
        _: &mut PythonTarget,
        state: &State<f64>,
        statistics: &Statistics,
        log_density: [f64; 2],
        _: u64,
    ) -> Result<(), RunError> {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        drawn.statistics.merge(statistics);
        match &mut self.record {
            Some(record) => record.draw(state, statistics, log_density[1])?,
            None => drawn.positions.extend(&state.position),
        }
        Ok(())
    }

    fn checkpoint(&mut self, snapshot: &Snapshot<f64>) -> Result<(), RunError> {
        match &mut self.record {
            Some(record) => record.checkpoint(snapshot),
            None => Ok(()),
        }
    }
}

/// A run of a density of one's own.
#[pyclass(frozen, module = "reprior._lib")]
pub struct DensityRun {
    work: Arc<Work>,
    /// Of each chain.
    drawn: Vec<Arc<Mutex<Drawn>>>,
    raised: Arc<Mutex<Option<PyErr>>>,
    dimension: usize,
    out: Option<PathBuf>,
}

impl DensityRun {
    /// Something of what each chain has drawn so far.
    fn each<T>(&self, of: impl Fn(&Drawn) -> T) -> Vec<T> {
        let own = self.drawn.iter();
        own.map(|drawn| of(&drawn.lock().unwrap_or_else(PoisonError::into_inner)))
            .collect()
    }
}

/// Where a run is made, and how its folder says what was asked for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PythonPlace {
    out: Option<PathBuf>,
    overwrite: bool,
    or_resume: bool,
    checkpoint_seconds: Option<f64>,
    names: Vec<String>,
    config: String,
}

/// Settings of the sampler by name, of which each has its default.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PythonSettings {
    step_size: Option<f64>,
    target_acceptance: Option<f64>,
    energy_variance: Option<f64>,
    damping: Option<f64>,
    metropolis: bool,
    trajectory: Option<f64>,
    max_steps: Option<u32>,
    arrival: Option<u64>,
    replicas: usize,
}

#[pymethods]
impl DensityRun {
    /// Starts chains for `function`, which gives the logarithm of a density and its gradient at an array.
    #[staticmethod]
    #[pyo3(signature = (function, is_relative, method, settings, place, chains, warmup, draws, thin, seed, threads))]
    #[allow(clippy::too_many_arguments)]
    fn start(
        py: Python<'_>,
        function: Py<PyAny>,
        is_relative: bool,
        method: &str,
        settings: PythonSettings,
        place: PythonPlace,
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
            step_size: settings.step_size,
            target_acceptance: settings.target_acceptance,
            energy_variance: settings.energy_variance,
            damping: settings.damping,
            metropolis: settings.metropolis,
            trajectory: settings.trajectory,
            max_steps: settings.max_steps,
            arrival: settings.arrival,
            replicas: settings.replicas,
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
        let dimension = place.names.len();
        let lengths = [schedule.warmup, schedule.draws, schedule.thin];
        let plan = DensityPlan {
            config: format!(
                "{}warmup = {}\ndraws = {}\nthin = {}\n",
                place.config, lengths[0], lengths[1], lengths[2]
            ),
            names: place.names,
            chains: schedule.chains,
            draws: schedule.draws,
        };
        let every = checkpoint_every(place.checkpoint_seconds).map_err(raise)?;
        let work = Arc::new(Work::default());
        let drawn: Vec<Arc<Mutex<Drawn>>> = (0..schedule.chains).map(|_| Arc::default()).collect();
        let raised = Arc::new(Mutex::new(None));
        let function = Arc::new(function);
        let (to, errors) = (drawn.clone(), Arc::clone(&raised));
        let target = move || PythonTarget {
            function: Arc::clone(&function),
            dimension,
            is_relative,
            raised: Arc::clone(&errors),
            spare: vec![0.0; dimension],
        };
        let (out, overwrite, or_resume) = (place.out.clone(), place.overwrite, place.or_resume);
        let started = py.detach(|| {
            work.start(threads, every, None, false, move |work, options| {
                let folder = out
                    .map(|out| DensityFolder::open(&out, &plan, overwrite, or_resume))
                    .transpose()?;
                let begin = |(index, drawn): (usize, Arc<Mutex<Drawn>>)| {
                    let begun = folder.as_ref().map(|own| own.begin(index, dimension));
                    let (record, snapshot) = match begun.transpose()? {
                        Some(begun) => (Some(begun.record), begun.snapshot),
                        None => (None, None),
                    };
                    let chain = match snapshot {
                        Some(snapshot) => {
                            let mut own = drawn.lock().unwrap_or_else(PoisonError::into_inner);
                            own.statistics = recorded(&snapshot);
                            Chain::resume(index, schedule, &settings, target(), snapshot)
                        }
                        None => Chain::start(index, schedule, &settings, target()),
                    };
                    Ok(DensityChain {
                        own: (chain.map_err(Failure::run)?, Keep { drawn, record }),
                    })
                };
                let chains = to.into_iter().enumerate().map(begin);
                let chains = chains.collect::<Result<Vec<_>, Failure>>()?;
                let made: Vec<u64> = chains.iter().map(|own| own.progress().transition).collect();
                options.watcher.begin(&made, 0)?;
                let cores = std::thread::available_parallelism().map_or(1, usize::from);
                let control = Control {
                    threads: options.threads.unwrap_or(cores),
                    checkpoint_every: every,
                    stop: &work.stop,
                };
                let (_, outcome) = run(chains, control, &|at| options.watcher.update(at));
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
            out: place.out,
        })
    }

    /// Opens the folder of a run.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, chains: usize, dimension: usize) -> PyResult<Self> {
        let found = py.detach(|| statistics(&path, chains, dimension));
        let of = |statistics| {
            Arc::new(Mutex::new(Drawn {
                positions: Vec::new(),
                statistics,
            }))
        };
        let work = Work::default();
        work.change(|state| state.end = Some(Ok(())));
        Ok(Self {
            work: Arc::new(work),
            drawn: found.map_err(raise)?.into_iter().map(of).collect(),
            raised: Arc::default(),
            dimension,
            out: Some(path),
        })
    }

    /// How it gets on.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        progress(&self.work, py)
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
            Some(Err(Failure::Request(text))) => Err(raise(Failure::Request(text.clone()))),
            _ => Ok(()),
        }
    }

    /// Draws that every chain has, and all of them: chains x draws x dimensions.
    fn positions<'py>(&self, py: Python<'py>) -> PyResult<(usize, Bound<'py, PyArray1<f64>>)> {
        if let Some(out) = &self.out {
            let (count, values) = py.detach(|| read(out)).map_err(raise)?;
            return Ok((count, PyArray1::from_vec(py, values)));
        }
        let numbers = self.each(|drawn| drawn.positions.len());
        let count = numbers.into_iter().min().unwrap_or(0) / self.dimension;
        let own = self.each(|drawn| drawn.positions[..count * self.dimension].to_vec());
        Ok((count, PyArray1::from_vec(py, own.concat())))
    }

    /// Of each chain after warm-up: acceptance rates, step sizes, divergences; and gradients of all.
    #[allow(clippy::type_complexity)]
    fn statistics(&self) -> (Vec<f64>, Vec<Option<f64>>, Vec<u64>, u64) {
        let gradients = self.each(|drawn| drawn.statistics.n_gradients);
        (
            self.each(|drawn| drawn.statistics.acceptance_rate()),
            self.each(|drawn| drawn.statistics.step_size),
            self.each(|drawn| drawn.statistics.divergences),
            gradients.into_iter().sum(),
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
