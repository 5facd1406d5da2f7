//! Settings of the network and its likelihood.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use reprior::model::likelihood::LikelihoodName;
use reprior::model::{Noise, NoisePrior, Targets};
use reprior::network::layer::Layer;
use reprior::network::{Activation, Named};
use serde::{Deserialize, Serialize};

use crate::error::Failure;
use crate::table::short;

/// Degrees of freedom of the student-t likelihood unless given.
const DEGREES_OF_FREEDOM: f64 = 4.0;

/// Noise scales of standardised targets: beyond them, double precision does not tell the noise, or the function, from nothing.
const NOISE: RangeInclusive<f64> = 1e-12..=1e12;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct ModelSettings {
    pub network: String,
    /// Of a network that was described layer by layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<Vec<Layer>>,
    pub activation: Activation,
    pub weight_variance: Vec<f64>,
    pub bias_variance: Vec<f64>,
    pub readout_weight_variance: f64,
    pub readout_bias_variance: f64,
    pub likelihood: LikelihoodName,
    /// Whether all prior scales are to be multiplied by what makes the targets most likely; done once the data are there.
    #[serde(skip_serializing_if = "is_false")]
    pub scales_auto: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseSetting>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_median: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_spread: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degrees_of_freedom: Option<f64>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            network: "fcn:512".to_owned(),
            layers: None,
            activation: Activation::Gelu,
            weight_variance: vec![2.0],
            bias_variance: vec![0.01],
            readout_weight_variance: 1.0,
            readout_bias_variance: 0.01,
            likelihood: LikelihoodName::Gaussian,
            scales_auto: false,
            noise: None,
            noise_median: None,
            noise_spread: None,
            degrees_of_freedom: None,
        }
    }
}

/// `--noise`: a number, one per output, `learn` or `learn-each`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NoiseSetting {
    /// One σ for all outputs.
    One(f64),
    /// One per output.
    Each(Vec<f64>),
    /// Learned.
    Learn(Learn),
    /// The most likely one under the infinitely wide network; a number once the data are there.
    #[serde(with = "auto")]
    Auto,
}

/// The word `auto` in a file.
mod auto {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("auto")
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<(), D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "auto" => Ok(()),
            other => Err(D::Error::custom(format!("unknown noise `{other}`"))),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Learn {
    /// One scale for all outputs.
    Learn,
    /// One per output.
    LearnEach,
}

impl FromStr for NoiseSetting {
    type Err = Failure;
    fn from_str(text: &str) -> Result<Self, Failure> {
        let wrong = || {
            Failure::request(format!(
                "noise `{text}`: use a standard deviation, one per output with commas, `learn`, `learn-each`, or `auto`"
            ))
        };
        match text {
            "learn" => return Ok(Self::Learn(Learn::Learn)),
            "learn-each" => return Ok(Self::Learn(Learn::LearnEach)),
            "auto" => return Ok(Self::Auto),
            _ => {}
        }
        let numbers = text.split(',').map(|number| number.trim().parse::<f64>());
        let numbers: Vec<f64> = numbers.collect::<Result<_, _>>().map_err(|_| wrong())?;
        Ok(match numbers.as_slice() {
            [one] => Self::One(*one),
            _ => Self::Each(numbers),
        })
    }
}

impl fmt::Display for NoiseSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(scale) => write!(f, "{scale}"),
            Self::Each(scales) => {
                let scales: Vec<String> = scales.iter().map(f64::to_string).collect();
                f.write_str(&scales.join(","))
            }
            Self::Learn(Learn::Learn) => f.write_str("learn"),
            Self::Learn(Learn::LearnEach) => f.write_str("learn-each"),
            Self::Auto => f.write_str("auto"),
        }
    }
}

impl ModelSettings {
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

    /// Whether noise or scales are to be chosen by the data.
    pub fn is_automatic(&self) -> bool {
        self.scales_auto || self.noise == Some(NoiseSetting::Auto)
    }

