//! Draws of predictions for a block of rows, and what is made of them: mixtures, class probabilities, metrics.

use reprior::compute::kernels::LogSum;
use reprior::metrics::{ClassPredictions, Mixture, PredictiveFamily, ReliabilityBin};
use reprior::model::dataset::Targets;
use reprior::model::likelihood::Likelihood;
use reprior::model::standardisation::Affine;
use reprior::model::targets;
use serde::Serialize;

use crate::failure::Failure;
use crate::settings::ModelSettings;

/// Bins of the calibration errors.
const BINS: usize = 15;

/// Variables of what draws predict.
const MEAN: &str = "mean";
const LOG_PROBABILITY: &str = "log_probability";

/// What a draw predicts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PredictionKind {
    /// Class codes e_c − 1/C, Gaussian, with one variance per row.
    Codes,
    /// Class probabilities, kept as their logarithms: single precision knows none below 1e-45.
    Probabilities,
    /// A member of a family for every output.
    Real(PredictiveFamily),
    /// The same, with a scale of every row's own, which is all that a draw's variances are.
    RealByRow(PredictiveFamily),
}

impl PredictionKind {
    /// Of a run's draws.
    pub fn new(settings: &ModelSettings, is_classification: bool) -> Self {
        let likelihood = settings.likelihood();
        match likelihood.family(settings.degrees_of_freedom()) {
            Some(_) if is_classification => Self::Codes,
            Some(family) if likelihood.has_row_noise() => Self::RealByRow(family),
            Some(family) => Self::Real(family),
            None => Self::Probabilities,
        }
    }

    /// The family of real targets; none of classes.
    pub fn family_of_real(self) -> Option<PredictiveFamily> {
        match self {
            Self::Real(family) | Self::RealByRow(family) => Some(family),
            Self::Codes | Self::Probabilities => None,
        }
    }

    /// Whether targets are classes.
    pub fn is_of_classes(self) -> bool {
        self.family_of_real().is_none()
    }

    /// Whether rows have noise of their own.
    pub fn has_row_noise(self) -> bool {
        matches!(self, Self::RealByRow(_))
    }

    /// Whether a row has a variance given a draw, which is recorded: of its function, or of its own noise.
    pub fn has_variance(self) -> bool {
        self == Self::Codes || self == Self::Real(PredictiveFamily::NORMAL) || self.has_row_noise()
    }

    /// Name of the variable that what draws predict is stored in.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Probabilities => LOG_PROBABILITY,
            _ => MEAN,
        }
    }

    /// What users know a predicted number as: of logarithms the probability.
    pub fn shown(self, predicted: f64) -> f64 {
        match self {
            Self::Probabilities => predicted.exp(),
            _ => predicted,
        }
    }

    /// Appends what a draw predicts for one row with these outputs, in the target's own units; of classes the logarithms of
    /// their probabilities.
    pub fn push_mean(
        self,
        likelihood: &dyn Likelihood,
        maps: &[Affine],
        outputs: impl Iterator<Item = f64>,
        mean: &mut Vec<f64>,
    ) {
        if self == Self::Probabilities {
            let outputs: Vec<f64> = outputs.collect();
            likelihood.log_probabilities(&outputs, mean);
            return;
        }
        let start = mean.len();
        mean.extend(outputs);
        likelihood.mean(&mut mean[start..]);
        // outputs beyond the targets say how large the noise is
        mean.truncate(start + maps.len());
        for (mean, map) in mean[start..].iter_mut().zip(maps) {
            *mean = map.restore(*mean);
        }
    }

    /// Appends the σ of each target of one row, in its own units, where it is another for every row; whether it is.
    pub fn push_row_noise(
        likelihood: &dyn Likelihood,
        maps: &[Affine],
        [outputs, scales]: [&[f64]; 2],
        noise: &mut Vec<f64>,
    ) -> bool {
        let start = noise.len();
        let is_own = likelihood.row_noise(outputs, scales, noise);
        for (sigma, map) in noise[start..].iter_mut().zip(maps) {
            *sigma *= map.scale;
        }
        is_own
    }

    /// Numbers of a row's variance.
    pub fn spread(self, outputs: usize) -> usize {
        match self {
            Self::Codes => 1,
            Self::Probabilities => 0,
            Self::Real(_) | Self::RealByRow(_) => outputs,
        }
    }
}

