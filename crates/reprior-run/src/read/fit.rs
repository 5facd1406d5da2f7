//! Whether the test rows are as the draws predict: calibration against what the model expects of itself, likelihood against a constant
//! prediction. Both are tests: each raises a false alarm in at most one run of a hundred.
//!
//! Calibration ([`PredictiveCheck`]): of real targets the share within the 90 % intervals, of classes the share predicted right. What a draw leaves open of the
//! function (the readout integrated out) is taken as the same for all rows, the cautious choice: fewer alarms.
//! Likelihood: worse than the constant prediction - mean and spread, or class frequencies, of the training targets - by more than
//! 2.6 standard errors of the paired differences over rows.

use reprior::metrics::predictive_check::{Expectation, PredictiveCheck};
use reprior::metrics::{Mixture, PredictiveFamily};
use reprior::model::dataset::Targets;
use reprior::model::targets::class_log_probabilities;
use serde::{Serialize, Serializer};

use crate::failure::Failure;
use crate::predictive::{PredictionKind, PredictiveDraws, SMALLEST_VARIANCE};

/// Rows that take part, evenly spread over the test rows, at most; of families whose distribution functions cost more, fewer.
const MOST_ROWS: usize = 500;
const MOST_ROWS_OF_OTHERS: usize = 200;
/// Rows below which no difference of likelihoods is significant.
const LEAST_ROWS: usize = 10;
/// Standard errors that a difference exceeds by chance with probability 0.005.
const SIGNIFICANT: f64 = 2.576;

/// What `summary --json` says of the test rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TestRowsCheck {
    /// Test rows that took part.
    pub rows: usize,
    /// Share of values within their 90 % intervals, or of rows predicted right.
    pub hits: f64,
    /// The same in the central 99 % of data sets drawn from the model itself.
    pub expected: [f64; 2],
    /// In JSON `met`, `too few` or `too many` hits.
    #[serde(serialize_with = "in_words")]
    pub expectation: Expectation,
    /// Mean over rows of −log of the predictive density, in nats.
    pub nll: f64,
    /// The same of the constant prediction.
    pub nll_constant: f64,
    /// Whether the constant prediction is better, by more than chance.
    pub is_worse_than_constant: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn in_words<S: Serializer>(expectation: &Expectation, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match expectation {
        Expectation::Met => "met",
        Expectation::TooFew => "too few",
        Expectation::TooMany => "too many",
    })
}

/// The prediction that knows the training targets and no inputs.
enum Constant {
    /// Means and variances of the outputs.
    Real(Vec<f64>, Vec<f64>),
    /// Probabilities of the classes.
    Classes(Vec<f64>),
}

impl Constant {
    /// Of training targets; a class that was never seen counts as seen once.
    fn of(train: &Targets) -> Self {
        match train {
            Targets::Classes { labels, names } => {
                let mut counts = vec![1.0; names.len()];
                labels
                    .iter()
                    .for_each(|&label| counts[label as usize] += 1.0);
                let total: f64 = counts.iter().sum();
                Self::Classes(counts.into_iter().map(|count| count / total).collect())
            }
            Targets::Real { values, names } => {
                let outputs = names.len();
                let rows = (values.len() / outputs.max(1)) as f64;
                let column = |output: usize| values.iter().skip(output).step_by(outputs);
                let means: Vec<f64> = (0..outputs)
                    .map(|output| column(output).sum::<f64>() / rows)
                    .collect();
                let variance = |output: usize| {
                    let squares = column(output).map(|y| (y - means[output]).powi(2));
                    (squares.sum::<f64>() / rows).max(SMALLEST_VARIANCE)
                };
                let variances = (0..outputs).map(variance).collect();
                Self::Real(means, variances)
            }
        }
    }
}

/// Gathers blocks of predictions.
pub struct TestRows {
    constant: Constant,
    /// Of the test rows, one in this many takes part.
    every: usize,
    check: PredictiveCheck,
    /// −log densities of the rows: predicted, constant.
    nlls: Vec<[f64; 2]>,
}

