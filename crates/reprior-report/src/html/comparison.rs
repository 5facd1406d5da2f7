//! Runs compared by leave-one-out cross-validation: differences row by row, with their standard error (Vehtari, Gelman & Gabry 2017, eq. 24).
//!
//! Terms of the same row are alike in all runs - an outlier is one for every model - so that the error of the difference is much smaller than
//! those of the sums. Rows that not all runs have left out are not compared.

use maud::{Markup, html};
use reprior::diagnostics::RowSum;
use reprior_run::LeftOutRows;
use reprior_run::words::number;

use super::item;
use crate::RunPage;

/// Rows below which no standard error means anything.
const FEWEST_ROWS: usize = 10;

/// The table, or why runs cannot be compared.
pub(super) fn left_out(runs: &[RunPage], names: &[String]) -> Markup {
    match compare(runs, names) {
        Err(why) => html! {
            p.missing { "The runs are not compared by leave-one-out cross-validation: " (why) "." }
        },
        Ok((count, rows)) => {
            let columns = [
                "run",
                "elpd_loo",
                "difference from the best",
                "p_loo",
                "Pareto k > 0.7",
            ];
            html! {
                h3 { "Leave-one-out cross-validation" }
                (item::table(&columns.map(str::to_owned), &rows))
                p.quiet {
                    "Best first, over the same " (count) " training rows. A difference of a few nats, or of less than twice its standard error, tells nothing; "
                    "where rows have a Pareto k above 0.7, neither do the sums."
                }
            }
        }
    }
}

/// How many rows are compared, and a line for each run, the best first.
fn compare(runs: &[RunPage], names: &[String]) -> Result<(usize, Vec<Vec<String>>), String> {
    let mut all: Vec<(&String, &RunPage, &LeftOutRows)> = Vec::new();
    for (run, name) in runs.iter().zip(names) {
        match &run.left_out {
            Ok(found) => all.push((name, run, found)),
            Err(why) => return Err(format!("{name} has none, because {why}")),
        }
    }
    let Some((first_name, first, reference)) = all.first().copied() else {
        return Err("there are no runs".to_owned());
    };
    for (name, run, found) in &all {
        let names = format!("{first_name} and {name}");
        if run.training_targets.len() != first.training_targets.len() {
            return Err(format!("{names} have different numbers of training rows"));
        }
        let mut targets = run.training_targets.iter().zip(&first.training_targets);
        if targets.any(|(own, other)| own.to_bits() != other.to_bits()) {
            return Err(format!(
                "{names} have different training rows, or the same in another order"
            ));
        }
        let [own, other] = [found, reference].map(|found| found.summary.measure);
        if own != other {
            return Err(format!("{names} are not measured alike ({other}, {own})"));
        }
    }
    let is_in_all = |row: &usize| {
        let mut others = all.iter();
        others.all(|(_, _, found)| found.rows.binary_search(row).is_ok())
    };
    let rows: Vec<usize> = reference.rows.iter().copied().filter(is_in_all).collect();
    if rows.len() < FEWEST_ROWS {
        return Err(format!("they have {} rows in common", rows.len()));
    }
    let of_run = |found: &LeftOutRows| -> Vec<f64> {
        let place = |row: &usize| found.rows.binary_search(row).ok();
        let places = rows.iter().filter_map(place);
        places.map(|at| found.log_densities[at]).collect()
    };
    let mut compared: Vec<_> = all
        .iter()
        .map(|(name, _, found)| (*name, *found, of_run(found)))
        .collect();
    // what is not a number comes last
    let sum = |values: &[f64]| match values.iter().sum::<f64>() {
        sum if sum.is_nan() => f64::NEG_INFINITY,
        sum => sum,
    };
    compared.sort_by(|a, b| sum(&b.2).total_cmp(&sum(&a.2)));
    let best = compared[0].2.clone();
    let line = |(name, found, own): &(&String, &LeftOutRows, Vec<f64>)| {
        let total = RowSum::of(own.iter().copied());
        let difference = RowSum::of(own.iter().zip(&best).map(|(own, best)| own - best));
        let with_error =
            |sum: RowSum| format!("{} ± {}", number(sum.total), number(sum.standard_error));
        // of other rows than are compared they say nothing of these
        let are_same_rows = found.rows == rows;
        let p_loo = match are_same_rows {
            true => number(found.summary.p_loo),
            false => "-".to_owned(),
        };
        let above = match (found.summary.is_exact, are_same_rows) {
            (true, _) => "exact".to_owned(),
            (false, false) => "-".to_owned(),
            (false, true) => format!("{} of {}", found.summary.rows_above_07, found.summary.rows),
        };
        vec![
            (*name).clone(),
            with_error(total),
            with_error(difference),
            p_loo,
            above,
        ]
    };
    Ok((rows.len(), compared.iter().map(line).collect()))
}
