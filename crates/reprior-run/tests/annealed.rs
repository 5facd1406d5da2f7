//! Annealed particles, and chains with replicas, as runs: their evidence against the closed form, interruptions, what the summary says; steps that are not corrected.

use std::sync::atomic::AtomicBool;

use reprior_run::{Failure, Level, Summary, resume_in, sample_in_memory};

use crate::common::{Impatient, Silent, options, settings};

fn summary(flags: &str) -> Summary {
    let stop = AtomicBool::new(false);
    sample_in_memory(settings(flags), &options(2, &stop, &Silent))
        .unwrap()
        .1
}

/// Without hidden layers the infinitely wide network is the network, and its evidence is exact.
#[test]
fn the_evidence_is_that_of_the_closed_form() {
    let data = "--data friedman --train 40 --test 10 --network linear --noise 0.5";
    let exact = summary(&format!("{data} --method nngp"));
    let exact = exact.log_marginal_likelihood.unwrap();
    let found = summary(&format!(
        "{data} --method smc --coordinates standard --chains 8 --draws 100"
    ));
    let evidence = found.evidence.clone().unwrap();
    // t of 7 degrees of freedom: |t| > 7 has probability 2e-4
    let z = (evidence.log_evidence - exact) / evidence.error;
    assert!(z.abs() < 7.0, "{evidence:?} {exact}");
    assert!(evidence.error < 0.3, "{evidence:?}");
    assert_eq!(evidence.replicates.len(), 8);
    assert!(evidence.temperatures > 3 && (1..=100).contains(&evidence.families.unwrap()));
    assert_eq!((found.draws, found.chains, found.warmup), (100, 8, 0));
    assert!(!found.can_go_on && found.n_gradients > 0 && found.log_marginal_likelihood.is_none());
    let checks = &found.verdict.checks;
    let check = checks.iter().find(|c| c.name == "log evidence").unwrap();
    assert_eq!(check.level, Level::Good, "{check:?}");
}

/// The same of chains with replicas, whose summary says what became of exchanges.
#[test]
fn replicas_find_the_evidence_of_the_closed_form() {
    let data = "--data friedman --train 40 --test 10 --network linear --noise 0.5";
    let exact = summary(&format!("{data} --method nngp"));
    let exact = exact.log_marginal_likelihood.unwrap();
    let flags = "--coordinates standard --replicas 5 --chains 8 --warmup 260 --draws 800 --thin 1";
    let found = summary(&format!("{data} {flags}"));
    let evidence = found.evidence.clone().unwrap();
    // t of 7 degrees of freedom: |t| > 7 has probability 2e-4
    let z = (evidence.log_evidence - exact) / evidence.error;
    assert!(z.abs() < 7.0, "{evidence:?} {exact}");
    assert!(evidence.error < 0.3, "{evidence:?}");
    assert_eq!((evidence.temperatures, evidence.families), (7, None));
    let exchanges = found.exchanges.clone().unwrap();
    assert_eq!((exchanges.replicas, exchanges.refusals.len()), (5, 6));
    let fewest = exchanges.fewest_arrivals();
    assert!(exchanges.arrivals.len() == 8 && fewest > 9, "{exchanges:?}");
    let sum: f64 = exchanges.refusals.iter().sum();
    assert!(
        (exchanges.barrier - sum).abs() < 1e-12 && sum > 1.0,
        "{exchanges:?}"
    );
    let level = |found: &Summary| {
        let checks = &found.verdict.checks;
        checks
            .iter()
            .find(|c| c.name == "exchanges")
            .map(|c| c.level)
    };
    assert_eq!(level(&found), Some(Level::Good));
    // one replica does not reach the prior: a check that says no
    let few = "--coordinates standard --replicas 1 --chains 2 --warmup 40 --draws 40 --thin 1";
    let few = summary(&format!("{data} {few}"));
    assert_eq!(level(&few), Some(Level::Caution), "{:?}", few.exchanges);
    let said = few.warnings.iter().any(|w| w.contains("--replicas"));
    assert!(said, "{:?}", few.warnings);
}

#[test]
fn a_run_that_was_stopped_ends_with_the_same_draws() {
    let data = "--data friedman --train 30 --test 12 --network fcn:8 --chains 3 --draws 20";
    ends_with_the_same_draws(&format!("{data} --method smc"));
    ends_with_the_same_draws(&format!("{data} --replicas 2 --warmup 40 --thin 2"));
    ends_with_the_same_draws(&format!("{data} --replicas 1 --method pcn --warmup 40"));
}

fn ends_with_the_same_draws(flags: &str) {
    let never = AtomicBool::new(false);
    let (whole, _) = sample_in_memory(settings(flags), &options(3, &never, &Silent)).unwrap();
    let run = reprior_io::run::RunFolder::in_memory();
    let config = whole.files().read_text("config.toml").unwrap().unwrap();
    run.write_text("config.toml", &config).unwrap();
    let stop = AtomicBool::new(false);
    let stopped = resume_in(&run, &options(1, &stop, &Impatient(&stop)));
    assert!(matches!(stopped, Err(Failure::Stopped)), "{stopped:?}");
    resume_in(&run, &options(1, &never, &Silent)).unwrap();
    for name in whole.files().names().unwrap() {
        if name != "summary.json" && !name.starts_with("checkpoint") {
            let same = whole.files().read(&name).unwrap() == run.files().read(&name).unwrap();
            assert!(same, "{name}");
        }
    }
}

#[test]
fn uncorrected_steps_are_said_to_be_biased() {
    let data =
        "--data friedman --train 30 --test 10 --network fcn:16 --noise 0.3 --chains 2 --draws 400";
    let found = summary(&format!("{data} --method mclmc --warmup 500 --thin 1"));
    let variance = found.energy_variance.unwrap();
    assert!((2e-4..1.25e-3).contains(&variance), "{variance}");
    let check = |found: &Summary| {
        let checks = &found.verdict.checks;
        let check = checks.iter().find(|c| c.name == "energy error");
        check.map(|check| check.level)
    };
    assert_eq!(check(&found), Some(Level::Caution));
    let warned = |found: &Summary| {
        found
            .warnings
            .iter()
            .any(|w| w.contains("no step was corrected"))
    };
    assert!(warned(&found), "{:?}", found.warnings);
    let far = summary(&format!(
        "{data} --method mclmc --warmup 500 --thin 1 --energy-variance 0.2"
    ));
    assert_eq!(check(&far), Some(Level::Bad), "{:?}", far.energy_variance);
    let exact = summary(&format!("{data} --method mams --warmup 50 --thin 1"));
    assert_eq!((check(&exact), exact.energy_variance), (None, None));
    assert!(!warned(&exact));
}
