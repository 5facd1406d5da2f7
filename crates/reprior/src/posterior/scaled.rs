//! The inner weights that a network has where their scales are learned: those of the position times the scales.

use std::ops::Deref;

use crate::compute::Real;
use crate::model::Model;

/// Work space; empty where no scales are learned.
pub struct Scaled<R> {
    weights: Vec<R>,
    factors: Vec<R>,
    totals: Vec<f64>,
}

/// The inner weights of a network.
pub enum Inner<'a, R> {
    /// Those of the position.
    OfPosition(&'a [R]),
    /// By learned scales.
    Scaled(Vec<R>),
}

impl<R> Deref for Inner<'_, R> {
    type Target = [R];

    fn deref(&self) -> &[R] {
        match self {
            Self::OfPosition(weights) => weights,
            Self::Scaled(weights) => weights,
        }
    }
}

impl<R: Real> Scaled<R> {
    /// For positions of a model.
    pub fn new(model: &Model<R>) -> Self {
        let count = model.scale_coordinates();
        let weights = match &model.scales {
            Some(_) => model.inner_parameters(),
            None => 0,
        };
        Self {
            weights: vec![R::ZERO; weights],
            factors: vec![R::ZERO; count],
            totals: vec![0.0; count],
        }
    }

    /// The network's inner weights at a position's inner numbers and coordinates of scales. They go back by
    /// [`put_back`](Self::put_back), so that nothing is allocated for the next ones.
    pub fn weights<'a>(
        &mut self,
        model: &Model<R>,
        inner: &'a [R],
        coordinates: &[R],
    ) -> Inner<'a, R> {
        let Some(learned) = &model.scales else {
            return Inner::OfPosition(inner);
        };
        let mut weights = std::mem::take(&mut self.weights);
        // what an error kept is made again
        weights.clear();
        weights.extend_from_slice(inner);
        learned.factors(coordinates, &mut self.factors);
        learned.multiply(&self.factors, &mut weights);
        Inner::Scaled(weights)
    }

    /// Keeps the buffer.
    pub fn put_back(&mut self, inner: Inner<'_, R>) {
        if let Inner::Scaled(weights) = inner {
            self.weights = weights;
        }
    }

    /// From ∂ℓ/∂weights to ∂ℓ/∂z, in place, and ∂ℓ/∂u, at the position of the last [`weights`](Self::weights).
    pub fn pull_back(
        &mut self,
        model: &Model<R>,
        inner: &[R],
        gradient: &mut [R],
        by_coordinate: &mut [R],
    ) {
        if let Some(learned) = &model.scales {
            let of_weights = [&self.factors, inner, &*gradient];
            learned.pull_back(of_weights, &mut self.totals, by_coordinate);
            learned.multiply(&self.factors, gradient);
        }
    }
}
