//! Whether the test rows are as the draws predict: calibration against what the model expects of itself, likelihood against a constant
//! prediction, and of real targets the value that is farthest out. All are tests: each raises a false alarm in at most one run of a hundred.
//!
//! Calibration ([`PredictiveCheck`]): of real targets the share within the 90 % intervals, of classes the share predicted right. What a draw leaves open of the
//! function (the readout integrated out) is taken as the same for all rows, the cautious choice: fewer alarms.
//! Likelihood: worse than the constant prediction - mean and spread, or class frequencies, of the training targets - by more than
//! 2.6 standard errors of the paired differences over rows.
//! The farthest value: the smallest probability of a value as far out on either side, twice that and times the number of values (Bonferroni), is
//! below 0.01. Few such rows leave the coverage as it is, and may cost more nats than all the others.

use reprior::metrics::predictive_check::{Expectation, PredictiveCheck};
use reprior::metrics::{Mixture, PredictiveFamily};
use reprior::model::dataset::Targets;
use reprior::model::targets::class_log_probabilities;
use serde::{Serialize, Serializer};

use crate::failure::Failure;
use crate::predictive::{PredictionKind, PredictiveDraws, SMALLEST_VARIANCE, jump};

/// Rows that take part, evenly spread over the test rows, at most; of families whose distribution functions cost more, fewer.
const MOST_ROWS: usize = 500;
const MOST_ROWS_OF_OTHERS: usize = 200;
/// Rows below which no difference of likelihoods is significant.
const LEAST_ROWS: usize = 10;
/// Relative deviations that are rounding of a mean, not spread.
const ROUNDING: f64 = 1e-12;
/// Standard errors that a difference exceeds by chance with probability 0.005.
const SIGNIFICANT: f64 = 2.576;

/// A value as unlikely as this by chance, of all that take part, is an outlier.
const UNLIKELY: f64 = 0.01;

/// A test value that is farther out than its prediction has it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Outlier {
    /// Test row, from 0.
    pub row: usize,
    /// Target, from 0.
    pub target: usize,
    /// Probability that any of the values were as far out; 0 where it is below what can be told, about 1e-14.
    pub p_value: f64,
}

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
    /// The value that is farthest out, where chance does not explain it; of real targets.
    pub outlier: Option<Outlier>,
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
                // of targets that do not vary it is 1, as where they are standardised
                let variance = |output: usize| {
                    let squares = column(output).map(|y| (y - means[output]).powi(2));
                    let rounding = (means[output] * ROUNDING).powi(2);
                    match squares.sum::<f64>() / rows {
                        found if found > rounding.max(SMALLEST_VARIANCE) => found,
                        _ => 1.0,
                    }
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
    /// The value that is farthest out; its probability is yet its own, and one-sided.
    farthest: Option<Outlier>,
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
            farthest: None,
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
                    let truth = &values[at..at + block.outputs];
                    self.add_real(block, noise, [row, start + row], truth)?;
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
        [row, test_row]: [usize; 2],
        truth: &[f64],
    ) -> Result<(), Failure> {
        let (family, outputs, draws) = (block.family(), block.outputs, block.draws());
        let (mut means, mut variances) = (Vec::new(), Vec::new());
        for (output, &y) in truth.iter().enumerate() {
            let (mean, variance) = block.components(row, output);
            let mixture = Mixture::new(family, &mean, &variance).map_err(Failure::run)?;
            let [low, high] = [0.05, 0.95].map(|p| mixture.quantile(p));
            let [below, up_to] = jump(&mixture, y, family.is_discrete());
            let p_value = up_to.min(1.0 - below).max(0.0);
            if self.farthest.is_none_or(|other| p_value < other.p_value) {
                self.farthest = Some(Outlier {
                    row: test_row,
                    target: output,
                    p_value,
                });
            }
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
        let values = self.check.values() as f64;
        let outlier = self.farthest.map(|farthest| Outlier {
            p_value: 2.0 * values * farthest.p_value,
            ..farthest
        });
        Some(TestRowsCheck {
            rows,
            hits: self.check.observed() as f64 / self.check.values() as f64,
            expected: self.check.range(),
            expectation: self.check.expectation(),
            nll,
            nll_constant,
            is_worse_than_constant: is_worse,
            outlier: outlier.filter(|outlier| outlier.p_value < UNLIKELY),
        })
    }
}

