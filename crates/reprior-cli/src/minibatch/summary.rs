//! The summary of a run of a minibatch method.

use std::path::Path;

use reprior::diagnostics::spread;
use reprior::model::Targets;
use reprior_io::run::{DrawReader, Selection, checkpoint};
use serde::Serialize;

use super::mode::{self, CLOSED_FORM, Fit};
use super::record::read_document;
use super::schema::{EPOCHS, OF_MEAN};
use super::written::Schedule;
use crate::effective::{
    EssSummary, Rates, Recorded, first, noise_variances, predictions, projections, read_truth,
};
use crate::error::Failure;
use crate::method::MinibatchMethod;
use crate::predictive::{Block, Gatherer, Kind, Metrics};
use crate::problem::DataDescription;
use crate::settings::Settings;
use crate::summary::{Summary, complete_draws};
use crate::table::{align, duration, number};

/// Configurational temperatures further from that of the sampler are worth a warning.
const MOST_TEMPERATURE: f64 = 0.1;

/// More nats than that are worth a warning.
const MOST_NATS: f64 = 1.0;

/// What minibatch methods say besides the rest.
#[derive(Debug, Serialize)]
pub struct MinibatchSummary {
    pub parametrisation: String,
    pub preconditioner: String,
    pub schedule: String,
    pub batch: usize,
    /// Of the training rows, those that are held out.
    pub held_out: usize,
    /// Complete ones of every chain.
    pub epochs: u64,
    /// Mean over chains of −log p of the last epoch's minibatches.
    pub train_nll: f64,
    /// Mean over chains of −log p of the held-out rows after the last epoch.
    pub validation_nll: f64,
    /// Means over the updates that lead to draws.
    pub configurational_temperature: f64,
    pub kinetic_temperature: f64,
    pub n_corrections: u64,
    /// Of the mean over chains of the predictions at each chain's running mean of draws; of samplers that have ended.
    pub metrics_of_mean: Option<Metrics>,
    /// Of the linearised network's predictions in closed form, the mean over chains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_in_closed_form: Option<Metrics>,
    /// How the Laplace approximation of each chain was fitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub laplace: Vec<Fit>,
}

