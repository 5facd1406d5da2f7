//! `reprior summary`: diagnostics and metrics of a run folder.

use std::path::Path;

use reprior::chain::Statistics;
use reprior::diagnostics::spread;
use reprior_io::run::{DrawReader, RunFolder, checkpoint};
use reprior_report::{Level, Verdict};
use serde::Serialize;

use crate::arguments::SummaryArguments;
use crate::chain_state::read_document;
use crate::closed_form;
use crate::effective::{EssSummary, Predicted, Rates, Recorded, first, predictions, projections};
use crate::error::Failure;
use crate::fit::FitSummary;
use crate::judgement::in_words;
use crate::keeping::kept_in_words;
use crate::minibatch::{self, MinibatchSummary};
use crate::predictive::Metrics;
use crate::problem::DataDescription;
use crate::recorded::{lacks_positions, open_draws};
use crate::schema::{PREDICTIONS, TRACES};
use crate::session::read_description;
use crate::settings::Settings;
use crate::table::to_stdout;
use crate::trace::{
    EnergyErrors, NoiseScale, Stationarity, energy_errors, noise_scales, stationarity,
};

/// Diagnostics and metrics of a run. Field names are those of `summary --json`.
#[derive(Debug, Serialize)]
pub struct Summary {
    pub status: &'static str,
    pub likelihood: String,
    pub method: String,
    pub coordinates: String,
    /// How the determinant of tangent coordinates was had; null in others.
    pub determinant: Option<String>,
    pub chains: usize,
    /// Draws of each chain that can be read.
    pub draws: u64,
    pub draws_planned: u64,
    pub thin: u64,
    pub warmup: u64,
    /// Transitions of all chains, warm-up included.
    pub steps: u64,
    pub seconds: f64,
    pub steps_per_second: f64,
    pub acceptance_rate: f64,
    /// Of each chain after warm-up; null for methods without one.
    pub step_size: Vec<Option<f64>>,
    pub divergences: u64,
    pub n_evaluations: u64,
    pub n_gradients: u64,
    pub n_jitter: u64,
    pub n_clamped: u64,
    /// Of the recorded transitions.
    pub energy_error: Option<EnergyErrors>,
    pub stationarity: Option<Stationarity>,
    /// Learned noise scales; empty if they are known.
    pub noise: Vec<NoiseScale>,
    /// Of a closed form, or of a Laplace approximation (that of its best mode), in nats, of standardised targets.
    pub log_marginal_likelihood: Option<f64>,
    pub rhat_max: f64,
    pub ess: EssSummary,
    pub metrics: Option<Metrics>,
    /// Draws of each chain that the metrics are of: those whose predictions were recorded.
    pub metrics_draws: u64,
    /// Of methods by minibatches.
    pub minibatch: Option<MinibatchSummary>,
    /// Whether the test rows are as predicted; null without test rows or draws.
    pub fit: Option<FitSummary>,
    pub warnings: Vec<String>,
    /// Whether the run can be believed, with every finding that says so.
    pub verdict: Verdict,
}

/// Runs the command.
///
/// # Errors
/// A wrong request: not a run; a run without draws yet.
pub fn command(arguments: &SummaryArguments) -> Result<(), Failure> {
    let summary = summarise_run(&arguments.run)?;
    let form = match (arguments.json, arguments.verbose) {
        (true, _) => Form::Json,
        (false, true) => Form::Verbose,
        (false, false) => Form::Short,
    };
    print(&arguments.run, &summary, form)
}

/// Computes, writes `summary.json` and prints.
///
/// # Errors
/// A run folder that cannot be read or written.
pub fn write_summary(folder: &RunFolder, json: bool) -> Result<(), Failure> {
    let summary = summarise_run(folder.path())?;
    let text = serde_json::to_string_pretty(&summary).map_err(Failure::run)?;
    folder
        .write_text("summary.json", &text)
        .map_err(Failure::run)?;
    if json {
        return print(folder.path(), &summary, Form::Json);
    }
    print(folder.path(), &summary, Form::AfterRun)?;
    to_stdout(&kept_in_words(folder.path())?);
    Ok(())
}

