//! `--noise auto` and `--scales evidence`: the noise and the prior scales that make the targets most likely under the infinitely
//! wide network, written into the settings as numbers.

use reprior::compute::matrix;
use reprior::gaussian_process::GaussianProcessError;
use reprior::gaussian_process::evidence::{Covariance, fit_scales};
use reprior::gaussian_process::noise::fit_noise;
use reprior::gaussian_process::prior_scales::{FittedScales, ScaleSearch, fit_prior_scales};
use reprior::network::Composition;
use reprior::network::infinite::{InfiniteNetwork, Kinds};

use crate::failure::Failure;
use crate::settings::{ModelSettings, NoiseSetting, ScalesSetting};
use crate::words::number;

/// Training rows that are looked at: the cost grows with their cube. More where there is a gradient by all scales; of images through
/// convolutions fewer, as each pair of them takes milliseconds to seconds; fewest where some 200 kernels are needed.
const MOST_ROWS: usize = 1000;
const MOST_ROWS_BY_GRADIENT: usize = 2000;
const MOST_IMAGES: usize = 128;
const MOST_IMAGES_WITH_SCALES: usize = 16;
/// Inputs that have scales of their own, at most.
const MOST_INPUTS: usize = 200;
/// How the scales of tables are searched for: the noise at the start, in units of the standardised targets, and the spreads of the
/// log-normal priors of the inputs' scales and the layers'.
const START: f64 = 0.3;
const SPREADS: [f64; 2] = [1.0, 0.3];
const EVALUATIONS: usize = 150;

/// What was chosen.
pub(super) struct Choice {
    pub(super) noise: f64,
    /// What scales became; nothing if they were left alone.
    scales: String,
    rows: usize,
    log_marginal_likelihood: f64,
    is_at_limit: bool,
}

impl Choice {
    fn in_words(&self) -> String {
        let limit = if self.is_at_limit {
            "; that is at the end of the range that was searched: the data say little of it"
        } else {
            ""
        };
        format!(
            "chosen by the marginal likelihood of the infinitely wide network on {} rows ({:.1} nats): noise {}{}{limit}",
            self.rows,
            self.log_marginal_likelihood,
            number(self.noise),
            self.scales
        )
    }
}

/// What a choice is made from.
pub(super) struct Evidence<'a> {
    /// The network that the settings stand for now.
    pub architecture: &'a Composition,
    /// Whether inputs are columns of a table.
    pub is_table: bool,
    /// Which kernel.
    pub covariance: Covariance,
    /// Row-major, standardised and in the network's order.
    pub inputs: &'a [f64],
    /// Column-major.
    pub targets: &'a [f64],
}

