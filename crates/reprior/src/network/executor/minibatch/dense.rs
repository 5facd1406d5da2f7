//! Minibatches through fully connected networks: products of whole matrices, split by units among threads.
//!
//! For one layer, with the batch's inputs A (n × fan-in, activations of the layer below), z = f·A·W + σ_b·b and cotangents δ
//! (n × units), the gradient of a unit's weights is f·Aᵀδ_j and that of its bias σ_b·Σδ_j; sums of squares over rows are
//! f²·(A∘A)ᵀ(δ_j∘δ_j), products with the bias' gradient f·σ_b·Aᵀ(δ_j∘δ_j): two more products, and no gradient of a single row.
//! Gradients are not kept: [`GradientPlan::scaled_sums`] makes those of a few units at a time, for whoever uses them while they are in
//! the cache.
//!
//! Inputs most of which are one number c_k in each column k, such as a background's pixels, are A = S + 1·cᵀ: the first layer's
//! products are with S without its zeros and, in a pass over weights or gradients, with c.
//!
//! Chunks of units do not depend on the number of threads, and so no bit of a result does. 2n(3·parameters − the first
//! layer's) operations for a batch; memory 3n × (inputs + units).

use std::ops::Range;

use super::{Dropout, GradientPlan, GradientStatistics, Minibatch, UnitSums, to_cotangents};
use crate::compute::{
    Matrix, Real, SparseColumns, SparseMatrix, Team, add_scaled, common_numbers, dot_in_lanes,
    matrix, matrix_mut, multiply, multiply_by, simd, sum_of,
};
use crate::network::parameters::{ParameterLayout, ParameterMatrix};
use crate::network::{Activation, Composition};

/// Units of a chunk, at most.
const CHUNK: usize = 128;
/// Part of a batch's inputs that may be other than zero for products without zeros: from here on those of whole matrices are
/// faster.
const MOST_DENSE: f64 = 0.4;
/// Rows, from all over, that are looked at for what most numbers of a column are.
const LOOKED_AT: usize = 1_000;

/// A fully connected network with what a minibatch leaves in it.
#[derive(Debug)]
pub(super) struct DenseMinibatch<R> {
    layers: Vec<DenseLayer<R>>,
    /// Rows of the batch.
    rows: usize,
    /// The batch's inputs, row-major, and their squares.
    inputs: Vec<R>,
    squares: Vec<R>,
    /// Outputs, and their cotangents, row-major.
    cotangents: Vec<R>,
    /// What is left out of each column; nothing but zeros where it is empty.
    common: Vec<R>,
    /// The batch's inputs without that, if there are few others.
    sparse: SparseMatrix<R>,
    pub(super) is_sparse: bool,
}

/// What a layer takes, n × fan-in.
#[derive(Clone, Copy)]
enum Inputs<'a, R> {
    All(Matrix<'a, R>),
    /// The transpose of n rows, and what was left out of each of their columns.
    Sparse(&'a SparseColumns<R>, usize, &'a [R]),
}

#[derive(Debug)]
struct DenseLayer<R> {
    parameters: ParameterMatrix,
    activation: Option<Activation>,
    /// n × units: activations, their derivatives (or pre-activations, where there is no activation), cotangents of the
    /// pre-activations, and squares of activations and of cotangents.
    output: Vec<R>,
    derivative: Vec<R>,
    cotangent: Vec<R>,
    output_squares: Vec<R>,
    cotangent_squares: Vec<R>,
}

impl<R: Real> DenseMinibatch<R> {
    /// If `network` is fully connected.
    pub fn new(network: &Composition) -> Option<Self> {
        let hidden = network.as_fully_connected()?;
        let activations = hidden.iter().map(|layer| layer.activation).chain([None]);
        let layers = ParameterLayout::new(network)
            .layers
            .into_iter()
            .zip(activations);
        let layers = layers.map(|(parameters, activation)| DenseLayer {
            parameters,
            activation,
            output: Vec::new(),
            derivative: Vec::new(),
            cotangent: Vec::new(),
            output_squares: Vec::new(),
            cotangent_squares: Vec::new(),
        });
        Some(Self {
            layers: layers.collect(),
            rows: 0,
            inputs: Vec::new(),
            squares: Vec::new(),
            cotangents: Vec::new(),
            common: Vec::new(),
            sparse: SparseMatrix::default(),
            is_sparse: false,
        })
    }

