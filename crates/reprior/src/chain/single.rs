//! One chain: a target, a sampler, and where they are.

use thiserror::Error;

use super::{Observer, Progress, RunError, Schedule, Statistics};
use crate::compute::{Purpose, Real, Stream, norm_squared};
use crate::posterior::{EvaluationError, Target};
use crate::sampler::{DualAveraging, Sampler, SamplerSettings, State};

/// A chain of draws from a target.
pub struct Chain<T: Target> {
    index: usize,
    schedule: Schedule,
    target: T,
    sampler: Box<dyn Sampler<T::Real>>,
    snapshot: Snapshot<T::Real>,
    corrections: u64,
}

/// All that a chain needs to go on: its exact state.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot<R> {
    /// Transitions made.
    pub transition: u64,
    /// Position, ℓ, gradient.
    pub state: State<R>,
    /// Step size in use; absent for methods without one.
    pub step_size: Option<f64>,
    /// The adaptation, while there is one.
    pub adaptation: Option<DualAveraging>,
    /// Statistics since the last record.
    pub since_record: Statistics,
    /// Statistics of the whole warm-up.
    pub warmup: Statistics,
    /// Statistics of everything after it.
    pub sampling: Statistics,
}

/// No starting position was found.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum StartError {
    /// Every draw of the prior that was tried failed.
    #[error(
        "chain {chain}: none of {tries} draws from the prior could be evaluated; the last said: {reason}"
    )]
    NoStart {
        /// Which chain.
        chain: usize,
        /// How many were tried.
        tries: u64,
        /// What the last one said.
        reason: String,
    },
    /// The target said that nothing will help.
    #[error("chain {chain}: {reason}")]
    Fatal {
        /// Which chain.
        chain: usize,
        /// What the target said.
        reason: String,
    },
    /// A snapshot of another target.
    #[error("chain {chain}: the checkpoint has {found} coordinates, the target has {expected}")]
    Dimension {
        /// Which chain.
        chain: usize,
        /// Coordinates in the snapshot.
        found: usize,
        /// Coordinates of the target.
        expected: usize,
    },
    /// A snapshot of another method.
    #[error(
        "chain {chain}: the checkpoint was made by another method: its gradient has {found} coordinates, not {expected}"
    )]
    Method {
        /// Which chain.
        chain: usize,
        /// Coordinates of the gradient in the snapshot.
        found: usize,
        /// Coordinates of the gradient that the method keeps.
        expected: usize,
    },
}

/// Draws from the prior that are tried as a start.
const START_TRIES: u64 = 100;

impl<T: Target> Chain<T> {
    /// A chain that starts at a draw from N(0, I); up to 100 are tried until ℓ is finite.
    ///
    /// # Errors
    /// [`StartError`] if none is.
    pub fn start(
        index: usize,
        schedule: Schedule,
        settings: &SamplerSettings,
        mut target: T,
    ) -> Result<Self, StartError> {
        let mut sampler = settings.sampler();
        let mut last = String::new();
        for attempt in 0..START_TRIES {
            let mut position = vec![T::Real::ZERO; target.dim()];
            Stream::new(schedule.seed, index as u64, Purpose::Initial, attempt)
                .fill_normal(&mut position);
            match sampler.init(&mut target, position) {
                Ok(state) => {
                    let snapshot = Snapshot {
                        transition: 0,
                        state,
                        step_size: sampler.step_size(),
                        adaptation: settings.adaptation().filter(|_| schedule.warmup > 0),
                        since_record: Statistics::default(),
                        warmup: Statistics::default(),
                        sampling: Statistics::default(),
                    };
                    return Ok(Self::with(index, schedule, target, sampler, snapshot));
                }
                Err(EvaluationError::Fatal(reason)) => {
                    return Err(StartError::Fatal {
                        chain: index,
                        reason,
                    });
                }
                Err(EvaluationError::Recoverable(reason)) => last = reason,
            }
        }
        Err(StartError::NoStart {
            chain: index,
            tries: START_TRIES,
            reason: last,
        })
    }

    /// A chain that goes on from a snapshot, to the same draws as if it had never stopped.
    ///
    /// # Errors
    /// [`StartError::Dimension`] or [`StartError::Method`] if the snapshot is of another target or method.
    pub fn resume(
        index: usize,
        schedule: Schedule,
        settings: &SamplerSettings,
        target: T,
        snapshot: Snapshot<T::Real>,
    ) -> Result<Self, StartError> {
        let (found, expected) = (snapshot.state.position.len(), target.dim());
        if found != expected {
            return Err(StartError::Dimension {
                chain: index,
                found,
                expected,
            });
        }
        let needs_gradient = settings.method.needs_gradients();
        let (found, expected) = (
            snapshot.state.gradient.len(),
            if needs_gradient { expected } else { 0 },
        );
        if found != expected {
            return Err(StartError::Method {
                chain: index,
                found,
                expected,
            });
        }
        let mut sampler = settings.sampler();
        if let Some(step_size) = snapshot.step_size {
            sampler.set_step_size(step_size);
        }
        Ok(Self::with(index, schedule, target, sampler, snapshot))
    }

