//! The columns of a table as people know them, each with the network's inputs that were made of it: they are changed together or not at all.

use std::ops::Range;

use reprior::model::dataset::InputValues;
use reprior_io::data::{Becomes, ColumnEncoding};

use crate::problem::DataDescription;

/// Places of a numeric column at which the dependence on it is looked at, at most.
const MOST_PLACES: usize = 20;
/// Of the training values, the share below the first place and above the last.
const TAIL: f64 = 0.01;

/// One column of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableColumn {
    pub name: String,
    /// The inputs that were made of it.
    pub inputs: Range<usize>,
    kind: ColumnKind,
}

#[derive(Debug, Clone, PartialEq)]
enum ColumnKind {
    /// The first of the inputs is a number that stands for the column: itself, or days. Where others follow from it, places are those of training rows.
    Number { has_others: bool },
    /// One of these; a boolean has one input, levels have one each.
    Levels {
        names: Vec<String>,
        is_boolean: bool,
    },
}

/// A value that a column can have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Place {
    /// Along an axis; of levels their number.
    pub at: f64,
    /// All inputs of the column.
    pub inputs: Vec<f64>,
}

impl TableColumn {
    /// Those of a table's inputs.
    pub fn of(description: &DataDescription) -> Vec<Self> {
        let Some(encoding) = &description.encoding else {
            let name = |input: usize| {
                let known = description.column_names.get(input);
                known.map_or_else(|| format!("input {}", input + 1), Clone::clone)
            };
            let own = |input: usize| Self {
                name: name(input),
                inputs: input..input + 1,
                kind: ColumnKind::Number { has_others: false },
            };
            return (0..description.columns).map(own).collect();
        };
        let mut start = 0;
        let mut columns = Vec::new();
        for column in encoding.used() {
            let end = start + column.input_names().len();
            columns.push(Self {
                name: column.column.clone(),
                inputs: start..end,
                kind: kind(column),
            });
            start = end;
        }
        columns
    }

    /// Names of its levels; none of a number.
    pub fn levels(&self) -> Option<&[String]> {
        match &self.kind {
            ColumnKind::Levels { names, .. } => Some(names),
            ColumnKind::Number { .. } => None,
        }
    }

    /// The values at which the dependence on it is looked at, given the training inputs (rows × `columns`).
    ///
    /// Of levels all. Of numbers with few values these, otherwise evenly spaced ones from the 1 % to the 99 % quantile, with no cell
    /// missing. Of dates those of evenly chosen training rows in the order of time, because the season follows from the day.
    pub fn places(&self, train: &InputValues, columns: usize) -> Vec<Place> {
        let width = self.inputs.len();
        match &self.kind {
            ColumnKind::Levels { names, is_boolean } => {
                let place = |level: usize| {
                    let mut inputs = vec![0.0; width];
                    match is_boolean {
                        true => inputs[0] = level as f64,
                        false => inputs[level] = 1.0,
                    }
                    Place {
                        at: level as f64,
                        inputs,
                    }
                };
                (0..names.len()).map(place).collect()
            }
            ColumnKind::Number { has_others } => {
                let rows = self.sorted(train, columns);
                let mut places: Vec<Place> = Vec::new();
                if *has_others {
                    let chosen = evenly(rows.len(), MOST_PLACES).map(|index| rows[index].1);
                    for row in chosen {
                        let own = self.inputs.clone();
                        let inputs = own.map(|input| train.get(row * columns + input));
                        let inputs: Vec<f64> = inputs.collect();
                        places.push(Place {
                            at: inputs[0],
                            inputs,
                        });
                    }
                } else {
                    let mut all = numbers(rows.iter().map(|(value, _)| *value).collect());
                    all.dedup();
                    places.extend(all.into_iter().map(|at| {
                        let mut inputs = vec![0.0; width];
                        inputs[0] = at;
                        Place { at, inputs }
                    }));
                }
                places.dedup_by(|a, b| a.at == b.at);
                places
            }
        }
    }

