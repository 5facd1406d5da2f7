//! Predictions for altered rows, in parts that fit into memory, and the scores of them.

use reprior::compute::{Purpose, Stream};
use reprior::model::dataset::Targets;

use super::columns::{TableColumn, evenly};
use super::importance::{ColumnImportance, Rows, Score, importance};
use super::{ROWS_TOGETHER, Size};
use crate::failure::Failure;
use crate::method::Predict;
use crate::predict::Predictor;
use crate::predictive::{PredictionKind, PredictiveDraws, SMALLEST_VARIANCE};

/// Predictions for altered rows.
pub(super) struct Work<'a> {
    pub(super) predictor: &'a Predictor,
    pub(super) predict: Box<dyn Predict + 'a>,
    pub(super) done: u64,
    pub(super) total: u64,
    pub(super) draws: usize,
    pub(super) progress: &'a mut dyn FnMut(u64, u64) -> Result<(), Failure>,
}

impl Work<'_> {
    /// In parts that fit into memory, of which `each` takes the predictions.
    fn in_parts(
        &mut self,
        rows: &[f64],
        is_function: bool,
        mut each: impl FnMut(&PredictiveDraws) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let problem = &self.predictor.problem;
        let width = problem.description.columns;
        let together = match self.predict.rows_together() {
            few @ ..1000 => few.max(1),
            _ => ROWS_TOGETHER,
        };
        for part in rows.chunks(together * width) {
            (self.progress)(self.done, self.total)?;
            let arranged = problem.arranged(&part.to_vec().into());
            let found = match is_function {
                true => self.predict.functions(&arranged)?,
                false => self.predict.predict(&arranged)?,
            };
            let mut block = found.block;
            // of class codes the noise is what makes probabilities of them
            if !is_function || block.kind == PredictionKind::Codes {
                block.add_noise(&found.noise);
            }
            each(&block)?;
            self.draws = block.draws();
            self.done += (part.len() / width) as u64;
        }
        Ok(())
    }

    pub(super) fn functions(&mut self, rows: &[f64]) -> Result<PredictiveDraws, Failure> {
        let mut parts = Vec::new();
        self.in_parts(rows, true, |block| {
            parts.push(block.clone());
            Ok(())
        })?;
        joined(parts)
    }

    pub(super) fn importance(
        &mut self,
        columns: &[TableColumn],
        size: Size,
    ) -> Result<Vec<ColumnImportance>, Failure> {
        let problem = &self.predictor.problem;
        let chosen: Vec<usize> = evenly(problem.test.rows, size.test_rows).collect();
        let test = problem.test.select(&chosen);
        let inputs = test.inputs.to_reals();
        let order = shuffled(test.rows, problem.settings.run.seed);
        let shifts: Vec<usize> = (1..=size.shifts)
            .map(|shift| shift * (test.rows - 1) / size.shifts)
            .collect();
        let rows = Rows {
            inputs: &inputs,
            width: problem.description.columns,
            order: &order,
            shifts: &shifts,
            is_classes: problem.description.is_classification,
            together: ROWS_TOGETHER,
        };
        importance(&rows, columns, |altered| {
            let mut scores = Vec::new();
            self.in_parts(altered, false, |block| {
                for row in 0..block.rows {
                    let of = scores.len() % test.rows;
                    scores.push(score(block, row, &test.targets, of)?);
                }
                Ok(())
            })?;
            Ok(scores)
        })
    }
}

/// Rows of several blocks as one.
fn joined(parts: Vec<PredictiveDraws>) -> Result<PredictiveDraws, Failure> {
    let Some(first) = parts.first() else {
        return Err(Failure::request("there is nothing to predict for"));
    };
    if parts.len() == 1 {
        return Ok(first.clone());
    }
    let draws = first.draws();
    let mut all = PredictiveDraws {
        rows: parts.iter().map(|part| part.rows).sum(),
        mean: Vec::new(),
        variance: Vec::new(),
        ..*first
    };
    for draw in 0..draws {
        for part in &parts {
            let width = part.rows * part.outputs;
            all.mean
                .extend(&part.mean[draw * width..(draw + 1) * width]);
            let width = part.variance.len() / draws;
            all.variance
                .extend(&part.variance[draw * width..(draw + 1) * width]);
        }
    }
    Ok(all)
}

/// Of one row of a block (noise included), whose truth is row `of`.
pub(super) fn score(
    block: &PredictiveDraws,
    row: usize,
    truth: &Targets,
    of: usize,
) -> Result<Score, Failure> {
    let outputs = block.outputs;
    match truth {
        Targets::Classes { labels, .. } => {
            let mut logarithms = vec![0.0; outputs];
            block.log_probabilities_of(row, &mut logarithms);
            let label = labels[of] as usize;
            let own = logarithms.get(label).copied().unwrap_or(f64::NAN);
            let is_right = logarithms.iter().all(|other| *other <= own);
            Ok(Score {
                nll: -own,
                miss: if is_right { 0.0 } else { 1.0 },
            })
        }
        Targets::Real { values, .. } => {
            let truth = &values[of * outputs..(of + 1) * outputs];
            let mut miss = 0.0;
            let of_draw = |values: &[f64], draw: usize| {
                let at = (draw * block.rows + row) * outputs;
                values[at..at + outputs].to_vec()
            };
            let draws: Vec<(Vec<f64>, Vec<f64>)> = (0..block.draws())
                .map(|draw| {
                    let mut variances = of_draw(&block.variance, draw);
                    let floor = |v: &mut f64| *v = v.max(SMALLEST_VARIANCE);
                    variances.iter_mut().for_each(floor);
                    (of_draw(&block.mean, draw), variances)
                })
                .collect();
            for (output, y) in truth.iter().enumerate() {
                let sum: f64 = draws.iter().map(|(means, _)| means[output]).sum();
                miss += (sum / draws.len() as f64 - y).powi(2);
            }
            let members = draws.iter().map(|(means, own)| (&means[..], &own[..]));
            let nlls = block.family().mixture_nlls(members, truth, outputs);
            let nll = nlls.map_err(Failure::run)?;
            Ok(Score { nll: nll[0], miss })
        }
    }
}

/// A random order of so many rows, the same for the same seed.
pub(super) fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut stream = Stream::new(seed, 0, Purpose::Check, u64::MAX);
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        let other = (stream.uniform() * (last + 1) as f64) as usize;
        order.swap(last, other.min(last));
    }
    order
}
