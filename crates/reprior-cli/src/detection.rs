//! `predict --detect`: how well a score of uncertainty tells new inputs from the run's own test rows.

use reprior::metrics::{Detection, UncertaintyScore};
use reprior_io::run::DrawReader;

use crate::effective::for_each_block;
use crate::error::Failure;
use crate::predictive::{Block, Kind};
use crate::problem::DataDescription;
use crate::settings::Settings;
use crate::summary::complete_draws;
use crate::table::number;

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
    pub fn new(
        score: UncertaintyScore,
        settings: &Settings,
        description: &DataDescription,
    ) -> Result<Self, Failure> {
        let refuse = |text: &str| Err(Failure::request(text));
        if !description.is_classification {
            return refuse("--detect is of runs that predict classes: leave it out");
        }
        if description.test_rows == 0 {
            return refuse(
                "--detect compares with the run's test rows, and there are none: sample with --test N",
            );
        }
        let kind = Kind::new(&settings.model, true);
        if score == UncertaintyScore::Variance && kind == Kind::Codes {
            return refuse(
                "--detect variance is of class probabilities, which draws have under the categorical likelihood: use max-probability or entropy",
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
    pub fn add(&mut self, block: &Block) -> Result<(), Failure> {
        self.other.extend(scores(self.score, block)?);
        Ok(())
    }

    /// The verdict in words.
    ///
    /// # Errors
    /// A run folder that cannot be read.
    pub fn finish(
        &self,
        reader: &DrawReader,
        settings: &Settings,
        description: &DataDescription,
    ) -> Result<String, Failure> {
        let mut like = Vec::new();
        let draws = complete_draws(reader);
        for_each_block(reader, settings, description, draws, |_, block, _| {
            like.extend(scores(self.score, block)?);
            Ok(())
        })?;
        let found = Detection::new(&like, &self.other).map_err(Failure::request)?;
        Ok(format!(
            "told from the {} test rows of the run: AUROC {}, average precision {}, FPR95 {}",
            like.len(),
            number(found.auroc),
            number(found.auprc),
            number(found.fpr95)
        ))
    }
}

/// Scores of a block's rows, higher where the prediction is surer.
fn scores(score: UncertaintyScore, block: &Block) -> Result<Vec<f64>, Failure> {
    let found = if block.kind == Kind::Probabilities {
        let draws = block.mean.len() / (block.rows * block.outputs).max(1);
        let probabilities: Vec<f64> = block.mean.iter().map(|p| p.exp()).collect();
        score.of_draws(&probabilities, draws, block.outputs)
    } else {
        score.of_draws(&block.class_probabilities(), 1, block.outputs)
    };
    found.map_err(Failure::run)
}
