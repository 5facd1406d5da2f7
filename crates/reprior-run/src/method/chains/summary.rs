//! The summary of chains on all data.

use reprior::chain::Statistics;
use reprior::diagnostics::Spread;
use reprior::sampler::Method;
use reprior_io::run::checkpoint;

use super::checkpoint::{Annealed, read_document};
use super::ladder::LadderDocument;
use crate::failure::Failure;
use crate::read::{EssSummary, PredictionDiagnostics, Rates, Recorded};
use crate::summary::{EvidenceSummary, ExchangeSummary, Summary};

/// Diagnostics and metrics, and warnings that stand beside the verdict.
///
/// # Errors
/// A run folder that cannot be read.
pub fn summarise(run: &Recorded, method: Method) -> Result<(Summary, Vec<String>), Failure> {
    let (settings, draws) = (&run.settings, run.draws);
    let schedule = settings.schedule();
    let (mut warmup, mut sampling) = (Statistics::default(), Statistics::default());
    let mut step_size = Vec::new();
    let (mut dimension, mut annealed, mut ladders) = (0, Vec::new(), Vec::new());
    let (mut seconds, mut can_go_on): (f64, bool) = (0.0, false);
    for chain in 0..schedule.chains as u64 {
        if let Some(checkpoint) = checkpoint::load(&run.files, chain).map_err(Failure::request)? {
            let document = read_document(&checkpoint).map_err(Failure::request)?;
            seconds = seconds.max(document.seconds);
            can_go_on = !checkpoint.is_finished();
            step_size.push(document.sampling.step_size);
            dimension = dimension.max(document.dimension);
            annealed.extend(document.annealed.clone());
            ladders.extend(document.ladder.clone());
            warmup.merge(&document.warmup);
            sampling.merge(&document.sampling);
        }
    }
    let steps = warmup.transitions + sampling.transitions;
    let total_draws = draws as f64 * schedule.chains as f64;
    let rates = Rates {
        draws: total_draws,
        steps: match annealed.is_empty() {
            true => total_draws * schedule.thin as f64,
            false => sampling.transitions as f64,
        },
        gradients: sampling.n_gradients as f64,
        evaluations: (sampling.n_gradients + sampling.n_evaluations) as f64,
        seconds,
    };
    let noise = run.noise_scales()?;
    let weight_scales = run.weight_scales()?;
    let weights = run.projections(&rates)?;
    let PredictionDiagnostics {
        ess: prediction,
        row_noise,
        metrics,
        metrics_by_target,
        modes,
        fit,
    } = run.predictions(&rates)?;
    let rhats = [&weights, &prediction, &row_noise]
        .into_iter()
        .flatten()
        .map(|ess| ess.rhat_max)
        .chain(noise.iter().map(|noise| noise.rhat))
        .chain(weight_scales.iter().map(|scale| scale.rhat));
    let clamped = run.read("sample_stats", "n_clamped")?;
    let determinant = settings.sampler.determinant;
    let energy_error = run.energy_errors()?;
    let of_steps = energy_error.as_ref().filter(|_| !method.is_exact());
    let energy_variance = of_steps
        .filter(|_| dimension > 0)
        .map(|errors| (errors.sd.powi(2) + errors.mean.powi(2)) / dimension as f64);
    let evidence = evidence(&annealed).or_else(|| evidence_of_ladders(&ladders));
    let summary = Summary {
        coordinates: settings.coordinates().to_string(),
        determinant: determinant.map(|determinant| determinant.description()),
        steps,
        seconds,
        steps_per_second: steps as f64 / seconds,
        can_go_on: can_go_on && annealed.is_empty(),
        acceptance_rate: sampling.acceptance_rate(),
        step_size,
        transitions: sampling.transitions,
        divergences: sampling.divergences,
        n_evaluations: warmup.n_evaluations + sampling.n_evaluations,
        n_gradients: warmup.n_gradients + sampling.n_gradients,
        n_jitter: warmup.n_jitter + sampling.n_jitter,
        n_clamped: clamped.iter().sum::<f64>() as u64,
        energy_error,
        energy_variance,
        evidence,
        exchanges: exchanges(&ladders),
        stationarity: run.stationarity()?,
        rhat_max: Spread::of(rhats).max,
        noise,
        weight_scales,
        ess: EssSummary {
            prediction,
            row_noise,
            weights,
        },
        metrics,
        metrics_by_target,
        metrics_draws: run.spacing().draws,
        modes,
        fit,
        ..Summary::new(settings, draws)
    };
    let warnings = summary.chain_warnings(settings, method, &sampling);
    Ok((summary, warnings))
}

/// The log evidence of replicates, where there are any.
fn evidence(replicates: &[Annealed]) -> Option<EvidenceSummary> {
    let values: Vec<f64> = replicates.iter().map(|own| own.log_evidence).collect();
    let temperatures = replicates.iter().map(|own| own.temperatures).max()?;
    let families = replicates.iter().map(|own| own.families).min();
    EvidenceSummary::of(values, temperatures, families)
}

/// The same of chains with replicas, once all have one.
fn evidence_of_ladders(ladders: &[LadderDocument]) -> Option<EvidenceSummary> {
    let values: Option<Vec<f64>> = ladders.iter().map(|own| own.log_evidence).collect();
    // one of a pair more than there are replicas, and one more temperature
    let temperatures = ladders.iter().map(|own| own.refusals.len() + 1).max()?;
    EvidenceSummary::of(values?, temperatures as u64, None)
}

/// What became of the exchanges of all chains, once every pair has tried one.
fn exchanges(ladders: &[LadderDocument]) -> Option<ExchangeSummary> {
    let have_tried = ladders.iter().all(LadderDocument::has_tried);
    let pairs = have_tried.then(|| ladders.first())??.refusals.len();
    let refusals = (0..pairs).map(|pair| {
        let of_chains = ladders.iter().filter_map(|own| own.refusals.get(pair));
        of_chains.sum::<f64>() / ladders.len() as f64
    });
    let refusals: Vec<f64> = refusals.collect();
    Some(ExchangeSummary {
        replicas: pairs.saturating_sub(1) as u64,
        barrier: refusals.iter().sum(),
        refusals,
        arrivals: ladders.iter().map(|own| own.arrivals).collect(),
    })
}
