//! Diagnostics against ArviZ and TensorFlow Probability, and what must hold for any draws.
//! The golden arrays are chains × draws, little-endian f64; `null` stands for NaN.

use proptest::prelude::*;
use reprior::diagnostics::*;
use serde_json::Value;

const TOLERANCE: f64 = 1e-10;

struct Golden {
    name: &'static str,
    values: Vec<f64>,
    chains: usize,
    expected: Value,
}

impl Golden {
    fn draws(&self) -> Draws<'_> {
        Draws::new(&self.values, self.chains).unwrap()
    }

    fn check(&self, group: &str, statistic: &str, found: f64) {
        self.compare(statistic, &self.expected[group][statistic], found);
    }

    fn compare(&self, statistic: &str, expected: &Value, found: f64) {
        match expected {
            Value::Null => assert!(found.is_nan(), "{} {statistic}: {found}", self.name),
            _ => {
                let expected = expected.as_f64().unwrap();
                let error = (found - expected).abs();
                assert!(
                    error <= TOLERANCE * expected.abs(),
                    "{} {statistic}: {found}, not {expected}",
                    self.name
                );
            }
        }
    }
}

fn goldens() -> Vec<Golden> {
    let expected: Value = serde_json::from_str(include_str!("golden/diagnostics.json")).unwrap();
    let read = |name: &'static str, bytes: &[u8]| Golden {
        name,
        values: bytes
            .chunks_exact(8)
            .map(|b| f64::from_le_bytes(b.try_into().unwrap()))
            .collect(),
        chains: expected["arrays"][name]["chains"].as_u64().unwrap() as usize,
        expected: expected["arrays"][name].clone(),
    };
    macro_rules! read {
        ($($name:literal),*) => {
            vec![$(read($name, include_bytes!(concat!("golden/", $name, ".bin")))),*]
        };
    }
    read![
        "ar1_rho0.9",
        "ar1_rho-0.5",
        "iid",
        "shifted_chains",
        "one_constant_chain",
        "all_constant",
        "single_chain"
    ]
}

#[test]
fn effective_sample_sizes_are_those_of_arviz() {
    let mut e = Estimator::new();
    for golden in goldens() {
        let draws = golden.draws();
        let check = |name: &str, found| golden.check("arviz", name, found);
        check("ess_bulk", e.ess_bulk(draws));
        check("ess_tail", e.ess_tail(draws));
        check("ess_mean", e.ess_mean(draws));
        check("ess_sd", e.ess_sd(draws));
        check("ess_median", e.ess_median(draws));
        for p in ["0.05", "0.5", "0.95"] {
            let found = e.ess_quantile(draws, p.parse().unwrap());
            check(&format!("ess_quantile_{p}"), found);
        }
    }
}

#[test]
fn rhat_is_that_of_arviz() {
    let mut e = Estimator::new();
    for golden in goldens() {
        let draws = golden.draws();
        let check = |name: &str, found| golden.check("arviz", name, found);
        check("rhat_rank", e.rhat_rank(draws));
        check("rhat_folded", e.rhat_folded(draws));
        check("rhat_split", draws.rhat_split());
        check("rhat_identity", draws.rhat_gelman_rubin());
    }
}

#[test]
fn standard_errors_are_those_of_arviz() {
    let mut e = Estimator::new();
    for golden in goldens() {
        let draws = golden.draws();
        let check = |name: &str, found| golden.check("arviz", name, found);
        check("mcse_mean", e.mcse_mean(draws));
        check("mcse_sd", e.mcse_sd(draws));
        check("mcse_median", e.mcse_median(draws));
        for p in ["0.05", "0.5", "0.95"] {
            let found = e.mcse_quantile(draws, p.parse().unwrap());
            check(&format!("mcse_quantile_{p}"), found);
        }
    }
}

