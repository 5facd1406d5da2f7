//! Stochastic-gradient Langevin dynamics, and its relatives with momentum.
//!
//! With g = ∇[L̂ − (1/N) log prior] at a minibatch, h = η/N and a preconditioner C, an update is
//! * [`Dynamics::Langevin`] (Welling & Teh 2011): θ ← θ − η·C·g + √(2h)·C^{1/2}ξ,
//! * [`Dynamics::Hamiltonian`] (Chen, Fox & Guestrin 2014, with no estimate of the gradient's noise), friction a:
//!   v ← (1 − a)·v − η·C·g + √(2ah)·C^{1/2}ξ, θ ← θ + v. With a = 1 it is the first,
//! * [`Dynamics::NoseHoover`] (Ding et al. 2014): the same with (1 − z)·v in place of (1 − a)·v and
//!   z ← z + (1 − z/2)·|v|²/D − h after it, C = I: the thermostat z finds how much friction the gradient's noise takes.
//!
//! Without noise (temperature 0) these are descents to a mode, and so is
//! * [`Dynamics::Adam`] (Kingma & Ba 2015), C = I: m ← β₁m + (1 − β₁)g, v ← β₂v + (1 − β₂)g², θ ← θ − η·m̂/(√v̂ + ε) with the
//!   averages m̂ = m/(1 − β₁ᵗ), v̂ = v/(1 − β₂ᵗ) of t updates.
//!
//! For a Gaussian of precision P the second settles in the covariance P⁻¹(1 − hP/(2(2 − a)))⁻¹ of θ, with |v|² = 2hD/(2 − a)
//! as h → 0: v is what an update leaves, half of which has lost the momentum's part a. Hence the factor 1 − z/2, without which θ
//! would be too cold by it.

use super::batch_norm::take_in;
use super::groups::{GroupSums, ParameterGroup, UpdateContext, UpdateStep, groups, update_groups};
use super::noise::NoiseStep;
use super::objective::Objective;
use super::preconditioner::Preconditioner;
use super::{Batches, CurvatureLabels, Dynamics, StochasticGradientSettings};
use thiserror::Error;

use crate::compute::{Purpose, Real, Stream, Team};
use crate::network::parameters::ParameterLayout;
use crate::network::{Dropout, GradientStatistics};

/// A chain of stochastic-gradient Langevin dynamics.
#[derive(Debug)]
pub struct StochasticGradient<R> {
    layout: ParameterLayout,
    objective: Objective<R>,
    preconditioner: Box<dyn Preconditioner<R>>,
    settings: StochasticGradientSettings,
    batches: Batches,
    groups: Vec<ParameterGroup>,
    state: StochasticGradientState<R>,
    /// One for each thread.
    scratch: Vec<Vec<R>>,
    team: Team,
}

/// Where a chain is: with the settings, all that is needed to go on.
#[derive(Debug, Clone, PartialEq)]
pub struct StochasticGradientState<R> {
    /// Updates made.
    pub update: u64,
    /// θ.
    pub position: Vec<R>,
    /// v; empty without momentum. Of Adam m and v, group by group.
    pub momentum: Vec<R>,
    /// z of [`Dynamics::NoseHoover`].
    pub thermostat: f64,
    /// The preconditioner's, block by block.
    pub preconditioner: Vec<R>,
    /// Running means and variances of batch normalisation, see [`Composition::statistics`](crate::network::Composition::statistics); empty where the network has none, or
    /// keeps its own.
    pub statistics: Vec<f64>,
    /// Coordinates of a learned σ, see [`Noise`](crate::model::Noise); empty where it is known.
    pub noise: Vec<f64>,
}

/// What one update did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Update {
    /// η_t.
    pub step_size: f64,
    /// Mean −log p of the minibatch's rows, at the position before the update.
    pub loss: f64,
    /// Numbers that the preconditioner had to correct, and factorisations that needed jitter.
    pub corrections: u64,
    /// N·⟨θ − prior mean, g⟩/D: its mean over a chain is the configurational temperature, 1 if the law is the posterior's.
    pub configurational_temperature: f64,
    /// (1 − a/2)·|v|²/(h·D), with z for a where there is a thermostat: 1 in the mean as h → 0. None without momentum or with a
    /// preconditioner.
    pub kinetic_temperature: Option<f64>,
}

/// An update that cannot be made.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum StochasticGradientError {
    /// A setting that is out of range, in words.
    #[error("{0}")]
    Setting(String),
    /// A state of another network or preconditioner.
    #[error("the state has {found} numbers of {what}, not {expected}")]
    State {
        /// Which numbers.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// The loss is not finite any more.
    #[error(
        "the loss is {loss} at update {update}, with a step size of {step_size}: lower --step-size"
    )]
    Loss {
        /// The loss.
        loss: f64,
        /// The number of the update, from 0.
        update: u64,
        /// η_t.
        step_size: f64,
    },
    /// Weights are not finite any more.
    #[error(
        "update {update} took weights of layer {layer} out of range, with a step size of {step_size}: lower --step-size"
    )]
    Position {
        /// The layer's name.
        layer: String,
        /// The number of the update, from 0.
        update: u64,
        /// η_t.
        step_size: f64,
    },
    /// A temperature is not finite any more: weights are, but not for long.
    #[error(
        "the temperature is not finite at update {update}, with a step size of {step_size}: lower --step-size"
    )]
    Temperature {
        /// The number of the update, from 0.
        update: u64,
        /// η_t.
        step_size: f64,
    },
    /// No threads.
    #[error("threads cannot be started: {0}")]
    Threads(String),
    /// The preconditioner's matrix is singular.
    #[error("the preconditioner failed at update {update}: {reason}; raise its epsilon")]
    Preconditioner {
        /// The number of the update, from 0.
        update: u64,
        /// Why.
        reason: String,
    },
}

