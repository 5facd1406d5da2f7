//! Hron et al. 2022 at quick size: what is expected of each claim, and twins of the measurements by which claims must not hold.

use crate::common::claims::{broken, expect, expect_reasons, put, swap};
use crate::common::measured;
use reprior_experiments::Row;
use reprior_experiments::Verdict::{CannotBeTold, DoesNotHold, Holds};

/// Standard for repriorised chains.
fn exchanged(row: &mut Row) {
    swap(row, "coordinates", ["standard", "repriorised"]);
}

/// Widths from the last to the first, as if they were.
fn mirrored(columns: &'static [&'static str]) -> impl Fn(&mut Row) {
    move |row| {
        for name in columns {
            let value = row.number(name);
            put(row, name, 1.0 / value);
            // relative errors stay
            let error = row.number(&format!("± {name}"));
            put(row, &format!("± {name}"), error / (value * value));
        }
    }
}

/// As if there were few draws: errors as large as what is measured.
fn of_few_draws(row: &mut Row) {
    let names: Vec<String> = row.values.iter().map(|(name, _)| name.clone()).collect();
    for name in names.iter().filter_map(|name| name.strip_prefix("± ")) {
        let value = row.number(name).abs();
        put(row, &format!("± {name}"), 10.0 * value + 10.0);
    }
}

#[test]
fn figure_2() {
    let outcome = measured("hron2022-fig2", false);
    expect(&outcome, &["the posterior is the prior"], Holds);
    expect(&outcome, &["correlated"], Holds);
    broken(&outcome, &[""], |row| {
        swap(row, "coordinates", ["posterior", "repriorised"]);
    });
    broken(&outcome, &[""], of_few_draws);
}

#[test]
#[ignore = "20 seconds and more: .ci/long"]
fn figure_3() {
    let outcome = measured("hron2022-fig3", false);
    expect(&outcome, &["functions tend"], Holds);
    broken(
        &outcome,
        &["functions tend"],
        mirrored(&["distance of means", "distance of sds"]),
    );
    broken(&outcome, &[""], of_few_draws);
}

#[test]
fn figure_5() {
    let outcome = measured("hron2022-fig5", false);
    expect(&outcome, &["at every width"], Holds);
    broken(&outcome, &["at every width"], exchanged);
    let turned = mirrored(&["departure"]);
    broken(&outcome, &["the smoother the wider"], &turned);
    broken(&outcome, &["less smooth as data come in"], &turned);
    broken(&outcome, &[""], of_few_draws);
}

/// Times are not asserted.
#[test]
fn figure_6() {
    let outcome = measured("hron2022-fig6", false);
    assert_eq!(outcome.tables[0].rows.len(), 3);
    broken(&outcome, &[""], |row| {
        let ratio = row.number("ratio");
        put(row, "ratio", ratio + 1.0);
    });
    broken(&outcome, &[""], of_few_draws);
}

#[test]
#[ignore = "20 seconds and more: .ci/long"]
fn figure_7() {
    let outcome = measured("hron2022-fig7", false);
    expect_reasons(&outcome);
    expect(&outcome, &["the faster the wider"], Holds);
    broken(&outcome, &["at every width"], exchanged);
    broken(&outcome, &["the gain grows"], exchanged);
    broken(
        &outcome,
        &["fall as data come in"],
        mirrored(&["ess weights", "ess predictions"]),
    );
    broken(
        &outcome,
        &["the faster the wider"],
        mirrored(&["ess weights"]),
    );
    broken(&outcome, &[""], of_few_draws);
    // chains at the estimator's floor
    broken(&outcome, &[""], |row| {
        for name in ["weights", "predictions"] {
            row.values
                .push((format!("doubt of ess {name}"), "few draws".into()));
        }
    });
}

#[test]
fn figure_8_left_and_9() {
    let outcome = measured("hron2022-fig8-left", false);
    expect_reasons(&outcome);
    for claim in ["sooner", "effective draws", "ten times", "worst projection"] {
        broken(&outcome, &[claim], exchanged);
    }
    // chains that keep to themselves
    broken(&outcome, &["near one"], |row| {
        for name in ["predictions", "weights"] {
            put(row, &format!("R̂² − 1, {name}"), 10.0);
        }
    });
    broken(&outcome, &[""], of_few_draws);
}

#[test]
#[ignore = "20 seconds and more: .ci/long"]
fn figure_8_right() {
    let outcome = measured("hron2022-fig8-right", false);
    expect_reasons(&outcome);
    // a hundred draws of chains that have just begun
    expect(&outcome, &["more effective draws"], CannotBeTold);
    broken(&outcome, &[""], exchanged);
}

#[test]
fn figure_10() {
    let outcome = measured("hron2022-fig10", false);
    expect_reasons(&outcome);
    let exchanged = |row: &mut Row| swap(row, "coordinates", ["tangent", "repriorised"]);
    broken(&outcome, &["T has more"], exchanged);
    broken(&outcome, &[""], of_few_draws);
}

#[test]
#[ignore = "20 seconds and more: .ci/long"]
fn figure_11() {
    let outcome = measured("hron2022-fig11", false);
    expect_reasons(&outcome);
    broken(&outcome, &[""], of_few_draws);
}

#[test]
fn the_regulariser() {
    let outcome = measured("hron2022-lambda", false);
    expect_reasons(&outcome);
    broken(&outcome, &[""], of_few_draws);
    // the best for the worst
    broken(&outcome, &[""], mirrored(&["ess weights"]));
}

#[test]
fn single_precision() {
    let outcome = measured("hron2022-precision", false);
    expect(&outcome, &["two percentage points or more"], DoesNotHold);
    expect(&outcome, &["changes them by less"], Holds);
    broken(
        &outcome,
        &["changes them by less"],
        mirrored(&["percentage points"]),
    );
}

#[test]
fn proposition_2_3() {
    let outcome = measured("hron2022-prop2.3", false);
    expect(&outcome, &[""], Holds);
    broken(&outcome, &["falls with width"], mirrored(&["repriorised"]));
    broken(&outcome, &["positive limit"], |row| {
        let limit = row.number("limit");
        put(row, "limit", 0.5 * limit);
    });
    broken(&outcome, &[""], of_few_draws);
}

#[test]
fn proposition_3_1() {
    let outcome = measured("hron2022-prop3.1", false);
    expect(&outcome, &["draws of the prior"], Holds);
    broken(&outcome, &[""], mirrored(&["gap"]));
    broken(&outcome, &[""], of_few_draws);
}

#[test]
fn appendix_d() {
    let outcome = measured("hron2022-appendix-d", false);
    expect(&outcome, &["to what bisection resolves"], Holds);
    expect(&outcome, &["does not depend on the data"], Holds);
    broken(&outcome, &[""], exchanged);
}

#[test]
fn appendix_e_1() {
    let outcome = measured("hron2022-appendix-e1", false);
    expect(&outcome, &[""], Holds);
    broken(&outcome, &["a linear network"], |row| {
        swap(row, "nonlinearity", ["linear", "sigmoid"]);
    });
    broken(&outcome, &["sigmoids is a counterexample"], |row| {
        swap(row, "nonlinearity", ["tanh", "sigmoid"]);
    });
    broken(&outcome, &["mean is zero"], |row| {
        swap(row, "nonlinearity", ["tanh", "sigmoid"]);
    });
    broken(&outcome, &[""], of_few_draws);
}
