//! Which networks have a limit that covariances alone describe.
//!
//! As widths grow, the channels of a layer become independent copies of one process. A dense layer or a convolution makes it
//! Gaussian with mean 0, whatever is below; an activation needs that, and what comes of it is neither. Sums of branches have
//! sums of covariances if the branches are uncorrelated: of any two, one has weights of its own in its path, and one has
//! mean 0.

use super::super::layer::{BatchNorm, Combination, Layer, Parallel, Shape, output_shape, pooling};
use super::InfiniteError;

/// What is known of a channel between two layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChannelLaw {
    /// Gaussian, and all channels alike.
    is_gaussian: bool,
    /// Of mean 0.
    is_centred: bool,
    /// Made with weights that no other branch has.
    is_own: bool,
}

impl ChannelLaw {
    /// Of the data.
    pub const INPUT: Self = Self {
        is_gaussian: false,
        is_centred: false,
        is_own: false,
    };
}

/// The law above `layers`, whose input has the given shape and law; `place` makes a layer's name of its number from 1.
///
/// # Errors
/// The first layer that has no kernel map after what is below it, or does not fit.
pub(super) fn law_above(
    layers: &[Layer],
    mut shape: Shape,
    mut law: ChannelLaw,
    place: &dyn Fn(usize) -> String,
) -> Result<(Shape, ChannelLaw), InfiniteError> {
    for (index, layer) in layers.iter().enumerate() {
        let at = place(index + 1);
        let above = output_shape(layer, shape, &at)?;
        let refuse = |reason: &str| {
            let layer = format!("{at} ({})", layer.name());
            let reason = reason.to_string();
            Err(InfiniteError::NoKernel { layer, reason })
        };
        law = match layer {
            Layer::Dense(_) | Layer::Convolution(_) => ChannelLaw {
                is_gaussian: true,
                is_centred: true,
                is_own: true,
            },
            Layer::Activation { function } if !law.is_gaussian => {
                return refuse(&format!(
                    "{function} needs Gaussian channels that are all alike: put a dense layer or a convolution before it"
                ));
            }
            Layer::Activation { .. } => ChannelLaw {
                is_gaussian: false,
                is_centred: false,
                ..law
            },
            Layer::AveragePool(_) | Layer::GlobalAveragePool => law,
            // channels of different pixels are not alike
            Layer::Flatten => ChannelLaw {
                is_gaussian: law.is_gaussian && shape.pixels() == 1,
                ..law
            },
            Layer::MaxPool(_) => return refuse(pooling::NO_KERNEL),
            Layer::BatchNorm(_) => return refuse(BatchNorm::NO_KERNEL),
            Layer::Parallel(parallel) => match law_of_branches(parallel, shape, law, &at)? {
                Ok(law) => law,
                Err(reason) => return refuse(&reason),
            },
        };
        shape = above;
    }
    Ok((shape, law))
}

/// The law of the combined branches, or why there is none.
fn law_of_branches(
    parallel: &Parallel,
    shape: Shape,
    law: ChannelLaw,
    at: &str,
) -> Result<Result<ChannelLaw, String>, InfiniteError> {
    let mut laws = Vec::new();
    for (index, branch) in parallel.branches.iter().enumerate() {
        let start = ChannelLaw {
            is_own: false,
            ..law
        };
        let place = |number: usize| format!("{at}, branch {}, {number}", index + 1);
        laws.push(law_above(&branch.layers, shape, start, &place)?.1);
    }
    let all = |holds: fn(&ChannelLaw) -> bool| laws.iter().all(holds);
    let is_sum = parallel.combination == Combination::Sum;
    for (second, b) in laws.iter().enumerate() {
        for (first, a) in laws.iter().enumerate().take(second) {
            if is_sum && !((a.is_own || b.is_own) && (a.is_centred || b.is_centred)) {
                let (first, second) = (first + 1, second + 1);
                return Ok(Err(format!(
                    "branches {first} and {second} are correlated: let one of them end with a dense layer or a convolution"
                )));
            }
        }
    }
    Ok(Ok(ChannelLaw {
        is_gaussian: all(|law| law.is_gaussian) && (is_sum || laws.len() == 1),
        is_centred: all(|law| law.is_centred),
        is_own: law.is_own || all(|law| law.is_own),
    }))
}
