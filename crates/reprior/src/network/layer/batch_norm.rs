//! Batch normalisation with frozen statistics, for networks trained elsewhere: z = γ·(h − mean)/√(variance + ε) + β, for
//! each channel.
//!
//! γ and β are parameters (two rows of a matrix with a column per channel); mean and variance are not. A network to be
//! sampled from its prior has none of these: N(0, 1) on γ and β is a prior nobody means, but what a Laplace approximation
//! around trained weights needs.

use serde::{Deserialize, Serialize};

use super::Shape;

/// Frozen statistics of each channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchNorm {
    /// Means; empty for zeros.
    #[serde(default)]
    pub mean: Vec<f64>,
    /// Variances; empty for ones.
    #[serde(default)]
    pub variance: Vec<f64>,
    /// ε, added to the variance.
    #[serde(default = "BatchNorm::epsilon")]
    pub epsilon: f64,
}

impl BatchNorm {
    fn epsilon() -> f64 {
        1e-5
    }

    pub(super) fn output_shape(&self, input: Shape) -> Result<Shape, String> {
        for (name, values) in [("means", &self.mean), ("variances", &self.variance)] {
            if !values.is_empty() && values.len() != input.channels {
                let (count, channels) = (values.len(), input.channels);
                return Err(format!("{count} {name} for {channels} channels"));
            }
        }
        if !(self.epsilon >= 0.0 && self.variance.iter().all(|v| *v + self.epsilon > 0.0)) {
            return Err("variances with ε added must be positive".into());
        }
        Ok(input)
    }
}

impl BatchNorm {
    /// Why there is no kernel map.
    pub(in crate::network) const NO_KERNEL: &'static str = "frozen statistics belong to one trained network, not to a prior over networks: leave it out";
}
