//! Differences of two predictors on the same test rows and the same seeds.

use reprior::metrics::ClassPredictions;

use crate::{Estimate, Failure, Row, Table};

/// The table of blocks of test rows.
pub(super) const BLOCKS: &str = "blocks";

/// Groups of test rows whose means are kept: predictors are compared block by block.
const COUNT: usize = 100;

/// Mean NLL and accuracy of each of 100 groups of rows, which are as equal as they can be, of fewer rows one each, as a row of the table `blocks` that begins with the values of `choices`.
///
/// # Errors
/// Probabilities that are none.
pub(super) fn blocks(
    choices: &Row,
    probabilities: &[f64],
    labels: &[u32],
    classes: usize,
) -> Result<Row, Failure> {
    let count = labels.len().min(COUNT);
    let mut row = choices.in_table(BLOCKS);
    for index in 0..count {
        let [first, end] = [index, index + 1].map(|at| at * labels.len() / count);
        let (own, labels) = (
            &probabilities[first * classes..end * classes],
            &labels[first..end],
        );
        let predictions = ClassPredictions::new(own, labels, classes)?;
        row = row
            .with(&format!("nll {index}"), predictions.nll())
            .with(&format!("accuracy {index}"), predictions.accuracy());
    }
    Ok(row)
}

/// Who predicts: method, prior, predictor.
pub(super) type Predictor<'a> = [&'a str; 3];

/// The mean difference of `measure` (`nll` or `accuracy`) between two predictors, over test rows and seeds: the error has a part of
/// each (over the means of groups of rows, and of seeds; Satterthwaite 1946: degrees of freedom). In doubt of one seed, and where groups have no
/// finite difference, because a probability is 0: they are left out of all seeds.
pub(super) fn difference(
    tables: &[Table],
    measure: &str,
    first: Predictor<'_>,
    second: Predictor<'_>,
) -> Estimate {
    let Some(table) = tables.iter().find(|table| table.name == BLOCKS) else {
        return Estimate::exact(f64::NAN);
    };
    let of = |[method, prior, predictor]: Predictor<'_>| {
        table.select(&[
            ("method", method.into()),
            ("prior", prior.into()),
            ("predictor", predictor.into()),
        ])
    };
    let others = of(second);
    let mut by_seed: Vec<Vec<f64>> = Vec::new();
    for row in of(first) {
        if let Some(other) = others
            .iter()
            .find(|other| other.get("seed") == row.get("seed"))
        {
            let block = |index: usize| {
                let name = format!("{measure} {index}");
                row.number(&name) - other.number(&name)
            };
            // an NLL that is infinite is not written, an accuracy always is
            let is_there = |index: &usize| {
                let name = format!("accuracy {index}");
                row.number(&name).is_finite() && other.number(&name).is_finite()
            };
            by_seed.push((0..).take_while(is_there).map(block).collect());
        }
    }
    combined(&by_seed)
}

/// Of differences of every block, seed by seed.
fn combined(by_seed: &[Vec<f64>]) -> Estimate {
    let blocks = by_seed.iter().map(Vec::len).min().unwrap_or(0);
    let finite: Vec<usize> = (0..blocks)
        .filter(|&index| by_seed.iter().all(|blocks| blocks[index].is_finite()))
        .collect();
    let kept: Vec<Vec<f64>> = (by_seed.iter())
        .map(|blocks| finite.iter().map(|&index| blocks[index]).collect())
        .collect();
    let found = of_finite(&kept);
    match blocks - finite.len() {
        0 => found,
        left_out => found.doubted(format!(
            "{left_out} of {blocks} groups of rows have no finite difference and are left out"
        )),
    }
}

