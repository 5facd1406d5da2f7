//! The training rows whose log-likelihoods a run records, for leave-one-out cross-validation: all, or a random choice.
//!
//! The choice hangs on nothing but the numbers of rows: of two runs on the same rows, the smaller choice is a part of the larger, so that they can be
//! compared row by row. Rows that minibatch methods hold out are never among them.

use std::collections::HashMap;

use reprior::compute::{Purpose, Stream};
use reprior::model::standardisation::Affine;
use reprior_io::run::{DataType, Draws, Group, Labels};

use super::groups::{LOG_LIKELIHOOD, TARGET};
use super::schema::{group, variable};
use crate::problem::{DataDescription, Problem};
use crate::settings::{MethodName, Settings};

/// The dimension of the chosen rows, where not all are.
pub(super) const CHOSEN: &str = "scored_row";
/// Rows at most of methods that have to evaluate their networks at them.
pub(super) const MOST_EVALUATED: usize = 1000;

/// Training rows that draws are given.
pub(super) fn available(settings: &Settings, description: &DataDescription) -> usize {
    let held_out = match settings.sampler.method() {
        MethodName::Minibatch(_) => settings.minibatch.validation.unwrap_or(0),
        _ => 0,
    };
    description.train_rows.saturating_sub(held_out)
}

/// How many rows a run's settings lead to.
fn scored(settings: &Settings, description: &DataDescription) -> usize {
    let count = settings.record.keep_log_likelihood.unwrap_or(0);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    count.min(available(settings, description))
}

/// The rows that a run's settings lead to, in ascending order.
pub fn scored_rows(settings: &Settings, description: &DataDescription) -> Vec<usize> {
    let available = available(settings, description);
    choose(available, scored(settings, description))
}

/// So many of so many rows: the first places of a shuffle, of which only rows that were moved are remembered.
fn choose(available: usize, count: usize) -> Vec<usize> {
    if count >= available {
        return (0..available).collect();
    }
    let mut stream = Stream::new(0, 0, Purpose::Shuffle, available as u64);
    let mut moved: HashMap<usize, usize> = HashMap::new();
    let mut chosen: Vec<usize> = Vec::new();
    for place in 0..count {
        let left = available - place;
        let other = place + ((stream.uniform() * left as f64) as usize).min(left - 1);
        let own = moved.remove(&place).unwrap_or(place);
        chosen.push(match other == place {
            true => own,
            false => moved.insert(other, own).unwrap_or(other),
        });
    }
    chosen.sort_unstable();
    chosen
}

/// The group of their log-likelihoods, if there are any, as ArviZ has it.
pub(super) fn log_likelihoods(problem: &Problem, text: &str) -> Option<Group> {
    let settings = &problem.settings;
    let rows = scored(settings, &problem.description);
    let name = match rows == problem.description.train_rows {
        true => "train_row",
        false => CHOSEN,
    };
    let dims = [(name, rows as u64)];
    let own = variable(TARGET, DataType::F64, &dims, text);
    let draws = Some(Draws::new(settings.schedule().draws));
    (rows > 0).then(|| group(settings, LOG_LIKELIHOOD, draws, vec![own]))
}

/// Their labels, where they are not all rows.
pub(super) fn labels(problem: &Problem) -> Option<Labels> {
    let count = scored(&problem.settings, &problem.description);
    let is_choice = count > 0 && count < problem.description.train_rows;
    is_choice.then(|| {
        let rows = scored_rows(&problem.settings, &problem.description);
        Labels::Integers(rows.into_iter().map(|row| row as i64).collect())
    })
}

/// What a log-density of standardised targets has to be lowered by, to be one of targets in their own units.
pub fn log_unit(maps: &[Affine]) -> f64 {
    maps.iter().map(|map| map.scale.ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_choices_are_parts_of_larger_ones() {
        let (few, more) = (choose(1000, 50), choose(1000, 300));
        assert_eq!((few.len(), more.len()), (50, 300));
        assert!(few.iter().all(|row| more.contains(row)));
        assert!(more.windows(2).all(|pair| pair[0] < pair[1]));
        // as a shuffle of all of them has it
        let mut stream = Stream::new(0, 0, Purpose::Shuffle, 40);
        let mut all: Vec<usize> = (0..40).collect();
        for place in 0..30 {
            all.swap(
                place,
                place + (stream.uniform() * (40 - place) as f64) as usize,
            );
        }
        all.truncate(30);
        all.sort_unstable();
        assert_eq!(choose(40, 30), all);
        // a damaged number of rows asks for no memory
        assert_eq!(choose(usize::MAX >> 4, 5).len(), 5);
        assert_eq!(choose(7, 7), (0..7).collect::<Vec<_>>());
        assert_eq!(choose(3, 100), [0, 1, 2]);
        assert_eq!(choose(3, 0), [0; 0]);
        // evenly, over all rows
        let mean = more.iter().sum::<usize>() as f64 / 300.0;
        assert!((mean - 500.0).abs() < 60.0, "{mean}");
    }
}
