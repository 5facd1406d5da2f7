//! Data and network made of settings: loaded, standardised, coded.

mod description;
mod evidence;
mod learned_noise;
mod learned_scales;
mod precision;
mod records;
mod table;
mod weights;

use std::sync::Arc;

use reprior::compute::Real;
use reprior::gaussian_process::evidence::Covariance;
use reprior::model::Model;
use reprior::model::dataset::{Dataset, InputKind, InputValues, Split, Targets};
use reprior::model::likelihood::Likelihood;
use reprior::model::likelihood::name::LikelihoodName;
use reprior::model::standardisation::{Affine, PixelScaling, Standardisation};
use reprior::network::Composition;
use reprior_io::data::look;
use reprior_io::run::{DrawStore, Files, Values};

pub(crate) use description::DATA;
pub use description::DataDescription;
use description::fingerprint;
use evidence::Evidence;
pub(crate) use learned_scales::scale_names;
pub(crate) use records::Records;
use table::ranges;
pub(crate) use table::{content, kept_as};
pub(crate) use weights::GivenWeights;
use weights::refuse_scaled_inputs;

use crate::failure::Failure;
use crate::predictive::PredictionKind;
use crate::settings::{
    MethodName, ModelSettings, RecordSettings, ScalesSetting, Settings, Switch, arrange,
};
use crate::stored::Stored;

/// Data and network of a run.
pub struct Problem {
    /// With every default written out.
    pub settings: Settings,
    /// What the data are.
    pub description: DataDescription,
    pub(crate) architecture: Composition,
    /// In their own units.
    pub(crate) train: Dataset,
    pub(crate) test: Dataset,
    /// What was chosen in place of `auto`, in words.
    pub(crate) choices: Vec<String>,
    /// Coded column-major training targets.
    pub(crate) targets: Vec<f64>,
    /// What was asked to be kept, while the number of draws is open.
    pub(crate) asked: Option<RecordSettings>,
    /// That chains begin at, where a file gives them.
    pub(crate) weights: Option<GivenWeights>,
    /// The run that the settings were read from, if they were.
    pub(crate) run: Option<Files>,
    /// What standard input or a program gave, if one did: it cannot be read again.
    pub(crate) content: Option<Arc<Vec<u8>>>,
}

