//! Gradients of a loss over minibatches, with second moments of single rows' gradients.
//!
//! They are made in two steps. [`Gradients::evaluate`] goes forward and back through the network as far as that is done for all
//! parameters at once, and [`Evaluation::scaled_sums`] gives the gradients of a few units at a time, for whoever uses them while
//! they are in the cache: those of a fully connected network are products that are made only then.

mod dense;
mod dropout;
mod layers;
#[cfg(test)]
mod tests;
mod whole;

use std::fmt;
use std::ops::Range;

use super::{Executor, Loss};
use crate::compute::{Real, Team};
use crate::network::Composition;
use dense::DenseMinibatch;
use layers::LayerMinibatch;

pub(crate) use dropout::Dropout;

/// What is to be found of the gradients of a minibatch's rows besides their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GradientStatistics {
    /// Nothing.
    None,
    /// Sums of squares.
    Squares,
    /// These and sums of products with the gradient of the unit's bias.
    SquaresAndCross,
    /// The sum of outer products.
    Outer,
    /// Sums of outer products of a layer's inputs, and of its cotangents.
    Kronecker,
}

impl GradientStatistics {
    /// Whether there is at most one number of each kind for each parameter.
    pub(crate) fn are_elementwise(self) -> bool {
        !matches!(self, Self::Outer | Self::Kronecker)
    }
}

/// Rows to be evaluated together, and what is wanted of them.
#[derive(Clone, Copy)]
pub(crate) struct Minibatch<'a, R> {
    /// Of all rows, row-major.
    pub inputs: &'a [R],
    /// Numbers of one input.
    pub columns: usize,
    /// Which of the rows.
    pub rows: &'a [u32],
    /// The loss of a row, which is given its number in the batch.
    pub loss: &'a Loss<'a, R>,
    pub statistics: GradientStatistics,
    /// Without effect on networks that are not fully connected.
    pub dropout: Option<Dropout>,
}

/// Where sums over rows of a few units' gradients go; what is empty is not wanted.
pub(crate) struct UnitSums<'a, R> {
    pub gradient: &'a mut [R],
    pub squares: &'a mut [R],
    pub cross: &'a mut [R],
}

/// Writes the cotangents of all outputs (row-major) that statistics are of in place of those of the loss, if they are.
type Simulate<'a, R> = Option<&'a mut (dyn FnMut(&mut [R]) + 'a)>;

/// One way to evaluate minibatches.
trait GradientPlan<R>: fmt::Debug + Send + Sync {
    /// See [`Gradients::evaluate`].
    fn evaluate(
        &mut self,
        team: &mut Team,
        weights: &[R],
        batch: Minibatch<'_, R>,
        simulate: Simulate<'_, R>,
    ) -> f64;

    /// See [`Evaluation::scaled_sums`].
    fn scaled_sums(
        &self,
        scale: f64,
        units: (usize, Range<usize>),
        range: Range<usize>,
        sums: UnitSums<'_, R>,
    );

    /// See [`Evaluation::outer`].
    fn outer(&self) -> &[R];
}

/// A network that minibatches are evaluated with.
#[derive(Debug)]
pub(crate) struct Gradients<R> {
    layers: LayerMinibatch<R>,
    /// If the network is fully connected.
    dense: Option<DenseMinibatch<R>>,
}

/// A minibatch's loss, and what its gradients are made of.
pub(crate) struct Evaluation<'a, R> {
    /// The sum over the rows.
    pub loss: f64,
    plan: &'a dyn GradientPlan<R>,
}

impl<R: Real> Gradients<R> {
    /// Of the network that `executor` has been made of.
    pub fn new(network: &Composition, executor: Executor<R>) -> Self {
        Self {
            layers: LayerMinibatch::new(executor),
            dense: DenseMinibatch::new(network),
        }
    }

    /// Leaves out of products with batches of these rows, row-major, what most numbers of each column are, if few are others.
    pub fn leave_out_common(&mut self, inputs: &[R], columns: usize) {
        if let Some(dense) = &mut self.dense {
            dense.leave_out_common(inputs, columns);
        }
    }

    /// Gives batch normalisation the statistics of the minibatch that is evaluated, over all of its rows, and takes the gradient
    /// through them. There are no [`GradientStatistics`] then.
    pub fn take_batch_statistics(&mut self) {
        self.layers.take_batch_statistics();
    }

    /// Means and variances of the last minibatch, in the order of [`Composition::statistics`]; none where they are not taken.
    pub fn batch_statistics(&self) -> &[f64] {
        self.layers.batch_statistics()
    }

    /// Those of the rows `rows` of `inputs` (row-major, so many columns).
    pub fn find_batch_statistics(
        &mut self,
        team: &mut Team,
        weights: &[R],
        inputs: (&[R], usize),
        rows: &[u32],
    ) -> &[f64] {
        self.layers
            .find_batch_statistics(team, weights, inputs, rows)
    }

    /// Whether the network is fully connected.
    pub fn is_fully_connected(&self) -> bool {
        self.dense.is_some()
    }

    /// Goes forward and back. Statistics are of the gradients of the loss, or of those whose cotangents `simulate` writes in place of
    /// all outputs (row-major).
    pub fn evaluate(
        &mut self,
        team: &mut Team,
        weights: &[R],
        batch: Minibatch<'_, R>,
        simulate: Simulate<'_, R>,
    ) -> Evaluation<'_, R> {
        let plan: &mut dyn GradientPlan<R> = match &mut self.dense {
            Some(dense) if batch.statistics.are_elementwise() => dense,
            _ => &mut self.layers,
        };
        let loss = plan.evaluate(team, weights, batch, simulate);
        Evaluation { loss, plan }
    }
}

impl<R: Real> Evaluation<'_, R> {
    /// `scale` times the sums over the minibatch for the parameters `range`, which are those of some `units` of a layer, or of all
    /// layers where the statistics are [`GradientStatistics::Outer`].
    pub fn scaled_sums(
        &self,
        scale: f64,
        units: (usize, Range<usize>),
        range: Range<usize>,
        sums: UnitSums<'_, R>,
    ) {
        self.plan.scaled_sums(scale, units, range, sums);
    }

    /// The sums of outer products: D × D, or layer by layer those of Kronecker-factored curvature.
    pub fn outer(&self) -> &[R] {
        self.plan.outer()
    }
}

/// Rows whose loss is found at a time.
const LOSSES: usize = 25;

/// The sum of a loss over rows of outputs (row-major), in whose place their cotangents are written.
fn to_cotangents<R: Real>(
    team: &mut Team,
    values: &mut [R],
    outputs: usize,
    loss: &Loss<'_, R>,
) -> f64 {
    let chunks = values.chunks_mut(LOSSES * outputs);
    let mut sums = vec![0.0; chunks.len()];
    let items = chunks.zip(&mut sums).enumerate().collect();
    team.share(
        items,
        |(chunk, (values, sum)): (usize, (&mut [R], &mut f64))| {
            let mut cotangent = vec![R::ZERO; outputs];
            for (row, f) in values.chunks_exact_mut(outputs).enumerate() {
                *sum += loss(chunk * LOSSES + row, f, &mut cotangent);
                f.copy_from_slice(&cotangent);
            }
        },
    );
    sums.iter().sum()
}
