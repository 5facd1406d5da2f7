//! What the findings lead to.

use super::remedy::outliers;
use super::{Level, Summary};
use crate::read::{
    EnsembleOfModes, Ess, EssSummary, Mode, Outlier, Stationarity, TestRowsCheck, WeightScale,
};
use crate::settings::Settings;
use reprior::metrics::predictive_check::Expectation;
use reprior::model::likelihood::name::LikelihoodName;

fn ess(rhat: f64, least: f64) -> Ess {
    Ess {
        variables: 9,
        mean: 2.0 * least,
        min: least,
        max: 3.0 * least,
        tail_min: least,
        per_draw: 0.1,
        per_step: 0.1,
        per_gradient: None,
        per_evaluation: 0.1,
        per_second: 1.0,
        tfp_per_draw: 0.1,
        rhat_max: rhat,
        disagreeing: usize::from(rhat > 1.02),
        too_short: usize::from(least < 100.0),
        short: usize::from((100.0..400.0).contains(&least)),
        unknown: 0,
        rhat_squared_max: 1.0,
    }
}

fn fit(expectation: Expectation, hits: f64) -> TestRowsCheck {
    TestRowsCheck {
        rows: 100,
        hits,
        expected: [0.82, 0.97],
        expectation,
        nll: 1.0,
        nll_constant: 1.4,
        is_worse_than_constant: false,
        outlier: None,
    }
}

/// Four chains of 250 draws with these diagnostics of predictions and weights.
fn judged(predictions: Ess, weights: Ess, change: impl FnOnce(&mut Summary)) -> Summary {
    let settings = Settings::default();
    let mut summary = Summary::new(&settings, 250);
    (summary.chains, summary.draws, summary.draws_planned) = (4, 250, 250);
    summary.acceptance_rate = 0.8;
    summary.ess = EssSummary {
        prediction: Some(predictions),
        row_noise: None,
        weights: Some(weights),
    };
    summary.fit = Some(fit(Expectation::Met, 0.9));
    change(&mut summary);
    summary.conclude(&settings, Vec::new());
    summary
}

#[test]
fn chains_that_agree_about_means_may_not_about_the_noise_of_rows() {
    let good = || ess(1.003, 700.0);
    let of = |row_noise| {
        judged(good(), good(), |summary| {
            summary.ess.row_noise = Some(row_noise);
        })
    };
    assert_eq!(of(good()).verdict.level, Level::Good);
    let apart = of(ess(1.54, 7.0));
    assert_eq!(apart.verdict.sentence, "do not believe the predictions yet");
    assert!(
        apart.warnings[0].starts_with(
            "noise of the rows: R-hat 1.540 at most, 7.0 effective draws at least; the chains disagree about the noise of 1 of 9"
        ),
        "{}",
        apart.warnings[0]
    );
}

#[test]
fn the_worst_finding_decides() {
    let good = || ess(1.003, 700.0);
    let of = |predictions, weights| {
        let verdict = judged(predictions, weights, |_| ()).verdict;
        (verdict.level, verdict.sentence)
    };
    let believe = "believe the predictions: the chains agree, and the test rows are as predicted";
    assert_eq!(of(good(), good()), (Level::Good, believe.to_owned()));
    // of energy.csv: R-hat 1.65, 6.6 effective draws of the weights
    let (level, sentence) = of(good(), ess(1.65, 6.6));
    assert_eq!(level, Level::Caution);
    assert_eq!(
        sentence,
        "believe the predictions, but read nothing off single weights"
    );
    let (level, sentence) = of(ess(1.54, 7.0), ess(2.15, 5.3));
    assert_eq!(level, Level::Bad);
    assert_eq!(sentence, "do not believe the predictions yet");
    assert_eq!(of(ess(1.03, 300.0), good()).0, Level::Caution);
    assert_eq!(of(ess(1.003, 300.0), good()).0, Level::Caution);
    assert_eq!(of(ess(1.003, 80.0), good()).0, Level::Caution);
    assert_eq!(of(ess(1.003, 30.0), good()).0, Level::Bad);
    assert_eq!(of(good(), ess(1.003, 80.0)).0, Level::Caution);
    // of weights that chains agree about means are enough, and the number is said all the same
    let verdict = judged(good(), ess(1.003, 300.0), |_| ()).verdict;
    assert_eq!(
        (verdict.level, verdict.sentence.as_str()),
        (Level::Good, believe)
    );
    let weights = verdict.checks.iter().find(|check| check.name == "weights");
    assert!(weights.is_some_and(|check| check.meaning.contains("quantiles are rough")));
}

