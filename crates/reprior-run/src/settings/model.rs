//! Settings of the network and its likelihood.

use std::ops::RangeInclusive;

use clap::Args;
use reprior::model::dataset::Targets;
use reprior::model::likelihood::name::{LikelihoodName, LikelihoodParameters};
use reprior::model::{Noise, NoisePrior, ScalePrior};
use reprior::network::Activation;
use reprior::network::layer::Layer;
use reprior::network::named::NamedNetwork;
use serde::{Deserialize, Serialize};

use super::auto::Auto;
use super::network::NETWORK_AUTO;
use super::noise::{Learn, NoiseSetting};
use super::scales::ScalesSetting;
use crate::failure::Failure;
use crate::words::short;

/// Degrees of freedom of student-t likelihoods unless given: enough for outliers where these are asked for, and where the noise
/// depends on the inputs (the default of many tables) what loses little without outliers.
pub(crate) const DEGREES_OF_FREEDOM: f64 = 4.0;
const DEGREES_OF_FREEDOM_BY_ROW: f64 = 15.0;

/// Noise scales of standardised targets: beyond them, double precision does not tell the noise, or the function, from nothing.
const NOISE: RangeInclusive<f64> = 1e-12..=1e12;

/// Prior standard deviation of the logarithm of learned scales of weights unless given, and its range.
const SCALE_SPREAD: f64 = 1.0;
const SPREADS: RangeInclusive<f64> = 1e-3..=10.0;

/// `[model]`: the network, its prior and its likelihood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Args)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
#[command(next_help_heading = "Model")]
pub struct ModelSettings {
    /// The network: fcn:WIDTH[,WIDTH...], linear, lenet, resnet:DEPTH,width=WIDTH[,scaling=NAME], resnet-small, or a TOML
    /// file that describes its layers [default: auto: fcn:32,32,32,32 for tables with 100 training rows or more, fcn:32,32,32
    /// from 5,000 on, fcn:512 for others]
    #[arg(long, value_name = "NET")]
    pub network: String,
    /// Of a network that was described layer by layer.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<Vec<Layer>>,
    /// gelu, relu, erf, tanh, identity, leaky_relu(a), sin; lenet, resnet-small and layers of a file have their own [default: gelu]
    #[arg(long, value_name = "NAME")]
    pub activation: Activation,
    /// Prior variance of hidden weights times fan-in, one for all hidden layers or one each [default: 2]
    #[arg(long, value_name = "V", value_delimiter = ',')]
    pub weight_variance: Vec<f64>,
    /// Prior variance of hidden biases, one for all hidden layers or one each [default: 1 for tables, 0.01 for images]
    #[arg(long, value_name = "V", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bias_variance: Vec<f64>,
    /// Prior variance of readout weights times fan-in [default: 4 for tables, 9 where outputs are logits, 1 for images and counts]
    #[arg(long, value_name = "V")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readout_weight_variance: Option<f64>,
    /// Prior variance of readout biases [default: 0.01; 4 where outputs are logits]
    #[arg(long, value_name = "V")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readout_bias_variance: Option<f64>,
    /// The likelihood: gaussian (classes are regressed on as one-hot minus 1/C), student-t (real targets with outliers),
    /// gaussian-heteroscedastic (real targets whose noise depends on the inputs), student-t-heteroscedastic (the same with outliers),
    /// categorical (softmax over classes), bernoulli (two classes) or poisson (counts) [default: auto: bernoulli for two classes, categorical for more, gaussian for real targets, or
    /// student-t-heteroscedastic where a test finds that the noise of a table depends on the inputs]
    #[arg(long, value_name = "NAME")]
    pub likelihood: Auto<LikelihoodName>,
    /// Where the prior's scales come from: evidence (what makes the targets most likely under the infinitely wide network: of a table
    /// one scale per input, those of the layers and of the noise), learn (sampled along by chains: of a table one scale per input, and
    /// one for each other layer below the readout, times the variances above, log-normal), learn-half-normal (the same with
    /// half-normal priors) or none (the variances above) [default: none]
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scales: Option<ScalesSetting>,
    /// Prior standard deviation of the logarithm of learned scales [default: 1]
    #[arg(long, value_name = "S")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_spread: Option<f64>,
    /// What each input's weights are multiplied by, as the evidence chose them.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_scales: Option<Vec<f64>>,
    /// Scale of the observation noise, in units of the standardised target: a number, one per output with commas, `auto` (that
    /// with the largest marginal likelihood of the infinitely wide network), `learn` (it gets a log-normal prior and is sampled,
    /// or trained, along), or `learn-each` (one per output) [default: learn; auto in closed form, and for tables in tangent coordinates
    /// and around weights that are given; 0.1 otherwise]
    #[arg(long, value_name = "SIGMA", allow_hyphen_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseSetting>,
    /// Prior median of a learned noise scale [default: 0.3; for tables that with the largest marginal likelihood of the infinitely
    /// wide network, if it is larger]
    #[arg(long, value_name = "M")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_median: Option<f64>,
    /// Prior standard deviation of the logarithm of a learned noise scale [default: 1]
    #[arg(long, value_name = "S")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_spread: Option<f64>,
    /// Degrees of freedom of student-t likelihoods [default: 4; of student-t-heteroscedastic 15]
    #[arg(long, value_name = "NU")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degrees_of_freedom: Option<f64>,
    /// How far the noise of single rows goes, of heteroscedastic likelihoods: the logarithm of a row's noise variance is S times the network's second
    /// output [default: one over the prior standard deviation of the readout's weights, as it is before --scales evidence]
    #[arg(long, value_name = "S")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_variation: Option<f64>,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            network: NETWORK_AUTO.to_owned(),
            layers: None,
            activation: Activation::Gelu,
            weight_variance: vec![2.0],
            bias_variance: Vec::new(),
            readout_weight_variance: None,
            readout_bias_variance: None,
            likelihood: Auto::Open,
            scales: None,
            scale_spread: None,
            input_scales: None,
            noise: None,
            noise_median: None,
            noise_spread: None,
            degrees_of_freedom: None,
            noise_variation: None,
        }
    }
}

