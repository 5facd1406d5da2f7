//! The default on tables, at quick size.

use crate::common::claims::{broken, expect, expect_reasons, put};
use reprior_experiments::Verdict;

#[test]
fn tables() {
    let outcome = crate::common::measured("tables", false);
    // two splits of two sets, for which a built-in table stands
    assert_eq!(outcome.tables[0].rows.len(), 4);
    expect_reasons(&outcome);
    for row in &outcome.tables[0].rows {
        for column in ["rmse", "nll", "coverage", "R-hat", "draws", "seconds"] {
            assert!(row.number(column).is_finite(), "{column}: {row:?}");
        }
    }
    // of another table nothing is said about the sets
    expect(&outcome, &["mean test NLL"], Verdict::CannotBeTold);
    expect(&outcome, &["90 % intervals"], Verdict::CannotBeTold);
    broken(
        &outcome,
        &["are believed without a warning only where"],
        |row| {
            put(row, "R-hat", 1.2);
            put(row, "believed", "yes");
        },
    );
}

#[test]
fn calibration() {
    let outcome = crate::common::measured("calibration", false);
    assert_eq!(outcome.tables[0].rows.len(), 6);
    for row in &outcome.tables[0].rows {
        for column in ["rank of the function", "rank of the noise"] {
            assert!((0.0..=1.0).contains(&row.number(column)), "{row:?}");
        }
    }
    expect_reasons(&outcome);
    broken(&outcome, &["all tables: ranks of the noise"], |row| {
        let at = row.number("table");
        put(row, "rank of the noise", 0.96 + 0.001 * at);
    });
}