/// Means and squared scales of every draw for some rows, in the target's own units.
#[derive(Clone)]
pub struct PredictiveDraws {
    pub kind: PredictionKind,
    pub rows: usize,
    /// Outputs, or classes.
    pub outputs: usize,
    /// draws × rows × outputs; of [`PredictionKind::Probabilities`] their logarithms.
    pub mean: Vec<f64>,
    /// draws × rows × [`PredictionKind::spread`]; whether noise is included is the maker's choice.
    pub variance: Vec<f64>,
}

/// Variances below this would divide by zero; in the target's own units, which may be small.
pub const SMALLEST_VARIANCE: f64 = 1e-200;

impl PredictiveDraws {
    pub fn draws(&self) -> usize {
        self.mean.len() / (self.rows * self.outputs).max(1)
    }

    /// The first row for which some draw predicts what is no number.
    pub fn row_without_numbers(&self) -> Option<usize> {
        // the logarithm of a probability may be −∞
        let is_number = |x: &f64| match self.kind.is_of_classes() {
            true => !x.is_nan(),
            false => x.is_finite(),
        };
        let first = |values: &[f64], each: usize| {
            let draws = values.chunks((self.rows * each).max(1));
            let of_draws = draws.filter_map(|draw| draw.iter().position(|x| !is_number(x)));
            of_draws.min().map(|at| at / each.max(1))
        };
        let spread = self.kind.spread(self.outputs);
        let rows = [
            first(&self.mean, self.outputs),
            first(&self.variance, spread),
        ];
        rows.into_iter().flatten().min()
    }

    /// Means of one draw for one row, and its variance (1 where it has none).
    pub fn of_draw(&self, draw: usize, row: usize) -> (&[f64], f64) {
        let at = draw * self.rows + row;
        let variance = self.variance.get(at * self.kind.spread(self.outputs));
        (
            &self.mean[at * self.outputs..(at + 1) * self.outputs],
            variance.map_or(1.0, |v| v.max(SMALLEST_VARIANCE)),
        )
    }

    /// Adds the squared noise scales of each draw (draws × [`PredictionKind::spread`]) to the variances of all its rows.
    pub fn add_noise(&mut self, noise: &[f64]) {
        let spread = self.kind.spread(self.outputs);
        if spread == 0 {
            return;
        }
        for (rows, noise) in self
            .variance
            .chunks_exact_mut(self.rows * spread)
            .zip(noise.chunks_exact(spread))
        {
            for row in rows.chunks_exact_mut(spread) {
                for (variance, noise) in row.iter_mut().zip(noise) {
                    *variance += noise;
                }
            }
        }
    }

    /// The same without observation noise: for a function that a draw determines, a Gaussian of hardly any variance.
    pub fn without_noise(mut self) -> Self {
        if !self.kind.is_of_classes() {
            self.kind = PredictionKind::Real(PredictiveFamily::NORMAL);
        }
        self
    }

    /// Means and variances over draws of one output of one row.
    pub fn components(&self, row: usize, output: usize) -> (Vec<f64>, Vec<f64>) {
        let width = self.rows * self.outputs;
        let at = row * self.outputs + output;
        let pick = |values: &[f64]| {
            (0..self.draws())
                .map(|draw| values[draw * width + at])
                .collect()
        };
        let mut variances: Vec<f64> = pick(&self.variance);
        variances
            .iter_mut()
            .for_each(|v| *v = v.max(SMALLEST_VARIANCE));
        (pick(&self.mean), variances)
    }

    /// Family of the draws of real targets.
    pub fn family(&self) -> PredictiveFamily {
        let of_real = self.kind.family_of_real();
        of_real.unwrap_or(PredictiveFamily::NORMAL)
    }

