//! One update of all parameters, in groups of units that fit the cache: gradient, statistics, preconditioner, noise and step one
//! after the other, so that every parameter is read and written once. Groups and their random streams do not depend on the
//! number of threads.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::Dynamics;
use super::preconditioner::{Batch, Block, Preconditioner, Scope};
use super::prior::Pull;
use super::update::{StochasticGradientError, StochasticGradientState};
use crate::compute::{Purpose, Real, Stream, Team, all_finite, dot_in_lanes, norm_squared, simd};
use crate::network::parameters::ParameterLayout;
use crate::network::{Evaluation, GradientStatistics, UnitSums};

/// Parameters of a group of units, about.
const GROUP: usize = 1 << 15;

/// Parameters that are worked on together: whole blocks.
#[derive(Debug, Clone)]
pub(super) struct ParameterGroup {
    pub parameters: Range<usize>,
    /// Its layer, and which units of it; of everything if that is one block.
    layer: usize,
    units: Range<usize>,
    pub block: Block,
    /// Numbers of one block's state.
    pub state: usize,
    /// Of all outer products.
    outer: Range<usize>,
}

/// What groups found, added up.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct GroupSums {
    pub corrections: u64,
    /// ⟨θ − mean, g⟩.
    pub virial: f64,
    /// |v|².
    pub kinetic: f64,
}

/// How positions move.
#[derive(Debug, Clone, Copy)]
pub(super) enum UpdateStep {
    Plain,
    /// What is kept of the momentum.
    Momentum(f64),
    Adam {
        rates: [f64; 2],
        /// 1/(1 − βᵗ) of both.
        corrections: [f64; 2],
        epsilon: f64,
    },
}

impl UpdateStep {
    /// Update number `update` of these dynamics, and the share of its noise that is injected.
    pub fn of(dynamics: Dynamics, thermostat: f64, update: u64) -> (Self, f64) {
        match dynamics {
            Dynamics::Langevin => (Self::Plain, 1.0),
            Dynamics::Hamiltonian { friction } => (Self::Momentum(1.0 - friction), friction),
            Dynamics::NoseHoover { friction } => (Self::Momentum(1.0 - thermostat), friction),
            Dynamics::Adam {
                first,
                second,
                epsilon,
            } => (Self::adam(first, second, epsilon, update + 1), 0.0),
        }
    }

    /// Adam's `count`-th update.
    fn adam(first: f64, second: f64, epsilon: f64, count: u64) -> Self {
        let rates = [first, second];
        Self::Adam {
            rates,
            corrections: rates.map(|rate| 1.0 / (1.0 - rate.powf(count as f64))),
            epsilon,
        }
    }
}

/// What is the same for every group in an update.
pub(super) struct UpdateContext<'a, R> {
    pub evaluation: Evaluation<'a, R>,
    pub layout: &'a ParameterLayout,
    pub preconditioner: &'a dyn Preconditioner<R>,
    /// The prior's, layer by layer.
    pub pulls: Vec<Pull>,
    /// Rows of the minibatch, and of the data.
    pub batch: usize,
    pub rows: usize,
    /// η.
    pub step_size: f64,
    pub step: UpdateStep,
    /// Scale of the noise; 0 for none.
    pub noise: f64,
    /// γ.
    pub rate: f64,
    pub seed: u64,
    pub chain: u64,
    pub update: u64,
}

/// One group's own parts of the chain's state.
struct Own<'a, R> {
    index: usize,
    group: &'a ParameterGroup,
    position: &'a mut [R],
    momentum: &'a mut [R],
    state: &'a mut [R],
}

/// One group's gradient, noise and statistics.
struct Work<'a, R> {
    gradient: &'a mut [R],
    noise: &'a mut [R],
    squares: &'a mut [R],
    cross: &'a mut [R],
    outer: &'a mut [R],
}

