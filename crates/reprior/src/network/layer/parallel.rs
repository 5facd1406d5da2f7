//! Branches with the same input whose outputs are combined: residual connections are sums of two.

use serde::{Deserialize, Serialize};

use super::{Layer, Shape, ShapeError, output_shape};
use crate::compute::{Real, panel_rows};
use crate::network::operation::{Direction, Keeps, Operation, Point, no_tangent, scale};

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

/// One branch's part of the combination, as an operation: its factor times its output goes to some channels of the result.
#[derive(Debug)]
pub(crate) struct Merge {
    /// In front of the branch's output.
    pub factor: f64,
    /// Channels of the branch's output and of the result.
    pub channels: [usize; 2],
    /// The first of the result.
    pub first: usize,
    /// Whether another branch has written to these channels before.
    pub adds: bool,
}

impl Merge {
    /// Ranges of the branch's numbers and of the result's that belong together, for each pixel.
    fn pieces<R: Real>(&self, length: usize) -> impl Iterator<Item = [std::ops::Range<usize>; 2]> {
        let height = panel_rows::<R>();
        let [own, all] = self.channels.map(|channels| channels * height);
        // channels of the same number follow one another without gaps: one piece
        let (own, all) = if own == all {
            (length, length)
        } else {
            (own, all)
        };
        let first = self.first * height;
        let count = length.checked_div(own).unwrap_or(0);
        (0..count).map(move |piece| {
            let to = piece * all + first;
            [piece * own..(piece + 1) * own, to..to + own]
        })
    }

    fn add<R: Real>(&self, input: &[R], output: &mut [R]) {
        let factor = R::from_f64(self.factor);
        for [from, to] in self.pieces::<R>(input.len()) {
            scale(&mut output[to], self.adds, factor, &input[from]);
        }
    }
}

impl<R: Real> Operation<R> for Merge {
    fn keeps(&self) -> Keeps {
        Keeps::default()
    }

    fn forward(&self, _: &[R], _: usize, input: &[R], output: &mut [R]) {
        self.add(input, output);
    }

    fn jvp(&self, _: Point<'_, R>, along: Direction<'_, R>, out: &mut [R]) {
        match along.input {
            Some(tangent) => self.add(tangent, out),
            None if self.channels[0] == self.channels[1] => no_tangent(self.adds, out),
            None => {
                let length = out.len() / self.channels[1] * self.channels[0];
                for [_, to] in self.pieces::<R>(length) {
                    no_tangent(self.adds, &mut out[to]);
                }
            }
        }
    }

    fn vjp_input(&self, _: Point<'_, R>, cotangent: &[R], accumulate: bool, out: &mut [R]) {
        let factor = R::from_f64(self.factor);
        for [to, from] in self.pieces::<R>(out.len()) {
            scale(&mut out[to], accumulate, factor, &cotangent[from]);
        }
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
