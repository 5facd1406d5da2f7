//! A population of particles on its way up the ladder of temperatures: one replicate, and the pilot before it that finds ladder and step sizes.

use super::ladder::{effective, largest_step, resample, reweight};
use super::particles::{Particle, replace};
use super::{AnnealingError, AnnealingSettings};
use crate::compute::Real;
use crate::compute::{Purpose, Stream, share};
use crate::posterior::{EvaluationError, Target, Tempered};
use crate::sampler::{Fatal, Info, Sampler, State};

/// What happened at one temperature.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rung {
    /// β.
    pub beta: f64,
    /// Particles.
    pub particles: usize,
    /// log Z_β.
    pub log_evidence: f64,
    /// Effective sample size of the weights before resampling.
    pub effective: f64,
    /// Whether particles were resampled.
    pub is_resampled: bool,
    /// Mean acceptance probability of its transitions.
    pub acceptance_rate: f64,
    /// Step size after them; absent for methods without one.
    pub step_size: Option<f64>,
    /// Transitions that diverged, or met an evaluation that failed.
    pub divergences: u64,
    /// Steps of trajectories.
    pub n_steps: u64,
    /// Evaluations of ℓ alone.
    pub n_evaluations: u64,
    /// Evaluations of ℓ with its gradient.
    pub n_gradients: u64,
}

/// What one thread works with.
struct Worker<T: Target> {
    target: Tempered<T>,
    sampler: Box<dyn Sampler<T::Real>>,
}

/// Particles between prior and posterior: those of a pilot first, then, on its ladder, those that count.
pub struct Annealing<T: Target> {
    settings: AnnealingSettings,
    replicate: u64,
    workers: Vec<Worker<T>>,
    particles: Vec<Particle<T::Real>>,
    beta: f64,
    /// What ℓ and ∇ℓ of the particles' states are multiplied by: β, and 1 before there is one.
    scale: f64,
    log_evidence: f64,
    step_size: Option<f64>,
    /// Transitions made of each particle.
    transition: u64,
    rungs: Vec<Rung>,
    /// Those of the pilot, once it is over.
    pilot: Option<Vec<Rung>>,
    log_weights: Vec<f64>,
    log_ratios: Vec<f64>,
    copies: Vec<usize>,
    infos: Vec<Result<Info, Fatal>>,
}

/// Temperatures after which a ladder is given up.
const MOST_RUNGS: usize = 10_000;
/// Share of the particles that is effective, below which they are resampled.
const RESAMPLED_BELOW: f64 = 0.5;
/// How much the logarithm of the step size follows the acceptance rate. One transition says the rate to some 1/√N.
const GAIN: f64 = 1.5;
/// Particles of the pilot: one of so many, and not fewer than so many.
const PILOT: [usize; 2] = [4, 16];
/// Marks the random numbers of a pilot among those of its replicate.
const OF_PILOT: u64 = 1 << 63;

impl<T: Target> Annealing<T> {
    /// Draws of the prior for one of several replicates; targets are one for each thread (the same one: results do not hang on how many). Where
    /// ℓ cannot be evaluated there is no mass: of draws there others take the place, and the evidence is smaller by their share.
    ///
    /// # Errors
    /// [`AnnealingError`] for settings that cannot be, and where no draw can be evaluated.
    pub fn start(
        settings: &AnnealingSettings,
        replicate: u64,
        targets: Vec<T>,
    ) -> Result<Self, AnnealingError> {
        settings.check()?;
        let mut workers: Vec<Worker<T>> = Vec::new();
        for target in targets {
            workers.push(Worker {
                target: Tempered::new(target, 1.0),
                sampler: settings.sampler.sampler(),
            });
        }
        let Some(first) = workers.first() else {
            return Err(AnnealingError::TooFew {
                what: "targets",
                found: 0,
                least: 1,
            });
        };
        let mut annealing = Self {
            settings: settings.clone(),
            replicate,
            particles: Vec::new(),
            beta: 0.0,
            scale: 1.0,
            log_evidence: 0.0,
            step_size: first.sampler.step_size(),
            transition: 0,
            rungs: Vec::new(),
            pilot: None,
            log_weights: Vec::new(),
            log_ratios: Vec::new(),
            copies: Vec::new(),
            infos: Vec::new(),
            workers,
        };
        annealing.draw_prior(settings.particles.div_ceil(PILOT[0]).max(PILOT[1]))?;
        Ok(annealing)
    }

