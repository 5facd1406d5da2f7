//! One chain: a target, a sampler, and where they are.

use super::heeding::Heeding;
use super::ladder::{Ladder, Moment, Samplers};
use super::mode::find_mode;
use super::snapshot::Snapshot;
use super::start::start_at_prior;
use super::{DriverError, Observer, Progress, ProgressDetails, Schedule, StartError, Statistics};
use crate::compute::{Purpose, Stream, norm_squared};
use crate::posterior::{EvaluationError, Target, Tempered};
use crate::sampler::{Fatal, FoundStepSize, Info, Sampler, SamplerSettings, Start, State};

/// A chain of draws from a target.
///
/// It starts at a draw of the prior, at the mode that is found from there, or at a position that is given. The first transitions of warm-up may be an *arrival*: `hmc-infinite` makes them, which gets from a prior draw to the
/// posterior in a few trajectories where methods without gradients crawl. Then the method that was asked for starts where
/// it got to, with an adaptation of its own.
///
/// With [replicas](SamplerSettings::replicas) it exchanges positions with copies of itself at higher temperatures ([`Ladder`](super::ladder::Ladder)).
pub struct Chain<T: Target> {
    index: usize,
    schedule: Schedule,
    settings: SamplerSettings,
    /// Transitions of arrival.
    arrival: u64,
    /// At β = 1, but for a moment.
    target: Tempered<T>,
    sampler: Box<dyn Sampler<T::Real>>,
    /// Of the replicas.
    samplers: Samplers<T::Real>,
    snapshot: Snapshot<T::Real>,
    /// A transition failed half-way.
    is_torn: bool,
    corrections: u64,
}

/// Failed transitions in a row after which a chain is given up.
const MOST_FAILURES: u64 = 1000;
/// What the search for a mode is shortened by where minibatches have made most of the way.
const AFTER_APPROACH: usize = 4;

impl<T: Target> Chain<T> {
    /// A chain that starts at a draw from N(0, I), of which up to 100 are tried until ℓ is finite, or at a mode near it, for which it looks
    /// before its first transition ([`Start`]).
    ///
    /// # Errors
    /// [`StartError`] if none is.
    pub fn start(
        index: usize,
        schedule: Schedule,
        settings: &SamplerSettings,
        target: T,
    ) -> Result<Self, StartError> {
        let settings = &settings_for(settings, &target);
        let mut target = Tempered::new(target, 1.0);
        let in_use = in_use(settings, schedule, 0);
        let mut sampler = in_use.sampler();
        let stream = |attempt| Stream::new(schedule.seed, index as u64, Purpose::Initial, attempt);
        let state = start_at_prior(index, stream, &mut *sampler, &mut target)?;
        Self::new(index, schedule, settings, target, sampler, state)
    }

    /// A chain that starts at a position, such as where one of an earlier run ended; it looks for a mode from there if it is to start at
    /// one.
    ///
    /// # Errors
    /// [`StartError::Position`] if it has another dimension; [`StartError::Fatal`] if ℓ cannot be evaluated there.
    pub fn start_at(
        index: usize,
        schedule: Schedule,
        settings: &SamplerSettings,
        target: T,
        position: Vec<T::Real>,
    ) -> Result<Self, StartError> {
        if position.len() != target.dim() {
            return Err(StartError::Position {
                chain: index,
                found: position.len(),
                expected: target.dim(),
            });
        }
        let settings = &settings_for(settings, &target);
        let mut target = Tempered::new(target, 1.0);
        let mut sampler = in_use(settings, schedule, 0).sampler();
        match sampler.init(&mut target, position) {
            Ok(state) => Self::new(index, schedule, settings, target, sampler, state),
            Err(EvaluationError::Fatal(reason) | EvaluationError::Recoverable(reason)) => {
                Err(StartError::Fatal {
                    chain: index,
                    reason,
                })
            }
        }
    }

