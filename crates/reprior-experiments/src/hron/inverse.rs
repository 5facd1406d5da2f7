//! T⁻¹, by which repriorised slices go through networks that were trained, at λ = σ².

use std::sync::Arc;

use reprior::compute::kernels::dot;
use reprior::compute::{Purpose, Stream};
use reprior::model::Model;
use reprior::posterior::{Coordinates, Posterior, Recorder, Target};

use crate::Failure;

/// T⁻¹. T is affine in the readout, θ = Aφ + μ with A·Aᵀ = Σ, so that φ = A⁻¹(θ − μ) = AᵀΣ⁻¹(θ − μ); and Σ⁻¹ = I + ΨᵀΨ/σ², where
/// ΨᵀΨ(θ − μ)/σ² is the difference of the log-likelihood's gradients at μ and θ.
pub(super) struct Inverse {
    model: Arc<Model<f64>>,
    standard: Posterior<f64>,
    repriorised: Posterior<f64>,
    recorder: Recorder<f64>,
}

impl Inverse {
    /// Of the map of a model.
    ///
    /// # Errors
    /// As [`Posterior::new`].
    pub fn new(model: &Arc<Model<f64>>) -> Result<Self, Failure> {
        Ok(Self {
            model: Arc::clone(model),
            standard: Posterior::new(Arc::clone(model), Coordinates::Standard)?,
            repriorised: Posterior::new(Arc::clone(model), Coordinates::Repriorised)?,
            recorder: Recorder::new(Arc::clone(model)),
        })
    }

    /// T(φ), of inner weights and φ_out.
    ///
    /// # Errors
    /// Weights outside the range of numbers.
    pub fn map(&mut self, phi: &[f64]) -> Result<Vec<f64>, Failure> {
        let mut stream = Stream::new(22, 0, Purpose::Recording, 0);
        let record = self
            .recorder
            .record(&mut self.repriorised, phi, &mut stream)?;
        Ok(record.weights.clone())
    }

    /// T⁻¹(θ).
    ///
    /// # Errors
    /// As [`map`](Self::map).
    pub fn of(&mut self, theta: &[f64]) -> Result<Vec<f64>, Failure> {
        let inner = self.model.inner_parameters();
        let outputs = self.model.architecture.outputs;
        let rows = self.model.architecture.readout_rows();
        let mut phi = theta.to_vec();
        phi[inner..].fill(0.0);
        let mean = self.map(&phi)?;
        let [mut at_theta, mut at_mean] = [theta.to_vec(), theta.to_vec()];
        self.standard.log_ratio_and_gradient(theta, &mut at_theta)?;
        self.standard.log_ratio_and_gradient(&mean, &mut at_mean)?;
        let weighted: Vec<f64> = (inner..theta.len())
            .map(|at| theta[at] - mean[at] + at_mean[at] - at_theta[at])
            .collect();
        // as many columns of A at a time as there are outputs
        let mut out = vec![0.0; rows * outputs];
        for first in (0..rows).step_by(outputs) {
            phi[inner..].fill(0.0);
            let columns = first..rows.min(first + outputs);
            for (output, column) in columns.clone().enumerate() {
                phi[inner + output * rows + column] = 1.0;
            }
            let theta = self.map(&phi)?;
            for (output, column) in columns.enumerate() {
                let own = inner + output * rows;
                let column_of_root: Vec<f64> =
                    (own..own + rows).map(|at| theta[at] - mean[at]).collect();
                for (to, own) in out.chunks_exact_mut(rows).zip(weighted.chunks_exact(rows)) {
                    to[column] = dot(&column_of_root, own);
                }
            }
        }
        phi[inner..].copy_from_slice(&out);
        Ok(phi)
    }
}

#[cfg(test)]
mod tests {
    use reprior::model::InputReduction;
    use reprior::network::{Activation, Composition};

    use super::*;

    #[test]
    fn the_inverse_undoes_the_map() {
        let network = Composition::fully_connected(3, &[7], 2, Activation::Gelu);
        let mut stream = Stream::new(3, 0, Purpose::Initial, 0);
        let (mut x, mut y) = (vec![0.0; 15], vec![0.0; 10]);
        stream.fill_normal(&mut x);
        stream.fill_normal(&mut y);
        let model = Model::<f64>::new(network, 0.3, &x, y, &[], InputReduction::Auto).unwrap();
        let mut inverse = Inverse::new(&Arc::new(model)).unwrap();
        let mut phi = vec![0.0; inverse.repriorised.dim()];
        stream.fill_normal(&mut phi);
        let theta = inverse.map(&phi).unwrap();
        let back = inverse.of(&theta).unwrap();
        for (a, b) in back.iter().zip(&phi) {
            assert!((a - b).abs() < 1e-8, "{a} {b}");
        }
    }
}
