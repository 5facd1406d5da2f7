//! Metrics against scikit-learn and NumPy, closed forms, and what must hold for any predictions.

use proptest::prelude::*;
use reprior::metrics::*;
use reprior::model::likelihood::{Likelihood, Poisson, StudentT};
use serde_json::Value;

fn close(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 1e-13 * (1.0 + expected.abs()),
        "{found}, not {expected}"
    );
}

#[test]
fn class_metrics_are_those_of_scikit_learn() {
    let golden: Value = serde_json::from_str(include_str!("golden/metrics.json")).unwrap();
    let cases = golden["cases"].as_object().unwrap();
    assert_eq!(cases.len(), 3);
    for case in cases.values() {
        let rows: Vec<Vec<f64>> = serde_json::from_value(case["probs"].clone()).unwrap();
        let labels: Vec<u32> = serde_json::from_value(case["labels"].clone()).unwrap();
        let probabilities = rows.concat();
        let predictions = ClassPredictions::new(&probabilities, &labels, rows[0].len()).unwrap();
        let expected = |name: &str| case[name].as_f64().unwrap();
        close(predictions.accuracy(), expected("accuracy"));
        close(predictions.brier(), expected("brier"));
        close(predictions.nll(), expected("nll"));
        close(predictions.mean_confidence(), expected("mean_confidence"));
        for (bins, name) in [(5, "ece5"), (10, "ece10"), (15, "ece15"), (100, "ece100")] {
            let found = ReliabilityBin::expected_calibration_error(&predictions.reliability(bins));
            close(found, expected(name));
        }
        let table = predictions.reliability(15);
        close(
            ReliabilityBin::maximum_calibration_error(&table),
            expected("mce15"),
        );
        assert_eq!(table.len(), 15);
        let full = table.iter().enumerate().filter(|(_, bin)| bin.count > 0);
        let full: Vec<_> = full.collect();
        let expected: Vec<(usize, usize, f64, f64)> =
            serde_json::from_value(case["bins"].clone()).unwrap();
        assert_eq!(full.len(), expected.len());
        for ((k, bin), (index, count, confidence, accuracy)) in full.iter().zip(expected) {
            assert_eq!((*k, bin.count), (index, count));
            close(bin.confidence, confidence);
            close(bin.accuracy, accuracy);
        }
    }
}

#[test]
fn bins_of_equal_counts_hold_every_row_once() {
    // Confidences 0.9, 0.6, 0.6, 0.8, 0.7; right, wrong, right, right, wrong.
    let probabilities = [0.9, 0.1, 0.6, 0.4, 0.4, 0.6, 0.2, 0.8, 0.7, 0.3];
    let predictions = ClassPredictions::new(&probabilities, &[0, 1, 1, 1, 1], 2).unwrap();
    let table = predictions.reliability_adaptive(2);
    let counts: Vec<usize> = table.iter().map(|bin| bin.count).collect();
    assert_eq!(counts, [2, 3]);
    close(table[0].confidence, 0.6);
    close(table[0].accuracy, 0.5);
    close(table[1].confidence, 0.8);
    close(table[1].accuracy, 2.0 / 3.0);
    assert_eq!((table[1].lower, table[1].upper), (0.7, 0.9));
    let expected = (2.0 * 0.1 + 3.0 * (0.8 - 2.0 / 3.0)) / 5.0;
    close(ReliabilityBin::expected_calibration_error(&table), expected);
    close(
        ReliabilityBin::maximum_calibration_error(&table),
        0.8 - 2.0 / 3.0,
    );
    assert_eq!(predictions.reliability_adaptive(15).len(), 5);
}

#[test]
fn a_table_without_rows_has_no_error() {
    assert!(ReliabilityBin::expected_calibration_error(&[]).is_nan());
    assert!(ReliabilityBin::maximum_calibration_error(&[]).is_nan());
    let predictions = ClassPredictions::new(&[1.0], &[0], 1).unwrap();
    assert!(predictions.reliability(0).is_empty());
    assert!(predictions.reliability_adaptive(0).is_empty());
}

