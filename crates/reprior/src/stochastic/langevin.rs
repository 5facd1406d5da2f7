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

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::dense::Dropout;
use super::groups::{Group, Shared, Step, groups, update_groups};
use super::preconditioner::{Block, Decay, Preconditioner, Statistics};
use super::{Batches, Objective, Prior, StepSize};
use crate::compute::{NotPositiveDefinite, Purpose, Real, Stream, Team};

/// How the position moves.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "dynamics", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Dynamics {
    /// Overdamped: SGLD.
    #[default]
    Langevin,
    /// With momentum: SGHMC.
    Hamiltonian {
        /// Part a in (0, 1] of the momentum that an update loses.
        friction: f64,
    },
    /// With a thermostat: SGNHT.
    NoseHoover {
        /// The first friction a in (0, 1], and that of the injected noise.
        friction: f64,
    },
    /// Adam: no sampler, at temperature 0 alone.
    Adam {
        /// β₁ in [0, 1).
        first: f64,
        /// β₂ in [0, 1).
        second: f64,
        /// ε > 0.
        epsilon: f64,
    },
}

impl Dynamics {
    /// Adam with its usual numbers.
    pub const ADAM: Self = Self::Adam {
        first: 0.9,
        second: 0.999,
        epsilon: 1e-8,
    };

    /// Numbers that are kept for each parameter.
    fn momenta(self) -> usize {
        match self {
            Self::Langevin => 0,
            Self::Hamiltonian { .. } | Self::NoseHoover { .. } => 1,
            Self::Adam { .. } => 2,
        }
    }
}

/// Whose targets the preconditioner's statistics are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Labels {
    /// The data's: the outer-product metric.
    #[default]
    Data,
    /// Drawn from the model: the Fisher matrix itself by Monte Carlo, for one more pass.
    Model,
}

/// What a Langevin chain is made of, besides network, data and preconditioner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LangevinSettings {
    /// η₀ > 0, in units of the mean loss.
    pub step_size: f64,
    /// η_t/η₀.
    pub schedule: StepSize,
    /// Rows of a minibatch.
    pub batch: usize,
    /// How the position moves.
    pub dynamics: Dynamics,
    /// γ of the preconditioner's averages.
    pub decay: Decay,
    /// Whose targets its statistics are of.
    pub labels: Labels,
    /// The prior of all layers.
    pub prior: Prior,
    /// Of every random number.
    pub seed: u64,
    /// Which chain.
    pub chain: u64,
    /// T ≥ 0, of which the noise has √T: 1 for the posterior, 0 for a descent to a mode.
    pub temperature: f64,
    /// Probability in [0, 1) that an activation is left out of an update: for fully connected networks, 0 for the posterior.
    pub dropout: f64,
}

/// Where a chain is: with the settings, all that is needed to go on.
#[derive(Debug, Clone, PartialEq)]
pub struct LangevinState<R> {
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
pub enum LangevinError {
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
    /// No threads.
    #[error("threads cannot be started: {0}")]
    Threads(String),
    /// The preconditioner's matrix is singular.
    #[error("the preconditioner failed at update {update}: {reason}; raise its epsilon")]
    Preconditioner {
        /// The number of the update, from 0.
        update: u64,
        /// Why.
        reason: NotPositiveDefinite,
    },
}

/// A chain of stochastic-gradient Langevin dynamics.
#[derive(Debug)]
pub struct Langevin<R> {
    objective: Objective<R>,
    preconditioner: Box<dyn Preconditioner<R>>,
    settings: LangevinSettings,
    batches: Batches,
    groups: Vec<Group>,
    state: LangevinState<R>,
    /// One for each thread.
    scratch: Vec<Vec<R>>,
    team: Team,
}

impl<R: Real> Langevin<R> {
    /// A chain that starts at `position`.
    ///
    /// # Errors
    /// A setting that is out of range; a position of another length than the network's parameters.
    pub fn new(
        objective: Objective<R>,
        preconditioner: Box<dyn Preconditioner<R>>,
        settings: LangevinSettings,
        position: Vec<R>,
    ) -> Result<Self, LangevinError> {
        let mut state = LangevinState {
            update: 0,
            momentum: vec![R::ZERO; settings.dynamics.momenta() * position.len()],
            thermostat: match settings.dynamics {
                Dynamics::NoseHoover { friction } => friction,
                _ => 0.0,
            },
            position,
            preconditioner: Vec::new(),
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
        objective: Objective<R>,
        preconditioner: Box<dyn Preconditioner<R>>,
        settings: LangevinSettings,
        state: LangevinState<R>,
    ) -> Result<Self, LangevinError> {
        settings.check(&*preconditioner)?;
        if settings.dropout > 0.0 {
            let needs = preconditioner.statistics();
            let is_dense = !matches!(needs, Statistics::Outer | Statistics::Kronecker);
            if !(objective.is_fully_connected() && is_dense) {
                let text = "dropout is for fully connected networks, and not with the preconditioners full and kfac";
                return Err(LangevinError::Setting(text.to_owned()));
            }
        }
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
        ] {
            if found != expected {
                return Err(LangevinError::State {
                    what,
                    found,
                    expected,
                });
            }
        }
        let threads = objective.threads();
        let team = Team::new(threads).map_err(|error| LangevinError::Threads(error.to_string()))?;
        let LangevinSettings {
            batch, seed, chain, ..
        } = settings;
        Ok(Self {
            batches: Batches::new(objective.rows(), batch, seed, chain),
            scratch: (0..threads).map(|_| Vec::new()).collect(),
            team,
            objective,
            preconditioner,
            settings,
            groups,
            state,
        })
    }

