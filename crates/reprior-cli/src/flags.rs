//! Flags laid over settings.

use std::str::FromStr;

use reprior::model::likelihood::LikelihoodName;
use reprior::model::{InputReduction, PixelScaling};
use reprior::posterior::Coordinates;

use crate::arguments::SettingsArguments;
use crate::error::Failure;
use crate::minibatch::{LaplaceSettings, MinibatchSettings};
use crate::settings::{RunSettings, SamplingSettings, Settings};

impl Settings {
    /// Replaces what the flags give.
    ///
    /// # Errors
    /// A wrong request: an unknown name.
    pub fn apply(&mut self, flags: &SettingsArguments) -> Result<(), Failure> {
        fn set<T: Clone>(field: &mut T, flag: &Option<T>) {
            if let Some(value) = flag {
                *field = value.clone();
            }
        }
        fn replace<T: Clone>(field: &mut Option<T>, flag: &Option<T>) {
            if flag.is_some() {
                field.clone_from(flag);
            }
        }
        fn parse<T: FromStr<Err = Failure>>(
            field: &mut T,
            flag: &Option<String>,
        ) -> Result<(), Failure> {
            if let Some(text) = flag {
                *field = text.parse()?;
            }
            Ok(())
        }
        set(&mut self.data.source, &flags.data);
        replace(&mut self.data.target, &flags.target);
        parse(&mut self.data.task, &flags.task)?;
        replace(&mut self.data.train, &flags.train);
        replace(&mut self.data.test, &flags.test);
        replace(&mut self.data.shuffle, &flags.shuffle);
        match flags.pixels.as_deref() {
            None => {}
            Some("standardised") => self.data.pixels = PixelScaling::Standardised,
            Some("unit") => self.data.pixels = PixelScaling::Unit,
            Some(other) => {
                let message = format!("unknown pixels `{other}`: use standardised or unit");
                return Err(Failure::Request(message));
            }
        }
        if let Some(network) = &flags.network {
            self.model.set_network(network)?;
        }
        set(&mut self.model.activation, &flags.activation);
        set(&mut self.model.weight_variance, &flags.weight_variance);
        set(&mut self.model.bias_variance, &flags.bias_variance);
        set(
            &mut self.model.readout_weight_variance,
            &flags.readout_weight_variance,
        );
        set(
            &mut self.model.readout_bias_variance,
            &flags.readout_bias_variance,
        );
        if let Some(likelihood) = flags.likelihood {
            self.model.likelihood = likelihood;
            // what a file says of another likelihood
            if !likelihood.has_scale() {
                self.model.noise = None;
            }
            if likelihood != LikelihoodName::StudentT {
                self.model.degrees_of_freedom = None;
            }
        }
        if let Some(text) = &flags.noise {
            self.model.noise = Some(text.parse()?);
        }
        match flags.scales.as_deref() {
            None => {}
            Some("auto") => self.model.scales_auto = true,
            Some(other) => {
                let message = format!(
                    "unknown scales `{other}`: use auto, or set them with --weight-variance and so on"
                );
                return Err(Failure::Request(message));
            }
        }
        if !self.model.learns_noise() {
            (self.model.noise_median, self.model.noise_spread) = (None, None);
        }
        replace(&mut self.model.noise_median, &flags.noise_median);
        replace(&mut self.model.noise_spread, &flags.noise_spread);
        replace(
            &mut self.model.degrees_of_freedom,
            &flags.degrees_of_freedom,
        );
        if let Some(method) = flags.method
            && method != self.sampler.method
        {
            // what a file says of another method's steps does not concern this one, nor its lengths if one is by minibatches
            if [method, self.sampler.method]
                .iter()
                .any(|method| method.minibatch().is_some())
            {
                self.run = RunSettings {
                    seed: self.run.seed,
                    ..RunSettings::default()
                };
                (self.record.keep, self.record.keep_predictions) = (None, None);
            }
            self.minibatch = MinibatchSettings::default();
            self.laplace = LaplaceSettings::default();
            self.sampler = SamplingSettings {
                coordinates: self.sampler.coordinates,
                determinant: self.sampler.determinant,
                space: self.sampler.space,
                input_reduction: self.sampler.input_reduction,
                precision: self.sampler.precision,
                ..SamplingSettings::default()
            };
            if method.minibatch().is_some() {
                self.sampler = SamplingSettings {
                    precision: self.sampler.precision,
                    ..SamplingSettings::default()
                };
            }
        }
        set(&mut self.sampler.method, &flags.method);
        replace(&mut self.sampler.coordinates, &flags.coordinates);
        if self.sampler.coordinates != Some(Coordinates::Tangent) {
            self.sampler.determinant = None;
        }
        replace(&mut self.sampler.determinant, &flags.determinant);
        set(&mut self.sampler.regulariser, &flags.regulariser);
        parse(&mut self.sampler.space, &flags.space)?;
        if let Some(text) = &flags.input_reduction {
            self.sampler.input_reduction = match text.as_str() {
                "auto" => InputReduction::Auto,
                "on" => InputReduction::On,
                "off" => InputReduction::Off,
                _ => {
                    let message =
                        format!("unknown input reduction `{text}`: use one of auto, on, off");
                    return Err(Failure::Request(message));
                }
            };
        }
        if self.minibatch.apply(&flags.minibatch)? {
            self.sampler.step_size = None;
        }
        self.laplace.apply(&flags.laplace)?;
        replace(&mut self.sampler.step_size, &flags.step_size);
        replace(
            &mut self.sampler.target_acceptance,
            &flags.target_acceptance,
        );
        replace(&mut self.sampler.damping, &flags.damping);
        if flags.no_metropolis {
            self.sampler.metropolis = Some(false);
        }
        replace(&mut self.sampler.trajectory, &flags.trajectory);
        replace(&mut self.sampler.arrival, &flags.arrival);
        parse(&mut self.sampler.precision, &flags.precision)?;
        if flags.minibatch.epochs.is_some() && flags.thin.is_none() {
            // lengths in a file are in updates
            (self.run.warmup, self.run.thin) = (None, None);
        }
        if flags.thin.is_some() && flags.minibatch.epochs.is_none() {
            self.minibatch.epochs = None;
        }
        replace(&mut self.run.chains, &flags.chains);
        replace(&mut self.run.warmup, &flags.warmup);
        replace(&mut self.run.draws, &flags.draws);
        replace(&mut self.run.thin, &flags.thin);
        set(&mut self.run.seed, &flags.seed);
        set(&mut self.record.projections, &flags.projections);
        if flags.keep_mb.is_some() {
            // numbers in a file are those of its budget
            (self.record.keep, self.record.keep_predictions) = (None, None);
        }
        replace(&mut self.record.keep_mb, &flags.keep_mb);
        replace(&mut self.record.keep, &flags.keep);
        replace(&mut self.record.keep_predictions, &flags.keep_predictions);
        set(&mut self.record.keep_weights, &flags.keep_weights);
        Ok(())
    }
}
