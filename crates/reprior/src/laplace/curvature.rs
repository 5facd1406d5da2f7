//! Curvature of −log p(y | θ) over all rows at fixed weights: the generalised Gauss-Newton matrix G = Σ JᵀHJ, matrix-free and in
//! the structures that posteriors are made of.
//!
//! Cost in forward passes over the rows: a product with G 3.5, the diagonal about C·2.5, Kronecker factors about C + 5, the dense
//! matrix of |S| parameters C·3 and C·|S|² products a row. The Jacobian (n·C × D) is never held: rows go by in blocks.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::compute::{
    Matrix, MatrixMut, Purpose, Real, Stream, gram_of_rows, matrix, matrix_mut, mirror_lower,
    panel_rows,
};
use crate::network::Executor;
use crate::network::executor::CurvatureFactors;

use super::RowCurvature;

/// A symmetric matrix that is known by its products with vectors.
pub trait SymmetricOperator<R> {
    /// Rows and columns.
    fn size(&self) -> usize;

    /// `out` ← the matrix times each column of `vectors`, both size × k of consecutive numbers.
    fn apply(&mut self, vectors: Matrix<'_, R>, out: MatrixMut<'_, R>);

    /// Whether a decomposition is to be given up: asked before every block of products, as one may take hours.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// An operator whose decompositions end early once `stop` is set.
#[derive(Debug)]
pub struct Stoppable<'a, O> {
    /// The operator.
    pub operator: O,
    /// Set from anywhere.
    pub stop: &'a AtomicBool,
}

impl<R, O: SymmetricOperator<R>> SymmetricOperator<R> for Stoppable<'_, O> {
    fn size(&self) -> usize {
        self.operator.size()
    }

    fn apply(&mut self, vectors: Matrix<'_, R>, out: MatrixMut<'_, R>) {
        self.operator.apply(vectors, out);
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Vectors that are multiplied in one pass: more take more memory, and the forward pass is a small part by then.
const AT_ONCE: usize = 16;

/// The generalised Gauss-Newton matrix of a network at fixed weights; with
/// [`EmpiricalFisher`](super::row_curvature::EmpiricalFisher)'s H the empirical Fisher matrix.
#[derive(Debug)]
pub struct GaussNewton<'a, R> {
    /// The network.
    pub executor: &'a mut Executor<R>,
    /// Where it is linearised.
    pub weights: &'a [R],
    /// n × d₀.
    pub inputs: Matrix<'a, R>,
    /// H of each row.
    pub curvature: &'a dyn RowCurvature<R>,
    /// In front of everything: N/n if the rows stand for N of them.
    pub scale: f64,
}

impl<R: Real> SymmetricOperator<R> for GaussNewton<'_, R> {
    fn size(&self) -> usize {
        self.weights.len()
    }

    fn apply(&mut self, vectors: Matrix<'_, R>, mut out: MatrixMut<'_, R>) {
        let curvature = self.curvature;
        let multiply = |row: usize, y: &[R], tangent: &mut [R]| curvature.multiply(row, y, tangent);
        for first in (0..vectors.ncols()).step_by(AT_ONCE) {
            let count = AT_ONCE.min(vectors.ncols() - first);
            let own = vectors.subcols(first, count);
            let out = out.as_mut().subcols_mut(first, count);
            self.executor
                .gauss_newton_products(self.weights, self.inputs, &multiply, own, out);
        }
        let scale = R::from_f64(self.scale);
        for column in out.col_iter_mut() {
            column.iter_mut().for_each(|value| *value *= scale);
        }
    }
}

