//! How well scores tell inputs like the training data from others: areas under curves, false alarms.
//!
//! A score is higher where an input looks more like the training data: a maximum probability, or minus an entropy or a variance
//! ([`UncertaintyScore`]). Positive are the inputs that are like them; a threshold t calls positive what scores at least t. Equal
//! scores go over a threshold together, so that no result depends on the order of the inputs.

use std::str::FromStr;

use super::MetricsError;
use super::error::{expect_length, rows};

/// What the uncertainty of a prediction of classes is told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UncertaintyScore {
    /// The largest mean probability.
    #[default]
    MaxProbability,
    /// Minus the entropy of the mean probabilities.
    Entropy,
    /// Minus the variance over draws of the probabilities, summed over classes.
    Variance,
}

impl FromStr for UncertaintyScore {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "max-probability" => Ok(Self::MaxProbability),
            "entropy" => Ok(Self::Entropy),
            "variance" => Ok(Self::Variance),
            _ => Err(format!(
                "unknown score `{text}`: use max-probability, entropy or variance"
            )),
        }
    }
}

impl UncertaintyScore {
    /// Scores of all rows from draws × rows × classes of class probabilities.
    ///
    /// # Errors
    /// Lengths that do not fit, or nothing at all.
    pub fn of_draws(
        self,
        probabilities: &[f64],
        draws: usize,
        classes: usize,
    ) -> Result<Vec<f64>, MetricsError> {
        if draws == 0 {
            return Err(MetricsError::Empty("draw"));
        }
        let all = rows(probabilities, classes)?;
        let count = all / draws;
        expect_length("probabilities", all, count * draws)?;
        let of_row = |row: usize| {
            let of =
                |draw: usize, class: usize| probabilities[(draw * count + row) * classes + class];
            let mean =
                |class: usize| (0..draws).map(|draw| of(draw, class)).sum::<f64>() / draws as f64;
            let of_classes = (0..classes).map(mean);
            match self {
                Self::MaxProbability => of_classes.fold(0.0, f64::max),
                // 0·log 0 = 0
                Self::Entropy => of_classes.filter(|p| *p > 0.0).map(|p| p * p.ln()).sum(),
                Self::Variance => {
                    let squares = (0..classes).map(|class| {
                        let mean = mean(class);
                        let square = |draw| (of(draw, class) - mean).powi(2);
                        (0..draws).map(square).sum::<f64>()
                    });
                    -squares.sum::<f64>() / draws as f64
                }
            }
        };
        Ok((0..count).map(of_row).collect())
    }
}

/// How well scores tell two sets apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Detection {
    /// Area under the curve of true against false positives: the probability that an input like the training data scores higher
    /// than another, ties counted half.
    pub auroc: f64,
    /// Area under precision against recall, in steps (average precision).
    pub auprc: f64,
    /// The smallest part of the others that a threshold calls positive which lets through at least 95 % of the inputs like the
    /// training data.
    pub fpr95: f64,
}

/// The true positives that [`Detection::fpr95`] asks for.
const RECALL: f64 = 0.95;

