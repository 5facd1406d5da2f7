//! The claims of Marceau-Caron & Ollivier (2017) at quick size.

use crate::common::claims::{broken, expect_reasons, put, swap};

#[test]
fn table_1() {
    let outcome = crate::common::measured("marceau2017-table1", false);
    expect_reasons(&outcome);
    // one seed says nothing
    broken(&outcome, &["test"], |row| {
        if row.number("seed") > 0.0 {
            put(row, "method", "none");
        }
    });
    broken(
        &outcome,
        &["the ensemble is better than the posterior mean"],
        |row| {
            swap(row, "predictor", ["ensemble", "posterior mean"]);
        },
    );
    broken(&outcome, &["the quasi-diagonal one has the best"], |row| {
        swap(row, "method", ["quasi-diagonal", "rmsprop"]);
    });
    // too few epochs for dropout, and no more than that is told
    broken(&outcome, &["dropout is better than SGD"], |_| ());
    broken(&outcome, &["dropout is better than every"], |row| {
        swap(row, "method", ["dropout", "diagonal"]);
    });
    // the prior that is far too narrow, under another name
    broken(&outcome, &["normal-inverse-gamma"], |row| {
        swap(row, "prior", ["normal-inverse-gamma", "0.01"]);
    });
    broken(
        &outcome,
        &["the diagonal metric is no better in test accuracy"],
        |row| {
            swap(row, "method", ["diagonal", "quasi-diagonal"]);
        },
    );
}
