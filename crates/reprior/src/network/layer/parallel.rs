//! Branches with the same input whose outputs are combined: residual connections are sums of two.

use serde::{Deserialize, Serialize};

use super::{Layer, Shape, ShapeError, output_shape};

/// One branch of a [`Parallel`] layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// What the branch's output is multiplied by.
    #[serde(default = "Branch::one")]
    pub factor: f64,
    /// From its input on; none of them is the identity.
    #[serde(default)]
    pub layers: Vec<Layer>,
}

impl Branch {
    fn one() -> f64 {
        1.0
    }
}

/// What becomes of the branches' outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Combination {
    /// Added up: all of one shape.
    #[default]
    Sum,
    /// Channels of one after those of the other: all of one height and width.
    Concatenate,
}

/// Branches and how they are combined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parallel {
    /// At least one.
    pub branches: Vec<Branch>,
    /// How.
    #[serde(default)]
    pub combination: Combination,
}

impl Parallel {
    /// `at` is this layer's place, for messages.
    pub(super) fn output_shape(&self, input: Shape, at: &str) -> Result<Shape, ShapeError> {
        let refuse = |reason: String| ShapeError {
            layer: format!("{at} (parallel)"),
            input,
            reason,
        };
        let mut combined: Option<Shape> = None;
        for (index, branch) in self.branches.iter().enumerate() {
            let number = index + 1;
            if !branch.factor.is_finite() {
                return Err(refuse(format!("branch {number}'s factor is not finite")));
            }
            let mut shape = input;
            for (index, layer) in branch.layers.iter().enumerate() {
                let at = format!("{at}, branch {number}, {}", index + 1);
                shape = output_shape(layer, shape, &at)?;
            }
            combined = Some(match (combined, self.combination) {
                (None, _) => shape,
                (Some(first), Combination::Sum) if first == shape => shape,
                (Some(first), Combination::Concatenate)
                    if [first.height, first.width] == [shape.height, shape.width] =>
                {
                    let channels = first.channels + shape.channels;
                    Shape { channels, ..first }
                }
                (Some(first), _) => {
                    let reason = format!("branch {number} gives {shape}, those before it {first}");
                    return Err(refuse(reason));
                }
            });
        }
        combined.ok_or_else(|| refuse("it has no branches".into()))
    }

    pub(super) fn parameter_shapes(&self, input: Shape) -> Vec<[usize; 2]> {
        let mut shapes = Vec::new();
        for branch in &self.branches {
            let mut shape = input;
            for layer in &branch.layers {
                shapes.extend(layer.parameter_shapes(shape));
                match output_shape(layer, shape, "") {
                    Ok(next) => shape = next,
                    Err(_) => return shapes,
                }
            }
        }
        shapes
    }
}

/// At infinite width: covariances of the branches add up, times the squares of their factors; one after the other, times
/// their share of the channels. That the branches are uncorrelated is checked elsewhere (`network::infinite::check`).
impl Parallel {
    /// What each branch's covariances are multiplied by; `outputs` are the shapes of the branches.
    pub(in crate::network) fn covariance_factors(&self, outputs: &[Shape]) -> Vec<f64> {
        let all: usize = outputs.iter().map(|shape| shape.channels).sum();
        let pairs = self.branches.iter().zip(outputs);
        let factor = |(branch, shape): (&Branch, &Shape)| match self.combination {
            Combination::Sum => branch.factor.powi(2),
            Combination::Concatenate => branch.factor.powi(2) * shape.channels as f64 / all as f64,
        };
        pairs.map(factor).collect()
    }
}
