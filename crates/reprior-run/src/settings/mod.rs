//! Settings of a run: from a file and flags to a configuration in which every default is written out.
//!
//! A setting is a field of the struct of its section, with its help text, its flag and its key in `config.toml` (see [`flags`]).

mod auto;
mod data;
mod expressions;
mod flags;
mod laplace;
mod laplace_expressions;
mod method;
mod minibatch;
mod model;
mod names;
mod network;
mod noise;
mod rules;
mod run;
mod sampler;
mod scales;
mod start;
mod until;

use std::path::Path;

use clap::Args;
use reprior::chain::Schedule;
use reprior::posterior::{Coordinates, PosteriorSettings, TangentDeterminant};
use reprior_io::data::BUILT_INS;
use reprior_io::regular;
use reprior_io::run::Files;
use serde::{Deserialize, Serialize};

pub use auto::Auto;
pub use data::DataSettings;
pub use expressions::{PriorChoice, StepSizeChoice, WrittenDecay};
pub use flags::Flags;
pub(crate) use flags::given;
pub(crate) use laplace::EIGENVALUE_THRESHOLD;
pub use laplace::LaplaceSettings;
pub use laplace_expressions::{Per, PriorPrecisionChoice, WrittenSubset};
pub use method::{MethodName, MinibatchMethod, Nature};
pub use minibatch::MinibatchSettings;
pub(crate) use model::DEGREES_OF_FREEDOM;
pub use model::ModelSettings;
pub use names::*;
pub(crate) use network::{NETWORK_AUTO, arrange};
pub use noise::{Learn, NoiseSetting};
pub(crate) use rules::{SettingRule, at_least_one, refuse_others};
pub(crate) use run::MOST_CHAINS;
pub use run::{RecordSettings, RunSettings, SettledKeeping};
pub use sampler::SamplingSettings;
pub use scales::ScalesSetting;
pub use start::StartName;
pub use until::{FIRST_LOOK, MINUTES_UNTIL, Until};

use crate::failure::{Failure, name_of};

/// The file of a run that holds its settings.
pub(crate) const CONFIG: &str = "config.toml";

/// Everything that decides what is drawn. As TOML in `config.toml`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, Args)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Which records.
    #[command(flatten)]
    pub data: DataSettings,
    /// Which network and likelihood.
    #[command(flatten)]
    pub model: ModelSettings,
    /// Which method, and what chains on all data take.
    #[command(flatten)]
    pub sampler: SamplingSettings,
    /// What minibatch methods take.
    #[command(flatten)]
    #[serde(skip_serializing_if = "MinibatchSettings::is_empty")]
    pub minibatch: MinibatchSettings,
    /// What Laplace approximations and diffusions take.
    #[command(flatten)]
    #[serde(skip_serializing_if = "LaplaceSettings::is_empty")]
    pub laplace: LaplaceSettings,
    /// How long.
    #[command(flatten)]
    pub run: RunSettings,
    /// What is kept.
    #[command(flatten)]
    pub record: RecordSettings,
}

impl Settings {
    /// Settings from a TOML file.
    ///
    /// # Errors
    /// A wrong request naming the file, the key and the line.
    pub fn from_file(path: &Path) -> Result<Self, Failure> {
        let text = regular::read_text(path).map_err(|error| {
            Failure::request(format!("`{}` cannot be read: {error}", path.display()))
        })?;
        let mut settings = Self::from_toml(&text, path)?;
        settings
            .minibatch
            .found_in(path.parent().unwrap_or(Path::new("")));
        Ok(settings)
    }

    /// Those that a run was made with.
    ///
    /// # Errors
    /// A wrong request: no run, or one whose settings are damaged.
    pub(crate) fn of_run(files: &Files) -> Result<Self, Failure> {
        if let Some(folder) = files.folder()
            && files.contains(CONFIG)
        {
            return Self::from_file(&folder.join(CONFIG));
        }
        match files.read_text(CONFIG).map_err(Failure::request)? {
            Some(text) => Self::from_toml(&text, Path::new(CONFIG)),
            None => Err(Failure::request(format!(
                "`{}` is not a run folder: it has no {CONFIG}",
                name_of(files)
            ))),
        }
    }