    /// Logarithms of class probabilities, rows × classes, averaged over draws without ever leaving logarithms.
    pub fn class_log_probabilities(&self) -> Vec<f64> {
        let mut all = vec![0.0; self.rows * self.outputs];
        for (row, out) in all.chunks_exact_mut(self.outputs).enumerate() {
            self.log_probabilities_of(row, out);
        }
        all
    }

    /// The same of one row.
    pub fn log_probabilities_of(&self, row: usize, out: &mut [f64]) {
        let draws = (0..self.draws()).map(|draw| self.of_draw(draw, row));
        if self.kind == PredictionKind::Probabilities {
            for (class, out) in out.iter_mut().enumerate() {
                *out = LogSum::of(draws.clone().map(|(mean, _)| mean[class]));
            }
            let total = LogSum::of(out.iter().copied());
            out.iter_mut().for_each(|logarithm| *logarithm -= total);
        } else {
            targets::class_log_probabilities(draws, out);
        }
    }

    /// Class probabilities, rows × classes.
    pub fn class_probabilities(&self) -> Vec<f64> {
        let mut all = self.class_log_probabilities();
        all.iter_mut().for_each(|p| *p = p.exp());
        all
    }
}

/// The probabilities of less than a value and of at most that: the same but for counts.
pub fn jump(mixture: &Mixture<'_>, y: f64, is_discrete: bool) -> [f64; 2] {
    let up_to = mixture.cdf(y);
    let below = match is_discrete {
        true => mixture.cdf(y - 1.0),
        false => up_to,
    };
    [below, up_to]
}

/// Whether a value is within the central 90 % of a predictive distribution; of counts within the 5 % and 95 % quantiles, both included.
pub fn is_covered(mixture: &Mixture<'_>, y: f64, is_discrete: bool) -> bool {
    let [below, up_to] = jump(mixture, y, is_discrete);
    up_to >= 0.05 && below <= 0.95
}

/// Metrics of predictions against the truth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Metrics {
    /// For real targets, in their own units.
    Regression {
        /// Mean over rows of −log of the predictive density (a mixture over draws).
        nll: f64,
        /// Root of the mean over rows of the summed squared errors of the predictive mean.
        rmse: f64,
        /// Share of true values within the central 90 % of the predictive distribution.
        coverage_90: f64,
    },
    /// For classes.
    Classification {
        /// Mean over rows of −log of the probability of the true class, in nats.
        nll: f64,
        /// Share of rows predicted right.
        accuracy: f64,
        /// Mean squared distance of the probabilities from the true class's indicator.
        brier: f64,
        /// Expected calibration error, bins of equal width.
        ece: f64,
        /// Maximum calibration error.
        mce: f64,
        /// Expected calibration error, bins of equal counts.
        ece_adaptive: f64,
        /// Mean probability of the most probable class.
        confidence: f64,
    },
}

/// Metrics gathered block by block.
#[derive(Debug, Default)]
pub struct Gatherer {
    rows: usize,
    squares: f64,
    nll: f64,
    covered: usize,
    values: usize,
    log_probabilities: Vec<f64>,
    labels: Vec<u32>,
    classes: usize,
}

impl Gatherer {
    /// Takes in a block (noise included) whose first row is row `start` of the truth.
    ///
    /// # Errors
    /// Predictions that are not numbers.
    pub fn add(
        &mut self,
        block: &PredictiveDraws,
        truth: &Targets,
        start: usize,
    ) -> Result<(), Failure> {
        let outputs = block.outputs;
        self.rows += block.rows;
        match truth {
            Targets::Classes { labels, .. } => {
                self.classes = outputs;
                self.log_probabilities
                    .extend(block.class_log_probabilities());
                self.labels.extend(&labels[start..start + block.rows]);
            }
            Targets::Real { values, .. } => {
                let truth = &values[start * outputs..(start + block.rows) * outputs];
                let width = block.rows * outputs;
                let floor = |v: &f64| v.max(SMALLEST_VARIANCE);
                let variance: Vec<f64> = block.variance.iter().map(floor).collect();
                let draws = block
                    .mean
                    .chunks_exact(width)
                    .zip(variance.chunks_exact(width));
                let family = block.family();
                let nll = family
                    .mixture_nll(draws, truth, outputs)
                    .map_err(Failure::run)?;
                self.nll += nll * block.rows as f64;
                for row in 0..block.rows {
                    for output in 0..outputs {
                        let (means, variances) = block.components(row, output);
                        let mixture =
                            Mixture::new(family, &means, &variances).map_err(Failure::run)?;
                        let y = truth[row * outputs + output];
                        self.squares += (mixture.mean() - y).powi(2);
                        let is_covered = is_covered(&mixture, y, family.is_discrete());
                        self.covered += usize::from(is_covered);
                        self.values += 1;
                    }
                }
            }
        }
        Ok(())
    }

