//! Flags laid over the settings of a file, and which flags go with which method.
//!
//! The sections of [`Settings`] are read by serde from a file and by clap from flags. A flag that is given replaces the file's value;
//! what a file says that hangs on a value which a flag has changed is forgotten.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use reprior::posterior::Coordinates;
use serde::Serialize;
use serde_json::Value;

use super::{
    DataSettings, LaplaceSettings, MethodName, MinibatchSettings, ModelSettings, RecordSettings,
    RunSettings, SamplingSettings, Settings,
};
use crate::failure::Failure;

/// What the command line says of the settings: the file `--config`, and flags laid over it.
#[derive(Debug, Clone)]
pub struct Flags(ArgMatches);

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("Read settings from this TOML file (a run's own config.toml, for instance); flags override it");
        // as for an update: nothing is required, and nothing has a default
        Settings::augment_args_for_update(command.arg(config))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = matches.clone();
        Ok(())
    }
}

impl Flags {
    /// The settings of the file, if there is one, with the flags laid over them.
    ///
    /// # Errors
    /// A wrong request: an unreadable file, an unknown key or value.
    pub fn settings(&self) -> Result<Settings, Failure> {
        let file = match self.0.get_one::<PathBuf>("config") {
            Some(path) => Settings::from_file(path)?,
            None => Settings::default(),
        };
        let mut settings = self.lay_over(&file)?;
        settings.model.read_network()?;
        self.check_layers(&settings.model)?;
        Ok(settings)
    }

    /// Refuses prior variances and an activation of hidden layers where these have their own.
    fn check_layers(&self, model: &ModelSettings) -> Result<(), Failure> {
        let name = model.network.split(':').next().unwrap_or_default();
        let (variances, activations) = if model.layers.is_some() {
            (
                Some("layers of a file have a `scale` each: write it there"),
                Some("layers of a file say their own: write it there"),
            )
        } else {
            let own = "has its own: leave it out, or describe the network in a TOML file";
            let (small, lenet) = (name == "resnet-small", name == "lenet");
            (small.then_some(own), (small || lenet).then_some(own))
        };
        let flags = [
            ("weight_variance", "--weight-variance", variances),
            ("bias_variance", "--bias-variance", variances),
            ("activation", "--activation", activations),
        ];
        for (id, flag, way_out) in flags {
            let Some(way_out) = way_out.filter(|_| self.0.contains_id(id)) else {
                continue;
            };
            let whose = match model.layers {
                Some(_) => String::new(),
                None => format!("{name} "),
            };
            return Err(Failure::request(format!(
                "{flag} would change nothing: {whose}{way_out}"
            )));
        }
        Ok(())
    }

    /// Settings with the flags in place of what they give.
    fn lay_over(&self, file: &Settings) -> Result<Settings, Failure> {
        let update = |settings: &Settings| {
            let mut settings = settings.clone();
            let updated = settings.update_from_arg_matches(&self.0);
            updated.map(|()| settings).map_err(Failure::request)
        };
        let mut base = file.clone();
        base.forget(file, &update(file)?, |flag| self.0.contains_id(flag));
        update(&base)
    }
}

