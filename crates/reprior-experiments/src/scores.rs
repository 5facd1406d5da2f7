//! What draws of a network predict for classes, averaged over draws, and scores of it with standard errors.

use reprior::metrics::{ClassPredictions, ReliabilityBin};

use crate::{Estimate, Failure, Row};

/// Bins of calibration errors.
const BINS: usize = 15;
/// Bins of the calibration errors in Roy, Miani et al. (2024).
const PUBLISHED_BINS: usize = 100;

/// From so many draws on their error is known well enough to share its degrees of freedom with that of rows.
const MANY: usize = 5;

/// What is averaged over draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Averaged {
    /// Probabilities: the posterior predictive.
    Probabilities,
    /// Logits, of which the probabilities are then taken: what the published code of Roy, Miani et al. (2024) does.
    Logits,
}

impl Averaged {
    /// What the published code averages, or the equations.
    pub fn of(is_published: bool) -> Self {
        match is_published {
            true => Self::Logits,
            false => Self::Probabilities,
        }
    }
}

/// Logits of every draw, each rows × classes, row after row.
#[derive(Debug, Clone)]
pub struct DrawnLogits {
    /// Classes.
    pub classes: usize,
    /// One a draw.
    pub draws: Vec<Vec<f32>>,
}

impl DrawnLogits {
    /// Probabilities, rows × classes, of the average over all draws but `left_out`.
    pub fn probabilities(&self, averaged: Averaged, left_out: Option<usize>) -> Vec<f64> {
        let size = self.draws.first().map_or(0, Vec::len);
        let draws = self.draws.iter().enumerate();
        let draws = draws.filter(|(index, _)| Some(*index) != left_out);
        let (mut sum, mut count) = (vec![0.0; size], 0.0);
        let mut one = vec![0.0; size];
        for (_, logits) in draws {
            one.iter_mut()
                .zip(logits)
                .for_each(|(to, logit)| *to = f64::from(*logit));
            if averaged == Averaged::Probabilities {
                softmax(&mut one, self.classes);
            }
            sum.iter_mut().zip(&one).for_each(|(sum, x)| *sum += x);
            count += 1.0;
        }
        sum.iter_mut().for_each(|sum| *sum /= count);
        if averaged == Averaged::Logits {
            softmax(&mut sum, self.classes);
        }
        sum
    }

    /// Scores with the errors of rows, and of draws by the jackknife (of two draws and more). NLL and Brier score are those of
    /// infinitely many draws: the mean of few predicts worse, by −½·E[Var p/p²] a draw in NLL to first order, which the jackknife takes
    /// away; methods with different numbers of draws can be compared.
    ///
    /// # Errors
    /// Logits that are not finite.
    pub fn scores(&self, averaged: Averaged, labels: &[u32]) -> Result<Scores, Failure> {
        let of = |left_out| {
            Scores::new(
                &self.probabilities(averaged, left_out),
                labels,
                self.classes,
            )
        };
        let mut scores = of(None)?;
        let count = self.draws.len();
        if count > 1 {
            let without: Vec<Scores> = (0..count)
                .map(|index| of(Some(index)))
                .collect::<Result<_, _>>()?;
            let values = |of: fn(&Scores) -> f64| without.iter().map(of).collect::<Vec<f64>>();
            scores.nll = of_many_draws(&scores.nll, &values(|scores| scores.nll.value));
            scores.brier = of_many_draws(&scores.brier, &values(|scores| scores.brier.value));
            // what is not smooth in the predictions stays as it is
            scores.accuracy = with_draws(&scores.accuracy, &values(|s| s.accuracy.value));
            scores.calibration = with_draws(&scores.calibration, &values(|s| s.calibration.value));
        }
        Ok(scores)
    }
}

