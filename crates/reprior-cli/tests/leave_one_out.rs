//! What the program says of leave-one-out cross-validation, and how runs are compared by it.

use crate::common::{Place, SMALL};

#[test]
fn summaries_show_it_and_say_when_not_to_trust_it() {
    let place = Place::new();
    let run = place.succeed(&format!("sample {SMALL} --out run"));
    assert!(
        run.stdout
            .contains("training rows, each left out in turn (PSIS-LOO): log-likelihood"),
        "{run:?}"
    );
    let run = place.succeed("summary run --verbose");
    for part in [
        "leave-one-out cross-validation (PSIS-LOO), 40 training rows",
        "elpd_loo per row",
        "p_loo",
        "rows with Pareto k > 0.7",
    ] {
        assert!(run.stdout.contains(part), "{part}: {run:?}");
    }
    let loo = &place.summary("run")["loo"];
    assert_eq!(loo["rows"], 40);
    // hundreds of weights for 40 rows, all of them drawn, and hardly any noise: leaving a row out changes everything
    let flags = SMALL.replace("fcn:16", "fcn:64");
    let run = place.succeed(&format!(
        "sample {flags} --likelihood student-t --degrees-of-freedom 100 --noise 0.05 --out far"
    ));
    assert!(
        run.stdout.contains("do not trust it: Pareto k > 0.7"),
        "{run:?}"
    );
    let verbose = place.succeed("summary far --verbose").stdout;
    assert!(verbose.contains("do not trust elpd_loo"), "{verbose}");
    assert!(
        place.summary("far")["loo"]["rows_above_07"]
            .as_u64()
            .unwrap()
            > 0
    );
    place.succeed("report far");
    let page = place.read("far/report.html");
    assert!(page.contains("Do not trust elpd_loo") && page.contains("rows with Pareto k &gt; 0.7"));
    // a closed form
    let run = place.succeed(
        "sample --data friedman --train 40 --test 20 --network fcn:16 --method nngp --out exact",
    );
    assert!(run.stdout.contains("(exact)"), "{run:?}");
    let verbose = place.succeed("summary exact --verbose").stdout;
    assert!(verbose.contains("exact for this model"), "{verbose}");
    // of new rows and of rows that were left out: alike
    let summary = place.summary("exact");
    let per_row = summary["loo"]["elpd_loo_per_row"].as_f64().unwrap();
    let nll = summary["metrics"]["nll"].as_f64().unwrap();
    assert!((per_row + nll).abs() < 1.0, "{per_row} {nll}");
}

#[test]
fn reports_compare_runs_row_by_row() {
    let place = Place::new();
    place.succeed(&format!("sample {SMALL} --out one"));
    place.succeed(&format!("sample {SMALL} --noise 0.4 --out two"));
    let other = SMALL.replace("--train 40", "--train 30");
    place.succeed(&format!("sample {other} --out fewer"));
    place.succeed(&format!(
        "sample {SMALL} --keep-log-likelihood 0 --out none"
    ));
    place.succeed("report one two --out page.html");
    let page = place.read("page.html");
    for part in [
        "Leave-one-out cross-validation",
        "difference from the best",
        "over the same 40 training rows",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for (run, why) in [
        ("fewer", "different numbers of training rows"),
        ("none", "the run records no log-likelihoods"),
    ] {
        place.succeed(&format!("report one {run} --out page.html"));
        let page = place.read("page.html");
        assert!(!page.contains("difference from the best"));
        assert!(page.contains(why), "{why}");
    }
}