impl<R: Real> StochasticGradient<R> {
    /// A chain that starts at `position`.
    ///
    /// # Errors
    /// A setting that is out of range; a position of another length than the network's parameters.
    pub fn new(
        objective: Objective<R>,
        preconditioner: Box<dyn Preconditioner<R>>,
        settings: StochasticGradientSettings,
        position: Vec<R>,
    ) -> Result<Self, StochasticGradientError> {
        settings.check(&*preconditioner, objective.layout())?;
        let mut state = StochasticGradientState {
            update: 0,
            momentum: vec![R::ZERO; settings.dynamics.momenta() * position.len()],
            thermostat: match settings.dynamics {
                Dynamics::NoseHoover { friction } => friction,
                _ => 0.0,
            },
            position,
            preconditioner: Vec::new(),
            statistics: objective.start_statistics().to_vec(),
            noise: vec![0.0; objective.noise_coordinates()],
        };
        for group in groups(objective.layout(), &*preconditioner) {
            for _ in 0..group.blocks() {
                let start = state.preconditioner.len();
                state.preconditioner.resize(start + group.state, R::ZERO);
                preconditioner.initialise(group.block, &mut state.preconditioner[start..]);
            }
        }
        Self::resume(objective, preconditioner, settings, state)
    }

    /// A chain that goes on from `state`, to the same positions as if it had never stopped.
    ///
    /// # Errors
    /// As [`new`](Self::new); a state of another network, dynamics or preconditioner.
    pub fn resume(
        mut objective: Objective<R>,
        preconditioner: Box<dyn Preconditioner<R>>,
        settings: StochasticGradientSettings,
        state: StochasticGradientState<R>,
    ) -> Result<Self, StochasticGradientError> {
        settings.check(&*preconditioner, objective.layout())?;
        if settings.dropout > 0.0 {
            let is_elementwise = preconditioner.statistics().are_elementwise();
            if !(objective.is_fully_connected() && is_elementwise) {
                let text = "dropout is for fully connected networks, and not with the preconditioners full and kfac";
                return Err(StochasticGradientError::Setting(text.to_owned()));
            }
        }
        settings.check_batch_statistics(&objective, &*preconditioner)?;
        let groups = groups(objective.layout(), &*preconditioner);
        let parameters = objective.layout().len();
        let numbers = groups.iter().map(|group| group.blocks() * group.state);
        let momentum = settings.dynamics.momenta() * parameters;
        for (what, found, expected) in [
            ("the position", state.position.len(), parameters),
            ("the momentum", state.momentum.len(), momentum),
            (
                "the preconditioner",
                state.preconditioner.len(),
                numbers.sum(),
            ),
            (
                "the statistics of batch normalisation",
                state.statistics.len(),
                objective.start_statistics().len(),
            ),
            (
                "the noise",
                state.noise.len(),
                objective.noise_coordinates(),
            ),
        ] {
            if found != expected {
                return Err(StochasticGradientError::State {
                    what,
                    found,
                    expected,
                });
            }
        }
        objective.set_noise(&state.noise);
        let threads = objective.threads();
        let team = Team::new(threads)
            .map_err(|error| StochasticGradientError::Threads(error.to_string()))?;
        Ok(Self {
            batches: Batches::new(
                objective.rows(),
                settings.batch,
                settings.seed,
                settings.chain,
            ),
            scratch: (0..threads).map(|_| Vec::new()).collect(),
            team,
            layout: objective.layout().clone(),
            objective,
            preconditioner,
            settings,
            groups,
            state,
        })
    }

    /// The chain's exact state.
    pub fn state(&self) -> &StochasticGradientState<R> {
        &self.state
    }

    /// What the chain was told.
    pub fn settings(&self) -> &StochasticGradientSettings {
        &self.settings
    }

    /// The network on its data.
    pub fn objective(&self) -> &Objective<R> {
        &self.objective
    }

    /// Means and variances of batch normalisation at any weights, as a pass over the training rows by minibatches finds them: for
    /// averages and draws of weights, which no minibatch has been evaluated with. Minibatches are those of the settings, with rows in
    /// order, and count by their rows; empty as [`StochasticGradientState::statistics`] is.
    pub fn statistics_at(&mut self, weights: &[R]) -> Vec<f64> {
        self.objective
            .statistics_at(&mut self.team, weights, self.settings.batch)
    }

