//! What a user should know of records before anything is learned from them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use reprior::model::dataset::{Dataset, InputKind, Split, Targets};

use super::error::{excerpt, list};

/// Interquartile ranges from the median beyond which a number is hardly meant.
const FAR: f64 = 1e6;
/// Distinct whole numbers of a target that may be classes, at most, and the rows that it takes to say so.
const FEW_VALUES: usize = 5;
const ENOUGH_ROWS: usize = 20;
/// Counts of a larger mean are as good as real numbers.
const LARGEST_MEAN: f64 = 50.0;

/// Lines on a table: cells far out, classes that no training row has, equal rows of different classes, and a target that may be classes or counts
/// where it is to be treated as numbers of any size. Nothing of images. Cost: some passes over the records.
pub fn look(split: &Split, is_real: bool) -> Vec<String> {
    let train = &split.train;
    if train.kind != InputKind::Table {
        return Vec::new();
    }
    let mut notes: Vec<String> = far_out(split);
    match &train.targets {
        Targets::Classes { labels, names } => {
            notes.extend(without_training_row(labels, names));
            notes.extend(conflicting(train, labels));
        }
        Targets::Real { values, names } => {
            if let ([name], true) = (names.as_slice(), is_real) {
                notes.extend(whole_numbers(values, name));
            }
        }
    }
    notes
}

/// Columns with cells far from the others.
fn far_out(split: &Split) -> Vec<String> {
    let columns = split.train.columns;
    let mut found = Vec::new();
    for column in 0..columns {
        let of = |set: &Dataset| -> Vec<f64> {
            let rows = 0..set.rows;
            rows.map(|row| set.inputs.get(row * columns + column))
                .collect()
        };
        let mut train = of(&split.train);
        let all = [train.clone(), of(&split.test)].concat();
        let last = train.len().saturating_sub(1) as f64;
        let mut at = |share: f64| {
            let place = (last * share).round() as usize;
            *train.select_nth_unstable_by(place, f64::total_cmp).1
        };
        let (centre, range) = (at(0.5), at(0.75) / 2.0 - at(0.25) / 2.0);
        if range <= 0.0 {
            continue;
        }
        // halves, since the difference of two large numbers may be infinite
        let distance = |x: f64| (x / 2.0 - centre / 2.0).abs() / range;
        let far: Vec<f64> = all.into_iter().filter(|&x| distance(x) > FAR).collect();
        let farthest = far
            .iter()
            .copied()
            .max_by(|a, b| distance(*a).total_cmp(&distance(*b)));
        if let Some(farthest) = farthest {
            let name = split.train.column_names.get(column);
            let name = name.map_or_else(|| column.to_string(), |name| excerpt(name));
            found.push(format!(
                "input `{name}` has {} value(s) more than a million interquartile ranges from its median, the farthest {farthest:e}: are they meant?",
                far.len()
            ));
        }
    }
    found
}

/// Classes of test rows alone.
fn without_training_row(labels: &[u32], names: &[String]) -> Option<String> {
    let mut is_seen = vec![false; names.len()];
    labels
        .iter()
        .for_each(|&label| is_seen[label as usize] = true);
    let unseen = names.iter().zip(&is_seen).filter(|(_, is_seen)| !**is_seen);
    let unseen: Vec<String> = unseen.map(|(name, _)| name.clone()).collect();
    (!unseen.is_empty()).then(|| {
        format!(
            "no training row has the class {}, so that it cannot be learned: use more training rows, or --shuffle SEED",
            list(&unseen)
        )
    })
}

