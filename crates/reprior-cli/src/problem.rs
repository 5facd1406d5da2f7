//! Data and network made of settings: loaded, standardised, coded; and `data.json`, which says what they were.

use std::path::Path;
use std::sync::Arc;

use reprior::compute::Real;
use reprior::gaussian_process::Covariance;
use reprior::model::likelihood::{Likelihood, LikelihoodName};
use reprior::model::{
    Affine, Dataset, InputKind, InputScaling, InputValues, Model, PixelScaling, Split,
    Standardisation, Targets,
};
use reprior::network::Architecture;
use reprior::posterior::Coordinates;
use reprior::stochastic::Layout;
use reprior_io::data::{BUILT_INS, ExpectedInputs, ExpectedTargets, load, target_columns};
use reprior_io::run::{DrawStore, Values};
use serde::{Deserialize, Serialize};

use crate::budget::Sizes;
use crate::error::Failure;
use crate::evidence::choose;
use crate::keeping::Load;
use crate::minibatch::{self, GivenWeights, Resolved};
use crate::model_settings::ModelSettings;
use crate::names::Precision;
use crate::network::arrange;
use crate::precision;
use crate::predictive::Kind;
use crate::settings::Settings;
use crate::stored::Stored;

/// What `data.json` holds: enough to read new inputs and to give predictions in the data's own units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataDescription {
    /// Table or image.
    pub kind: InputKind,
    /// Values per record.
    pub columns: usize,
    /// Names of the input columns; empty for images.
    pub column_names: Vec<String>,
    /// Columns of a CSV file that were predicted; empty for other sources.
    pub target_columns: Vec<String>,
    /// Whether the targets are classes.
    pub is_classification: bool,
    /// Names of outputs or classes.
    pub output_names: Vec<String>,
    /// Training rows.
    pub train_rows: usize,
    /// Test rows.
    pub test_rows: usize,
    /// Means and scales of inputs and targets.
    pub standardisation: Standardisation,
    /// Hash of all records, so that a run does not go on with other data.
    pub fingerprint: String,
}

/// Bytes of a run folder's metadata and settings, roughly.
const METADATA_BYTES: usize = 200_000;
/// Test images recorded unless told otherwise.
const DEFAULT_TEST_IMAGES: usize = 1000;

/// A problem ready to be sampled.
pub struct Problem {
    /// With every default written out.
    pub settings: Settings,
    pub description: DataDescription,
    pub architecture: Architecture,
    /// In their own units.
    pub train: Dataset,
    pub test: Dataset,
    /// What `auto` in the settings became, in words.
    pub choice: Option<String>,
    /// Of a method by minibatches.
    pub minibatch: Option<Resolved>,
    /// Coded column-major training targets.
    pub targets: Vec<f64>,
    /// That chains begin at, where a file gives them.
    pub weights: Option<GivenWeights>,
}

impl Problem {
    /// Loads and standardises.
    ///
    /// # Errors
    /// A wrong request: data that cannot be used.
    pub fn load(mut settings: Settings) -> Result<Self, Failure> {
        let mut request = settings.request();
        if !BUILT_INS.contains(&request.source.as_str())
            && let Ok(path) = Path::new(&request.source).canonicalize()
        {
            // a run can be resumed from another folder
            request.source = path.to_string_lossy().into_owned();
            settings.data.source.clone_from(&request.source);
        }
        let target_columns = target_columns(&request).map_err(Failure::request)?;
        let Split { train, mut test } = load(&request).map_err(Failure::request)?;
        check_targets(&settings.data.source, [&train.targets, &test.targets])?;
        if settings.data.test.is_none() && matches!(test.kind, InputKind::Image { .. }) {
            test = test.slice(0..test.rows.min(DEFAULT_TEST_IMAGES));
        }
        settings.data.train = Some(train.rows);
        settings.data.test = Some(test.rows);
        if !target_columns.is_empty() {
            settings.data.target = Some(target_columns.clone());
        }
        settings.resolve();
        settings.model.check_targets(&train.targets)?;
        let outputs = settings.model.likelihood.outputs(&train.targets);
        let reduction = settings.sampler.input_reduction;
        let architecture = |model: &ModelSettings| {
            model.architecture(train.kind, train.columns, outputs, reduction)
        };
        let mut network = architecture(&settings.model)?;
        let pixels = settings.data.pixels;
        if pixels == PixelScaling::Unit && train.kind == InputKind::Table {
            return Err(Failure::request(
                "--pixels is of images, and the data are a table: leave it out",
            ));
        }
        let standardisation = Standardisation::fit_with(&train, pixels);
        let is_classification = matches!(train.targets, Targets::Classes { .. });
        let description = DataDescription {
            kind: train.kind,
            columns: train.columns,
            column_names: train.column_names.clone(),
            target_columns,
            is_classification,
            output_names: train.targets.names().to_vec(),
            train_rows: train.rows,
            test_rows: test.rows,
            fingerprint: fingerprint(&[&train, &test]),
            standardisation,
        };
        let standardisation = &description.standardisation;
        let targets = settings
            .model
            .likelihood
            .code(&train.targets, standardisation);
        let covariance = settings.sampler.method.covariance();
        let choice = if settings.model.is_automatic() {
            let inputs = standardisation.standardise_inputs(&train.inputs);
            let inputs = arrange(&network, train.kind, inputs);
            let covariance = covariance.unwrap_or(Covariance::Nngp);
            choose(&mut settings.model, &network, covariance, &inputs, &targets)?
        } else {
            None
        };
        if choice.is_some() {
            network = architecture(&settings.model)?;
        }
        let choice = match (choice, precision::choose(&mut settings, &network)) {
            (Some(first), Some(second)) => Some(format!("{first}; {second}")),
            (first, second) => first.or(second),
        };
        let weights = GivenWeights::read(&mut settings, &mut network)?;
        let minibatch = minibatch::resolve(&mut settings, &network, train.rows)?;
        if minibatch.is_none() {
            let sizes = Sizes::new(&settings, network.clone(), train.rows, test.rows);
            if settings.coordinates() == Coordinates::Tangent && covariance.is_none() {
                settings.sampler.determinant = Some(settings.determinant(sizes.dimension()));
            }
            if covariance.is_none() {
                let parameters = sizes
                    .inner_parameters()
                    .saturating_add(network.readout_parameters());
                let numbers = [sizes.kept_numbers(), parameters];
                load_of(&settings, &description, numbers).resolve(&mut settings);
            }
        } else {
            let parameters = Layout::new(&network.to_composition()).len();
            load_of(&settings, &description, [parameters; 2]).resolve(&mut settings);
        }
        Ok(Self {
            targets,
            weights,
            choice,
            minibatch,
            train,
            test,
            architecture: network,
            description,
            settings,
        })
    }