impl TestRows {
    /// Of draws of this kind for `rows` test rows, given the training targets.
    pub fn new(kind: PredictionKind, rows: usize, train: &Targets) -> Self {
        let most = match kind.family_of_real() {
            Some(family) if family != PredictiveFamily::NORMAL => MOST_ROWS_OF_OTHERS,
            _ => MOST_ROWS,
        };
        Self {
            constant: Constant::of(train),
            every: rows.div_ceil(most).max(1),
            check: PredictiveCheck::new(train.names().len()),
            nlls: Vec::new(),
        }
    }

    /// Takes in a block (noise included) whose first row is row `start` of the truth, and the squared noise scales of every draw.
    ///
    /// # Errors
    /// Predictions that are not numbers.
    pub fn add(
        &mut self,
        block: &PredictiveDraws,
        noise: &[f64],
        truth: &Targets,
        start: usize,
    ) -> Result<(), Failure> {
        let every = self.every;
        let rows = (0..block.rows).filter(|row| (start + row).is_multiple_of(every));
        match truth {
            Targets::Classes { labels, .. } => {
                let mut mixed = vec![0.0; block.outputs];
                for row in rows {
                    block.log_probabilities_of(row, &mut mixed);
                    self.add_class(block, row, &mixed, labels[start + row] as usize);
                }
            }
            Targets::Real { values, .. } => {
                for row in rows {
                    let at = (start + row) * block.outputs;
                    self.add_real(block, noise, row, &values[at..at + block.outputs])?;
                }
            }
        }
        Ok(())
    }

    /// Of logarithms of the mixture's class probabilities.
    fn add_class(&mut self, block: &PredictiveDraws, row: usize, mixed: &[f64], label: usize) {
        let best =
            (0..mixed.len()).fold(0, |best, c| if mixed[c] > mixed[best] { c } else { best });
        let draws = block.draws();
        // of every draw by itself
        let mut own = vec![0.0; block.outputs];
        let of_best: Vec<f64> = (0..draws)
            .map(|draw| {
                let (mean, variance) = block.of_draw(draw, row);
                if block.kind == PredictionKind::Probabilities {
                    return mean[best].exp();
                }
                class_log_probabilities(std::iter::once((mean, variance)), &mut own);
                own[best].exp()
            })
            .collect();
        // draws of codes weigh differently in the mixture: its own probability is the mean, the draws say how it varies
        let shift = mixed[best].exp() - of_best.iter().sum::<f64>() / draws as f64;
        self.check.add(best == label, |replicate, _| {
            (of_best[drawn(replicate, draws)] + shift).clamp(0.0, 1.0)
        });
        if let Constant::Classes(constant) = &self.constant {
            self.nlls.push([-mixed[label], -constant[label].ln()]);
        }
    }

    fn add_real(
        &mut self,
        block: &PredictiveDraws,
        noise: &[f64],
        row: usize,
        truth: &[f64],
    ) -> Result<(), Failure> {
        let (family, outputs, draws) = (block.family(), block.outputs, block.draws());
        let (mut means, mut variances) = (Vec::new(), Vec::new());
        for (output, &y) in truth.iter().enumerate() {
            let (mean, variance) = block.components(row, output);
            let mixture = Mixture::new(family, &mean, &variance).map_err(Failure::run)?;
            let [low, high] = [0.05, 0.95].map(|p| mixture.quantile(p));
            // counts: both ends belong to the interval
            let below = if family.is_discrete() { low - 1.0 } else { low };
            self.check
                .add((low..=high).contains(&y), |replicate, shared| {
                    let draw = drawn(replicate, draws);
                    // noise is every row's own draw, what is left open of the function is shared by all
                    let own = match block.kind.has_row_noise() {
                        true => variance[draw],
                        false => noise[draw * outputs + output].max(SMALLEST_VARIANCE),
                    };
                    let of_function = (variance[draw] - own).max(0.0);
                    let centre = mean[draw] + of_function.sqrt() * shared[output];
                    family.cdf(high, centre, own) - family.cdf(below, centre, own)
                });
            means.push(mean);
            variances.push(variance);
        }
        let across = |of: &[Vec<f64>], draw: usize| -> Vec<f64> {
            of.iter().map(|output| output[draw]).collect()
        };
        let all: Vec<_> = (0..draws)
            .map(|draw| (across(&means, draw), across(&variances, draw)))
            .collect();
        let all = all
            .iter()
            .map(|(mean, variance)| (&mean[..], &variance[..]));
        let nll = family
            .mixture_nlls(all, truth, outputs)
            .map_err(Failure::run)?[0];
        if let Constant::Real(means, variances) = &self.constant {
            let family = match family.is_discrete() {
                true => family,
                false => PredictiveFamily::NORMAL,
            };
            let each = truth.iter().zip(means.iter().zip(variances));
            let constant = each.map(|(&y, (&m, &v))| -family.log_density(y, m, v));
            self.nlls.push([nll, constant.sum()]);
        }
        Ok(())
    }