    /// Leaves out of batches of these rows, row-major, what most numbers of each column are, if few are others.
    pub fn leave_out_common(&mut self, inputs: &[R], columns: usize) {
        let all = inputs.len() / columns.max(1);
        let rows = LOOKED_AT.min(all);
        if rows == 0 {
            return;
        }
        let apart = all / rows * columns;
        let view = Matrix::from_row_major_slice_with_stride;
        let looked_at = view(inputs, rows, columns, apart);
        let (common, others) = common_numbers(looked_at);
        let are_few = others as f64 <= MOST_DENSE * (rows * columns) as f64;
        self.common.clear();
        if are_few && common.iter().any(|&c| c != R::ZERO) {
            self.common = common;
        }
    }

    /// Takes the batch's rows.
    fn load(&mut self, team: &mut Team, batch: Minibatch<'_, R>) {
        let Minibatch {
            inputs,
            columns,
            rows: batch,
            ..
        } = batch;
        self.rows = batch.len();
        let whole = |row: usize| {
            let at = batch[row] as usize * columns;
            &inputs[at..at + columns]
        };
        let common = &self.common;
        let fetch = |row: usize, to: &mut [R]| {
            if common.is_empty() {
                return to.copy_from_slice(whole(row));
            }
            for ((to, &value), &common) in to.iter_mut().zip(whole(row)).zip(common) {
                *to = value - common;
            }
        };
        let size = [batch.len(), columns];
        self.is_sparse = self
            .sparse
            .fetch(team, &mut self.inputs, size, MOST_DENSE, fetch);
        if !self.is_sparse && !common.is_empty() {
            let rows = self.inputs.chunks_exact_mut(columns).enumerate();
            rows.for_each(|(row, to)| to.copy_from_slice(whole(row)));
        }
    }

    /// Evaluates the network at the batch, some of whose activations may be left out. Leaves the outputs, n × C.
    fn forward(
        &mut self,
        team: &mut Team,
        weights: &[R],
        dropout: Option<Dropout>,
    ) -> Matrix<'_, R> {
        let rows = self.rows;
        let columns = self.inputs.len() / rows.max(1);
        for index in 0..self.layers.len() {
            let (below, rest) = self.layers.split_at_mut(index);
            let layer = &mut rest[0];
            let a = match below.last() {
                Some(below) => Inputs::All(matrix(&below.output, rows, layer.parameters.fan_in())),
                None if self.is_sparse => Inputs::Sparse(&self.sparse.by_row, rows, &self.common),
                None => Inputs::All(matrix(&self.inputs, columns, rows).transpose()),
            };
            layer.forward(team, weights, a, dropout.map(|dropout| (dropout, index)));
        }
        let last = &self.layers[self.layers.len() - 1];
        matrix(&last.output, rows, last.parameters.units)
    }

    /// Cotangents of all layers, from those of the outputs, row-major.
    fn backward(&mut self, team: &mut Team, weights: &[R], cotangents: &[R]) {
        let (rows, last) = (self.rows, self.layers.len() - 1);
        let outputs = self.layers[last].parameters.units;
        let out = &mut self.layers[last].cotangent;
        out.resize(rows * outputs, R::ZERO);
        for (row, cotangent) in cotangents.chunks_exact(outputs).enumerate() {
            for (output, &cotangent) in cotangent.iter().enumerate() {
                out[output * rows + row] = cotangent;
            }
        }
        for index in (1..self.layers.len()).rev() {
            let (below, above) = self.layers.split_at_mut(index);
            let (below, layer) = (&mut below[index - 1], &above[0]);
            let units = layer.parameters.units;
            let own = &weights[layer.parameters.range.clone()];
            let w = matrix(own, layer.parameters.rows, units);
            let delta = matrix(&layer.cotangent, rows, units);
            let has_activation = below.activation.is_some();
            below
                .cotangent
                .resize(rows * layer.parameters.fan_in(), R::ZERO);
            let (out, derivative) = (&mut below.cotangent, &mut below.derivative);
            for_chunks(team, rows, [out, derivative], |inputs, out, derivative| {
                let w = w.subrows(inputs.start, inputs.len()).transpose();
                multiply(
                    matrix_mut(out, rows, inputs.len()),
                    false,
                    layer.parameters.factors[0],
                    delta,
                    w,
                );
                if has_activation {
                    multiply_by(out, derivative);
                }
            });
        }
    }

    /// Squares of activations and cotangents, for [`scaled_sums`](Self::scaled_sums) of second moments.
    fn square(&mut self) {
        if !self.is_sparse {
            square(&self.inputs, &mut self.squares);
        }
        let last = self.layers.len() - 1;
        for (index, layer) in self.layers.iter_mut().enumerate() {
            if index < last {
                square(&layer.output, &mut layer.output_squares);
            }
            square(&layer.cotangent, &mut layer.cotangent_squares);
        }
    }
}

