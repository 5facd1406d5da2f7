//! `--noise auto` and `--scales auto`: the noise and the prior scales that make the targets most likely under the infinitely
//! wide network, written into the settings as numbers.

use reprior::compute::matrix;
use reprior::gaussian_process::evidence::{Covariance, fit_scales};
use reprior::gaussian_process::noise::fit_noise;
use reprior::network::Composition;
use reprior::network::infinite::{InfiniteNetwork, Kinds};

use crate::failure::Failure;
use crate::settings::{ModelSettings, NoiseSetting};
use crate::words::number;

/// Training rows that are looked at: the cost grows with their cube. Of images through convolutions fewer, as each pair of
/// them takes milliseconds to seconds; fewest where some 200 kernels are needed.
const MOST_ROWS: usize = 1000;
const MOST_IMAGES: usize = 128;
const MOST_IMAGES_WITH_SCALES: usize = 16;

/// What was chosen.
struct Choice {
    noise: f64,
    /// What σ_w and σ_b were multiplied by; none if they were left alone.
    factors: Option<[f64; 2]>,
    rows: usize,
    log_marginal_likelihood: f64,
    is_at_limit: bool,
}

impl Choice {
    fn in_words(&self) -> String {
        let factors = self.factors.map_or_else(String::new, |[weight, bias]| {
            format!(", scales of weights times {weight:.4}, of biases times {bias:.4}")
        });
        let limit = if self.is_at_limit {
            "; that is at the end of the range that was searched: the data say little of it"
        } else {
            ""
        };
        format!(
            "chosen by the marginal likelihood of the infinitely wide network on {} rows ({:.1} nats): noise {}{factors}{limit}",
            self.rows,
            self.log_marginal_likelihood,
            number(self.noise)
        )
    }
}

/// Replaces `auto` in the settings of `architecture`, which is to be made of them again. `inputs` are row-major, standardised and in
/// the network's order, `targets` column-major. Returns what was chosen in words; `None` if nothing is asked for.
///
/// # Errors
/// A wrong request: a network without an infinitely wide limit.
pub(super) fn choose(
    settings: &mut ModelSettings,
    architecture: &Composition,
    covariance: Covariance,
    inputs: &[f64],
    targets: &[f64],
) -> Result<Option<String>, Failure> {
    if settings.noise != Some(NoiseSetting::Auto) {
        return Ok(None);
    }
    let columns = architecture.inputs();
    let all = inputs.len() / columns;
    let rows = all.min(match architecture.input.pixels() {
        0 | 1 => MOST_ROWS,
        _ if settings.scales_auto => MOST_IMAGES_WITH_SCALES,
        _ => MOST_IMAGES,
    });
    let inputs = matrix(&inputs[..rows * columns], columns, rows).transpose();
    let targets: Vec<f64> = targets
        .chunks_exact(all)
        .flat_map(|output| &output[..rows])
        .copied()
        .collect();
    let refuse = |error: &dyn std::fmt::Display| {
        Failure::request(format!(
            "--noise auto needs the kernel of the infinitely wide network: {error}"
        ))
    };
    let network = InfiniteNetwork::new(architecture).map_err(|e| refuse(&e))?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let choice = if settings.scales_auto {
        let found = fit_scales(&network, covariance, inputs, &targets, threads)
            .map_err(|error| refuse(&error))?;
        let factors = [found.weight_factor, found.bias_factor];
        multiply_scales(settings, architecture, factors);
        Choice {
            noise: found.noise,
            factors: Some(factors),
            rows,
            log_marginal_likelihood: found.log_marginal_likelihood,
            is_at_limit: found.is_at_limit,
        }
    } else {
        let kinds = match covariance {
            Covariance::Nngp => Kinds::Nngp,
            Covariance::Ntk => Kinds::NngpAndNtk,
        };
        let kernels = network
            .kernels(inputs, kinds, threads)
            .map_err(|e| refuse(&e))?;
        let kernel = match covariance {
            Covariance::Nngp => &kernels.nngp,
            Covariance::Ntk => &kernels.ntk,
        };
        let found = fit_noise(kernel, rows, &targets).map_err(|error| refuse(&error))?;
        Choice {
            noise: found.noise,
            factors: None,
            rows,
            log_marginal_likelihood: found.log_marginal_likelihood,
            is_at_limit: found.is_at_limit,
        }
    };
    settings.noise = Some(NoiseSetting::One(choice.noise));
    settings.scales_auto = false;
    Ok(Some(choice.in_words()))
}

/// Multiplies all σ_w by the first factor and all σ_b by the second.
fn multiply_scales(settings: &mut ModelSettings, architecture: &Composition, factors: [f64; 2]) {
    let [weight, bias] = factors.map(|factor| factor * factor);
    let variances = settings.weight_variance.iter_mut();
    variances.for_each(|variance| *variance *= weight);
    let variances = settings.bias_variance.iter_mut();
    variances.for_each(|variance| *variance *= bias);
    settings.readout_weight_variance *= weight;
    settings.readout_bias_variance *= bias;
    if settings.layers.is_some() || architecture.as_fully_connected().is_none() {
        // a name stands for scales of its own
        let mut network = architecture.clone();
        for scale in network.hidden_scales_mut() {
            scale.weight *= factors[0];
            scale.bias *= factors[1];
        }
        settings.set_layers(network.layers);
    }
}
