//! Chains in memory: what they drew, whether they agree, what they predict.

use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::prediction::{DrawRecords, Predicted, Predictive};
use super::problem::FitProblem;
use super::{AsRow, FitError, SampleSettings};
use crate::chain::snapshot::Snapshot;
use crate::chain::{Chain, Control, Observer, Progress, RunOutcome, Schedule, Statistics, run};
use crate::compute::{Purpose, Stream, share};
use crate::diagnostics::{Convergence, Estimator, Spread};
use crate::posterior::{Coordinates, EvaluationError, Posterior, PosteriorSettings, Recorder};
use crate::sampler::State;

/// Training rows at which the function is watched for the summary.
const WATCHED: usize = 50;

/// Sampled: draws of the posterior, in memory.
///
/// `P` is what it predicts: [`Prediction`](super::Prediction) or [`ClassProbabilities`](super::ClassProbabilities).
pub struct Fit<P> {
    problem: FitProblem,
    coordinates: PosteriorSettings,
    seed: u64,
    threads: usize,
    /// Of each chain the draws that were kept, with their numbers.
    positions: Vec<Vec<(u64, Vec<f64>)>>,
    summary: FitSummary,
    predicted: PhantomData<fn() -> P>,
}

/// Whether the chains agree, by the function's values at some of the training inputs and the learned noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitSummary {
    /// Chains.
    pub chains: usize,
    /// Draws of each.
    pub draws: u64,
    /// What the draws allow to say of the worst of these variables.
    pub convergence: Convergence,
    /// The largest rank-normalised R-hat; NaN of one chain.
    pub rhat: f64,
    /// The smallest effective sample size, in the bulk or a tail, of all chains together.
    pub ess: f64,
    /// Mean acceptance rate after warm-up.
    pub acceptance_rate: f64,
    /// Transitions after warm-up that diverged or met an evaluation that failed.
    pub divergences: u64,
}

impl fmt::Display for FitSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = match self.convergence {
            Convergence::Converged => "the chains agree",
            Convergence::Short => "the chains agree, but draws are few: quantiles are rough",
            Convergence::Unknown => "whether they agree is not known: take two chains or more",
            Convergence::TooShort => "too few effective draws: take more",
            Convergence::Disagreeing => "the chains disagree: do not rely on the predictions",
        };
        let Self {
            chains,
            draws,
            rhat,
            ess,
            ..
        } = self;
        let (rate, divergences) = (self.acceptance_rate, self.divergences);
        write!(
            f,
            "{chains} chains of {draws} draws: {said} (R-hat {rhat:.3}, effective draws {ess:.0}, acceptance rate {rate:.2}, divergences {divergences})"
        )
    }
}

/// Keeps some positions of one chain, and the function's values of every draw.
struct Keep {
    recorder: Recorder<f64>,
    schedule: Schedule,
    keep: u64,
    chain: u64,
    positions: Vec<(u64, Vec<f64>)>,
    /// Draw by draw: values of the function, then noise scales.
    watched: Vec<f64>,
    failure: Option<FitError>,
}

impl Observer<Posterior<f64>> for Keep {
    type Error = Infallible;

    fn warmup(&mut self, _: &Statistics, _: [f64; 2]) -> Result<(), Infallible> {
        Ok(())
    }

    fn draw(
        &mut self,
        target: &mut Posterior<f64>,
        state: &State<f64>,
        _: &Statistics,
        _: [f64; 2],
        transition: u64,
    ) -> Result<(), Infallible> {
        let Schedule {
            warmup,
            draws,
            thin,
            seed,
            ..
        } = self.schedule;
        let draw = (transition - warmup) / thin - 1;
        let kept =
            |count: u64| u128::from(count) * u128::from(self.keep.min(draws)) / u128::from(draws);
        if kept(draw + 1) > kept(draw) {
            self.positions.push((draw, state.position.clone()));
        }
        let mut stream = Stream::new(seed, self.chain, Purpose::Recording, transition);
        match self.recorder.record(target, &state.position, &mut stream) {
            Ok(record) => {
                self.watched.extend_from_slice(&record.mean);
                self.watched.extend_from_slice(&record.noise);
            }
            Err(error) => self.failure = Some(error.into()),
        }
        Ok(())
    }

    fn checkpoint(&mut self, _: &Snapshot<f64>) -> Result<(), Infallible> {
        Ok(())
    }
}

