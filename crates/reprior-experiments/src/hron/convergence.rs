//! What Figures 8 and 9 say of chains that get longer, and how they are drawn.

use std::f64::consts::LN_2;

use super::{COORDINATES, FLOORS};
use crate::effective::Effective;
use crate::findings::results;
use crate::sampled::MOST_RHAT;
use crate::{Estimate, Figure, Finding, Judgement, Row, Table, Value};

/// The claims of Figure 8, and where it `has_rhat` of Figure 9; beyond `largest` data the paper sees no gain.
pub(super) fn findings(tables: &[Table], largest: f64, has_rhat: bool) -> Vec<Finding> {
    let table = results(tables);
    let mut findings = Vec::new();
    for n in table.distinct("n") {
        let last = COORDINATES.map(|name| {
            let wanted = [("coordinates", name.into()), ("n", n.clone())];
            table.sorted("step", &wanted).last().copied()
        });
        let [Some(standard), Some(repriorised)] = last else {
            continue;
        };
        let rows = [standard, repriorised];
        if has_rhat {
            findings.extend(
                ["predictions", "weights"]
                    .into_iter()
                    .flat_map(|what| agreement(&n, what, rows)),
            );
        }
        // the paper has no gain of residual networks beyond some number of data
        let is_seen = !matches!(n, Value::Number(n) if n > largest);
        findings.extend(mixing(&n, is_seen, rows));
    }
    findings
}

/// Figure 9, of the last rows of standard and repriorised chains.
fn agreement(n: &Value, what: &str, rows: [&Row; 2]) -> [Finding; 2] {
    let [standard, repriorised] = rows.map(|row| row.estimate(&format!("R̂² − 1, {what}")));
    let measured = format!("standard {standard}, repriorised {repriorised}");
    let near = MOST_RHAT * MOST_RHAT - 1.0;
    [
        Finding::new(
            format!("n = {n}: repriorised chains agree sooner: R̂² − 1 of {what} is lower after the same steps"),
            &Judgement::above(&standard.ln(), &repriorised.ln()),
            measured.as_str(),
        )
        .published("Figure 9: near one (R̂²) where standard chains are at the order of 100"),
        Finding::new(
            format!("n = {n}: R̂² of {what} of repriorised chains is near one (R̂ below {MOST_RHAT})"),
            &Judgement::below(&repriorised, &Estimate::exact(near)),
            measured,
        )
        .published("Figure 9: near one"),
    ]
}

/// Figure 8, of the same.
fn mixing(n: &Value, is_seen: bool, rows: [&Row; 2]) -> Vec<Finding> {
    let [standard, repriorised] = rows.map(|row| Effective::of(row, "ess weights"));
    let [ln_standard, ln_repriorised] = [&standard, &repriorised].map(|own| own.estimate.ln());
    let measured = format!(
        "standard {}, repriorised {}",
        Effective::listed(std::slice::from_ref(&standard)),
        Effective::listed(std::slice::from_ref(&repriorised))
    );
    if !is_seen {
        return vec![
            Finding::new(
                format!("n = {n}: effective draws of weights differ by less than a factor of two"),
                &Judgement::within(&ln_repriorised, &ln_standard, LN_2),
                measured,
            )
            .published("Figure 8, right: no benefit at n = 10,240"),
        ];
    }
    let gain = ln_repriorised.minus(&ln_standard);
    let [standard_least, least] = rows.map(|row| row.estimate("least, weights").ln());
    let of_worst = least.minus(&standard_least);
    vec![
        Finding::new(
            format!("n = {n}: repriorised chains have more effective draws of weights"),
            &repriorised.above(&standard),
            measured.as_str(),
        )
        .published("Figure 8: about ten times as many"),
        Finding::new(
            format!("n = {n}: ten times as many, to within a factor of two"),
            &Judgement::within(&gain, &Estimate::exact(10_f64.ln()), LN_2),
            format!("{measured}: {:.1} times", gain.value.exp()),
        )
        .published("Figure 8: about ten times as many"),
        Finding::new(
            format!("n = {n}: the worst projection gains more than their mean"),
            &Judgement::above(&of_worst, &gain),
            format!(
                "{:.1} times, the mean {:.1} times",
                of_worst.value.exp(),
                gain.value.exp()
            ),
        )
        .published("Figure 8: up to 200 times"),
    ]
}

/// Both figures.
pub(super) fn figures(has_rhat: bool) -> Vec<Figure> {
    let figure = |name, title, guide, y| {
        Figure::lines(
            name,
            title,
            guide,
            ("step", "steps of each chain"),
            y,
            &["coordinates"],
        )
        .panels("n")
        .logarithmic(true, true)
    };
    let mut figures = vec![
        figure(
            "ess",
            "Effective draws of weights against steps",
            "Higher is better. Lines fall at first: short chains do not see their own memory.",
            ("ess weights", "effective draws per draw"),
        )
        .band("least, weights", "greatest, weights")
        .limits(FLOORS),
    ];
    if has_rhat {
        for (name, column, largest) in [
            (
                "rhat-predictions",
                "R̂² − 1, predictions",
                "largest R̂² − 1, predictions",
            ),
            ("rhat-weights", "R̂² − 1, weights", "largest R̂² − 1, weights"),
        ] {
            let rhat = figure(
                name,
                "R̂² − 1 against steps",
                "Lower is better: at 0 chains cannot be told apart.",
                (column, "R̂² − 1, mean over directions"),
            );
            // a line for the mean and a band to the maximum
            figures.push(rhat.band(column, largest));
        }
    }
    figures
}
