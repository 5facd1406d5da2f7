//! `--noise auto` and `--scales auto`: the noise and the prior scales that make the targets most likely under the infinitely
//! wide network, written into the settings as numbers.

use reprior::compute::matrix;
use reprior::gaussian_process::{Covariance, fit_noise, fit_scales};
use reprior::network::infinite::{InfiniteNetwork, Kinds};
use reprior::network::layer::Layer;
use reprior::network::{Architecture, LayerScale};

use crate::error::Failure;
use crate::model_settings::{ModelSettings, NoiseSetting};

/// Training rows that are looked at: the cost grows with their cube.
const MOST_ROWS: usize = 1000;

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
            "chosen by the marginal likelihood of the infinitely wide network on {} rows ({:.1} nats): noise {:.4}{factors}{limit}",
            self.rows, self.log_marginal_likelihood, self.noise
        )
    }
}

/// Replaces `auto` in the settings of `architecture`, which is changed with them. `inputs` are row-major, standardised and in
/// the network's order, `targets` column-major. Returns what was chosen in words; `None` if nothing is asked for.
///
/// # Errors
/// A wrong request: a network without an infinitely wide limit.
pub fn choose(
    settings: &mut ModelSettings,
    architecture: &mut Architecture,
    covariance: Covariance,
    inputs: &[f64],
    targets: &[f64],
) -> Result<Option<String>, Failure> {
    if settings.noise != Some(NoiseSetting::Auto) {
        return Ok(None);
    }
    let columns = architecture.inputs;
    let all = inputs.len() / columns;
    let rows = all.min(MOST_ROWS);
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
    let network = InfiniteNetwork::new(&architecture.layer_by_layer()).map_err(|e| refuse(&e))?;
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

/// Multiplies all σ_w by the first factor and all σ_b by the second, in the settings and in the network made of them.
fn multiply_scales(
    settings: &mut ModelSettings,
    architecture: &mut Architecture,
    factors: [f64; 2],
) {
    let [weight, bias] = factors.map(|factor| factor * factor);
    let variances = settings.weight_variance.iter_mut();
    variances.for_each(|variance| *variance *= weight);
    settings
        .bias_variance
        .iter_mut()
        .for_each(|variance| *variance *= bias);
    settings.readout_weight_variance *= weight;
    settings.readout_bias_variance *= bias;
    let scales = architecture.hidden_scales.iter_mut();
    scales
        .chain([&mut architecture.readout_scale])
        .for_each(|scale| multiply(scale, factors));
    if let Some(composition) = &mut architecture.composition {
        multiply(&mut composition.readout_scale, factors);
        multiply_layers(&mut composition.layers, factors);
        // a name stands for scales of its own
        settings.set_layers(composition.layers.clone());
    }
}

fn multiply(scale: &mut LayerScale, [weight, bias]: [f64; 2]) {
    scale.weight *= weight;
    scale.bias *= bias;
}

fn multiply_layers(layers: &mut [Layer], factors: [f64; 2]) {
    for layer in layers {
        match layer {
            Layer::Dense(layer) => multiply(&mut layer.scale, factors),
            Layer::Convolution(layer) => multiply(&mut layer.scale, factors),
            Layer::Parallel(layer) => {
                for branch in &mut layer.branches {
                    multiply_layers(&mut branch.layers, factors);
                }
            }
            _ => {}
        }
    }
}