#[test]
fn odd_chains_and_ties_are_as_in_arviz() {
    let expected: Value = serde_json::from_str(include_str!("golden/odd_ties.json")).unwrap();
    let golden = Golden {
        name: "odd_ties",
        values: serde_json::from_value(expected["values"].clone()).unwrap(),
        chains: 3,
        expected,
    };
    let draws = golden.draws();
    assert_eq!(draws.length(), 51);
    let mut e = Estimator::new();
    for (name, found) in [
        ("ess_bulk", e.ess_bulk(draws)),
        ("ess_tail", e.ess_tail(draws)),
        ("ess_mean", e.ess_mean(draws)),
        ("ess_sd", e.ess_sd(draws)),
        ("ess_median", e.ess_median(draws)),
        ("rhat_rank", e.rhat_rank(draws)),
        ("rhat_folded", e.rhat_folded(draws)),
        ("rhat_split", draws.rhat_split()),
        ("rhat_identity", draws.rhat_gelman_rubin()),
        ("mcse_mean", e.mcse_mean(draws)),
        ("mcse_sd", e.mcse_sd(draws)),
        ("mcse_median", e.mcse_median(draws)),
    ] {
        golden.check("arviz", name, found);
    }
}

#[test]
fn energy_fraction_is_that_of_arviz_averaged_over_chains() {
    for golden in goldens() {
        let each = golden.draws().iter().map(bfmi);
        let found = each.sum::<f64>() / golden.chains as f64;
        golden.check("arviz", "bfmi_as_energy", found);
    }
}

#[test]
fn tensorflow_probability_is_reproduced() {
    let mut e = Estimator::new();
    for golden in goldens() {
        let draws = golden.draws();
        let check = |name: &str, found| golden.check("tfp", name, found);
        for (truncation, each, cross) in [
            (
                Truncation::FirstNegative,
                "ess_per_chain_default",
                "ess_cross_chain",
            ),
            (
                Truncation::NegativePair,
                "ess_per_chain_pairs",
                "ess_cross_chain_pairs",
            ),
        ] {
            for (c, chain) in draws.iter().enumerate() {
                let expected = &golden.expected["tfp"][each][c];
                golden.compare(each, expected, e.ess_tfp(chain, truncation));
            }
            check(cross, e.ess_tfp_cross_chain(draws, truncation));
        }
        check("psr_default", draws.potential_scale_reduction());
        check("psr_split", draws.potential_scale_reduction_split());
    }
}

#[test]
fn squared_rhat_is_that_of_hron_et_al() {
    for golden in goldens() {
        let found = golden.draws().rhat_squared_hron();
        golden.compare("hron", &golden.expected["hron"], found);
    }
}

#[test]
fn summaries_are_the_same_statistics() {
    for golden in goldens() {
        let draws = golden.draws();
        let read = |v: usize, buffer: &mut [f64]| {
            for (to, from) in buffer.iter_mut().zip(&golden.values) {
                *to = from * (v as f64 + 1.0);
            }
        };
        let all = Estimator::summarise(3, golden.chains, draws.length(), read).unwrap();
        let first = all[0];
        golden.check("arviz", "ess_bulk", first.ess_bulk);
        golden.check("arviz", "ess_tail", first.ess_tail);
        golden.check("arviz", "rhat_rank", first.rhat);
        golden.check("arviz", "mcse_mean", first.mcse_mean);
        golden.compare("mean", &golden.expected["mean"], first.mean);
        golden.compare("variance", &golden.expected["variance"], first.sd.powi(2));
        let sd = Spread::over(&all, |s| s.sd);
        assert_eq!(sd.max, all[2].sd);
        assert_eq!(sd.min, first.sd);
        assert!((sd.mean - 2.0 * first.sd).abs() <= 1e-12 * sd.mean);
        let rhat = Spread::over(&all, |s| s.rhat);
        assert_eq!(rhat.undefined, if first.rhat.is_nan() { 3 } else { 0 });
    }
}

#[test]
fn refuses_what_are_no_draws() {
    let equal = Draws::new(&[1.0; 6], 4);
    assert!(matches!(
        equal,
        Err(DiagnosticsError::UnequalChains {
            values: 6,
            chains: 4
        })
    ));
    assert_eq!(Draws::new(&[1.0], 0), Err(DiagnosticsError::NoChains));
    assert_eq!(Draws::new(&[], 2), Err(DiagnosticsError::NoDraws));
    let nothing = Estimator::summarise(1, 2, 0, |_, _| ());
    assert_eq!(nothing, Err(DiagnosticsError::NoDraws));
}

