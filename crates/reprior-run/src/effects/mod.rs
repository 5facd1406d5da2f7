//! What the inputs of a table do to predictions: which columns matter, and how. From kept positions, for altered rows.
//!
//! The work has a bound. It starts with [`Size::WHOLE`] draws and rows and is made smaller by fixed rules, by counts alone, so that the same run gives the same
//! numbers on any machine: draws, then rows, are halved until the multiplications are within [`MOST_WORK`], some ten seconds on two cores, or nothing can be
//! halved any more. What would still take [`MOST_TIMES`] times as long is not done.

mod columns;
mod dependence;
mod importance;
mod work;

use reprior::model::dataset::{Dataset, InputKind, Targets};
use serde::Serialize;

pub use dependence::Dependence;
pub use importance::{ColumnImportance, Rise};

use crate::failure::Failure;
use crate::method::family;
use crate::predict::Predictor;
use columns::{TableColumn, evenly};
use work::Work;

/// Multiplications.
const MOST_WORK: f64 = 5e10;
/// Of that, beyond which nothing is done.
const MOST_TIMES: f64 = 20.0;
/// Rows predicted together: the training rows' features are computed once for all of them.
const ROWS_TOGETHER: usize = 4096;
/// Test rows without which no importance is known.
const FEWEST_TEST_ROWS: usize = 10;
/// Columns whose dependence is shown, the most important ones.
const MOST_COLUMNS: usize = 6;
/// Outputs, or classes, whose dependence is shown: the first ones, the commonest ones.
const MOST_OUTPUTS: usize = 3;
/// Training values in a rug.
const MOST_IN_RUG: usize = 60;

/// What the inputs of a table do to the predictions of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InputEffects {
    /// Columns of the table that are inputs.
    pub columns: usize,
    /// Draws of all chains that take part; 1 of a closed form.
    pub draws: usize,
    /// Test rows that take part in the importance, evenly chosen.
    pub test_rows: usize,
    /// Whether these train as well.
    pub are_watched: bool,
    /// How often each of them gets the column from another row.
    pub shifts: usize,
    /// Training rows that dependences are means over, evenly chosen.
    pub train_rows: usize,
    /// Of every column, the most important first; empty with fewer than ten test rows.
    pub importance: Vec<ColumnImportance>,
    /// On the most important columns; without importance on the first.
    pub dependence: Vec<Dependence>,
}

/// How much is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    draws: u64,
    test_rows: usize,
    shifts: usize,
    train_rows: usize,
}

impl Size {
    const WHOLE: Self = Self {
        draws: 100,
        test_rows: 200,
        shifts: 4,
        train_rows: 50,
    };
    const LEAST: Self = Self {
        draws: 12,
        test_rows: 50,
        shifts: 1,
        train_rows: 12,
    };

    /// Halved where most can be: draws before rows. None if nothing can.
    fn halved(self) -> Option<Self> {
        let half = |own: usize, least: usize| (own / 2).max(least).min(own);
        let draws = (self.draws / 2).max(Self::LEAST.draws).min(self.draws);
        let smaller = match draws < self.draws {
            true => Self { draws, ..self },
            false => Self {
                test_rows: half(self.test_rows, Self::LEAST.test_rows),
                shifts: half(self.shifts, Self::LEAST.shifts),
                train_rows: half(self.train_rows, Self::LEAST.train_rows),
                ..self
            },
        };
        (smaller != self).then_some(smaller)
    }
}

/// Numbers that the work follows from.
struct Scale {
    columns: usize,
    places: usize,
    train_rows: usize,
    /// Multiplications of one row and one draw.
    of_row: f64,
}

impl Scale {
    fn work(&self, size: Size) -> f64 {
        let tested = size.test_rows * (1 + size.shifts * self.columns);
        let averaged = size.train_rows * self.places;
        let calls = tested.div_ceil(ROWS_TOGETHER) + MOST_COLUMNS;
        let rows = tested as f64 + averaged as f64 + (calls * self.train_rows) as f64;
        rows * self.of_row * size.draws as f64
    }

    fn bounded(&self, mut size: Size) -> Result<Size, Failure> {
        while self.work(size) > MOST_WORK {
            match size.halved() {
                Some(smaller) => size = smaller,
                None if self.work(size) > MOST_TIMES * MOST_WORK => {
                    return Err(Failure::request(format!(
                        "the network is so large, or the columns so many, that even {} draws and {} test rows would take {:.0e} multiplications",
                        size.draws,
                        size.test_rows,
                        self.work(size)
                    )));
                }
                None => break,
            }
        }
        Ok(size)
    }
}