    /// The chain's exact state.
    pub fn state(&self) -> &LangevinState<R> {
        &self.state
    }

    /// The network on its data.
    pub fn objective(&self) -> &Objective<R> {
        &self.objective
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
    pub fn update(&mut self) -> Result<Update, LangevinError> {
        let (update, settings) = (self.state.update, self.settings);
        let LangevinSettings { seed, chain, .. } = settings;
        let step_size = settings.step_size * settings.schedule.factor(update);
        let rows = self.objective.rows();
        let statistics = self.preconditioner.statistics();
        let mut stream = Stream::new(seed, chain, Purpose::Simulation, update);
        let is_simulated = settings.labels == Labels::Model && statistics != Statistics::None;
        let simulation = is_simulated.then_some(&mut stream);
        let dropout = (settings.dropout > 0.0).then_some(Dropout {
            rate: settings.dropout,
            seed,
            chain,
            update,
        });
        let batch = self.batches.rows(update);
        let (position, count) = (&self.state.position, batch.len());
        let loss = self.objective.evaluate(
            &mut self.team,
            position,
            batch,
            statistics,
            simulation,
            dropout,
        ) / count as f64;
        if !loss.is_finite() {
            return Err(LangevinError::Loss {
                loss,
                update,
                step_size,
            });
        }
        let time = step_size / rows as f64;
        let is_noisy = settings.schedule.is_sampling(update);
        let (step, injected) = match settings.dynamics {
            Dynamics::Langevin => (Step::Plain, 1.0),
            Dynamics::Hamiltonian { friction } => (Step::Momentum(1.0 - friction), friction),
            Dynamics::NoseHoover { friction } => {
                (Step::Momentum(1.0 - self.state.thermostat), friction)
            }
            Dynamics::Adam {
                first,
                second,
                epsilon,
            } => (Step::adam(first, second, epsilon, update + 1), 0.0),
        };
        let layers = self.objective.layout().layers.iter();
        let pulls = layers.map(|layer| settings.prior.pull_of(position, layer));
        let shared = Shared {
            pulls: pulls.collect(),
            objective: &self.objective,
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
        let state = &mut self.state;
        let found = update_groups(
            &self.groups,
            state,
            &mut self.scratch,
            &mut self.team,
            &shared,
        )?;
        let dim = state.position.len() as f64;
        let keeps = match step {
            Step::Momentum(keeps) => Some(keeps),
            _ => None,
        };
        let kinetic = 0.5 * (1.0 + keeps.unwrap_or(0.0)) * found.kinetic / dim;
        if let Dynamics::NoseHoover { .. } = settings.dynamics {
            state.thermostat += kinetic - settings.temperature * time;
        }
        state.update += 1;
        let is_plain = state.preconditioner.is_empty();
        Ok(Update {
            step_size,
            loss,
            corrections: found.corrections,
            configurational_temperature: rows as f64 * found.virial / dim,
            kinetic_temperature: (keeps.is_some() && is_plain).then(|| kinetic / time),
        })
    }
}

impl LangevinSettings {
    /// What is out of range, or does not go together.
    fn check<R: Real>(&self, preconditioner: &dyn Preconditioner<R>) -> Result<(), LangevinError> {
        let wrong = |text: String| Err(LangevinError::Setting(text));
        if !(self.step_size.is_finite() && self.step_size > 0.0) {
            return wrong(format!(
                "the step size is {}: it must be positive and finite",
                self.step_size
            ));
        }
        if !(self.temperature.is_finite() && self.temperature >= 0.0) {
            return wrong(format!(
                "the temperature is {}: it must be zero or positive, and finite",
                self.temperature
            ));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            let rate = self.dropout;
            return wrong(format!("the dropout rate is {rate}: it must be in [0, 1)"));
        }
        if self.batch == 0 {
            return wrong("a minibatch has 0 rows: it must have at least 1".to_owned());
        }
        if let Dynamics::Hamiltonian { friction } | Dynamics::NoseHoover { friction } =
            self.dynamics
            && !(friction > 0.0 && friction <= 1.0)
        {
            return wrong(format!("the friction is {friction}: it must be in (0, 1]"));
        }
        if let Dynamics::Adam {
            first,
            second,
            epsilon,
        } = self.dynamics
        {
            let is_rate = |rate: f64| (0.0..1.0).contains(&rate);
            if !(is_rate(first) && is_rate(second) && epsilon.is_finite() && epsilon > 0.0) {
                return wrong(format!(
                    "Adam's rates are {first} and {second} and its epsilon is {epsilon}: the first two must be in [0, 1), the last positive"
                ));
            }
            if self.temperature > 0.0 {
                return wrong("Adam is no sampler: its temperature must be 0".to_owned());
            }
        }
        let whole = Block {
            rows: 1,
            units: 1,
            has_bias: false,
        };
        let is_alone = matches!(
            self.dynamics,
            Dynamics::NoseHoover { .. } | Dynamics::Adam { .. }
        );
        if is_alone && preconditioner.state_len(whole) > 0 {
            let text =
                "a thermostat and Adam are for the identity alone: leave the preconditioner out";
            return wrong(text.to_owned());
        }
        let checks = [
            self.schedule.check(),
            self.decay.check(),
            self.prior.check(),
        ];
        match checks.into_iter().find_map(Result::err) {
            Some(text) => wrong(text),
            None => Ok(()),
        }
    }
}
