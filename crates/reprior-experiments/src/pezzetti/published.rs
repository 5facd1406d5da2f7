//! The potential of pCNL in the published code of Pezzetti et al. (2024): log p(y | T(φ)) in place of ℓ.
//!
//! **Not the posterior's**: with it the density is N(φ; 0, I)·p(y | T(φ)), in which the readout's posterior counts the likelihood
//! once more. T is the map of `repriorised` coordinates at λ = σ².

use std::sync::Arc;

use reprior::compute::kernels::{matrix_mut, multiply};
use reprior::compute::{Matrix, Real, matrix};
use reprior::model::Model;
use reprior::model::likelihood::Derivatives;
use reprior::posterior::features::FeatureMap;
use reprior::posterior::repriorisation::Repriorisation;
use reprior::posterior::{Coordinates, EvaluationError, Posterior, PosteriorError, Space, Target};

use crate::chains::Recorded;

/// log p(y | T(φ)) of a model with known noise, as if it were ℓ. Positions are those of `repriorised` coordinates.
pub struct PublishedPotential<R> {
    model: Arc<Model<R>>,
    /// What positions are recorded by.
    posterior: Posterior<R>,
    features: FeatureMap<R>,
    map: Repriorisation<R>,
    scales: Vec<f64>,
    /// θ = T(φ), p × C, and the cotangent of it.
    theta: Vec<R>,
    theta_cotangent: Vec<R>,
    /// Outputs f and their cotangent, n × C.
    outputs: Vec<R>,
    output_cotangent: Vec<f64>,
    /// The cotangent of log|det ∂θ/∂φ| by the features, n × d_L.
    of_determinant: Vec<R>,
}

impl<R: Real> PublishedPotential<R> {
    /// The potential of `model`.
    ///
    /// # Errors
    /// A model without repriorised coordinates.
    pub fn new(model: Arc<Model<R>>) -> Result<Self, PosteriorError> {
        let architecture = &model.architecture;
        let (n, p, c) = (
            model.rows(),
            architecture.readout_rows(),
            architecture.outputs,
        );
        let scales = model.noise.typical(c);
        let targets = model.targets.clone();
        let space = Space::cheaper(n, p);
        Ok(Self {
            posterior: Posterior::new(Arc::clone(&model), Coordinates::Repriorised)?,
            features: FeatureMap::new(&model),
            map: Repriorisation::new(&model, space, &vec![scales[0].powi(2); c], targets),
            scales,
            theta: vec![R::ZERO; p * c],
            theta_cotangent: vec![R::ZERO; p * c],
            outputs: vec![R::ZERO; n * c],
            output_cotangent: vec![0.0; n * c],
            of_determinant: vec![R::ZERO; n * (p - 1)],
            model,
        })
    }

    /// log p(y | T(φ)) at the position, with its derivatives by the outputs where they are asked for.
    fn evaluate(&mut self, z: &[R], with_derivatives: bool) -> Result<f64, EvaluationError> {
        let model = &*self.model;
        let (inner, phi) = z.split_at(model.inner_parameters());
        self.features
            .evaluate(model, inner, with_derivatives, |_| {});
        let h = self.features.features(model);
        self.map.map(h, phi, &mut self.theta)?;
        let (n, p, c) = sizes(model, h);
        let theta = matrix(&self.theta, p, c);
        let outputs = matrix_mut(&mut self.outputs, n, c);
        multiply(outputs, false, factor(model, p), h, theta);
        let outputs: Vec<f64> = self.outputs.iter().map(|f| f.to_f64()).collect();
        let mut by_log_scale = vec![0.0; c];
        let derivatives = with_derivatives.then_some(Derivatives {
            outputs: &mut self.output_cotangent,
            log_scales: &mut by_log_scale,
        });
        let likelihood = &model.likelihood;
        Ok(likelihood.log_density(&model.targets, &outputs, &self.scales, derivatives))
    }
}

/// n, p, C.
fn sizes<R: Real>(model: &Model<R>, features: Matrix<'_, R>) -> (usize, usize, usize) {
    (
        features.nrows(),
        features.ncols(),
        model.architecture.outputs,
    )
}

/// α of f = α·h̃·θ.
fn factor<R: Real>(model: &Model<R>, p: usize) -> f64 {
    model.architecture.readout_scale.factor(p - 1)
}

