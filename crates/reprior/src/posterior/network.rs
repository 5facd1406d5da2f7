//! A network's posterior as a target, in any of the coordinate systems.
//!
//! Position layout: the inner weights layer by layer (column-major, rows of one unit contiguous, the bias last; the
//! first layer in reduced coordinates), then the coordinates of noise scales that are learned and of scales of weights that are, then but for
//! `marginal` coordinates the readout's p × C matrix.

use std::ops::Range;
use std::sync::Arc;

use thiserror::Error;

use super::features::FeatureMap;
use super::output_likelihood::OutputLikelihood;
use super::readout::{Moments, Readout};
use super::repriorised::Repriorised;
use super::scaled::Scaled;
use super::tangent::TangentMap;
use super::target::Ellipse;
use super::{Coordinates, EvaluationError, Regulariser, Space, TangentDeterminant, Target};
use crate::compute::Real;
use crate::model::Model;
use crate::network::Parts;
use crate::network::layer::ShapeError;

/// The posterior of a network's weights.
pub struct Posterior<R> {
    model: Arc<Model<R>>,
    /// Numbers of a position.
    dimension: usize,
    coordinates: Coordinates,
    space: Space,
    pub(super) features: FeatureMap<R>,
    /// The readout in closed form; for a Gaussian likelihood.
    pub(super) readout: Option<Readout<R>>,
    density: Density<R>,
    /// The map from tangent coordinates to those of θ, in which everything else is then.
    tangent: Option<Box<TangentMap<R>>>,
    /// σ of every output at the last position.
    pub(super) scales: Vec<f64>,
    by_log_scale: Vec<f64>,
    /// Inner weights where their scales are learned.
    pub(super) scaled: Scaled<R>,
}

/// How ℓ is computed.
enum Density<R> {
    /// The readout is integrated out, or independent of everything: `readout` has it all.
    Integrated,
    /// log p(y | θ).
    Likelihood(OutputLikelihood<R>),
    /// log p(y | T(φ)) and the rest.
    Repriorised(Box<Repriorised<R>>),
}

/// Coordinates, and what they leave to choose.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PosteriorSettings {
    /// What positions are.
    pub coordinates: Coordinates,
    /// Where the readout is solved for; the cheaper space if `None`.
    pub space: Option<Space>,
    /// λ of `repriorised` coordinates, and of the map of `tangent` ones that has one.
    pub regulariser: Regulariser,
    /// The determinant of `tangent` coordinates; [`TangentDeterminant::for_parameters`] if `None`.
    pub determinant: Option<TangentDeterminant>,
    /// Key of that determinant's probes, the same for all chains.
    pub seed: u64,
}

impl PosteriorSettings {
    /// These coordinates with the readout solved for in `space`.
    pub fn in_space(coordinates: Coordinates, space: Space) -> Self {
        Self {
            space: Some(space),
            ..coordinates.into()
        }
    }

    /// Whether `repriorised` coordinates need the map T with each ℓ: not where λ is matched and the likelihood Gaussian, for
    /// there φ_out is exactly N(0, I).
    pub fn maps_readout(&self, is_gaussian: bool) -> bool {
        let is_matched =
            self.regulariser == Regulariser::Matched && self.space != Some(Space::DataSymmetric);
        self.coordinates == Coordinates::Repriorised && !(is_gaussian && is_matched)
    }
}

impl From<Coordinates> for PosteriorSettings {
    fn from(coordinates: Coordinates) -> Self {
        Self {
            coordinates,
            ..Self::default()
        }
    }
}