    /// Whether σ is learned.
    pub fn learns_noise(&self) -> bool {
        self.likelihood.has_scale() && matches!(self.noise, Some(NoiseSetting::Learn(_)))
    }

    /// What a user should know of a noise that leaves nothing to learn.
    pub fn note(&self) -> Option<String> {
        let Noise::Known(scales) = self.noise() else {
            return None;
        };
        let most = scales.iter().copied().fold(0.0, f64::max);
        (self.likelihood.has_scale() && most > 1.0).then(|| {
            format!(
                "--noise {most} is in units of the standardised targets, whose own standard deviation is 1: all that they vary is taken \
                 for noise (the default is 0.1; --noise learn finds it out)"
            )
        })
    }

    /// ν of the student-t likelihood.
    pub fn degrees_of_freedom(&self) -> f64 {
        self.degrees_of_freedom.unwrap_or(DEGREES_OF_FREEDOM)
    }

    /// Checks what can be checked without the data.
    ///
    /// # Errors
    /// A wrong request that names the value and what is allowed.
    pub fn check(&self) -> Result<(), Failure> {
        let has_scale = self.likelihood.has_scale();
        if self.noise.is_some() && !has_scale {
            return Err(Failure::request(format!(
                "the {} likelihood has no noise scale: leave --noise out",
                self.likelihood
            )));
        }
        if self.scales_auto && self.noise != Some(NoiseSetting::Auto) {
            return Err(Failure::request(
                "--scales auto chooses the noise as well: give --noise auto with it",
            ));
        }
        if self.noise == Some(NoiseSetting::Auto) && self.likelihood != LikelihoodName::Gaussian {
            return Err(Failure::request(format!(
                "--noise auto is of the gaussian likelihood, not of {}: give a number, or `learn`",
                self.likelihood
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
            if !self.learns_noise() {
                return Err(Failure::request(format!(
                    "{name} is of a learned noise: give --noise learn as well, or leave it out"
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
        if let Some(degrees) = self.degrees_of_freedom {
            if self.likelihood != LikelihoodName::StudentT {
                return Err(Failure::request(
                    "--degrees-of-freedom is of the student-t likelihood: give --likelihood student-t as well, or leave it out",
                ));
            }
            if !(degrees > 0.0 && degrees.is_finite()) {
                return Err(Failure::request(format!(
                    "--degrees-of-freedom is {}: it must be positive and finite",
                    short(degrees)
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
        let degrees = self.degrees_of_freedom();
        self.likelihood
            .of_targets(targets, degrees)
            .map_err(Failure::request)?;
        let outputs = self.likelihood.outputs(targets);
        if let Some(NoiseSetting::Each(scales)) = &self.noise
            && scales.len() != outputs
        {
            return Err(Failure::request(format!(
                "{} noise scales were given for {outputs} outputs: give one, or one per output",
                scales.len()
            )));
        }
        if matches!(targets, Targets::Classes { .. })
            && matches!(
                self.noise,
                Some(NoiseSetting::Each(_) | NoiseSetting::Learn(Learn::LearnEach))
            )
        {
            return Err(Failure::request(
                "the outputs of a classification share one noise scale: give one --noise, or `learn`",
            ));
        }
        Ok(())
    }

    /// Writes out the defaults of the network's name and of the likelihood.
    pub fn resolve(&mut self) {
        if let Ok(named @ Named::Resnet { .. }) = self.network.parse() {
            self.network = named.to_string();
        }
        if self.likelihood.has_scale() && self.noise.is_none() {
            self.noise = Some(NoiseSetting::One(0.1));
        }
        if let (true, Noise::Learned(prior)) = (self.learns_noise(), self.noise()) {
            self.noise_median = Some(prior.median);
            self.noise_spread = Some(prior.spread);
        }
        if self.likelihood == LikelihoodName::StudentT {
            self.degrees_of_freedom = Some(self.degrees_of_freedom());
        }
    }
}
