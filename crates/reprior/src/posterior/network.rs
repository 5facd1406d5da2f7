//! A network's posterior as a target, in any of the coordinate systems.
//!
//! Position layout: the inner weights layer by layer (column-major, rows of one unit contiguous, the bias last; the
//! first layer in reduced coordinates), then the coordinates of noise scales that are learned, then in `repriorised` and
//! `standard` the readout's p × C matrix.

use std::sync::Arc;

use super::fit::Fit;
use super::repriorisation::Repriorisation;
use super::{
    Coordinates, Ellipse, EvaluationError, FeatureMap, Readout, Regulariser, Space, Target,
};
use crate::compute::{Real, difference_dot};
use crate::model::Model;

/// The posterior of a network's weights.
pub struct NetworkPosterior<R> {
    model: Arc<Model<R>>,
    coordinates: Coordinates,
    space: Space,
    pub(super) features: FeatureMap<R>,
    /// The readout in closed form; for a Gaussian likelihood.
    pub(super) readout: Option<Readout<R>>,
    density: Density<R>,
    /// σ of every output at the last position.
    pub(super) scales: Vec<f64>,
    by_log_scale: Vec<f64>,
}

/// How ℓ is computed.
enum Density<R> {
    /// The readout is integrated out, or independent of everything: `readout` has it all.
    Integrated,
    /// log p(y | θ).
    Likelihood(Fit<R>),
    /// log p(y | T(φ)) and the rest.
    Repriorised(Box<Repriorised<R>>),
    /// Cannot be.
    Impossible(&'static str),
}

struct Repriorised<R> {
    fit: Fit<R>,
    map: Repriorisation<R>,
    theta: Vec<R>,
    theta_narrow: Vec<R>,
    theta_cotangent: Vec<f64>,
}

impl<R: Real> NetworkPosterior<R> {
    /// The posterior of `model`. `space` forces where the readout is solved for; the cheaper one if `None`. λ is matched.
    pub fn new(model: Arc<Model<R>>, coordinates: Coordinates, space: Option<Space>) -> Self {
        Self::with_regulariser(model, coordinates, space, Regulariser::Matched)
    }

    /// The same with λ of `repriorised` coordinates given.
    ///
    /// What cannot be is said by the first evaluation, as a fatal error: `marginal` coordinates without a Gaussian
    /// likelihood, a λ that is not positive, `tangent` coordinates.
    pub fn with_regulariser(
        model: Arc<Model<R>>,
        coordinates: Coordinates,
        space: Option<Space>,
        regulariser: Regulariser,
    ) -> Self {
        let (n, p) = (model.rows(), model.architecture.readout_rows());
        let c = model.architecture.outputs;
        let space = space.unwrap_or_else(|| Space::cheaper(n, p));
        let is_gaussian = model.likelihood.is_gaussian();
        let is_matched = regulariser == Regulariser::Matched && space != Space::DataSymmetric;
        let scales = model.noise.typical(c);
        let density = match coordinates {
            Coordinates::Marginal if is_gaussian => Density::Integrated,
            Coordinates::Marginal => Density::Impossible(
                "the readout can be integrated out for a gaussian likelihood only: use repriorised or standard coordinates",
            ),
            Coordinates::Repriorised if is_gaussian && is_matched => Density::Integrated,
            Coordinates::Repriorised => {
                let approximation = model.likelihood.approximation(&model.targets, &scales);
                let lambda = regulariser.value(n, approximation.variance);
                if lambda.is_normal() && lambda > 0.0 {
                    let targets = approximation.targets;
                    Density::Repriorised(Box::new(Repriorised {
                        fit: Fit::new(&model),
                        map: Repriorisation::new(&model, space, lambda, targets),
                        theta: vec![R::ZERO; p * c],
                        theta_narrow: vec![R::ZERO; p * c],
                        theta_cotangent: vec![0.0; p * c],
                    }))
                } else {
                    Density::Impossible("the regulariser λ must be positive and finite")
                }
            }
            Coordinates::Standard => Density::Likelihood(Fit::new(&model)),
            Coordinates::Tangent => {
                Density::Impossible("tangent coordinates are TangentPosterior's")
            }
        };
        Self {
            features: FeatureMap::new(&model),
            readout: is_gaussian.then(|| Readout::new(&model, space)),
            model,
            coordinates,
            space,
            density,
            scales,
            by_log_scale: vec![0.0; c],
        }
    }