impl<R: Real> GradientPlan<R> for DenseMinibatch<R> {
    fn evaluate(
        &mut self,
        team: &mut Team,
        weights: &[R],
        batch: Minibatch<'_, R>,
        simulate: Option<&mut dyn FnMut(&mut [R])>,
    ) -> f64 {
        self.load(team, batch);
        let mut cotangents = std::mem::take(&mut self.cotangents);
        let f = self.forward(team, weights, batch.dropout);
        let (rows, outputs) = (f.nrows(), f.ncols());
        cotangents.clear();
        for row in 0..rows {
            cotangents.extend((0..outputs).map(|output| f[(row, output)]));
        }
        let simulated = simulate.map(|simulate| {
            let mut simulated = cotangents.clone();
            simulate(&mut simulated);
            simulated
        });
        let total = to_cotangents(team, &mut cotangents, outputs, batch.loss);
        if let Some(simulated) = simulated {
            self.backward(team, weights, &simulated);
            self.square();
            self.backward(team, weights, &cotangents);
        } else {
            self.backward(team, weights, &cotangents);
            if batch.statistics != GradientStatistics::None {
                self.square();
            }
        }
        self.cotangents = cotangents;
        total
    }

    /// The products that make gradients of cotangents; sums of squares and products are of what [`DenseMinibatch::square`] left.
    fn scaled_sums(
        &self,
        scale: f64,
        (index, units): (usize, Range<usize>),
        _: Range<usize>,
        sums: UnitSums<'_, R>,
    ) {
        if index == 0 && self.is_sparse {
            return self.scaled_sums_of_sparse(scale, units, sums);
        }
        let (layer, n) = (&self.layers[index], self.rows);
        let (rows, count) = (layer.parameters.rows, units.len());
        let fan_in = layer.parameters.fan_in();
        let [own_factor, own_bias] = layer.parameters.factors;
        let inputs = |squares: bool| match index.checked_sub(1) {
            Some(below) if squares => matrix(&self.layers[below].output_squares, n, fan_in),
            Some(below) => matrix(&self.layers[below].output, n, fan_in),
            None if squares => matrix(&self.squares, fan_in, n).transpose(),
            None => matrix(&self.inputs, fan_in, n).transpose(),
        };
        let own = n * units.start..n * units.end;
        let (factor, bias) = (scale * own_factor, scale * own_bias);
        let add = |out: &mut [R], factor: f64, bias: f64, a: Matrix<'_, R>, delta: &[R]| {
            if out.is_empty() {
                return;
            }
            let delta_matrix = matrix(delta, n, count);
            let view = matrix_mut(out, rows, count).subrows_mut(0, fan_in);
            multiply(view, false, factor, a.transpose(), delta_matrix);
            if layer.parameters.has_bias {
                write_biases(out, rows, n, delta, bias);
            }
        };
        add(
            sums.gradient,
            factor,
            bias,
            inputs(false),
            &layer.cotangent[own.clone()],
        );
        if sums.squares.is_empty() {
            return;
        }
        let delta = &layer.cotangent_squares[own];
        add(
            sums.squares,
            factor * own_factor,
            bias * own_bias,
            inputs(true),
            delta,
        );
        if layer.parameters.has_bias {
            let (own, of_bias) = (factor * own_bias, bias * own_bias);
            add(sums.cross, own, of_bias, inputs(false), delta);
        } else {
            sums.cross.fill(R::ZERO);
        }
    }

    fn outer(&self) -> &[R] {
        &[]
    }
}

