//! Which records train and which test, and in what order.
//!
//! A shuffle permutes uniformly, then interleaves the classes:
//! * sets with a test set of their own (two files): in rounds, one record of each class in turn, so that any first N hold equally many of each class as long as
//!   the classes last;
//! * a single table, whose test rows are those left over: in proportion, so that any first N hold each class as often as the whole table does, within about one
//!   record. (Rounds would leave only the commonest class for the test rows.) For classes of equal size the two orders agree.

use reprior::model::dataset::{Dataset, Split, Targets};

use super::random::RandomStream;
use super::{DataError, Request, csv_source};

/// How classes are interleaved by a shuffle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Interleave {
    /// Equal numbers of each class first.
    Rounds,
    /// Each class in proportion to its number.
    Proportion,
}

/// Streams of the shuffle's seed.
pub(super) const TRAIN_STREAM: u64 = 0;
pub(super) const TEST_STREAM: u64 = 1;

/// A shuffled order of `rows` records, interleaved by class where there are labels.
pub(super) fn shuffled(
    rows: usize,
    labels: Option<&[u32]>,
    seed: u64,
    stream: u64,
    how: Interleave,
) -> Vec<usize> {
    let order = RandomStream::new(seed, stream).permutation(rows);
    let Some(labels) = labels else { return order };
    let classes = labels.iter().max().map_or(0, |&label| label as usize + 1);
    let mut sizes = vec![0_u64; classes];
    for &label in labels {
        sizes[label as usize] += 1;
    }
    let mut seen = vec![0_u64; classes];
    let mut keyed: Vec<(u64, u64, u32, usize)> = order
        .into_iter()
        .map(|row| {
            let label = labels[row];
            let rank = seen[label as usize];
            seen[label as usize] += 1;
            match how {
                Interleave::Rounds => (rank, 1, label, row),
                Interleave::Proportion => (2 * rank + 1, sizes[label as usize], label, row),
            }
        })
        .collect();
    // Compares the fractions rank / size exactly, by cross-multiplication.
    keyed.sort_by(|a, b| {
        let (left, right) = (
            u128::from(a.0) * u128::from(b.1),
            u128::from(b.0) * u128::from(a.1),
        );
        left.cmp(&right).then(a.2.cmp(&b.2))
    });
    keyed.into_iter().map(|(_, _, _, row)| row).collect()
}

/// Splits one table: training rows first, test rows those that follow. `default_train` is the number of training rows if none is asked for.
pub(super) fn split_table(
    table: &Dataset,
    request: &Request,
    default_train: usize,
) -> Result<Split, DataError> {
    let [train, test] = split_rows(table.rows, labels(table), request, default_train)?;
    Ok(Split {
        train: table.select(&train),
        test: table.select(&test),
    })
}

/// The rows of a table that train and those that test, in order.
pub(super) fn split_rows(
    rows: usize,
    labels: Option<&[u32]>,
    request: &Request,
    default_train: usize,
) -> Result<[Vec<usize>; 2], DataError> {
    let not_enough = |set, available, asked| DataError::NotEnough {
        path: csv_source::shown(&request.source).display().to_string(),
        set,
        available,
        asked,
    };
    let train = match (request.train, request.test) {
        (Some(train), _) => train,
        (None, Some(test)) => rows
            .checked_sub(test)
            .ok_or_else(|| not_enough("records", rows, test))?,
        (None, None) => default_train,
    };
    let left = rows
        .checked_sub(train)
        .ok_or_else(|| not_enough("records", rows, train))?;
    let test = request.test.unwrap_or(left);
    if test > left {
        return Err(not_enough("records besides those for training", left, test));
    }
    at_least_two(&request.source, train)?;
    let mut order = match request.shuffle {
        None => (0..rows).collect(),
        Some(seed) => shuffled(rows, labels, seed, TRAIN_STREAM, Interleave::Proportion),
    };
    order.truncate(train + test);
    let test = order.split_off(train);
    Ok([order, test])
}