/// How a summary is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    /// Few numbers; what there is to know of the data was said when the run began.
    AfterRun,
    /// Few numbers.
    Short,
    /// All numbers.
    Verbose,
}

fn print(run: &Path, summary: &Summary, form: Form) -> Result<(), Failure> {
    if form == Form::Json {
        to_stdout(&serde_json::to_string(summary).map_err(Failure::run)?);
    } else {
        let mut description = read_description(run)?;
        if let Some(description) = description.as_mut().filter(|_| form == Form::AfterRun) {
            description.leave_notes_out();
        }
        to_stdout(&summary.in_words(run, description.as_ref(), form == Form::Verbose));
    }
    Ok(())
}

/// A run's settings, data description and reader.
///
/// # Errors
/// A wrong request: not a run folder.
pub fn open_run(run: &Path) -> Result<(Settings, DataDescription), Failure> {
    let config = run.join("config.toml");
    if !config.exists() {
        return Err(Failure::request(format!(
            "`{}` is not a run folder: it has no config.toml",
            run.display()
        )));
    }
    let settings = Settings::from_file(&config)?;
    let description = read_description(run)?.ok_or_else(|| {
        let message = format!(
            "`{0}` was stopped before it began: go on with `reprior resume {0}`",
            run.display()
        );
        Failure::Request(message)
    })?;
    Ok((settings, description))
}

/// Computes.
///
/// # Errors
/// A wrong request: not a run folder, or one that cannot be read.
pub fn summarise_run(run: &Path) -> Result<Summary, Failure> {
    let (settings, description) = open_run(run)?;
    let reader = open_draws(run, &settings, &description)?;
    let mut summary = summarise_draws(run, &settings, &description, &reader)?;
    let lacking = lacks_positions(&reader, summary.draws, run);
    summary.warnings.extend(lacking);
    Ok(summary)
}

fn summarise_draws(
    run: &Path,
    settings: &Settings,
    description: &DataDescription,
    reader: &DrawReader,
) -> Result<Summary, Failure> {
    if settings.sampler.method.covariance().is_some() {
        return closed_form::summarise(reader, run, settings, description);
    }
    if let Some(method) = settings.sampler.method.minibatch() {
        return minibatch::summarise(reader, run, settings, description, method);
    }
    let schedule = settings.schedule();
    let draws = complete_draws(reader);
    let (mut warmup, mut sampling) = (Statistics::default(), Statistics::default());
    let mut step_size = Vec::new();
    let mut seconds: f64 = 0.0;
    for chain in 0..schedule.chains as u64 {
        if let Some(checkpoint) = checkpoint::load(run, chain).map_err(Failure::request)? {
            let document = read_document(&checkpoint).map_err(Failure::request)?;
            seconds = seconds.max(document.seconds);
            step_size.push(document.sampling.step_size);
            warmup.merge(&document.warmup);
            sampling.merge(&document.sampling);
        }
    }
    let steps = warmup.transitions + sampling.transitions;
    let total_draws = draws as f64 * schedule.chains as f64;
    let rates = Rates {
        draws: total_draws,
        steps: total_draws * schedule.thin as f64,
        gradients: sampling.n_gradients as f64,
        evaluations: (sampling.n_gradients + sampling.n_evaluations) as f64,
        seconds,
    };
    let noise = if settings.model.learns_noise() {
        noise_scales(reader, description, draws)?
    } else {
        Vec::new()
    };
    let chains = schedule.chains;
    let weights = projections(reader, chains, draws, &rates)?;
    let Predicted {
        ess: prediction,
        metrics,
        fit,
    } = predictions(reader, settings, description, draws, &rates)?;
    let rhats = [&weights, &prediction]
        .into_iter()
        .flatten()
        .map(|ess| ess.rhat_max)
        .chain(noise.iter().map(|noise| noise.rhat));
    let clamped = if draws > 0 {
        let counts = reader
            .read::<f64>("sample_stats", "n_clamped", &first(draws))
            .map_err(Failure::request)?;
        counts.values.iter().sum::<f64>()
    } else {
        0.0
    };
    let mut summary = Summary {
        status: if draws == schedule.draws {
            "complete"
        } else {
            "incomplete"
        },
        likelihood: settings.model.likelihood.to_string(),
        method: settings.sampler.method.to_string(),
        coordinates: settings.coordinates().to_string(),
        determinant: settings
            .sampler
            .determinant
            .map(|determinant| determinant.description()),
        chains,
        draws,
        draws_planned: schedule.draws,
        thin: schedule.thin,
        warmup: schedule.warmup,
        steps,
        seconds,
        steps_per_second: steps as f64 / seconds,
        acceptance_rate: sampling.acceptance_rate(),
        step_size,
        divergences: sampling.divergences,
        n_evaluations: warmup.n_evaluations + sampling.n_evaluations,
        n_gradients: warmup.n_gradients + sampling.n_gradients,
        n_jitter: warmup.n_jitter + sampling.n_jitter,
        n_clamped: clamped as u64,
        energy_error: energy_errors(reader, draws)?,
        stationarity: stationarity(reader, draws)?,
        log_marginal_likelihood: None,
        rhat_max: spread(rhats).max,
        noise,
        ess: EssSummary {
            prediction,
            weights,
        },
        metrics,
        metrics_draws: Recorded::of(reader, draws).draws,
        minibatch: None,
        fit,
        warnings: Vec::new(),
        verdict: Verdict::default(),
    };
    let others = summary.warnings_for(settings, &sampling);
    summary.conclude(settings, others);
    Ok(summary)
}