impl Evidence<'_> {
    /// Replaces `auto` and `evidence` in the settings, of which the network is to be made again. Returns what was chosen in words;
    /// `None` if nothing is asked for.
    ///
    /// # Errors
    /// A wrong request: a network without an infinitely wide limit.
    pub fn choose(&self, settings: &mut ModelSettings) -> Result<Option<String>, Failure> {
        let is_open = settings.likelihood.is_open();
        if !(settings.is_automatic() || is_open) {
            return Ok(None);
        }
        let wants_scales = settings.scales == Some(ScalesSetting::Evidence);
        if is_open || settings.learns_noise() && !wants_scales {
            return Ok(self.choose_learned_noise(settings));
        }
        let columns = self.architecture.inputs();
        let has_gradient = self.has_gradient();
        let (rows, inputs, targets) = self.rows(match self.architecture.input.pixels() {
            // a flattened image is a row of a table
            _ if wants_scales && has_gradient => MOST_ROWS_BY_GRADIENT,
            0 | 1 => MOST_ROWS,
            _ if wants_scales => MOST_IMAGES_WITH_SCALES,
            _ => MOST_IMAGES,
        });
        let inputs = matrix(&inputs, columns, rows).transpose();
        let flag = if wants_scales {
            "--scales evidence"
        } else {
            "--noise auto"
        };
        let refuse = |error: &dyn std::fmt::Display| {
            Failure::request(format!(
                "{flag} needs the kernel of the infinitely wide network: {error}"
            ))
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        if wants_scales && has_gradient {
            let found = fit_prior_scales(self.architecture, inputs, &targets, self.search(threads));
            if let Some(found) = found.map_err(|error| refuse(&error))? {
                let scales = self.take(settings, &found);
                let choice = Choice {
                    noise: found.noise,
                    scales,
                    rows,
                    log_marginal_likelihood: found.log_marginal_likelihood,
                    is_at_limit: false,
                };
                return Ok(Some(choice.in_words()));
            }
        }
        let network = InfiniteNetwork::new(self.architecture).map_err(|error| refuse(&error))?;
        let choice = if wants_scales {
            let found = fit_scales(&network, self.covariance, inputs, &targets, threads)
                .map_err(|error| refuse(&error))?;
            let factors = [found.weight_factor, found.bias_factor];
            multiply_scales(settings, self.architecture, factors);
            let [weight, bias] = factors;
            Choice {
                noise: found.noise,
                scales: format!(", scales of weights times {weight:.4}, of biases times {bias:.4}"),
                rows,
                log_marginal_likelihood: found.log_marginal_likelihood,
                is_at_limit: found.is_at_limit,
            }
        } else {
            let found = self.noise(&network, inputs, &targets, threads);
            found.map_err(|error| refuse(&error))?
        };
        set_noise(settings, choice.noise);
        settings.scales = Some(ScalesSetting::None);
        Ok(Some(choice.in_words()))
    }

    /// Whether there is a gradient by all scales, each of which is then found by itself.
    fn has_gradient(&self) -> bool {
        self.architecture.as_fully_connected().is_some() && self.covariance == Covariance::Nngp
    }

    /// Whether these settings ask for scales of the inputs.
    pub(super) fn scales_inputs(&self, settings: &ModelSettings) -> bool {
        settings.scales == Some(ScalesSetting::Evidence) && self.is_table && self.has_gradient()
    }

    pub(super) fn search(&self, threads: usize) -> ScaleSearch {
        ScaleSearch {
            input_spread: SPREADS[0],
            layer_spread: SPREADS[1],
            noise: START,
            by_input: self.is_table && self.architecture.inputs() <= MOST_INPUTS,
            evaluations: EVALUATIONS,
            threads,
        }
    }

    /// Some of the rows, spread over all: their number, inputs and targets.
    pub(super) fn rows(&self, most: usize) -> (usize, Vec<f64>, Vec<f64>) {
        let columns = self.architecture.inputs();
        let all = self.inputs.len() / columns;
        let rows = all.min(most);
        let chosen = || (0..rows).map(|row| row * all / rows);
        let inputs = chosen()
            .flat_map(|row| &self.inputs[row * columns..(row + 1) * columns])
            .copied();
        let outputs = self.targets.chunks_exact(all.max(1));
        let targets = outputs.flat_map(|output| chosen().map(|row| output[row]));
        (rows, inputs.collect(), targets.collect())
    }

    pub(super) fn noise(
        &self,
        network: &InfiniteNetwork,
        inputs: reprior::compute::Matrix<'_, f64>,
        targets: &[f64],
        threads: usize,
    ) -> Result<Choice, GaussianProcessError> {
        let kinds = match self.covariance {
            Covariance::Nngp => Kinds::Nngp,
            Covariance::Ntk => Kinds::NngpAndNtk,
        };
        let kernels = network.kernels(inputs, kinds, threads)?;
        let kernel = match self.covariance {
            Covariance::Nngp => &kernels.nngp,
            Covariance::Ntk => &kernels.ntk,
        };
        let rows = inputs.nrows();
        let found = fit_noise(kernel, rows, targets)?;
        Ok(Choice {
            noise: found.noise,
            scales: String::new(),
            rows,
            log_marginal_likelihood: found.log_marginal_likelihood,
            is_at_limit: found.is_at_limit,
        })
    }

    /// Writes scales that were found into the settings; in words, of inputs and of layers.
    fn take(&self, settings: &mut ModelSettings, found: &FittedScales) -> String {
        set_noise(settings, found.noise);
        settings.scales = Some(ScalesSetting::None);
        let inputs = &found.scales.inputs;
        let mut layers = found.scales.layers.clone();
        if self.is_table {
            settings.input_scales = Some(inputs.clone());
        } else if let (Some(first), Some(scale)) = (layers.first_mut(), inputs.first()) {
            // inputs of images have one scale together, which is as well the first layer's
            first.weight *= scale;
        }
        if let [hidden @ .., readout] = layers.as_slice() {
            settings.readout_weight_variance = Some(readout.weight.powi(2));
            settings.readout_bias_variance = Some(readout.bias.powi(2));
            if settings.layers.is_some() {
                // their own scales are all that counts
                let mut network = self.architecture.clone();
                for (own, found) in network.hidden_scales_mut().into_iter().zip(hidden) {
                    *own = *found;
                }
                settings.set_layers(network.layers);
            } else if !hidden.is_empty() {
                settings.weight_variance =
                    hidden.iter().map(|scale| scale.weight.powi(2)).collect();
                settings.bias_variance = hidden.iter().map(|scale| scale.bias.powi(2)).collect();
            }
        }
        let most = inputs.iter().copied().fold(0.0, f64::max);
        let least = inputs.iter().copied().fold(f64::INFINITY, f64::min);
        if most > least {
            format!(", scales of inputs from {least:.3} to {most:.3}")
        } else {
            format!(", scale of inputs {most:.3}")
        }
    }
}

/// The noise as a number, or as where a learned one is expected.
fn set_noise(settings: &mut ModelSettings, noise: f64) {
    if settings.learns_noise() {
        settings.noise_median.get_or_insert(noise);
    } else if settings.noise.is_none() || settings.noise == Some(NoiseSetting::Auto) {
        settings.noise = Some(NoiseSetting::One(noise));
    }
}

/// Multiplies all σ_w by the first factor and all σ_b by the second.
fn multiply_scales(settings: &mut ModelSettings, architecture: &Composition, factors: [f64; 2]) {
    let [weight, bias] = factors.map(|factor| factor * factor);
    let variances = settings.weight_variance.iter_mut();
    variances.for_each(|variance| *variance *= weight);
    let variances = settings.bias_variance.iter_mut();
    variances.for_each(|variance| *variance *= bias);
    for (variance, factor) in [
        (&mut settings.readout_weight_variance, weight),
        (&mut settings.readout_bias_variance, bias),
    ] {
        *variance = variance.map(|variance| variance * factor);
    }
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