/// All rows of a table, which train, and so many of them, evenly spaced, that are watched.
pub(super) fn watched(
    source: &str,
    rows: usize,
    count: usize,
) -> Result<[Vec<usize>; 2], DataError> {
    at_least_two(source, rows)?;
    let count = count.min(rows);
    let watched = (0..count).map(|at| (at * rows + rows / 2) / count.max(1));
    Ok([
        (0..rows).collect(),
        watched.map(|row| row.min(rows - 1)).collect(),
    ])
}

/// The first `rows` records of a set that has a file of its own, shuffled before if asked for.
pub(super) fn first(data: Dataset, rows: usize, shuffle: Option<u64>, stream: u64) -> Dataset {
    match shuffle {
        None if rows == data.rows => data,
        None => data.slice(0..rows),
        Some(seed) => {
            let labels = labels(&data);
            let order = shuffled(data.rows, labels, seed, stream, Interleave::Rounds);
            data.select(&order[..rows])
        }
    }
}

/// The number of records to take from a set that has a file of its own.
pub(super) fn wanted(
    path: &str,
    set: &'static str,
    available: usize,
    asked: Option<usize>,
) -> Result<usize, DataError> {
    match asked {
        Some(asked) if asked > available => Err(DataError::NotEnough {
            path: path.to_string(),
            set,
            available,
            asked,
        }),
        Some(asked) => Ok(asked),
        None => Ok(available),
    }
}

/// Refuses a training set of fewer than two records.
pub(super) fn at_least_two(path: &str, rows: usize) -> Result<(), DataError> {
    if rows < 2 {
        Err(DataError::TooFewRows {
            path: path.to_string(),
            rows,
        })
    } else {
        Ok(())
    }
}

/// The labels of a set of records with classes.
pub(super) fn labels(data: &Dataset) -> Option<&[u32]> {
    match &data.targets {
        Targets::Classes { labels, .. } => Some(labels),
        Targets::Real { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shuffle_is_stable() {
        assert_eq!(
            shuffled(10, None, 42, TRAIN_STREAM, Interleave::Rounds),
            [7, 6, 5, 1, 0, 4, 8, 9, 2, 3]
        );
        assert_eq!(
            shuffled(10, None, 42, TEST_STREAM, Interleave::Rounds),
            [4, 6, 8, 9, 2, 3, 0, 5, 1, 7]
        );
        let labels = [0, 0, 0, 0, 0, 0, 1, 1, 2, 2];
        assert_eq!(
            shuffled(10, Some(&labels), 42, TRAIN_STREAM, Interleave::Rounds),
            [5, 7, 8, 1, 6, 9, 0, 4, 2, 3]
        );
    }

    #[test]
    fn rounds_take_each_class_in_turn() {
        let labels: Vec<u32> = (0..100)
            .map(|row| u32::from(row >= 80) + u32::from(row >= 95))
            .collect();
        let order = shuffled(100, Some(&labels), 1, 0, Interleave::Rounds);
        let first: Vec<u32> = order[..15].iter().map(|&row| labels[row]).collect();
        assert_eq!(first, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
        assert_eq!(labels[order[15]], 0);
        assert_eq!(labels[order[16]], 1);
    }

    #[test]
    fn proportions_hold_in_every_prefix() {
        let labels: Vec<u32> = (0..100)
            .map(|row| u32::from(row >= 80) + u32::from(row >= 95))
            .collect();
        let order = shuffled(100, Some(&labels), 1, 0, Interleave::Proportion);
        for end in 1..=100 {
            for (class, share) in [(0, 0.80), (1, 0.15), (2, 0.05)] {
                let count = order[..end]
                    .iter()
                    .filter(|&&row| labels[row] == class)
                    .count() as f64;
                assert!(
                    (count - share * end as f64).abs() <= 1.0,
                    "{class} {end} {count}"
                );
            }
        }
    }

    #[test]
    fn equal_classes_make_both_orders_agree() {
        let labels: Vec<u32> = (0..60).map(|row| row % 3).collect();
        let [rounds, proportion] = [Interleave::Rounds, Interleave::Proportion]
            .map(|how| shuffled(60, Some(&labels), 5, 0, how));
        assert_eq!(rounds, proportion);
    }
}
