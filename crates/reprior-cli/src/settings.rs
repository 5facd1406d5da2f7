//! Settings of a run: from a file and flags to a resolved configuration in which every default is written out.

use std::path::Path;

use reprior::chain::Schedule;
use reprior::model::{InputReduction, PixelScaling};
use reprior::posterior::{Coordinates, Regulariser};
use reprior::sampler::{Method, SamplerSettings};
use reprior_io::data::{BUILT_INS, Request, Task};
use reprior_io::regular;
use reprior_report::Nature;
use serde::{Deserialize, Serialize};

use crate::arguments::SettingsArguments;
use crate::closed_form;
use crate::error::Failure;
use crate::method::{MethodName, MinibatchMethod};
use crate::minibatch::{self, LaplaceSettings, MinibatchSettings};
use crate::model_settings::ModelSettings;
use crate::names::{Precision, SpaceChoice, TaskName};
use crate::tangent::{self, Determinant};

/// Everything that decides what is drawn. As TOML in `config.toml`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub data: DataSettings,
    pub model: ModelSettings,
    pub sampler: SamplingSettings,
    #[serde(skip_serializing_if = "MinibatchSettings::is_empty")]
    pub minibatch: MinibatchSettings,
    #[serde(skip_serializing_if = "LaplaceSettings::is_empty")]
    pub laplace: LaplaceSettings,
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
    pub pixels: PixelScaling,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SamplingSettings {
    pub method: MethodName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coordinates: Option<Coordinates>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub determinant: Option<Determinant>,
    pub space: SpaceChoice,
    pub regulariser: Regulariser,
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
    /// Megabytes that the run folder may take; positions and predictions are thinned to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_mb: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_predictions: Option<u64>,
    pub keep_weights: u64,
}

impl Default for RecordSettings {
    fn default() -> Self {
        Self {
            projections: 100,
            keep_mb: None,
            keep: None,
            keep_predictions: None,
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
        let text = regular::read_text(path).map_err(|error| {
            Failure::request(format!("`{}` cannot be read: {error}", path.display()))
        })?;
        let mut settings: Self = toml::from_str(&text).map_err(|error| {
            let line = error
                .span()
                .map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            Failure::request(format!(
                "`{}`, line {line}: {}",
                path.display(),
                error.message()
            ))
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        settings.minibatch.found_in(folder);
        Ok(settings)
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
        if self.sampler.method.covariance().is_some() {
            closed_form::check(self)?;
            return self.model.check();
        }
        if let Some(method) = self.sampler.method.minibatch() {
            minibatch::check(self, method)?;
            return self.model.check();
        }
        if let Some(flag) = self.minibatch.given().chain(self.laplace.given()).next() {
            return Err(Failure::request(format!(
                "{flag} is of methods by minibatches ({}): leave it out, or choose one of them with --method",
                MinibatchMethod::NAMES
            )));
        }
        self.sampler_settings().check().map_err(Failure::request)?;
        self.schedule().check().map_err(Failure::request)?;
        self.check_arrival()?;
        self.check_coordinates()?;
        if self.record.keep == Some(0) {
            return Err(Failure::request(
                "--keep is 0: `predict` needs at least 1 kept position",
            ));
        }
        for (flag, value) in [
            ("--keep-predictions", self.record.keep_predictions),
            ("--keep-mb", self.record.keep_mb),
        ] {
            if value == Some(0) {
                return Err(Failure::request(format!(
                    "{flag} is 0: it must be at least 1"
                )));
            }
        }
        self.model.check()
    }

    /// Refuses coordinates that the likelihood has not, and settings that have no effect in the ones chosen.
    fn check_coordinates(&self) -> Result<(), Failure> {
        let (coordinates, likelihood) = (self.coordinates(), self.model.likelihood);
        if coordinates == Coordinates::Marginal && !likelihood.is_gaussian() {
            return Err(Failure::request(format!(
                "the readout cannot be integrated out under the {likelihood} likelihood: use --coordinates repriorised or standard"
            )));
        }
        if coordinates == Coordinates::Tangent {
            tangent::check(self)?;
        } else if let Some(determinant) = self.sampler.determinant {
            return Err(Failure::request(format!(
                "--determinant {determinant} is of tangent coordinates, not of {coordinates}: give --coordinates tangent, or leave it out"
            )));
        }
        if coordinates == Coordinates::Repriorised {
            return Ok(());
        }
        if self.sampler.regulariser != Regulariser::Matched {
            return Err(Failure::request(format!(
                "--regulariser is of repriorised coordinates, not of {coordinates}: give --coordinates repriorised, or leave it out"
            )));
        }
        if self.sampler.space == SpaceChoice::DataSymmetric {
            return Err(Failure::request(format!(
                "--space data-symmetric is of repriorised coordinates, not of {coordinates}: use auto, feature or data"
            )));
        }
        Ok(())
    }

    /// The coordinates of positions: the given ones, or those that the likelihood is sampled best in.
    pub fn coordinates(&self) -> Coordinates {
        self.sampler
            .coordinates
            .unwrap_or(match self.model.likelihood.is_gaussian() {
                true => Coordinates::Marginal,
                false => Coordinates::Repriorised,
            })
    }

    /// How the determinant of tangent coordinates is had, for a network of so many parameters.
    pub fn determinant(&self, parameters: usize) -> Determinant {
        let chosen = self.sampler.determinant;
        chosen.unwrap_or_else(|| Determinant::of(parameters))
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

    /// The sampler.
    pub fn sampler_settings(&self) -> SamplerSettings {
        SamplerSettings {
            method: self.sampler.method.chain(),
            step_size: self.sampler.step_size,
            target_acceptance: self.sampler.target_acceptance,
            damping: self.sampler.damping,
            metropolis: self.sampler.metropolis.unwrap_or(true),
            trajectory: self.sampler.trajectory,
            // it takes gradients
            arrival: match self.coordinates() {
                Coordinates::Tangent => Some(0),
                _ => self.sampler.arrival,
            },
        }
    }

    /// What the method's draws are.
    pub fn nature(&self) -> Nature {
        let method = self.sampler.method;
        match (method.covariance(), method.minibatch()) {
            (Some(_), _) => Nature::ClosedForm,
            (None, None) => Nature::Chains,
            (None, Some(method)) if method.is_sampler() => Nature::ApproximateChains,
            (None, Some(_)) => Nature::Draws,
        }
    }

    /// Numbers of chains, transitions and draws; the method's defaults where nothing was said.
    pub fn schedule(&self) -> Schedule {
        let (warmup, draws, thin) = match self.sampler.method.chain() {
            Method::HmcInfinite => (200, 250, 2),
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

    /// Writes the defaults out that depend on other settings.
    pub fn resolve(&mut self) {
        self.model.resolve();
        if !matches!(self.sampler.method, MethodName::Chain(_)) {
            return;
        }
        self.sampler.coordinates = Some(self.coordinates());
        let schedule = self.schedule();
        self.run.chains = Some(schedule.chains);
        self.run.warmup = Some(schedule.warmup);
        self.run.draws = Some(schedule.draws);
        self.run.thin = Some(schedule.thin);
        if self.sampler.step_size.is_none() && self.sampler.target_acceptance.is_none() {
            self.sampler.target_acceptance =
                self.sampler.method.chain().default_target_acceptance();
        }
        let method = self.sampler.method.chain();
        let in_use = self.sampler_settings();
        let arrival = in_use.arrival_transitions(schedule.warmup);
        let sampler = &mut self.sampler;
        sampler.damping = in_use.damping_in_use();
        sampler.trajectory = in_use.trajectory_in_use();
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