/// Coordinates that a model does not have.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PosteriorError {
    /// `marginal` coordinates with another likelihood than the Gaussian.
    #[error(
        "the readout can be integrated out for a gaussian likelihood only: use repriorised or standard coordinates"
    )]
    Marginal,
    /// λ ≤ 0 or not finite.
    #[error("the regulariser λ must be positive and finite")]
    Regulariser,
    /// A likelihood whose approximation is of other outputs than the network's.
    #[error(
        "the likelihood's approximation has {found} variances, and the network has {expected} outputs: it needs one for each"
    )]
    Approximation {
        /// Variances that it has.
        found: usize,
        /// Outputs of the network.
        expected: usize,
    },
    /// `tangent` coordinates with another likelihood than the Gaussian.
    #[error(
        "tangent coordinates are for a gaussian likelihood: use repriorised or standard coordinates"
    )]
    TangentLikelihood,
    /// `tangent` coordinates where the noise is learned.
    #[error(
        "tangent coordinates are for a known noise: give it, or use marginal, repriorised or standard coordinates"
    )]
    TangentNoise,
    /// `tangent` coordinates where scales of weights are learned.
    #[error(
        "tangent coordinates are for known scales of the weights: use marginal, repriorised or standard coordinates"
    )]
    TangentScales,
    /// A series without terms or probes.
    #[error("the series of the determinant needs at least one term and one probe")]
    Series,
    /// The determinant of the Hessians for the map without a regulariser.
    #[error(
        "the determinant of the Hessians alone approximates that of the map with a regulariser: give one, or use exact or series"
    )]
    HessianDeterminant,
    /// A layer that does not fit.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

impl<R: Real> Posterior<R> {
    /// The posterior of `model` in these coordinates.
    ///
    /// # Errors
    /// [`PosteriorError`] says what the coordinates are not for.
    pub fn new(
        model: Arc<Model<R>>,
        settings: impl Into<PosteriorSettings>,
    ) -> Result<Self, PosteriorError> {
        let settings = settings.into();
        let (n, p) = (model.rows(), model.architecture.readout_rows());
        let c = model.architecture.outputs;
        let space = settings.space.unwrap_or_else(|| Space::cheaper(n, p));
        let is_gaussian = model.likelihood.is_gaussian();
        let scales = model.noise.typical(c);
        let density = match settings.coordinates {
            Coordinates::Marginal if is_gaussian => Density::Integrated,
            Coordinates::Marginal => return Err(PosteriorError::Marginal),
            Coordinates::Repriorised if settings.maps_readout(is_gaussian) => {
                let map = Repriorised::new(&model, space, settings.regulariser, &scales)?;
                Density::Repriorised(Box::new(map))
            }
            Coordinates::Repriorised => Density::Integrated,
            Coordinates::Standard | Coordinates::Tangent => {
                Density::Likelihood(OutputLikelihood::new(&model))
            }
        };
        let tangent = match settings.coordinates {
            Coordinates::Tangent => {
                let model = Arc::clone(&model);
                let map = TangentMap::new(model, settings)?;
                Some(Box::new(map))
            }
            _ => None,
        };
        Ok(Self {
            scaled: Scaled::new(&model),
            features: FeatureMap::new(&model),
            dimension: Self::dimension(&model, settings.coordinates),
            readout: is_gaussian.then(|| Readout::new(&model, space)),
            model,
            coordinates: settings.coordinates,
            space,
            density,
            tangent,
            scales,
            by_log_scale: vec![0.0; c],
        })
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
        model.inner_parameters() + model.noise_coordinates() + model.scale_coordinates() + readout
    }

    /// θ of a position in tangent coordinates, a position in `standard` ones; none in others.
    pub(super) fn tangent_weights(&mut self, z: &[R]) -> Result<Option<&[R]>, EvaluationError> {
        self.tangent.as_mut().map(|map| map.weights(z)).transpose()
    }

    /// The parts of a position: inner weights (before their scales), coordinates of the noise and of scales, readout.
    pub(super) fn split<'a>(&self, z: &'a [R]) -> [&'a [R]; 4] {
        let (inner, rest) = z.split_at(self.model.inner_parameters());
        let (noise, rest) = rest.split_at(self.model.noise_coordinates());
        let (scales, readout) = rest.split_at(self.model.scale_coordinates());
        [inner, noise, scales, readout]
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
            (Density::Likelihood(likelihood), _) => {
                let (model, scales) = (&self.model, &self.scales);
                Ok(likelihood.log_likelihood(model, features, readout_weights, scales, None))
            }
            (Density::Repriorised(density), _) => {
                density.evaluate(&self.model, features, readout_weights, &self.scales)
            }
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
            (Density::Repriorised(density), _) => density.transform(features, weights)?,
            _ => {}
        }
        Ok(())
    }
}

