//! Settings of a run: from a file and flags to a resolved configuration in which every default is written out.

use std::path::Path;

use reprior::chain::Schedule;
use reprior::model::InputReduction;
use reprior::network::{Activation, Architecture, LayerScale};
use reprior::posterior::Coordinates;
use reprior::sampler::{Method, SamplerSettings};
use reprior_io::data::{BUILT_INS, Request, Task};
use serde::{Deserialize, Serialize};

use crate::arguments::SettingsArguments;
use crate::error::Failure;
use crate::names::{Likelihood, Precision, SpaceChoice, TaskName};

/// Widest hidden layer, and most weights between hidden layers, whose memory is counted rather than refused outright;
/// beyond them the count itself would not fit in 64 bits.
const MOST_WIDTH: usize = 10_000_000;
const MOST_WEIGHTS: f64 = 1e15;

/// Everything that decides what is drawn. As TOML in `config.toml`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub data: DataSettings,
    pub model: ModelSettings,
    pub sampler: SamplingSettings,
    pub run: RunSettings,
    pub record: RecordSettings,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct DataSettings {
    pub source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Vec<String>>,
    pub task: TaskName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub train: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shuffle: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct ModelSettings {
    pub network: String,
    pub activation: Activation,
    pub weight_variance: Vec<f64>,
    pub bias_variance: Vec<f64>,
    pub readout_weight_variance: f64,
    pub readout_bias_variance: f64,
    pub likelihood: Likelihood,
    pub noise: f64,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            network: "fcn:512".to_owned(),
            activation: Activation::Gelu,
            weight_variance: vec![2.0],
            bias_variance: vec![0.01],
            readout_weight_variance: 1.0,
            readout_bias_variance: 0.01,
            likelihood: Likelihood::Gaussian,
            noise: 0.1,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SamplingSettings {
    pub method: Method,
    pub coordinates: Coordinates,
    pub space: SpaceChoice,
    pub input_reduction: InputReduction,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_size: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_acceptance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damping: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metropolis: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trajectory: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrival: Option<u64>,
    pub precision: Precision,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct RunSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chains: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draws: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thin: Option<u64>,
    pub seed: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct RecordSettings {
    pub projections: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<u64>,
    pub keep_weights: u64,
}

impl Default for RecordSettings {
    fn default() -> Self {
        Self {
            projections: 100,
            keep: None,
            keep_weights: 0,
        }
    }
}

impl Settings {
    /// Settings from the configuration file, if any, and flags.
    ///
    /// # Errors
    /// A wrong request: an unreadable file, an unknown key or value, a value out of range.
    pub fn from_arguments(arguments: &SettingsArguments) -> Result<Self, Failure> {
        let mut settings = match &arguments.config {
            Some(path) => Self::from_file(path)?,
            None => Self::default(),
        };
        settings.apply(arguments)?;
        settings.check()?;
        Ok(settings)
    }

    /// Settings from a TOML file.
    ///
    /// # Errors
    /// A wrong request naming the file, the key and the line.
    pub fn from_file(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::request(format!("`{}` cannot be read: {error}", path.display()))
        })?;
        toml::from_str(&text).map_err(|error| {
            let line = error
                .span()
                .map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            Failure::request(format!(
                "`{}`, line {line}: {}",
                path.display(),
                error.message()
            ))
        })
    }

    /// Checks every value that can be checked without the data.
    ///
    /// # Errors
    /// A wrong request that names the value and what is allowed.
    pub fn check(&self) -> Result<(), Failure> {
        if self.data.source.is_empty() {
            let names = BUILT_INS.join(", ");
            return Err(Failure::request(format!(
                "no data: give --data with a built-in ({names}), a .csv or .npz file, or a folder of images"
            )));
        }
        self.sampler_settings().check().map_err(Failure::request)?;
        self.schedule().check().map_err(Failure::request)?;
        self.check_arrival()?;
        let noise = self.model.noise;
        if !(noise.is_finite() && noise > 0.0) {
            let message = format!(
                "the noise is {noise}: it is a standard deviation and must be positive and finite"
            );
            return Err(Failure::Request(message));
        }
        if self.record.keep == Some(0) {
            return Err(Failure::request(
                "--keep is 0: `predict` needs at least 1 kept position",
            ));
        }
        self.architecture(1, 1)?.check().map_err(Failure::request)
    }

    /// Refuses an arrival that leaves the method's own adaptation nothing of the warm-up.
    fn check_arrival(&self) -> Result<(), Failure> {
        let warmup = self.schedule().warmup;
        match self.sampler.arrival {
            Some(arrival) if arrival > 0 && arrival >= warmup => Err(Failure::request(format!(
                "--arrival {arrival} is not shorter than the warm-up of {warmup} transitions that it is part of: \
                 give less, or a longer --warmup"
            ))),
            _ => Ok(()),
        }
    }

    /// Which records to load.
    pub fn request(&self) -> Request {
        let task = match self.data.task {
            TaskName::Auto => Task::Auto,
            TaskName::Regression => Task::Regression,
            TaskName::Classification => Task::Classification,
        };
        Request {
            source: self.data.source.clone(),
            target: self.data.target.clone(),
            task,
            train: self.data.train,
            test: self.data.test,
            shuffle: self.data.shuffle,
        }
    }

    /// The network for data with this many inputs and outputs.
    ///
    /// # Errors
    /// A wrong request: a network that is not understood, variances out of range or of the wrong number.
    pub fn architecture(&self, inputs: usize, outputs: usize) -> Result<Architecture, Failure> {
        let model = &self.model;
        let unknown = || {
            let message = format!(
                "unknown network `{}`: use fcn: and the widths of the hidden layers (fcn:1024 or fcn:256,256), or linear",
                model.network
            );
            Failure::Request(message)
        };
        let hidden: Vec<usize> = match model.network.strip_prefix("fcn:") {
            Some(widths) => {
                let widths = widths
                    .split(',')
                    .map(|width| width.trim().parse().map_err(|_| unknown()));
                widths.collect::<Result<_, _>>()?
            }
            None if model.network == "linear" => Vec::new(),
            None => return Err(unknown()),
        };
        let joined = |pair: &[usize]| pair[0] as f64 * pair[1] as f64;
        let weights_between: f64 = hidden.windows(2).map(joined).sum();
        if hidden.iter().any(|&width| width > MOST_WIDTH) || weights_between > MOST_WEIGHTS {
            return Err(Failure::request(format!(
                "network `{}` is too wide for any machine: `reprior plan` says what fits this one",
                model.network
            )));
        }
        let per_layer = |variances: &[f64], name: &str| match (variances, hidden.len()) {
            ([one], layers) => Ok(vec![*one; layers]),
            (all, layers) if all.len() == layers => Ok(all.to_vec()),
            (all, layers) => Err(Failure::request(format!(
                "{} values of {name} for {layers} hidden layers: give one, or one per layer",
                all.len()
            ))),
        };
        let weights = per_layer(&model.weight_variance, "--weight-variance")?;
        let biases = per_layer(&model.bias_variance, "--bias-variance")?;
        let checked = weights
            .iter()
            .chain([&model.readout_weight_variance])
            .map(|v| (v, 0.0 < *v));
        let checked = checked.chain(
            biases
                .iter()
                .chain([&model.readout_bias_variance])
                .map(|v| (v, 0.0 <= *v)),
        );
        for (value, is_allowed) in checked {
            if !(is_allowed && value.is_finite()) {
                return Err(Failure::request(format!(
                    "a prior variance is {value}: weights need a positive one, biases zero or a positive one"
                )));
            }
        }
        let scale = |weight: f64, bias: f64| LayerScale {
            weight: weight.sqrt(),
            bias: bias.sqrt(),
        };
        Ok(Architecture {
            inputs,
            hidden_scales: weights
                .iter()
                .zip(&biases)
                .map(|(w, b)| scale(*w, *b))
                .collect(),
            readout_scale: scale(model.readout_weight_variance, model.readout_bias_variance),
            hidden,
            outputs,
            activation: model.activation,
        })
    }

    /// The sampler.
    pub fn sampler_settings(&self) -> SamplerSettings {
        SamplerSettings {
            method: self.sampler.method,
            step_size: self.sampler.step_size,
            target_acceptance: self.sampler.target_acceptance,
            damping: self.sampler.damping,
            metropolis: self.sampler.metropolis.unwrap_or(true),
            trajectory: self.sampler.trajectory,
            arrival: self.sampler.arrival,
        }
    }

    /// Numbers of chains, transitions and draws; the method's defaults where nothing was said.
    pub fn schedule(&self) -> Schedule {
        let (warmup, draws, thin) = match self.sampler.method {
            Method::HmcInfinite => (100, 250, 1),
            Method::Hmc => (200, 250, 1),
            Method::Nuts => (300, 250, 1),
            Method::Elliptical => (1000, 500, 10),
            Method::Pcnl | Method::Mala | Method::Langevin => (2000, 1000, 10),
            Method::Pcn | Method::Rwm => (5000, 1000, 25),
        };
        Schedule {
            chains: self.run.chains.unwrap_or(4),
            warmup: self.run.warmup.unwrap_or(warmup),
            draws: self.run.draws.unwrap_or(draws),
            thin: self.run.thin.unwrap_or(thin),
            seed: self.run.seed,
        }
    }

    /// Writes the defaults out that depend on the method.
    pub fn resolve(&mut self) {
        let schedule = self.schedule();
        self.run.chains = Some(schedule.chains);
        self.run.warmup = Some(schedule.warmup);
        self.run.draws = Some(schedule.draws);
        self.run.thin = Some(schedule.thin);
        if self.sampler.step_size.is_none() && self.sampler.target_acceptance.is_none() {
            self.sampler.target_acceptance = self.sampler.method.default_target_acceptance();
        }
        let method = self.sampler.method;
        let arrival = self.sampler_settings().arrival_transitions(schedule.warmup);
        let sampler = &mut self.sampler;
        sampler.damping = sampler.damping.or(method.default_damping());
        sampler.trajectory = sampler.trajectory.or(method.default_trajectory());
        sampler.arrival = Some(arrival);
        if method.may_skip_metropolis() {
            sampler.metropolis.get_or_insert(true);
        }
    }

    /// As TOML.
    ///
    /// # Errors
    /// None in practice; reported rather than hidden.
    pub fn to_toml(&self) -> Result<String, Failure> {
        toml::to_string(self).map_err(Failure::run)
    }
}