impl Detection {
    /// Of the scores of inputs like the training data, and of others.
    ///
    /// # Errors
    /// No scores of one kind, or a score that is not a number.
    pub fn new(like: &[f64], other: &[f64]) -> Result<Self, MetricsError> {
        if like.is_empty() {
            return Err(MetricsError::Empty(
                "score of an input like the training data",
            ));
        }
        if other.is_empty() {
            return Err(MetricsError::Empty("score of another input"));
        }
        let label = |is_like: bool| move |&score: &f64| (score, is_like);
        let scores = like.iter().map(label(true));
        let mut scores: Vec<(f64, bool)> = scores.chain(other.iter().map(label(false))).collect();
        if let Some(row) = scores.iter().position(|(score, _)| score.is_nan()) {
            return Err(MetricsError::Probability {
                row,
                value: f64::NAN,
            });
        }
        scores.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (positives, negatives) = (like.len() as f64, other.len() as f64);
        let (mut hits, mut alarms) = (0.0, 0.0);
        let (mut area, mut precision) = (0.0, 0.0);
        let mut fpr95 = f64::NAN;
        for tied in scores.chunk_by(|a, b| a.0 == b.0) {
            let own = tied.iter().filter(|(_, is_like)| *is_like).count() as f64;
            let others = tied.len() as f64 - own;
            area += others * (hits + 0.5 * own);
            hits += own;
            alarms += others;
            precision += own * hits / (hits + alarms);
            if fpr95.is_nan() && hits >= RECALL * positives {
                fpr95 = alarms / negatives;
            }
        }
        Ok(Self {
            auroc: area / (positives * negatives),
            auprc: precision / positives,
            fpr95,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIKE: [f64; 80] = [
        0.94, 0.74, 0.75, 0.64, 0.96, 0.31, 0.59, 0.97, 0.86, 0.62, 0.75, 0.32, 0.63, 0.87, 0.72,
        0.62, 0.83, 0.9, 0.65, 0.78, 0.92, 0.92, 0.66, 0.92, 0.82, 0.9, 0.95, 0.66, 0.48, 0.92,
        0.85, 0.55, 0.87, 0.79, 0.8, 0.93, 0.88, 0.78, 0.5, 0.84, 0.6, 0.57, 0.61, 0.73, 0.82,
        0.72, 0.88, 0.96, 0.68, 0.76, 0.39, 0.8, 0.58, 0.91, 0.87, 0.99, 0.82, 0.87, 0.87, 0.56,
        0.64, 0.91, 0.79, 0.66, 0.8, 0.9, 0.73, 0.96, 0.94, 0.9, 0.9, 0.9, 0.6, 0.89, 0.85, 0.87,
        0.51, 0.89, 0.65, 0.69,
    ];
    const OTHER: [f64; 50] = [
        0.74, 0.27, 0.36, 0.43, 0.46, 0.29, 0.51, 0.09, 0.25, 0.05, 0.35, 0.71, 0.79, 0.95, 0.81,
        0.46, 0.63, 0.8, 0.69, 0.21, 0.65, 0.83, 0.43, 0.56, 0.73, 0.3, 0.55, 0.15, 0.73, 0.51,
        0.4, 0.55, 0.75, 0.58, 0.58, 0.32, 0.43, 0.3, 0.67, 0.41, 0.45, 0.79, 0.7, 0.65, 0.8, 0.32,
        0.52, 0.35, 0.52, 0.25,
    ];

    /// By scikit-learn, ties included.
    #[test]
    fn golden_values() {
        let found = Detection::new(&LIKE, &OTHER).unwrap();
        assert!((found.auroc - 0.82825).abs() < 1e-14, "{found:?}");
        assert!(
            (found.auprc - 0.875_846_687_213_598_2).abs() < 1e-14,
            "{found:?}"
        );
        assert!((found.fpr95 - 0.54).abs() < 1e-14, "{found:?}");
    }

    #[test]
    fn extremes() {
        let apart = Detection::new(&[2.0, 3.0], &[0.0, 1.0]).unwrap();
        assert_eq!((apart.auroc, apart.auprc, apart.fpr95), (1.0, 1.0, 0.0));
        let same = Detection::new(&[1.0, 1.0], &[1.0]).unwrap();
        assert_eq!((same.auroc, same.fpr95), (0.5, 1.0));
        assert!(Detection::new(&[], &[1.0]).is_err());
        assert!(Detection::new(&[1.0], &[f64::NAN]).is_err());
    }

    #[test]
    fn scores_by_their_formulas() {
        // two draws, two rows, two classes
        let draws = [0.9, 0.1, 0.5, 0.5, 0.7, 0.3, 0.5, 0.5];
        let close = |score: UncertaintyScore, expected: [f64; 2]| {
            let found = score.of_draws(&draws, 2, 2).unwrap();
            for (a, b) in found.iter().zip(expected) {
                assert!((a - b).abs() < 1e-15, "{score:?}: {a} {b}");
            }
        };
        close(UncertaintyScore::MaxProbability, [0.8, 0.5]);
        let entropy = |p: f64| p * p.ln() + (1.0 - p) * (1.0 - p).ln();
        close(UncertaintyScore::Entropy, [entropy(0.8), entropy(0.5)]);
        close(UncertaintyScore::Variance, [-0.02, 0.0]);
        assert!(UncertaintyScore::Entropy.of_draws(&draws, 3, 2).is_err());
        assert_eq!("variance".parse(), Ok(UncertaintyScore::Variance));
        assert!("vague".parse::<UncertaintyScore>().is_err());
    }
}