/// Every statistic of the draws.
fn everything(e: &mut Estimator, draws: Draws<'_>) -> Vec<f64> {
    let VariableSummary {
        mean,
        sd,
        mcse_mean,
        ess_bulk,
        ess_tail,
        ess_within,
        rhat,
    } = e.summary(draws);
    let mut all = vec![mean, sd, mcse_mean, ess_bulk, ess_tail, ess_within, rhat];
    all.extend([
        e.ess_bulk(draws),
        e.ess_tail(draws),
        e.ess_mean(draws),
        e.ess_sd(draws),
        e.ess_median(draws),
        e.rhat_rank(draws),
        e.rhat_folded(draws),
        e.mcse_mean(draws),
        e.mcse_sd(draws),
        e.mcse_median(draws),
        draws.rhat_gelman_rubin(),
        draws.rhat_split(),
        draws.rhat_squared_hron(),
        draws.potential_scale_reduction(),
        draws.potential_scale_reduction_split(),
        bfmi(draws.values()),
    ]);
    for truncation in [Truncation::FirstNegative, Truncation::NegativePair] {
        all.push(e.ess_tfp(draws.values(), truncation));
        all.push(e.ess_tfp_cross_chain(draws, truncation));
    }
    all
}

#[test]
fn a_nan_makes_every_statistic_nan() {
    let mut values: Vec<f64> = (0..40).map(|i| f64::from(i).sin()).collect();
    values[17] = f64::NAN;
    let found = everything(&mut Estimator::new(), Draws::new(&values, 2).unwrap());
    assert!(found.iter().all(|x| x.is_nan()), "{found:?}");
}

#[test]
fn too_few_draws_are_no_error() {
    let mut e = Estimator::new();
    for length in 1..4 {
        let values: Vec<f64> = (0..3 * length).map(|i| (i as f64).sin()).collect();
        let draws = Draws::new(&values, 3).unwrap();
        everything(&mut e, draws);
        assert!(e.ess_bulk(draws).is_nan() && e.rhat_rank(draws).is_nan());
        assert!(e.mcse_mean(draws).is_nan() && e.mcse_median(draws).is_nan());
    }
    assert!(e.ess_tfp(&[], Truncation::FirstNegative).is_nan());
    assert!(bfmi(&[]).is_nan() && bfmi(&[1.0]).is_nan());
    assert!(
        e.ess_quantile(Draws::new(&[0.0, 1.0, 2.0, 3.0], 1).unwrap(), 1.5)
            .is_nan()
    );
}

#[test]
fn constants_that_are_no_binary_fractions_are_constants() {
    let draws = [0.1; 44];
    let draws = Draws::new(&draws, 2).unwrap();
    let mut e = Estimator::new();
    assert_eq!(e.ess_mean(draws), 44.0);
    assert_eq!(e.ess_tail(draws), 44.0);
    assert_eq!(e.mcse_mean(draws), 0.0);
    assert!(draws.rhat_split().is_nan() && draws.rhat_squared_hron().is_nan());
    assert!(draws.potential_scale_reduction().is_nan());
    assert!(
        e.ess_tfp(draws.values(), Truncation::FirstNegative)
            .is_nan()
    );
}

/// Normal draws of up to four autoregressive chains with a common law.
fn chains() -> impl Strategy<Value = (Vec<f64>, usize)> {
    (1..5usize, 4..60usize, -0.9..0.95f64).prop_flat_map(|(chains, length, rho)| {
        prop::collection::vec(-1.0..1.0f64, chains * length).prop_map(move |noise| {
            let mut values = noise;
            for chain in values.chunks_exact_mut(length) {
                for i in 1..length {
                    chain[i] += rho * chain[i - 1];
                }
            }
            (values, chains)
        })
    })
}