    fn from_toml(text: &str, path: &Path) -> Result<Self, Failure> {
        if text.starts_with("[density]") {
            return Err(Failure::request(format!(
                "`{}` is of a density of one's own: open the run in Python, with reprior.open",
                path.display()
            )));
        }
        let read = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            Failure::request(format!(
                "`{}`, line {line}: {}",
                path.display(),
                flags::with_section(error.message())
            ))
        });
        let mut settings: Self = read?;
        settings.sampler.read_start();
        let model = &mut settings.model;
        // what a run writes names the instruction set; the noise of rows of runs that could not choose its variation has one of 1
        if settings.run.instructions.is_some() && model.likelihood().has_row_noise() {
            model.noise_variation.get_or_insert(1.0);
        }
        Ok(settings)
    }

    /// Refuses settings that do not say which data.
    pub(crate) fn check_source(&self) -> Result<(), Failure> {
        if !self.data.source.is_empty() {
            return Ok(());
        }
        let names = BUILT_INS.join(", ");
        Err(Failure::request(format!(
            "no data: give --data with a built-in ({names}), a .csv, .parquet or .npz file, or a folder of images"
        )))
    }

    /// The coordinates of positions: the given ones, or those that the likelihood is sampled best in.
    pub fn coordinates(&self) -> Coordinates {
        self.sampler
            .coordinates
            .unwrap_or(match self.model.likelihood().is_gaussian() {
                true => Coordinates::Marginal,
                false => Coordinates::Repriorised,
            })
    }

    /// The coordinates of the chains with what they leave to choose.
    pub fn posterior(&self) -> PosteriorSettings {
        PosteriorSettings {
            coordinates: self.coordinates(),
            space: self.sampler.space.forced(),
            regulariser: self.sampler.regulariser,
            determinant: self.sampler.determinant,
            seed: self.run.seed,
        }
    }

    /// How the determinant of tangent coordinates is computed, for a network of so many parameters.
    pub fn determinant(&self, parameters: usize) -> TangentDeterminant {
        let chosen = self.sampler.determinant;
        chosen.unwrap_or_else(|| TangentDeterminant::for_parameters(parameters))
    }

    /// Numbers of chains, transitions and draws; the method's defaults where nothing was said. Minibatch methods write theirs out
    /// once they know the number of rows.
    pub fn schedule(&self) -> Schedule {
        let (chains, warmup, draws, thin) = match self.sampler.method() {
            MethodName::Chain(method) => {
                let [warmup, draws, thin] = method.default_lengths();
                (4, warmup, draws, thin)
            }
            MethodName::Annealed => {
                let [replicates, particles, transitions] = crate::method::ANNEALED_LENGTHS;
                (replicates as usize, 0, particles, transitions)
            }
            MethodName::Minibatch(_) | MethodName::Infinite(_) => (1, 0, 1, 1),
        };
        Schedule {
            chains: self.run.chains.unwrap_or(chains),
            warmup: self.run.warmup.unwrap_or(warmup),
            draws: self.run.draws.unwrap_or(draws),
            thin: self.run.thin.unwrap_or(thin),
            seed: self.run.seed,
        }
    }

    /// Numbers of the chains: by them their random numbers go, and their names in the draws.
    pub fn chain_numbers(&self) -> Vec<usize> {
        if let Some(numbers) = &self.run.chain_numbers {
            return numbers.clone();
        }
        let first = self.run.first_chain.unwrap_or(0);
        // more are refused before they are made
        let chains = self.schedule().chains.min(MOST_CHAINS);
        (first..first.saturating_add(chains)).collect()
    }

    /// As TOML.
    ///
    /// # Errors
    /// None in practice; reported rather than hidden.
    pub fn to_toml(&self) -> Result<String, Failure> {
        toml::to_string(self).map_err(Failure::run)
    }
}