    fn with(
        index: usize,
        schedule: Schedule,
        target: T,
        sampler: Box<dyn Sampler<T::Real>>,
        snapshot: Snapshot<T::Real>,
    ) -> Self {
        let corrections = target.corrections();
        Self {
            index,
            schedule,
            target,
            sampler,
            snapshot,
            corrections,
        }
    }

    /// One transition, with what it makes due: adaptation, a record.
    ///
    /// # Errors
    /// As [`advance_to`](Self::advance_to).
    pub(super) fn advance<O: Observer<T>>(
        &mut self,
        observer: &mut O,
    ) -> Result<(), RunError<O::Error>> {
        let Schedule {
            warmup, thin, seed, ..
        } = self.schedule;
        let snapshot = &mut self.snapshot;
        let transition = snapshot.transition + 1;
        let mut stream = Stream::new(seed, self.index as u64, Purpose::Transition, transition);
        let step_size = self.sampler.step_size();
        let info = self
            .sampler
            .step(&mut self.target, &mut snapshot.state, &mut stream)
            .map_err(|fatal| RunError::Target {
                chain: self.index,
                transition: transition - 1,
                reason: fatal.to_string(),
            })?;
        snapshot.transition = transition;
        let corrections = self.target.corrections();
        let jitter = corrections - self.corrections;
        self.corrections = corrections;
        snapshot.since_record.add(&info, step_size, jitter);
        let is_warmup = transition <= warmup;
        if is_warmup {
            snapshot.warmup.add(&info, step_size, jitter);
            if let Some(adaptation) = &mut snapshot.adaptation {
                let next = adaptation.update(info.acceptance_rate);
                self.sampler.set_step_size(if transition == warmup {
                    adaptation.average()
                } else {
                    next
                });
            }
            if transition == warmup {
                snapshot.adaptation = None;
            }
        } else {
            snapshot.sampling.add(&info, step_size, jitter);
        }
        snapshot.step_size = self.sampler.step_size();
        let since = if is_warmup {
            transition
        } else {
            transition - warmup
        };
        if since % thin == 0 || transition == warmup {
            let statistics = std::mem::take(&mut snapshot.since_record);
            let log_ratio = snapshot.state.log_ratio;
            let log_density = [
                log_ratio,
                log_ratio - 0.5 * norm_squared(&snapshot.state.position),
            ];
            let done = if !is_warmup {
                observer.draw(
                    &mut self.target,
                    &snapshot.state,
                    &statistics,
                    log_density,
                    transition,
                )
            } else if since % thin == 0 {
                observer.warmup(&statistics, log_density)
            } else {
                Ok(())
            };
            self.corrections = self.target.corrections();
            done.map_err(|error| RunError::Observer {
                chain: self.index,
                error,
            })?;
        }
        Ok(())
    }

    /// Makes transitions until `transition` of them have been made in all, or every draw has.
    ///
    /// # Errors
    /// [`RunError`]; after an observer's error this chain and the observer no longer agree and must be dropped.
    pub fn advance_to<O: Observer<T>>(
        &mut self,
        transition: u64,
        observer: &mut O,
    ) -> Result<(), RunError<O::Error>> {
        while self.snapshot.transition < transition && !self.is_done() {
            self.advance(observer)?;
        }
        Ok(())
    }

    /// Which chain.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Whether every draw has been made.
    pub fn is_done(&self) -> bool {
        self.snapshot.transition >= self.schedule.transitions()
    }

    /// The chain's exact state.
    pub fn snapshot(&self) -> &Snapshot<T::Real> {
        &self.snapshot
    }

    /// Where the chain is.
    pub fn progress(&self) -> Progress {
        let snapshot = &self.snapshot;
        let is_warmup = snapshot.transition <= self.schedule.warmup;
        let statistics = if is_warmup {
            &snapshot.warmup
        } else {
            &snapshot.sampling
        };
        Progress {
            chain: self.index,
            transition: snapshot.transition,
            total: self.schedule.transitions(),
            is_warmup,
            acceptance_rate: statistics.acceptance_rate(),
            step_size: snapshot.step_size,
            log_ratio: snapshot.state.log_ratio,
            divergences: statistics.divergences,
        }
    }
}