impl Problem {
    /// Standardises records; `auto` noise and scales become numbers. `choices` are what else was chosen for them, in words.
    ///
    /// # Errors
    /// A wrong request: data that do not go with the settings.
    pub(crate) fn new(
        mut settings: Settings,
        records: Records,
        mut choices: Vec<String>,
    ) -> Result<Self, Failure> {
        let Records {
            split,
            target_columns,
            encoding,
            mut notes,
            run,
            content,
        } = records;
        notes.extend(look(&split, settings.model.likelihood().has_scale()));
        let Split { train, test } = split;
        let ranges = ranges(&train);
        settings.model.resolve();
        if settings.model.likelihood() == LikelihoodName::Poisson {
            check_counts(&train.targets)?;
            check_counts(&test.targets)?;
        }
        settings.model.check_targets(&train.targets)?;
        let reduction = settings.sampler.input_reduction;
        let architecture = |model: &ModelSettings| {
            let outputs = model.likelihood().outputs(&train.targets);
            model.architecture(train.kind, train.columns, outputs, reduction)
        };
        let mut network = architecture(&settings.model)?;
        let pixels = settings.data.pixels;
        if pixels == PixelScaling::Unit && train.kind == InputKind::Table {
            return Err(Failure::request(
                "--pixels is for images, and the data are a table: leave it out",
            ));
        }
        let is_scaled = settings.data.standardise == Switch::On;
        if !is_scaled && pixels == PixelScaling::Unit {
            return Err(Failure::request(
                "--pixels unit scales pixels, and --standardise off leaves them as they are: leave one of the two out",
            ));
        }
        let mut standardisation = match is_scaled {
            true => Standardisation::fit_with(&train, pixels),
            false => Standardisation::none(&train),
        };
        // an earlier run goes on as it was
        let is_new = run.is_none();
        if settings.model.scales == Some(ScalesSetting::Evidence) {
            // those of an earlier run would be there beside what is found
            settings.model.input_scales = None;
        }
        let was_scaled = settings.model.input_scales.is_some();
        if let Some(scales) = &settings.model.input_scales {
            if is_new {
                refuse_scaled_inputs(&settings, "input-scales")?;
            }
            standardisation = standardisation.with_input_scales(scales);
        }
        let code = |model: &ModelSettings, standardisation: &Standardisation| {
            model.likelihood().code(&train.targets, standardisation)
        };
        let mut targets = code(&settings.model, &standardisation);
        if settings.model.is_automatic() || settings.model.likelihood.is_open() {
            let inputs = standardisation.standardise_inputs(&train.inputs);
            let inputs = arrange(&network, train.kind, inputs);
            let covariance = match settings.sampler.method() {
                MethodName::Infinite(covariance) => covariance,
                _ => Covariance::Nngp,
            };
            let evidence = Evidence {
                architecture: &network,
                is_table: train.kind == InputKind::Table,
                covariance,
                inputs: &inputs,
                // without what stands for the outputs of noise
                targets: &targets[..train.rows * train.targets.outputs()],
            };
            if is_new && evidence.scales_inputs(&settings.model) {
                refuse_scaled_inputs(&settings, "--scales evidence")?;
            }
            choices.extend(evidence.choose(&mut settings.model)?);
            settings.model.resolve();
            network = architecture(&settings.model)?;
            targets = code(&settings.model, &standardisation);
            if let Some(scales) = &settings.model.input_scales
                && !was_scaled
            {
                standardisation = standardisation.with_input_scales(scales);
            }
        }
        Ok(Self {
            description: DataDescription {
                kind: train.kind,
                columns: train.columns,
                column_names: train.column_names.clone(),
                target_columns,
                is_classification: matches!(train.targets, Targets::Classes { .. }),
                output_names: train.targets.names().to_vec(),
                train_rows: train.rows,
                test_rows: test.rows,
                fingerprint: fingerprint(&[&train, &test]),
                standardisation,
                encoding,
                input_ranges: ranges,
                notes,
            },
            targets,
            asked: None,
            weights: None,
            run,
            content,
            choices,
            train,
            test,
            architecture: network,
            settings,
        })
    }

    /// The problem of a run as its folder describes it: with the sizes and names of the data, without any records.
    ///
    /// # Errors
    /// A wrong request: settings that do not fit the description.
    pub(crate) fn without_records(
        mut settings: Settings,
        description: DataDescription,
    ) -> Result<Self, Failure> {
        let names = description.output_names.clone();
        let targets = match description.is_classification {
            true => Targets::Classes {
                labels: Vec::new(),
                names,
            },
            false => Targets::Real {
                values: Vec::new(),
                names,
            },
        };
        let none = Dataset {
            inputs: Vec::new().into(),
            rows: 0,
            columns: description.columns,
            column_names: description.column_names.clone(),
            kind: description.kind,
            targets,
        };
        settings.model.resolve();
        let architecture = settings.model.architecture(
            description.kind,
            description.columns,
            settings.model.likelihood().outputs(&none.targets),
            settings.sampler.input_reduction,
        )?;
        Ok(Self {
            settings,
            description,
            architecture,
            train: none.clone(),
            test: none,
            choices: Vec::new(),
            targets: Vec::new(),
            asked: None,
            weights: None,
            run: None,
            content: None,
        })
    }

    /// Takes the precision that chains need, where it is left open (see [`precision`]).
    pub(crate) fn choose_precision(&mut self) {
        self.choices
            .extend(precision::choose(&mut self.settings, &self.architecture));
    }

    /// Reads the weights that chains begin at, if the settings name any.
    ///
    /// # Errors
    /// A wrong request: a file that cannot be used.
    pub(crate) fn read_weights(&mut self) -> Result<(), Failure> {
        self.weights = GivenWeights::read(
            &mut self.settings,
            &mut self.architecture,
            self.run.as_ref(),
        )?;
        Ok(())
    }

