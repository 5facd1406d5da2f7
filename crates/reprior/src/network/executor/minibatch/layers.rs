//! Minibatches through networks of any layers, by the [`Executor`]: all sums are made at once and kept.

use std::ops::Range;

use super::whole::WholeBatch;
use super::{GradientPlan, GradientStatistics, Minibatch, UnitSums, to_cotangents};
use crate::compute::{Matrix, Real, Team, matrix, matrix_mut, multiply, panel_rows};
use crate::network::Executor;
use crate::network::executor::{GradientMoments, Loss};

#[derive(Debug)]
pub(super) struct LayerMinibatch<R> {
    executor: Executor<R>,
    /// If batch normalisation has the statistics of the minibatch.
    whole: Option<WholeBatch<R>>,
    /// The batch's inputs, row-major.
    batch: Vec<R>,
    /// Outputs and cotangents, row-major, and gradients of single rows of a panel.
    cotangents: Vec<R>,
    single: Vec<R>,
    /// Sums over the rows.
    gradient: Vec<R>,
    moments: OwnedMoments<R>,
    /// A gradient that is of no interest: that of simulated targets.
    unused: Vec<R>,
}

/// Sums over the rows, as long as the parameters but for the outer products; empty where they are not wanted.
#[derive(Debug, Default)]
struct OwnedMoments<R> {
    squares: Vec<R>,
    cross: Vec<R>,
    outer: Vec<R>,
}

impl<R: Real> OwnedMoments<R> {
    fn resize(&mut self, [squares, cross, outer]: [usize; 3]) {
        self.squares.resize(squares, R::ZERO);
        self.cross.resize(cross, R::ZERO);
        self.outer.resize(outer, R::ZERO);
    }

    /// Those that an executor finds.
    fn wanted(&mut self, statistics: GradientStatistics) -> GradientMoments<'_, R> {
        match statistics {
            GradientStatistics::None => GradientMoments::default(),
            _ => GradientMoments {
                squares: &mut self.squares,
                cross: &mut self.cross,
                kronecker: match statistics {
                    GradientStatistics::Kronecker => &mut self.outer,
                    _ => &mut [],
                },
            },
        }
    }
}

impl<R: Real> LayerMinibatch<R> {
    pub fn new(executor: Executor<R>) -> Self {
        Self {
            executor,
            whole: None,
            batch: Vec::new(),
            cotangents: Vec::new(),
            single: Vec::new(),
            gradient: Vec::new(),
            moments: OwnedMoments {
                squares: Vec::new(),
                cross: Vec::new(),
                outer: Vec::new(),
            },
            unused: Vec::new(),
        }
    }

    /// With batch normalisation that has the statistics of the minibatch.
    pub fn take_batch_statistics(&mut self) {
        self.whole = Some(WholeBatch::new(&self.executor));
    }

    /// Those of the last minibatch; none where they are not taken.
    pub fn batch_statistics(&self) -> &[f64] {
        self.whole.as_ref().map_or(&[], |whole| &whole.statistics)
    }

    /// The statistics of some rows alone.
    pub fn find_batch_statistics(
        &mut self,
        team: &mut Team,
        weights: &[R],
        (inputs, columns): (&[R], usize),
        rows: &[u32],
    ) -> &[f64] {
        self.load(inputs, columns, rows);
        if let Some(whole) = &mut self.whole {
            whole.evaluate(team, &mut self.executor, weights, &self.batch);
        }
        self.batch_statistics()
    }

    fn load(&mut self, inputs: &[R], columns: usize, rows: &[u32]) {
        self.batch.clear();
        for &row in rows {
            let at = row as usize * columns;
            self.batch.extend_from_slice(&inputs[at..at + columns]);
        }
    }

    /// The batch's outputs, to where cotangents go.
    fn forward(&mut self, weights: &[R], rows: usize) {
        let (columns, outputs) = (self.executor.inputs_count(), self.executor.outputs_count());
        self.cotangents.clear();
        self.cotangents.resize(rows * outputs, R::ZERO);
        let inputs = rows_of(&self.batch, columns, 0..rows);
        let out = matrix_mut(&mut self.cotangents, outputs, rows);
        self.executor.outputs(weights, inputs, out.transpose_mut());
    }

    /// The gradient of `loss`, with these statistics.
    fn gradient(
        &mut self,
        weights: &[R],
        rows: usize,
        loss: &Loss<'_, R>,
        statistics: GradientStatistics,
    ) -> f64 {
        let inputs = rows_of(&self.batch, self.executor.inputs_count(), 0..rows);
        let moments = self.moments.wanted(statistics);
        let gradient = &mut self.gradient;
        self.executor
            .gradient_with_moments(weights, inputs, loss, gradient, moments)
    }