/// An estimate of all draws that has the error of rows, with that of draws from its values `without` each of them.
pub fn with_draws(all: &Estimate, without: &[f64]) -> Estimate {
    let draws = Estimate::jackknife(all.value, without);
    let (rows, variance) = (all.error.powi(2), draws.error.powi(2));
    let degrees = match without.len() {
        // the error of a few draws may be next to nothing by chance
        few if few < MANY => draws.degrees,
        // Satterthwaite 1946: the error of rows is known well
        _ => draws.degrees * ((rows + variance) / variance).powi(2),
    };
    Estimate {
        error: (rows + variance).sqrt(),
        degrees,
        ..all.clone()
    }
}

/// The same, less the jackknife's bias.
fn of_many_draws(all: &Estimate, without: &[f64]) -> Estimate {
    Estimate {
        value: Estimate::jackknife(all.value, without).value,
        ..with_draws(all, without)
    }
}

/// Each row's logits to probabilities.
fn softmax(values: &mut [f64], classes: usize) {
    for row in values.chunks_exact_mut(classes) {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter_mut().for_each(|x| *x = (*x - largest).exp());
        let total: f64 = row.iter().sum();
        row.iter_mut().for_each(|x| *x /= total);
    }
}

/// What is made of predicted probabilities of classes.
#[derive(Debug, Clone)]
pub struct Scores {
    /// Mean largest probability.
    pub confidence: f64,
    /// Mean of −log of the true class's probability.
    pub nll: Estimate,
    /// From 0 to 1.
    pub accuracy: Estimate,
    /// Summed over classes.
    pub brier: Estimate,
    /// Expected calibration error, 15 bins.
    pub calibration: Estimate,
    /// Maximum calibration error, 15 bins.
    pub most_miscalibrated: f64,
    /// Both in 100 bins without the last one, that of confidences from 0.99 on: what the published code does.
    pub published_calibration: [f64; 2],
}

impl Scores {
    /// Of probabilities, row-major, with the errors of rows.
    ///
    /// # Errors
    /// Probabilities that are none.
    pub fn new(probabilities: &[f64], labels: &[u32], classes: usize) -> Result<Self, Failure> {
        let predictions = ClassPredictions::new(probabilities, labels, classes)?;
        let table = predictions.reliability(BINS);
        let mut published = predictions.reliability(PUBLISHED_BINS);
        published.pop();
        let rows = || probabilities.chunks_exact(classes).zip(labels);
        let truth = |(p, label): (&[f64], &u32)| p[*label as usize].max(f64::MIN_POSITIVE);
        let losses: Vec<f64> = rows().map(|row| -truth(row).ln()).collect();
        let square = |(p, label): (&[f64], &u32)| {
            let squares = p.iter().map(|p| p * p).sum::<f64>();
            squares + 1.0 - 2.0 * p[*label as usize]
        };
        let squares: Vec<f64> = rows().map(square).collect();
        // by the delta method: a bin's gap is taken as much above or below nothing as it is
        let gap = |(p, label): (&[f64], &u32)| {
            let confidence = p.iter().copied().fold(0.0, f64::max);
            let right = f64::from(u8::from(p[*label as usize] == confidence));
            let bin = &table[((BINS as f64 * confidence) as usize).min(BINS - 1)];
            (bin.accuracy - bin.confidence).signum() * (right - confidence)
        };
        let gaps: Vec<f64> = rows().map(gap).collect();
        Ok(Self {
            confidence: predictions.mean_confidence(),
            nll: of_rows(predictions.nll(), &losses),
            accuracy: Estimate::proportion(predictions.accuracy(), labels.len()),
            brier: of_rows(predictions.brier(), &squares),
            calibration: of_rows(ReliabilityBin::expected_calibration_error(&table), &gaps),
            most_miscalibrated: ReliabilityBin::maximum_calibration_error(&table),
            published_calibration: [
                ReliabilityBin::expected_calibration_error(&published),
                ReliabilityBin::maximum_calibration_error(&published),
            ],
        })
    }

