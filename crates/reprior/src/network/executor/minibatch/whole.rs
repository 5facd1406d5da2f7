//! Minibatches through networks whose batch normalisation has the statistics of the whole minibatch.
//!
//! All rows go through the layers together: from one batch normalisation to the next in shares among the threads, with all rows'
//! moments in between; back likewise. Shares, and the order in which what they find is added up, do not depend on the number of
//! threads. Gradients of single rows do not exist: a row's outputs depend on the others.
//!
//! Cost: that of a gradient, and two sweeps over the inputs of each batch normalisation. Memory: all rows' features at once, two
//! to four times, where other passes hold those of a block.

use std::ops::Range;

use super::layers::rows_of;
use crate::compute::{Real, Team, add_scaled, panel_rows};
use crate::network::executor::pass::Reverse;
use crate::network::executor::program::{OperationStep, Program};
use crate::network::executor::shares::shares;
use crate::network::executor::workspace::{DerivativeOrder, ReverseSums, Weights, Workspace};
use crate::network::executor::{Executor, Loss};
use crate::network::layer::batch_norm::Normalise;
use crate::network::layer::batch_statistics::ChannelMoments;

/// The rows of a minibatch on their way through a network.
#[derive(Debug)]
pub(super) struct WholeBatch<R> {
    /// Steps that are batch normalisation.
    normalisations: Vec<usize>,
    /// Those that minibatches so far needed, and how many this one does.
    shares: Vec<Share<R>>,
    used: usize,
    transposed: Vec<R>,
    /// Of the minibatch, in the order of [`Composition::statistics`](crate::network::Composition::statistics); variances are
    /// estimates of the population's, Σ(h − μ)²/(m − 1).
    pub statistics: Vec<f64>,
    /// Values m of a channel of each batch normalisation.
    counts: Vec<f64>,
    /// Of each channel of one batch normalisation, over all values: of the cotangents, and of their products with what is
    /// normalised.
    means: Vec<[R; 2]>,
}

/// Some of the rows.
#[derive(Debug)]
struct Share<R> {
    space: Workspace<R>,
    rows: Range<usize>,
    moments: Vec<ChannelMoments>,
    gradient: Vec<R>,
    loss: f64,
}

/// The batch normalisation of a step.
fn normalisation<R: Real>(step: &OperationStep<R>) -> Option<&Normalise<R>> {
    step.operation.normalisation()
}

impl<R: Real> WholeBatch<R> {
    pub fn new(executor: &Executor<R>) -> Self {
        let steps = executor.program.steps.iter().enumerate();
        let places = steps.filter_map(|(at, step)| normalisation(step).map(|_| at));
        Self {
            normalisations: places.collect(),
            shares: Vec::new(),
            used: 0,
            transposed: Vec::new(),
            statistics: Vec::new(),
            counts: Vec::new(),
            means: Vec::new(),
        }
    }

    /// Leaves the statistics of the rows of `inputs` (row-major).
    pub fn evaluate(
        &mut self,
        team: &mut Team,
        executor: &mut Executor<R>,
        weights: &[R],
        inputs: &[R],
    ) {
        self.begin(executor, weights, inputs);
        self.forward(team, executor, weights, inputs);
    }

    /// The sum over the rows of `inputs` (row-major) of their losses, and its gradient; leaves their statistics.
    pub fn gradient(
        &mut self,
        team: &mut Team,
        executor: &mut Executor<R>,
        weights: &[R],
        inputs: &[R],
        loss: &Loss<'_, R>,
        gradient: &mut [R],
    ) -> f64 {
        self.begin(executor, weights, inputs);
        self.forward(team, executor, weights, inputs);
        let mut transposed = std::mem::take(&mut self.transposed);
        let program = &executor.program;
        let weights =
            Weights::plain(weights).transposed(program, Reverse::ToParameters, &mut transposed);
        self.backward(team, program, weights, loss);
        self.transposed = transposed;
        gradient.fill(R::ZERO);
        let shares = &self.shares[..self.used];
        for share in shares {
            add_scaled(gradient, 1.0, &share.gradient);
        }
        shares.iter().map(|share| share.loss).sum()
    }

    /// Splits the rows.
    fn begin(&mut self, executor: &Executor<R>, weights: &[R], inputs: &[R]) {
        let height = panel_rows::<R>();
        let rows = inputs.len() / executor.inputs_count().max(1);
        let split = shares(rows, height, weights.len());
        let panels = |rows: &Range<usize>| rows.len().div_ceil(height);
        let most = split.iter().map(panels).max().unwrap_or(0);
        let is_small = |share: &Share<R>| share.space.numbers() < most * height;
        if self.shares.iter().any(is_small) {
            self.shares.clear();
        }
        self.used = split.len();
        while self.shares.len() < split.len() {
            self.shares.push(Share {
                space: Workspace::new(most),
                rows: 0..0,
                moments: Vec::new(),
                gradient: Vec::new(),
                loss: 0.0,
            });
        }
        for (share, rows) in self.shares.iter_mut().zip(split) {
            share.rows = rows;
            share.gradient.clear();
            share.gradient.resize(weights.len(), R::ZERO);
        }
    }