    /// Updates of an epoch.
    pub fn updates_per_epoch(&self) -> u64 {
        self.batches.per_epoch()
    }

    /// Whether the position may be drawn now: not in a part of a cycle that explores.
    pub fn is_sampling(&self) -> bool {
        let made = self.state.update;
        made > 0 && self.settings.schedule.is_sampling(made - 1)
    }

    /// One update.
    ///
    /// # Errors
    /// A loss or weights that are not finite, with the step size; the position is then of no use any more.
    pub fn update(&mut self) -> Result<Update, StochasticGradientError> {
        let (update, settings) = (self.state.update, &self.settings);
        let (seed, chain) = (settings.seed, settings.chain);
        let factor = settings.schedule.factor(update);
        let step_size = settings.step_size * factor * self.shortening();
        let rows = self.objective.rows();
        let statistics = self.preconditioner.statistics();
        let mut stream = Stream::new(seed, chain, Purpose::Simulation, update);
        let is_simulated =
            settings.labels == CurvatureLabels::Model && statistics != GradientStatistics::None;
        let simulation = is_simulated.then_some(&mut stream);
        let dropout = (settings.dropout > 0.0).then_some(Dropout {
            rate: settings.dropout,
            seed,
            chain,
            update,
        });
        let batch = self.batches.rows(update);
        let (position, count) = (&self.state.position, batch.len());
        let layers = self.layout.layers.iter().enumerate();
        let pulls = layers.map(|(index, layer)| settings.prior(index).pull_of(position, layer));
        let pulls = pulls.collect();
        let evaluation = self.objective.evaluate(
            &mut self.team,
            position,
            batch,
            statistics,
            simulation,
            dropout,
        );
        let loss = evaluation.loss / count as f64;
        if !loss.is_finite() {
            return Err(StochasticGradientError::Loss {
                loss,
                update,
                step_size,
            });
        }
        let time = step_size / rows as f64;
        let is_noisy = settings.schedule.is_sampling(update);
        let (step, injected) = UpdateStep::of(settings.dynamics, self.state.thermostat, update);
        let shared = UpdateContext {
            pulls,
            evaluation,
            layout: &self.layout,
            preconditioner: &*self.preconditioner,
            batch: count,
            rows,
            step_size,
            step,
            noise: if is_noisy {
                (2.0 * settings.temperature * injected * time).sqrt()
            } else {
                0.0
            },
            rate: settings.decay.rate(update),
            seed,
            chain,
            update,
        };
        let is_noisy = shared.noise > 0.0;
        let noise_step = NoiseStep {
            rows: [count, rows],
            factor,
            temperature: if is_noisy { settings.temperature } else { 0.0 },
            key: [seed, chain, update],
        };
        let found = update_groups(
            &self.groups,
            &mut self.state,
            &mut self.scratch,
            &mut self.team,
            &shared,
        )?;
        take_in(
            &mut self.state.statistics,
            self.objective.batch_statistics(),
        );
        self.objective.step_noise(&mut self.state.noise, noise_step);
        self.measure(step_size, loss, step, is_noisy, found)
    }

    /// Steps of gradients whose preconditioner knows nothing of single rows are the shorter the smaller a learned σ is: the curvature has 1/σ².
    /// A factor that depends on other coordinates than those that it moves leaves the law as it is, but for a momentum.
    fn shortening(&self) -> f64 {
        let is_plain = self.preconditioner.statistics() == GradientStatistics::None;
        match self.settings.dynamics {
            Dynamics::Adam { .. } => 1.0,
            _ if is_plain => self.objective.shortening(),
            _ => 1.0,
        }
    }

    /// What an update did, from what its groups found; moves the thermostat and counts the update.
    fn measure(
        &mut self,
        step_size: f64,
        loss: f64,
        step: UpdateStep,
        is_noisy: bool,
        found: GroupSums,
    ) -> Result<Update, StochasticGradientError> {
        let (state, rows) = (&mut self.state, self.objective.rows());
        let (settings, update) = (&self.settings, state.update);
        let time = step_size / rows as f64;
        let dim = state.position.len() as f64;
        let keeps = match step {
            UpdateStep::Momentum(keeps) => Some(keeps),
            _ => None,
        };
        let kinetic = 0.5 * (1.0 + keeps.unwrap_or(0.0)) * found.kinetic / dim;
        // where there is no noise there is no temperature to keep
        if let (Dynamics::NoseHoover { .. }, true) = (settings.dynamics, is_noisy) {
            state.thermostat += kinetic - settings.temperature * time;
        }
        let is_finite = |value: f64| value.is_finite();
        if !(is_finite(found.virial) && is_finite(kinetic) && is_finite(state.thermostat)) {
            return Err(StochasticGradientError::Temperature { update, step_size });
        }
        state.update += 1;
        let is_plain = state.preconditioner.is_empty();
        Ok(Update {
            step_size,
            loss,
            corrections: found.corrections,
            configurational_temperature: rows as f64 * found.virial / dim,
            kinetic_temperature: (keeps.is_some() && is_plain && time > 0.0)
                .then(|| kinetic / time),
        })
    }
}
