//! `--precision auto`: double precision where the noise is too small for single precision.
//!
//! Single precision knows a function of prior standard deviation s to about 10⁻⁷·s times the size of the readout's weights,
//! and ℓ divides its errors by the noise: with residuals r they change ℓ by Σ r·10⁻⁷·s/σ². From s/σ = 100 on, chains were
//! seen to shrink their steps a thousandfold for it.

use reprior::compute::matrix;
use reprior::network::Composition;
use reprior::network::infinite::{InfiniteNetwork, Kinds};

use crate::settings::{Precision, Settings};
use crate::words::number;

/// Prior standard deviations of the function in units of the noise from which on double precision is chosen.
const MOST_CONTRAST: f64 = 100.0;

/// Replaces `auto` in the settings; returns words where that is double precision.
pub(super) fn choose(settings: &mut Settings, network: &Composition) -> Option<String> {
    if settings.sampler.precision != Precision::Auto {
        return None;
    }
    settings.sampler.precision = Precision::F32;
    let is_chain = settings.sampler.method().kernel().is_some();
    if !is_chain || !settings.model.likelihood().has_scale() {
        return None;
    }
    let scales = settings.model.noise().typical(network.outputs);
    let noise = scales.into_iter().fold(f64::INFINITY, f64::min);
    let contrast = typical_variance(network)?.sqrt() / noise;
    if contrast.is_nan() || contrast <= MOST_CONTRAST {
        return None;
    }
    settings.sampler.precision = Precision::F64;
    Some(format!(
        "double precision (--precision f64), as the function's prior standard deviation is {} times the noise",
        number(contrast)
    ))
}

/// Prior variance of the infinitely wide network's function at an input whose columns are one standard deviation from their
/// means; none for networks on images, whose kernels take long, and those without a limit.
fn typical_variance(network: &Composition) -> Option<f64> {
    if network.input.pixels() != 1 {
        return None;
    }
    let infinite = InfiniteNetwork::new(network).ok()?;
    let input = vec![1.0; network.inputs()];
    let input = matrix(&input, 1, network.inputs());
    let kernels = infinite.kernels(input, Kinds::Nngp, 1).ok()?;
    kernels.nngp.first().copied()
}