    /// Up to the outputs. The executor has the statistics after it.
    fn forward(
        &mut self,
        team: &mut Team,
        executor: &mut Executor<R>,
        weights: &[R],
        inputs: &[R],
    ) {
        let columns = executor.inputs_count();
        let inputs = rows_of(inputs, columns, 0..inputs.len() / columns.max(1));
        self.statistics.clear();
        self.counts.clear();
        let mut from = 0;
        for index in 0..=self.normalisations.len() {
            let program = &executor.program;
            let next = self.normalisations.get(index).copied();
            let end = next.unwrap_or(program.steps.len());
            let shares = self.shares[..self.used].iter_mut().collect();
            team.share(shares, |share: &mut Share<R>| {
                if from == 0 && index == 0 {
                    share.space.load_inputs(program, inputs, share.rows.clone());
                }
                let order = DerivativeOrder::First;
                for step in &program.steps[from..end] {
                    let space = &mut share.space;
                    space.step_forward(program, step, weights, order, usize::MAX);
                }
                let step = next.and_then(|at| program.steps.get(at));
                if let Some((step, own)) = step.and_then(|step| Some((step, normalisation(step)?)))
                {
                    let plain = Weights::plain(weights);
                    let point = share.space.point(program, step, plain, usize::MAX);
                    own.moments(share.rows.len(), point.input, &mut share.moments);
                }
            });
            if let Some(at) = next {
                self.take_statistics(executor, at);
            }
            from = end;
        }
    }

    /// Combines the shares' moments at a step to its statistics.
    fn take_statistics(&mut self, executor: &mut Executor<R>, at: usize) {
        let Some(normalise) = executor.program.steps[at].operation.normalisation_mut() else {
            return;
        };
        let (shares, start) = (&self.shares[..self.used], self.statistics.len());
        let channels = normalise.channels();
        self.statistics.resize(start + 2 * channels, 0.0);
        let (mean, variance) = self.statistics[start..].split_at_mut(channels);
        let mut count = 0.0;
        for (channel, (mean, variance)) in mean.iter_mut().zip(&mut *variance).enumerate() {
            let own = shares.iter().map(|share| share.moments[channel]);
            let all = own.fold(ChannelMoments::default(), ChannelMoments::with);
            (*mean, *variance) = (all.mean, all.squares / all.count);
            count = all.count;
        }
        normalise.set(mean, variance);
        variance
            .iter_mut()
            .for_each(|own| *own *= count / (count - 1.0));
        self.counts.push(count);
    }

    /// From the losses to each share's gradient.
    fn backward(
        &mut self,
        team: &mut Team,
        program: &Program<R>,
        weights: Weights<'_, R>,
        loss: &Loss<'_, R>,
    ) {
        let mut above = None;
        for index in (0..=self.normalisations.len()).rev() {
            let below = index.checked_sub(1).map(|index| self.normalisations[index]);
            let part = below.map_or(0, |at| at + 1)..above.unwrap_or(program.steps.len());
            let means = &self.means[..];
            let shares = self.shares[..self.used].iter_mut().collect();
            team.share(shares, |share: &mut Share<R>| {
                match above.map(|at| &program.steps[at]) {
                    Some(step) => share.leave_normalisation(program, weights, step, means),
                    None => share.take_losses(program, loss),
                }
                let mut sums = ReverseSums::plain(&mut share.gradient);
                let space = &mut share.space;
                for step in program.steps[part.clone()].iter().rev() {
                    space.step_reverse(program, weights, step, &mut sums, false);
                }
                if let Some(at) = below {
                    space.step_reverse_weights(program, weights, &program.steps[at], &mut sums);
                }
            });
            if let Some(at) = below {
                self.take_means(&program.steps[at], self.counts[index - 1]);
            }
            above = below;
        }
    }

    /// Means from the sums over each share, which are gradients of γ and β.
    fn take_means(&mut self, step: &OperationStep<R>, count: f64) {
        let shares = &self.shares[..self.used];
        let mean = |at: usize| {
            let sums = shares.iter().map(|share| share.gradient[at].to_f64());
            R::from_f64(sums.sum::<f64>() / count)
        };
        self.means.clear();
        let pairs = step.weights.clone().step_by(2);
        self.means.extend(pairs.map(|at| [mean(at + 1), mean(at)]));
    }
}

impl<R: Real> Share<R> {
    /// Makes the derivatives of the rows' losses the cotangents of the outputs.
    fn take_losses(&mut self, program: &Program<R>, loss: &Loss<'_, R>) {
        let mut total = 0.0;
        let mut visit = |row, y: &[R], _: &[R], cotangent: &mut [R], _: &mut [R]| {
            total += loss(row, y, cotangent);
        };
        let order = DerivativeOrder::First;
        self.space.visit_outputs(program, false, order, &mut visit);
        self.loss = total;
    }

    /// Goes back through a batch normalisation and its statistics.
    fn leave_normalisation(
        &mut self,
        program: &Program<R>,
        weights: Weights<'_, R>,
        step: &OperationStep<R>,
        means: &[[R; 2]],
    ) {
        let (samples, accumulate) = (self.rows.len(), step.adds_cotangent);
        if let (Some(normalise), true) = (normalisation(step), step.input > 0) {
            let space = &mut self.space;
            space.step_reverse_input(program, weights, step, |_, point, cotangent, out| {
                normalise.vjp_input_of_batch(point, samples, means, cotangent, accumulate, out);
            });
        }
    }
}