impl<R: Real> DenseMinibatch<R> {
    /// [`scaled_sums`](GradientPlan::scaled_sums) of the first layer's units where the inputs are sparse.
    fn scaled_sums_of_sparse(&self, scale: f64, units: Range<usize>, sums: UnitSums<'_, R>) {
        let (layer, n) = (&self.layers[0], self.rows);
        let (rows, count) = (layer.parameters.rows, units.len());
        let [own_factor, own_bias] = layer.parameters.factors;
        let (factor, bias) = (scale * own_factor, scale * own_bias);
        let own = n * units.start..n * units.end;
        let right = [&layer.cotangent, &layer.cotangent_squares];
        let right = right.map(|right| right.get(own.clone()).unwrap_or(&[]));
        let factors = [factor, factor * own_factor, factor * own_bias];
        let UnitSums {
            gradient,
            squares,
            cross,
        } = sums;
        let sparse = &self.sparse.by_column;
        if layer.parameters.has_bias {
            write_biases(gradient, rows, n, right[0], bias);
            write_biases(squares, rows, n, right[1], bias * own_bias);
            write_biases(cross, rows, n, right[1], bias * own_bias);
        } else {
            cross.fill(R::ZERO);
        }
        let right_and_stride = (right, n);
        if self.common.is_empty() {
            return sparse.products(
                count,
                right_and_stride,
                factors,
                [gradient, squares, cross],
                rows,
            );
        }
        let wants_squares = !squares.is_empty();
        let length = if wants_squares { rows * count } else { 0 };
        R::with_scratch(length, |linear| {
            // Sᵀ(δ∘δ), which squares of sums have as well: (S + c)∘(S + c) = S∘S + 2·c∘S + c∘c
            let factors = [factor, factor * own_factor, factor * own_factor];
            let out = [&mut *gradient, &mut *squares, &mut *linear];
            sparse.products(count, right_and_stride, factors, out, rows);
            let (common, fan_in) = (&self.common[..], layer.parameters.fan_in());
            for unit in 0..count {
                let own = unit * rows..unit * rows + fan_in;
                let [delta, delta_squared] = right.map(|right| right.get(unit * n..(unit + 1) * n));
                if let Some(gradient) = gradient.get_mut(own.clone()) {
                    let total = sum_of(delta.unwrap_or(&[]).iter());
                    add_scaled(gradient, factor * total, common);
                }
                if !wants_squares {
                    continue;
                }
                let total = factor * own_factor * sum_of(delta_squared.unwrap_or(&[]).iter());
                let (total, linear) = (R::from_f64(total), &linear[own.clone()]);
                let two = R::from_f64(2.0);
                let squares = &mut squares[own.clone()];
                simd(
                    #[inline(always)]
                    || {
                        for ((out, &c), &linear) in squares.iter_mut().zip(common).zip(linear) {
                            let sum = *out + c * (two * linear + c * total);
                            // by rounding
                            *out = if sum < R::ZERO { R::ZERO } else { sum };
                        }
                    },
                );
                if layer.parameters.has_bias && !cross.is_empty() {
                    let ratio = R::from_f64(own_bias / own_factor);
                    let cross = &mut cross[own];
                    simd(
                        #[inline(always)]
                        || {
                            for ((out, &c), &linear) in cross.iter_mut().zip(common).zip(linear) {
                                *out = ratio * (linear + c * total);
                            }
                        },
                    );
                }
            }
        });
    }
}

