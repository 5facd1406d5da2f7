//! What the executor asks of a layer once its input's shape is known: forward, jvp, vjp and the tangent of the vjp.
//!
//! Samples come in panels of [`panel_rows`](crate::compute::panel_rows): a slice of one layer's features holds panel after
//! panel, in each feature after feature, in each of those sample after sample. Every layer is linear in its input, linear in
//! its parameters, or elementwise, so that the tangent of its vjp (forward over reverse, for Hessian-vector products) is made
//! of vjps with one of their factors replaced by its tangent.

use std::fmt::Debug;

use crate::compute::{Real, panel_rows};
use crate::network::layer::batch_norm::Normalise;

/// A layer at the point where it is differentiated. What it did not ask to be kept is empty.
#[derive(Clone, Copy)]
pub(crate) struct Point<'a, R> {
    pub panels: usize,
    pub weights: &'a [R],
    /// What [`Operation::transpose`] made of the weights.
    pub transposed: &'a [R],
    pub input: &'a [R],
    pub output: &'a [R],
    /// Derivatives that [`Operation::forward_keeping`] left.
    pub derivative: &'a [R],
    /// Second derivatives that it left.
    pub second: &'a [R],
}

/// A direction to differentiate along; what is absent is zero.
#[derive(Clone, Copy)]
pub(crate) struct Direction<'a, R> {
    pub weights: Option<&'a [R]>,
    /// What [`Operation::transpose`] made of the weights' direction; empty if not needed.
    pub transposed: &'a [R],
    pub input: Option<&'a [R]>,
}

/// A cotangent of the output and, for Hessian-vector products, its tangent.
#[derive(Clone, Copy)]
pub(crate) struct Cotangent<'a, R> {
    pub value: &'a [R],
    pub tangent: &'a [R],
}

/// What a vjp needs of the forward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Keeps {
    pub input: bool,
    pub output: bool,
    /// The layer is elementwise and keeps its derivatives, where its input was if nobody else wants that.
    pub derivative: bool,
}

/// Where sums over samples of products of their gradients go; both as long as the parameters.
#[derive(Debug)]
pub(crate) struct MomentSums<'a, R> {
    /// Of each parameter's gradient with itself.
    pub squares: &'a mut [R],
    /// Of each parameter's with that of its unit's bias; empty if not wanted, left alone where there is no bias.
    pub cross: &'a mut [R],
    /// Work space.
    pub scratch: &'a mut Vec<R>,
}

/// Several cotangents of the same value.
#[derive(Clone, Copy)]
pub(crate) struct Cotangents<'a, R> {
    /// The buffers of each.
    pub sets: &'a [Vec<Vec<R>>],
    /// Which buffer it is, and how much of it.
    pub slot: usize,
    pub length: usize,
}

impl<'a, R> Cotangents<'a, R> {
    pub fn count(&self) -> usize {
        self.sets.len()
    }

    pub fn iter(self) -> impl Iterator<Item = &'a [R]> {
        self.sets
            .iter()
            .map(move |set| &set[self.slot][..self.length])
    }
}

/// The Gaussian of a layer's matrix of parameters W (rows × units): the entries of Q_AᵀWQ_B are independent.
#[derive(Debug, Clone, Copy)]
pub struct MatrixGaussian<'a, R> {
    /// Q_A (rows × rows) and Q_B (units × units), orthogonal, column-major; identities without them.
    pub rotations: Option<[&'a [R]; 2]>,
    /// Of each entry, column-major; or one number for all of them.
    pub variances: &'a [R],
}

impl<R> Point<'_, R> {
    /// One of the panels.
    fn panel(&self, index: usize) -> Self {
        let panels = self.panels;
        let part = |values: &[R]| {
            let length = values.len() / panels;
            index * length..(index + 1) * length
        };
        Self {
            panels: 1,
            weights: self.weights,
            transposed: self.transposed,
            input: &self.input[part(self.input)],
            output: &self.output[part(self.output)],
            derivative: &self.derivative[part(self.derivative)],
            second: &self.second[part(self.second)],
        }
    }
}

impl<R: Real> MomentSums<'_, R> {
    /// Adds products of single samples' gradients, one panel's gradients at a time.
    pub fn of_panels(self, operation: &dyn Operation<R>, at: Point<'_, R>, cotangent: &[R]) {
        let ((rows, has_bias), height) = (operation.rows(), panel_rows::<R>());
        let length = cotangent.len() / at.panels;
        for panel in 0..at.panels {
            let cotangent = &cotangent[panel * length..(panel + 1) * length];
            self.scratch.clear();
            self.scratch
                .resize(operation.parameters() * height, R::ZERO);
            operation.vjp_weights(at.panel(panel), cotangent, true, self.scratch);
            for (unit, gradients) in self.scratch.chunks_exact(rows * height).enumerate() {
                let own = unit * rows..(unit + 1) * rows;
                let bias = &gradients[(rows - 1) * height..];
                let gradients = || gradients.chunks_exact(height);
                for (sum, gradient) in self.squares[own.clone()].iter_mut().zip(gradients()) {
                    *sum += dot(gradient, gradient);
                }
                if has_bias && !self.cross.is_empty() {
                    for (sum, gradient) in self.cross[own].iter_mut().zip(gradients()) {
                        *sum += dot(gradient, bias);
                    }
                }
            }
        }
    }
}

fn dot<R: Real>(a: &[R], b: &[R]) -> R {
    a.iter().zip(b).map(|(&a, &b)| a * b).sum()
}

/// A layer with its shape. `accumulate` says that results are added to what is there.
pub(crate) trait Operation<R: Real>: Debug + Send + Sync {
    /// Parameters.
    fn parameters(&self) -> usize {
        0
    }

