//! The comparison of ours at quick size.

use crate::common::claims::{broken, expect_reasons, put};
use reprior_experiments::Row;

/// The default and pCN in repriorised coordinates change places.
fn swapped(row: &mut Row) {
    let own = [row.text("method"), row.text("coordinates")].map(str::to_owned);
    let pairs = [["hmc-infinite", "marginal"], ["pcn", "repriorised"]];
    if let Some(at) = pairs.iter().position(|pair| own == *pair) {
        let [method, coordinates] = pairs[1 - at];
        put(row, "method", method);
        put(row, "coordinates", coordinates);
    }
}

#[test]
#[ignore = "20 seconds and more: .ci/long"]
fn compare() {
    let outcome = crate::common::measured("compare", false);
    // every sampler in three coordinate systems, and the papers' five
    assert_eq!(outcome.tables[0].rows.len(), 38);
    expect_reasons(&outcome);
    let default = "the default of this library";
    // times are those of a busy machine, and draws are few: nothing is expected to hold
    broken(&outcome, &[default], swapped);
    broken(
        &outcome,
        &["the step size adapted, on reduced inputs"],
        swapped,
    );
    // what is published and what is ours under one another's name
    broken(&outcome, &["than as they ran it"], |row| {
        let published = if row.text("published by") == "-" {
            "x"
        } else {
            "-"
        };
        put(row, "published by", published);
    });
    // too few draws
    broken(&outcome, &[], |row| put(row, "± ess", 10.0));
    broken(&outcome, &[], |row| {
        row.values
            .push(("doubt of ess".to_owned(), "few draws".into()));
    });
}
