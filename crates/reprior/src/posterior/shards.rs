//! A posterior whose rows are in several parts: threads of one process, or processes of several machines.
//!
//! ℓ is made of sums over rows. Where the readout is integrated out in feature space there are two rounds of them: the moments h̃ᵀh̃ and
//! ΨᵀY, p(p + 1)/2 + pC numbers, from which every [`Shard`] solves for the readout, and then the parts of ℓ and of its gradient. Other
//! likelihoods and coordinates have the second round alone. Parts are in double precision, and are [added](add) in pairs, in an order that
//! hangs on their number alone: who computed them, and when, changes no bit.

use std::ops::Range;
use std::sync::Arc;

use thiserror::Error;

use super::readout::{Moments, Whole};
use super::{
    Coordinates, DrawRecord, EvaluationError, Posterior, PosteriorError, PosteriorSettings,
    Recorder, Space, Target,
};
use crate::compute::{Real, Stream, Team};
use crate::model::Model;

/// Shards that cannot be.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ShardError {
    /// No shard at all.
    #[error("there are no shards: give one at least")]
    None,
    /// Inputs that are reduced, to what the rows of one shard can see.
    #[error(
        "shard {0} has reduced inputs, which are those of its own rows: turn the reduction off"
    )]
    Reduced(usize),
    /// A shard of another model.
    #[error(
        "shard {shard} has {found} coordinates and the first one {expected}: shards are rows of one model"
    )]
    Dimension {
        /// Which one.
        shard: usize,
        /// Its coordinates.
        found: usize,
        /// Those of the first one.
        expected: usize,
    },
    /// Coordinates that are no sums over rows.
    #[error("{0} coordinates are not made of sums over rows: use marginal or standard ones")]
    Coordinates(Coordinates),
    /// Coordinates that the model does not have.
    #[error(transparent)]
    Posterior(#[from] PosteriorError),
    /// Threads that the system does not give.
    #[error("the shards' threads cannot be started: {0}")]
    Threads(String),
}

/// What all shards have told in the first round.
#[derive(Debug, Clone, Copy)]
pub struct Total<'a> {
    /// Moments of all rows: the sum of [`Shard::moments`]; empty where there are none.
    pub moments: &'a [f64],
    /// Rows of all shards.
    pub rows: usize,
}

/// Some rows of a model, and their parts of the sums that ℓ and its gradient are.
pub struct Shard<R> {
    posterior: Posterior<R>,
    /// Whether terms that all rows share count here.
    is_first: bool,
    /// Where the features are evaluated, if they are, with derivatives or without.
    position: Vec<R>,
    has_features: bool,
    has_derivatives: bool,
    gradient: Vec<R>,
}

impl<R: Real> Shard<R> {
    /// The rows of `model`, which are shard number `shard` of a posterior in `marginal`, `standard`, or (with a Gaussian likelihood)
    /// `repriorised` coordinates. The first one, number 0, has the terms that all rows share.
    ///
    /// # Errors
    /// Coordinates that are not sums over rows, or not the model's; reduced inputs.
    pub fn new(
        model: Arc<Model<R>>,
        coordinates: Coordinates,
        shard: usize,
    ) -> Result<Self, ShardError> {
        if model.design.is_reduced() {
            return Err(ShardError::Reduced(shard));
        }
        let settings = PosteriorSettings::in_space(coordinates, Space::Feature);
        let posterior = Posterior::new(model, settings)?;
        if coordinates != Coordinates::Standard && !posterior.is_integrated() {
            return Err(ShardError::Coordinates(coordinates));
        }
        let dimension = posterior.dim();
        Ok(Self {
            posterior,
            is_first: shard == 0,
            position: Vec::new(),
            has_features: false,
            has_derivatives: false,
            gradient: vec![R::ZERO; dimension],
        })
    }

    /// Coordinates of a position.
    pub fn dim(&self) -> usize {
        self.gradient.len()
    }

    /// Rows of this shard.
    pub fn rows(&self) -> usize {
        self.posterior.model().rows()
    }

