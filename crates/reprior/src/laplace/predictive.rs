//! Predictions of the linearised network f(ŵ) + J·(w − ŵ) (Immer, Korzepa & Bauer 2021) in closed form: at each input a Gaussian
//! with the network's own outputs as mean and JΣJᵀ as covariance.
//!
//! Cost: diagonal and Kronecker structures [`Executor::covariances`]; spectral ones a jvp for each eigenpair besides; the last
//! layer features alone.

use super::last_layer::LastLayer;
use super::structure::{LayerCurvature, Precision, Structure};
use super::{Laplace, Subset};
use crate::compute::{Matrix, MatrixMut, Real, Stream, matrix, matrix_mut, multiply};
use crate::network::{Executor, Spread};

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

/// Directions that are multiplied in one pass.
const AT_ONCE: usize = 32;

impl<R: Real> Laplace<R> {
    /// The linearised network's outputs for `inputs` (n × d₀).
    pub fn linearised(&self, executor: &mut Executor<R>, inputs: Matrix<'_, R>) -> Linearised {
        let (rows, outputs) = (inputs.nrows(), executor.outputs_count());
        if *self.subset() == Subset::LastLayer {
            let [means, covariances] = self.of_last_layer(executor, inputs, true);
            return Linearised {
                outputs,
                means,
                covariances,
            };
        }
        let mut f = vec![R::ZERO; rows * outputs];
        let out = MatrixMut::from_row_major_slice_mut(&mut f, rows, outputs);
        executor.outputs(self.mean(), inputs, out);
        let mut covariances = vec![R::ZERO; rows * outputs * outputs];
        let size = outputs * outputs;
        let out = MatrixMut::from_row_major_slice_mut(&mut covariances, rows, size);
        self.add_independent_part(executor, inputs, out);
        let double = |values: Vec<R>| values.into_iter().map(|value| value.to_f64()).collect();
        let mut found = Linearised {
            outputs,
            means: double(f),
            covariances: double(covariances),
        };
        self.subtract_known_directions(executor, inputs, &mut found.covariances);
        found
    }

    /// The linearised network's outputs and their variances alone, n × C row after row: for the last layer without covariances
    /// in between.
    pub fn linearised_variances(
        &self,
        executor: &mut Executor<R>,
        inputs: Matrix<'_, R>,
    ) -> [Vec<f64>; 2] {
        if *self.subset() == Subset::LastLayer {
            return self.of_last_layer(executor, inputs, false);
        }
        let found = self.linearised(executor, inputs);
        let count = found.outputs;
        let own = found.covariances.chunks_exact(count * count);
        let variances = own.flat_map(|own| own.iter().step_by(count + 1)).copied();
        [found.means, variances.collect()]
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
        let layer = LastLayer::new(executor, self.layout());
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

    fn of_last_layer(
        &self,
        executor: &mut Executor<R>,
        inputs: Matrix<'_, R>,
        has_covariances: bool,
    ) -> [Vec<f64>; 2] {
        let layer = LastLayer::new(executor, self.layout());
        let posterior = (self.structure(), self.precision());
        layer.predict(executor, self.mean(), inputs, posterior, has_covariances)
    }

    /// JΣJᵀ for parameters that are independent, or are within each layer's rotation; of a spectral structure the prior's alone.
    fn add_independent_part(
        &self,
        executor: &mut Executor<R>,
        inputs: Matrix<'_, R>,
        out: MatrixMut<'_, R>,
    ) {
        let real = |values: &[f64]| -> Vec<R> { values.iter().map(|&v| R::from_f64(v)).collect() };
        let layers = &self.layout().layers;
        let variances: Vec<Vec<R>> = match self.precision() {
            Precision::Kronecker(variances) => variances.iter().map(|own| real(own)).collect(),
            Precision::Diagonal(own) => self.by_layer(&real(own)),
            Precision::Spectral { prior_scales, .. } => {
                let own: Vec<f64> = prior_scales.iter().map(|scale| scale * scale).collect();
                self.by_layer(&real(&own))
            }
        };
        let spreads = (0..layers.len()).map(|layer| Spread {
            rotations: match self.structure() {
                Structure::Kronecker(own) => match &own[layer] {
                    LayerCurvature::Kronecker(factors) => {
                        Some(factors.vectors.each_ref().map(|vectors| &vectors[..]))
                    }
                    LayerCurvature::Diagonal(_) => None,
                },
                _ => None,
            },
            variances: &variances[layer],
        });
        let spreads: Vec<_> = spreads.collect();
        executor.covariances(self.mean(), inputs, &spreads, out);
    }

    /// A number for each random parameter as one for each parameter of each layer, zero where it is not random; a layer with the
    /// same number everywhere has one.
    fn by_layer(&self, values: &[R]) -> Vec<Vec<R>> {
        let mut all = vec![R::ZERO; self.mean().len()];
        self.subset().add(values, &mut all, self.readout());
        let layers = self.layout().layers.iter();
        let own = layers.map(|layer| {
            let own = &all[layer.range.clone()];
            match own.iter().all(|value| *value == own[0]) {
                true => own[..1].to_vec(),
                false => own.to_vec(),
            }
        });
        own.collect()
    }

    /// What the curvature takes away from the prior's covariance, along its eigenvectors.
    fn subtract_known_directions(
        &self,
        executor: &mut Executor<R>,
        inputs: Matrix<'_, R>,
        covariances: &mut [f64],
    ) {
        let Precision::Spectral {
            prior_scales,
            vectors,
            values,
        } = self.precision()
        else {
            return;
        };
        let (rows, outputs, size) = (inputs.nrows(), executor.outputs_count(), self.mean().len());
        let scales: Vec<R> = prior_scales
            .iter()
            .map(|&scale| R::from_f64(scale))
            .collect();
        for (first, values) in (0..).step_by(AT_ONCE).zip(values.chunks(AT_ONCE)) {
            let count = values.len();
            let mut directions = vec![R::ZERO; size * count];
            for (index, direction) in directions.chunks_exact_mut(size).enumerate() {
                let column = &vectors[(first + index) * scales.len()..][..scales.len()];
                let own: Vec<R> = column.iter().zip(&scales).map(|(&q, &s)| q * s).collect();
                self.subset().add(&own, direction, self.readout());
            }
            let mut along = vec![R::ZERO; rows * outputs * count];
            let width = outputs * count;
            let out = MatrixMut::from_row_major_slice_mut(&mut along, rows, width);
            executor.jvps(self.mean(), inputs, matrix(&directions, size, count), out);
            let pairs = along.chunks_exact(width);
            let pairs = pairs.zip(covariances.chunks_exact_mut(outputs * outputs));
            for (along, covariance) in pairs {
                for (own, value) in along.chunks_exact(outputs).zip(values) {
                    let part = value / (1.0 + value);
                    for (column, a) in covariance.chunks_exact_mut(outputs).zip(own) {
                        for (entry, b) in column.iter_mut().zip(own) {
                            *entry -= part * a.to_f64() * b.to_f64();
                        }
                    }
                }
            }
        }
    }
}
