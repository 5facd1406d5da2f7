//! `--method smc`: particles annealed from the prior to the posterior, whose draws are the particles of each replicate, with the log evidence.
//!
//! A chain is a replicate here, its draws are the particles ([`reprior::annealing`]), and from draw to draw "transitions" are those at each
//! temperature; `hmc-infinite` makes them. Particles are written when they are draws of the posterior. A replicate that is interrupted before begins
//! anew, to the same particles: an ended one is kept.

use std::sync::Arc;

use reprior::annealing::{Annealing, AnnealingError, AnnealingSettings};
use reprior::chain::driver::ChainDriver;
use reprior::chain::moments::WeightMoments;
use reprior::chain::snapshot::Snapshot;
use reprior::chain::{DriverError, Observer, Progress, ProgressDetails, Schedule, Statistics};
use reprior::model::Model;
use reprior::posterior::Posterior;
use reprior::sampler::{Method, State};
use reprior_io::run::{Checkpoint, DrawStore};

use super::checkpoint::{Annealed, restore};
use super::record::{ChainRecorder, RecordError};
use super::run::recorders;
use super::sampler_settings;
use crate::failure::Failure;
use crate::method::Plan;
use crate::method::drive::{RunContext, write_moments};
use crate::problem::Problem;
use crate::settings::Settings;
use crate::stored::Stored;

/// What moves particles.
pub const KERNEL: Method = Method::HmcInfinite;
/// Replicates, particles of each and transitions at each temperature, unless told otherwise.
pub const DEFAULT_LENGTHS: [u64; 3] = [4, 200, 2];

/// Steps of progress on the way to the posterior.
const STEPS_OF_LADDER: u64 = 1000;

/// How the particles of these settings are annealed.
pub fn annealing_settings(settings: &Settings) -> AnnealingSettings {
    let schedule = settings.schedule();
    AnnealingSettings {
        particles: usize::try_from(schedule.draws).unwrap_or(usize::MAX),
        transitions: schedule.thin,
        sampler: sampler_settings(settings, KERNEL),
        seed: schedule.seed,
        ..AnnealingSettings::default()
    }
}

/// One replicate.
enum Replicate<R: Stored> {
    /// On its way, or handing its particles over.
    Running(Box<Running<R>>),
    /// Of an earlier process.
    Complete(usize, WeightMoments),
}

struct Running<R: Stored> {
    number: usize,
    schedule: Schedule,
    annealing: Annealing<Posterior<R>>,
    recorder: ChainRecorder<R>,
    drawn: u64,
}

impl<R: Stored> Running<R> {
    /// Of all transitions of all particles so far, the pilot's included.
    fn statistics(&self) -> Statistics {
        let mut all = Statistics::default();
        let pilot = self.annealing.pilot().unwrap_or_default();
        for rung in pilot.iter().chain(self.annealing.rungs()) {
            let made = rung.particles as u64 * self.schedule.thin;
            all.transitions += made;
            all.acceptance_sum += rung.acceptance_rate * made as f64;
            all.divergences += rung.divergences;
            all.n_evaluations += rung.n_evaluations;
            all.n_gradients += rung.n_gradients;
            all.n_steps += rung.n_steps;
            all.step_size = rung.step_size;
        }
        all
    }

    /// Of the transitions that a particle made at the last temperature, which is as far as they are told apart.
    fn of_last_rung(&self) -> Statistics {
        let transitions = self.schedule.thin;
        let rung = self.annealing.rungs().last().copied().unwrap_or_default();
        Statistics {
            transitions,
            acceptance_sum: rung.acceptance_rate * transitions as f64,
            step_size: rung.step_size,
            ..Statistics::default()
        }
    }

    fn draw(&mut self) -> Result<(), RecordError> {
        let statistics = self.of_last_rung();
        let at = usize::try_from(self.drawn).unwrap_or(usize::MAX);
        let Some((target, particle)) = self.annealing.target_and_particle(at) else {
            return Ok(());
        };
        self.drawn += 1;
        let log_ratio = particle.state.log_ratio;
        let squares = particle.state.position.iter().map(|z| z.to_f64().powi(2));
        let log_density = log_ratio - 0.5 * squares.sum::<f64>();
        let transition = self.schedule.warmup + self.drawn * self.schedule.thin;
        let densities = [log_ratio, log_density];
        let state = &particle.state;
        self.recorder
            .draw(target, state, &statistics, densities, transition)
    }

    /// Keeps what there is to know of a replicate that is complete.
    fn keep(&mut self) -> Result<(), RecordError> {
        let state = match self.annealing.particles().last() {
            Some(particle) => State {
                momentum: Vec::new(),
                ..particle.state.clone()
            },
            None => return Ok(()),
        };
        let families = self.annealing.families() as u64;
        self.recorder.annealed = Some(Annealed {
            log_evidence: self.annealing.log_evidence() + self.recorder.left_out(),
            temperatures: self.annealing.rungs().len() as u64,
            families,
        });
        let sampling = self.statistics();
        self.recorder.checkpoint(&Snapshot {
            transition: self.schedule.transitions(),
            state,
            step_size: sampling.step_size,
            tuned: None,
            adaptation: None,
            failures: 0,
            since_record: Statistics::default(),
            warmup: Statistics::default(),
            sampling,
            ladder: None,
        })
    }
}