impl Predictor {
    /// What the inputs do. `progress` is told of rows that were predicted out of how many, and may stop the work.
    ///
    /// # Errors
    /// A wrong request: images; a network that is too large for it. A run that cannot be read. What `progress` says.
    pub fn input_effects(
        &self,
        progress: &mut dyn FnMut(u64, u64) -> Result<(), Failure>,
    ) -> Result<InputEffects, Failure> {
        let (problem, description) = (&self.problem, &self.problem.description);
        if description.kind != InputKind::Table {
            return Err(Failure::request("the inputs are images, not columns"));
        }
        let columns = TableColumn::of(description);
        let places = columns.iter();
        let places = places.map(|column| column.places(&problem.train.inputs, description.columns));
        let places: Vec<_> = places.collect();
        let architecture = &problem.architecture;
        let features = architecture.readout_parameters() / architecture.outputs.max(1);
        let of_readout = match problem.settings.model.likelihood().has_scale() {
            true => (features * features) as f64,
            false => 0.0,
        };
        let chains = self.run.chains() as u64;
        let kept = self.draws().map_or(1, |[_, of_each]| of_each);
        let mut most_places: Vec<usize> = places.iter().map(Vec::len).collect();
        most_places.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
        let scale = Scale {
            columns: columns.len(),
            places: most_places.iter().take(MOST_COLUMNS).sum(),
            train_rows: problem.train.rows,
            of_row: architecture.parameters() as f64 + of_readout,
        };
        let size = scale.bounded(Size {
            draws: Size::WHOLE.draws.min(kept * chains),
            test_rows: Size::WHOLE.test_rows.min(problem.test.rows),
            shifts: Size::WHOLE.shifts.min(problem.test.rows.saturating_sub(1)),
            train_rows: Size::WHOLE.train_rows.min(problem.train.rows),
        })?;
        let of_each = size.draws.div_ceil(chains.max(1)).max(1);
        let mut predict =
            family(problem.settings.sampler.method()).predictor(problem, &self.run)?;
        predict.use_every(kept.div_ceil(of_each));
        let is_importance_known = size.test_rows >= FEWEST_TEST_ROWS;
        let tested = match is_importance_known {
            true => size.test_rows * (1 + size.shifts * columns.len()),
            false => 0,
        };
        let mut work = Work {
            predictor: self,
            predict,
            done: 0,
            total: (tested + size.train_rows * scale.places) as u64,
            draws: 1,
            progress,
        };
        let mut found = InputEffects {
            columns: columns.len(),
            draws: 1,
            test_rows: 0,
            are_watched: problem.settings.data.watch.is_some(),
            shifts: size.shifts,
            train_rows: size.train_rows,
            importance: Vec::new(),
            dependence: Vec::new(),
        };
        if is_importance_known {
            found.test_rows = size.test_rows;
            found.importance = work.importance(&columns, size)?;
        }
        let rank = |column: &TableColumn| {
            let mut all = found.importance.iter();
            all.position(|own| own.column == column.name).unwrap_or(0)
        };
        let mut ranked: Vec<_> = columns.iter().zip(&places).collect();
        ranked.sort_by_key(|(column, _)| rank(column));
        let rows: Vec<usize> = evenly(problem.train.rows, size.train_rows).collect();
        let inputs = problem.train.select(&rows).inputs.to_reals();
        let mut dependence = Vec::new();
        for (column, places) in ranked.into_iter().take(MOST_COLUMNS) {
            let width = description.columns;
            let outputs = description.output_names.len();
            let first = column.inputs.start;
            let curves = dependence::dependence(&inputs, width, first, places, outputs, |rows| {
                work.functions(rows)
            })?;
            for output in shown_outputs(&problem.train) {
                let (mean, quantiles) = curves[output].iter().copied().unzip();
                dependence.push(Dependence {
                    column: column.name.clone(),
                    output: description.output_names[output].clone(),
                    levels: column.levels().map(<[String]>::to_vec),
                    places: places.iter().map(|place| place.at).collect(),
                    mean,
                    quantiles,
                    training_values: column.rug(&problem.train.inputs, width, MOST_IN_RUG),
                });
            }
        }
        found.dependence = dependence;
        found.draws = work.draws;
        (work.progress)(work.total, work.total)?;
        Ok(found)
    }
}

/// Of two classes the second, of more the commonest; of targets the first.
fn shown_outputs(train: &Dataset) -> Vec<usize> {
    match &train.targets {
        Targets::Real { names, .. } => (0..names.len().min(MOST_OUTPUTS)).collect(),
        Targets::Classes { names, .. } if names.len() == 2 => vec![1],
        Targets::Classes { labels, names } => {
            let mut counts = vec![0_usize; names.len()];
            for &label in labels {
                if let Some(count) = counts.get_mut(label as usize) {
                    *count += 1;
                }
            }
            let mut all: Vec<usize> = (0..names.len()).collect();
            all.sort_by_key(|&class| std::cmp::Reverse(counts[class]));
            all.truncate(MOST_OUTPUTS);
            all.sort_unstable();
            all
        }
    }
}

#[cfg(test)]
mod tests;