impl Summary {
    /// Judges, and puts what speaks against belief among the warnings, before `others` that stand beside it.
    pub fn conclude(&mut self, settings: &Settings, others: Vec<String>) {
        self.verdict = self.judge(settings, &others);
        let against = self.verdict.checks.iter();
        // what else there is to say of acceptance and divergences is among the others
        let against =
            against.filter(|check| check.level >= Level::Caution && !check.advice.is_empty());
        self.warnings = against.map(in_words).chain(others).collect();
    }

    /// One draw, no transitions, nothing measured.
    pub fn bare(settings: &Settings, seconds: f64) -> Self {
        Self {
            status: "complete",
            likelihood: settings.model.likelihood.to_string(),
            method: settings.sampler.method.to_string(),
            coordinates: String::new(),
            determinant: None,
            chains: 1,
            draws: 1,
            draws_planned: 1,
            thin: 1,
            warmup: 0,
            steps: 0,
            seconds,
            steps_per_second: 0.0,
            acceptance_rate: f64::NAN,
            step_size: Vec::new(),
            divergences: 0,
            n_evaluations: 0,
            n_gradients: 0,
            n_jitter: 0,
            n_clamped: 0,
            energy_error: None,
            stationarity: None,
            noise: Vec::new(),
            log_marginal_likelihood: None,
            rhat_max: f64::NAN,
            ess: EssSummary {
                prediction: None,
                weights: None,
            },
            metrics: None,
            metrics_draws: 1,
            minibatch: None,
            fit: None,
            warnings: Vec::new(),
            verdict: Verdict::default(),
        }
    }
}

/// Draws that every group has: after a kill, one group may be some draws ahead of another.
pub fn complete_draws(reader: &DrawReader) -> u64 {
    let every_draw = ["posterior", "sample_stats", PREDICTIONS, TRACES];
    let planned = reader.groups().find(|group| group.name == "sample_stats");
    let planned = planned.and_then(|group| group.planned);
    // predictions may be of fewer draws
    let groups = reader
        .groups()
        .filter(|group| every_draw.contains(&group.name) && group.planned == planned);
    groups.filter_map(|group| group.draws).min().unwrap_or(0)
}
