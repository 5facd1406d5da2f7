//! A run: made on a thread of its own, opened, read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use reprior::chain::ProgressDetails;
use reprior_io::run::{Files, RunFolder, atomic};
use reprior_report::{RunPage, page};
use reprior_run::{
    DataDescription, Failure, MergeOptions, More, NewRun, Options, Recorded, RhatSoFar, Summary,
    earlier_run, merge, prepare, prepare_given, resume_in, summarise,
};

use crate::failure::{RunError, raise};
use crate::interruptible::{SLICE, interruptible};
use crate::predictor::Predictor;
use crate::table::{PyData, given};
use crate::work::{CHECKPOINT_EVERY, State, Work, checkpoint_every};

/// A run that is being made, or is open.
#[pyclass(frozen, module = "reprior._lib")]
pub struct Run {
    work: Arc<Work>,
}

/// Keeps the summary of a run that has come to its end, for who asks for it.
fn keep_summary(work: &Work, options: &Options<'_>, summary: &Summary) -> Result<(), Failure> {
    if options.is_part {
        return Ok(());
    }
    let text = serde_json::to_string(summary).map_err(Failure::run)?;
    work.change(|state| state.summary = Some(text));
    Ok(())
}

fn ended(files: Files, folder: Option<RunFolder>) -> Run {
    let work = Work::default();
    work.change(|state| {
        state.files = Some(files);
        state.folder = folder;
        state.end = Some(Ok(()));
    });
    Run {
        work: Arc::new(work),
    }
}

impl Run {
    fn files(&self) -> PyResult<Files> {
        let files = self.work.state().files.clone();
        files.ok_or_else(|| RunError::new_err("the run has not begun: wait for it first"))
    }

    /// What is read from the run's files while the lock is let go.
    fn with_files<T: Send + 'static>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&Files) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        let files = self.files()?;
        interruptible(py, move |_| read(&files))
    }
}

#[pymethods]
impl Run {
    /// Starts to make a run of flags, and of data in memory unless the flags name data.
    #[staticmethod]
    #[pyo3(signature = (flags, data, out, overwrite, or_resume, checkpoint_seconds, threads, is_part))]
    #[allow(clippy::too_many_arguments, reason = "what `sample` takes")]
    fn start(
        py: Python<'_>,
        flags: Vec<String>,
        data: Option<PyData<'_>>,
        out: Option<PathBuf>,
        overwrite: bool,
        or_resume: bool,
        checkpoint_seconds: Option<f64>,
        threads: Option<usize>,
        is_part: bool,
    ) -> PyResult<Self> {
        let settings = reprior_cli::settings(&flags).map_err(raise)?;
        let data = data.map(|data| given(py, data)).transpose()?;
        let every = checkpoint_every(checkpoint_seconds).map_err(raise)?;
        let work = Arc::new(Work::default());
        let started = py.detach(|| {
            work.start(threads, every, None, is_part, move |work, options| {
                let problem = match &data {
                    Some(given) => prepare_given(settings, given)?,
                    None => prepare(settings)?,
                };
                let earlier = match &out {
                    Some(out) if or_resume => earlier_run(&problem, out)?,
                    _ => None,
                };
                if let Some(folder) = earlier {
                    work.change(|state| state.files = Some(folder.files().clone()));
                    return keep_summary(work, options, &resume_in(&folder, options)?);
                }
                let place = out.as_deref().map(|out| (out, overwrite));
                let new = NewRun::new(problem, place)?;
                work.change(|state| state.files = Some(new.files().clone()));
                let (folder, made) = new.sample(options);
                if folder.files().folder().is_none() {
                    work.change(|state| state.folder = Some(folder));
                }
                keep_summary(work, options, &made?)
            })
        });
        started.map_err(raise)?;
        Ok(Self { work })
    }

    /// Puts complete runs of other chains together into a run in the folder `out`.
    #[staticmethod]
    fn merge(
        py: Python<'_>,
        runs: Vec<PathBuf>,
        out: PathBuf,
        overwrite: bool,
        allow_gaps: bool,
        allow_overlaps: bool,
        shares_files: bool,
    ) -> PyResult<Self> {
        let options = MergeOptions {
            overwrite,
            allow_gaps,
            allow_overlaps,
            shares_files,
        };
        py.detach(|| merge(&runs, &out, options)).map_err(raise)?;
        Self::open(py, out)
    }

