//! Stochastic-gradient Langevin dynamics, and its relatives with momentum.
//!
//! With g = ∇[L̂ − (1/N) log prior] at a minibatch, h = η/N and a preconditioner C, an update is
//! * [`Dynamics::Langevin`] (Welling & Teh 2011): θ ← θ − η·C·g + √(2h)·C^{1/2}ξ,
//! * [`Dynamics::Hamiltonian`] (Chen, Fox & Guestrin 2014, with no estimate of the gradient's noise), friction a:
//!   v ← (1 − a)·v − η·C·g + √(2ah)·C^{1/2}ξ, θ ← θ + v. With a = 1 it is the first,
//! * [`Dynamics::NoseHoover`] (Ding et al. 2014): the same with (1 − z)·v in place of (1 − a)·v and
//!   z ← z + (1 − z/2)·|v|²/D − h after it, C = I: the thermostat z finds how much friction the gradient's noise takes.
//!
//! For a Gaussian of precision P the second settles in the covariance P⁻¹(1 − hP/(2(2 − a)))⁻¹ of θ, with |v|² = 2hD/(2 − a)
//! as h → 0: v is what an update leaves, half of which has lost the momentum's part a. Hence the factor 1 − z/2, without which θ
//! would be too cold by it.
//!
//! Every parameter is read and written once an update, in groups of units that fit the cache: statistics, preconditioner, noise
//! and step one after the other. Groups and their random streams do not depend on the number of threads.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::preconditioner::{Batch, Block, Decay, Preconditioner, Scope, Statistics};
use super::{Batches, Layout, Objective, Prior, StepSize};
use crate::compute::{NotPositiveDefinite, Purpose, Real, Stream, simd};
use crate::network::Moments;

/// Parameters of a group of units, about.
const GROUP: usize = 1 << 14;

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
    /// Threads for what is done parameter by parameter, besides the objective's own.
    pub threads: usize,
}

/// Where a chain is: with the settings, all that is needed to go on.
#[derive(Debug, Clone, PartialEq)]
pub struct LangevinState<R> {
    /// Updates made.
    pub update: u64,
    /// θ.
    pub position: Vec<R>,
    /// v; empty without momentum.
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
    /// The preconditioner's matrix is singular.
    #[error("the preconditioner failed at update {update}: {reason}; raise its epsilon")]
    Preconditioner {
        /// The number of the update, from 0.
        update: u64,
        /// Why.
        reason: NotPositiveDefinite,
    },
}

/// Parameters that are worked on together: whole blocks.
#[derive(Debug, Clone)]
struct Group {
    parameters: Range<usize>,
    block: Block,
    /// State of one block.
    state: usize,
    /// Of the statistics of outer products.
    outer: Range<usize>,
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
    buffers: Buffers<R>,
}

/// Work space, as long as the parameters where it is not empty.
#[derive(Debug)]
struct Buffers<R> {
    gradient: Vec<R>,
    noise: Vec<R>,
    /// Sums of squares and of products with the bias.
    squares: Vec<R>,
    cross: Vec<R>,
    /// Outer products, group after group.
    outer: Vec<R>,
    /// A gradient that is of no interest: that of simulated targets.
    unused: Vec<R>,
}

impl<R> Buffers<R> {
    /// Where the gradient and the statistics that are wanted go.
    fn parts(&mut self, statistics: Statistics) -> (&mut [R], Moments<'_, R>) {
        let moments = Moments {
            squares: &mut self.squares,
            cross: &mut self.cross,
            kronecker: match statistics {
                Statistics::Kronecker => &mut self.outer,
                _ => &mut [],
            },
        };
        (&mut self.gradient, moments)
    }
}

/// What groups found, added up.
#[derive(Debug, Default, Clone, Copy)]
struct Found {
    corrections: u64,
    virial: f64,
    kinetic: f64,
}

/// What is the same for every group.
struct Shared<'a, R> {
    layout: &'a Layout,
    preconditioner: &'a dyn Preconditioner<R>,
    pulls: Vec<super::prior::Pull>,
    /// 1 over the rows of the minibatch, and of the data.
    inverse_batch: R,
    inverse_rows: f64,
    /// η, what is kept of the momentum if there is one, the scale of the noise, γ.
    step_size: f64,
    keeps: Option<f64>,
    noise: f64,
    rate: f64,
    seed: u64,
    chain: u64,
    update: u64,
}