    /// The model.
    pub fn model(&self) -> &Arc<Model<R>> {
        &self.model
    }

    /// The coordinates of positions.
    pub fn coordinates(&self) -> Coordinates {
        self.coordinates
    }

    /// Where the readout is solved for.
    pub fn space(&self) -> Space {
        self.space
    }

    /// Dimension of a position.
    pub fn dimension(model: &Model<R>, coordinates: Coordinates) -> usize {
        let readout = match coordinates {
            Coordinates::Marginal => 0,
            _ => model.architecture.readout_parameters(),
        };
        model.inner_parameters() + model.noise_coordinates() + readout
    }

    /// The parts of a position: inner weights, noise coordinates, readout.
    pub(super) fn split<'a>(&self, z: &'a [R]) -> [&'a [R]; 3] {
        let (inner, rest) = z.split_at(self.model.inner_parameters());
        let (noise, readout) = rest.split_at(self.model.noise_coordinates());
        [inner, noise, readout]
    }

    /// Sets the noise scales to those of a position.
    pub(super) fn set_noise(&mut self, noise: &[R]) {
        self.model.noise.scales(noise, &mut self.scales);
        if let Some(readout) = &mut self.readout {
            readout.set_noise(&self.scales);
        }
    }

    /// Evaluates the features at the inner weights; the readout takes them if it is to be solved for.
    pub(super) fn evaluate_features(
        &mut self,
        inner: &[R],
        with_derivatives: bool,
        solves_readout: bool,
    ) {
        let (features, model) = (&mut self.features, &*self.model);
        match &mut self.readout {
            Some(readout) if solves_readout => {
                features.evaluate(model, inner, with_derivatives, |columns| {
                    readout.take(columns);
                });
            }
            _ => features.evaluate(model, inner, with_derivatives, |_| {}),
        }
    }

    /// The same at a point of the ellipse that the features were prepared for.
    fn evaluate_features_on_ellipse(&mut self, inner: &[R], angle: f64) {
        let (features, model) = (&mut self.features, &*self.model);
        match (&self.density, &mut self.readout) {
            (Density::Integrated, Some(readout)) => {
                features.evaluate_on_ellipse(model, inner, angle, |columns| readout.take(columns));
            }
            _ => features.evaluate_on_ellipse(model, inner, angle, |_| {}),
        }
    }

    /// ℓ given the features that were evaluated last and σ.
    fn log_ratio_of_features(&mut self, readout_weights: &[R]) -> Result<f64, EvaluationError> {
        let features = self.features.features(&self.model);
        match (&mut self.density, &mut self.readout) {
            (Density::Integrated, Some(readout)) => readout.log_ratio(features),
            (Density::Likelihood(fit), _) => {
                Ok(fit.log_likelihood(&self.model, features, readout_weights, &self.scales, None))
            }
            (Density::Repriorised(density), _) => {
                let Repriorised {
                    fit, map, theta, ..
                } = &mut **density;
                let log_determinant = map.map(features, readout_weights, theta)?;
                let value = fit.log_likelihood(&self.model, features, theta, &self.scales, None);
                Ok(value - difference_dot(theta, readout_weights) + log_determinant)
            }
            (Density::Impossible(reason), _) => Err(EvaluationError::Fatal((*reason).to_owned())),
            (Density::Integrated, None) => unreachable!("integrated out for Gaussians only"),
        }
    }

    /// θ_out of the position at which the features were evaluated last (and, with a Gaussian likelihood, the readout was
    /// solved for), in place of its φ_out; nothing to do in other coordinates.
    pub(super) fn transform_readout(&mut self, weights: &mut [R]) -> Result<(), EvaluationError> {
        if self.coordinates != Coordinates::Repriorised {
            return Ok(());
        }
        let features = self.features.features(&self.model);
        match (&mut self.density, &mut self.readout) {
            (Density::Integrated, Some(readout)) => readout.transform(features, weights),
            (Density::Repriorised(density), _) => {
                density.map.map(features, weights, &mut density.theta)?;
                weights.copy_from_slice(&density.theta);
            }
            _ => {}
        }
        Ok(())
    }
}

impl<R: Real> Target for NetworkPosterior<R> {
    type Real = R;

    fn dim(&self) -> usize {
        Self::dimension(&self.model, self.coordinates)
    }

