//! Networks of any layers, evaluated and differentiated over many samples: outputs, jvp, vjp, Hessian- and
//! Gauss-Newton-vector products, gradients of single samples.
//!
//! Samples go through the whole network block by block, so that a block's numbers stay in the cache and memory does not grow
//! with the data. Within a block the sample runs fastest: vector registers hold the same feature of different samples, which
//! makes a convolution a product without a copy of its windows (see `compute::gather`). Blocks are shared among threads;
//! results do not depend on how many there are.
//!
//! Parameters are one vector: layer after layer, branches of parallel layers in order, each column-major with the bias in the
//! last row; then the readout, (d_L + 1) × C, whose last row is its bias. Inputs, outputs and cotangents are n × features
//! matrices (views of any strides; column-major is fastest), features in the order of
//! [`Shape`](crate::network::layer::Shape).
//!
//! Cost, in units of a forward pass: jvp 3 (2 of the layers above the first), vjp 3, Gauss-Newton product 4 to 5, Hessian
//! product 7 to 8. Memory of a thread: two to four times a block's features, besides the gradients of at most 16 shares.
//! Lengths that do not agree are panics.

mod derivatives;
mod features;
mod minibatch;
mod pass;
mod program;
mod samples;
mod sets;
mod several;
mod shares;
mod slots;
#[cfg(test)]
mod tests;
mod workspace;

use super::Composition;
use super::layer::ShapeError;
use crate::compute::{Matrix, MatrixMut, Real, panel_rows};
use pass::Pass;
use program::Program;
use workspace::Workspace;

pub(crate) use features::{Features, NetworkInputs, Part, Parts};
pub use minibatch::GradientStatistics;
pub(crate) use minibatch::{Dropout, Evaluation, Gradients, Minibatch, UnitSums};
pub use several::{CurvatureFactors, Factor};

/// The most panels of a block: beyond that, weights are used often enough for each time that they are read.
const MOST_PANELS: usize = 8;

/// Multiplies a tangent of one sample's outputs by a symmetric matrix, in place: (sample, outputs, tangent).
pub type OutputCurvature<'a, R> = dyn Fn(usize, &[R], &mut [R]) + Sync + 'a;

/// The value of one sample's loss, whose derivative in the outputs is to be written: (sample, outputs, derivative).
pub type Loss<'a, R> = dyn Fn(usize, &[R], &mut [R]) -> f64 + Sync + 'a;

/// Where sums over samples of products of their gradients go. Each may be empty: it is not wanted then.
#[derive(Debug, Default)]
pub struct GradientMoments<'a, R> {
    /// Of each parameter's gradient with itself.
    pub squares: &'a mut [R],
    /// Of each parameter's with that of its unit's bias, 0 where there is none. Only together with the squares.
    pub cross: &'a mut [R],
    /// Layer by layer the outer products that Kronecker-factored curvature (Martens & Grosse 2015; Grosse & Martens 2016) is
    /// made of: of the inputs that a unit combines (rows × rows; summed over the positions of a convolution), and after it of the
    /// cotangents of its outputs (units × units; averaged over positions). Zero for batch normalisation.
    pub kronecker: &'a mut [R],
}

/// A network with everything that evaluating it takes.
#[derive(Debug)]
pub struct Executor<R> {
    program: Program<R>,
    /// Panels of a block.
    panels: usize,
    /// One for each thread.
    workspaces: Vec<Workspace<R>>,
    transposed: Vec<R>,
    transposed_direction: Vec<R>,
    /// Sums of each share.
    sums: Vec<Vec<R>>,
}

impl<R: Real> Executor<R> {
    /// Everything but the buffers, which are made when they are first used. One thread.
    ///
    /// # Errors
    /// The first layer that does not fit.
    pub fn new(network: &Composition) -> Result<Self, ShapeError> {
        let program = Program::new(network)?;
        let features = program.memory.values.total() + program.memory.cotangents.total();
        // many parameters and few features: weights are fetched from further away than features
        let panels = 2 * program.parameters / (features * panel_rows::<R>()).max(1);
        Ok(Self {
            program,
            panels: panels.clamp(1, MOST_PANELS),
            workspaces: vec![Workspace::new(0)],
            transposed: Vec::new(),
            transposed_direction: Vec::new(),
            sums: Vec::new(),
        }
        .with_threads(1))
    }

    /// With `threads` threads (0 counts as 1). Results do not depend on it.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        let panels = self.panels;
        self.workspaces = (0..threads.max(1))
            .map(|_| Workspace::new(panels))
            .collect();
        self
    }

    /// Takes other statistics of batch normalisation, those of
    /// [`Composition::statistics`](crate::network::Composition::statistics). What is missing stays as it is.
    pub fn set_statistics(&mut self, statistics: &[f64]) {
        let mut rest = statistics;
        let steps = self.program.steps.iter_mut();
        for layer in steps.filter_map(|step| step.operation.normalisation_mut()) {
            let channels = layer.channels();
            if let Some((own, others)) = rest.split_at_checked(2 * channels) {
                let (mean, variance) = own.split_at(channels);
                layer.set(mean, variance);
                rest = others;
            }
        }
    }

    /// Parameters, the readout's included.
    pub fn parameters(&self) -> usize {
        self.program.parameters
    }

    /// Numbers of [`GradientMoments::kronecker`].
    pub fn kronecker_len(&self) -> usize {
        self.program.kronecker
    }

    /// Parameters of the readout, (d_L + 1)·C: the last ones.
    pub fn readout_parameters(&self) -> usize {
        (self.features_count() + 1) * self.outputs_count()
    }

    /// Numbers of one input.
    pub fn inputs_count(&self) -> usize {
        self.program.values[0]
    }

    /// Features d_L that the readout reads.
    pub fn features_count(&self) -> usize {
        self.program.values[self.program.features]
    }

    /// Outputs C.
    pub fn outputs_count(&self) -> usize {
        self.program.values[self.program.outputs]
    }

    /// Samples that go through the network together.
    pub fn block_rows(&self) -> usize {
        self.panels * panel_rows::<R>()
    }

    /// Bytes of all buffers made so far.
    pub fn bytes(&self) -> usize {
        let spaces: usize = self.workspaces.iter().map(Workspace::total).sum();
        let sums: usize = self.sums.iter().map(Vec::len).sum();
        (spaces + sums + self.transposed.len() + self.transposed_direction.len()) * R::BYTES
    }

    /// `out` (n × d_L) ← the features below the readout. Of `weights` the readout's may be left out.
    pub fn features(&mut self, weights: &[R], inputs: Matrix<'_, R>, out: MatrixMut<'_, R>) {
        let pass = Pass {
            value: self.program.features,
            ..self.plain_pass(weights, inputs)
        };
        self.run_forward(pass, out);
    }

    /// `out` (n × C) ← the outputs.
    pub fn outputs(&mut self, weights: &[R], inputs: Matrix<'_, R>, out: MatrixMut<'_, R>) {
        let pass = self.plain_pass(weights, inputs);
        self.run_forward(pass, out);
    }

    fn run_forward(&mut self, pass: Pass<'_, R>, out: MatrixMut<'_, R>) {
        assert_eq!(out.ncols(), self.program.values[pass.value]);
        self.run(pass, Some(out), |block| {
            let (program, value, rows) = (block.program, block.value, block.rows);
            block
                .space
                .forward(program, value, pass.weights, pass.inputs, rows);
            if let Some(out) = block.out {
                block.space.copy_forward(program, value, out);
            }
        });
    }
}