    /// Row-major inputs of a data set or of new records: standardised, pixels in the order that the network takes them.
    pub fn arranged<R: Real>(&self, inputs: &InputValues) -> Vec<R> {
        let standardisation = &self.description.standardisation;
        let inputs = standardisation.standardise_inputs(inputs);
        arrange(&self.architecture, self.description.kind, inputs)
    }

    /// The model, for predictions at the given standardised inputs.
    ///
    /// # Errors
    /// A wrong request: something out of range.
    pub fn model<R: Stored>(&self, test_inputs: &[f64]) -> Result<Model<R>, Failure> {
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
    pub fn likelihood(&self) -> Result<Arc<dyn Likelihood>, Failure> {
        let settings = &self.settings.model;
        settings
            .likelihood
            .of_targets(&self.train.targets, settings.degrees_of_freedom())
            .map_err(Failure::request)
    }

    /// What a user should know of the data, and what was chosen for them.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        self.description
            .notes()
            .into_iter()
            .chain(self.choice.clone())
            .chain(self.settings.model.note())
    }

    /// Writes training and test targets in their own units.
    ///
    /// # Errors
    /// A disk that refuses.
    pub fn write_targets(&self, store: &DrawStore) -> Result<(), Failure> {
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
    pub fn output_maps(&self) -> Vec<Affine> {
        match self.settings.model.likelihood.has_scale() {
            true => self.description.standardisation.targets.clone(),
            false => vec![Affine::IDENTITY; self.architecture.outputs],
        }
    }
}

impl DataDescription {
    /// What new inputs must look like.
    pub fn expected_inputs(&self) -> ExpectedInputs {
        let names = self.output_names.clone();
        let targets = if self.is_classification {
            ExpectedTargets::Classes {
                column: self.target_columns.first().cloned(),
                names,
            }
        } else {
            ExpectedTargets::Real { names }
        };
        ExpectedInputs {
            kind: self.kind,
            columns: self.columns,
            column_names: self.column_names.clone(),
            targets: Some(targets),
        }
    }

    /// Refuses a description that contradicts itself.
    ///
    /// # Errors
    /// A wrong request: `data.json` of the folder `run` is damaged.
    pub fn check(&self, run: &Path) -> Result<(), Failure> {
        let standardisation = &self.standardisation;
        let (inputs, columns) = match (&standardisation.inputs, self.kind) {
            (InputScaling::Columns(maps), InputKind::Table) => (maps.len(), self.columns),
            (
                InputScaling::Pixels(_),
                InputKind::Image {
                    height,
                    width,
                    channels,
                },
            ) => {
                let pixels = height
                    .checked_mul(width)
                    .and_then(|all| all.checked_mul(channels));
                (pixels.unwrap_or(0), self.columns)
            }
            _ => (0, 1),
        };
        let outputs = self.output_names.len();
        let is_sound = inputs == columns
            && columns > 0
            && outputs > 0
            && (self.column_names.is_empty() || self.column_names.len() == columns)
            && standardisation.targets.len() == outputs
            && standardisation
                .constant_columns
                .iter()
                .all(|&column| column < columns)
            && standardisation
                .constant_targets
                .iter()
                .all(|&output| output < outputs);
        if is_sound {
            return Ok(());
        }
        Err(Failure::request(format!(
            "`{}` is damaged: the numbers of columns, outputs and scales in it contradict each other",
            run.join("data.json").display()
        )))
    }