    /// A chain before its first transition.
    fn new(
        index: usize,
        schedule: Schedule,
        settings: &SamplerSettings,
        mut target: Tempered<T>,
        sampler: Box<dyn Sampler<T::Real>>,
        state: State<T::Real>,
    ) -> Result<Self, StartError> {
        let adaptation = in_use(settings, schedule, 0).adaptation();
        let (mut ladder, mut samplers) = (None, Samplers::new());
        if settings.replicas > 0 {
            let moment = Moment::new(index, schedule, 0);
            let (replicas, own) = Ladder::start(moment, settings, &mut target)?;
            (ladder, samplers) = (Some(replicas), own);
        }
        let snapshot = Snapshot {
            transition: 0,
            state,
            step_size: sampler.step_size(),
            tuned: sampler.tuned(),
            adaptation: adaptation.filter(|_| schedule.warmup > 0),
            failures: 0,
            since_record: Statistics::default(),
            warmup: Statistics::default(),
            sampling: Statistics::default(),
            ladder,
        };
        let samplers = (sampler, samplers);
        Ok(Self::with(
            index, schedule, settings, target, samplers, snapshot,
        ))
    }

    /// A chain that goes on from a snapshot, to the same draws as if it had never stopped. The snapshot may be of a longer warm-up than
    /// the schedule's, if it was taken after as many transitions as that has: its warm-up is over then.
    ///
    /// # Errors
    /// [`StartError::Dimension`], [`StartError::Density`] or [`StartError::Method`] if the snapshot is of another target or method.
    pub fn resume(
        index: usize,
        schedule: Schedule,
        settings: &SamplerSettings,
        target: T,
        snapshot: Snapshot<T::Real>,
    ) -> Result<Self, StartError> {
        let settings = &settings_for(settings, &target);
        let in_use = in_use(settings, schedule, snapshot.transition);
        snapshot.check(index, target.dim(), &in_use)?;
        let mut target = Tempered::new(target, 1.0);
        let expected = snapshot.state.log_ratio;
        if let Ok(found) = target.log_ratio(&snapshot.state.position) {
            // more than rounding, which another instruction set does otherwise
            if (found - expected).abs() > 1.0 + 1e-3 * expected.abs() {
                return Err(StartError::Density {
                    chain: index,
                    found,
                    expected,
                });
            }
        }
        let mut sampler = in_use.sampler();
        if let Some(step_size) = snapshot.step_size {
            sampler.set_step_size(step_size);
        }
        if let Some(tuned) = snapshot.tuned {
            sampler.set_tuned(tuned);
        }
        let ladder = snapshot.ladder.as_ref();
        let samplers = (
            sampler,
            ladder.map_or_else(Vec::new, |own| own.samplers(settings)),
        );
        let mut chain = Self::with(index, schedule, settings, target, samplers, snapshot);
        if chain.snapshot.transition == schedule.warmup {
            chain.end_warmup();
        }
        Ok(chain)
    }