    /// Numbers of the moments; 0 where ℓ needs none.
    pub fn moment_count(&self) -> usize {
        self.posterior.moment_count()
    }

    /// The first round: `out` ← the moments of these rows at `z`.
    pub fn moments(&mut self, z: &[R], with_gradient: bool, out: &mut [f64]) {
        if self.moment_count() > 0 {
            self.evaluate(z, with_gradient);
            self.posterior.write_moments(out);
        }
    }

    /// The second round: the part of ℓ(z) of these rows.
    ///
    /// # Errors
    /// As for [`Target::log_ratio`].
    pub fn value(&mut self, z: &[R], total: Total<'_>) -> Result<f64, EvaluationError> {
        self.evaluate(z, false);
        let moments = self.among(total);
        self.posterior.log_ratio_among(z, moments, None)
    }

    /// The second round with a gradient: `out` (1 + dim) ← the parts of ℓ(z) and of ∇ℓ(z) of these rows.
    ///
    /// # Errors
    /// As for [`Target::log_ratio`].
    pub fn value_and_gradient(
        &mut self,
        z: &[R],
        total: Total<'_>,
        out: &mut [f64],
    ) -> Result<(), EvaluationError> {
        self.evaluate(z, true);
        let moments = self.among(total);
        let gradient = Some(&mut self.gradient[..]);
        // the way back may take the features' place
        self.has_features = false;
        out[0] = self.posterior.log_ratio_among(z, moments, gradient)?;
        for (out, own) in out[1..].iter_mut().zip(&self.gradient) {
            *out = own.to_f64();
        }
        Ok(())
    }

    /// What a run keeps of position `z`, by the `recorder` of this shard's model: predictions at its test inputs, given all rows.
    ///
    /// # Errors
    /// As for [`Target::log_ratio`].
    pub fn record<'a>(
        &mut self,
        recorder: &'a mut Recorder<R>,
        z: &[R],
        total: Total<'_>,
        stream: &mut Stream,
    ) -> Result<&'a DrawRecord<R>, EvaluationError> {
        let moments = self.among(total);
        // features of these rows are evaluated where they are needed
        self.has_features = false;
        recorder.record_among(&mut self.posterior, z, moments, stream)
    }

    fn among<'a>(&self, total: Total<'a>) -> Moments<'a> {
        Moments {
            sums: total.moments,
            whole: Whole {
                rows: total.rows,
                counts_shared: self.is_first,
            },
        }
    }

    /// Evaluates the features, unless they are those of the round before.
    fn evaluate(&mut self, z: &[R], with_derivatives: bool) {
        let is_here = self.has_features && self.position == z;
        if is_here && (self.has_derivatives || !with_derivatives) {
            return;
        }
        self.posterior.evaluate_at(z, with_derivatives);
        self.position.clear();
        self.position.extend_from_slice(z);
        (self.has_features, self.has_derivatives) = (true, with_derivatives);
    }
}

/// Adds parts of a sum into the first of them, in pairs: 0 + 1, 2 + 3, ...; then of the pairs, and so on.
pub fn add<P: AsMut<[f64]>>(parts: &mut [P]) {
    let mut apart = 1;
    while apart < parts.len() {
        for pair in parts.chunks_mut(2 * apart) {
            if let [first, rest @ ..] = pair
                && let Some(second) = rest.get_mut(apart - 1)
            {
                let sums = first.as_mut().iter_mut().zip(second.as_mut());
                sums.for_each(|(sum, part)| *sum += *part);
            }
        }
        apart *= 2;
    }
}

/// A shard, and where its part goes.
type Task<'a, R> = (
    &'a mut Shard<R>,
    (&'a mut Vec<f64>, &'a mut Result<(), EvaluationError>),
);

/// A posterior whose rows are in several shards, which threads share.
pub struct Shards<R> {
    team: Team,
    shards: Vec<Shard<R>>,
    rows: usize,
    moments: Vec<Vec<f64>>,
    /// ℓ and its gradient, and what went wrong.
    parts: Vec<Vec<f64>>,
    results: Vec<Result<(), EvaluationError>>,
}