    /// What streams are keyed by, besides the seed.
    fn key(&self) -> u64 {
        match self.pilot {
            Some(_) => self.replicate,
            None => self.replicate | OF_PILOT,
        }
    }

    /// Begins at β = 0, with so many particles.
    fn draw_prior(&mut self, count: usize) -> Result<(), AnnealingError> {
        (self.beta, self.scale, self.transition) = (0.0, 1.0, 0);
        for worker in &mut self.workers {
            worker.target.set_beta(1.0);
        }
        self.log_weights.clear();
        self.log_weights.resize(count, 0.0);
        self.log_ratios.resize(count, 0.0);
        self.copies.resize(count, 0);
        self.infos.resize(count, Ok(Info::default()));
        let (seed, key) = (self.settings.seed, self.key());
        let mut states: Vec<Option<Result<State<T::Real>, EvaluationError>>> =
            (0..count).map(|_| None).collect();
        share(
            self.workers.iter_mut(),
            states.iter_mut().enumerate(),
            |worker, (index, state)| {
                let mut position = vec![T::Real::ZERO; worker.target.dim()];
                Stream::new(seed, key, Purpose::Initial, index as u64).fill_normal(&mut position);
                *state = Some(worker.sampler.init(&mut worker.target, position));
            },
        );
        let mut last = String::new();
        let mut good = Vec::with_capacity(count);
        for (index, state) in states.into_iter().flatten().enumerate() {
            match state {
                Ok(state) => good.push(Particle {
                    state,
                    ancestor: index,
                }),
                Err(EvaluationError::Recoverable(reason)) => {
                    self.log_weights[index] = f64::NEG_INFINITY;
                    last = reason;
                }
                Err(EvaluationError::Fatal(reason)) => return Err(self.failed(reason)),
            }
        }
        let Some(first) = good.first() else {
            return Err(AnnealingError::NoStart {
                particles: count,
                reason: last,
            });
        };
        self.log_evidence = (good.len() as f64 / count as f64).ln();
        if good.len() == count {
            self.particles = good;
            return Ok(());
        }
        // the places of those that failed are taken by others
        let mut places = vec![first.clone(); count];
        for particle in good {
            let at = particle.ancestor;
            places[at] = particle;
        }
        self.particles = places;
        self.resample(0);
        Ok(())
    }

    fn failed(&self, reason: String) -> AnnealingError {
        AnnealingError::Target {
            rung: self.rungs.len(),
            beta: self.beta,
            reason,
        }
    }

    /// Makes all weights the same, by copies: at the prior, number 0, or at a temperature, counted from 1.
    fn resample(&mut self, number: usize) {
        let (seed, key) = (self.settings.seed, self.key());
        let mut stream = Stream::new(seed, key, Purpose::Resampling, number as u64);
        resample(&self.log_weights, stream.uniform(), &mut self.copies);
        replace(&mut self.particles, &mut self.copies);
        self.log_weights.fill(0.0);
    }

    /// Goes to the next temperature.
    ///
    /// # Errors
    /// [`AnnealingError`] where the target says that nothing will help, or the ladder does not end.
    pub fn advance(&mut self) -> Result<(), AnnealingError> {
        if self.is_done() {
            return Ok(());
        }
        if self.rungs.len() >= MOST_RUNGS {
            return Err(AnnealingError::TooManyRungs(MOST_RUNGS, self.beta));
        }
        for (log_ratio, particle) in self.log_ratios.iter_mut().zip(&self.particles) {
            *log_ratio = particle.state.log_ratio / self.scale;
        }
        let (weights, ratios) = (&mut self.log_weights, &self.log_ratios);
        let (rest, share) = (1.0 - self.beta, self.settings.conditional_ess);
        let given = self.pilot.as_ref().and_then(|p| p.get(self.rungs.len()));
        let delta = match given {
            Some(rung) => rung.beta - self.beta,
            None => largest_step(weights, ratios, self.beta, share),
        };
        self.log_evidence += reweight(weights, ratios, delta);
        // the last step ends at 1 whatever rounding says
        self.beta = match given {
            Some(rung) => rung.beta,
            None if delta >= rest => 1.0,
            None => self.beta + delta,
        };
        let effective = effective(&self.log_weights);
        let is_resampled =
            self.beta == 1.0 || effective < RESAMPLED_BELOW * self.particles.len() as f64;
        let mut rung = Rung {
            beta: self.beta,
            particles: self.particles.len(),
            log_evidence: self.log_evidence,
            effective,
            is_resampled,
            ..Rung::default()
        };
        if is_resampled {
            self.resample(self.rungs.len() + 1);
        }
        self.move_particles(&mut rung)?;
        self.rungs.push(rung);
        if self.beta >= 1.0 && self.pilot.is_none() {
            self.pilot = Some(std::mem::take(&mut self.rungs));
            self.draw_prior(self.settings.particles)?;
        }
        Ok(())
    }