impl<R: Real> Target for PublishedPotential<R> {
    type Real = R;

    fn dim(&self) -> usize {
        self.model.inner_parameters() + self.theta.len()
    }

    fn log_ratio(&mut self, z: &[R]) -> Result<f64, EvaluationError> {
        self.evaluate(z, false)
    }

    fn log_ratio_and_gradient(
        &mut self,
        z: &[R],
        gradient: &mut [R],
    ) -> Result<f64, EvaluationError> {
        let value = self.evaluate(z, true)?;
        let model = &*self.model;
        let (inner, phi) = z.split_at(model.inner_parameters());
        let (inner_gradient, phi_gradient) = gradient.split_at_mut(inner.len());
        let h = self.features.features(model);
        let (n, p, c) = sizes(model, h);
        for (narrow, wide) in self.outputs.iter_mut().zip(&self.output_cotangent) {
            *narrow = R::from_f64(*wide);
        }
        let theta_cotangent = matrix_mut(&mut self.theta_cotangent, p, c);
        let derivative = matrix(&self.outputs, n, c);
        multiply(
            theta_cotangent,
            false,
            factor(model, p),
            h.transpose(),
            derivative,
        );
        let theta_cotangent: Vec<f64> = self.theta_cotangent.iter().map(|x| x.to_f64()).collect();
        let (map, theta, outputs) = (&mut self.map, &self.theta, &self.outputs);
        let of_determinant = &mut self.of_determinant;
        self.features
            .backward(model, inner, inner_gradient, |mut out, h| {
                // T's pull-back adds that of log|det|, which it has with cotangents of zero and which this potential leaves out
                let (left, right) = map.own_term();
                left.fill(R::ZERO);
                right.fill(R::ZERO);
                let (rows, columns) = (out.nrows(), out.ncols());
                let alone = matrix_mut(of_determinant, rows, columns);
                map.pull_back(alone, h, phi, &vec![0.0; p * c], phi_gradient);
                let (left, right) = map.own_term();
                left.copy_from_slice(outputs);
                right.copy_from_slice(theta);
                map.pull_back(out.as_mut(), h, phi, &theta_cotangent, phi_gradient);
                for (column, of_determinant) in of_determinant.chunks_exact(rows).enumerate() {
                    for (row, value) in of_determinant.iter().enumerate() {
                        out[(row, column)] -= *value;
                    }
                }
            });
        Ok(value)
    }

    fn arrives_by_gradients(&self) -> bool {
        true
    }

    fn corrections(&self) -> u64 {
        self.map.jitter_count()
    }
}

impl<R: Real> Recorded for PublishedPotential<R> {
    fn posterior(&mut self) -> &mut Posterior<R> {
        &mut self.posterior
    }
}

#[cfg(test)]
mod tests {
    use reprior::compute::{Purpose, Stream};
    use reprior::model::InputReduction;
    use reprior::network::{Activation, Composition};

    use super::*;

    #[test]
    fn the_published_potential_has_its_gradient() {
        let network = Composition::fully_connected(3, &[6], 2, Activation::Gelu);
        let mut stream = Stream::new(3, 0, Purpose::Initial, 0);
        for rows in [4, 12] {
            let (mut x, mut y) = (vec![0.0; rows * 3], vec![0.0; rows * 2]);
            stream.fill_normal(&mut x);
            stream.fill_normal(&mut y);
            let model = Model::<f64>::new(network.clone(), 0.3, &x, y, &[], InputReduction::Auto);
            let model = Arc::new(model.expect("a model"));
            let mut target = PublishedPotential::new(model).expect("a potential");
            let mut z = vec![0.0; target.dim()];
            stream.fill_normal(&mut z);
            let mut gradient = z.clone();
            let value = target.log_ratio_and_gradient(&z, &mut gradient).expect("ℓ");
            assert!((target.log_ratio(&z).expect("ℓ") - value).abs() < 1e-9);
            for (index, derivative) in gradient.iter().enumerate() {
                let mut at = |shift: f64| {
                    let mut moved = z.clone();
                    moved[index] += shift;
                    target.log_ratio(&moved).expect("ℓ")
                };
                let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!(
                    (difference - derivative).abs() < 1e-5 * (1.0 + derivative.abs()),
                    "{rows} rows, {index}: {derivative} against {difference}"
                );
            }
        }
    }
}