impl ModelSettings {
    /// The likelihood; where it is left to the data, and they are not there, the gaussian one.
    pub fn likelihood(&self) -> LikelihoodName {
        self.likelihood.get().unwrap_or(LikelihoodName::Gaussian)
    }

    /// Scales of the noise.
    pub fn noise(&self) -> Noise {
        let default = NoisePrior::default();
        match &self.noise {
            None | Some(NoiseSetting::Auto) => Noise::from(0.1),
            Some(NoiseSetting::One(scale)) => Noise::from(*scale),
            Some(NoiseSetting::Each(scales)) => Noise::Known(scales.clone()),
            Some(NoiseSetting::Learn(learn)) => Noise::Learned(NoisePrior {
                median: self.noise_median.unwrap_or(default.median),
                spread: self.noise_spread.unwrap_or(default.spread),
                per_output: *learn == Learn::LearnEach,
            }),
        }
    }

    /// The prior of a σ that is learned.
    pub fn noise_prior(&self) -> Option<NoisePrior> {
        match (self.learns_noise(), self.noise()) {
            (true, Noise::Learned(prior)) => Some(prior),
            _ => None,
        }
    }

    /// Whether noise, its prior or scales are to be chosen by the data.
    pub fn is_automatic(&self) -> bool {
        self.scales == Some(ScalesSetting::Evidence)
            || self.noise == Some(NoiseSetting::Auto)
            || self.learns_noise() && self.noise_median.is_none()
    }

