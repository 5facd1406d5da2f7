//! Predictions of the linearised network f(ŵ) + J·(w − ŵ) (Immer, Korzepa & Bauer 2021) in closed form: at each input a Gaussian
//! with the network's own outputs as mean and JΣJᵀ as covariance.
//!
//! Cost: diagonal and Kronecker structures [`Executor::covariances`]; spectral ones a jvp for each eigenpair besides; the last
//! layer features alone.

use super::last_layer::ReadoutMap;
use super::structure::PredictionPoint;
use super::{Laplace, Subset};
use crate::compute::{Matrix, Real, Stream, matrix, matrix_mut, multiply};
use crate::network::Executor;

/// A Gaussian for each input.
#[derive(Debug, Clone, PartialEq)]
pub struct Linearised {
    /// Outputs C.
    pub outputs: usize,
    /// n × C, row after row.
    pub means: Vec<f64>,
    /// C × C for each input.
    pub covariances: Vec<f64>,
}

impl<R: Real> Laplace<R> {
    /// The linearised network's outputs for `inputs` (n × d₀).
    pub fn linearised(&self, executor: &mut Executor<R>, inputs: Matrix<'_, R>) -> Linearised {
        let [means, covariances] = self.predict(executor, inputs, true);
        Linearised {
            outputs: executor.outputs_count(),
            means,
            covariances,
        }
    }

    /// The linearised network's outputs and their variances alone, n × C row after row: for the last layer without covariances
    /// in between.
    pub fn linearised_variances(
        &self,
        executor: &mut Executor<R>,
        inputs: Matrix<'_, R>,
    ) -> [Vec<f64>; 2] {
        self.predict(executor, inputs, false)
    }

    fn predict(
        &self,
        executor: &mut Executor<R>,
        inputs: Matrix<'_, R>,
        has_covariances: bool,
    ) -> [Vec<f64>; 2] {
        let mut point = PredictionPoint {
            executor,
            layout: self.layout(),
            weights: self.mean(),
            subset: self.subset(),
            inputs,
        };
        self.structure().predict(&mut point, has_covariances)
    }

    /// Calls `visit` with the network's outputs (n × C, column-major) at each of `draws` draws of the weights. Of the last layer the
    /// features are made once.
    pub fn sampled(
        &self,
        executor: &mut Executor<R>,
        inputs: Matrix<'_, R>,
        draws: usize,
        stream: &mut Stream,
        mut visit: impl FnMut(&[R]),
    ) {
        let (rows, outputs) = (inputs.nrows(), executor.outputs_count());
        let mut draw = self.mean().to_vec();
        let mut f = vec![R::ZERO; rows * outputs];
        let is_last = *self.subset() == Subset::LastLayer;
        let layer = ReadoutMap::new(self.layout());
        let psi = is_last.then(|| layer.features::<R>(executor, self.mean(), inputs));
        let inner = draw.len() - self.readout();
        for _ in 0..draws {
            self.draw(stream, &mut draw);
            let out = matrix_mut(&mut f, rows, outputs);
            match &psi {
                Some(psi) => {
                    let count = psi.len() / rows.max(1);
                    let readout = matrix(&draw[inner..], count, outputs);
                    multiply(out, false, 1.0, matrix(psi, rows, count), readout);
                }
                None => executor.outputs(&draw, inputs, out),
            }
            visit(&f);
        }
    }

    /// The covariance of all outputs of all inputs with each other, (n·C × n·C), row i·C + c of output c for input i. It holds
    /// the Jacobian, n·C × D.
    pub fn joint_covariance(&self, executor: &mut Executor<R>, inputs: Matrix<'_, R>) -> Vec<f64> {
        let (rows, outputs, size) = (inputs.nrows(), executor.outputs_count(), self.mean().len());
        let places = self.subset().places(size, self.readout());
        let (count, total) = (places.len(), rows * outputs);
        let mut jacobian = vec![R::ZERO; count * total];
        let (mut own, mut cotangent) = (vec![R::ZERO; rows * size], vec![R::ZERO; rows * outputs]);
        for c in 0..outputs {
            cotangent.fill(R::ZERO);
            cotangent[c * rows..(c + 1) * rows].fill(R::ONE);
            let out = matrix_mut(&mut own, rows, size);
            executor.vjp_of_samples(self.mean(), inputs, matrix(&cotangent, rows, outputs), out);
            for row in 0..rows {
                let to = &mut jacobian[(row * outputs + c) * count..][..count];
                for (to, &place) in to.iter_mut().zip(&places) {
                    *to = own[place * rows + row];
                }
            }
        }
        let mut products = jacobian.clone();
        products
            .chunks_exact_mut(count.max(1))
            .for_each(|row| self.covariance_product(row));
        let mut out = vec![R::ZERO; total * total];
        let left = matrix(&jacobian, count, total).transpose();
        let to = matrix_mut(&mut out, total, total);
        multiply(to, false, 1.0, left, matrix(&products, count, total));
        out.iter().map(|value| value.to_f64()).collect()
    }
}