    fn log_ratio(&mut self, z: &[R]) -> Result<f64, EvaluationError> {
        let [inner, noise, readout_weights] = self.split(z);
        self.set_noise(noise);
        let is_integrated = matches!(self.density, Density::Integrated);
        self.evaluate_features(inner, false, is_integrated);
        self.log_ratio_of_features(readout_weights)
    }

    fn log_ratio_on_ellipse(
        &mut self,
        mut ellipse: Ellipse<'_, R>,
        angle: f64,
    ) -> Result<f64, EvaluationError> {
        let first = self.features.first_parameters(&self.model);
        if ellipse.is_new {
            let (position, direction) = (ellipse.position, ellipse.direction);
            self.features
                .prepare_ellipse(&self.model, position, direction);
        }
        ellipse.write_point(first, angle);
        let [inner, noise, readout_weights] = self.split(ellipse.point);
        self.set_noise(noise);
        self.evaluate_features_on_ellipse(inner, angle);
        self.log_ratio_of_features(readout_weights)
    }

    fn log_ratio_and_gradient(
        &mut self,
        z: &[R],
        gradient: &mut [R],
    ) -> Result<f64, EvaluationError> {
        let [inner, noise, readout_weights] = self.split(z);
        let (inner_gradient, rest) = gradient.split_at_mut(inner.len());
        let (noise_gradient, readout_gradient) = rest.split_at_mut(noise.len());
        self.set_noise(noise);
        let is_integrated = matches!(self.density, Density::Integrated);
        self.evaluate_features(inner, true, is_integrated);
        let model = &*self.model;
        let (scales, by_log_scale) = (&self.scales, &mut self.by_log_scale);
        let features = &mut self.features;
        let value = match (&mut self.density, &mut self.readout) {
            (Density::Integrated, Some(readout)) => {
                let value = readout.log_ratio(features.features(model))?;
                // at λ = σ² the density does not depend on φ_out
                readout_gradient.fill(R::ZERO);
                readout.prepare_cotangent(by_log_scale);
                features.backward_in_blocks(model, inner, inner_gradient, |out, h, units| {
                    readout.cotangent(out, h, units);
                });
                value
            }
            (Density::Likelihood(fit), _) => {
                let h = features.features(model);
                let derivatives = Some(&mut by_log_scale[..]);
                let value = fit.log_likelihood(model, h, readout_weights, scales, derivatives);
                fit.readout_cotangent(h, readout_gradient);
                features.backward(model, inner, inner_gradient, |out, _| {
                    fit.feature_cotangent(out, readout_weights);
                });
                value
            }
            (Density::Repriorised(density), _) => {
                let Repriorised {
                    fit,
                    map,
                    theta,
                    theta_narrow,
                    theta_cotangent,
                } = &mut **density;
                let h = features.features(model);
                let log_determinant = map.map(h, readout_weights, theta)?;
                let derivatives = Some(&mut by_log_scale[..]);
                let mut value = fit.log_likelihood(model, h, theta, scales, derivatives);
                value += log_determinant - difference_dot(theta, readout_weights);
                // ∂/∂θ of log p − ½‖θ‖²
                fit.readout_cotangent(h, theta_narrow);
                let pairs = theta_narrow.iter().zip(&*theta);
                for (out, (derivative, theta)) in theta_cotangent.iter_mut().zip(pairs) {
                    *out = derivative.to_f64() - theta.to_f64();
                }
                features.backward(model, inner, inner_gradient, |out, h| {
                    let (left, right) = map.own_term();
                    left.copy_from_slice(fit.output_cotangent());
                    right.copy_from_slice(theta);
                    map.pull_back(out, h, readout_weights, theta_cotangent, readout_gradient);
                });
                // and of ½‖φ‖²
                for (out, phi) in readout_gradient.iter_mut().zip(readout_weights) {
                    *out += *phi;
                }
                value
            }
            (Density::Impossible(reason), _) => {
                return Err(EvaluationError::Fatal((*reason).to_owned()));
            }
            (Density::Integrated, None) => unreachable!("integrated out for Gaussians only"),
        };
        model.noise.pull_back(by_log_scale, noise_gradient);
        Ok(value)
    }

    fn arrives_by_gradients(&self) -> bool {
        true
    }

    fn corrections(&self) -> u64 {
        let map = match &self.density {
            Density::Repriorised(density) => density.map.jitter_count(),
            _ => 0,
        };
        map + self.readout.as_ref().map_or(0, Readout::jitter_count)
    }
}
