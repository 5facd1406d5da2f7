//! Leave-one-out cross-validation of runs: against closed forms, of all rows and of some, of every family of methods.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reprior_io::run::{DrawReader, RunFolder, Selection};
use reprior_run::{
    LeaveOneOutSummary, LeftOutRows, Options, PredictedRows, Recorded, Summary, sample_in_memory,
};

use crate::common::{Silent, settings};

fn run(flags: &str) -> (RunFolder, Summary) {
    let stop = AtomicBool::new(false);
    let options = Options {
        threads: Some(2),
        checkpoint_every: Duration::MAX,
        stop: &stop,
        watcher: &Silent,
        more: None,
        is_part: false,
    };
    sample_in_memory(settings(flags), &options).unwrap()
}

fn loo(flags: &str) -> LeaveOneOutSummary {
    run(flags).1.loo.unwrap()
}

fn rows(run: &RunFolder) -> LeftOutRows {
    let recorded = Recorded::of(run.files().clone()).unwrap();
    recorded.leave_one_out().unwrap().unwrap()
}

/// The values of a variable, and its shape.
fn values(run: &RunFolder, group: &str, name: &str) -> (Vec<f64>, Vec<usize>) {
    let reader = DrawReader::open(run.files()).unwrap();
    let all = reader.read::<f64>(group, name, &Selection::all()).unwrap();
    (all.values, all.shape)
}

const LINEAR: &str = "--data friedman --train 60 --test 10 --network linear --noise 0.5";

/// Of a linear model the posterior is Gaussian, and everything is known.
#[test]
fn of_a_linear_model_it_is_the_exact_one() {
    let (exact_run, exact) = run(&format!("{LINEAR} --method nngp"));
    let exact = exact.loo.unwrap();
    assert!(exact.is_exact && exact.rows == 60);
    // nothing but the readout, which is integrated out: every draw has the closed form
    let (marginal_run, marginal) = run(&format!(
        "{LINEAR} --warmup 5 --draws 20 --thin 1 --chains 2"
    ));
    let marginal = marginal.loo.unwrap();
    let own = rows(&exact_run).log_densities;
    for (own, other) in own.iter().zip(rows(&marginal_run).log_densities) {
        assert!(
            (own - other).abs() < 1e-4 * (1.0 + own.abs()),
            "{own} {other}"
        );
    }
    assert!((marginal.se - exact.se).abs() < 1e-3 && marginal.rows_above_07 == 0);
    // what is integrated out has no parameters
    assert!(marginal.p_loo.abs() < 1e-6, "{marginal:?}");
    // all weights drawn, under a likelihood that is as good as Gaussian
    let drawn = loo(&format!(
        "{LINEAR} --likelihood student-t --degrees-of-freedom 10000 --coordinates repriorised --warmup 200 --draws 3000 --chains 2"
    ));
    assert_eq!(drawn.rows_above_07, 0, "{drawn:?}");
    let difference = (drawn.elpd_loo - exact.elpd_loo).abs();
    assert!(difference < 0.5, "{drawn:?} {exact:?}");
    assert!(
        (drawn.p_loo - exact.p_loo).abs() < 0.5,
        "{drawn:?} {exact:?}"
    );
}

const SMALL: &str =
    "--data friedman --train 40 --test 20 --network fcn:16 --warmup 20 --draws 30 --chains 2";

#[test]
fn some_rows_are_the_same_rows_of_all() {
    let (all_run, all) = run(SMALL);
    let (some_run, some) = run(&format!("{SMALL} --keep-log-likelihood 9"));
    let (none_run, none) = run(&format!("{SMALL} --keep-log-likelihood 0"));
    let (all, some) = (all.loo.unwrap(), some.loo.unwrap());
    assert_eq!((all.rows, some.rows, some.training_rows), (40, 9, 40));
    assert!(none.loo.is_none());
    let why = Recorded::of(none_run.files().clone()).unwrap();
    let why = why.leave_one_out().unwrap().unwrap_err();
    assert!(why.contains("--keep-log-likelihood"), "{why}");
    assert!(
        some.title().contains("9 of 40 training rows"),
        "{}",
        some.title()
    );
    let (whole, shape) = values(&all_run, "log_likelihood", "y");
    assert_eq!(shape, [2, 30, 40]);
    let (part, shape) = values(&some_run, "log_likelihood", "y");
    assert_eq!(shape, [2, 30, 9]);
    let chosen = rows(&some_run).rows;
    let picked = whole.chunks_exact(40);
    let picked: Vec<f64> = picked
        .flat_map(|draw| chosen.iter().map(|&row| draw[row]))
        .collect();
    assert_eq!(part, picked);
    // the draws know nothing of it
    for other in [&some_run, &none_run] {
        let projections = |run: &RunFolder| values(run, "posterior", "projection").0;
        assert_eq!(projections(&all_run), projections(other));
    }
}