    /// Opens a run folder.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let files = Files::from(&path);
        // refuses what is no run
        py.detach(|| Recorded::of(&files)).map_err(raise)?;
        Ok(ended(files, None))
    }

    /// A run in memory from its files.
    #[staticmethod]
    fn from_files(files: BTreeMap<String, Bound<'_, PyBytes>>) -> PyResult<Self> {
        let folder = RunFolder::in_memory();
        for (name, bytes) in files {
            let written = folder.files().write(&name, bytes.as_bytes());
            written.map_err(|error| raise(Failure::run(error)))?;
        }
        Ok(ended(folder.files().clone(), Some(folder)))
    }

    /// Its files whose names begin so: names and bytes.
    fn to_files<'py>(&self, py: Python<'py>, start: String) -> PyResult<Bound<'py, PyDict>> {
        let all = self.with_files(py, move |files| {
            let names = files.names().map_err(Failure::request)?;
            let mut all = Vec::new();
            for name in names.into_iter().filter(|name| name.starts_with(&start)) {
                if let Some(bytes) = files.read(&name).map_err(Failure::request)? {
                    all.push((name, bytes));
                }
            }
            Ok(all)
        })?;
        let found = PyDict::new(py);
        for (name, bytes) in all {
            found.set_item(name, PyBytes::new(py, &bytes))?;
        }
        Ok(found)
    }

    /// The folder that it is in; None in memory.
    fn folder(&self) -> Option<PathBuf> {
        let state = self.work.state();
        let folder = state.files.as_ref().and_then(Files::folder);
        folder.map(PathBuf::from)
    }

    /// Waits for its end, or until so many seconds are over; whether it has ended. Raises what signals raise.
    #[pyo3(signature = (seconds=None))]
    fn wait(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<bool> {
        wait_until(&self.work, py, seconds, |state| state.end.is_some())
    }

    /// The same until it has begun to write, or has ended.
    fn wait_for_start(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<bool> {
        wait_until(&self.work, py, seconds, |state| {
            state.files.is_some() || state.end.is_some()
        })
    }

    /// Asks it to stop.
    fn stop(&self) {
        self.work.stop();
    }

    /// Whether it has ended, one way or another.
    fn is_finished(&self) -> bool {
        self.work.state().end.is_some()
    }

    /// Raises what it ended with, if it has not come to its end well.
    fn check(&self) -> PyResult<()> {
        let state = self.work.state();
        match &state.end {
            Some(Err(Failure::Request(text))) => Err(raise(Failure::Request(text.clone()))),
            Some(Err(Failure::Run(text))) => Err(raise(Failure::Run(text.clone()))),
            _ => Ok(()),
        }
    }

    /// Whether it was stopped.
    fn is_stopped(&self) -> bool {
        matches!(self.work.state().end, Some(Err(Failure::Stopped)))
    }

    /// What there is to know of it.
    fn notes(&self) -> Vec<String> {
        self.work.state().notes.clone()
    }

    /// How it gets on.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        progress(&self.work, py)
    }

    /// Goes on with it, on a thread of its own: to its end, or for so many minutes more, or until its draws say so much.
    #[pyo3(signature = (minutes, until, threads))]
    fn resume(
        &self,
        py: Python<'_>,
        minutes: Option<f64>,
        until: Option<String>,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        if !self.is_finished() {
            return Err(RunError::new_err(
                "the run is still going: wait for it or stop it first",
            ));
        }
        let until = until.map(|bounds| bounds.parse()).transpose();
        let until = until.map_err(|error: String| raise(Failure::Request(error)))?;
        let more = (minutes.is_some() || until.is_some()).then_some(More { minutes, until });
        let files = self.files()?;
        let path = files.folder().map(PathBuf::from);
        let folder = match path {
            Some(path) => RunFolder::open(&path),
            // the copy goes on, and this run stays as it is
            None => match &self.work.state().folder {
                Some(folder) => folder.to_memory(),
                None => Ok(RunFolder::in_memory()),
            },
        };
        let folder = folder.map_err(|error| raise(Failure::request(error)))?;
        let work = Arc::new(Work::default());
        work.change(|state| state.files = Some(folder.files().clone()));
        let started = py.detach(|| {
            work.start(
                threads,
                CHECKPOINT_EVERY,
                more,
                false,
                move |work, options| {
                    let made = resume_in(&folder, options);
                    if folder.files().folder().is_none() {
                        work.change(|state| state.folder = Some(folder));
                    }
                    keep_summary(work, options, &made?)
                },
            )
        });
        started.map_err(raise)?;
        Ok(Self { work })
    }

    /// Diagnostics and metrics, as JSON, as `reprior summary --json` prints them.
    fn summary_json(&self, py: Python<'_>) -> PyResult<String> {
        if let Some(text) = &self.work.state().summary {
            return Ok(text.clone());
        }
        self.with_files(py, |files| {
            serde_json::to_string(&summarise(files)?).map_err(Failure::run)
        })
    }

    /// What its data were, as JSON, and a line on them with notes.
    fn description(&self, py: Python<'_>) -> PyResult<(String, String, Vec<String>)> {
        self.with_files(py, |files| {
            let run = Recorded::of(files)?;
            let data: &DataDescription = &run.description;
            let text = serde_json::to_string(data).map_err(Failure::run)?;
            Ok((text, data.in_words(), data.notes()))
        })
    }

    /// Its settings as TOML.
    fn settings_toml(&self, py: Python<'_>) -> PyResult<String> {
        self.with_files(py, |files| {
            let text = files.read_text("config.toml").map_err(Failure::request)?;
            text.ok_or_else(|| Failure::request("the run has no settings yet: wait for it first"))
        })
    }

    /// Leave-one-out cross-validation: the rows, the logarithms of their densities, the sums as JSON.
    #[allow(clippy::type_complexity)]
    fn loo<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>, String)> {
        let found = self.with_files(py, |files| {
            let found = Recorded::of(files)?.leave_one_out()?;
            found.map_err(Failure::Request)
        })?;
        let text = serde_json::to_string(&found.summary);
        let text = text.map_err(|error| raise(Failure::run(error)))?;
        let rows = found.rows.iter().map(|&row| row as i64).collect();
        Ok((
            PyArray1::from_vec(py, rows),
            PyArray1::from_vec(py, found.log_densities),
            text,
        ))
    }

    /// Writes the page of a run that is in the folder `from` to a file. A folder that does not stay is not named.
    #[staticmethod]
    fn write_report(py: Python<'_>, from: PathBuf, path: PathBuf, stays: bool) -> PyResult<()> {
        interruptible(py, move |abandoned| {
            let mut run = RunPage::of(&from, &[], &mut |_, _| Ok(()))?;
            run.is_in_memory = !stays;
            let text = page(&[run]).map_err(Failure::run)?;
            abandoned.check()?;
            atomic::write(&path, text.as_bytes()).map_err(Failure::run)
        })
    }

    /// Writes all of it into a folder.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let files = self.files()?;
        let saved = py.detach(|| match files.folder() {
            Some(folder) => RunFolder::open(folder)
                .and_then(|folder| folder.save_to(&path))
                .map_err(Failure::request),
            None => match &self.work.state().folder {
                Some(folder) => folder.save_to(&path).map_err(Failure::request),
                None => Err(Failure::request(
                    "the run is still going: wait for it or stop it first",
                )),
            },
        });
        saved.map_err(raise)
    }

    /// What predicts from it, in double precision.
    fn predictor(&self, py: Python<'_>) -> PyResult<Predictor> {
        let predictor = self.with_files(py, |files| reprior_run::Predictor::of(files))?;
        Ok(Predictor::new(predictor.in_double_precision()))
    }
}