impl<R: Stored> ChainDriver for Replicate<R> {
    type Error = RecordError;

    fn advance(&mut self, _: &(dyn Fn() -> bool + Sync)) -> Result<(), DriverError<RecordError>> {
        let Self::Running(own) = self else {
            return Ok(());
        };
        let chain = own.number;
        if own.annealing.is_done() {
            return own
                .draw()
                .map_err(|error| DriverError::Observer { chain, error });
        }
        own.annealing
            .advance()
            .map_err(|error: AnnealingError| DriverError::Target {
                chain,
                transition: own.annealing.rungs().len() as u64,
                reason: error.to_string(),
            })
    }

    fn checkpoint(&mut self) -> Result<(), DriverError<RecordError>> {
        match self {
            Self::Running(own) if own.drawn == own.schedule.draws => {
                let chain = own.number;
                own.keep()
                    .map_err(|error| DriverError::Observer { chain, error })
            }
            _ => Ok(()),
        }
    }

    fn progress(&self) -> Progress {
        let done = |chain, total| Progress {
            chain,
            transition: total,
            total,
            is_warmup: false,
            step_size: None,
            news: ProgressDetails::Transitions {
                acceptance_rate: f64::NAN,
                log_ratio: f64::NAN,
                divergences: 0,
            },
        };
        match self {
            Self::Complete(chain, _) => done(*chain, STEPS_OF_LADDER),
            Self::Running(own) => {
                let total = STEPS_OF_LADDER + own.schedule.draws;
                let rung = own.annealing.rungs().last().copied().unwrap_or_default();
                // the first temperatures are orders of magnitude apart
                let climbed = 0.2 * own.annealing.beta().sqrt().sqrt();
                let climbed = match own.annealing.pilot() {
                    None => climbed,
                    Some(_) => 0.2 + 4.0 * climbed,
                };
                let particle = own.annealing.particles().first();
                Progress {
                    transition: (STEPS_OF_LADDER as f64 * climbed) as u64 + own.drawn,
                    is_warmup: !own.annealing.is_done(),
                    step_size: rung.step_size,
                    news: ProgressDetails::Transitions {
                        acceptance_rate: rung.acceptance_rate,
                        log_ratio: particle.map_or(f64::NAN, |particle| particle.state.log_ratio),
                        divergences: rung.divergences,
                    },
                    ..done(own.number, total)
                }
            }
        }
    }
}

/// Runs the replicates to their end, or until they are stopped.
///
/// # Errors
/// A failed run, whose draws are kept; a run that was stopped.
pub fn sample<R: Stored>(
    problem: &Problem,
    plan: &Plan,
    place: &RunContext<'_>,
) -> Result<(), Failure> {
    let store = place.open(problem, &plan.schema)?;
    let checkpoints = place.checkpoints(store.chains())?;
    if place.has_ended(&checkpoints)? {
        return Ok(());
    }
    let model = Arc::new(problem.sampled_model::<R>(&problem.arranged(&problem.test.inputs))?);
    let replicates = replicates(problem, &model, &checkpoints, &store)?;
    place.drive(replicates, place.options.threads(), |replicates| {
        let moments = replicates.into_iter().map(|replicate| match replicate {
            Replicate::Running(own) => own.recorder.moments,
            Replicate::Complete(_, moments) => moments,
        });
        write_moments(&moments.collect::<Vec<_>>(), &store)
    })
}

fn replicates<R: Stored>(
    problem: &Problem,
    model: &Arc<Model<R>>,
    checkpoints: &[Option<Checkpoint>],
    store: &DrawStore,
) -> Result<Vec<Replicate<R>>, Failure> {
    let settings = &problem.settings;
    let own = annealing_settings(settings);
    let dimension = Posterior::dimension(model, settings.coordinates());
    let parameters = model.inner_parameters() + model.architecture.readout_parameters();
    let mut make = recorders(problem, model, checkpoints)?;
    let mut replicates = Vec::new();
    let numbers = settings.chain_numbers().into_iter();
    for ((index, number), checkpoint) in numbers.enumerate().zip(checkpoints) {
        if let Some(checkpoint) = checkpoint {
            let (_, moments) =
                restore::<R>(checkpoint, dimension, parameters).map_err(Failure::run)?;
            // shows that its draws are there
            let writer = store.writer_at(index as u64, checkpoint.cursor());
            writer.map_err(Failure::run)?;
            replicates.push(Replicate::Complete(number, moments));
            continue;
        }
        let target =
            Posterior::new(Arc::clone(model), settings.posterior()).map_err(Failure::request)?;
        let annealing =
            Annealing::start(&own, number as u64, vec![target]).map_err(Failure::run)?;
        let writer = store.writer(index as u64).map_err(Failure::run)?;
        let recorder = make(number, writer, WeightMoments::new(parameters));
        replicates.push(Replicate::Running(Box::new(Running {
            number,
            schedule: settings.schedule(),
            annealing,
            recorder,
            drawn: 0,
        })));
    }
    Ok(replicates)
}