    /// Numbers of the parameters in the order that vjps need them in.
    fn transposed_len(&self) -> usize {
        0
    }

    /// Writes those.
    fn transpose(&self, _weights: &[R], _transposed: &mut [R]) {}

    fn keeps(&self) -> Keeps;

    /// The operation as batch normalisation, if it is one.
    fn normalisation(&self) -> Option<&Normalise<R>> {
        None
    }

    /// The same, to be given other statistics.
    fn normalisation_mut(&mut self) -> Option<&mut Normalise<R>> {
        None
    }

    fn forward(&self, weights: &[R], panels: usize, input: &[R], output: &mut [R]);

    /// `input` ← derivatives. Only for layers that keep these.
    fn forward_keeping(&self, _input: &mut [R], _output: &mut [R], _second: Option<&mut [R]>) {}

    /// `out` ← the tangent of the output.
    fn jvp(&self, at: Point<'_, R>, along: Direction<'_, R>, out: &mut [R]);

    /// `out` ← the cotangent of the input.
    fn vjp_input(&self, at: Point<'_, R>, cotangent: &[R], accumulate: bool, out: &mut [R]);

    /// `gradient` ← `gradient` + the cotangent of the parameters; if `is_per_sample` not summed over the samples of the one panel
    /// that there is then: each number is a row of samples.
    fn vjp_weights(
        &self,
        _at: Point<'_, R>,
        _cotangent: &[R],
        _is_per_sample: bool,
        _gradient: &mut [R],
    ) {
    }

    /// Rows of the matrix of parameters, and whether the last one is a bias.
    fn rows(&self) -> (usize, bool) {
        (0, false)
    }

    /// Numbers that [`kronecker_inputs`](Self::kronecker_inputs) and [`kronecker_outputs`](Self::kronecker_outputs) add to.
    fn kronecker_len(&self) -> usize {
        match self.rows() {
            (0, _) => 0,
            (rows, _) => rows * rows + (self.parameters() / rows).pow(2),
        }
    }

    /// Adds outer products of the inputs that a unit combines (rows × rows, column-major; summed over positions) of the first
    /// `samples` samples, which are no padding: the first matrix of Kronecker-factored curvature. Nothing where a layer has none.
    fn kronecker_inputs(
        &self,
        _at: Point<'_, R>,
        _samples: usize,
        _split: &mut Vec<R>,
        _sums: &mut [R],
    ) {
    }

    /// Adds outer products of the cotangents (units × units; averaged over positions): the second matrix.
    fn kronecker_outputs(
        &self,
        _at: Point<'_, R>,
        _cotangent: &[R],
        _split: &mut Vec<R>,
        _sums: &mut [R],
    ) {
    }

    /// Adds squares of single samples' gradients, summed over all cotangents.
    fn squares(
        &self,
        at: Point<'_, R>,
        cotangents: Cotangents<'_, R>,
        scratch: &mut Vec<R>,
        squares: &mut [R],
    ) {
        squares_one_by_one(self, at, cotangents, scratch, squares);
    }

    /// Adds what the layer's parameters, independent in the coordinates of `spread`, contribute to the covariance of the
    /// functions whose gradients the cotangents lead to, for each sample of one panel: `out` has cotangents × cotangents rows
    /// of samples, of which those of the lower half are added to.
    fn covariance(
        &self,
        _at: Point<'_, R>,
        _cotangents: Cotangents<'_, R>,
        _spread: MatrixGaussian<'_, R>,
        _scratch: &mut Vec<R>,
        _out: &mut [R],
    ) {
    }

    /// Adds products of single samples' gradients.
    fn moments(&self, _at: Point<'_, R>, _cotangent: &[R], _moments: MomentSums<'_, R>) {}

    /// `out` ← the tangent of [`vjp_input`](Self::vjp_input).
    fn vjp_input_tangent(
        &self,
        at: Point<'_, R>,
        _along: Direction<'_, R>,
        cotangent: Cotangent<'_, R>,
        accumulate: bool,
        out: &mut [R],
    ) {
        self.vjp_input(at, cotangent.tangent, accumulate, out);
    }

    /// `gradient` ← `gradient` + the tangent of [`vjp_weights`](Self::vjp_weights), `is_per_sample` or not as there.
    fn vjp_weights_tangent(
        &self,
        _at: Point<'_, R>,
        _along: Direction<'_, R>,
        _cotangent: Cotangent<'_, R>,
        _is_per_sample: bool,
        _gradient: &mut [R],
    ) {
    }
}

/// [`Operation::squares`] of one cotangent after the other.
pub(crate) fn squares_one_by_one<R: Real, O: Operation<R> + ?Sized>(
    operation: &O,
    at: Point<'_, R>,
    cotangents: Cotangents<'_, R>,
    scratch: &mut Vec<R>,
    squares: &mut [R],
) {
    for cotangent in cotangents.iter() {
        let moments = MomentSums {
            squares: &mut *squares,
            cross: &mut [],
            scratch: &mut *scratch,
        };
        operation.moments(at, cotangent, moments);
    }
}

/// The tangent of a layer without parameters whose input has none.
pub(crate) fn no_tangent<R: Real>(accumulate: bool, out: &mut [R]) {
    if !accumulate {
        out.fill(R::ZERO);
    }
}

/// out ← factor·values, or added to what is there.
pub(crate) fn scale<R: Real>(out: &mut [R], accumulate: bool, factor: R, values: &[R]) {
    crate::compute::simd(
        #[inline(always)]
        || {
            if accumulate {
                for (out, &value) in out.iter_mut().zip(values) {
                    *out += factor * value;
                }
            } else {
                for (out, &value) in out.iter_mut().zip(values) {
                    *out = factor * value;
                }
            }
        },
    );
}
