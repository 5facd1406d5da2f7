//! Predictions of a run for new inputs.

use reprior::metrics::Mixture;
use reprior::metrics::detection::UncertaintyScore;
use reprior::model::dataset::{InputKind, InputValues, Targets};
use reprior_io::run::Files;

use crate::by_target::{ByTarget, TargetMetrics};
use crate::failure::{Failure, name_of};
use crate::method::family;
use crate::predictive::{Gatherer, Metrics, PredictionKind, PredictiveDraws, SMALLEST_VARIANCE};
use crate::problem::{DataDescription, Problem};
use crate::read::{Detector, Recorded};
use crate::record::POSITIONS;
use crate::run::prepare_from;
use crate::settings::Settings;

/// A run that predicts.
pub struct Predictor {
    pub(crate) run: Recorded,
    pub(crate) problem: Problem,
}

/// What is asked of predictions besides themselves.
#[derive(Debug, Clone, Copy, Default)]
pub struct PredictionRequest {
    /// Whether the observation noise is left out: the uncertainty of the function itself.
    pub without_noise: bool,
    /// Whether a score of uncertainty is to tell the inputs from the test rows.
    pub detect: Option<UncertaintyScore>,
}

/// How well a score of uncertainty tells inputs from the run's own test rows.
pub struct Told {
    /// Areas and rates.
    pub detection: reprior::metrics::detection::Detection,
    /// Test rows that were compared with.
    pub test_rows: usize,
}

/// What was found over all inputs.
pub struct PredictionReport {
    /// Against the targets, where they are known.
    pub metrics: Option<Metrics>,
    /// The same of every target by itself, where there are several.
    pub metrics_by_target: Vec<TargetMetrics>,
    /// A reliability table as CSV, of classes that are known.
    pub reliability: Option<String>,
    /// Where it was asked for.
    pub told: Option<Told>,
    /// Predictive variances that rounding made negative, set to 0.
    pub clamped: u64,
    /// Distributions that each row's prediction is a mixture of: draws, or fits in closed form.
    pub components: usize,
}

/// Predictions for some rows.
pub struct PredictedRows(PredictiveDraws);

impl Recorded {
    /// The test targets; none without test rows or draws, or where the rows in their place train (`--watch`).
    ///
    /// # Errors
    /// A run that cannot be read.
    pub fn test_targets(&self) -> Result<Option<Targets>, Failure> {
        match self.draws == 0 || self.description.test_rows == 0 || self.tests_nothing() {
            true => Ok(None),
            false => self.truth().map(Some),
        }
    }

    /// The recorded predictions for the test rows, noise included, some rows at a time: the first row, and the predictions.
    ///
    /// # Errors
    /// A run that cannot be read; what `each` says.
    pub fn for_each_prediction(
        &self,
        mut each: impl FnMut(usize, &PredictedRows) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.for_each_predicting(|start, block, _| each(start, &PredictedRows(block.clone())))
    }
}

/// The predictive distribution of one output of one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PredictedOutput {
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub sd: f64,
    /// 5 %, 50 % and 95 % quantiles.
    pub quantiles: [f64; 3],
}

impl PredictedRows {
    /// Of draws whose variances are without noise, with the squared noise scales of each of them, or of their functions.
    pub(crate) fn of(mut block: PredictiveDraws, noise: Option<&[f64]>) -> Self {
        if let Some(noise) = noise {
            block.add_noise(noise);
            return Self(block);
        }
        // where rows have noise of their own the variance is that alone
        if block.kind.has_row_noise() {
            block.variance.fill(0.0);
        }
        Self(block.without_noise())
    }

    /// More draws for the same rows.
    pub fn append(&mut self, mut more: Self) {
        self.0.mean.append(&mut more.0.mean);
        self.0.variance.append(&mut more.0.variance);
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.rows
    }

    /// Draws that each is predicted by.
    pub fn draws(&self) -> usize {
        self.0.draws()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.rows == 0
    }

    /// Class probabilities, rows x classes.
    pub fn probabilities(&self) -> Vec<f64> {
        self.0.class_probabilities()
    }

    /// Logarithms of class probabilities, rows x classes.
    pub fn log_probabilities(&self) -> Vec<f64> {
        self.0.class_log_probabilities()
    }