impl<R: Real> Target for Posterior<R> {
    type Real = R;

    fn dim(&self) -> usize {
        self.dimension
    }

    fn held_at_modes(&self) -> Vec<Range<usize>> {
        let inner = self.model.inner_parameters();
        let outputs = self.model.architecture.outputs;
        let of_scales = self.model.likelihood.scale_outputs(outputs);
        let last = of_scales * self.model.architecture.readout_rows();
        vec![
            inner..inner + self.model.noise_coordinates(),
            self.dimension - last..self.dimension,
        ]
    }

    fn released(&self, gradient: &[R]) -> Vec<(usize, f64)> {
        if !self.model.likelihood.is_gaussian() {
            return Vec::new();
        }
        let (scales, outputs) = (&self.model.noise, self.model.architecture.outputs);
        let inner = self.model.inner_parameters();
        let noise = inner..inner + self.model.noise_coordinates();
        let targets = self.model.rows() * outputs;
        let parameters = self.dimension - noise.len();
        let found = scales.told_by_residuals(&gradient[noise.clone()], targets, parameters);
        let gain = scales.gain(parameters, outputs);
        let released = noise.zip(found).filter(|(_, is_told)| *is_told);
        released.map(|(at, _)| (at, gain)).collect()
    }

    fn approach_mode(
        &mut self,
        position: &mut [R],
        seed_and_chain: [u64; 2],
        halted: &dyn Fn() -> bool,
    ) -> bool {
        self.descend_by_minibatches(position, seed_and_chain, halted)
    }

    fn log_ratio(&mut self, z: &[R]) -> Result<f64, EvaluationError> {
        if let Some(map) = &mut self.tangent {
            return map.log_ratio(z);
        }
        self.evaluate_at(z, false);
        let [_, _, _, readout_weights] = self.split(z);
        self.log_ratio_of_features(readout_weights)
    }

    fn log_ratio_on_ellipse(
        &mut self,
        mut ellipse: Ellipse<'_, R>,
        angle: f64,
    ) -> Result<f64, EvaluationError> {
        if let Some(map) = &mut self.tangent {
            ellipse.write_point(0, angle);
            return map.log_ratio(ellipse.point);
        }
        if self.model.scales.is_some() {
            // the first layer's products along the ellipse are not those of one plane
            ellipse.write_point(0, angle);
            return self.log_ratio(ellipse.point);
        }
        let first = self.features.first_parameters(&self.model);
        if ellipse.is_new {
            let (position, direction) = (ellipse.position, ellipse.direction);
            self.features
                .prepare_ellipse(&self.model, position, direction);
        }
        ellipse.write_point(first, angle);
        let [inner, noise, _, readout_weights] = self.split(ellipse.point);
        self.set_noise(noise);
        self.evaluate_features_on_ellipse(inner, angle);
        self.log_ratio_of_features(readout_weights)
    }

    fn log_ratio_and_gradient(
        &mut self,
        z: &[R],
        gradient: &mut [R],
    ) -> Result<f64, EvaluationError> {
        if let Some(map) = &mut self.tangent {
            return map.log_ratio_and_gradient(z, gradient);
        }
        self.evaluate_at(z, true);
        self.gradient_of_features(z, gradient, None)
    }

    fn arrives_by_gradients(&self) -> bool {
        self.tangent.is_none()
    }

    fn corrections(&self) -> u64 {
        let map = match &self.density {
            Density::Repriorised(density) => density.jitter_count(),
            _ => 0,
        };
        map + self.readout.as_ref().map_or(0, Readout::jitter_count)
    }
}

impl<R: Real> Posterior<R> {
    /// Evaluates the features at a position, which the readout takes if it is integrated out.
    pub(super) fn evaluate_at(&mut self, z: &[R], with_derivatives: bool) {
        let [inner, noise, scales, _] = self.split(z);
        self.set_noise(noise);
        let is_integrated = self.is_integrated();
        let inner = self.scaled.weights(&self.model, inner, scales);
        self.evaluate_features(&inner, with_derivatives, is_integrated);
        self.scaled.put_back(inner);
    }

