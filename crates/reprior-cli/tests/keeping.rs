//! What a run keeps of its draws: a budget, explicit numbers, what is said of it, and that it is enough.

use crate::common::{Place, SMALL, Tree};
use serde_json::Value;

/// Hundreds of test images, ten classes: everything would be 6 MB.
const WIDE: &str = "--data strokes --train 30 --test 400 --network fcn:128 --warmup 4 --draws 60 --thin 1 --chains 2";

fn bytes(tree: &Tree) -> u64 {
    tree.values().map(|file| file.len() as u64).sum()
}

fn count(json: &Value, name: &str) -> u64 {
    json[name].as_u64().unwrap()
}

#[test]
fn a_run_folder_stays_within_its_budget() {
    let place = Place::new();
    let run = place.succeed(&format!("sample {WIDE} --keep-mb 3 --out run"));
    let plan = place
        .succeed(&format!("plan {WIDE} --keep-mb 3 --json"))
        .json();
    let taken = bytes(&place.tree("run"));
    assert!((2_000_000..3_100_000).contains(&taken), "{taken} bytes");
    let planned = count(&plan, "run_folder_bytes");
    assert!(
        planned.abs_diff(taken) < taken / 5,
        "{planned} bytes planned, {taken} taken"
    );
    let said = run.stdout.lines().last().unwrap();
    assert!(
        said.starts_with("It takes ") && said.contains("--keep-mb"),
        "{said}"
    );
    let positions = count(&plan, "positions_kept");
    assert!(said.contains(&format!("{positions} positions")), "{said}");
    // some, not all, evenly from all chains; and the summary says so
    let summary = place.summary("run");
    let recorded = count(&summary, "metrics_draws");
    assert!((5..60).contains(&recorded), "{summary}");
    assert_eq!(2 * recorded, count(&plan, "predictions_recorded"));
    assert!(
        run.stdout
            .contains(&format!("by {recorded} of the 60 draws")),
        "{run:?}"
    );
    let predicted = place.succeed("predict run --data strokes --out predictions.csv");
    assert!(
        predicted
            .stderr
            .contains(&format!("predictions of {positions} draws")),
        "{predicted:?}"
    );
    place.succeed("report run");
    // the written numbers make the same run
    let config = place.read("run/config.toml");
    assert!(
        config.contains("keep-mb = 3") && config.contains("keep-predictions = "),
        "{config}"
    );
    // states of chains are kept that take no more than a tenth of it; `resume` says that there is nothing to do
    assert!(bytes(&place.tree("run/checkpoint")) < 300_000);
    let resumed = place.succeed("resume run");
    assert!(resumed.stderr.contains("complete"), "{resumed:?}");
    assert_eq!(place.summary("run"), summary);
}

#[test]
fn explicit_numbers_win_and_diagnostics_stay_those_of_all_draws() {
    let place = Place::new();
    place.succeed(&format!("sample {SMALL} --noise learn --out all"));
    place.succeed(&format!(
        "sample {SMALL} --noise learn --out some --keep-predictions 10 --keep 5"
    ));
    let (all, some) = (place.summary("all"), place.summary("some"));
    assert_eq!(
        (count(&all, "metrics_draws"), count(&some, "metrics_draws")),
        (30, 10)
    );
    for name in ["mean", "min", "max", "tail_min", "rhat_max", "variables"] {
        assert_eq!(
            all["ess"]["prediction"][name], some["ess"]["prediction"][name],
            "{name}"
        );
    }
    assert_eq!(all["rhat_max"], some["rhat_max"]);
    let rmse = |json: &Value| json["metrics"]["rmse"].as_f64().unwrap();
    assert!((rmse(&all) / rmse(&some) - 1.0).abs() < 0.2, "{all} {some}");
    assert_ne!(rmse(&all), rmse(&some));
    let predicted = place.succeed("predict some --data friedman");
    assert!(
        predicted
            .stderr
            .contains("predictions of 10 draws, 5 of each of 2 chains"),
        "{predicted:?}"
    );
    for flag in ["--keep-mb 0", "--keep-predictions 0"] {
        place
            .run(&format!("sample {SMALL} {flag} --out no"))
            .assert_error(2, &[flag.split(' ').next().unwrap(), "at least 1"]);
    }
}

#[test]
fn methods_by_minibatches_keep_to_it_too() {
    let place = Place::new();
    let flags = "--data strokes --train 30 --test 300 --network fcn:64 --likelihood gaussian --draws 40 --chains 2 --keep-mb 2";
    for method in ["sgld --epochs 100", "laplace --epochs 20"] {
        place.succeed(&format!(
            "sample {flags} --method {method} --out run --overwrite"
        ));
        let taken = bytes(&place.tree("run"));
        assert!(taken < 2_300_000, "{method}: {taken} bytes");
        let summary = place.summary("run");
        assert!(
            (1..40).contains(&count(&summary, "metrics_draws")),
            "{summary}"
        );
        let predicted = place.succeed("predict run --data strokes --out predictions.csv");
        assert!(
            predicted.stderr.contains("predictions of "),
            "{predicted:?}"
        );
        let resumed = place.succeed("resume run");
        assert!(resumed.stderr.contains("complete"), "{resumed:?}");
        assert_eq!(place.summary("run"), summary, "{method}");
    }
}
