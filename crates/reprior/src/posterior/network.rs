//! A network's posterior as a target, in any of the coordinate systems.
//!
//! Position layout: the inner weights layer by layer (column-major, rows of one unit contiguous, the bias last; the
//! first layer in reduced coordinates), then in `repriorised` and `standard` the readout's p × C matrix.

use std::sync::Arc;

use super::{Coordinates, EvaluationError, FeatureMap, Readout, Space, Target};
use crate::compute::{Real, matrix, matrix_mut, multiply, norm_squared};
use crate::model::Model;

/// The posterior of a network's weights.
pub struct NetworkPosterior<R> {
    model: Arc<Model<R>>,
    coordinates: Coordinates,
    pub(super) features: FeatureMap<R>,
    pub(super) readout: Readout<R>,
    /// Outputs, then residuals over σ², n × C; `standard` only.
    residual: Vec<R>,
}

impl<R: Real> NetworkPosterior<R> {
    /// The posterior of `model`. `space` forces where the readout is solved for; the cheaper one if `None`.
    pub fn new(model: Arc<Model<R>>, coordinates: Coordinates, space: Option<Space>) -> Self {
        let p = model.architecture.readout_rows();
        let space = space.unwrap_or_else(|| Space::cheaper(model.rows(), p));
        let residual = match coordinates {
            Coordinates::Standard => vec![R::ZERO; model.targets.len()],
            _ => Vec::new(),
        };
        Self {
            features: FeatureMap::new(&model),
            readout: Readout::new(&model, space),
            model,
            coordinates,
            residual,
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
        self.readout.space()
    }

    /// Dimension of a position.
    pub fn dimension(model: &Model<R>, coordinates: Coordinates) -> usize {
        let readout = match coordinates {
            Coordinates::Marginal => 0,
            _ => model.architecture.readout_parameters(),
        };
        model.inner_parameters() + readout
    }

    /// log p(y | θ) up to −(nC/2) log 2π; leaves (Y − f)/σ² in `residual`.
    fn log_likelihood(&mut self, readout: &[R]) -> f64 {
        let (n, p, c) = (
            self.model.rows(),
            self.model.architecture.readout_rows(),
            self.model.architecture.outputs,
        );
        let factor = self.model.architecture.readout_scale.factor(p - 1);
        let features = self.features.features(&self.model);
        let readout = matrix(readout, p, c);
        multiply(
            matrix_mut(&mut self.residual, n, c),
            false,
            factor,
            features,
            readout,
        );
        let noise = self.model.noise;
        let precision = 1.0 / (noise * noise);
        for (r, &y) in self.residual.iter_mut().zip(&self.model.targets) {
            *r = R::from_f64((y - r.to_f64()) * precision);
        }
        -0.5 * norm_squared(&self.residual) / precision - (n * c) as f64 * noise.ln()
    }
}

impl<R: Real> Target for NetworkPosterior<R> {
    type Real = R;

    fn dim(&self) -> usize {
        Self::dimension(&self.model, self.coordinates)
    }

    fn log_ratio(&mut self, z: &[R]) -> Result<f64, EvaluationError> {
        let (inner, readout) = z.split_at(self.model.inner_parameters());
        self.features.evaluate(&self.model, inner, false);
        match self.coordinates {
            Coordinates::Marginal | Coordinates::Repriorised => {
                self.readout.log_ratio(self.features.features(&self.model))
            }
            Coordinates::Standard => Ok(self.log_likelihood(readout)),
        }
    }

    fn log_ratio_and_gradient(
        &mut self,
        z: &[R],
        gradient: &mut [R],
    ) -> Result<f64, EvaluationError> {
        let (inner, readout_weights) = z.split_at(self.model.inner_parameters());
        let (inner_gradient, readout_gradient) = gradient.split_at_mut(inner.len());
        self.features.evaluate(&self.model, inner, true);
        let model = Arc::clone(&self.model);
        match self.coordinates {
            Coordinates::Marginal | Coordinates::Repriorised => {
                let value = self.readout.log_ratio(self.features.features(&model))?;
                // at λ = σ² the density does not depend on φ_out
                readout_gradient.fill(R::ZERO);
                let readout = &mut self.readout;
                self.features
                    .backward(&model, inner, inner_gradient, |out, features| {
                        readout.cotangent(out, features);
                    });
                Ok(value)
            }
            Coordinates::Standard => {
                let value = self.log_likelihood(readout_weights);
                let (n, p, c) = (
                    model.rows(),
                    model.architecture.readout_rows(),
                    model.architecture.outputs,
                );
                let factor = model.architecture.readout_scale.factor(p - 1);
                let residual = matrix(&self.residual, n, c);
                let features = self.features.features(&model);
                let into = matrix_mut(readout_gradient, p, c);
                multiply(into, false, factor, features.transpose(), residual);
                self.features
                    .backward(&model, inner, inner_gradient, |out, _| {
                        let weights = matrix(readout_weights, p, c).subrows(0, p - 1).transpose();
                        multiply(out, false, factor, residual, weights);
                    });
                Ok(value)
            }
        }
    }

    fn corrections(&self) -> u64 {
        self.readout.jitter_count()
    }
}