    /// Sets the step size of every thread.
    fn set_step_size(&mut self, step_size: f64) {
        for worker in &mut self.workers {
            worker.sampler.set_step_size(step_size);
            // as the method clamps it
            self.step_size = worker.sampler.step_size();
        }
    }

    /// The transitions of one temperature.
    fn move_particles(&mut self, rung: &mut Rung) -> Result<(), AnnealingError> {
        let factor = self.beta / self.scale;
        self.scale = self.beta;
        for worker in &mut self.workers {
            worker.target.set_beta(self.beta);
        }
        for particle in &mut self.particles {
            particle.rescale(factor);
        }
        let (seed, key) = (self.settings.seed, self.key());
        let count = self.particles.len() as u64;
        let given = self.pilot.as_ref().and_then(|p| p.get(self.rungs.len()));
        if let Some(step_size) = given.and_then(|rung| rung.step_size) {
            self.set_step_size(step_size);
        }
        for _ in 0..self.settings.transitions {
            let first = self.transition * count;
            self.transition += 1;
            share(
                self.workers.iter_mut(),
                self.particles.iter_mut().zip(&mut self.infos).enumerate(),
                |worker, (index, (particle, info))| {
                    let index = first + index as u64;
                    let mut stream = Stream::new(seed, key, Purpose::Transition, index);
                    let (target, state) = (&mut worker.target, &mut particle.state);
                    *info = worker.sampler.step(target, state, &mut stream);
                },
            );
            let mut rates = 0.0;
            for info in &self.infos {
                match info {
                    Ok(info) => {
                        rates += info.acceptance_rate;
                        rung.divergences += u64::from(info.diverging);
                        rung.n_steps += u64::from(info.n_steps);
                        rung.n_evaluations += u64::from(info.n_evaluations);
                        rung.n_gradients += u64::from(info.n_gradients);
                    }
                    Err(Fatal(reason)) => return Err(self.failed(reason.clone())),
                }
            }
            let rate = rates / count as f64;
            rung.acceptance_rate += rate / self.settings.transitions as f64;
            self.adapt(rate);
        }
        rung.step_size = self.step_size;
        Ok(())
    }

    /// Makes the step size of the pilot follow an acceptance rate.
    fn adapt(&mut self, rate: f64) {
        let aim = self.settings.sampler.target_acceptance_in_use();
        if let (Some(aim), Some(step_size), None) = (aim, self.step_size, &self.pilot) {
            self.set_step_size(step_size * (GAIN * (rate - aim)).exp());
        }
    }

    /// Goes on to β = 1.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub fn finish(&mut self) -> Result<(), AnnealingError> {
        while !self.is_done() {
            self.advance()?;
        }
        Ok(())
    }

    /// Whether β is 1: particles are then draws of the posterior with equal weights.
    pub fn is_done(&self) -> bool {
        self.pilot.is_some() && self.beta >= 1.0
    }

    /// Temperatures of the pilot; none while it is on its way, which is what [`beta`](Self::beta) and [`rungs`](Self::rungs) then speak of.
    pub fn pilot(&self) -> Option<&[Rung]> {
        self.pilot.as_deref()
    }

    /// β.
    pub fn beta(&self) -> f64 {
        self.beta
    }

    /// log Z_β of this replicate, where what the target's ℓ leaves out is left out too.
    pub fn log_evidence(&self) -> f64 {
        self.log_evidence
    }

    /// Temperatures so far.
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// The particles.
    pub fn particles(&self) -> &[Particle<T::Real>] {
        &self.particles
    }

    /// From how many draws of the prior particles descend.
    pub fn families(&self) -> usize {
        let mut ancestors: Vec<usize> = self.particles.iter().map(|p| p.ancestor).collect();
        ancestors.sort_unstable();
        ancestors.dedup();
        ancestors.len()
    }

    /// The target of the first thread, and a particle: for what is derived from draws.
    pub fn target_and_particle(&mut self, index: usize) -> Option<(&mut T, &Particle<T::Real>)> {
        let worker = self.workers.first_mut()?;
        Some((worker.target.target_mut(), self.particles.get(index)?))
    }
}
