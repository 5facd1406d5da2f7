//! `predict --detect`: how well a score of uncertainty tells new inputs from the run's own test rows.

use reprior::metrics::detection::{Detection, UncertaintyScore};

use super::recorded::Recorded;
use crate::failure::Failure;
use crate::predictive::{PredictionKind, PredictiveDraws};

/// Scores of new inputs, gathered block by block, to be compared with those of the test rows.
pub struct Detector {
    score: UncertaintyScore,
    other: Vec<f64>,
}

impl Detector {
    /// For a run.
    ///
    /// # Errors
    /// A wrong request: a run that predicts no classes, or has no test rows, or no such score.
    pub fn new(score: UncertaintyScore, run: &Recorded) -> Result<Self, Failure> {
        let refuse = |text: &str| Err(Failure::request(text));
        if !run.description.is_classification {
            return refuse("--detect needs a run that predicts classes: leave it out");
        }
        if run.description.test_rows == 0 || run.tests_nothing() {
            return refuse(
                "--detect compares with the run's test rows, and there are none: sample with --test N",
            );
        }
        if score == UncertaintyScore::Variance && run.kind == PredictionKind::Codes {
            return refuse(
                "--detect variance needs class probabilities, which draws have under the categorical likelihood: use max-probability or entropy",
            );
        }
        Ok(Self {
            score,
            other: Vec::new(),
        })
    }

    /// Takes in predictions for new inputs, noise included.
    ///
    /// # Errors
    /// Predictions that cannot be scored.
    pub fn add(&mut self, block: &PredictiveDraws) -> Result<(), Failure> {
        self.other.extend(scores(self.score, block)?);
        Ok(())
    }

    /// How well they are told from the test rows, and how many of these there are.
    ///
    /// # Errors
    /// A run folder that cannot be read.
    pub fn finish(&self, run: &Recorded) -> Result<(Detection, usize), Failure> {
        let mut like = Vec::new();
        run.for_each_predicting(|_, block, _| {
            like.extend(scores(self.score, block)?);
            Ok(())
        })?;
        let found = Detection::new(&like, &self.other).map_err(Failure::request)?;
        Ok((found, like.len()))
    }
}

/// Scores of a block's rows, higher where the prediction is surer.
fn scores(score: UncertaintyScore, block: &PredictiveDraws) -> Result<Vec<f64>, Failure> {
    let found = if block.kind == PredictionKind::Probabilities {
        let draws = block.mean.len() / (block.rows * block.outputs).max(1);
        let probabilities: Vec<f64> = block.mean.iter().map(|p| p.exp()).collect();
        score.of_draws(&probabilities, draws, block.outputs)
    } else {
        score.of_draws(&block.class_probabilities(), 1, block.outputs)
    };
    found.map_err(Failure::run)
}
