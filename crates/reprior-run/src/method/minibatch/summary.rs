//! The summary of a run of a minibatch method.

use reprior::diagnostics::Spread;
use reprior_io::run::{Selection, checkpoint};

use super::record::read_document;
use super::schema::{EPOCHS, OF_MEAN};
use crate::failure::Failure;
use crate::predictive::{Gatherer, Metrics, PredictiveDraws};
use crate::read::{EssSummary, Rates, Recorded};
use crate::settings::{MinibatchMethod, Settings, StepSizeChoice};
use crate::summary::{MinibatchSummary, Summary};
use crate::words::number;

/// Configurational temperatures further from that of the sampler are worth a warning.
const MOST_TEMPERATURE: f64 = 0.1;

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
    run: &Recorded,
    method: MinibatchMethod,
) -> Result<(Summary, MinibatchSummary), Failure> {
    let (settings, draws) = (&run.settings, run.draws);
    let (rates, steps) = rates(run)?;
    let seconds = rates.seconds;
    let found = run.predictions(&rates)?;
    let (mut ess, mut rhat_max) = (EssSummary::default(), f64::NAN);
    if method.is_sampler() {
        ess.weights = run.projections(&rates)?;
        (ess.prediction, ess.row_noise) = (found.ess, found.row_noise);
        let rhats = [&ess.weights, &ess.prediction, &ess.row_noise]
            .into_iter()
            .flatten();
        rhat_max = Spread::of(rhats.map(|ess| ess.rhat_max)).max;
    }
    let step_sizes = run.read("sample_stats", "step_size")?;
    let of_chains = step_sizes.chunks(draws.max(1) as usize);
    let minibatch = of_updates(run, method)?;
    let mut noise = run.noise_scales()?;
    if !method.is_sampler() {
        // what is trained need not agree
        for scale in &mut noise {
            (scale.rhat, scale.ess, scale.disagrees) = (f64::NAN, f64::NAN, false);
        }
    }
    let summary = Summary {
        noise,
        coordinates: "standard".to_owned(),
        steps,
        seconds,
        steps_per_second: steps as f64 / seconds,
        n_gradients: steps,
        step_size: of_chains.map(|chain| chain.last().copied()).collect(),
        rhat_max,
        ess,
        metrics: found.metrics,
        metrics_by_target: found.metrics_by_target,
        metrics_draws: run.spacing().draws,
        modes: found.modes,
        fit: found.fit,
        ..Summary::new(settings, draws)
    };
    Ok((summary, minibatch))
}

/// What effective draws are divided by, and the updates of all chains.
fn rates(run: &Recorded) -> Result<(Rates, u64), Failure> {
    let schedule = run.settings.schedule();
    let (mut steps, mut after_warmup, mut seconds) = (0, 0, 0.0_f64);
    for chain in 0..schedule.chains as u64 {
        if let Some(checkpoint) = checkpoint::load(&run.files, chain).map_err(Failure::request)? {
            let document = read_document(&checkpoint).map_err(Failure::request)?;
            seconds = seconds.max(document.seconds);
            steps += document.update;
            after_warmup += document.update.saturating_sub(schedule.warmup);
        }
    }
    let after_warmup = after_warmup as f64;
    let rates = Rates {
        draws: run.draws as f64 * schedule.chains as f64,
        steps: after_warmup,
        gradients: after_warmup,
        evaluations: after_warmup,
        seconds,
    };
    Ok((rates, steps))
}

/// What the settings and the statistics of updates and epochs say.
fn of_updates(run: &Recorded, method: MinibatchMethod) -> Result<MinibatchSummary, Failure> {
    let epochs = run.reader.groups().find(|group| group.name == EPOCHS);
    let epochs = epochs.and_then(|group| group.draws).unwrap_or(0);
    let of_last_epoch = |name: &str| {
        let last = Selection {
            draws: Some(epochs.saturating_sub(1)..epochs),
            ..Selection::all()
        };
        match epochs {
            0 => Ok(f64::NAN),
            _ => run
                .read_selected(EPOCHS, name, &last)
                .map(|values| mean(&values)),
        }
    };
    // there is no temperature where there is no noise
    let temperature = |name: &str| match method.is_sampler() {
        true => run.read("sample_stats", name).map(|values| mean(&values)),
        false => Ok(f64::NAN),
    };
    let corrections = run.read("sample_stats", "n_corrections")?;
    let own = &run.settings.minibatch;
    // the mean of draws has no noise of rows
    let has_mean = run.draws == run.settings.schedule().draws
        && method.is_sampler()
        && !run.settings.model.likelihood().has_row_noise();
    Ok(MinibatchSummary {
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
        configurational_temperature: temperature("configurational_temperature")?,
        kinetic_temperature: temperature("kinetic_temperature")?,
        n_corrections: corrections.iter().sum::<f64>() as u64,
        metrics_of_mean: match has_mean {
            true => static_metrics(run, OF_MEAN)?,
            false => None,
        },
        metrics_in_closed_form: None,
        laplace: Vec::new(),
    })
}

/// Of the mean over chains of predictions that each chain has once.
///
/// # Errors
/// A run folder that cannot be read.
pub fn static_metrics(run: &Recorded, group: &str) -> Result<Option<Metrics>, Failure> {
    let (kind, rows) = (run.kind, run.description.test_rows);
    if rows == 0 || run.tests_nothing() {
        return Ok(None);
    }
    // a run that was killed just before its end has none
    let read = |name: &str| run.read_selected(group, name, &Selection::all());
    let Ok(mean) = read(kind.variable()) else {
        return Ok(None);
    };
    let outputs = run.outputs();
    let zeros = || vec![0.0; run.chains() * rows * kind.spread(outputs)];
    let mut block = PredictiveDraws {
        kind,
        rows,
        outputs,
        variance: read("variance").unwrap_or_else(|_| zeros()),
        mean,
    };
    block.add_noise(&mean_noise_variances(run)?);
    let truth = run.truth()?;
    let mut gatherer = Gatherer::default();
    gatherer.add(&block, &truth, 0)?;
    gatherer.finish()
}

/// Means of squared σ over the draws of each chain, one for each output.
fn mean_noise_variances(run: &Recorded) -> Result<Vec<f64>, Failure> {
    let spread = run.kind.spread(run.outputs());
    let own = run.noise_variances(run.draws)?;
    let of_chains = own.chunks((run.draws as usize * spread).max(1));
    let mean = |chain: &[f64], output: usize| {
        let values = chain.iter().skip(output).step_by(spread);
        values.sum::<f64>() / run.draws as f64
    };
    let means = of_chains.flat_map(|chain| (0..spread).map(move |output| mean(chain, output)));
    Ok(means.collect())
}

/// Warnings that stand beside the verdict's checks.
pub fn warnings(
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
    if minibatch.n_corrections > 0 {
        warn(format!(
            "the preconditioner corrected {} numbers or factorisations: raise --epsilon",
            minibatch.n_corrections
        ));
    }
    if !method.is_sampler() {
        warn(format!(
            "{method} is no sampler: its draws are not the posterior's, and have no effective sample size or R-hat"
        ));
        return warnings;
    }
    let is_summable = match settings.minibatch.schedule {
        Some(StepSizeChoice::Cosine) => true,
        Some(StepSizeChoice::Fixed(schedule)) => schedule.is_summable(),
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
