//! Class probabilities against the classes that came about.

use super::error::{MetricsError, expect_length, rows};

/// How far above 1 a probability, and how far from 1 a row's sum may be: single-precision predictions round.
const ROUNDING: f64 = 1e-3;

/// A view of predicted class probabilities and of the true classes, checked once: at least one row and one class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClassPredictions<'a> {
    probabilities: &'a [f64],
    /// Their logarithms, if those are known better than by taking them.
    logarithms: Option<&'a [f64]>,
    labels: &'a [u32],
    classes: usize,
}

impl<'a> ClassPredictions<'a> {
    /// Pairs `probabilities` (row-major, rows × `classes`, each row summing to 1 within 0.001) with the `labels` (one per
    /// row, from 0).
    ///
    /// # Errors
    /// No rows or classes; lengths that do not fit; a label beyond the last class; a probability outside [0, 1] or NaN; a row
    /// that does not sum to 1.
    pub fn new(
        probabilities: &'a [f64],
        labels: &'a [u32],
        classes: usize,
    ) -> Result<Self, MetricsError> {
        expect_length("labels", labels.len(), rows(probabilities, classes)?)?;
        let predictions = Self {
            probabilities,
            logarithms: None,
            labels,
            classes,
        };
        for (row, (values, label)) in predictions.rows().enumerate() {
            if label as usize >= classes {
                return Err(MetricsError::Label {
                    row,
                    label,
                    classes,
                });
            }
            if let Some(&value) = values.iter().find(|p| !(0.0..=1.0 + ROUNDING).contains(*p)) {
                return Err(MetricsError::Probability { row, value });
            }
            let sum: f64 = values.iter().sum();
            if (sum - 1.0).abs() > ROUNDING {
                return Err(MetricsError::Sum { row, sum });
            }
        }
        Ok(predictions)
    }

    /// The same with the probabilities' logarithms (rows × classes), which may be of probabilities that are too small for a
    /// number: [`nll`](Self::nll) then takes those.
    ///
    /// # Errors
    /// Another number of them, or one that is NaN or above 0.001.
    pub fn with_logarithms(self, logarithms: &'a [f64]) -> Result<Self, MetricsError> {
        expect_length("logarithms", logarithms.len(), self.probabilities.len())?;
        let is_bad = |value: &f64| value.is_nan() || *value > ROUNDING;
        if let Some(at) = logarithms.iter().position(is_bad) {
            let (row, value) = (at / self.classes, logarithms[at].exp());
            return Err(MetricsError::Probability { row, value });
        }
        Ok(Self {
            logarithms: Some(logarithms),
            ..self
        })
    }

    /// Number of rows, at least 1.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Always false: there is at least one row.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Share of rows whose most probable class (of equals, the lowest) is the true one; 0 to 1.
    pub fn accuracy(&self) -> f64 {
        self.mean(|values, label| f64::from(u8::from(most_probable(values).0 == label as usize)))
    }

    /// Mean over rows of the probability of the most probable class; 1/classes to 1.
    pub fn mean_confidence(&self) -> f64 {
        self.mean(|values, _| most_probable(values).1)
    }

    /// Brier score (1950): mean over rows of the SUM over classes of (p − 1{true class})²; 0 (certain and right) to 2 (certain and wrong).
    pub fn brier(&self) -> f64 {
        self.mean(|values, label| {
            let squares = values.iter().enumerate();
            squares
                .map(|(class, p)| (p - f64::from(u8::from(class == label as usize))).powi(2))
                .sum()
        })
    }

    /// Mean over rows of −log p of the true class, in nats, unclipped: ∞ where a true class has probability 0.
    pub fn nll(&self) -> f64 {
        if let Some(logarithms) = self.logarithms {
            let rows = logarithms.chunks_exact(self.classes).zip(self.labels);
            let total: f64 = rows.map(|(values, label)| values[*label as usize]).sum();
            return -total / self.len() as f64;
        }
        self.mean(|values, label| -values[label as usize].ln())
    }

    /// Confidence, and whether the most probable class is the true one, row by row.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = (f64, bool)> {
        self.rows().map(|(values, label)| {
            let (class, confidence) = most_probable(values);
            (confidence, class == label as usize)
        })
    }

    fn rows(&self) -> impl Iterator<Item = (&'a [f64], u32)> {
        let values = self.probabilities.chunks_exact(self.classes);
        values.zip(self.labels.iter().copied())
    }

    fn mean(&self, of: impl Fn(&[f64], u32) -> f64) -> f64 {
        let total: f64 = self.rows().map(|(values, label)| of(values, label)).sum();
        total / self.len() as f64
    }
}

/// The most probable class, of equals the lowest, and its probability.
fn most_probable(values: &[f64]) -> (usize, f64) {
    let mut best = (0, values[0]);
    for (class, &p) in values.iter().enumerate() {
        if p > best.1 {
            best = (class, p);
        }
    }
    best
}
