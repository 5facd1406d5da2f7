//! What a chain samples: a network's posterior in any of the coordinates.

use std::sync::Arc;

use reprior::compute::Stream;
use reprior::model::Model;
use reprior::posterior::{
    Coordinates, DrawRecord, Ellipse, EvaluationError, NetworkPosterior, Recorder,
    TangentPosterior, Target,
};

use crate::failure::Failure;
use crate::settings::Settings;
use crate::stored::Stored;

/// The posterior in the coordinates of a run.
pub enum ChainTarget<R> {
    /// Marginal, repriorised or standard.
    Network(Box<NetworkPosterior<R>>),
    /// Tangent, and the same posterior in standard coordinates, which its draws are recorded in.
    Tangent(Box<(TangentPosterior<R>, NetworkPosterior<R>)>),
}

impl<R: Stored> ChainTarget<R> {
    /// The target that the settings say.
    ///
    /// # Errors
    /// A wrong request: coordinates that this model has not.
    pub fn new(settings: &Settings, model: &Arc<Model<R>>) -> Result<Self, Failure> {
        let posterior = |coordinates| {
            NetworkPosterior::with_regulariser(
                Arc::clone(model),
                coordinates,
                settings.sampler.space.forced(),
                settings.sampler.regulariser,
            )
        };
        Ok(match settings.coordinates() {
            Coordinates::Tangent => {
                let parameters = NetworkPosterior::dimension(model, Coordinates::Tangent);
                let determinant = settings.determinant(parameters);
                let determinant = determinant.seeded(settings.run.seed);
                let tangent = TangentPosterior::new(Arc::clone(model), determinant)
                    .map_err(Failure::request)?;
                Self::Tangent(Box::new((tangent, posterior(Coordinates::Standard))))
            }
            coordinates => Self::Network(Box::new(posterior(coordinates))),
        })
    }

    /// What a run keeps of the position `z`.
    ///
    /// # Errors
    /// As ℓ itself.
    pub fn record<'a>(
        &mut self,
        recorder: &'a mut Recorder<R>,
        z: &[R],
        stream: &mut Stream,
    ) -> Result<&'a DrawRecord<R>, EvaluationError> {
        match self {
            Self::Network(posterior) => recorder.record(posterior, z, stream),
            Self::Tangent(both) => {
                let (tangent, posterior) = &mut **both;
                recorder.record(posterior, tangent.weights(z)?, stream)
            }
        }
    }
}

impl<R: Stored> Target for ChainTarget<R> {
    type Real = R;

    fn dim(&self) -> usize {
        match self {
            Self::Network(posterior) => posterior.dim(),
            Self::Tangent(both) => both.0.dim(),
        }
    }

    fn log_ratio(&mut self, z: &[R]) -> Result<f64, EvaluationError> {
        match self {
            Self::Network(posterior) => posterior.log_ratio(z),
            Self::Tangent(both) => both.0.log_ratio(z),
        }
    }

    fn log_ratio_and_gradient(
        &mut self,
        z: &[R],
        gradient: &mut [R],
    ) -> Result<f64, EvaluationError> {
        match self {
            Self::Network(posterior) => posterior.log_ratio_and_gradient(z, gradient),
            Self::Tangent(both) => both.0.log_ratio_and_gradient(z, gradient),
        }
    }

    fn log_ratio_on_ellipse(
        &mut self,
        ellipse: Ellipse<'_, R>,
        angle: f64,
    ) -> Result<f64, EvaluationError> {
        match self {
            Self::Network(posterior) => posterior.log_ratio_on_ellipse(ellipse, angle),
            Self::Tangent(both) => both.0.log_ratio_on_ellipse(ellipse, angle),
        }
    }

    fn arrives_by_gradients(&self) -> bool {
        match self {
            Self::Network(posterior) => posterior.arrives_by_gradients(),
            Self::Tangent(both) => both.0.arrives_by_gradients(),
        }
    }

    fn corrections(&self) -> u64 {
        match self {
            Self::Network(posterior) => posterior.corrections(),
            Self::Tangent(both) => both.0.corrections(),
        }
    }
}