/// Means over what is finite; NaN if nothing is.
fn mean(values: &[f64]) -> f64 {
    let finite = values.iter().filter(|value| value.is_finite());
    let (sum, count) = finite.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

/// Diagnostics and metrics.
///
/// # Errors
/// A run folder that cannot be read.
pub fn summarise(
    reader: &DrawReader,
    run: &Path,
    settings: &Settings,
    description: &DataDescription,
    method: MinibatchMethod,
) -> Result<Summary, Failure> {
    let schedule = settings.schedule();
    let draws = complete_draws(reader);
    let (mut steps, mut after_warmup, mut seconds) = (0, 0, 0.0_f64);
    for chain in 0..schedule.chains as u64 {
        if let Some(checkpoint) = checkpoint::load(run, chain).map_err(Failure::request)? {
            let document = read_document(&checkpoint).map_err(Failure::request)?;
            seconds = seconds.max(document.seconds);
            steps += document.update;
            after_warmup += document.update.saturating_sub(schedule.warmup);
        }
    }
    let total_draws = draws as f64 * schedule.chains as f64;
    let after_warmup = after_warmup as f64;
    let rates = Rates {
        draws: total_draws,
        steps: after_warmup,
        gradients: after_warmup,
        evaluations: after_warmup,
        seconds,
    };
    let mut summary = Summary::bare(settings, seconds);
    let found = predictions(reader, settings, description, draws, &rates)?;
    let (prediction, metrics) = (found.ess, found.metrics);
    summary.fit = found.fit;
    if method.is_sampler() {
        let weights = projections(reader, schedule.chains, draws, &rates)?;
        let rhats = [&weights, &prediction].into_iter().flatten();
        summary.rhat_max = spread(rhats.map(|ess| ess.rhat_max)).max;
        summary.ess = EssSummary {
            prediction,
            weights,
        };
    }
    let read = |group: &str, name: &str, selection: &Selection| {
        let read = reader.read::<f64>(group, name, selection);
        read.map(|all| all.values).map_err(Failure::request)
    };
    let of_draws = |name: &str| match draws {
        0 => Ok(Vec::new()),
        _ => read("sample_stats", name, &first(draws)),
    };
    let epochs = reader.groups().find(|group| group.name == EPOCHS);
    let epochs = epochs.and_then(|group| group.draws).unwrap_or(0);
    let of_last_epoch = |name: &str| match epochs {
        0 => Ok(f64::NAN),
        _ => {
            let last = Selection {
                draws: Some(epochs - 1..epochs),
                ..Selection::all()
            };
            read(EPOCHS, name, &last).map(|values| mean(&values))
        }
    };
    let own = &settings.minibatch;
    let is_complete = draws == schedule.draws;
    let metrics_of_mean = if is_complete && method.is_sampler() {
        static_metrics(reader, settings, description, OF_MEAN)?
    } else {
        None
    };
    let metrics_in_closed_form = if is_complete && settings.laplace.is_linearised(method) {
        static_metrics(reader, settings, description, CLOSED_FORM)?
    } else {
        None
    };
    summary.status = if is_complete {
        "complete"
    } else {
        "incomplete"
    };
    summary.coordinates = "standard".to_owned();
    summary.chains = schedule.chains;
    summary.draws = draws;
    summary.draws_planned = schedule.draws;
    summary.thin = schedule.thin;
    summary.warmup = schedule.warmup;
    summary.steps = steps;
    summary.steps_per_second = steps as f64 / seconds;
    summary.n_gradients = steps;
    summary.metrics = metrics;
    summary.metrics_draws = Recorded::of(reader, draws).draws;
    let step_sizes = of_draws("step_size")?;
    let of_chains = step_sizes.chunks(draws.max(1) as usize);
    summary.step_size = of_chains.map(|chain| chain.last().copied()).collect();
    let mut minibatch = MinibatchSummary {
        parametrisation: own.parametrisation().to_string(),
        preconditioner: own.preconditioner().to_string(),
        schedule: own
            .schedule
            .map_or_else(String::new, |schedule| schedule.to_string()),
        batch: own.batch.unwrap_or(0),
        held_out: own.validation.unwrap_or(0),
        epochs,
        train_nll: of_last_epoch("train_nll")?,
        validation_nll: of_last_epoch("validation_nll")?,
        configurational_temperature: mean(&of_draws("configurational_temperature")?),
        kinetic_temperature: mean(&of_draws("kinetic_temperature")?),
        n_corrections: of_draws("n_corrections")?.iter().sum::<f64>() as u64,
        metrics_of_mean,
        metrics_in_closed_form,
        laplace: match method.is_around_mode() {
            true => mode::read(run),
            false => Vec::new(),
        },
    };
    if !method.is_sampler() {
        // there is no temperature where there is no noise
        minibatch.configurational_temperature = f64::NAN;
        minibatch.kinetic_temperature = f64::NAN;
    }
    let evidences = minibatch.laplace.iter();
    let evidences = evidences.map(|fit| fit.log_marginal_likelihood);
    summary.log_marginal_likelihood = evidences.reduce(f64::max);
    let warnings = warnings(&summary, &minibatch, settings, method);
    summary.minibatch = Some(minibatch);
    summary.conclude(settings, warnings);
    Ok(summary)
}

/// Of the mean over chains of predictions that each chain has once.
fn static_metrics(
    reader: &DrawReader,
    settings: &Settings,
    description: &DataDescription,
    group: &str,
) -> Result<Option<Metrics>, Failure> {
    if description.test_rows == 0 {
        return Ok(None);
    }
    // a run that was killed just before its end has none
    let kind = Kind::new(&settings.model, description.is_classification);
    let Ok(mean) = kind.read(reader, group, &Selection::all()) else {
        return Ok(None);
    };
    let outputs = description.output_names.len();
    let chains = reader.chains() as usize;
    let spread = kind.spread(outputs);
    let variance = reader.read::<f64>(group, "variance", &Selection::all());
    let zeros = || vec![0.0; chains * description.test_rows * spread];
    let mut block = Block {
        kind,
        rows: description.test_rows,
        outputs,
        variance: variance.map_or_else(|_| zeros(), |all| all.values),
        mean,
    };
    block.add_noise(&noise_variances(reader, settings, description, 1)?);
    let truth: Targets = read_truth(reader, description)?;
    let mut gatherer = Gatherer::default();
    gatherer.add(&block, &truth, 0)?;
    gatherer.finish()
}

/// Warnings that stand beside the verdict's checks.
fn warnings(
    summary: &Summary,
    minibatch: &MinibatchSummary,
    settings: &Settings,
    method: MinibatchMethod,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |text: String| warnings.push(text);
    if summary.draws == 0 {
        return warnings;
    }
    if minibatch.n_corrections > 0 && method.is_around_mode() {
        warn(format!(
            "{} eigenpairs on the paths had not converged and were left out: lower --rank",
            minibatch.n_corrections
        ));
    } else if minibatch.n_corrections > 0 {
        warn(format!(
            "the preconditioner corrected {} numbers or factorisations: raise --epsilon",
            minibatch.n_corrections
        ));
    }
    if method.is_around_mode() {
        let unconverged: usize = minibatch.laplace.iter().map(|fit| fit.unconverged).sum();
        if unconverged > 0 {
            warn(format!(
                "{unconverged} eigenpairs of the curvature had not converged and are left out: lower --rank"
            ));
        }
        let layers = minibatch
            .laplace
            .iter()
            .map(|fit| fit.diagonal_layers)
            .max();
        if let Some(layers) = layers.filter(|&layers| layers > 0) {
            warn(format!(
                "{layers} layers have no Kronecker factors (batch normalisation): their diagonal was taken"
            ));
        }
        for (index, fit) in minibatch.laplace.iter().enumerate() {
            laplace_warnings(index, fit, settings, &mut warn);
        }
        warn(format!(
            "{method} draws independently around one mode of each chain: it says nothing of other modes, and its draws have no R-hat"
        ));
        return warnings;
    }
    if !method.is_sampler() {
        warn(format!(
            "{method} is no sampler: its draws are not the posterior's, and have no effective sample size or R-hat"
        ));
        return warnings;
    }
    let is_summable = match settings.minibatch.schedule {
        Some(Schedule::Cosine) => true,
        Some(Schedule::Fixed(schedule)) => schedule.is_summable(),
        None => false,
    };
    if is_summable {
        warn(format!(
            "the schedule {} ends at one point: the draws are an ensemble around a mode, not the posterior's; use constant or polynomial(0.33,UPDATES)",
            minibatch.schedule
        ));
    }
    let asked = settings.minibatch.temperature.unwrap_or(1.0);
    if asked != 1.0 {
        warn(format!(
            "the temperature is {asked}: the draws are of the posterior to the power 1/{asked}"
        ));
    }
    let found = minibatch.configurational_temperature;
    if !is_summable && (found / asked - 1.0).abs() > MOST_TEMPERATURE && asked > 0.0 {
        warn(format!(
            "the configurational temperature is {}, not {asked}: the chains are not at the posterior; lower --step-size, raise --epochs or \
             --warmup, or take larger minibatches",
            number(found)
        ));
    }
    warn("minibatches without a Metropolis correction have a bias that is proportional to the step size: halve --step-size and compare".to_owned());
    warnings
}

/// What a user should know of the fit of one chain's Laplace approximation.
fn laplace_warnings(index: usize, fit: &Fit, settings: &Settings, warn: &mut dyn FnMut(String)) {
    let is_at_mode = fit.nats_to_mode <= MOST_NATS;
    if !is_at_mode && fit.climb_gradients == 0 {
        warn(format!(
            "the weights that were given are not at a mode of the posterior with this prior precision: its logarithm can rise by about {} nats, and the log marginal likelihood is as much too low or more; train them on with --epochs, or give the --prior-precision that they were trained with",
            number(fit.nats_to_mode)
        ));
    } else if !is_at_mode {
        warn(format!(
            "training of chain {index} did not reach a mode: the logarithm of the posterior can rise by about {} nats, and the log marginal likelihood is as much too low or more; raise --epochs",
            number(fit.nats_to_mode)
        ));
    }
    let (Some(pairs), Some(left)) = (fit.eigenpairs, fit.left_out) else {
        return;
    };
    let rank = settings.laplace.rank.unwrap_or(0);
    let possible = rank.min(pairs + left.directions);
    if pairs + fit.unconverged < possible {
        warn(format!(
            "chain {index} has {pairs} of the {possible} eigenpairs that --rank {rank} asks for: the others are below --eigenvalue-threshold times the prior precision, or rounding (below 3e-6 of the largest eigenvalue with --precision f32, 3e-13 with f64)"
        ));
    }
    if left.log_determinant > MOST_NATS {
        warn(format!(
            "the {pairs} eigenpairs of chain {index} leave out {} of the curvature's trace, up to {} nats of its log det: variances are too large there, and the log marginal likelihood is too high by up to half of that; raise --rank, or use another --hessian-structure",
            number(left.trace),
            number(left.log_determinant)
        ));
    }
}

impl MinibatchSummary {
    /// The paragraphs that are its own, between the description of the data and the effective draws.
    pub fn in_words(&self, summary: &Summary) -> String {
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let mut text = format!(
            "{} likelihood, {} (preconditioner {}, {} parametrisation): {} chains x {} draws{}, {} updates in {} ({} a second)\n\n",
            summary.likelihood,
            summary.method,
            self.preconditioner,
            self.parametrisation,
            summary.chains,
            summary.draws,
            if summary.draws < summary.draws_planned {
                format!(" of {}", summary.draws_planned)
            } else {
                String::new()
            },
            summary.steps,
            duration(summary.seconds),
            number(summary.steps_per_second),
        );
        let mut rows = Vec::new();
        if let Some(metrics) = &summary.metrics {
            let (others, name) = match &self.metrics_in_closed_form {
                Some(closed) => (Some(closed), "closed form"),
                None => (self.metrics_of_mean.as_ref(), "their mean"),
            };
            let of_mean = others.map(Metrics::named);
            let of = match summary.metrics_draws < summary.draws {
                true => format!("{} of {} draws", summary.metrics_draws, summary.draws),
                false => "draws".to_owned(),
            };
            let mut header = row("predictions on the test rows", of);
            if of_mean.is_some() {
                header.push(name.to_owned());
            }
            rows.push(header);
            for (index, (name, value)) in metrics.named().into_iter().enumerate() {
                let mut cells = row(name, number(value));
                cells.extend(of_mean.as_ref().map(|of_mean| number(of_mean[index].1)));
                rows.push(cells);
            }
            text += &format!("{}\n\n", align(&rows));
        }
        let mut rows = vec![
            row("epochs", self.epochs.to_string()),
            row("rows of a minibatch", self.batch.to_string()),
            row("schedule", self.schedule.clone()),
        ];
        if self.held_out > 0 {
            rows.push(row("training rows held out", self.held_out.to_string()));
        }
        let steps: Vec<f64> = summary.step_size.iter().flatten().copied().collect();
        rows.push(row("step size at the end", number(mean(&steps))));
        for (name, value) in [
            ("train NLL, last epoch", self.train_nll),
            ("validation NLL, last epoch", self.validation_nll),
            (
                "configurational temperature",
                self.configurational_temperature,
            ),
            ("kinetic temperature", self.kinetic_temperature),
            ("R-hat, largest", summary.rhat_max),
        ] {
            if value.is_finite() {
                rows.push(row(name, number(value)));
            }
        }
        for (index, fit) in self.laplace.iter().enumerate() {
            let [least, most] = fit.prior_precision;
            let precision = match least == most {
                true => number(least),
                false => format!("{} to {}", number(least), number(most)),
            };
            let mut text = format!(
                "{}, prior precision {precision}, {} random weights",
                number(fit.log_marginal_likelihood),
                fit.parameters
            );
            if let Some(pairs) = fit.eigenpairs {
                text += &format!(", {pairs} eigenpairs");
            }
            if fit.products > 0 {
                text += &format!(" from {} products", fit.products);
            }
            if let Some(left) = fit.left_out.filter(|left| left.directions > 0) {
                text += &format!(
                    "; at most {} nats of log det in {} directions left out",
                    number(left.log_determinant),
                    left.directions
                );
            }
            let name = match self.laplace.len() {
                1 => "log marginal likelihood".to_owned(),
                _ => format!("log marginal likelihood, chain {index}"),
            };
            rows.push(row(&name, text));
            let mut text = number(fit.nats_to_mode);
            if fit.climb_gradients > 0 {
                text += &format!(
                    ", after rising by {} in {} gradients of all rows",
                    number(fit.nats_climbed),
                    fit.climb_gradients
                );
            }
            let name = match self.laplace.len() {
                1 => "nats below the mode".to_owned(),
                _ => format!("nats below the mode, chain {index}"),
            };
            rows.push(row(&name, text));
        }
        if self.n_corrections > 0 {
            rows.push(row("corrections", self.n_corrections.to_string()));
        }
        text + &format!("{}\n\n", align(&rows))
    }
}
