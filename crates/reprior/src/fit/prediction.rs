//! What a fit predicts for new inputs.

use super::FitError;
use super::problem::FitProblem;
use crate::compute::LogSum;
use crate::metrics::{Mixture, PredictiveFamily};

/// What predictions are made of: the records of all kept draws at the same new inputs.
pub(super) struct DrawRecords<'a> {
    pub problem: &'a FitProblem,
    /// New inputs.
    pub rows: usize,
    /// Draw by draw.
    pub draws: Vec<Predictive>,
}

/// The Gaussians that one draw predicts, standardised; of classes the mean alone, the outputs.
#[derive(Default)]
pub(super) struct Predictive {
    /// rows × outputs, column-major.
    pub mean: Vec<f64>,
    /// The function's, as long.
    pub variance: Vec<f64>,
    /// Scale of each output's noise.
    pub noise: Vec<f64>,
}

/// Made of records.
pub trait Predicted: Sized {
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "made by this crate alone")]
    fn of(records: DrawRecords<'_>) -> Result<Self, FitError>;
}

/// The predictive distribution of real targets, in their own units: for each new input and output a mixture of Gaussians, one of
/// each draw.
///
/// What methods return is row-major: rows × outputs.
#[derive(Debug, Clone)]
pub struct Prediction {
    outputs: usize,
    draws: usize,
    /// (rows × outputs) × draws, of the function.
    means: Vec<f64>,
    variances: Vec<f64>,
    /// outputs × draws, of the noise.
    noise: Vec<f64>,
}

impl Predicted for Prediction {
    #[allow(private_interfaces, reason = "made by this crate alone")]
    fn of(records: DrawRecords<'_>) -> Result<Self, FitError> {
        let DrawRecords {
            problem,
            rows,
            draws,
        } = records;
        let (maps, outputs) = (&problem.standardisation.targets, problem.outputs());
        let mut prediction = Self {
            outputs,
            draws: draws.len(),
            means: Vec::with_capacity(rows * outputs * draws.len()),
            variances: Vec::with_capacity(rows * outputs * draws.len()),
            noise: Vec::with_capacity(outputs * draws.len()),
        };
        for row in 0..rows {
            for (output, map) in maps.iter().enumerate() {
                let at = output * rows + row;
                let means = draws.iter().map(|draw| map.restore(draw.mean[at]));
                prediction.means.extend(means);
                let variances = draws
                    .iter()
                    .map(|draw| map.scale.powi(2) * draw.variance[at]);
                prediction.variances.extend(variances);
            }
        }
        for (output, map) in maps.iter().enumerate() {
            let scales = draws.iter().map(|draw| map.scale * draw.noise[output]);
            prediction.noise.extend(scales.map(|scale| scale.powi(2)));
        }
        for cell in 0..rows * outputs {
            let (means, variances) = prediction.components(cell);
            Mixture::new(PredictiveFamily::NORMAL, means, &variances)?;
        }
        Ok(prediction)
    }
}

impl Prediction {
    /// New inputs.
    pub fn rows(&self) -> usize {
        self.means.len() / (self.outputs * self.draws)
    }

    /// Outputs of each.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The same of the function alone, without the noise of observations.
    #[must_use]
    pub fn without_noise(mut self) -> Self {
        self.noise.fill(0.0);
        self
    }

    /// Means.
    pub fn mean(&self) -> Vec<f64> {
        self.of_mixtures(|mixture| mixture.mean())
    }

    /// Standard deviations.
    pub fn sd(&self) -> Vec<f64> {
        self.of_mixtures(|mixture| mixture.variance().sqrt())
    }

    /// Values that lie above this share of the distribution; NaN unless it is in [0, 1].
    pub fn quantile(&self, probability: f64) -> Vec<f64> {
        self.of_mixtures(|mixture| mixture.quantile(probability))
    }

    /// Lower and upper ends of the central interval with this share of the distribution, such as 0.9.
    pub fn interval(&self, mass: f64) -> Vec<[f64; 2]> {
        let tail = 0.5 * (1.0 - mass);
        self.of_mixtures(|mixture| [tail, 1.0 - tail].map(|p| mixture.quantile(p)))
    }

    fn components(&self, cell: usize) -> (&[f64], Vec<f64>) {
        let own = cell * self.draws..(cell + 1) * self.draws;
        let output = cell % self.outputs;
        let noise = &self.noise[output * self.draws..(output + 1) * self.draws];
        let pairs = self.variances[own.clone()].iter().zip(noise);
        // a function that the data determine has none
        let variances = pairs.map(|(own, noise)| (own + noise).max(f64::MIN_POSITIVE));
        (&self.means[own], variances.collect())
    }

    fn of_mixtures<T>(&self, statistic: impl Fn(&Mixture<'_>) -> T) -> Vec<T> {
        let cells = 0..self.rows() * self.outputs;
        let of_cell = |cell| {
            let (means, variances) = self.components(cell);
            // what is out of range was refused when this was made
            let mixture = Mixture::new(PredictiveFamily::NORMAL, means, &variances).ok()?;
            Some(statistic(&mixture))
        };
        cells.filter_map(of_cell).collect()
    }
}

/// Probabilities of the classes of new inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassProbabilities {
    classes: Vec<String>,
    probabilities: Vec<f64>,
}

impl Predicted for ClassProbabilities {
    #[allow(private_interfaces, reason = "made by this crate alone")]
    fn of(records: DrawRecords<'_>) -> Result<Self, FitError> {
        let DrawRecords {
            problem,
            rows,
            draws,
        } = records;
        let classes = problem.outputs();
        let mut probabilities = Vec::with_capacity(rows * classes);
        let (mut outputs, mut own) = (vec![0.0; classes], Vec::new());
        for row in 0..rows {
            let mut sums = vec![LogSum::default(); classes];
            for draw in &draws {
                for (class, output) in outputs.iter_mut().enumerate() {
                    *output = draw.mean[class * rows + row];
                }
                own.clear();
                problem.likelihood.log_probabilities(&outputs, &mut own);
                for (sum, logarithm) in sums.iter_mut().zip(&own) {
                    sum.add(*logarithm);
                }
            }
            let total = LogSum::of(sums.iter().map(LogSum::value));
            probabilities.extend(sums.iter().map(|sum| (sum.value() - total).exp()));
        }
        let classes = problem.names.clone();
        Ok(Self {
            classes,
            probabilities,
        })
    }
}

impl ClassProbabilities {
    /// The classes, in the order of their labels.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Row-major: new inputs × classes.
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// The most probable class of each new input, of equals the lowest.
    pub fn labels(&self) -> Vec<&str> {
        let rows = self.probabilities.chunks_exact(self.classes.len());
        let best = |row: &[f64]| {
            let others = 1..row.len();
            others.fold(0, |best, class| match row[class] > row[best] {
                true => class,
                false => best,
            })
        };
        rows.map(|row| self.classes[best(row)].as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As accuracies count them.
    #[test]
    fn of_equally_probable_classes_the_lowest_is_named() {
        let of = |probabilities: &[f64]| ClassProbabilities {
            classes: ["a", "b", "c"].map(str::to_owned).to_vec(),
            probabilities: probabilities.to_vec(),
        };
        let all = of(&[0.4, 0.4, 0.2, 0.2, 0.4, 0.4, 0.1, 0.2, 0.7]);
        assert_eq!(all.labels(), ["a", "b", "c"]);
    }
}