#[test]
fn certainty_has_the_extreme_scores() {
    let probabilities = [1.0, 0.0, 1.0, 0.0];
    let right = ClassPredictions::new(&probabilities, &[0, 0], 2).unwrap();
    assert_eq!(
        (right.brier(), right.nll(), right.accuracy()),
        (0.0, 0.0, 1.0)
    );
    let wrong = ClassPredictions::new(&probabilities, &[1, 1], 2).unwrap();
    assert_eq!((wrong.brier(), wrong.accuracy()), (2.0, 0.0));
    assert_eq!(wrong.nll(), f64::INFINITY);
    let equal = ClassPredictions::new(&[0.5, 0.5], &[0], 2).unwrap();
    assert_eq!(equal.accuracy(), 1.0);
}

#[test]
fn what_are_no_class_probabilities_is_refused() {
    let refused = |values: &[f64], labels: &[u32], classes| {
        ClassPredictions::new(values, labels, classes).unwrap_err()
    };
    assert!(matches!(refused(&[], &[], 2), MetricsError::Empty(_)));
    assert!(matches!(refused(&[1.0], &[0], 0), MetricsError::Empty(_)));
    assert!(matches!(
        refused(&[0.5; 3], &[0], 2),
        MetricsError::Ragged { .. }
    ));
    assert!(matches!(
        refused(&[0.5; 4], &[0], 2),
        MetricsError::Length { .. }
    ));
    assert!(matches!(
        refused(&[0.5; 2], &[2], 2),
        MetricsError::Label { label: 2, .. }
    ));
    assert!(matches!(
        refused(&[-0.5, 1.5], &[0], 2),
        MetricsError::Probability { .. }
    ));
    assert!(matches!(
        refused(&[f64::NAN, 1.0], &[0], 2),
        MetricsError::Probability { .. }
    ));
    assert!(matches!(
        refused(&[0.5, 0.4], &[0], 2),
        MetricsError::Sum { row: 0, .. }
    ));
}

#[test]
fn rmse_sums_over_outputs() {
    let found = rmse(&[1.0, 2.0, 3.0, 4.0], &[0.0, 2.0, 3.0, 2.0], 2).unwrap();
    close(found, 2.5f64.sqrt());
    close(rmse(&[1.0, 3.0], &[0.0, 0.0], 1).unwrap(), 5f64.sqrt());
    assert!(rmse(&[1.0], &[1.0, 2.0], 1).is_err());
    assert!(rmse(&[], &[], 1).is_err());
    assert!(rmse(&[1.0], &[1.0], 0).is_err());
}

#[test]
fn one_draw_is_a_gaussian() {
    let found = PredictiveFamily::NORMAL
        .mixture_nll([(&[1.0, 2.0][..], &[4.0][..])], &[3.0, 2.0], 1)
        .unwrap();
    let constant = 0.5 * (std::f64::consts::TAU * 4.0).ln();
    close(found, constant + 0.25);
}

#[test]
fn mixture_likelihood_is_the_definition() {
    // 3 draws × 2 rows × 2 outputs.
    let means = [
        [0.1, 0.2, 0.3, 0.4],
        [1.0, -1.0, 0.5, 0.0],
        [0.0, 0.0, 2.0, 1.0],
    ];
    let variances = [
        [1.0, 0.5, 0.25, 2.0],
        [0.1, 0.2, 0.3, 0.4],
        [3.0, 2.0, 1.0, 0.7],
    ];
    let targets = [0.3, -0.2, 1.0, 0.6];
    let density = |y: f64, m: f64, v: f64| {
        (-0.5 * (y - m).powi(2) / v).exp() / (std::f64::consts::TAU * v).sqrt()
    };
    let row = |i: usize| {
        let product = |s: usize| {
            (2 * i..2 * i + 2)
                .map(|at| density(targets[at], means[s][at], variances[s][at]))
                .product::<f64>()
        };
        -((0..3).map(product).sum::<f64>() / 3.0).ln()
    };
    let draws = means.iter().zip(&variances);
    let found = PredictiveFamily::NORMAL
        .mixture_nll(draws.map(|(m, v)| (&m[..], &v[..])), &targets, 2)
        .unwrap();
    close(found, 0.5 * (row(0) + row(1)));
}