    /// Of real targets: mean and standard deviation of one output of one row, in the target's own units.
    ///
    /// # Errors
    /// Predictions that are not numbers.
    pub fn moments(&self, row: usize, output: usize) -> Result<[f64; 2], Failure> {
        let (means, variances) = self.0.components(row, output);
        let mixture = Mixture::new(self.0.family(), &means, &variances).map_err(Failure::run)?;
        Ok([mixture.mean(), mixture.variance().sqrt()])
    }

    /// Of real targets: means and standard deviations of all rows, rows x outputs, in the targets' own units.
    ///
    /// # Errors
    /// Predictions that are not numbers.
    pub fn all_moments(&self) -> Result<(Vec<f64>, Vec<f64>), Failure> {
        let all = self.cells().map(|(row, output)| self.moments(row, output));
        let all = all.collect::<Result<Vec<_>, _>>()?;
        Ok(all.into_iter().map(|[mean, sd]| (mean, sd)).unzip())
    }

    /// Of real targets: quantiles of all rows, rows x outputs x probabilities, in the targets' own units.
    ///
    /// # Errors
    /// Predictions that are not numbers.
    pub fn all_quantiles(&self, probabilities: &[f64]) -> Result<Vec<f64>, Failure> {
        let all = self
            .cells()
            .map(|(row, output)| self.quantiles(row, output, probabilities));
        Ok(all.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Every output of every row.
    fn cells(&self) -> impl Iterator<Item = (usize, usize)> {
        let outputs = self.0.outputs;
        (0..self.0.rows).flat_map(move |row| (0..outputs).map(move |output| (row, output)))
    }

    /// Of real targets: quantiles of one output of one row, at probabilities between 0 and 1, in the target's own units.
    ///
    /// # Errors
    /// Predictions that are not numbers.
    pub fn quantiles(
        &self,
        row: usize,
        output: usize,
        probabilities: &[f64],
    ) -> Result<Vec<f64>, Failure> {
        let (means, variances) = self.0.components(row, output);
        let mixture = Mixture::new(self.0.family(), &means, &variances).map_err(Failure::run)?;
        let quantiles = probabilities.iter().map(|&p| mixture.quantile(p));
        Ok(quantiles.collect())
    }

    /// Of real targets: the logarithm of the predictive density (of counts the probability) of the rows' true values, all outputs of a row
    /// together; `truth` is rows x outputs.
    ///
    /// # Errors
    /// Predictions that are not numbers; a truth of another length.
    pub fn log_densities(&self, truth: &[f64]) -> Result<Vec<f64>, Failure> {
        let (block, width) = (&self.0, self.0.rows * self.0.outputs);
        let floor = |v: &f64| v.max(SMALLEST_VARIANCE);
        let variance: Vec<f64> = block.variance.iter().map(floor).collect();
        let means = block.mean.chunks_exact(width.max(1));
        let draws = means.zip(variance.chunks_exact(width.max(1)));
        let found = block.family().mixture_nlls(draws, truth, block.outputs);
        let found = found.map_err(Failure::run)?;
        Ok(found.into_iter().map(|nll| -nll).collect())
    }

    /// Of real targets: one output of one row, in the target's own units.
    ///
    /// # Errors
    /// Predictions that are not numbers.
    pub fn output(&self, row: usize, output: usize) -> Result<PredictedOutput, Failure> {
        let (means, variances) = self.0.components(row, output);
        let mixture = Mixture::new(self.0.family(), &means, &variances).map_err(Failure::run)?;
        Ok(PredictedOutput {
            mean: mixture.mean(),
            sd: mixture.variance().sqrt(),
            quantiles: [0.05, 0.5, 0.95].map(|p| mixture.quantile(p)),
        })
    }
}

impl Predictor {
    /// Of a run, in a folder or in memory.
    ///
    /// # Errors
    /// A wrong request: not a run, no positions yet, data that have changed.
    pub fn of(run: impl Into<Files>) -> Result<Self, Failure> {
        let run = Recorded::of(run)?;
        if let Some(lacking) = run.lacks_positions() {
            return Err(Failure::Request(lacking));
        }
        let problem = prepare_from(run.settings.clone(), Some(&run.files))?;
        if problem.description.fingerprint != run.description.fingerprint {
            return Err(Failure::request(format!(
                "the data at `{}` are not those that `{}` was made with; predictions need them",
                problem.settings.data.source,
                name_of(&run.files)
            )));
        }
        // a line that is missing in `config.toml` is a default again, which the draws need not be of
        let plan = family(problem.settings.sampler.method()).plan(&problem)?;
        let checked = run.reader.check(&plan.schema);
        checked.map_err(Failure::request)?;
        Ok(Self { run, problem })
    }

    /// What the data were.
    pub fn description(&self) -> &DataDescription {
        &self.run.description
    }

    /// The settings of its run.
    pub fn settings(&self) -> &Settings {
        &self.run.settings
    }

    /// Draws that predictions are made of, and how many of each chain; none of a posterior in closed form.
    pub fn draws(&self) -> Option<[u64; 2]> {
        let mut groups = self.run.reader.groups();
        let of_each = groups.find(|group| group.name == POSITIONS)?.draws?;
        Some([of_each * self.run.reader.chains(), of_each])
    }

    /// Whether some chains have more draws among those that predict than others, by stacking.
    ///
    /// # Errors
    /// A run that cannot be read.
    pub fn weighs_chains(&self) -> Result<bool, Failure> {
        Ok(self.run.chain_weights()?.is_some())
    }

    /// Predicts for `inputs`, some rows at a time, which `each` is given in order; compares with the truth where it is known.
    ///
    /// # Errors
    /// A wrong request; what `each` says.
    pub fn predict(
        &self,
        inputs: &InputValues,
        truth: Option<&Targets>,
        request: PredictionRequest,
        mut each: impl FnMut(&PredictedRows) -> Result<(), Failure>,
    ) -> Result<PredictionReport, Failure> {
        let problem = &self.problem;
        if request.without_noise && problem.kind() == PredictionKind::Probabilities {
            return Err(Failure::request(format!(
                "--no-noise has no meaning for class probabilities under the {} likelihood: leave it out",
                problem.settings.model.likelihood()
            )));
        }
        let mut gatherer = Gatherer::default();
        let mut by_target = ByTarget::default();
        let detector = request.detect;
        let detector = detector.map(|score| Detector::new(score, &self.run));
        let mut detector = detector.transpose()?;
        let family = family(problem.settings.sampler.method());
        let mut predictor = family.predictor(problem, &self.run)?;
        let (mut clamped, mut components) = (0, 0);
        let values = problem.arranged(inputs);
        let columns = problem.description.columns;
        let together = predictor.rows_together();
        for (index, part) in values.chunks(together * columns).enumerate() {
            let found = predictor.predict(part)?;
            let mut block = found.block;
            if let Some(row) = block.row_without_numbers() {
                return Err(Failure::request(format!(
                    "row {} of the new inputs has no prediction: its numbers are too large to be computed with; correct it, or leave it out",
                    index * together + row + 1
                )));
            }
            clamped += found.clamped;
            components = block.draws();
            let functions = request
                .without_noise
                .then(|| PredictedRows::of(block.clone(), None));
            block.add_noise(&found.noise);
            if let Some(detector) = &mut detector {
                // the draws for the test rows are what it compares with
                match predictor.by_draws(part)? {
                    Some(draws) => detector.add(&draws.block)?,
                    None => detector.add(&block)?,
                }
            }
            if let Some(truth) = truth {
                gatherer.add(&block, truth, index * together)?;
                by_target.add(&block, truth, index * together)?;
            }
            each(&functions.unwrap_or(PredictedRows(block)))?;
        }
        let told = detector.map(|detector| {
            let (detection, test_rows) = detector.finish(&self.run)?;
            Ok::<_, Failure>(Told {
                detection,
                test_rows,
            })
        });
        Ok(PredictionReport {
            reliability: gatherer.reliability()?,
            metrics: gatherer.finish()?,
            metrics_by_target: by_target.finish(),
            told: told.transpose()?,
            clamped,
            components,
        })
    }
}

/// Images rotated counter-clockwise by `degrees`.
///
/// # Errors
/// A wrong request: no images, or an angle that is not finite.
pub fn rotated(
    values: &InputValues,
    kind: InputKind,
    degrees: f64,
) -> Result<InputValues, Failure> {
    let InputKind::Image {
        height,
        width,
        channels,
    } = kind
    else {
        return Err(Failure::request(
            "--rotate is for images, and the data are a table: leave it out",
        ));
    };
    if !degrees.is_finite() {
        return Err(Failure::request(format!(
            "--rotate is {degrees}: it must be a number of degrees"
        )));
    }
    Ok(values.rotated([height, width, channels], degrees))
}