impl<R: Real> DenseLayer<R> {
    fn forward(
        &mut self,
        team: &mut Team,
        weights: &[R],
        inputs: Inputs<'_, R>,
        dropout: Option<(Dropout, usize)>,
    ) {
        let n = match inputs {
            Inputs::All(a) => a.nrows(),
            Inputs::Sparse(_, n, _) => n,
        };
        let (units, rows) = (self.parameters.units, self.parameters.rows);
        let own = &weights[self.parameters.range.clone()];
        let w = matrix(own, rows, units);
        let [factor, bias] = self.parameters.factors;
        let (fan_in, bias) = (self.parameters.fan_in(), R::from_f64(bias));
        let (has_bias, activation) = (self.parameters.has_bias, self.activation);
        self.output.resize(n * units, R::ZERO);
        let kept = if activation.is_some() { n * units } else { 0 };
        self.derivative.resize(kept, R::ZERO);
        let (output, derivative) = (&mut self.output, &mut self.derivative);
        for_chunks(
            team,
            n,
            [output, derivative],
            |units, output, derivative| {
                // pre-activations are made where derivatives go
                let z = if activation.is_some() {
                    &mut *derivative
                } else {
                    &mut *output
                };
                let bias_of = |unit: usize| match has_bias {
                    true => bias * own[(unit + 1) * rows - 1],
                    false => R::ZERO,
                };
                match inputs {
                    Inputs::All(a) => {
                        for (z, unit) in z.chunks_exact_mut(n).zip(units.clone()) {
                            z.fill(bias_of(unit));
                        }
                        let w = w.submatrix(0, units.start, fan_in, units.len());
                        multiply(matrix_mut(z, n, units.len()), true, factor, a, w);
                    }
                    Inputs::Sparse(a, _, common) => {
                        let w = &own[units.start * rows..units.end * rows];
                        let out = [&mut *z, &mut [], &mut []];
                        a.products(units.len(), ([w, &[]], rows), [factor; 3], out, n);
                        let of_common = |unit: usize| match common.is_empty() {
                            true => R::ZERO,
                            false => {
                                R::from_f64(factor)
                                    * dot_in_lanes(common, &own[unit * rows..][..fan_in])
                            }
                        };
                        for (z, unit) in z.chunks_exact_mut(n).zip(units.clone()) {
                            let bias = bias_of(unit) + of_common(unit);
                            z.iter_mut().for_each(|z| *z += bias);
                        }
                    }
                }
                if let Some(activation) = activation {
                    activation.apply_with_derivative(derivative, output);
                    if let Some((dropout, layer)) = dropout {
                        dropout.leave_out(layer, units.start, output, derivative);
                    }
                }
            },
        );
    }
}

/// Has `work` done on chunks of the columns of two matrices of `rows` rows, the second of which may be empty.
fn for_chunks<R: Real>(
    team: &mut Team,
    rows: usize,
    [first, second]: [&mut Vec<R>; 2],
    work: impl Fn(Range<usize>, &mut [R], &mut [R]) + Sync,
) {
    let columns = first.len() / rows.max(1);
    // an even number, so that two threads have as many each
    let count = columns.div_ceil(CHUNK).next_multiple_of(2);
    let size = columns.div_ceil(count.max(1)).max(1);
    let length = rows.max(1) * size;
    let mut second = &mut second[..];
    let chunks = first.chunks_mut(length).enumerate().map(|(index, first)| {
        let range = index * size..columns.min((index + 1) * size);
        let own = first.len().min(second.len());
        let (own, rest) = std::mem::take(&mut second).split_at_mut(own);
        second = rest;
        (range, first, own)
    });
    let chunks = chunks.collect();
    team.share(chunks, |(range, first, second)| work(range, first, second));
}

/// Writes `factor` times the sums of `right`'s columns of `n` numbers to the last row of `out`, if that is wanted.
fn write_biases<R: Real>(out: &mut [R], rows: usize, n: usize, right: &[R], factor: f64) {
    let biases = out.iter_mut().skip(rows - 1).step_by(rows);
    for (out, right) in biases.zip(right.chunks_exact(n)) {
        let (blocks, rest) = right.as_chunks::<8>();
        // eight sums that need not wait for each other
        let mut sums = [R::ZERO; 8];
        for block in blocks {
            for (sum, &value) in sums.iter_mut().zip(block) {
                *sum += value;
            }
        }
        *out = R::from_f64(factor) * (sums.into_iter().sum::<R>() + rest.iter().copied().sum());
    }
}

fn square<R: Real>(values: &[R], squares: &mut Vec<R>) {
    squares.resize(values.len(), R::ZERO);
    simd(
        #[inline(always)]
        || {
            for (square, &value) in squares.iter_mut().zip(values) {
                *square = value * value;
            }
        },
    );
}