    /// Prior of learned scales of weights, where they are learned.
    pub fn scale_prior(&self) -> Option<ScalePrior> {
        match self.scales? {
            ScalesSetting::Learn => Some(ScalePrior::LogNormal {
                spread: self.scale_spread.unwrap_or(SCALE_SPREAD),
            }),
            ScalesSetting::LearnHalfNormal => Some(ScalePrior::HalfNormal),
            ScalesSetting::None | ScalesSetting::Evidence => None,
        }
    }

    /// Whether σ is learned.
    pub fn learns_noise(&self) -> bool {
        self.likelihood().has_scale() && matches!(self.noise, Some(NoiseSetting::Learn(_)))
    }

    /// What a user should know of a noise that leaves nothing to learn.
    pub fn note(&self) -> Option<String> {
        let Noise::Known(scales) = self.noise() else {
            return None;
        };
        let most = scales.iter().copied().fold(0.0, f64::max);
        (self.likelihood().has_scale() && most > 1.0).then(|| {
            format!(
                "--noise {most} is in units of the standardised targets, whose own standard deviation is 1: all that they vary is taken \
                 for noise (--noise learn finds it out)"
            )
        })
    }

    /// ν of student-t likelihoods.
    pub fn degrees_of_freedom(&self) -> f64 {
        self.degrees_of_freedom
            .unwrap_or(match self.likelihood().has_row_noise() {
                true => DEGREES_OF_FREEDOM_BY_ROW,
                false => DEGREES_OF_FREEDOM,
            })
    }

    /// Writes a variation that is left open, where the likelihood has one: the noise of single rows goes as far whatever the readout's variance is.
    pub(crate) fn choose_noise_variation(&mut self) {
        if !self.likelihood().has_row_noise() {
            return;
        }
        let deviation = self.readout_weight_variance.unwrap_or(1.0).sqrt();
        let variation = deviation.recip().clamp(*SPREADS.start(), *SPREADS.end());
        self.noise_variation.get_or_insert(variation);
    }

    /// What the likelihood has; a variation that is left open is 1.
    pub fn likelihood_parameters(&self) -> LikelihoodParameters {
        LikelihoodParameters {
            degrees_of_freedom: self.degrees_of_freedom(),
            noise_variation: self.noise_variation.unwrap_or(1.0),
        }
    }