    /// Statistics of the gradients that the cotangents are of.
    fn moments_of_cotangents(
        &mut self,
        weights: &[R],
        rows: usize,
        statistics: GradientStatistics,
    ) {
        let (columns, outputs) = (self.executor.inputs_count(), self.executor.outputs_count());
        let cotangents = &self.cotangents;
        let loss = |row: usize, _: &[R], cotangent: &mut [R]| {
            cotangent.copy_from_slice(&cotangents[row * outputs..(row + 1) * outputs]);
            0.0
        };
        let inputs = rows_of(&self.batch, columns, 0..rows);
        let moments = self.moments.wanted(statistics);
        self.unused.resize(weights.len(), R::ZERO);
        let unused = &mut self.unused;
        self.executor
            .gradient_with_moments(weights, inputs, &loss, unused, moments);
    }

    /// The sum (D × D) over the rows of gᵢgᵢᵀ for the gradients gᵢ that the cotangents are of. One panel's gradients at a time.
    fn outer_products(&mut self, weights: &[R], rows: usize) {
        let (columns, outputs) = (self.executor.inputs_count(), self.executor.outputs_count());
        let (dim, height) = (weights.len(), panel_rows::<R>());
        self.moments.outer.fill(R::ZERO);
        for first in (0..rows).step_by(height) {
            let panel = first..rows.min(first + height);
            let inputs = rows_of(&self.batch, columns, panel.clone());
            let cotangents = rows_of(&self.cotangents, outputs, panel.clone());
            self.single.resize(height * dim, R::ZERO);
            let single = &mut self.single[..panel.len() * dim];
            let out = matrix_mut(single, panel.len(), dim);
            self.executor
                .vjp_of_samples(weights, inputs, cotangents, out);
            let single = matrix(single, panel.len(), dim);
            let out = matrix_mut(&mut self.moments.outer, dim, dim);
            multiply(out, true, 1.0, single.transpose(), single);
        }
    }
}

/// Some rows of row-major `values`.
pub(super) fn rows_of<R: Real>(values: &[R], columns: usize, rows: Range<usize>) -> Matrix<'_, R> {
    let own = &values[rows.start * columns..rows.end * columns];
    matrix(own, columns, rows.len()).transpose()
}

impl<R: Real> GradientPlan<R> for LayerMinibatch<R> {
    fn evaluate(
        &mut self,
        team: &mut Team,
        weights: &[R],
        batch: Minibatch<'_, R>,
        simulate: Option<&mut dyn FnMut(&mut [R])>,
    ) -> f64 {
        self.load(batch.inputs, batch.columns, batch.rows);
        let Minibatch {
            loss, statistics, ..
        } = batch;
        let (rows, dim) = (batch.rows.len(), weights.len());
        self.gradient.resize(dim, R::ZERO);
        self.moments.resize(match statistics {
            GradientStatistics::None => [0, 0, 0],
            GradientStatistics::Squares => [dim, 0, 0],
            GradientStatistics::SquaresAndCross => [dim, dim, 0],
            GradientStatistics::Outer => [0, 0, dim * dim],
            GradientStatistics::Kronecker => [0, 0, self.executor.kronecker_len()],
        });
        if let Some(whole) = &mut self.whole {
            // statistics of single rows' gradients are refused before: there are no such gradients
            let (executor, gradient) = (&mut self.executor, &mut self.gradient);
            return whole.gradient(team, executor, weights, &self.batch, loss, gradient);
        }
        let is_outer = statistics == GradientStatistics::Outer;
        if !is_outer && simulate.is_none() {
            return self.gradient(weights, rows, loss, statistics);
        }
        self.forward(weights, rows);
        match simulate {
            Some(simulate) => simulate(&mut self.cotangents),
            None => {
                let outputs = self.executor.outputs_count();
                to_cotangents(team, &mut self.cotangents, outputs, loss);
            }
        }
        if is_outer {
            self.outer_products(weights, rows);
        } else {
            self.moments_of_cotangents(weights, rows, statistics);
        }
        self.gradient(weights, rows, loss, GradientStatistics::None)
    }

    fn scaled_sums(
        &self,
        scale: f64,
        _: (usize, Range<usize>),
        range: Range<usize>,
        sums: UnitSums<'_, R>,
    ) {
        let scale = R::from_f64(scale);
        for (out, values) in [
            (sums.gradient, &self.gradient),
            (sums.squares, &self.moments.squares),
            (sums.cross, &self.moments.cross),
        ] {
            if !out.is_empty() {
                for (out, &value) in out.iter_mut().zip(&values[range.clone()]) {
                    *out = scale * value;
                }
            }
        }
    }

    fn outer(&self) -> &[R] {
        &self.moments.outer
    }
}