/// How it gets on: transitions made, by an earlier process and in all, seconds since chains began, mean acceptance rate, divergences, R-hat of the likelihood, whether it warms
/// up.
pub fn progress<'py>(work: &Work, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    let mut state = work.state();
    let rhat = state.so_far.as_mut().and_then(RhatSoFar::value);
    found.set_item("rhat", rhat)?;
    let known: Vec<_> = state.chains.iter().flatten().collect();
    let total: u64 = known.iter().map(|chain| chain.total).max().unwrap_or(0);
    found.set_item("chains", state.chains.len())?;
    let made = known.iter().map(|chain| chain.transition).sum::<u64>();
    found.set_item("made", made)?;
    found.set_item("before", state.before)?;
    found.set_item("total", total * state.chains.len() as u64)?;
    let seconds = state
        .began
        .map_or(0.0, |began| began.elapsed().as_secs_f64());
    found.set_item("seconds", seconds)?;
    let is_warmup = known.iter().any(|chain| chain.is_warmup);
    found.set_item("is_warmup", is_warmup)?;
    let (mut rates, mut diverging) = (Vec::new(), 0);
    for chain in &known {
        if let ProgressDetails::Transitions {
            acceptance_rate,
            divergences,
            ..
        } = chain.news
        {
            rates.push(acceptance_rate);
            diverging += divergences;
        }
    }
    let count = rates.len() as f64;
    let rate = (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / count);
    found.set_item("acceptance_rate", rate)?;
    found.set_item("diverging", diverging)?;
    found.set_item("is_finished", state.end.is_some())?;
    Ok(found)
}

/// Waits until it is so, or until so many seconds are over; whether it is. Raises what signals raise.
pub fn wait_until(
    work: &Work,
    py: Python<'_>,
    seconds: Option<f64>,
    is_so: impl Fn(&State) -> bool + Sync,
) -> PyResult<bool> {
    let start = Instant::now();
    loop {
        let left = match seconds {
            Some(seconds) => (seconds - start.elapsed().as_secs_f64()).clamp(0.0, 1e9),
            None => f64::INFINITY,
        };
        let slice = SLICE.min(Duration::try_from_secs_f64(left).unwrap_or(SLICE));
        if py.detach(|| work.wait(slice, &is_so)) {
            return Ok(true);
        }
        py.check_signals()?;
        if left <= 0.0 {
            return Ok(false);
        }
    }
}