/// The draw that is the truth of a replicate; the draws of all chains take part, each as often as the others but for one time.
fn drawn(replicate: usize, draws: usize) -> usize {
    (replicate as u128 * draws as u128 / PredictiveCheck::REPLICATES as u128) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use reprior::compute::{Purpose, Stream};
    use reprior::model::likelihood::{Likelihood, StudentT};

    const ROWS: usize = 300;
    const DRAWS: usize = 40;

    fn real(values: Vec<f64>) -> Targets {
        let names = vec!["y".to_owned()];
        Targets::Real { values, names }
    }

    /// σ of so many rows, from 0.5 to 1.5.
    fn sigmas(rows: usize) -> Vec<f64> {
        (0..rows).map(|i| 0.5 + i as f64 / rows as f64).collect()
    }

    /// So many targets, `factor` times draws from N(0, σ²).
    fn targets(rows: usize, factor: f64, seed: u64) -> Vec<f64> {
        let mut stream = Stream::new(seed, 0, Purpose::Simulation, 0);
        let drawn = sigmas(rows).into_iter();
        drawn.map(|s| factor * s * stream.normal()).collect()
    }

    /// What is found of these targets where every draw predicts N(0, σ²), or that member of another family.
    fn found(truth: Vec<f64>, draws: usize, kind: PredictionKind) -> TestRowsCheck {
        let (rows, truth) = (truth.len(), real(truth));
        let variances = sigmas(rows).into_iter().map(|s| s * s);
        let block = PredictiveDraws {
            kind,
            rows,
            outputs: 1,
            mean: vec![0.0; draws * rows],
            variance: variances.cycle().take(draws * rows).collect(),
        };
        let mut all = TestRows::new(kind, rows, &truth);
        all.add(&block, &vec![0.0; draws], &truth, 0).unwrap();
        all.finish().unwrap()
    }

    const BY_ROW: PredictionKind = PredictionKind::RealByRow(PredictiveFamily::NORMAL);

    /// Were the noise taken for what is left open of the function, all rows would be hit together or none, and nothing be too few.
    #[test]
    fn noise_of_rows_is_every_row_s_own() {
        let expectation = |factor, kind| found(targets(ROWS, factor, 3), DRAWS, kind).expectation;
        assert_eq!(expectation(1.0, BY_ROW), Expectation::Met);
        assert_eq!(expectation(1.5, BY_ROW), Expectation::TooFew);
        assert_eq!(expectation(0.5, BY_ROW), Expectation::TooMany);
        let of_function = PredictionKind::Real(PredictiveFamily::NORMAL);
        assert_eq!(expectation(1.5, of_function), Expectation::Met);
    }

    /// One value in 300 at eight times its σ, on either side: nothing to the coverage, too much for the normal law, and not for heavy tails.
    #[test]
    fn an_outlier_is_named() {
        for (row, sign) in [(7, 1.0), (290, -1.0)] {
            let mut truth = targets(ROWS, 1.0, 3);
            assert_eq!(found(truth.clone(), DRAWS, BY_ROW).outlier, None);
            truth[row] = sign * 8.0 * sigmas(ROWS)[row];
            let normal = found(truth.clone(), DRAWS, BY_ROW);
            assert_eq!(normal.expectation, Expectation::Met);
            let outlier = normal.outlier.unwrap();
            assert_eq!((outlier.row, outlier.target), (row, 0));
            assert!(outlier.p_value < 1e-11, "{outlier:?}");
            let family = StudentT::new(4.0).and_then(|law| law.family()).unwrap();
            let heavy = found(truth, DRAWS, PredictionKind::RealByRow(family));
            assert_eq!(heavy.outlier, None);
        }
    }

    #[test]
    fn a_target_that_does_not_vary_speaks_against_nothing() {
        for value in [0.0, 0.3] {
            let same = found(vec![value; ROWS], DRAWS, BY_ROW);
            let of_normal = 0.5 * (2.0 * std::f64::consts::PI).ln();
            assert!((same.nll_constant - of_normal).abs() < 1e-9, "{same:?}");
            assert!(!same.is_worse_than_constant, "{same:?}");
        }
    }

    #[test]
    fn replicates_take_all_draws_as_often() {
        for draws in [1, 40, 1500, 2000, 5000] {
            let taken = (0..PredictiveCheck::REPLICATES).map(|replicate| drawn(replicate, draws));
            let first = taken.filter(|&draw| 2 * draw < draws).count() as i64;
            let due = match draws {
                1 => PredictiveCheck::REPLICATES,
                _ => PredictiveCheck::REPLICATES / 2,
            };
            assert!((first - due as i64).abs() <= 1, "{first} of {draws}");
        }
    }

    /// Three of 300 are expected at most.
    #[test]
    fn outliers_are_found_by_chance_as_rarely_as_is_said() {
        let is_found = |seed: &u64| {
            let truth = targets(40, 1.0, 100 + seed);
            found(truth, 2, BY_ROW).outlier.is_some()
        };
        let alarms = (0..300).filter(is_found).count();
        assert!((1..9).contains(&alarms), "{alarms}");
    }
}
