//! Which parameters are random: all, the readout's, or chosen ones; the others stay where they are.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::compute::Real;

/// The parameters of a Laplace approximation among all of a network, in increasing order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subset {
    /// All of them.
    All,
    /// The readout's, the last ones.
    LastLayer,
    /// These, in increasing order (a subnetwork; Daxberger et al. 2021).
    Parameters(Vec<usize>),
}

/// How a subset is chosen for given weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubsetChoice {
    /// All.
    All,
    /// The readout's.
    LastLayer,
    /// So many of the last ones.
    Last(usize),
    /// So many with the largest magnitudes.
    LargestMagnitude(usize),
    /// So many with the largest variances of a diagonal approximation.
    LargestVariance(usize),
}

impl Subset {
    /// The `count` parameters with the largest `scores`: the magnitudes of weights, or variances of a diagonal approximation.
    pub fn largest(scores: &[f64], count: usize) -> Self {
        let mut places: Vec<usize> = (0..scores.len()).collect();
        places.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        places.truncate(count);
        places.sort_unstable();
        Self::Parameters(places)
    }

    /// The last `count` of `parameters` parameters.
    pub fn last(parameters: usize, count: usize) -> Self {
        Self::Parameters((parameters.saturating_sub(count)..parameters).collect())
    }

    /// How many, of a network with so many parameters, so many of which are the readout's.
    pub fn len(&self, parameters: usize, readout: usize) -> usize {
        match self {
            Self::All => parameters,
            Self::LastLayer => readout,
            Self::Parameters(places) => places.len(),
        }
    }

    /// Their numbers.
    pub(super) fn places(&self, parameters: usize, readout: usize) -> Vec<usize> {
        match self {
            Self::All => (0..parameters).collect(),
            Self::LastLayer => (parameters - readout..parameters).collect(),
            Self::Parameters(places) => places.clone(),
        }
    }

    /// The values of `all` at these parameters.
    pub(crate) fn gather<R: Real>(&self, all: &[R], readout: usize) -> Vec<f64> {
        let places = self.places(all.len(), readout);
        places.iter().map(|&at| all[at].to_f64()).collect()
    }

    /// Writes `values` to `all` at these parameters.
    pub(crate) fn scatter(&self, values: &[f64], all: &mut [f64], readout: usize) {
        let places = self.places(all.len(), readout);
        for (at, value) in places.into_iter().zip(values) {
            all[at] = *value;
        }
    }

    /// Adds `values` to `all` at these parameters.
    pub(super) fn add<R: Real>(&self, values: &[R], all: &mut [R], readout: usize) {
        let first = all.len() - readout;
        match self {
            Self::All => add(all, values),
            Self::LastLayer => add(&mut all[first..], values),
            Self::Parameters(places) => {
                for (&at, &value) in places.iter().zip(values) {
                    all[at] += value;
                }
            }
        }
    }

    /// The part of each layer, in places among these parameters.
    pub(super) fn layers(&self, layers: &[Range<usize>]) -> Vec<Range<usize>> {
        match self {
            Self::All => layers.to_vec(),
            Self::LastLayer => layers
                .last()
                .map(|last| 0..last.len())
                .into_iter()
                .collect(),
            Self::Parameters(places) => {
                let at = |end: usize| places.partition_point(|&place| place < end);
                layers
                    .iter()
                    .map(|layer| at(layer.start)..at(layer.end))
                    .collect()
            }
        }
    }
}

fn add<R: Real>(all: &mut [R], values: &[R]) {
    for (to, &value) in all.iter_mut().zip(values) {
        *to += value;
    }
}