impl<P: Predicted> Fit<P> {
    pub(super) fn sample(
        problem: FitProblem,
        settings: &SampleSettings,
        driven: Option<(Control<'_>, &(dyn Fn(Progress) + Sync))>,
    ) -> Result<Self, FitError> {
        let schedule = settings.schedule()?;
        let model = problem.model(&problem.some_inputs(WATCHED))?;
        let of_likelihood = if model.likelihood.is_gaussian() {
            Coordinates::Marginal
        } else {
            Coordinates::Repriorised
        };
        let coordinates = PosteriorSettings {
            seed: schedule.seed,
            ..settings.coordinates.unwrap_or(of_likelihood).into()
        };
        let mut chains = Vec::with_capacity(schedule.chains);
        for index in 0..schedule.chains {
            let target = Posterior::new(Arc::clone(&model), coordinates)?;
            let chain = Chain::start(index, schedule, &settings.sampler, target)?;
            let keep = Keep {
                recorder: Recorder::new(Arc::clone(&model)),
                schedule,
                keep: settings.keep,
                chain: index as u64,
                positions: Vec::new(),
                watched: Vec::new(),
                failure: None,
            };
            chains.push((chain, keep));
        }
        let never = AtomicBool::new(false);
        let (control, progress) = driven.unwrap_or((
            Control {
                threads: settings.threads,
                checkpoint_every: Duration::MAX,
                stop: &never,
            },
            &|_| {},
        ));
        let (chains, outcome) = run(chains, control, progress);
        if outcome.map_err(|error| FitError::Run(error.to_string()))? == RunOutcome::Stopped {
            return Err(FitError::Stopped);
        }
        let mut statistics = Statistics::default();
        let (mut positions, mut watched) = (Vec::new(), Vec::new());
        for (chain, keep) in chains {
            if let Some(failure) = keep.failure {
                return Err(failure);
            }
            statistics.merge(&chain.snapshot().sampling);
            positions.push(keep.positions);
            watched.push(keep.watched);
        }
        Ok(Self {
            problem,
            coordinates,
            seed: schedule.seed,
            threads: settings.threads,
            positions,
            summary: summary(&schedule, &watched, &statistics)?,
            predicted: PhantomData,
        })
    }

    /// Whether the chains agree.
    pub fn summary(&self) -> FitSummary {
        self.summary
    }

    /// Positions that were kept, chain by chain, in the coordinates of the chains.
    pub fn positions(&self) -> impl Iterator<Item = impl Iterator<Item = &[f64]>> {
        let chains = self.positions.iter();
        chains.map(|chain| chain.iter().map(|(_, position)| position.as_slice()))
    }

    /// Predicts for new inputs, in their own units, with as many columns as those that were trained on.
    ///
    /// # Errors
    /// Inputs that do not fit, or that are not finite.
    pub fn predict<X: AsRow>(&self, inputs: &[X]) -> Result<P, FitError> {
        let (rows, inputs) = self.problem.standardised(inputs)?;
        let model = self.problem.model(&inputs)?;
        let positions = || {
            let chains = (0..).zip(&self.positions);
            chains.flat_map(|(chain, kept)| kept.iter().map(move |(draw, z)| (chain, *draw, z)))
        };
        let states: Result<Vec<_>, FitError> = (0..self.threads.max(1))
            .map(|_| {
                let recorder = Recorder::new(Arc::clone(&model));
                Ok((
                    Posterior::new(Arc::clone(&model), self.coordinates)?,
                    recorder,
                ))
            })
            .collect();
        let mut draws: Vec<Result<Predictive, EvaluationError>> = Vec::new();
        draws.resize_with(positions().count(), || Ok(Predictive::default()));
        let tasks: Vec<_> = positions().zip(&mut draws).collect();
        share(states?, tasks.into_iter(), |(posterior, recorder), task| {
            let ((chain, draw, position), out) = task;
            let mut stream = Stream::new(self.seed, chain, Purpose::Prediction, draw);
            let record = recorder.record(posterior, position, &mut stream);
            *out = record.map(|record| Predictive {
                mean: record.mean.clone(),
                variance: record.variance.clone(),
                noise: record.noise.clone(),
            });
        });
        let draws = draws.into_iter().collect::<Result<_, _>>()?;
        let problem = &self.problem;
        P::of(DrawRecords {
            problem,
            rows,
            draws,
        })
    }
}

/// Of what every chain's draws were `watched` for.
fn summary(
    schedule: &Schedule,
    watched: &[Vec<f64>],
    statistics: &Statistics,
) -> Result<FitSummary, FitError> {
    let (chains, draws) = (schedule.chains, schedule.draws as usize);
    let variables = watched[0].len() / draws;
    let read = |variable: usize, out: &mut [f64]| {
        for (out, chain) in out.chunks_exact_mut(draws).zip(watched) {
            let own = chain.iter().skip(variable).step_by(variables);
            out.iter_mut()
                .zip(own)
                .for_each(|(out, value)| *out = *value);
        }
    };
    let summaries = Estimator::summarise(variables, chains, draws, read)
        .map_err(|error| FitError::Run(error.to_string()))?;
    let found = summaries.iter();
    let convergence = found.map(|one| Convergence::of(one, chains)).max();
    Ok(FitSummary {
        chains,
        draws: schedule.draws,
        convergence: convergence.unwrap_or(Convergence::Unknown),
        rhat: Spread::over(&summaries, |one| one.rhat).max,
        ess: Spread::over(&summaries, |one| one.ess_bulk.min(one.ess_tail)).min,
        acceptance_rate: statistics.acceptance_rate(),
        divergences: statistics.divergences,
    })
}