/// Another unit of the target moves log-densities by its logarithm, and nothing else.
#[test]
fn it_is_in_the_targets_own_units() {
    let place = tempfile::tempdir().unwrap();
    let table = |scale: f64| {
        let mut text = "x,y\n".to_owned();
        for row in 0..30 {
            let x = f64::from(row) * 0.37;
            text += &format!("{x},{}\n", scale * (x.sin() + 0.1 * (7.0 * x).cos()));
        }
        let path = place.path().join(format!("{scale}.csv"));
        std::fs::write(&path, text).unwrap();
        path
    };
    let of = |scale: f64| {
        let path = table(scale);
        loo(&format!(
            "--data {} --target y --train 20 --test 10 --network fcn:8 --warmup 10 --draws 20 --chains 2",
            path.display()
        ))
    };
    let (one, other) = (of(1.0), of(1024.0));
    let moved = one.elpd_loo_per_row - other.elpd_loo_per_row;
    assert!((moved - 1024.0_f64.ln()).abs() < 1e-3, "{moved}");
    assert!((one.se - other.se).abs() < 1e-3);
}

#[test]
fn every_family_records_what_it_should() {
    let data = "--data friedman --train 40 --test 10 --network fcn:8";
    let sgld = "--method sgld --epochs 40 --batch 10 --draws 10 --chains 2";
    // rows that are held out are not among them
    let (held_out, summary) = run(&format!("{data} {sgld} --validation 8"));
    let found = summary.loo.unwrap();
    assert_eq!((found.rows, found.training_rows), (32, 40));
    assert_eq!(rows(&held_out).rows, (0..32).collect::<Vec<_>>());
    assert_eq!(values(&held_out, "log_likelihood", "y").1, [2, 10, 32]);
    // draws that are no posterior's are recorded, and not summed up
    for method in [
        "laplace --epochs 20 --batch 10 --draws 5",
        "ensemble --epochs 5",
    ] {
        let (run, summary) = run(&format!("{data} --method {method}"));
        assert!(summary.loo.is_none());
        let (own, _) = values(&run, "log_likelihood", "y");
        assert!(own.iter().all(|density| density.is_finite()));
        let why = Recorded::of(run.files().clone()).unwrap();
        let why = why.leave_one_out().unwrap().unwrap_err();
        assert!(why.contains("not the posterior's"), "{why}");
    }
    let classes =
        "--data two-moons --train 40 --test 10 --network fcn:8 --warmup 10 --draws 20 --chains 2";
    let found = loo(&format!("{classes} --likelihood categorical"));
    assert!(found.elpd_loo < 0.0 && found.measure.contains("probabilities"));
    let found = loo(&format!("{classes} --likelihood gaussian"));
    assert!(found.measure.contains("codes"));
}

/// Chains that fit the data by different functions are weighted where they disagree, and predict with these weights; `predict` takes the
/// same from the summary.
#[test]
fn chains_that_disagree_are_stacked() {
    let agree =
        "--data friedman --train 30 --test 10 --network linear --noise 0.3 --chains 2 --draws 50";
    assert!(loo(agree).stacking.is_none());
    let apart = "--data friedman --train 200 --test 20 --network fcn:2,2 --noise 1 --start prior --warmup 60 --draws 200 --chains 6";
    // where chains end hangs on the last digits of a processor: of thirty starts two were such that all agreed, or that one was not to be
    // relied on
    let (folder, found) = (0..3)
        .map(|seed| run(&format!("{apart} --seed {seed}")))
        .map(|(folder, summary)| (folder, summary.loo.unwrap()))
        .find(|(_, found)| found.stacking.as_ref().is_some_and(|own| own.is_used))
        .unwrap();
    let stacking = found.stacking.clone().unwrap();
    assert_eq!(stacking.weights.len(), 6, "{found:?}");
    assert!((stacking.weights.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    assert!(stacking.elpd_loo.is_finite() && found.trust().contains("disagree"));
    // the mixture predicts left-out rows at least as well as all chains together
    assert!(stacking.elpd_loo > found.elpd_loo - 1.0, "{found:?}");
    let largest = stacking.weights.iter().copied().fold(0.0, f64::max);
    let shares = stacking
        .weights
        .iter()
        .map(|w| (200.0 * w / largest).round());
    assert_eq!(draws_that_predict(&folder) as f64, shares.sum::<f64>());
}

/// Chains that hardly move say nothing of rows that they were given: they are not weighted.
#[test]
fn stacking_is_left_alone_where_its_estimates_are_not_reliable() {
    let stuck = "--data friedman --train 60 --test 20 --network fcn:4,4 --noise 0.05 --start prior --warmup 2 --draws 20 --chains 3";
    let (folder, summary) = run(stuck);
    let found = summary.loo.unwrap();
    assert!(!found.stacking.clone().unwrap().is_used, "{found:?}");
    assert!(found.trust().contains("same weight"));
    assert_eq!(draws_that_predict(&folder), 60);
}

fn draws_that_predict(folder: &RunFolder) -> usize {
    let recorded = Recorded::of(folder.files().clone()).unwrap();
    let mut draws = 0;
    let each = |_: usize, rows: &PredictedRows| {
        draws = rows.draws();
        Ok(())
    };
    recorded.for_each_prediction(each).unwrap();
    draws
}