    /// One line on what the data are.
    pub fn in_words(&self) -> String {
        let targets = match (self.is_classification, self.output_names.as_slice()) {
            (true, names) => format!("{} classes", names.len()),
            (false, [one]) => format!("target {one}"),
            (false, names) => format!("{} targets", names.len()),
        };
        let inputs = match self.kind {
            InputKind::Table => format!("{} columns", self.columns),
            InputKind::Image {
                height,
                width,
                channels,
            } => format!("images {height} x {width} x {channels}"),
        };
        format!(
            "{} training rows, {} test rows, {inputs}, {targets}",
            self.train_rows, self.test_rows
        )
    }

    /// Says no more which columns do not vary.
    pub fn leave_notes_out(&mut self) {
        self.standardisation.constant_columns.clear();
        self.standardisation.constant_targets.clear();
    }

    /// What a user should know about columns that do not vary.
    pub fn notes(&self) -> Vec<String> {
        let names = |columns: &[usize], all: &[String]| {
            let known = columns.iter().filter_map(|&column| all.get(column));
            known
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let standardisation = &self.standardisation;
        let mut notes = Vec::new();
        if !standardisation.constant_columns.is_empty() {
            let list = names(&standardisation.constant_columns, &self.column_names);
            notes.push(format!(
                "input columns that do not vary over the training rows: {list}"
            ));
        }
        if !standardisation.constant_targets.is_empty() {
            let list = names(&standardisation.constant_targets, &self.output_names);
            notes.push(format!(
                "targets that do not vary over the training rows: {list}"
            ));
        }
        notes
    }
}

/// The largest target: squares of larger ones overflow.
const MOST_TARGET: f64 = 1e150;

/// Refuses targets that nothing can be learned from, or that are too large to be computed with.
fn check_targets(source: &str, sets: [&Targets; 2]) -> Result<(), Failure> {
    if let Targets::Classes { names, .. } = sets[0]
        && let [only] = names.as_slice()
    {
        return Err(Failure::request(format!(
            "the target of `{source}` has a single class, `{only}`: there is nothing to tell apart; choose another --target, or give records of the other classes as well"
        )));
    }
    for targets in sets {
        let Targets::Real { values, names } = targets else {
            continue;
        };
        let too_large = values.iter().position(|value| value.abs() > MOST_TARGET);
        if let Some(at) = too_large {
            return Err(Failure::request(format!(
                "target `{}` of `{source}` has the value {:e}, and targets beyond {MOST_TARGET:e} cannot be computed with: give the column in a larger unit, or correct the value",
                names[at % names.len()],
                values[at]
            )));
        }
    }
    Ok(())
}

/// Bytes of what a run records, with so many numbers of a kept position and parameters of the network.
fn load_of(
    settings: &Settings,
    description: &DataDescription,
    [position, parameters]: [usize; 2],
) -> Load {
    let real: usize = match settings.sampler.precision {
        Precision::Auto | Precision::F32 => 4,
        Precision::F64 => 8,
    };
    let (rows, outputs) = (description.test_rows, description.output_names.len());
    let kind = Kind::new(&settings.model, description.is_classification);
    let number = if description.is_classification { 4 } else { 8 };
    let spread = if kind.has_function_variance() {
        kind.spread(outputs)
    } else {
        0
    };
    let schedule = settings.schedule();
    // projections, statistics and a few numbers more of each draw; moments of the weights
    let draws = schedule.draws.saturating_add(schedule.warmup_records());
    let of_draws = draws.saturating_mul(8 * (settings.record.projections as u64 + 16));
    let of_chain = of_draws.saturating_add((parameters as u64).saturating_mul(8));
    let of_modes = match settings.sampler.method.minibatch() {
        Some(method) if settings.laplace.is_linearised(method) => real.saturating_mul(parameters),
        _ => 0,
    };
    let targets = 8 * outputs * (description.train_rows + rows);
    Load {
        position: real.saturating_mul(position) as u64,
        prediction: (number * rows * (outputs + spread)) as u64,
        trace: number as u64,
        rest: of_chain
            .saturating_add(of_modes as u64)
            .saturating_mul(schedule.chains as u64)
            .saturating_add((targets + METADATA_BYTES) as u64),
        is_marginal: settings.sampler.method.minibatch().is_none()
            && settings.model.likelihood == LikelihoodName::Gaussian,
        test_rows: rows,
        outputs,
    }
}

/// FNV-1a over every number of the records.
pub fn fingerprint(sets: &[&Dataset]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |word: u64| {
        hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        hash ^= hash >> 29;
    };
    for set in sets {
        add(set.rows as u64);
        set.inputs.iter().for_each(|x| add(x.to_bits()));
        match &set.targets {
            Targets::Real { values, .. } => values.iter().for_each(|y| add(y.to_bits())),
            Targets::Classes { labels, .. } => {
                labels.iter().for_each(|&label| add(u64::from(label)))
            }
        }
    }
    format!("{hash:016x}")
}