impl Settings {
    /// Forgets what a `file` says that hangs on a value which flags have changed: in `asked`, the flags are laid over the file.
    fn forget(&mut self, file: &Self, asked: &Self, is_given: impl Fn(&str) -> bool) {
        let (model, method) = (&mut self.model, asked.sampler.method());
        if is_given("network") {
            model.layers = None;
        }
        self.data.forget(&is_given);
        if is_given("likelihood") {
            if !asked.model.likelihood().has_scale() {
                model.noise = None;
            }
            if !asked.model.likelihood().has_degrees_of_freedom() {
                model.degrees_of_freedom = None;
            }
            if !asked.model.likelihood().has_row_noise() {
                model.noise_variation = None;
            }
        }
        if is_given("readout_weight_variance") {
            model.noise_variation = None;
        }
        if !asked.model.learns_noise() {
            (model.noise_median, model.noise_spread) = (None, None);
        }
        if method != file.sampler.method() {
            self.forget_method(file.sampler.method(), method);
        }
        if is_given("replicas") {
            // a file has the arrival of chains without
            self.sampler.arrival = None;
        }
        if asked.sampler.coordinates != Some(Coordinates::Tangent) {
            self.sampler.determinant = None;
        }
        let own = &mut self.minibatch;
        if is_given("prior") {
            own.weight_decay = None;
        } else if is_given("weight_decay") {
            own.prior = None;
        }
        let (before, after) = (&file.minibatch, &asked.minibatch);
        let has_other_preconditioner = before.preconditioner() != after.preconditioner();
        if has_other_preconditioner {
            (own.epsilon, own.epsilon_at) = (None, None);
            (own.decay, own.labels) = (None, None);
        }
        let has_other_optimiser = before.optimiser != after.optimiser;
        if has_other_optimiser {
            own.momentum = None;
        }
        if has_other_preconditioner
            || has_other_optimiser
            || before.parametrisation() != after.parametrisation()
        {
            self.sampler.step_size = None;
        }
        let (before, after) = (&file.laplace, &asked.laplace);
        if before.hessian_structure != after.hessian_structure {
            (self.laplace.rank, self.laplace.eigenvalue_threshold) = (None, None);
        }
        if before.pred_type != after.pred_type {
            self.laplace.link_approx = None;
        }
        if is_given("epochs") {
            own.swag_updates = None;
            if !is_given("thin") {
                // lengths in a file are in updates
                (self.run.warmup, self.run.thin) = (None, None);
            }
        } else if is_given("thin") {
            own.epochs = None;
        }
        if is_given("minutes") || is_given("until") {
            // lengths in a file are what another run had time for
            (self.run.warmup, self.run.draws) = (None, None);
            (self.run.minutes, self.run.until) = (None, None);
            self.record.forget_numbers();
        } else if is_given("draws") || is_given("thin") {
            (self.run.minutes, self.run.until) = (None, None);
            self.record.settled = None;
        }
        if is_given("keep_mb") {
            // numbers in a file are those of its budget
            self.record.forget_numbers();
        }
    }

    /// What a file says of another method's steps does not concern this one, nor its lengths if one is by minibatches.
    fn forget_method(&mut self, before: MethodName, after: MethodName) {
        let is_by_minibatches = |method| matches!(method, MethodName::Minibatch(_));
        if is_by_minibatches(before) || is_by_minibatches(after) {
            self.run = RunSettings {
                seed: self.run.seed,
                ..RunSettings::default()
            };
            self.record.forget_numbers();
        }
        self.minibatch = MinibatchSettings::default();
        self.laplace = LaplaceSettings::default();
        let common = SamplingSettings {
            precision: self.sampler.precision,
            ..SamplingSettings::default()
        };
        self.sampler = match is_by_minibatches(after) {
            true => common,
            false => SamplingSettings {
                coordinates: self.sampler.coordinates,
                determinant: self.sampler.determinant,
                space: self.sampler.space,
                input_reduction: self.sampler.input_reduction,
                ..common
            },
        };
    }
}

impl DataSettings {
    /// Forgets what a file says of other data, or of the other order of rows.
    fn forget(&mut self, is_given: impl Fn(&str) -> bool) {
        if is_given("data") {
            self.missing = None;
        }
        if is_given("shuffle") {
            self.no_shuffle = None;
        }
        if is_given("watch") {
            (self.train, self.test, self.shuffle) = (None, None, None);
        } else if ["train", "test", "shuffle"].into_iter().any(&is_given) {
            self.watch = None;
        }
        if is_given("no_shuffle") {
            self.shuffle = None;
        }
    }
}

/// What is wrong with a file, and of a key that stands in the wrong section the right one.
pub(super) fn with_section(message: &str) -> String {
    let key = message.strip_prefix("unknown field `");
    let Some((key, _)) = key.and_then(|rest| rest.split_once('`')) else {
        return message.to_owned();
    };
    let none = Command::new;
    let sections = [
        ("data", DataSettings::augment_args_for_update(none(""))),
        ("model", ModelSettings::augment_args_for_update(none(""))),
        (
            "sampler",
            SamplingSettings::augment_args_for_update(none("")),
        ),
        (
            "minibatch",
            MinibatchSettings::augment_args_for_update(none("")),
        ),
        (
            "laplace",
            LaplaceSettings::augment_args_for_update(none("")),
        ),
        ("run", RunSettings::augment_args_for_update(none(""))),
        ("record", RecordSettings::augment_args_for_update(none(""))),
    ];
    let id = key.replace('-', "_");
    let has_it = |command: &Command| {
        command
            .get_arguments()
            .any(|own| own.get_id() == id.as_str())
    };
    match sections.iter().find(|(_, command)| has_it(command)) {
        Some((section, _)) if key.contains('_') => {
            let written = key.replace('_', "-");
            format!("`{key}` is written `{written}`, in [{section}]")
        }
        Some((section, _)) => format!("`{key}` is a key of [{section}]: move it there"),
        None => message.to_owned(),
    }
}