    /// What was found; nothing without rows.
    pub fn finish(self) -> Option<TestRowsCheck> {
        let rows = self.nlls.len();
        if rows == 0 {
            return None;
        }
        let mean =
            |of: &dyn Fn(&[f64; 2]) -> f64| self.nlls.iter().map(of).sum::<f64>() / rows as f64;
        let (nll, nll_constant) = (mean(&|row| row[0]), mean(&|row| row[1]));
        let difference = nll - nll_constant;
        let squares = mean(&|row| (row[0] - row[1] - difference).powi(2));
        let error = (squares / (rows as f64 - 1.0)).sqrt();
        let is_worse =
            nll == f64::INFINITY || rows >= LEAST_ROWS && difference > SIGNIFICANT * error;
        Some(TestRowsCheck {
            rows,
            hits: self.check.observed() as f64 / self.check.values() as f64,
            expected: self.check.range(),
            expectation: self.check.expectation(),
            nll,
            nll_constant,
            is_worse_than_constant: is_worse,
        })
    }
}

/// The draw that is the truth of a replicate; the draws of all chains take part.
fn drawn(replicate: usize, draws: usize) -> usize {
    if draws < PredictiveCheck::REPLICATES {
        replicate % draws
    } else {
        (replicate as u128 * draws as u128 / PredictiveCheck::REPLICATES as u128) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reprior::compute::{Purpose, Stream};

    const ROWS: usize = 300;
    const DRAWS: usize = 40;

    fn real(values: Vec<f64>) -> Targets {
        let names = vec!["y".to_owned()];
        Targets::Real { values, names }
    }

    /// Every draw predicts N(0, σ²) for every row, σ from 0.5 to 1.5 by row; the targets are `factor` times draws from it.
    fn expectation(factor: f64, kind: PredictionKind) -> Expectation {
        let mut stream = Stream::new(3, 0, Purpose::Simulation, 0);
        let sigmas: Vec<f64> = (0..ROWS).map(|i| 0.5 + i as f64 / ROWS as f64).collect();
        let truth = sigmas.iter().map(|s| factor * s * stream.normal());
        let truth = real(truth.collect());
        let variances = sigmas.iter().map(|s| s * s);
        let block = PredictiveDraws {
            kind,
            rows: ROWS,
            outputs: 1,
            mean: vec![0.0; DRAWS * ROWS],
            variance: variances.cycle().take(DRAWS * ROWS).collect(),
        };
        let mut rows = TestRows::new(kind, ROWS, &truth);
        rows.add(&block, &[0.0; DRAWS], &truth, 0).unwrap();
        rows.finish().unwrap().expectation
    }

    /// Were the noise taken for what is left open of the function, all rows would be hit together or none, and nothing be too few.
    #[test]
    fn noise_of_rows_is_every_row_s_own() {
        let by_row = PredictionKind::RealByRow(PredictiveFamily::NORMAL);
        assert_eq!(expectation(1.0, by_row), Expectation::Met);
        assert_eq!(expectation(1.5, by_row), Expectation::TooFew);
        assert_eq!(expectation(0.5, by_row), Expectation::TooMany);
        let of_function = PredictionKind::Real(PredictiveFamily::NORMAL);
        assert_eq!(expectation(1.5, of_function), Expectation::Met);
    }
}
