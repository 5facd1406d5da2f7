//! What a warm-up adapts: a step size to an acceptance rate, or a step size and a length to energy errors and widths.

use serde::{Deserialize, Serialize};

use super::adaptation::DualAveraging;
use super::energy_variance::{EnergyVariance, relative_square};
use super::local_step::gradient_norm;
use super::{Info, State};
use crate::compute::Real;

/// What an adaptation aims at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Aim {
    /// A mean acceptance rate.
    Acceptance(f64),
    /// E[ΔE²]/d of steps that are not corrected.
    EnergyVariance(f64),
}

impl Aim {
    /// Whether a step in so many coordinates was as good as it should be, or better.
    pub fn is_met(self, info: &Info, dimension: usize) -> bool {
        match self {
            Self::Acceptance(aim) => info.acceptance_rate >= aim,
            Self::EnergyVariance(aim) => relative_square(info, aim, dimension) <= 1.0,
        }
    }
}

/// The adaptation of a warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Adaptation {
    /// To an acceptance rate.
    Acceptance(DualAveraging),
    /// To an energy variance.
    EnergyVariance(EnergyVariance),
}

impl Adaptation {
    /// Takes one transition in, that ended at `state`; returns the next step size.
    pub fn update<R: Real>(&mut self, info: &Info, state: &State<R>) -> f64 {
        match self {
            Self::Acceptance(averaging) => {
                if !state.gradient.is_empty() {
                    averaging.see(gradient_norm(&state.gradient));
                }
                averaging.update(info.acceptance_rate)
            }
            Self::EnergyVariance(adaptation) => adaptation.update(info, &state.position),
        }
    }

    /// The step size to be used once warm-up is over.
    pub fn average(&self) -> f64 {
        match self {
            Self::Acceptance(averaging) => averaging.average(),
            Self::EnergyVariance(adaptation) => adaptation.average(),
        }
    }

    /// What is found beside the step size: the time in which directions are forgotten, so far, where that is looked for; once warm-up is over,
    /// the gradient's usual norm, where there are gradients.
    pub fn tuned(&self, is_over: bool) -> Option<f64> {
        match self {
            Self::Acceptance(averaging) => averaging.gradient_norm().filter(|_| is_over),
            Self::EnergyVariance(adaptation) => adaptation.length(),
        }
    }
}