    fn with(
        index: usize,
        schedule: Schedule,
        settings: &SamplerSettings,
        target: Tempered<T>,
        (sampler, samplers): (Box<dyn Sampler<T::Real>>, Samplers<T::Real>),
        snapshot: Snapshot<T::Real>,
    ) -> Self {
        let corrections = target.corrections();
        Self {
            index,
            schedule,
            settings: settings.clone(),
            arrival: settings.arrival_transitions(schedule.warmup),
            target,
            sampler,
            samplers,
            snapshot,
            is_torn: false,
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
        halted: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), DriverError<O::Error>> {
        let (seed, chain) = (self.schedule.seed, self.index);
        let transition = self.snapshot.transition + 1;
        let failed = |fatal: Fatal| DriverError::Target {
            chain,
            transition: transition - 1,
            reason: fatal.to_string(),
        };
        let Some(descended) = self.descend(transition, halted).map_err(failed)? else {
            return Ok(());
        };
        let searched = self.search(transition).map_err(failed)?;
        let snapshot = &mut self.snapshot;
        let mut stream = Stream::new(seed, chain as u64, Purpose::Transition, transition);
        let step_size = self.sampler.step_size();
        let mut info = self
            .sampler
            .step(&mut self.target, &mut snapshot.state, &mut stream)
            .map_err(failed)?;
        let mut of_replicas = Info::default();
        if let Some(ladder) = &mut snapshot.ladder {
            let moment = Moment::new(chain, self.schedule, transition);
            let (state, target) = (&mut snapshot.state, &mut self.target);
            let advanced =
                ladder.advance(moment, state, target, &self.settings, &mut self.samplers);
            // the chain has moved, and its replicas have not all: there is nothing to go on from
            self.is_torn = advanced.is_err();
            of_replicas = advanced.map_err(failed)?;
        }
        info.n_evaluations += searched.n_evaluations + of_replicas.n_evaluations;
        info.n_gradients += searched.n_gradients + descended + of_replicas.n_gradients;
        snapshot.transition = transition;
        snapshot.failures = if info.diverging && !info.is_accepted {
            snapshot.failures + 1
        } else {
            0
        };
        let corrections = self.target.corrections();
        let jitter = corrections - self.corrections;
        self.corrections = corrections;
        snapshot.since_record.add(&info, step_size, jitter);
        if transition <= self.schedule.warmup {
            snapshot.warmup.add(&info, step_size, jitter);
            self.adapt(&info);
        } else {
            snapshot.sampling.add(&info, step_size, jitter);
        }
        self.snapshot.step_size = self.sampler.step_size();
        self.snapshot.tuned = self.sampler.tuned();
        self.record(observer)?;
        if self.snapshot.failures >= MOST_FAILURES {
            return Err(DriverError::Target {
                chain: self.index,
                transition,
                reason: self.why_it_fails(),
            });
        }
        Ok(())
    }

    /// What a transition of the warm-up changes: the step size, and at the end of the initialisation phase the method.
    fn adapt(&mut self, info: &Info) {
        let snapshot = &mut self.snapshot;
        let is_last = snapshot.transition == self.schedule.warmup;
        if let Some(adaptation) = &mut snapshot.adaptation {
            let next = adaptation.update(info, &snapshot.state);
            self.sampler
                .set_step_size(if is_last { adaptation.average() } else { next });
            if let Some(tuned) = adaptation.tuned(is_last) {
                self.sampler.set_tuned(tuned);
            }
        }
        if snapshot.transition == self.arrival {
            let state = &mut snapshot.state;
            state.momentum = Vec::new();
            if !self.settings.method.needs_gradients() {
                state.gradient = Vec::new();
            }
            self.sampler = self.settings.sampler();
            snapshot.adaptation = self.settings.adaptation();
        }
        if is_last {
            snapshot.adaptation = None;
        }
    }

    /// What the last transition of a warm-up does that was planned to be longer.
    fn end_warmup(&mut self) {
        let snapshot = &mut self.snapshot;
        snapshot.since_record = Statistics::default();
        if let Some(adaptation) = snapshot.adaptation.take() {
            self.sampler.set_step_size(adaptation.average());
            if let Some(tuned) = adaptation.tuned(true) {
                self.sampler.set_tuned(tuned);
            }
            snapshot.step_size = self.sampler.step_size();
            snapshot.tuned = self.sampler.tuned();
        }
        if let Some(ladder) = &mut snapshot.ladder {
            ladder.end_warmup(&mut self.samplers);
        }
    }

    /// Hands the observer what is due after a transition: a draw, or the statistics of some of the warm-up.
    fn record<O: Observer<T>>(&mut self, observer: &mut O) -> Result<(), DriverError<O::Error>> {
        let (snapshot, Schedule { warmup, thin, .. }) = (&mut self.snapshot, self.schedule);
        let transition = snapshot.transition;
        let is_warmup = transition <= warmup;
        let since = if is_warmup {
            transition
        } else {
            transition - warmup
        };
        if since % thin != 0 && transition != warmup {
            return Ok(());
        }
        let statistics = std::mem::take(&mut snapshot.since_record);
        let log_ratio = snapshot.state.log_ratio;
        let log_density = [
            log_ratio,
            log_ratio - 0.5 * norm_squared(&snapshot.state.position),
        ];
        let done = if !is_warmup {
            observer.draw(
                self.target.target_mut(),
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
        done.map_err(|error| DriverError::Observer {
            chain: self.index,
            error,
        })
    }

    /// Before the first transition, looks for a mode if the chain is to start at one; the gradients that it took, none where it was `halted`. It belongs to that
    /// transition, as the [`search`](Self::search) does.
    fn descend(
        &mut self,
        transition: u64,
        halted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<u32>, Fatal> {
        let Start::Mode(evaluations) = self.settings.start else {
            return Ok(Some(0));
        };
        if transition != 1 {
            return Ok(Some(0));
        }
        let fatal = |error: EvaluationError| Fatal(error.to_string());
        let mut from = self.snapshot.state.position.clone();
        let (seed, chain) = (self.schedule.seed, self.index as u64);
        let approached = self.target.approach_mode(&mut from, [seed, chain], halted);
        let evaluations = match approached {
            true => evaluations.div_ceil(AFTER_APPROACH),
            false => evaluations,
        };
        let mut heeding = Heeding::new(&mut self.target, halted);
        let found = find_mode(&mut heeding, &from, evaluations);
        if heeding.has_stopped() {
            return Ok(None);
        }
        let found = found.map_err(fatal)?;
        match self.sampler.init(&mut self.target, found.position) {
            Ok(state) => self.snapshot.state = state,
            // rounding to the chain's precision: the draw of the prior is good
            Err(EvaluationError::Recoverable(_)) => {}
            Err(error) => return Err(fatal(error)),
        }
        Ok(Some(u32::try_from(found.evaluations).unwrap_or(u32::MAX)))
    }

    /// Before the first transition of an adaptation, finds the step size that it begins with. The search belongs to that
    /// transition: a chain that is interrupted in between makes both again.
    fn search(&mut self, transition: u64) -> Result<FoundStepSize, Fatal> {
        let before = transition - 1;
        if before != 0 && before != self.arrival || self.snapshot.adaptation.is_none() {
            return Ok(FoundStepSize::default());
        }
        let settings = in_use(&self.settings, self.schedule, before);
        let (seed, chain) = (self.schedule.seed, self.index as u64);
        let stream = || Stream::new(seed, chain, Purpose::StepSize, transition);
        let found = settings.search(&mut self.target, &self.snapshot.state, stream)?;
        if let Some(found) = found {
            self.sampler.set_step_size(found.step_size);
            self.snapshot.adaptation = settings.adaptation_from(found.step_size);
        }
        Ok(found.unwrap_or_default())
    }

    /// Words for a chain that is given up, with what the target says of the position where it is stuck.
    fn why_it_fails(&mut self) -> String {
        let state = &self.snapshot.state;
        let mut gradient = state.gradient.clone();
        let value = if gradient.is_empty() {
            self.target.log_ratio(&state.position)
        } else {
            self.target
                .log_ratio_and_gradient(&state.position, &mut gradient)
        };
        let said = match value {
            Err(error) => format!("; where it is stuck, the target says: {error}"),
            Ok(_) => "; a smaller step size or a shorter trajectory may help".to_owned(),
        };
        format!(
            "{} transitions in a row diverged or could not be evaluated{said}",
            self.snapshot.failures
        )
    }

    /// Makes transitions until `transition` of them have been made in all, or every draw has.
    ///
    /// # Errors
    /// [`DriverError`]; after an observer's error this chain and the observer no longer agree and must be dropped.
    pub fn advance_to<O: Observer<T>>(
        &mut self,
        transition: u64,
        observer: &mut O,
    ) -> Result<(), DriverError<O::Error>> {
        while self.snapshot.transition < transition && !self.is_done() {
            self.advance(observer, &|| false)?;
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

    /// Whether a transition failed half-way, by a replica: the state is none to go on from.
    pub(super) fn is_torn(&self) -> bool {
        self.is_torn
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
            step_size: snapshot.step_size,
            news: ProgressDetails::Transitions {
                acceptance_rate: statistics.acceptance_rate(),
                log_ratio: snapshot.state.log_ratio,
                divergences: statistics.divergences,
            },
        }
    }
}

/// The settings for a target: arrival takes gradients, and is made only where the target allows them or it was asked for.
fn settings_for<T: Target>(settings: &SamplerSettings, target: &T) -> SamplerSettings {
    let mut settings = settings.clone();
    if !settings.method.needs_gradients() && !target.arrives_by_gradients() {
        settings.arrival = settings.arrival.or(Some(0));
    }
    settings
}

/// The settings of the sampler that makes the transition after `transition`.
fn in_use(settings: &SamplerSettings, schedule: Schedule, transition: u64) -> SamplerSettings {
    if transition < settings.arrival_transitions(schedule.warmup) {
        settings.arrival_settings()
    } else {
        settings.clone()
    }
}