    /// Training values, evenly chosen from the least to the greatest; of levels none.
    pub fn rug(&self, train: &InputValues, columns: usize, most: usize) -> Vec<f64> {
        if self.levels().is_some() {
            return Vec::new();
        }
        let rows = self.sorted(train, columns);
        evenly(rows.len(), most).map(|at| rows[at].0).collect()
    }

    /// Values of the first input and their rows, in the order of the values.
    fn sorted(&self, train: &InputValues, columns: usize) -> Vec<(f64, usize)> {
        let rows = train.len().checked_div(columns).unwrap_or(0);
        let value = |row: usize| (train.get(row * columns + self.inputs.start), row);
        let mut all: Vec<(f64, usize)> = (0..rows).map(value).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all
    }
}

fn kind(column: &ColumnEncoding) -> ColumnKind {
    match &column.becomes {
        Becomes::Boolean { .. } => ColumnKind::Levels {
            names: ["no", "yes"].map(str::to_owned).into(),
            is_boolean: true,
        },
        Becomes::Levels {
            levels, has_other, ..
        } => {
            let other = has_other.then(|| "other".to_owned());
            ColumnKind::Levels {
                names: levels.iter().cloned().chain(other).collect(),
                is_boolean: false,
            }
        }
        Becomes::Date { .. } => ColumnKind::Number { has_others: true },
        Becomes::Number { .. } | Becomes::LeftOut { .. } => {
            ColumnKind::Number { has_others: false }
        }
    }
}

/// Places for a number with these values, in their order.
fn numbers(sorted: Vec<f64>) -> Vec<f64> {
    let mut distinct = sorted.clone();
    distinct.dedup();
    if distinct.len() <= MOST_PLACES {
        return distinct;
    }
    let quantile = |share: f64| sorted[(share * (sorted.len() - 1) as f64).round() as usize];
    let [low, high] = [TAIL, 1.0 - TAIL].map(quantile);
    let step = (high - low) / (MOST_PLACES - 1) as f64;
    (0..MOST_PLACES)
        .map(|index| low + step * index as f64)
        .collect()
}

/// Of so many indices at most `most`, evenly spaced, the first and the last among them.
pub(crate) fn evenly(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let chosen = count.min(most);
    (0..chosen).map(move |index| match chosen {
        1 => 0,
        _ => index * (count - 1) / (chosen - 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: ColumnKind, inputs: Range<usize>) -> TableColumn {
        TableColumn {
            name: "x".to_owned(),
            inputs,
            kind,
        }
    }

    #[test]
    fn levels_are_one_at_a_time_and_numbers_are_never_missing() {
        let names = ["a", "b"].map(str::to_owned).to_vec();
        let is_boolean = false;
        // the third input says that the cell is missing
        let levels = column(ColumnKind::Levels { names, is_boolean }, 0..3);
        let none = InputValues::from(Vec::new());
        let places = levels.places(&none, 3);
        assert_eq!(places[0].inputs, [1.0, 0.0, 0.0]);
        assert_eq!(places[1].inputs, [0.0, 1.0, 0.0]);
        let number = column(ColumnKind::Number { has_others: false }, 0..2);
        let train = InputValues::from(vec![3.0, 0.0, 1.0, 1.0, 3.0, 0.0]);
        let places = number.places(&train, 2);
        let at: Vec<f64> = places.iter().map(|place| place.at).collect();
        assert_eq!(at, [1.0, 3.0]);
        assert_eq!(places[0].inputs, [1.0, 0.0]);
        assert_eq!(number.rug(&train, 2, 2), [1.0, 3.0]);
    }

    #[test]
    fn many_numbers_are_looked_at_within_their_tails() {
        let number = column(ColumnKind::Number { has_others: false }, 0..1);
        let values: Vec<f64> = (0..=1000).map(f64::from).collect();
        let places = number.places(&InputValues::from(values), 1);
        assert_eq!(places.len(), MOST_PLACES);
        assert_eq!(places[0].at, 10.0);
        assert_eq!(places[MOST_PLACES - 1].at, 990.0);
    }
}