    /// What draws predict.
    pub(crate) fn kind(&self) -> PredictionKind {
        PredictionKind::new(&self.settings.model, self.description.is_classification)
    }

    /// Row-major inputs of a data set or of new records: standardised, pixels in the order that the network takes them.
    pub(crate) fn arranged<R: Real>(&self, inputs: &InputValues) -> Vec<R> {
        let standardisation = &self.description.standardisation;
        let inputs = standardisation.standardise_inputs(inputs);
        arrange(&self.architecture, self.description.kind, inputs)
    }

    /// The model, for predictions at the given standardised inputs.
    ///
    /// # Errors
    /// A wrong request: something out of range.
    pub(crate) fn model<R: Stored>(&self, test_inputs: &[f64]) -> Result<Model<R>, Failure> {
        let (architecture, targets) = (self.architecture.clone(), self.targets.clone());
        let (settings, reduction) = (&self.settings.model, self.settings.sampler.input_reduction);
        let likelihood = self.likelihood()?;
        let inputs = self.arranged(&self.train.inputs);
        let noise = settings.noise();
        Model::new(
            architecture,
            noise,
            &inputs,
            targets,
            test_inputs,
            reduction,
        )
        .map(|model| model.with_likelihood(likelihood))
        .map_err(Failure::request)
    }

    /// The likelihood of the training targets.
    ///
    /// # Errors
    /// A wrong request: targets of another kind.
    pub(crate) fn likelihood(&self) -> Result<Arc<dyn Likelihood>, Failure> {
        let settings = &self.settings.model;
        settings
            .likelihood()
            .of_targets(&self.train.targets, settings.likelihood_parameters())
            .map_err(Failure::request)
    }

    fn joined_choices(&self) -> Option<String> {
        (!self.choices.is_empty()).then(|| self.choices.join("; "))
    }

    /// What a user should know of the data, and what was chosen for them.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        self.description
            .notes()
            .into_iter()
            .chain(self.joined_choices())
            .chain(self.settings.model.note())
    }

    /// Writes training and test targets in their own units.
    ///
    /// # Errors
    /// A disk that refuses.
    pub(crate) fn write_targets(&self, store: &DrawStore) -> Result<(), Failure> {
        let write = |group: &str, targets: &Targets| match targets {
            Targets::Real { values, .. } => store.write_static(group, "y", Values::F64(values)),
            Targets::Classes { labels, .. } => {
                let labels: Vec<i64> = labels.iter().map(|&label| i64::from(label)).collect();
                store.write_static(group, "y", Values::I64(&labels))
            }
        };
        write("observed_data", &self.train.targets).map_err(Failure::run)?;
        if self.description.test_rows > 0 {
            write("predictions_constant_data", &self.test.targets).map_err(Failure::run)?;
        }
        Ok(())
    }

    /// The map of every output of the network back to the target's own units; the identity where it has none.
    pub(crate) fn output_maps(&self) -> Vec<Affine> {
        match self.settings.model.likelihood().has_scale() {
            true => self.description.standardisation.targets.clone(),
            false => vec![Affine::IDENTITY; self.architecture.outputs],
        }
    }
}

/// Refuses targets that are no counts, of rows that train and of rows that test, by what a user can look for.
fn check_counts(targets: &Targets) -> Result<(), Failure> {
    let Targets::Real { values, names } = targets else {
        return Err(Failure::request(
            "the poisson likelihood is of counts (0, 1, 2, …), and the targets are classes: leave --likelihood out, or say --task regression if they are counts",
        ));
    };
    let is_count = |y: f64| y >= 0.0 && y.fract() == 0.0 && y.is_finite();
    match values.iter().position(|&y| !is_count(y)) {
        Some(at) => Err(Failure::request(format!(
            "the poisson likelihood is of counts (0, 1, 2, …), and `{}` has {} in a row: correct it, or leave that row or --likelihood out",
            names[at % names.len()],
            values[at]
        ))),
        None => Ok(()),
    }
}