#[test]
fn mixture_likelihood_survives_far_targets() {
    // exp(-5e5) is 0 in floating point; the nearer component alone remains, at weight one half.
    let draws = [(&[-1e3][..], &[1.0][..]), (&[1e3][..], &[1.0][..])];
    let found = PredictiveFamily::NORMAL
        .mixture_nll(draws, &[2e3], 1)
        .unwrap();
    close(found, 0.5 * std::f64::consts::TAU.ln() + 5e5 + 2f64.ln());
}

#[test]
fn what_are_no_gaussians_is_refused() {
    let nll = |m: &[f64], v: &[f64]| {
        PredictiveFamily::NORMAL
            .mixture_nll([(m, v)], &[0.0, 0.0], 1)
            .unwrap_err()
    };
    assert!(matches!(nll(&[0.0], &[1.0]), MetricsError::Length { .. }));
    assert!(matches!(
        nll(&[0.0; 2], &[1.0; 3]),
        MetricsError::Length { .. }
    ));
    assert!(matches!(
        nll(&[0.0; 2], &[0.0]),
        MetricsError::Component { component: 0, .. }
    ));
    assert!(matches!(
        nll(&[0.0, f64::NAN], &[1.0]),
        MetricsError::Component { component: 1, .. }
    ));
    assert!(matches!(
        PredictiveFamily::NORMAL.mixture_nll([], &[0.0], 1),
        Err(MetricsError::Empty("draw"))
    ));
    assert!(Mixture::new(PredictiveFamily::NORMAL, &[], &[1.0]).is_err());
    assert!(Mixture::new(PredictiveFamily::NORMAL, &[0.0], &[-1.0]).is_err());
    assert!(Mixture::new(PredictiveFamily::NORMAL, &[0.0; 3], &[1.0; 2]).is_err());
}

#[test]
fn one_component_has_normal_quantiles() {
    let mixture = Mixture::new(PredictiveFamily::NORMAL, &[3.0], &[4.0]).unwrap();
    close(mixture.quantile(0.975), 3.0 + 2.0 * 1.959963984540054);
    close(mixture.cdf(3.0), 0.5);
    assert_eq!((mixture.mean(), mixture.variance()), (3.0, 4.0));
    assert_eq!(mixture.quantile(0.0), f64::NEG_INFINITY);
    assert_eq!(mixture.quantile(1.0), f64::INFINITY);
    assert!(mixture.quantile(-0.1).is_nan() && mixture.quantile(f64::NAN).is_nan());
}

#[test]
fn far_modes_have_quantiles() {
    let mixture = Mixture::new(
        PredictiveFamily::NORMAL,
        &[-1e4, 0.0, 1e4],
        &[1e-6, 1.0, 1e-6],
    )
    .unwrap();
    for p in [1e-10, 0.01, 0.2, 0.334, 0.5, 0.6, 0.67, 0.9, 0.999] {
        let y = mixture.quantile(p);
        assert!((mixture.cdf(y) - p).abs() < 1e-8, "{p}: {y}");
    }
    let plateau = mixture.quantile(1.0 / 3.0);
    assert!((mixture.cdf(plateau) - 1.0 / 3.0).abs() < 1e-15);
    close(mixture.variance(), (2e-6 + 1.0 + 2e8) / 3.0);
}