/// Training rows whose inputs another row has with another class.
fn conflicting(train: &Dataset, labels: &[u32]) -> Option<String> {
    // by a hash of 64 bits: of a million rows, two are taken for one with a probability of 3e-8
    let mut of_inputs: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for (row, &label) in labels.iter().enumerate() {
        let mut hash = DefaultHasher::new();
        for at in row * train.columns..(row + 1) * train.columns {
            // + 0: both zeros are one
            (train.inputs.get(at) + 0.0).to_bits().hash(&mut hash);
        }
        of_inputs.entry(hash.finish()).or_default().push(label);
    }
    let is_mixed = |labels: &&Vec<u32>| labels.iter().any(|label| *label != labels[0]);
    let count: usize = of_inputs.values().filter(is_mixed).map(Vec::len).sum();
    (count > 0).then(|| {
        format!(
            "{count} training rows have the same inputs as another row of another class: no model can tell them apart"
        )
    })
}

/// A target of few whole numbers, or of whole numbers from near 0 on.
fn whole_numbers(values: &[f64], name: &str) -> Option<String> {
    let mut distinct: Vec<f64> = values.to_vec();
    distinct.sort_unstable_by(f64::total_cmp);
    distinct.dedup();
    let are_whole = distinct.iter().all(|value| value.fract() == 0.0);
    if values.len() < ENOUGH_ROWS || !are_whole {
        return None;
    }
    let (name, count) = (excerpt(name), distinct.len());
    if (2..=FEW_VALUES).contains(&count) {
        return Some(format!(
            "target `{name}` has {count} values and is treated as a number: for classes say --task classification"
        ));
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let is_count = count > FEW_VALUES && distinct[0] >= 0.0 && distinct[0] <= 1.0;
    (is_count && mean <= LARGEST_MEAN).then(|| {
        format!("target `{name}` is whole numbers from {} on: if they are counts, --likelihood poisson is for them", distinct[0])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(inputs: Vec<f64>, targets: Targets) -> Split {
        let rows = inputs.len();
        let train = Dataset {
            inputs: inputs.into(),
            rows,
            columns: 1,
            column_names: vec!["x".to_owned()],
            kind: InputKind::Table,
            targets,
        };
        Split {
            test: train.slice(0..0),
            train,
        }
    }

    fn real(values: Vec<f64>) -> Targets {
        Targets::Real {
            values,
            names: vec!["y".to_owned()],
        }
    }

    #[test]
    fn far_cells_and_few_values_are_noted() {
        let mut inputs: Vec<f64> = (0..30).map(f64::from).collect();
        let y: Vec<f64> = (0..30).map(|row| f64::from(row % 2)).collect();
        let notes = look(&split(inputs.clone(), real(y.clone())), true);
        assert!(
            notes.len() == 1 && notes[0].contains("`y` has 2 values"),
            "{notes:?}"
        );
        assert!(notes[0].contains("--task classification"), "{notes:?}");
        let counts = (0..30).map(|row| f64::from(row % 9)).collect();
        let notes = look(&split(inputs.clone(), real(counts)), true);
        assert!(
            notes.len() == 1 && notes[0].contains("poisson"),
            "{notes:?}"
        );
        // years are no counts
        let years = (0..30).map(|row| 1990.0 + f64::from(row % 9)).collect();
        assert!(look(&split(inputs.clone(), real(years)), true).is_empty());
        inputs[3] = -1e300;
        let halves = y.iter().map(|y| y + 0.5).collect();
        let notes = look(&split(inputs, real(halves)), true);
        assert!(
            notes.len() == 1 && notes[0].contains("`x` has 1 value(s)"),
            "{notes:?}"
        );
        assert!(notes[0].contains("-1e300"), "{notes:?}");
    }

    #[test]
    fn classes_are_looked_at() {
        let targets = Targets::Classes {
            labels: vec![0, 1, 0, 0],
            names: ["a", "b", "c"].map(String::from).to_vec(),
        };
        let notes = look(&split(vec![1.0, 1.0, 2.0, 2.0], targets), true);
        assert!(notes[0].contains("class `c`"), "{notes:?}");
        assert!(notes[1].starts_with("2 training rows"), "{notes:?}");
    }
}
