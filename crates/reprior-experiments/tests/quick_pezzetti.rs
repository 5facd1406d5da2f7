//! Pezzetti et al. 2024 at quick size: what is robustly so of each claim, and broken twins by which none holds.

use crate::common::claims::{
    broken, expect, expect_or_open, expect_reasons, mended, put, put_estimate, reverse, swap,
};
use crate::common::measured;
use reprior_experiments::Verdict::{CannotBeTold, DoesNotHold, Holds};
use reprior_experiments::{Outcome, Row};

/// Everything that a method is called, exchanged with another's.
fn swapped(methods: [&'static str; 2]) -> impl Fn(&mut Row) {
    move |row| swap(row, "method", methods)
}

/// The widest network first.
fn narrowed(row: &mut Row) {
    reverse(row, "width");
}

/// As if there were few draws: errors ten times as large.
fn noisy(row: &mut Row) {
    for index in 0..row.values.len() {
        let (name, value) = (
            row.values[index].0.clone(),
            row.number(&row.values[index].0),
        );
        if name.starts_with("± ") {
            put(row, &name, 10.0 * value + 1.0);
        }
    }
}

/// No claim holds of few draws.
fn nothing_holds_of_noise(outcome: &Outcome) {
    broken(outcome, &[], noisy);
}

#[test]
fn figure_1() {
    let outcome = measured("pezzetti2024-fig1", true);
    expect_reasons(&outcome);
    for beta in ["β = 0.2", "β = 0.1", "β = 0.01"] {
        let expect = |words: &str, verdict| expect(&outcome, &[beta, words], verdict);
        expect("pCN's acceptance rises", Holds);
        expect("pCNL's acceptance rises", Holds);
        expect("the acceptance of pCNL is ahead of pCN's by less", Holds);
        expect("pcnl as published is ahead of pCN's by less", Holds);
        // that of the paper's widest networks is
        expect("pCN is accepted more than pCNL", DoesNotHold);
        expect("pCN is accepted more than pcnl as published", DoesNotHold);
        expect("counts the likelihood twice", Holds);
        for claim in ["pCN's acceptance", "pCNL's acceptance", "by less and less"] {
            broken(&outcome, &[beta, claim], narrowed);
        }
        // the wrong law under the right name
        let wrong = swapped(["pcnl", "pcnl as published"]);
        broken(&outcome, &[beta, "counts the likelihood twice"], wrong);
    }
    for beta in ["β = 0.2", "β = 0.1"] {
        expect(&outcome, &[beta, "Langevin steps falls"], Holds);
        broken(
            &outcome,
            &[beta, "Langevin steps falls"],
            swapped(["pcn", "langevin"]),
        );
    }
    // at 0.01 everything is accepted, and narrow networks are curved
    expect(
        &outcome,
        &["β = 0.01", "Langevin steps falls"],
        CannotBeTold,
    );
    expect(
        &outcome,
        &["pCNL is accepted more than pCN and Langevin"],
        CannotBeTold,
    );
    broken(
        &outcome,
        &["pCNL is accepted more"],
        swapped(["pcn", "pcnl"]),
    );
    broken(&outcome, &["pCN is accepted more than"], |_| ());
    nothing_holds_of_noise(&outcome);
}

#[test]
fn figure_2() {
    let outcome = measured("pezzetti2024-fig2", false);
    expect_reasons(&outcome);
    expect(
        &outcome,
        &["pcn's effective draws of predictions grow"],
        Holds,
    );
    let gap = "pCNL has fewer times as many effective draws";
    expect(&outcome, &["β = 0.2", gap], Holds);
    expect(&outcome, &["β = 0.01"], CannotBeTold);
    for claim in ["pcn's effective draws", "Langevin's effective draws", gap] {
        broken(&outcome, &[claim], narrowed);
    }
    broken(&outcome, &[gap], swapped(["pcn", "pcnl"]));
    // what holds the other way round if names are exchanged
    broken(
        &outcome,
        &["pCN has more effective draws of weights than"],
        |_| (),
    );
    // chains of ten draws: everything is at the floor
    broken(&outcome, &["effective draws"], |row| {
        put(row, "draws", 10.0);
        for what in ["weights", "predictions"] {
            row.values
                .push((format!("doubt of ess {what}"), "ten draws".into()));
        }
    });
    // a walk that is said to be accepted, and mixes better than it can
    broken(&outcome, &["a walk that is always accepted"], |row| {
        put(row, "ess weights", 0.9);
    });
    nothing_holds_of_noise(&outcome);
}

#[test]
fn a_million_steps() {
    let outcome = measured("pezzetti2024-million", false);
    expect(&outcome, &["a walk that is always accepted"], Holds);
    broken(&outcome, &[], |row| put(row, "ess weights", 0.9));
    nothing_holds_of_noise(&outcome);
}

#[test]
#[ignore = "20 seconds and more: .ci/long"]
fn figure_3() {
    let outcome = measured("pezzetti2024-fig3", true);
    expect_reasons(&outcome);
    for what in ["weights", "predictions"] {
        let claim = format!("pCN's R-hat of {what} falls");
        expect(&outcome, &[&claim], Holds);
        broken(&outcome, &[&claim], narrowed);
        // the narrowest networks mix worst whatever the method
        let claim = format!("Langevin's R-hat of {what} grows");
        broken(&outcome, &[&claim], |_| ());
        broken(&outcome, &[&claim], swapped(["pcn", "langevin"]));
        broken(&outcome, &["for every method and width", what], |_| ());
        let claim = format!("pCNL: R-hat of {what} is below 1.2");
        broken(&outcome, &[&claim], swapped(["pcn", "pcnl"]));
    }
    let claim = "pCNL: R-hat of predictions is below 1.2";
    expect_or_open(&outcome, &[claim], Holds);
    mended(&outcome, &[claim], |row| {
        put_estimate(row, "R-hat of predictions", 1.05);
    });
    expect(
        &outcome,
        &["pCNL: R-hat of weights is below 1.2"],
        DoesNotHold,
    );
    expect(
        &outcome,
        &["Langevin's R-hat of weights grows"],
        DoesNotHold,
    );
    broken(
        &outcome,
        &["the standard deviation of pCN's R-hat"],
        narrowed,
    );
    broken(
        &outcome,
        &["the standard deviation of Langevin's R-hat"],
        |_| (),
    );
    nothing_holds_of_noise(&outcome);
}

#[test]
fn figure_4() {
    let outcome = measured("pezzetti2024-fig4", false);
    expect_reasons(&outcome);
    // narrow networks reject Langevin steps here, wide ones do not
    broken(&outcome, &["langevin", "chains mix worse"], |_| ());
    nothing_holds_of_noise(&outcome);
}

#[test]
fn figure_5() {
    let outcome = measured("pezzetti2024-fig5", false);
    expect_reasons(&outcome);
    expect(&outcome, &["chains mix better", "first component"], Holds);
    broken(&outcome, &["chains mix better"], narrowed);
    nothing_holds_of_noise(&outcome);
}

#[test]
#[ignore = "20 seconds and more: .ci/long"]
fn figure_6() {
    let outcome = measured("pezzetti2024-fig6", true);
    expect_reasons(&outcome);
    broken(&outcome, &["chains mix at every width"], |row| {
        put(row, "R-hat of 1st", 1.3);
        put(row, "R-hat of 2nd", 1.3);
    });
    nothing_holds_of_noise(&outcome);
}

#[test]
fn section_3() {
    let outcome = measured("pezzetti2024-section3", false);
    expect(&outcome, &["both schemes accept alike"], Holds);
    expect(&outcome, &["more effective draws of it"], Holds);
    broken(&outcome, &["more effective draws of it"], |row| {
        swap(row, "scheme", ["joint", "marginal-conditional"]);
    });
    broken(&outcome, &["both schemes accept alike"], |row| {
        if row.text("scheme") == "joint" {
            let rate = row.number("acceptance");
            put(row, "acceptance", 0.5 * rate);
        }
    });
    broken(&outcome, &["both schemes accept alike"], |row| {
        // rates that differ from chain to chain, as those of other random numbers would
        if row.text("scheme") == "joint" {
            let rate = row.number("acceptance");
            let sign = if row.count("chain").is_multiple_of(2) {
                1.0
            } else {
                -1.0
            };
            put(row, "acceptance", rate * (1.0 + 0.5 * sign));
        }
    });
    broken(&outcome, &["more effective draws of it"], noisy);
}