impl<R: Real> Shards<R> {
    /// The posterior of all rows of these models, which have the same network, likelihood and noise, by so many threads.
    ///
    /// # Errors
    /// [`ShardError`] says what does not fit.
    pub fn new(
        models: Vec<Arc<Model<R>>>,
        coordinates: Coordinates,
        threads: usize,
    ) -> Result<Self, ShardError> {
        let models = models.into_iter().enumerate();
        let made = models.map(|(shard, model)| Shard::new(model, coordinates, shard));
        let shards: Vec<Shard<R>> = made.collect::<Result<_, _>>()?;
        let first = shards.first().ok_or(ShardError::None)?;
        let (dimension, count) = (first.dim(), first.moment_count());
        for (shard, own) in shards.iter().enumerate() {
            if own.dim() != dimension || own.moment_count() != count {
                return Err(ShardError::Dimension {
                    shard,
                    found: own.dim(),
                    expected: dimension,
                });
            }
        }
        let team = Team::new(threads.min(shards.len()));
        Ok(Self {
            team: team.map_err(|error| ShardError::Threads(error.to_string()))?,
            rows: shards.iter().map(Shard::rows).sum(),
            results: vec![Ok(()); shards.len()],
            moments: vec![vec![0.0; count]; shards.len()],
            parts: vec![vec![0.0; 1 + dimension]; shards.len()],
            shards,
        })
    }

    /// The first round.
    fn sum_moments(&mut self, z: &[R], with_gradient: bool) {
        if self.moments[0].is_empty() {
            return;
        }
        let pairs = self.shards.iter_mut().zip(&mut self.moments).collect();
        self.team
            .share(pairs, |(shard, moments): (&mut Shard<R>, &mut Vec<f64>)| {
                shard.moments(z, with_gradient, moments);
            });
        add(&mut self.moments);
    }

    /// Both rounds; ℓ.
    fn sum(&mut self, z: &[R], with_gradient: bool) -> Result<f64, EvaluationError> {
        self.sum_moments(z, with_gradient);
        let total = Total {
            moments: &self.moments[0],
            rows: self.rows,
        };
        let outs = self.parts.iter_mut().zip(&mut self.results);
        let tasks = self.shards.iter_mut().zip(outs).collect();
        self.team
            .share(tasks, |(shard, (part, result)): Task<'_, R>| {
                *result = match with_gradient {
                    true => shard.value_and_gradient(z, total, part),
                    false => shard.value(z, total).map(|value| part[0] = value),
                };
            });
        // the first one's, whichever was quicker
        self.results
            .iter()
            .find(|result| result.is_err())
            .cloned()
            .unwrap_or(Ok(()))?;
        match with_gradient {
            true => add(&mut self.parts),
            false => add(&mut self
                .parts
                .iter_mut()
                .map(|part| &mut part[..1])
                .collect::<Vec<_>>()),
        }
        Ok(self.parts[0][0])
    }
}

impl<R: Real> Target for Shards<R> {
    type Real = R;

    fn dim(&self) -> usize {
        self.shards[0].dim()
    }

    fn log_ratio(&mut self, z: &[R]) -> Result<f64, EvaluationError> {
        self.sum(z, false)
    }

    fn log_ratio_and_gradient(
        &mut self,
        z: &[R],
        gradient: &mut [R],
    ) -> Result<f64, EvaluationError> {
        let value = self.sum(z, true)?;
        for (to, &own) in gradient.iter_mut().zip(&self.parts[0][1..]) {
            *to = R::from_f64(own);
        }
        Ok(value)
    }

    fn arrives_by_gradients(&self) -> bool {
        true
    }

    fn held_at_modes(&self) -> Vec<Range<usize>> {
        self.shards[0].posterior.held_at_modes()
    }

    fn corrections(&self) -> u64 {
        // every shard solves for the same readout
        self.shards[0].posterior.corrections()
    }
}