fn of_finite(by_seed: &[Vec<f64>]) -> Estimate {
    let Some(first) = by_seed.first() else {
        return Estimate::exact(f64::NAN);
    };
    let seeds = by_seed.len() as f64;
    let block = |index: usize| by_seed.iter().map(|blocks| blocks[index]).sum::<f64>() / seeds;
    let rows = Estimate::mean(&(0..first.len()).map(block).collect::<Vec<_>>());
    let means: Vec<f64> = by_seed
        .iter()
        .map(|blocks| blocks.iter().sum::<f64>() / blocks.len() as f64)
        .collect();
    if means.len() < 2 {
        return rows.doubted("one seed says nothing of others");
    }
    Estimate {
        value: rows.value,
        ..Estimate::mean(&means).with_rows(&rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(method: &str, seed: usize) -> Row {
        Row::new()
            .with("method", method)
            .with("prior", "a")
            .with("seed", seed)
            .with("predictor", "b")
    }

    #[test]
    fn errors_are_of_rows_and_of_seeds() {
        let by_seed = [vec![0.0, 1.0, 2.0, 3.0], vec![1.0, 2.0, 3.0, 4.0]];
        let found = combined(&by_seed);
        assert_eq!(found.value, 2.0);
        let rows = Estimate::mean(&[0.5, 1.5, 2.5, 3.5]).error;
        let seeds = Estimate::mean(&[1.5, 2.5]).error;
        assert!((found.error - rows.hypot(seeds)).abs() < 1e-12);
        assert!(found.degrees == 1.0 && found.doubt.is_none());
        assert!(combined(&by_seed[..1]).doubt.is_some());
        // the same groups of all seeds, whichever of them has no bound
        let [mut first, mut second] = by_seed.clone();
        (first[0], second[3]) = (f64::INFINITY, f64::INFINITY);
        let left = combined(&[first, second]);
        assert_eq!(left.value, 2.0);
        assert!(left.doubt.is_some_and(|doubt| doubt.contains("2 of 4")));
        assert!(combined(&[]).value.is_nan());
    }

    /// However many rows there are, each counts.
    #[test]
    fn no_row_is_left_out() {
        for count in [40_u32, 100, 199, 250] {
            let labels: Vec<u32> = (0..count).map(|row| row % 2).collect();
            let row = |method: &str, seed: usize, sure: f64| {
                // the last row alone is wrong
                let p = labels.iter().enumerate().flat_map(|(at, &label)| {
                    let right = if at + 1 < labels.len() {
                        sure
                    } else {
                        1.0 - sure
                    };
                    let first = if label == 0 { right } else { 1.0 - right };
                    [first, 1.0 - first]
                });
                blocks(&choices(method, seed), &p.collect::<Vec<_>>(), &labels, 2).unwrap()
            };
            let mut rows = vec![row("x", 0, 0.9), row("x", 1, 0.9)];
            let all_wrong = |seed| {
                let mut wrong = row("wrong", seed, 0.9);
                for (name, value) in &mut wrong.values {
                    if name.starts_with("accuracy") {
                        *value = 0.0.into();
                    }
                }
                wrong
            };
            rows.extend([all_wrong(0), all_wrong(1)]);
            let tables = Table::all(rows);
            let found = difference(&tables, "accuracy", ["x", "a", "b"], ["wrong", "a", "b"]);
            assert!(found.doubt.is_none(), "{count}: {found:?}");
            assert!(found.value < 1.0 && found.value > 0.97, "{count}: {found}");
            let groups = (0..).take_while(|at| {
                let name = format!("nll {at}");
                tables[0].rows[0].get(&name).is_some()
            });
            assert_eq!(groups.count(), labels.len().min(COUNT));
        }
    }

    #[test]
    fn predictors_are_paired_by_seed_and_rows() {
        let labels: Vec<u32> = (0..200).map(|row| row % 2).collect();
        let row = |method: &str, seed: usize, sure: f64| {
            let p = labels.iter().flat_map(|&label| {
                let first = if label == 0 { sure } else { 1.0 - sure };
                [first, 1.0 - first]
            });
            blocks(&choices(method, seed), &p.collect::<Vec<_>>(), &labels, 2).unwrap()
        };
        let rows = vec![
            row("x", 0, 0.9),
            row("y", 1, 0.8),
            row("x", 1, 0.9),
            row("y", 0, 0.8),
        ];
        let tables = Table::all(rows);
        let found = difference(&tables, "nll", ["x", "a", "b"], ["y", "a", "b"]);
        assert!(
            (found.value - (0.8_f64 / 0.9).ln()).abs() < 1e-12,
            "{found}"
        );
        assert!(found.error < 1e-12);
        assert!(
            difference(&tables, "nll", ["x", "a", "b"], ["z", "a", "b"])
                .value
                .is_nan()
        );
    }
}