fn same(a: f64, b: f64) -> bool {
    (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-7 * (1.0 + a.abs())
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn shifts_and_scales_change_nothing_but_the_unit((values, chains) in chains(), scale in 0.01..100.0f64, shift in -100.0..100.0f64) {
        let mut e = Estimator::new();
        let moved: Vec<f64> = values.iter().map(|x| scale * x + shift).collect();
        let before = Draws::new(&values, chains).unwrap();
        let after = Draws::new(&moved, chains).unwrap();
        let (a, b) = (e.summary(before), e.summary(after));
        prop_assert!(same(a.ess_bulk, b.ess_bulk) && same(a.ess_tail, b.ess_tail));
        prop_assert!(same(a.mcse_mean * scale, b.mcse_mean));
        prop_assert!(same(e.ess_mean(before), e.ess_mean(after)));
        prop_assert!(same(e.ess_sd(before), e.ess_sd(after)));
        prop_assert!(same(before.rhat_split(), after.rhat_split()));
        prop_assert!(same(before.rhat_squared_hron(), after.rhat_squared_hron()));
        let t = Truncation::FirstNegative;
        prop_assert!(same(e.ess_tfp(&values, t), e.ess_tfp(&moved, t)));
    }

    #[test]
    fn folding_is_exact_under_exact_maps((values, chains) in chains()) {
        // Other maps may break, by rounding, the tie of the two draws nearest the median.
        let mut e = Estimator::new();
        let mapped: Vec<f64> = values.iter().map(|x| -4.0 * x).collect();
        let (a, b) = (Draws::new(&values, chains).unwrap(), Draws::new(&mapped, chains).unwrap());
        prop_assert!(same(e.rhat_rank(a), e.rhat_rank(b)) && same(e.rhat_folded(a), e.rhat_folded(b)));
    }

    #[test]
    fn the_order_of_chains_does_not_matter((values, chains) in chains()) {
        let mut e = Estimator::new();
        let draws = Draws::new(&values, chains).unwrap();
        let reversed: Vec<f64> = draws.iter().collect::<Vec<_>>().into_iter().rev().flatten().copied().collect();
        let reversed = Draws::new(&reversed, chains).unwrap();
        for (name, f) in [("bulk", Estimator::ess_bulk as fn(&mut Estimator, Draws<'_>) -> f64), ("tail", Estimator::ess_tail), ("sd", Estimator::ess_sd), ("rhat", Estimator::rhat_rank), ("mcse", Estimator::mcse_median)] {
            let (a, b) = (f(&mut e, draws), f(&mut e, reversed));
            prop_assert!(same(a, b), "{name}: {a} {b}");
        }
    }

    #[test]
    fn statistics_stay_in_their_ranges((values, chains) in chains()) {
        let mut e = Estimator::new();
        let draws = Draws::new(&values, chains).unwrap();
        let size = values.len() as f64;
        for ess in [e.ess_bulk(draws), e.ess_tail(draws), e.ess_mean(draws), e.ess_sd(draws), e.ess_median(draws)] {
            prop_assert!(ess > 0.0 && ess <= size * size.log10() * (1.0 + 1e-12));
        }
        for chain in draws.iter() {
            let ess = e.ess_tfp(chain, Truncation::FirstNegative);
            prop_assert!(ess > 0.0 && ess <= chain.len() as f64 * (1.0 + 1e-12));
        }
        prop_assert!(draws.rhat_squared_hron() >= 1.0);
        if chains > 1 {
            let n = draws.length() as f64;
            let half = (draws.length() / 2) as f64;
            prop_assert!(draws.rhat_gelman_rubin() >= ((n - 1.0) / n).sqrt() - 1e-12);
            prop_assert!(e.rhat_rank(draws) >= ((half - 1.0) / half).sqrt() - 1e-12);
            // (n − 1)/n W + B/n with 1/(M − 1) against Hron et al.'s with 1/M.
            let m = chains as f64;
            let expected = (n - 1.0) / n * (1.0 + (draws.rhat_squared_hron() - 1.0) * m / (m - 1.0));
            prop_assert!(same(draws.rhat_gelman_rubin().powi(2), expected));
        }
    }

    #[test]
    fn monotone_maps_keep_what_depends_on_ranks((values, chains) in chains()) {
        let mut e = Estimator::new();
        let mapped: Vec<f64> = values.iter().map(|x| x.exp()).collect();
        let (a, b) = (Draws::new(&values, chains).unwrap(), Draws::new(&mapped, chains).unwrap());
        prop_assert!(same(e.ess_bulk(a), e.ess_bulk(b)));
    }
}