    /// `row` with these.
    pub fn onto(&self, row: Row) -> Row {
        row.with("confidence", self.confidence)
            .with_estimate("nll", &self.nll)
            .with_estimate("accuracy", &self.accuracy)
            .with_estimate("brier", &self.brier)
            .with_estimate("ece", &self.calibration)
            .with("mce", self.most_miscalibrated)
    }
}

/// A mean over many rows: its error is known well.
fn of_rows(mean: f64, values: &[f64]) -> Estimate {
    Estimate::new(mean, Estimate::mean(values).error)
}

#[cfg(test)]
mod tests {
    use reprior::compute::{Purpose, Stream};

    use super::*;

    #[test]
    fn averages_of_probabilities_and_of_logits() {
        let drawn = DrawnLogits {
            classes: 2,
            draws: vec![vec![4.0, 0.0], vec![-2.0, 0.0]],
        };
        let p = |x: f64| 1.0 / (1.0 + (-x).exp());
        let of = |averaged| drawn.probabilities(averaged, None)[0];
        let mean = 0.5 * (p(4.0) + p(-2.0));
        assert!((of(Averaged::Probabilities) - mean).abs() < 1e-12);
        assert!((of(Averaged::Logits) - p(1.0)).abs() < 1e-12);
        let first = drawn.probabilities(Averaged::Probabilities, Some(1))[0];
        assert!((first - p(4.0)).abs() < 1e-12);
    }

    /// The mean of few draws predicts worse than that of many: what is left of it after the correction is much less.
    #[test]
    fn scores_do_not_depend_on_the_number_of_draws() {
        let labels: Vec<u32> = (0..200).map(|row| row % 2).collect();
        let of = |count: u64, first: u64| {
            let draw = |index| {
                let mut logits = vec![0.0_f32; 400];
                Stream::new(1, 0, Purpose::Recording, first + index).fill_normal(&mut logits);
                logits
            };
            let draws = (0..count).map(draw).collect();
            let drawn = DrawnLogits { classes: 2, draws };
            let plain = drawn.probabilities(Averaged::Probabilities, None);
            let plain = Scores::new(&plain, &labels, 2).unwrap().nll.value;
            let nll = drawn.scores(Averaged::Probabilities, &labels).unwrap().nll;
            [plain, nll.value]
        };
        let many = of(200, 0)[1];
        let repeats = 40;
        let few: Vec<[f64; 2]> = (0..repeats).map(|at| of(4, 1000 + 4 * at)).collect();
        let [plain, corrected] =
            [0, 1].map(|at| few.iter().map(|f| f[at] - many).sum::<f64>() / repeats as f64);
        assert!(
            plain > 0.03 && corrected.abs() < 0.25 * plain,
            "{plain} {corrected}"
        );
    }

    #[test]
    fn errors_are_of_rows_and_draws() {
        let draws = vec![vec![4.0, 0.0, 0.0, 1.0], vec![-2.0, 0.0, 0.5, 1.0]];
        let drawn = DrawnLogits { classes: 2, draws };
        let labels = [0, 1];
        let both = drawn.scores(Averaged::Probabilities, &labels).unwrap();
        let rows = Scores::new(
            &drawn.probabilities(Averaged::Probabilities, None),
            &labels,
            2,
        );
        let rows = rows.unwrap();
        let halves = [0, 1].map(|index| {
            let own = drawn.probabilities(Averaged::Probabilities, Some(index));
            Scores::new(&own, &labels, 2).unwrap().nll.value
        });
        // of two values the jackknife's error is half their distance, and both together count twice less the mean of them
        let corrected = 2.0 * rows.nll.value - 0.5 * (halves[0] + halves[1]);
        assert!((both.nll.value - corrected).abs() < 1e-12);
        assert_eq!(
            (both.nll.degrees, both.accuracy.value),
            (1.0, rows.accuracy.value)
        );
        let expected = rows.nll.error.hypot(0.5 * (halves[0] - halves[1]).abs());
        assert!((both.nll.error - expected).abs() < 1e-12);
    }
}