/// One group's own parts of everything.
struct Own<'a, R> {
    index: usize,
    group: &'a Group,
    position: &'a mut [R],
    momentum: &'a mut [R],
    state: &'a mut [R],
    gradient: &'a mut [R],
    noise: &'a mut [R],
    squares: &'a mut [R],
    cross: &'a mut [R],
    outer: &'a mut [R],
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
        let groups = groups(objective.layout(), &*preconditioner);
        let mut state = LangevinState {
            update: 0,
            momentum: match settings.dynamics {
                Dynamics::Langevin => Vec::new(),
                _ => vec![R::ZERO; position.len()],
            },
            thermostat: match settings.dynamics {
                Dynamics::NoseHoover { friction } => friction,
                _ => 0.0,
            },
            position,
            preconditioner: Vec::new(),
        };
        for group in &groups {
            let blocks = group.parameters.len() / (group.block.rows * group.block.units).max(1);
            for _ in 0..blocks {
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
        let groups = groups(objective.layout(), &*preconditioner);
        let parameters = objective.layout().len();
        let numbers = |group: &Group| {
            group.parameters.len() / (group.block.rows * group.block.units).max(1) * group.state
        };
        let has_momentum = settings.dynamics != Dynamics::Langevin;
        for (what, found, expected) in [
            ("the position", state.position.len(), parameters),
            (
                "the momentum",
                state.momentum.len(),
                if has_momentum { parameters } else { 0 },
            ),
            (
                "the preconditioner",
                state.preconditioner.len(),
                groups.iter().map(numbers).sum(),
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
        let statistics = preconditioner.statistics();
        let zeros =
            |is_wanted: bool, length: usize| vec![R::ZERO; if is_wanted { length } else { 0 }];
        let has_squares = matches!(
            statistics,
            Statistics::Squares | Statistics::SquaresAndCross
        );
        let outer = groups.last().map_or(0, |group| group.outer.end);
        let is_simulated = settings.labels == Labels::Model
            && !matches!(statistics, Statistics::None | Statistics::Outer);
        Ok(Self {
            batches: Batches::new(
                objective.rows(),
                settings.batch,
                settings.seed,
                settings.chain,
            ),
            buffers: Buffers {
                gradient: zeros(true, parameters),
                noise: zeros(true, parameters),
                squares: zeros(has_squares, parameters),
                cross: zeros(statistics == Statistics::SquaresAndCross, parameters),
                outer: zeros(true, outer),
                unused: zeros(is_simulated, parameters),
            },
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
        let update = self.state.update;
        let settings = self.settings;
        let step_size = settings.step_size * settings.schedule.factor(update);
        let rows = self.objective.rows() as f64;
        let batch = self.batches.rows(update);
        let count = batch.len() as f64;
        let statistics = self.preconditioner.statistics();
        let (gradient, moments) = self.buffers.parts(statistics);
        let moments = match settings.labels {
            Labels::Data => moments,
            Labels::Model => Moments::default(),
        };
        let position = &self.state.position;
        let loss = self.objective.evaluate(position, batch, gradient, moments) / count;
        if !loss.is_finite() {
            return Err(LangevinError::Loss {
                loss,
                update,
                step_size,
            });
        }
        self.simulated_statistics(update);
        let time = step_size / rows;
        let is_noisy = settings.schedule.is_sampling(update);
        let (keeps, injected) = match settings.dynamics {
            Dynamics::Langevin => (None, 1.0),
            Dynamics::Hamiltonian { friction } => (Some(1.0 - friction), friction),
            Dynamics::NoseHoover { friction } => (Some(1.0 - self.state.thermostat), friction),
        };
        let layout = self.objective.layout();
        let shared = Shared {
            layout,
            preconditioner: &*self.preconditioner,
            pulls: pulls(layout, settings.prior, &self.state.position),
            inverse_batch: R::from_f64(1.0 / count),
            inverse_rows: 1.0 / rows,
            step_size,
            keeps,
            noise: if is_noisy {
                (2.0 * injected * time).sqrt()
            } else {
                0.0
            },
            rate: settings.decay.rate(update),
            seed: settings.seed,
            chain: settings.chain,
            update,
        };
        let (state, threads) = (&mut self.state, settings.threads);
        let found = update_groups(&self.groups, state, &mut self.buffers, &shared, threads)?;
        let dim = self.state.position.len() as f64;
        let kinetic = 0.5 * (1.0 + keeps.unwrap_or(0.0)) * found.kinetic / dim;
        if let Dynamics::NoseHoover { .. } = settings.dynamics {
            self.state.thermostat += kinetic - time;
        }
        self.state.update += 1;
        let is_plain = self.preconditioner.statistics() == Statistics::None
            && self.state.preconditioner.is_empty();
        Ok(Update {
            step_size,
            loss,
            corrections: found.corrections,
            configurational_temperature: rows * found.virial / dim,
            kinetic_temperature: (keeps.is_some() && is_plain).then(|| kinetic / time),
        })
    }

    /// Statistics that the pass for the gradient does not give.
    fn simulated_statistics(&mut self, update: u64) {
        let (settings, statistics) = (self.settings, self.preconditioner.statistics());
        let batch = self.batches.rows(update);
        let mut stream = Stream::new(settings.seed, settings.chain, Purpose::Simulation, update);
        let stream = (settings.labels == Labels::Model).then_some(&mut stream);
        match (statistics, stream) {
            (Statistics::Outer, stream) => {
                let outer = &mut self.buffers.outer;
                self.objective
                    .outer_products(&self.state.position, batch, stream, outer);
            }
            (Statistics::None, _) | (_, None) => {}
            (_, Some(stream)) => {
                let mut unused = std::mem::take(&mut self.buffers.unused);
                let (_, moments) = self.buffers.parts(statistics);
                let position = &self.state.position;
                self.objective
                    .evaluate_simulated(position, batch, stream, &mut unused, moments);
                self.buffers.unused = unused;
            }
        }
    }
}

impl<R: Real> Shared<'_, R> {
    /// One group's part of an update.
    fn group(&self, own: Own<'_, R>) -> Result<Found, LangevinError> {
        let (group, mut found) = (own.group, Found::default());
        let size = group.block.rows * group.block.units;
        if size == 0 {
            return Ok(found);
        }
        if self.noise > 0.0 {
            let index = (self.update << 20) | own.index as u64;
            Stream::new(self.seed, self.chain, Purpose::Update, index).fill_normal(own.noise);
        }
        let scale = self.inverse_batch;
        for (at, start) in (0..own.position.len()).step_by(size).enumerate() {
            let range = start..start + size;
            let gradient = &mut own.gradient[range.clone()];
            let squares = own.squares.get_mut(range.clone()).unwrap_or(&mut []);
            let cross = own.cross.get_mut(range.clone()).unwrap_or(&mut []);
            simd(
                #[inline(always)]
                || {
                    for values in [&mut *gradient, &mut *squares, &mut *cross] {
                        values.iter_mut().for_each(|value| *value *= scale);
                    }
                },
            );
            if at == 0 {
                own.outer.iter_mut().for_each(|value| *value *= scale);
            }
            let state = &mut own.state[at * group.state..(at + 1) * group.state];
            let batch = Batch {
                gradient,
                squares,
                cross,
                outer: own.outer,
                update: self.update,
            };
            let jitter = self
                .preconditioner
                .update(group.block, batch, self.rate, state)
                .map_err(|reason| LangevinError::Preconditioner {
                    update: self.update,
                    reason,
                })?;
            let first = group.parameters.start + start;
            let position = &mut own.position[range.clone()];
            found.virial += self.add_prior(first, position, gradient);
            let noise = if self.noise > 0.0 {
                &mut own.noise[range.clone()]
            } else {
                &mut []
            };
            found.corrections += jitter;
            found.corrections += self
                .preconditioner
                .transform(group.block, state, gradient, noise);
            let momentum = own.momentum.get_mut(range).unwrap_or(&mut []);
            found.kinetic += self.step(position, momentum, gradient, noise);
            let total: R = position.iter().copied().sum();
            if !total.to_f64().is_finite() {
                let at = position.iter().position(|x| !x.to_f64().is_finite());
                let at = first + at.unwrap_or(0);
                let layer = self.layout.layers.iter().find(|l| l.range.contains(&at));
                return Err(LangevinError::Position {
                    layer: layer.map_or_else(String::new, |layer| layer.name.clone()),
                    update: self.update,
                    step_size: self.step_size,
                });
            }
        }
        Ok(found)
    }

    /// Adds −(1/N)∇ log prior to the gradient of the parameters from number `first` on. Returns ⟨θ − mean, g⟩ after that.
    fn add_prior(&self, first: usize, position: &[R], gradient: &mut [R]) -> f64 {
        let (mut at, mut virial) = (0, 0.0);
        for (layer, pull) in self.layout.layers.iter().zip(&self.pulls) {
            let range = &layer.range;
            if layer.range.end <= first + at || at == position.len() {
                continue;
            }
            let end = (range.end - first).min(position.len());
            let mean = R::from_f64(pull.mean);
            let [weights, biases] = pull.precision.map(|p| R::from_f64(p * self.inverse_rows));
            let columns = position[at..end].chunks_exact(layer.rows);
            for (theta, g) in columns.zip(gradient[at..end].chunks_exact_mut(layer.rows)) {
                let split = layer.rows - usize::from(layer.has_bias);
                let ((theta, theta_0), (g, g_0)) = (theta.split_at(split), g.split_at_mut(split));
                simd(
                    #[inline(always)]
                    || {
                        const LANES: usize = 16;
                        let mut sums = [R::ZERO; LANES];
                        for (g, theta) in g.chunks_mut(LANES).zip(theta.chunks(LANES)) {
                            for ((g, &theta), sum) in g.iter_mut().zip(theta).zip(&mut sums) {
                                let from_mean = theta - mean;
                                *g += weights * from_mean;
                                *sum += from_mean * *g;
                            }
                        }
                        for (g, &theta) in g_0.iter_mut().zip(theta_0) {
                            *g += biases * (theta - mean);
                            sums[0] += (theta - mean) * *g;
                        }
                        virial += sums.into_iter().sum::<R>().to_f64();
                    },
                );
            }
            at = end;
        }
        virial
    }

    /// The move itself. Returns |v|².
    fn step(&self, position: &mut [R], momentum: &mut [R], gradient: &[R], noise: &[R]) -> f64 {
        let (step_size, scale) = (R::from_f64(self.step_size), R::from_f64(self.noise));
        let mut kinetic = 0.0;
        simd(
            #[inline(always)]
            || match self.keeps {
                None if noise.is_empty() => {
                    for (theta, &g) in position.iter_mut().zip(gradient) {
                        *theta -= step_size * g;
                    }
                }
                None => {
                    for ((theta, &g), &xi) in position.iter_mut().zip(gradient).zip(noise) {
                        *theta += scale * xi - step_size * g;
                    }
                }
                Some(keeps) => {
                    let keeps = R::from_f64(keeps);
                    for (v, &g) in momentum.iter_mut().zip(gradient) {
                        *v = keeps * *v - step_size * g;
                    }
                    for (v, &xi) in momentum.iter_mut().zip(noise) {
                        *v += scale * xi;
                    }
                    for (theta, &v) in position.iter_mut().zip(&*momentum) {
                        *theta += v;
                    }
                    kinetic = momentum.iter().map(|v| v.to_f64().powi(2)).sum();
                }
            },
        );
        kinetic
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
        if self.batch == 0 {
            return wrong("a minibatch has 0 rows: it must have at least 1".to_owned());
        }
        if let Dynamics::Hamiltonian { friction } | Dynamics::NoseHoover { friction } =
            self.dynamics
            && !(friction > 0.0 && friction <= 1.0)
        {
            return wrong(format!("the friction is {friction}: it must be in (0, 1]"));
        }
        let whole = Block {
            rows: 1,
            units: 1,
            has_bias: false,
        };
        if matches!(self.dynamics, Dynamics::NoseHoover { .. })
            && preconditioner.state_len(whole) > 0
        {
            let text = "a thermostat is for the identity alone: leave the preconditioner out";
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

/// Has every group updated.
fn update_groups<R: Real>(
    groups: &[Group],
    state: &mut LangevinState<R>,
    buffers: &mut Buffers<R>,
    shared: &Shared<'_, R>,
    threads: usize,
) -> Result<Found, LangevinError> {
    let mut position = &mut state.position[..];
    let mut momentum = &mut state.momentum[..];
    let mut own_state = &mut state.preconditioner[..];
    let (mut gradient, mut noise) = (&mut buffers.gradient[..], &mut buffers.noise[..]);
    let (mut squares, mut cross) = (&mut buffers.squares[..], &mut buffers.cross[..]);
    let mut outer = &mut buffers.outer[..];
    let mut all = Vec::with_capacity(groups.len());
    for (index, group) in groups.iter().enumerate() {
        let length = group.parameters.len();
        let blocks = length / (group.block.rows * group.block.units).max(1);
        all.push(Own {
            index,
            group,
            position: take(&mut position, length),
            momentum: take(&mut momentum, length),
            state: take(&mut own_state, blocks * group.state),
            gradient: take(&mut gradient, length),
            noise: take(&mut noise, length),
            squares: take(&mut squares, length),
            cross: take(&mut cross, length),
            outer: take(&mut outer, group.outer.len()),
        });
    }
    let threads = threads.clamp(1, all.len().max(1));
    let work = |own: Vec<Own<'_, R>>| {
        let mut found = Vec::with_capacity(own.len());
        for own in own {
            found.push((own.index, shared.group(own)?));
        }
        Ok(found)
    };
    let results: Vec<Result<Vec<(usize, Found)>, LangevinError>> = if threads == 1 {
        vec![work(all)]
    } else {
        let mut parts: Vec<Vec<Own<'_, R>>> = (0..threads).map(|_| Vec::new()).collect();
        for (at, own) in all.into_iter().enumerate() {
            parts[at % threads].push(own);
        }
        let first = parts.pop().unwrap_or_default();
        std::thread::scope(|scope| {
            let work = &work;
            let others: Vec<_> = parts
                .into_iter()
                .map(|part| scope.spawn(move || work(part)))
                .collect();
            let mut results = vec![work(first)];
            for other in others {
                match other.join() {
                    Ok(result) => results.push(result),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            results
        })
    };
    // in the groups' order, so that sums do not depend on the threads
    let mut all = Vec::with_capacity(groups.len());
    for result in results {
        all.extend(result?);
    }
    all.sort_unstable_by_key(|(index, _)| *index);
    let mut total = Found::default();
    for (_, found) in all {
        total.corrections += found.corrections;
        total.virial += found.virial;
        total.kinetic += found.kinetic;
    }
    Ok(total)
}

/// The parameters in groups of whole blocks.
fn groups<R: Real>(layout: &Layout, preconditioner: &dyn Preconditioner<R>) -> Vec<Group> {
    let mut groups = Vec::new();
    let is_outer = preconditioner.statistics() == Statistics::Outer;
    let is_kronecker = preconditioner.statistics() == Statistics::Kronecker;
    let mut outer = 0;
    let mut push = |parameters: Range<usize>, block: Block| {
        let numbers = if is_outer {
            block.rows * block.rows
        } else if is_kronecker {
            block.rows * block.rows + block.units * block.units
        } else {
            0
        };
        groups.push(Group {
            parameters,
            block,
            state: preconditioner.state_len(block),
            outer: outer..outer + numbers,
        });
        outer += numbers;
    };
    if preconditioner.scope() == Scope::All {
        let block = Block {
            rows: layout.len(),
            units: 1,
            has_bias: false,
        };
        push(0..layout.len(), block);
        return groups;
    }
    for layer in &layout.layers {
        let (rows, has_bias) = (layer.rows, layer.has_bias);
        let is_layer = preconditioner.scope() == Scope::Layer;
        let units = if is_layer {
            layer.units
        } else {
            (GROUP / rows.max(1)).max(1)
        };
        for first in (0..layer.units).step_by(units.max(1)) {
            let count = units.min(layer.units - first);
            let start = layer.range.start + first * rows;
            let block = Block {
                rows,
                units: if is_layer { count } else { 1 },
                has_bias,
            };
            push(start..start + count * rows, block);
        }
    }
    groups
}

fn pulls<R: Real>(layout: &Layout, prior: Prior, position: &[R]) -> Vec<super::prior::Pull> {
    let layers = layout.layers.iter();
    let of_layer = |layer: &super::Parameters| {
        if !prior.needs_spread() {
            return prior.pull(Default::default());
        }
        let matrix = &position[layer.range.clone()];
        prior.pull(prior.spread(matrix, layer.rows, layer.has_bias))
    };
    layers.map(of_layer).collect()
}

/// The first `length` numbers, of which `all` loses them; fewer if there are none.
fn take<'a, R>(all: &mut &'a mut [R], length: usize) -> &'a mut [R] {
    let length = length.min(all.len());
    let (own, rest) = std::mem::take(all).split_at_mut(length);
    *all = rest;
    own
}