/// Rows of four class probabilities with a label each.
fn rows() -> impl Strategy<Value = Vec<([f64; 4], u32)>> {
    let row = (prop::array::uniform4(0.01..1.0f64), 0..4u32);
    prop::collection::vec(row, 1..60).prop_map(|mut rows| {
        for (weights, _) in &mut rows {
            let sum: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
        rows
    })
}

fn scores(rows: &[([f64; 4], u32)]) -> [f64; 8] {
    let values: Vec<f64> = rows.iter().flat_map(|row| row.0).collect();
    let labels: Vec<u32> = rows.iter().map(|row| row.1).collect();
    let predictions = ClassPredictions::new(&values, &labels, 4).unwrap();
    let [even, adaptive] = [
        predictions.reliability(15),
        predictions.reliability_adaptive(15),
    ];
    for table in [&even, &adaptive] {
        assert_eq!(table.iter().map(|bin| bin.count).sum::<usize>(), rows.len());
    }
    [
        predictions.accuracy(),
        predictions.mean_confidence(),
        predictions.brier(),
        predictions.nll(),
        ReliabilityBin::expected_calibration_error(&even),
        ReliabilityBin::maximum_calibration_error(&even),
        ReliabilityBin::expected_calibration_error(&adaptive),
        ReliabilityBin::maximum_calibration_error(&adaptive),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_order_of_rows_does_not_matter(rows in rows()) {
        let reversed: Vec<_> = rows.iter().rev().copied().collect();
        for (a, b) in scores(&rows).into_iter().zip(scores(&reversed)) {
            prop_assert!((a - b).abs() < 1e-12);
        }
    }

    #[test]
    fn scores_stay_in_their_ranges(rows in rows()) {
        let [accuracy, confidence, brier, nll, ece, mce, adaptive_ece, adaptive_mce] = scores(&rows);
        prop_assert!((0.0..=1.0).contains(&accuracy) && (0.25..=1.0).contains(&confidence));
        prop_assert!((0.0..=2.0).contains(&brier) && nll > 0.0);
        // The error of one bin of all rows is the least there is.
        let least = (accuracy - confidence).abs() - 1e-12;
        prop_assert!(least <= ece && ece <= mce + 1e-12 && mce <= 1.0);
        prop_assert!(least <= adaptive_ece && adaptive_ece <= adaptive_mce + 1e-12 && adaptive_mce <= 1.0);
    }

    #[test]
    fn quantiles_invert_the_distribution_function(
        components in prop::collection::vec((-5.0..5.0f64, 0.01..4.0f64), 1..20),
        p in 0.001..0.999f64,
    ) {
        let (means, variances): (Vec<_>, Vec<_>) = components.into_iter().unzip();
        let mixture = Mixture::new(PredictiveFamily::NORMAL, &means, &variances).unwrap();
        prop_assert!((mixture.cdf(mixture.quantile(p)) - p).abs() < 1e-13);
    }
}

#[test]
fn quantiles_of_heavy_tails_and_counts_invert_the_distribution_function() {
    let (means, variances) = ([-3.0, 0.5, 40.0], [0.1, 2.0, 9.0]);
    let mixture = Mixture::new(
        StudentT::new(3.0).unwrap().family().unwrap(),
        &means,
        &variances,
    )
    .unwrap();
    for p in [1e-6, 0.05, 0.3, 0.5, 0.95, 0.999] {
        assert!((mixture.cdf(mixture.quantile(p)) - p).abs() < 1e-12, "{p}");
    }
    assert!((mixture.variance() - (11.1 + 1140.5 / 3.0)).abs() < 1e-6);
    let counts = Mixture::new(
        Poisson::new(vec![1.0]).unwrap().family().unwrap(),
        &[0.4, 30.0],
        &[1.0],
    )
    .unwrap();
    for p in [1e-6, 0.05, 0.4, 0.5, 0.75, 0.95, 0.999_999] {
        let q = counts.quantile(p);
        assert!(q >= 0.0 && q.fract() == 0.0);
        assert!(counts.cdf(q) >= p && counts.cdf(q - 1.0) < p, "{p}: {q}");
    }
    // mean 15.2; variance: 15.2 of the components, 14.8² between them
    assert!((counts.variance() - (15.2 + 14.8 * 14.8)).abs() < 1e-9);
    assert_eq!(
        (counts.quantile(0.0), counts.quantile(1.0)),
        (0.0, f64::INFINITY)
    );
    assert!(counts.quantile(1.1).is_nan());
}