#[test]
fn what_cannot_be_told_is_not_believed() {
    let unknown = || Ess {
        unknown: 9,
        ..ess(f64::NAN, f64::NAN)
    };
    let of = |chains, draws| {
        let set = |summary: &mut Summary| (summary.chains, summary.draws) = (chains, draws);
        judged(unknown(), unknown(), set).verdict.level
    };
    // two draws of each chain; draws that are not numbers; one chain, which has none to agree with
    assert_eq!([of(4, 2), of(4, 250), of(1, 2)], [Level::Bad; 3]);
    assert_eq!(of(1, 250), Level::Caution);
}

#[test]
fn learned_scales_of_weights_are_judged() {
    let good = || ess(1.003, 700.0);
    let of = |rhats: [f64; 2]| {
        judged(good(), good(), |summary| {
            let scales = ["age", "income"].into_iter().zip(rhats);
            summary.weight_scales = scales
                .map(|(name, rhat)| WeightScale {
                    weights: name.to_owned(),
                    mean: 1.0,
                    sd: 0.5,
                    q05: 0.4,
                    q95: 2.0,
                    rhat,
                    ess: 400.0,
                    disagrees: rhat > 1.02,
                })
                .collect();
        })
    };
    assert_eq!(of([1.001, 1.002]).verdict.level, Level::Good);
    let apart = of([1.002, 1.4]);
    assert_eq!(apart.verdict.level, Level::Caution);
    assert!(
        apart.warnings[0].contains("disagree about 1 of 2, most about that of income"),
        "{:?}",
        apart.warnings
    );
}

#[test]
fn one_thing_is_counted_once() {
    let good = || ess(1.003, 700.0);
    let mut summary = judged(good(), good(), |summary| summary.acceptance_rate = 0.01);
    // as the warnings of chains have it
    summary.conclude(&Settings::default(), vec!["acceptance is low".to_owned()]);
    assert!(
        summary.verdict.sentence.contains("with one thing in mind"),
        "{}",
        summary.verdict.sentence
    );
}

#[test]
fn weights_and_predictions_are_told_apart() {
    let weights_only = judged(ess(1.003, 700.0), ess(1.65, 6.6), |_| ());
    let [one] = weights_only.warnings.as_slice() else {
        panic!("{:?}", weights_only.warnings)
    };
    assert!(
        one.starts_with("weights:") && one.contains("predict the same"),
        "{one}"
    );
    let both = judged(ess(1.5, 20.0), ess(1.65, 6.6), |_| ());
    assert!(
        both.warnings[0].starts_with("predictions:"),
        "{:?}",
        both.warnings
    );
    assert!(
        both.warnings[1].contains("predict differently"),
        "{:?}",
        both.warnings
    );
    assert!(both.warnings[0].contains("--warmup"), "{:?}", both.warnings);
}

#[test]
fn the_fit_takes_part() {
    let of = |fit: TestRowsCheck| {
        judged(ess(1.003, 700.0), ess(1.003, 700.0), |summary| {
            summary.fit = Some(fit)
        })
    };
    let wine = of(fit(Expectation::TooFew, 0.26));
    assert_eq!(wine.verdict.level, Level::Bad);
    let not_as_predicted = "do not believe the predictions: the test rows are not as predicted";
    assert_eq!(wine.verdict.sentence, not_as_predicted);
    assert!(
        wine.warnings[0].contains("the noise, fixed at 0.1000"),
        "{:?}",
        wine.warnings
    );
    assert!(
        wine.warnings[0].contains("too small; try --noise learn"),
        "{:?}",
        wine.warnings
    );
    let energy = of(fit(Expectation::TooMany, 1.0));
    assert_eq!(energy.verdict.level, Level::Caution);
    assert!(
        energy.warnings[0].contains("too large"),
        "{:?}",
        energy.warnings
    );
    let mut worse = fit(Expectation::Met, 0.9);
    worse.is_worse_than_constant = true;
    assert_eq!(of(worse).verdict.level, Level::Bad);
    let mut far = fit(Expectation::Met, 0.9);
    far.outlier = Some(Outlier {
        row: 7,
        target: 0,
        p_value: 0.0,
    });
    let far = of(far);
    assert_eq!(far.verdict.level, Level::Caution);
    for part in ["test row 7", "p < 1e-12", "--likelihood student-t expects"] {
        assert!(far.warnings[0].contains(part), "{:?}", far.warnings);
    }
}