    fn probabilities(&self) -> Vec<f64> {
        self.log_probabilities.iter().map(|p| p.exp()).collect()
    }

    /// A reliability table of the classes that were gathered, as CSV; none where nothing was.
    ///
    /// # Errors
    /// Probabilities that are none.
    pub fn reliability(&self) -> Result<Option<String>, Failure> {
        if self.rows == 0 || self.classes == 0 {
            return Ok(None);
        }
        let probabilities = self.probabilities();
        let predictions = ClassPredictions::new(&probabilities, &self.labels, self.classes)
            .map_err(Failure::run)?;
        let mut text = "lower,upper,count,confidence,accuracy\n".to_owned();
        for bin in predictions.reliability(BINS) {
            let [lower, upper] = [bin.lower, bin.upper].map(|edge| format!("{edge:.4}"));
            let (confidence, accuracy) = match bin.count {
                0 => (String::new(), String::new()),
                _ => (
                    format!("{:.6}", bin.confidence),
                    format!("{:.6}", bin.accuracy),
                ),
            };
            text += &format!("{lower},{upper},{},{confidence},{accuracy}\n", bin.count);
        }
        Ok(Some(text))
    }

    /// The metrics of everything taken in; `None` without rows.
    ///
    /// # Errors
    /// Predictions that are not probabilities.
    pub fn finish(self) -> Result<Option<Metrics>, Failure> {
        if self.rows == 0 {
            return Ok(None);
        }
        if self.classes == 0 {
            let rows = self.rows as f64;
            return Ok(Some(Metrics::Regression {
                nll: self.nll / rows,
                rmse: (self.squares / rows).sqrt(),
                coverage_90: self.covered as f64 / self.values as f64,
            }));
        }
        let probabilities = self.probabilities();
        let predictions = ClassPredictions::new(&probabilities, &self.labels, self.classes)
            .and_then(|all| all.with_logarithms(&self.log_probabilities))
            .map_err(Failure::run)?;
        let table = predictions.reliability(BINS);
        Ok(Some(Metrics::Classification {
            nll: predictions.nll(),
            accuracy: predictions.accuracy(),
            brier: predictions.brier(),
            ece: ReliabilityBin::expected_calibration_error(&table),
            mce: ReliabilityBin::maximum_calibration_error(&table),
            ece_adaptive: ReliabilityBin::expected_calibration_error(
                &predictions.reliability_adaptive(BINS),
            ),
            confidence: predictions.mean_confidence(),
        }))
    }
}

impl Metrics {
    /// Mean over rows of −log of the predictive density, or of the probability of the true class.
    pub fn nll(&self) -> f64 {
        match *self {
            Self::Regression { nll, .. } | Self::Classification { nll, .. } => nll,
        }
    }

    /// Names and values, in order.
    pub fn named(&self) -> Vec<(&'static str, f64)> {
        match *self {
            Self::Regression {
                nll,
                rmse,
                coverage_90,
            } => {
                vec![
                    ("rmse", rmse),
                    ("negative log-likelihood", nll),
                    ("coverage of 90 % intervals", coverage_90),
                ]
            }
            Self::Classification {
                nll,
                accuracy,
                brier,
                ece,
                ece_adaptive,
                mce,
                confidence,
            } => vec![
                ("accuracy", accuracy),
                ("mean confidence", confidence),
                ("negative log-likelihood", nll),
                ("Brier score", brier),
                ("expected calibration error", ece),
                ("the same, bins of equal counts", ece_adaptive),
                ("maximum calibration error", mce),
            ],
        }
    }
}