impl<R: Real> GaussNewton<'_, R> {
    /// The diagonal, exactly.
    pub fn diagonal(&mut self) -> Vec<f64> {
        self.moments(true, false).0
    }

    /// The matrices of Kronecker factors (Martens & Grosse 2015; Grosse & Martens 2016), layer after layer: A = Σ a·aᵀ and B = Σ
    /// δ·δᵀ, with G ≈ A ⊗ B/n but for the scale. Zeros for batch normalisation, which has none.
    pub fn kronecker(&mut self) -> Vec<f64> {
        self.moments(false, true).1
    }

    fn moments(&mut self, has_diagonal: bool, has_kronecker: bool) -> (Vec<f64>, Vec<f64>) {
        let length = |wanted: bool, length: usize| if wanted { length } else { 0 };
        let mut squares = vec![R::ZERO; length(has_diagonal, self.weights.len())];
        let kronecker = length(has_kronecker, self.executor.kronecker_len());
        let mut kronecker = vec![R::ZERO; kronecker];
        let curvature = self.curvature;
        let write = |row: usize, y: &[R], c: usize, out: &mut [R]| {
            curvature.factor(row, y, c, out);
        };
        let factors = CurvatureFactors {
            count: curvature.count(self.executor.outputs_count()),
            write: &write,
        };
        let (weights, inputs) = (self.weights, self.inputs);
        self.executor
            .curvature_moments(weights, inputs, &factors, &mut squares, &mut kronecker);
        let scaled = |values: Vec<R>, scale: f64| {
            let values = values.into_iter().map(|value| scale * value.to_f64());
            values.collect()
        };
        // of Kronecker factors the scale is applied where they are multiplied
        (scaled(squares, self.scale), scaled(kronecker, 1.0))
    }

    /// An estimate of the diagonal from `probes` products with vectors of independent signs, which has the right mean
    /// (Hutchinson 1989; Bekas, Kokiopoulou & Saad 2007): the mean of v∘Gv.
    pub fn estimated_diagonal(&mut self, probes: usize, seed: u64) -> Vec<f64> {
        let size = self.weights.len();
        let mut sum = vec![0.0; size];
        let mut stream = Stream::new(seed, 0, Purpose::Initial, 0);
        for first in (0..probes).step_by(AT_ONCE) {
            let count = AT_ONCE.min(probes - first);
            let mut signs = vec![R::ZERO; size * count];
            stream.fill_normal(&mut signs);
            for value in &mut signs {
                *value = if *value < R::ZERO { -R::ONE } else { R::ONE };
            }
            let mut products = vec![R::ZERO; size * count];
            let out = matrix_mut(&mut products, size, count);
            self.apply(matrix(&signs, size, count), out);
            for (signs, products) in signs.chunks_exact(size).zip(products.chunks_exact(size)) {
                for ((sum, sign), product) in sum.iter_mut().zip(signs).zip(products) {
                    *sum += (*sign * *product).to_f64() / probes as f64;
                }
            }
        }
        sum
    }

    /// The matrix itself for the parameters `indices`, column-major.
    pub fn dense(&mut self, indices: &[usize]) -> Vec<f64> {
        let size = indices.len();
        let mut out = vec![0.0; size * size];
        let mut is_first = true;
        let (scale, mut own) = (self.scale.sqrt(), Vec::new());
        self.for_each_block(|rows, jacobian| {
            // a row for each parameter
            own.clear();
            own.resize(size * rows, 0.0);
            for (at, &index) in indices.iter().enumerate() {
                let from = &jacobian[index * rows..(index + 1) * rows];
                for (row, value) in from.iter().enumerate() {
                    own[row * size + at] = scale * value.to_f64();
                }
            }
            let to = matrix_mut(&mut out, size, size);
            gram_of_rows(to, !is_first, matrix(&own, size, rows));
            is_first = false;
        });
        mirror_lower(&mut out, size);
        out
    }

    /// All rows s_cᵀJ of Jacobians (n·C × D, column-major), row n·c + i for sample i: what G is the product of.
    pub fn rows(&mut self) -> Vec<R> {
        let (samples, size) = (self.inputs.nrows(), self.weights.len());
        let outputs = self.curvature.count(self.executor.outputs_count());
        let height = samples * outputs;
        let mut out = vec![R::ZERO; height * size];
        let scale = R::from_f64(self.scale.sqrt());
        let mut first = [0; 2];
        self.for_each_block(|rows, jacobian| {
            let at = first[0] * samples + first[1];
            for (column, from) in jacobian.chunks_exact(rows).enumerate() {
                let to = &mut out[column * height + at..][..rows];
                for (to, &from) in to.iter_mut().zip(from) {
                    *to = scale * from;
                }
            }
            first[0] += 1;
            if first[0] == outputs {
                first = [0, first[1] + rows];
            }
        });
        out
    }

    /// Calls `visit` with (rows, s_cᵀJ of these rows (rows × D)), for each block of samples and each c.
    fn for_each_block(&mut self, mut visit: impl FnMut(usize, &[R])) {
        let (samples, size) = (self.inputs.nrows(), self.weights.len());
        let outputs = self.executor.outputs_count();
        let block = 2 * panel_rows::<R>();
        let (mut y, mut cotangents) = (Vec::new(), Vec::new());
        let (mut jacobian, mut row, mut factor) =
            (Vec::new(), vec![R::ZERO; outputs], vec![R::ZERO; outputs]);
        for first in (0..samples).step_by(block) {
            let count = block.min(samples - first);
            let inputs = self.inputs.subrows(first, count);
            y.resize(count * outputs, R::ZERO);
            cotangents.resize(count * outputs, R::ZERO);
            jacobian.resize(count * size, R::ZERO);
            let out = matrix_mut(&mut y, count, outputs);
            self.executor.outputs(self.weights, inputs, out);
            for c in 0..self.curvature.count(outputs) {
                for sample in 0..count {
                    for (k, value) in row.iter_mut().enumerate() {
                        *value = y[k * count + sample];
                    }
                    self.curvature.factor(first + sample, &row, c, &mut factor);
                    for (k, &value) in factor.iter().enumerate() {
                        cotangents[k * count + sample] = value;
                    }
                }
                let cotangents = matrix(&cotangents, count, outputs);
                let out = matrix_mut(&mut jacobian, count, size);
                self.executor
                    .vjp_of_samples(self.weights, inputs, cotangents, out);
                visit(count, &jacobian);
            }
        }
    }
}