/// The flags of what is given in a section: of what is not as it is by default.
pub(crate) fn given<T: Serialize + Default>(section: &T) -> Vec<String> {
    let table = |section: &T| match serde_json::to_value(section) {
        Ok(Value::Object(table)) => table,
        _ => serde_json::Map::new(),
    };
    let default = table(&T::default());
    let given = table(section).into_iter();
    // nobody gives what the run writes of the machine
    let given =
        given.filter(|(key, value)| key != "instructions" && default.get(key) != Some(value));
    given
        .map(|(key, _)| match key.as_str() {
            "metropolis" => "--no-metropolis".to_owned(),
            _ => format!("--{key}"),
        })
        .collect()
}

impl MinibatchSettings {
    /// Takes paths of a settings file as relative to its folder.
    pub(super) fn found_in(&mut self, folder: &Path) {
        if let Some(weights) = &mut self.weights {
            *weights = folder.join(&*weights);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid_over(file: &Settings, flags: &str) -> Settings {
        let command = Flags::augment_args(Command::new("test"));
        let words = std::iter::once("test").chain(flags.split_whitespace());
        let flags = Flags(command.try_get_matches_from(words).unwrap());
        flags.lay_over(file).unwrap()
    }

    #[test]
    fn flags_replace_what_a_file_says_and_what_hangs_on_it() {
        let none = Settings::default();
        let file = laid_over(
            &none,
            "--data a.csv --method sgld --preconditioner kfac --epsilon 0.1 --epochs 9 --seed 3",
        );
        assert_eq!(file.minibatch.epsilon, Some(0.1));
        let same = laid_over(&file, "--preconditioner kfac");
        assert_eq!(same, file);
        let other = laid_over(&file, "--preconditioner diagonal");
        assert_eq!(
            (other.minibatch.epsilon, other.minibatch.epochs),
            (None, Some(9))
        );
        let chains = laid_over(&file, "--method pcn");
        assert_eq!((chains.run.seed, chains.minibatch.epochs), (3, None));
        assert_eq!(chains.data.source, "a.csv");
        let file = laid_over(&none, "--readout-weight-variance 4 --noise-variation 0.5");
        let wider = laid_over(&file, "--readout-weight-variance 9");
        assert_eq!(wider.model.noise_variation, None);
        let both = laid_over(&file, "--readout-weight-variance 9 --noise-variation 2");
        assert_eq!(both.model.noise_variation, Some(2.0));
    }

    #[test]
    fn every_given_setting_is_the_flag_that_gave_it() {
        let settings = laid_over(
            &Settings::default(),
            "--no-metropolis --step-size 0.1 --chains 2 --rank 5",
        );
        let mut of_sampler = given(&settings.sampler);
        of_sampler.sort();
        assert_eq!(of_sampler, ["--no-metropolis", "--step-size"]);
        assert_eq!(given(&settings.run), ["--chains"]);
        assert_eq!(given(&settings.laplace), ["--rank"]);
        assert!(given(&settings.minibatch).is_empty());
    }

    #[test]
    fn a_key_in_the_wrong_section_is_told_the_right_one() {
        let message = "unknown field `swag-rank`, expected one of `a`, `b`";
        assert_eq!(
            with_section(message),
            "`swag-rank` is a key of [minibatch]: move it there"
        );
        let message = "unknown field `step_size`, expected `step-size`";
        let found = "`step_size` is written `step-size`, in [sampler]";
        assert_eq!(with_section(message), found);
        let message = "unknown field `cellar`, expected `a`";
        assert_eq!(with_section(message), message);
        assert_eq!(with_section("invalid type"), "invalid type");
    }
}