#[test]
fn the_remedy_for_outliers_is_heavier_tails_while_there_are_any() {
    let of = |likelihood, degrees_of_freedom| {
        let mut settings = Settings::default();
        settings.model.likelihood = LikelihoodName::into(likelihood);
        settings.model.degrees_of_freedom = degrees_of_freedom;
        outliers(&settings)
    };
    let by_row = LikelihoodName::StudentTHeteroscedastic;
    assert!(
        of(LikelihoodName::GaussianHeteroscedastic, None).contains(&format!("{by_row} expects"))
    );
    assert!(of(by_row, None).contains("--degrees-of-freedom 4 expects"));
    for all_done in [
        of(by_row, Some(3.0)),
        of(LikelihoodName::StudentT, None),
        of(LikelihoodName::Poisson, None),
    ] {
        assert!(all_done.contains("is it right"), "{all_done}");
    }
}

#[test]
fn what_is_still_on_its_way_is_bad() {
    let good = || ess(1.003, 700.0);
    let of = |change: fn(&mut Summary)| judged(good(), good(), change).verdict;
    assert_eq!(
        of(|summary| summary.draws = 0).sentence,
        "there are no draws yet"
    );
    assert_eq!(
        of(|summary| summary.draws_planned = 500).level,
        Level::Caution
    );
    assert_eq!(of(|summary| summary.divergences = 70).level, Level::Bad);
    // of particles at all temperatures
    let rare = of(|summary| (summary.divergences, summary.transitions) = (70, 100_000));
    assert_eq!(rare.level, Level::Good);
    assert_eq!(
        of(|summary| summary.acceptance_rate = 0.01).level,
        Level::Caution
    );
    let drifting = of(|summary| {
        summary.stationarity = Some(Stationarity {
            log_ratio_mean: 0.0,
            log_ratio_sd: 1.0,
            rhat: 1.3,
            drift: 9.0,
            is_drifting: true,
            is_reached: false,
        });
    });
    assert_eq!(drifting.level, Level::Bad);
}

#[test]
fn chains_that_have_settled_apart_are_an_ensemble_and_are_not_believed() {
    let with_rhat = |rhat_within: f64, drift: f64, expectation| {
        judged(ess(1.54, 7.0), ess(2.15, 5.3), |summary| {
            summary.modes = Some(EnsembleOfModes {
                apart: 0.9,
                rhat_within,
                between: 0.37,
                chains: vec![Mode::default(); 4],
                ..EnsembleOfModes::default()
            });
            summary.stationarity = Some(Stationarity {
                log_ratio_mean: -10.0,
                log_ratio_sd: 1.0,
                rhat: 1.6,
                drift,
                is_drifting: drift.abs() > 4.0,
                is_reached: false,
            });
            summary.fit = Some(fit(expectation, 0.9));
        })
    };
    let with = |drift, expectation| with_rhat(1.04, drift, expectation);
    let settled = with(0.5, Expectation::Met).verdict;
    assert_eq!(settled.level, Level::Bad);
    assert_eq!(
        settled.sentence,
        "do not believe the predictions yet: they are of an ensemble of 4 modes, one a chain, which together predict the test rows as they should"
    );
    assert!(
        settled.checks[0]
            .meaning
            .ends_with("37 % of the predictions' variance is between chains"),
        "{}",
        settled.checks[0].meaning
    );
    let unsure = with(0.5, Expectation::TooFew).verdict.sentence;
    assert!(
        unsure.ends_with("an ensemble of 4 modes, one a chain"),
        "{unsure}"
    );
    // chains on their way are in no mode yet
    let wandering = with_rhat(1.7, 0.5, Expectation::Met).verdict.sentence;
    assert!(wandering.ends_with("have not settled there"), "{wandering}");
    let moving = with(9.0, Expectation::Met).verdict.sentence;
    assert_eq!(moving, "do not believe the predictions yet");
}
