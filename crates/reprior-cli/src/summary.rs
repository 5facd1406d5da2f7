//! `reprior summary`: diagnostics and metrics of a run folder.

use std::path::Path;

use reprior::chain::Statistics;
use reprior::diagnostics::{
    Draws, Estimator, Truncation, rhat_by_chance, rhat_squared_hron, spread, summarise,
};
use reprior::model::Targets;
use reprior_io::run::{DrawReader, RunFolder, Selection, checkpoint};
use serde::Serialize;

use crate::arguments::SummaryArguments;
use crate::error::Failure;
use crate::predictive::{Block, Gatherer, Metrics};
use crate::problem::DataDescription;
use crate::record::read_document;
use crate::session::read_description;
use crate::settings::Settings;
use crate::table::{align, duration, number, to_stdout};

/// Variables of predictions that diagnostics are computed for, evenly spread over rows and outputs.
const MOST_VARIABLES: usize = 500;
/// Numbers of a block of predictions that is read at a time.
const BLOCK_NUMBERS: usize = 8 << 20;

/// Diagnostics and metrics of a run. Field names are those of `summary --json`.
#[derive(Debug, Serialize)]
pub struct Summary {
    status: &'static str,
    method: String,
    coordinates: String,
    chains: usize,
    /// Draws of each chain that can be read.
    draws: u64,
    draws_planned: u64,
    thin: u64,
    warmup: u64,
    /// Transitions of all chains, warm-up included.
    steps: u64,
    seconds: f64,
    steps_per_second: f64,
    acceptance_rate: f64,
    /// Of each chain after warm-up; null for methods without one.
    step_size: Vec<Option<f64>>,
    divergences: u64,
    n_evaluations: u64,
    n_gradients: u64,
    n_jitter: u64,
    n_clamped: u64,
    rhat_max: f64,
    ess: EssSummary,
    metrics: Option<Metrics>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct EssSummary {
    prediction: Option<Ess>,
    weights: Option<Ess>,
}

/// Bulk effective sample sizes of all chains together, over variables.
#[derive(Debug, Clone, Serialize)]
struct Ess {
    variables: usize,
    mean: f64,
    min: f64,
    max: f64,
    tail_min: f64,
    /// Mean over draws of all chains.
    per_draw: f64,
    /// Mean over transitions of all chains after warm-up.
    per_step: f64,
    /// Mean over wall-clock seconds, warm-up included.
    per_second: f64,
    /// As Hron et al. 2022: mean over variables and chains of TFP's single-chain ESS over draws.
    tfp_per_draw: f64,
    rhat_max: f64,
    /// Hron et al. 2022, eq. 6.
    rhat_squared_max: f64,
}

/// Runs the command.
///
/// # Errors
/// A wrong request: not a run; a run without draws yet.
pub fn command(arguments: &SummaryArguments) -> Result<(), Failure> {
    let summary = summarise_run(&arguments.run)?;
    print(&arguments.run, &summary, arguments.json)
}

/// Computes, writes `summary.json` and prints.
///
/// # Errors
/// A run folder that cannot be read or written.
pub fn write_and_print(folder: &RunFolder, json: bool) -> Result<(), Failure> {
    let summary = summarise_run(folder.path())?;
    let text = serde_json::to_string_pretty(&summary).map_err(Failure::run)?;
    folder
        .write_text("summary.json", &text)
        .map_err(Failure::run)?;
    print(folder.path(), &summary, json)
}

fn print(run: &Path, summary: &Summary, json: bool) -> Result<(), Failure> {
    if json {
        to_stdout(&serde_json::to_string(summary).map_err(Failure::run)?);
    } else {
        let description = read_description(run)?;
        to_stdout(&summary.in_words(run, description.as_ref()));
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

fn summarise_run(run: &Path) -> Result<Summary, Failure> {
    let (settings, description) = open_run(run)?;
    let reader = DrawReader::open(run).map_err(Failure::request)?;
    let schedule = settings.schedule();
    let draws = reader
        .groups()
        .find(|group| group.name == "posterior")
        .and_then(|group| group.draws)
        .unwrap_or(0);
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
        seconds,
    };
    let chains = schedule.chains;
    let weights = projections(&reader, chains, draws, &rates)?;
    let (prediction, metrics) = predictions(&reader, &settings, &description, draws, &rates)?;
    let rhats = [&weights, &prediction]
        .into_iter()
        .flatten()
        .map(|ess| ess.rhat_max);
    let clamped = if draws > 0 {
        let counts = reader
            .read::<f64>("sample_stats", "n_clamped", &Selection::all())
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
        method: settings.sampler.method.to_string(),
        coordinates: settings.sampler.coordinates.to_string(),
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
        rhat_max: spread(rhats).max,
        ess: EssSummary {
            prediction,
            weights,
        },
        metrics,
        warnings: Vec::new(),
    };
    summary.warnings = summary.warnings(&sampling);
    Ok(summary)
}

/// What effective sample sizes are divided by.
struct Rates {
    draws: f64,
    steps: f64,
    seconds: f64,
}

/// Diagnostics of variables whose draws `read(variable, buffer)` writes chain by chain.
fn diagnose(
    variables: usize,
    chains: usize,
    draws: usize,
    rates: &Rates,
    read: impl Fn(usize, &mut [f64]),
) -> Result<Option<Ess>, Failure> {
    if variables == 0 || draws == 0 {
        return Ok(None);
    }
    let mut estimator = Estimator::new();
    let summaries =
        summarise(&mut estimator, variables, chains, draws, &read).map_err(Failure::run)?;
    let mut buffer = vec![0.0; chains * draws];
    let (mut tfp, mut rhat_squared) = (Vec::new(), Vec::new());
    for variable in 0..variables {
        read(variable, &mut buffer);
        tfp.extend(
            buffer
                .chunks_exact(draws)
                .map(|chain| estimator.ess_tfp(chain, Truncation::FirstNegative)),
        );
        rhat_squared.push(rhat_squared_hron(
            Draws::new(&buffer, chains).map_err(Failure::run)?,
        ));
    }
    let bulk = summaries.over(|s| s.ess_bulk);
    Ok(Some(Ess {
        variables,
        mean: bulk.mean,
        min: bulk.min,
        max: bulk.max,
        tail_min: summaries.over(|s| s.ess_tail).min,
        per_draw: bulk.mean / rates.draws,
        per_step: bulk.mean / rates.steps,
        per_second: bulk.mean / rates.seconds,
        tfp_per_draw: spread(tfp).mean / draws as f64,
        rhat_max: summaries.over(|s| s.rhat).max,
        rhat_squared_max: spread(rhat_squared).max,
    }))
}

fn projections(
    reader: &DrawReader,
    chains: usize,
    draws: u64,
    rates: &Rates,
) -> Result<Option<Ess>, Failure> {
    let has = reader
        .variables("posterior")
        .map_err(Failure::request)?
        .iter()
        .any(|v| v.name == "projection");
    if draws == 0 || !has {
        return Ok(None);
    }
    let all = reader
        .read::<f64>("posterior", "projection", &Selection::all())
        .map_err(Failure::request)?;
    let count = all.shape[2];
    diagnose(count, chains, draws as usize, rates, |variable, out| {
        for (out, draw) in out.iter_mut().zip(all.values.chunks_exact(count)) {
            *out = draw[variable];
        }
    })
}

/// Reads predictions block by block: diagnostics of some, metrics of all.
fn predictions(
    reader: &DrawReader,
    settings: &Settings,
    description: &DataDescription,
    draws: u64,
    rates: &Rates,
) -> Result<(Option<Ess>, Option<Metrics>), Failure> {
    let (rows, outputs) = (description.test_rows, description.output_names.len());
    if draws == 0 || rows == 0 {
        return Ok((None, None));
    }
    let truth = read_truth(reader, description)?;
    let total = reader.chains() as usize * draws as usize;
    let block_rows = (BLOCK_NUMBERS / (total * outputs).max(1)).clamp(1, rows);
    let variables = (rows * outputs).min(MOST_VARIABLES);
    let chosen: Vec<usize> = (0..variables)
        .map(|k| k * rows * outputs / variables)
        .collect();
    let mut traces: Vec<Vec<f64>> = Vec::with_capacity(variables);
    let mut gatherer = Gatherer::default();
    let noise: Vec<f64> = noise_variances(settings, description);
    for start in (0..rows).step_by(block_rows) {
        let end = (start + block_rows).min(rows);
        let selection = Selection {
            rest: vec![start as u64..end as u64],
            ..Selection::all()
        };
        let read = |name| {
            reader
                .read::<f64>("predictions", name, &selection)
                .map_err(Failure::request)
        };
        let mean = read("mean")?.values;
        let mut variance = read("sd")?.values;
        for (v, noise) in variance.iter_mut().zip(noise.iter().cycle()) {
            *v = *v * *v + noise;
        }
        let width = (end - start) * outputs;
        for &at in chosen
            .iter()
            .filter(|&&at| (start * outputs..end * outputs).contains(&at))
        {
            traces.push(
                mean.iter()
                    .skip(at - start * outputs)
                    .step_by(width)
                    .copied()
                    .collect(),
            );
        }
        gatherer.add(
            &Block {
                rows: end - start,
                outputs,
                mean,
                variance,
            },
            &truth,
            start,
        )?;
    }
    let ess = diagnose(
        traces.len(),
        reader.chains() as usize,
        draws as usize,
        rates,
        |variable, out| {
            out.copy_from_slice(&traces[variable]);
        },
    )?;
    Ok((ess, gatherer.finish()?))
}

/// Variances of the observation noise in the units that predictions are stored in: one for classes, one per output
/// for real targets.
pub fn noise_variances(settings: &Settings, description: &DataDescription) -> Vec<f64> {
    let noise = settings.model.noise;
    if description.is_classification {
        return vec![noise * noise];
    }
    description
        .standardisation
        .targets
        .iter()
        .map(|map| (noise * map.scale).powi(2))
        .collect()
}

fn read_truth(reader: &DrawReader, description: &DataDescription) -> Result<Targets, Failure> {
    let (group, all, names) = (
        "predictions_constant_data",
        Selection::all(),
        description.output_names.clone(),
    );
    if description.is_classification {
        let labels = reader
            .read::<f64>(group, "y", &all)
            .map_err(Failure::request)?
            .values;
        let labels = labels.into_iter().map(|label| label as u32).collect();
        return Ok(Targets::Classes { labels, names });
    }
    let values = reader
        .read::<f64>(group, "y", &all)
        .map_err(Failure::request)?
        .values;
    Ok(Targets::Real { values, names })
}

impl Summary {
    /// What a user should know before believing the draws.
    fn warnings(&self, sampling: &Statistics) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |text: String| warnings.push(text);
        if self.draws == 0 {
            warn("there are no draws yet".to_owned());
            return warnings;
        }
        if self.draws < 4 {
            warn("too few draws for effective sample sizes and R-hat: at least 4 of each chain are needed".to_owned());
        }
        if self.chains == 1 {
            warn("one chain cannot show whether different starts agree: use --chains 4".to_owned());
        }
        let blocks = [&self.ess.prediction, &self.ess.weights]
            .into_iter()
            .flatten();
        let disagreeing =
            blocks.filter(|ess| ess.rhat_max > rhat_by_chance(self.chains, ess.mean).max(1.01));
        if let Some(ess) = disagreeing.max_by(|a, b| a.rhat_max.total_cmp(&b.rhat_max)) {
            warn(format!(
                "R-hat reaches {:.3}, more than chance explains: the chains do not agree yet; raise --warmup and --draws (or --thin)",
                ess.rhat_max
            ));
        }
        if let Some(ess) = &self.ess.prediction
            && ess.min < 100.0
        {
            warn(format!(
                "only {:.0} effective draws of some predictions (below 100): raise --draws or --thin, or try --method hmc-infinite",
                ess.min
            ));
        }
        if self.acceptance_rate < 0.1 {
            warn(format!(
                "acceptance is {:.3}: the step size is too large; let it adapt with a longer --warmup, or lower --step-size",
                self.acceptance_rate
            ));
        }
        if sampling.divergences * 1000 > sampling.transitions {
            warn(format!(
                "{} of {} transitions diverged or could not be evaluated: lower --step-size, or raise --target-acceptance",
                sampling.divergences, sampling.transitions
            ));
        }
        if self.n_jitter > 0 {
            warn(format!(
                "{} factorisations needed jitter on the diagonal: the kernel is nearly singular; raise --noise",
                self.n_jitter
            ));
        }
        warnings
    }

    fn in_words(&self, run: &Path, description: Option<&DataDescription>) -> String {
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let mut text = String::new();
        if let Some(description) = description {
            text += &format!("{}\n", description.in_words());
            text.extend(
                description
                    .notes()
                    .into_iter()
                    .map(|note| format!("note: {note}\n")),
            );
        }
        text += &format!(
            "{} in {} coordinates: {} chains x {} draws{}, {} transitions in {} ({} a second)\n\n",
            self.method,
            self.coordinates,
            self.chains,
            self.draws,
            if self.draws < self.draws_planned {
                format!(" of {}", self.draws_planned)
            } else {
                String::new()
            },
            self.steps,
            duration(self.seconds),
            number(self.steps_per_second),
        );
        if let Some(metrics) = &self.metrics {
            text += "predictions on the test rows\n";
            let rows: Vec<_> = metrics
                .named()
                .into_iter()
                .map(|(name, value)| row(name, number(value)))
                .collect();
            text += &format!("{}\n\n", align(&rows));
        }
        text += "sampler\n";
        let mut rows = vec![row("acceptance rate", number(self.acceptance_rate))];
        let steps: Vec<f64> = self.step_size.iter().flatten().copied().collect();
        if !steps.is_empty() {
            rows.push(row(
                "step size (mean over chains)",
                number(steps.iter().sum::<f64>() / steps.len() as f64),
            ));
        }
        if self.divergences > 0 {
            rows.push(row("divergences", self.divergences.to_string()));
        }
        if self.n_clamped > 0 {
            rows.push(row("variances clamped at 0", self.n_clamped.to_string()));
        }
        rows.push(row("R-hat, largest", number(self.rhat_max)));
        text += &format!("{}\n\n", align(&rows));
        let mut rows: Vec<Vec<String>> = vec![
            [
                "effective draws of",
                "mean",
                "least",
                "per draw",
                "per step",
                "per second",
            ]
            .map(String::from)
            .to_vec(),
        ];
        let blocks = [
            ("predictions", &self.ess.prediction),
            ("weights (random projections)", &self.ess.weights),
        ];
        for (name, ess) in blocks {
            if let Some(ess) = ess {
                let values = [
                    ess.mean,
                    ess.min,
                    ess.per_draw,
                    ess.per_step,
                    ess.per_second,
                ];
                rows.push(
                    std::iter::once(name.to_owned())
                        .chain(values.map(number))
                        .collect(),
                );
            }
        }
        if rows.len() > 1 {
            text += &format!("{}\n\n", align(&rows));
        }
        for warning in &self.warnings {
            text += &format!("warning: {warning}\n");
        }
        if self.warnings.is_empty() {
            text += "No sign that these draws should not be believed.\n";
        }
        text + &format!("Run folder: {}", run.display())
    }
}