/// The parameters in groups of whole blocks.
pub(super) fn groups<R: Real>(
    layout: &ParameterLayout,
    preconditioner: &dyn Preconditioner<R>,
) -> Vec<ParameterGroup> {
    let mut groups = Vec::new();
    let statistics = preconditioner.statistics();
    let mut outer = 0;
    let mut push = |parameters: Range<usize>, layer: usize, units: Range<usize>, block: Block| {
        let numbers = match statistics {
            GradientStatistics::Outer => block.rows * block.rows,
            GradientStatistics::Kronecker => block.rows * block.rows + block.units * block.units,
            _ => 0,
        };
        groups.push(ParameterGroup {
            parameters,
            layer,
            units,
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
        push(0..layout.len(), 0, 0..0, block);
        return groups;
    }
    for (index, layer) in layout.layers.iter().enumerate() {
        let (rows, has_bias) = (layer.rows, layer.has_bias);
        let is_layer = preconditioner.scope() == Scope::Layer;
        let units = if is_layer {
            layer.units
        } else {
            // an even number of groups of about the same size, so that two threads have as many each
            let groups = (rows * layer.units).div_ceil(GROUP).next_multiple_of(2);
            layer.units.div_ceil(groups.max(1)).next_multiple_of(4)
        };
        for first in (0..layer.units).step_by(units.max(1)) {
            let own = first..layer.units.min(first + units);
            let start = layer.range.start;
            let block = Block {
                rows,
                units: if is_layer { own.len() } else { 1 },
                has_bias,
            };
            let parameters = start + own.start * rows..start + own.end * rows;
            push(parameters, index, own, block);
        }
    }
    groups
}

impl ParameterGroup {
    /// Parameters of one block.
    fn block_len(&self) -> usize {
        self.block.rows * self.block.units
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.parameters.len() / self.block_len().max(1)
    }
}

/// Has every group updated. `scratch` has a vector for each thread.
///
/// # Errors
/// The first group's that fails; the state is then of no use any more.
pub(super) fn update_groups<R: Real>(
    groups: &[ParameterGroup],
    state: &mut StochasticGradientState<R>,
    scratch: &mut [Vec<R>],
    team: &mut Team,
    shared: &UpdateContext<'_, R>,
) -> Result<GroupSums, StochasticGradientError> {
    let mut position = &mut state.position[..];
    let mut momentum = &mut state.momentum[..];
    let mut own_state = &mut state.preconditioner[..];
    let momenta = momentum.len() / position.len().max(1);
    let mut found = vec![Ok(GroupSums::default()); groups.len()];
    let mut items = Vec::with_capacity(groups.len());
    for (index, (group, found)) in groups.iter().zip(&mut found).enumerate() {
        let length = group.parameters.len();
        let own = Own {
            index,
            group,
            position: take(&mut position, length),
            momentum: take(&mut momentum, momenta * length),
            state: take(&mut own_state, group.blocks() * group.state),
        };
        items.push((own, found));
    }
    // a vector is lent to whoever works: there are as many as threads
    let scratch: Mutex<Vec<&mut Vec<R>>> = Mutex::new(scratch.iter_mut().collect());
    let free = || scratch.lock().unwrap_or_else(PoisonError::into_inner);
    team.share(items, |(own, found)| {
        let lent = free().pop();
        if let Some(lent) = lent {
            *found = shared.group(own, lent);
            free().push(lent);
        }
    });
    let mut total = GroupSums::default();
    for found in found {
        let found = found?;
        total.corrections += found.corrections;
        total.virial += found.virial;
        total.kinetic += found.kinetic;
    }
    Ok(total)
}

impl<R: Real> UpdateContext<'_, R> {
    /// One group's part of an update.
    fn group(
        &self,
        own: Own<'_, R>,
        scratch: &mut Vec<R>,
    ) -> Result<GroupSums, StochasticGradientError> {
        let (group, size, mut found) = (own.group, own.group.block_len(), GroupSums::default());
        if size == 0 {
            return Ok(found);
        }
        let work = self.sums(group, own.index, scratch);
        let one = own.position.len().min(own.momentum.len());
        let (momentum, second) = own.momentum.split_at_mut(one);
        let mut outer = &*work.outer;
        for (at, start) in (0..own.position.len()).step_by(size).enumerate() {
            let range = start..start + size;
            let gradient = &mut work.gradient[range.clone()];
            let state = &mut own.state[at * group.state..(at + 1) * group.state];
            let batch = Batch {
                gradient,
                squares: work.squares.get(range.clone()).unwrap_or(&[]),
                cross: work.cross.get(range.clone()).unwrap_or(&[]),
                outer: std::mem::take(&mut outer),
                update: self.update,
            };
            found.corrections += self
                .preconditioner
                .update(group.block, batch, self.rate, state)
                .map_err(|reason| StochasticGradientError::Preconditioner {
                    update: self.update,
                    reason,
                })?;
            let first = group.parameters.start + start;
            let position = &mut own.position[range.clone()];
            found.virial += self.add_prior(first, position, gradient);
            let noise = work.noise.get_mut(range.clone()).unwrap_or(&mut []);
            let kind = self.preconditioner;
            found.corrections += kind.transform(group.block, state, gradient, noise);
            let momentum = momentum.get_mut(range.clone()).unwrap_or(&mut []);
            if let Some(second) = second.get_mut(range) {
                self.adam(position, momentum, second, gradient);
            } else {
                found.kinetic += self.step(position, momentum, gradient, noise);
            }
            if !(all_finite(position) && all_finite(state)) {
                return Err(self.out_of_range(first, position));
            }
        }
        Ok(found)
    }

    /// A group's mean gradient, statistics and noise.
    fn sums<'w>(
        &self,
        group: &ParameterGroup,
        index: usize,
        scratch: &'w mut Vec<R>,
    ) -> Work<'w, R> {
        let length = group.parameters.len();
        let statistics = self.preconditioner.statistics();
        let has = |is_wanted: bool| if is_wanted { length } else { 0 };
        let has_cross = statistics == GradientStatistics::SquaresAndCross;
        let lengths = [
            length,
            has(self.noise > 0.0),
            has(has_cross || statistics == GradientStatistics::Squares),
            has(has_cross),
            group.outer.len(),
        ];
        let all = lengths.iter().sum();
        if scratch.len() < all {
            scratch.resize(all, R::ZERO);
        }
        let mut rest = &mut scratch[..all];
        let [gradient, noise, squares, cross, outer] = lengths.map(|n| take(&mut rest, n));
        let (range, own) = (group.parameters.clone(), (group.layer, group.units.clone()));
        let sums = UnitSums {
            gradient,
            squares,
            cross,
        };
        let scale = 1.0 / self.batch as f64;
        self.evaluation.scaled_sums(scale, own, range, sums);
        let sums = &self.evaluation.outer()[group.outer.clone()];
        for (mean, &sum) in outer.iter_mut().zip(sums) {
            *mean = R::from_f64(scale) * sum;
        }
        if !noise.is_empty() {
            let index = (self.update << 20) | index as u64;
            Stream::new(self.seed, self.chain, Purpose::Update, index).fill_normal(noise);
        }
        Work {
            gradient,
            noise,
            squares,
            cross,
            outer,
        }
    }

    /// Adds −(1/N)∇ log prior to the gradient of the parameters from number `first` on. Returns ⟨θ − mean, g⟩ after that.
    fn add_prior(&self, first: usize, position: &[R], gradient: &mut [R]) -> f64 {
        let (mut at, mut virial) = (0, 0.0);
        for (layer, pull) in self.layout.layers.iter().zip(&self.pulls) {
            if layer.range.end <= first + at || at == position.len() {
                continue;
            }
            let end = (layer.range.end - first).min(position.len());
            let mean = R::from_f64(pull.mean);
            let inverse = 1.0 / self.rows as f64;
            let [weights, biases] = pull.precision.map(|p| R::from_f64(p * inverse));
            let columns = position[at..end].chunks_exact(layer.rows);
            for (theta, g) in columns.zip(gradient[at..end].chunks_exact_mut(layer.rows)) {
                let split = layer.rows - usize::from(layer.has_bias);
                simd(
                    #[inline(always)]
                    || {
                        for (g, &theta) in g[..split].iter_mut().zip(theta) {
                            *g += weights * (theta - mean);
                        }
                        for (g, &theta) in g[split..].iter_mut().zip(&theta[split..]) {
                            *g += biases * (theta - mean);
                        }
                    },
                );
                virial += dot_in_lanes(theta, g).to_f64();
                if pull.mean != 0.0 {
                    virial -= pull.mean * g.iter().map(|g| g.to_f64()).sum::<f64>();
                }
            }
            at = end;
        }
        virial
    }

    /// The move itself. Returns |v|².
    fn step(&self, position: &mut [R], momentum: &mut [R], gradient: &[R], noise: &[R]) -> f64 {
        let (step_size, scale) = (R::from_f64(self.step_size), R::from_f64(self.noise));
        simd(
            #[inline(always)]
            || match self.step {
                UpdateStep::Momentum(keeps) => {
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
                }
                _ => {
                    for (theta, &g) in position.iter_mut().zip(gradient) {
                        *theta -= step_size * g;
                    }
                    for (theta, &xi) in position.iter_mut().zip(noise) {
                        *theta += scale * xi;
                    }
                }
            },
        );
        norm_squared(momentum)
    }

    /// Adam's move.
    fn adam(&self, position: &mut [R], first: &mut [R], second: &mut [R], gradient: &[R]) {
        let UpdateStep::Adam {
            rates,
            corrections,
            epsilon,
        } = self.step
        else {
            return;
        };
        let [keeps_first, keeps_second] = rates.map(R::from_f64);
        let [takes_first, takes_second] = rates.map(|rate| R::from_f64(1.0 - rate));
        let step_size = R::from_f64(self.step_size * corrections[0]);
        let (scale, epsilon) = (R::from_f64(corrections[1]), R::from_f64(epsilon));
        let moments = first.iter_mut().zip(second);
        let values = position.iter_mut().zip(moments).zip(gradient);
        simd(
            #[inline(always)]
            || {
                for ((theta, (m, v)), &g) in values {
                    *m = keeps_first * *m + takes_first * g;
                    *v = keeps_second * *v + takes_second * g * g;
                    *theta -= step_size * *m / ((scale * *v).sqrt() + epsilon);
                }
            },
        );
    }

    /// Which layer's weights are not finite, among those from number `first` on.
    fn out_of_range(&self, first: usize, position: &[R]) -> StochasticGradientError {
        let at = position.iter().position(|x| !x.to_f64().is_finite());
        let at = first + at.unwrap_or(0);
        let layers = &self.layout.layers;
        let layer = layers.iter().find(|layer| layer.range.contains(&at));
        StochasticGradientError::Position {
            layer: layer.map_or_else(String::new, |layer| layer.name.clone()),
            update: self.update,
            step_size: self.step_size,
        }
    }
}

/// The first `length` numbers, which `all` loses; none if there are not so many.
fn take<'a, R>(all: &mut &'a mut [R], length: usize) -> &'a mut [R] {
    let length = if all.len() < length { 0 } else { length };
    let (own, rest) = std::mem::take(all).split_at_mut(length);
    *all = rest;
    own
}