    /// Whether ℓ needs nothing of the readout but its closed form.
    pub(super) fn is_integrated(&self) -> bool {
        matches!(self.density, Density::Integrated)
    }

    /// The part of ℓ of this model's rows, among all that the moments are of, at the position where the features were evaluated; with its
    /// gradient where there is room for it.
    pub(super) fn log_ratio_among(
        &mut self,
        z: &[R],
        moments: Moments<'_>,
        gradient: Option<&mut [R]>,
    ) -> Result<f64, EvaluationError> {
        if let Some(gradient) = gradient {
            return self.gradient_of_features(z, gradient, Some(moments));
        }
        match (&self.density, &mut self.readout) {
            (Density::Integrated, Some(readout)) => {
                readout.log_ratio_among(self.features.features(&self.model), moments)
            }
            _ => {
                let [_, _, _, readout_weights] = self.split(z);
                self.log_ratio_of_features(readout_weights)
            }
        }
    }

    /// Writes the moments of the features that were evaluated last; there are some where the readout is integrated out.
    pub(super) fn write_moments(&mut self, out: &mut [f64]) {
        if let (Density::Integrated, Some(readout)) = (&self.density, &mut self.readout) {
            readout.write_moments(self.features.features(&self.model), out);
        }
    }

    /// Numbers of these.
    pub(super) fn moment_count(&self) -> usize {
        match (&self.density, &self.readout) {
            (Density::Integrated, Some(readout)) => readout.moment_count(),
            _ => 0,
        }
    }

    /// ℓ and its gradient at the position where the features were evaluated with derivatives; their rows' part of it, if moments of more are given.
    fn gradient_of_features(
        &mut self,
        z: &[R],
        gradient: &mut [R],
        moments: Option<Moments<'_>>,
    ) -> Result<f64, EvaluationError> {
        let [of_position, noise, scales_of_weights, readout_weights] = self.split(z);
        let (inner_gradient, rest) = gradient.split_at_mut(of_position.len());
        let (noise_gradient, rest) = rest.split_at_mut(noise.len());
        let (scale_gradient, readout_gradient) = rest.split_at_mut(scales_of_weights.len());
        let weights = self
            .scaled
            .weights(&self.model, of_position, scales_of_weights);
        let inner = &*weights;
        let model = &*self.model;
        let (scales, by_log_scale) = (&self.scales, &mut self.by_log_scale);
        let features = &mut self.features;
        let value = match (&mut self.density, &mut self.readout) {
            (Density::Integrated, Some(readout)) => {
                let h = features.features(model);
                let value = match moments {
                    Some(moments) => readout.log_ratio_among(h, moments)?,
                    None => readout.log_ratio(h)?,
                };
                // at λ = σ² the density does not depend on φ_out
                readout_gradient.fill(R::ZERO);
                readout.prepare_cotangent(by_log_scale);
                let parts = readout.parts();
                features.backward_in_parts(model, inner, inner_gradient, parts, |out, h, part| {
                    readout.cotangent(out, h, part);
                });
                value
            }
            (Density::Likelihood(likelihood), _) => {
                let h = features.features(model);
                let derivatives = Some(&mut by_log_scale[..]);
                let value =
                    likelihood.log_likelihood(model, h, readout_weights, scales, derivatives);
                likelihood.readout_cotangent(h, readout_gradient);
                let parts = Parts::Rows;
                features.backward_in_parts(model, inner, inner_gradient, parts, |out, _, part| {
                    likelihood.feature_cotangent(out, readout_weights, part.rows.clone());
                });
                value
            }
            (Density::Repriorised(density), _) => {
                let h = features.features(model);
                let phi = readout_weights;
                let value =
                    density.evaluate_with_derivatives(model, h, phi, scales, by_log_scale)?;
                features.backward(model, inner, inner_gradient, |out, h| {
                    density.pull_back(out, h, phi, readout_gradient);
                });
                value
            }
            (Density::Integrated, None) => unreachable!("integrated out for Gaussians only"),
        };
        model.noise.pull_back(by_log_scale, noise_gradient);
        let scaled = &mut self.scaled;
        scaled.pull_back(model, of_position, inner_gradient, scale_gradient);
        scaled.put_back(weights);
        Ok(value)
    }
}
