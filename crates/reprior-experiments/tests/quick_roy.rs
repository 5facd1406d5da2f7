//! Roy, Miani et al. (2024) at quick size: what is expected of each claim, and twins of the measurements by which claims must not hold.

use crate::common::claims::{broken, expect, expect_reasons, put, swap};
use crate::common::measured;
use reprior_experiments::Verdict::{DoesNotHold, Holds};
use reprior_experiments::{Row, Value};

/// As if there were few draws, rows or paths: errors as large as what is measured.
fn of_few_draws(row: &mut Row) {
    let names: Vec<String> = row.values.iter().map(|(name, _)| name.clone()).collect();
    for name in names.iter().filter_map(|name| name.strip_prefix("± ")) {
        let value = row.number(name).abs();
        put(row, &format!("± {name}"), 10.0 * value + 10.0);
    }
}

fn exchanged(names: [&'static str; 2]) -> impl Fn(&mut Row) {
    move |row| swap(row, "method", names)
}

#[test]
fn figure_2() {
    let outcome = measured("roy2024-fig2", false);
    expect(&outcome, &["sampled Laplace underfits"], Holds);
    expect(&outcome, &["does not underfit"], Holds);
    // the spectrum is whole: the paper's order is reversed
    expect(&outcome, &["below linearised Laplace's"], DoesNotHold);
    broken(
        &outcome,
        &["sampled Laplace underfits"],
        exchanged(["sampled", "linearised"]),
    );
    // as if the diffusion drew what sampled Laplace does
    let sampled = outcome.tables[0].number("error", &[("part", "all".into())]);
    broken(&outcome, &["does not underfit"], |row| {
        if row.text("method") == "diffusion" {
            put(row, "error", sampled);
        }
    });
    broken(&outcome, &["the kernel makes it"], |row| {
        swap(row, "part", ["kernel", "non-kernel"]);
    });
    broken(&outcome, &["at the data than outside"], |row| {
        let outside = row.number("sd outside");
        put(row, "sd at data", 2.0 * outside);
    });
    broken(&outcome, &[""], of_few_draws);
}

#[test]
#[ignore = "20 seconds and more: .ci/long"]
fn figure_4() {
    let outcome = measured("roy2024-fig4", false);
    expect_reasons(&outcome);
    expect(&outcome, &["accuracy rises"], Holds);
    expect(
        &outcome,
        &["linearised Laplace fits better than sampled"],
        Holds,
    );
    expect(&outcome, &["with all eigenpairs"], DoesNotHold);
    broken(
        &outcome,
        &["linearised Laplace fits better"],
        exchanged(["sampled", "linearised"]),
    );
    broken(&outcome, &["fits better than sampled"], |row| {
        put(row, "method", "sampled");
    });
    broken(&outcome, &["rises"], |row| {
        let number = row.number("per class");
        put(row, "rank", 1.0 / number);
        put(row, "train accuracy", 1.0 / number);
    });
}

#[test]
fn figure_6() {
    let outcome = measured("roy2024-fig6", false);
    expect(&outcome, &["dominated"], Holds);
    // a flat spectrum
    broken(&outcome, &["dominated"], |row| {
        put(row, "share of the first tenth", 0.1);
    });
}

#[test]
fn figure_7() {
    let outcome = measured("roy2024-fig7", false);
    expect(&outcome, &["sampled Laplace underfits"], Holds);
    expect(&outcome, &["better than linearised Laplace"], DoesNotHold);
    broken(
        &outcome,
        &["underfits"],
        exchanged(["sampled", "linearised"]),
    );
    broken(&outcome, &["the kernel makes it"], |row| {
        swap(row, "part", ["kernel", "non-kernel"]);
    });
    broken(&outcome, &["more certain at the data"], |row| {
        let away = row.number("uncertainty away");
        put(row, "uncertainty at data", away);
    });
    broken(&outcome, &[""], of_few_draws);
}

#[test]
fn figure_9() {
    let outcome = measured("roy2024-fig9", false);
    expect(&outcome, &[""], Holds);
    broken(&outcome, &["lowers the error"], |row| {
        swap(row, "predictive", ["network", "linearised"]);
    });
    broken(&outcome, &["to the same degree"], |row| {
        swap(row, "structure", ["full", "diagonal"]);
    });
    broken(&outcome, &[""], of_few_draws);
}

/// Figure 8 has these and other data sets, for which the built-in images stand here.
#[test]
fn figure_5() {
    let outcome = measured("roy2024-fig5", false);
    expect_reasons(&outcome);
    // at the α that fits it best sampled Laplace does not fail
    expect(&outcome, &["a lower NLL than sampled Laplace"], DoesNotHold);
    broken(&outcome, &["underfits"], exchanged(["sampled", "map"]));
    broken(
        &outcome,
        &["than sampled"],
        exchanged(["sampled", "diffusion"]),
    );
    broken(
        &outcome,
        &["than linearised"],
        exchanged(["linearised", "diffusion"]),
    );
    broken(&outcome, &[""], of_few_draws);
}

#[test]
fn theorem_5_1() {
    let outcome = measured("roy2024-theorem5.1", false);
    expect(&outcome, &["with Heun's steps"], Holds);
    expect(&outcome, &["below that elsewhere"], Holds);
    // another integral: what the published algorithm has
    broken(&outcome, &["with Heun's steps"], |row| {
        put(row, "squared change", 0.05);
    });
    broken(&outcome, &["below that elsewhere"], |row| {
        swap(row, "inputs", ["training inputs", "others"]);
    });
    broken(&outcome, &[""], of_few_draws);
}

#[test]
#[ignore = "20 seconds and more: .ci/long"]
fn table_1() {
    let outcome = measured("roy2024-table1", true);
    expect_reasons(&outcome);
    let table = &outcome.tables[0];
    assert!(table.columns().contains(&"ece, faulty bins"));
    // numbers of MNIST stand beside those of MNIST only
    assert_eq!(table.distinct("E.3.1: nll"), vec![Value::Missing]);
    assert_eq!(table.distinct("data"), vec!["strokes".into()]);
    // no number is published for them
    expect(
        &outcome,
        &["as accurate as published"],
        reprior_experiments::Verdict::CannotBeTold,
    );
    broken(
        &outcome,
        &["strokes: the diffusion fits better"],
        exchanged(["linearised", "diffusion"]),
    );
    broken(
        &outcome,
        &["strokes: sampled Laplace underfits"],
        exchanged(["linearised", "sampled"]),
    );
    broken(&outcome, &["competitive"], |row| {
        let nll = row.number("nll");
        if row.text("method").starts_with("diffusion") {
            put(row, "nll", 2.0 * nll);
        }
    });
    broken(&outcome, &[""], of_few_draws);
}

#[test]
#[ignore = "20 seconds and more: .ci/long"]
fn table_1_against_the_rank() {
    let outcome = measured("roy2024-table1-rank", false);
    expect_reasons(&outcome);
    expect(
        &outcome,
        &["linearised Laplace is the more accurate"],
        Holds,
    );
    broken(
        &outcome,
        &["lower test NLL than linearised"],
        exchanged(["linearised", "diffusion"]),
    );
    broken(
        &outcome,
        &["lower test NLL than sampled"],
        exchanged(["sampled", "diffusion"]),
    );
    broken(&outcome, &["more accurate the more eigenpairs"], |row| {
        let pairs = row.number("pairs");
        put(row, "accuracy", 1.0 / pairs);
    });
    broken(&outcome, &["the worse the more eigenpairs"], |row| {
        let pairs = row.number("pairs");
        put(row, "nll", 1.0 / pairs);
        put(row, "± nll", 0.001 / pairs);
    });
}

#[test]
fn table_2() {
    let outcome = measured("roy2024-table2", false);
    expect_reasons(&outcome);
    broken(&outcome, &[""], exchanged(["sampled", "diffusion"]));
    broken(&outcome, &[""], of_few_draws);
}