    /// Checks what can be checked without the data.
    ///
    /// # Errors
    /// A wrong request that names the value and what is allowed.
    pub fn check(&self) -> Result<(), Failure> {
        let has_scale = self.likelihood().has_scale();
        if self.scales == Some(ScalesSetting::Evidence) && !has_scale {
            return Err(Failure::request(format!(
                "--scales evidence is what makes real targets most likely, and the {} likelihood is not of them: leave it out, or sample the scales along by --scales learn",
                self.likelihood()
            )));
        }
        if self.noise.is_some() && !has_scale {
            return Err(Failure::request(format!(
                "the {} likelihood has no noise scale: leave --noise out, or choose another --likelihood (gaussian regresses on class codes)",
                self.likelihood()
            )));
        }
        if self.noise == Some(NoiseSetting::Auto) && self.likelihood() != LikelihoodName::Gaussian {
            return Err(Failure::request(format!(
                "--noise auto needs the gaussian likelihood, not {}: give a number, or `learn`",
                self.likelihood()
            )));
        }
        let scales = match &self.noise {
            Some(NoiseSetting::One(scale)) => std::slice::from_ref(scale),
            Some(NoiseSetting::Each(scales)) => scales.as_slice(),
            _ => &[],
        };
        for noise in scales {
            if !NOISE.contains(noise) {
                return Err(Failure::request(format!(
                    "the noise is {}: it is a standard deviation in units of the targets' own and must be positive and finite, from {:e} to {:e}",
                    short(*noise),
                    NOISE.start(),
                    NOISE.end()
                )));
            }
        }
        for (name, value) in [
            ("--noise-median", self.noise_median),
            ("--noise-spread", self.noise_spread),
        ] {
            let Some(value) = value else { continue };
            // where nothing is said of the noise it is learned, if it can be
            if !self.learns_noise() && self.noise.is_some() {
                return Err(Failure::request(format!(
                    "{name} belongs to a learned noise: give --noise learn as well, or leave it out"
                )));
            }
            if !NOISE.contains(&value) {
                return Err(Failure::request(format!(
                    "{name} is {}: it must be positive and finite, from {:e} to {:e}",
                    short(value),
                    NOISE.start(),
                    NOISE.end()
                )));
            }
        }
        if let Some(spread) = self.scale_spread {
            if self.scales != Some(ScalesSetting::Learn) {
                return Err(Failure::request(
                    "--scale-spread belongs to learned scales: give --scales learn as well, or leave it out",
                ));
            }
            if !SPREADS.contains(&spread) {
                return Err(Failure::request(format!(
                    "--scale-spread is {}: it is the standard deviation of a logarithm and must be from {} to {}",
                    short(spread),
                    SPREADS.start(),
                    SPREADS.end()
                )));
            }
        }
        if let Some(degrees) = self.degrees_of_freedom {
            if !self.likelihood().has_degrees_of_freedom() {
                return Err(Failure::request(
                    "--degrees-of-freedom belongs to student-t likelihoods: give --likelihood student-t or student-t-heteroscedastic as well, or leave it out",
                ));
            }
            if !(degrees > 0.0 && degrees.is_finite()) {
                return Err(Failure::request(format!(
                    "--degrees-of-freedom is {}: it must be positive and finite",
                    short(degrees)
                )));
            }
        }
        if let Some(variation) = self.noise_variation {
            if !self.likelihood().has_row_noise() {
                return Err(Failure::request(
                    "--noise-variation belongs to heteroscedastic likelihoods: give --likelihood gaussian-heteroscedastic or student-t-heteroscedastic as well, or leave it out",
                ));
            }
            if !SPREADS.contains(&variation) {
                return Err(Failure::request(format!(
                    "--noise-variation is {}: it must be from {} to {}",
                    short(variation),
                    SPREADS.start(),
                    SPREADS.end()
                )));
            }
        }
        self.check_network()
    }

    /// Checks the likelihood against the training targets.
    ///
    /// # Errors
    /// A wrong request: a likelihood of other targets.
    pub fn check_targets(&self, targets: &Targets) -> Result<(), Failure> {
        self.likelihood()
            .of_targets(targets, self.likelihood_parameters())
            .map_err(Failure::request)?;
        let is_of_outputs = matches!(
            self.noise,
            Some(NoiseSetting::Each(_) | NoiseSetting::Learn(Learn::LearnEach))
        );
        if is_of_outputs && self.likelihood().has_row_noise() {
            return Err(Failure::request(format!(
                "with the {} likelihood the network says the noise of every row and output, up to one factor for all: give one --noise, or `learn`",
                self.likelihood()
            )));
        }
        let outputs = self.likelihood().outputs(targets);
        if let Some(NoiseSetting::Each(scales)) = &self.noise
            && scales.len() != outputs
        {
            return Err(Failure::request(format!(
                "{} noise scales were given for {outputs} outputs: give one, or one per output",
                scales.len()
            )));
        }
        if matches!(targets, Targets::Classes { .. }) && is_of_outputs {
            return Err(Failure::request(
                "the outputs of a classification share one noise scale: give one --noise, or `learn`",
            ));
        }
        Ok(())
    }

    /// Writes out the defaults of the network's name and of the likelihood.
    pub fn resolve(&mut self) {
        if let Ok(named @ NamedNetwork::Resnet { .. }) = self.network.parse() {
            self.network = named.to_string();
        }
        // the evidence says the median, where it is open
        if let Some(prior) = self.noise_prior() {
            self.noise_spread = Some(prior.spread);
        }
        if self.likelihood().has_degrees_of_freedom() {
            self.degrees_of_freedom = Some(self.degrees_of_freedom());
        }
    }
}
