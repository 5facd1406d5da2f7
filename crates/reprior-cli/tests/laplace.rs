//! Laplace approximations and diffusions: what they record, that they go on where they were, and what they refuse.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Place, assert_same};

const CLASSES: &str = "--data two-moons --train 200 --test 100 --likelihood categorical --network fcn:10 --epochs 60 --batch 50";

/// Structures, subsets, precisions, links and diffusions.
const METHODS: [&str; 11] = [
    "laplace",
    "laplace --hessian-structure kron-separate --draws 5",
    "laplace --hessian-structure diag --pred-type nn --prior-precision 5",
    "laplace --hessian-structure full --prior-precision marglik --link-approx bridge",
    "laplace --hessian-structure lowrank --rank 10 --link-approx mc --draws 5",
    "laplace --subset-of-weights last-layer --prior-precision marglik-layer",
    "laplace --subset-of-weights last(20) --hessian-structure full",
    "laplace --subset-of-weights largest-variance(10) --hessian-structure diag --prior-precision marglik-parameter --precision f64",
    "laplace --prior-precision validation --validation 50 --chains 2 --draws 4",
    "laplace-diffusion --rank 10 --diffusion-steps 3 --draws 4",
    "laplace-diffusion --diffusion kernel --integrator heun --rank 20 --diffusion-steps 3 --draws 3 --curvature-rows 20",
];

#[test]
fn every_choice_records_draws_that_predict_reads() {
    let place = Place::new();
    for (index, method) in METHODS.into_iter().enumerate() {
        let run = format!("run{index}");
        place.succeed(&format!(
            "sample {CLASSES} --method {method} --keep 1000 --out {run}"
        ));
        let summary = place.summary(&run);
        assert_eq!(summary["status"], "complete", "{method}");
        let accuracy = summary["metrics"]["accuracy"].as_f64().unwrap();
        assert!(accuracy > 0.7, "{method}: {accuracy}");
        let is_linearised = method.starts_with("laplace")
            && !method.contains("diffusion")
            && !method.contains("nn");
        let closed = &summary["minibatch"]["metrics_in_closed_form"];
        assert_eq!(closed.is_object(), is_linearised, "{method}");
        if is_linearised {
            // draws are of the same Gaussian
            let [nll, closed] = [&summary["metrics"], closed].map(|m| m["nll"].as_f64().unwrap());
            assert!((nll - closed).abs() < 0.15, "{method}: {nll} {closed}");
        }
        let fits = summary["minibatch"]["laplace"].as_array();
        let fits = fits.map_or(0, Vec::len);
        let chains = summary["chains"].as_u64().unwrap() as usize;
        let is_gaussian = !method.contains("diffusion");
        assert_eq!(fits, if is_gaussian { chains } else { 0 }, "{method}");
        let (_, rows) = place
            .succeed(&format!("predict {run} --data two-moons"))
            .table();
        assert_eq!(rows.len(), 200, "{method}");
        place.succeed(&format!(
            "sample --config {run}/config.toml --out again --overwrite"
        ));
        assert_same(
            &place.tree("again/draws.zarr"),
            &place.tree(&format!("{run}/draws.zarr")),
        );
    }
}

/// In regression the closed form has the function's variance and the noise.
#[test]
fn regression_in_closed_form() {
    let place = Place::new();
    place.succeed(
        "sample --data friedman --train 100 --test 50 --network fcn:16 --noise 0.3 --method laplace --hessian-structure full --epochs 300 --draws 200 --out run",
    );
    let summary = place.summary("run");
    let [draws, closed] = [
        &summary["metrics"],
        &summary["minibatch"]["metrics_in_closed_form"],
    ];
    for (name, tolerance) in [("rmse", 0.1), ("nll", 0.2), ("coverage_90", 0.08)] {
        let [a, b] = [draws, closed].map(|metrics| metrics[name].as_f64().unwrap());
        assert!(
            (a - b).abs() < tolerance * a.abs().max(1.0),
            "{name}: {a} {b}"
        );
    }
}

/// Where a Laplace approximation is exact its evidence is that of the closed form, every constant included, however short training
/// was: the way from its end to the mode is gone.
#[test]
fn the_evidence_of_a_linear_network_is_exact() {
    let place = Place::new();
    let data = "--data friedman --train 60 --test 20 --network linear --noise 0.3";
    place.succeed(&format!("sample {data} --method nngp --out exact"));
    place.succeed(&format!(
        "sample {data} --method laplace --hessian-structure full --epochs 3 --draws 2 --out laplace"
    ));
    let evidence = |run: &str| {
        let summary = place.summary(run);
        summary["log_marginal_likelihood"].as_f64().unwrap()
    };
    let [exact, laplace] = ["exact", "laplace"].map(evidence);
    assert!((exact - laplace).abs() < 0.01, "{exact} {laplace}");
    let fit = &place.summary("laplace")["minibatch"]["laplace"][0];
    assert_eq!(fit["log_marginal_likelihood"].as_f64(), Some(laplace));
    assert!(fit["nats_to_mode"].as_f64().unwrap() < 0.01, "{fit}");
    assert!(fit["nats_climbed"].as_f64().unwrap() > 10.0, "{fit}");
}

/// What eigenpairs leave out is said, and that there are fewer than were asked for.
#[test]
fn eigenpairs_that_are_left_out_are_reported() {
    let place = Place::new();
    let warnings = |flags: &str| {
        let run = format!(
            "sample {CLASSES} --method laplace --hessian-structure lowrank {flags} --draws 2 --overwrite --out run"
        );
        place.succeed(&run);
        let summary = place.summary("run");
        let fit = summary["minibatch"]["laplace"][0].clone();
        (fit, summary["warnings"].to_string())
    };
    let (fit, text) = warnings("--rank 3");
    assert_eq!(fit["eigenpairs"], 3);
    assert_eq!(fit["left_out"]["directions"], 49);
    assert!(
        fit["left_out"]["log_determinant"].as_f64().unwrap() > 1.0,
        "{fit}"
    );
    assert!(
        text.contains("raise --rank") && !text.contains("asks for"),
        "{text}"
    );
    // eigenvalues below a part of the prior precision count as none
    let (fit, text) = warnings("--rank 50 --prior-precision 1000 --eigenvalue-threshold 0.01");
    let pairs = fit["eigenpairs"].as_u64().unwrap();
    assert!((1..40).contains(&pairs), "{pairs}");
    assert!(
        text.contains("of the 50 eigenpairs that --rank 50 asks for"),
        "{text}"
    );
    let (fit, _) =
        warnings("--rank 50 --prior-precision 0.001 --eigenvalue-threshold 0.01 --precision f64");
    assert!(fit["eigenpairs"].as_u64().unwrap() > pairs + 5, "{fit}");
}

/// Killed during training and among its draws, a run goes on and ends with the same bytes.
#[test]
fn killed_runs_end_with_the_same_bytes() {
    let place = Place::new();
    for (index, method) in [
        "laplace --draws 400",
        "laplace-diffusion --rank 10 --diffusion-steps 4 --draws 60",
    ]
    .into_iter()
    .enumerate()
    {
        let (whole, part) = (format!("whole{index}"), format!("part{index}"));
        let arguments = format!("sample {CLASSES} --method {method} --out");
        place.succeed(&format!("{arguments} {whole}"));
        let begin = Instant::now();
        let mut command = format!("{arguments} {part} --checkpoint-seconds 0.01");
        for pause in [100, 150, 200] {
            let mut running = place.start(&command);
            sleep(Duration::from_millis(pause));
            let _ = running.has_ended();
            running.signal("-KILL");
            running.wait();
            if place.path(&format!("{part}/config.toml")).exists() {
                command = format!("resume {part} --checkpoint-seconds 0.01 --threads 1");
            }
        }
        assert!(begin.elapsed() < Duration::from_secs(30));
        place.succeed(&format!("resume {part}"));
        assert_same(
            &place.tree(&format!("{whole}/draws.zarr")),
            &place.tree(&format!("{part}/draws.zarr")),
        );
    }
}

#[test]
fn wrong_requests_are_refused_before_any_work() {
    let place = Place::new();
    for (arguments, expected) in [
        (
            "laplace --hessian-structure dense",
            "unknown Hessian structure `dense`: use one of kron, kron-separate, full, diag, lowrank",
        ),
        (
            "laplace --subset-of-weights some",
            "unknown weights `some`: use all, last-layer",
        ),
        (
            "laplace --prior-precision -1",
            "unknown prior precision `-1`: use a positive number, prior",
        ),
        (
            "laplace --subset-of-weights last(5)",
            "--hessian-structure kron is not available for a subnetwork: use full or diag",
        ),
        (
            "laplace --prior-precision marglik-parameter",
            "use --prior-precision marglik-layer",
        ),
        (
            "laplace --prior-precision validation",
            "give --validation N",
        ),
        (
            "laplace --rank 5",
            "--rank is of laplace-diffusion and --hessian-structure lowrank: leave it out",
        ),
        (
            "laplace --diffusion-steps 5",
            "--diffusion-steps is of laplace-diffusion: leave it out",
        ),
        (
            "laplace --pred-type nn --link-approx probit",
            "--link-approx is of laplace with --pred-type glm",
        ),
        (
            "laplace-diffusion --hessian-structure diag",
            "--hessian-structure is of laplace: leave it out",
        ),
        (
            "laplace-diffusion --diffusion-steps 0",
            "--diffusion-steps is 0: it must be at least 1",
        ),
        (
            "laplace-diffusion --prior-precision marglik",
            "is of laplace: give a number, or prior",
        ),
        (
            "laplace --prior normal-inverse-gamma(1,1,0)",
            "give --prior-precision a number, or marglik",
        ),
        ("map --rank 5", "--rank is of laplace-diffusion"),
        ("pcn --rank 5", "is of methods by minibatches"),
    ] {
        let batch = if arguments.starts_with("pcn") {
            "--data two-moons --likelihood categorical"
        } else {
            CLASSES
        };
        let finished = place.run(&format!("sample {batch} --method {arguments} --out run"));
        assert_eq!(finished.code, Some(2), "{arguments}: {finished:?}");
        assert!(
            finished.stderr.contains(expected),
            "{arguments}: {}",
            finished.stderr
        );
        assert!(!place.path("run").exists(), "{arguments}");
    }
    let counts = "sample --data two-moons --train 200 --test 10 --likelihood categorical --network fcn:10 --method laplace --epochs 0 --out run";
    let finished = place.run(counts);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(
        finished.stderr.contains("--epochs is 0"),
        "{}",
        finished.stderr
    );
}

/// A plan says what the curvature takes.
#[test]
fn plans_state_bytes_and_products() {
    let place = Place::new();
    let plan = place.succeed(&format!(
        "plan {CLASSES} --method laplace-diffusion --rank 10 --json"
    ));
    let plan = plan.json();
    assert!(plan["curvature_bytes"].as_u64().unwrap() > 0);
    // each of 20 decompositions may take as many as there are weights
    assert_eq!(plan["curvature_products_at_most"], 52 * 20);
}

/// Rotated images and a reliability table.
#[test]
fn rotations_and_reliability() {
    let place = Place::new();
    place.succeed(
        "sample --data strokes --test 100 --likelihood categorical --network fcn:40 --method laplace --subset-of-weights last-layer --epochs 150 --batch 20 --draws 5 --out run",
    );
    let accuracy = |text: &str| -> f64 {
        let word = text.split("accuracy ").nth(1).unwrap();
        let word = word.split([',', '\n']).next().unwrap();
        word.trim().parse().unwrap()
    };
    let upright = place.succeed("predict run --data strokes --out a.csv --reliability table.csv");
    let turned = place.succeed("predict run --data strokes --out b.csv --rotate 90");
    let same = place.succeed("predict run --data strokes --out c.csv --rotate 360");
    assert!(accuracy(&upright.stderr) > accuracy(&turned.stderr) + 0.1);
    assert_eq!(accuracy(&upright.stderr), accuracy(&same.stderr));
    assert_eq!(place.read("a.csv"), place.read("c.csv"));
    let table = place.read("table.csv");
    assert_eq!(table.lines().count(), 16);
    assert!(table.starts_with("lower,upper,count,confidence,accuracy\n"));
    let count = |line: &str| line.split(',').nth(2).unwrap().parse::<usize>().unwrap();
    let rows: usize = table.lines().skip(1).map(count).sum();
    assert_eq!(rows, place.read("a.csv").lines().count() - 1);
    place.succeed("sample --data friedman --train 40 --test 5 --network fcn:4 --noise 0.3 --method map --epochs 5 --out table");
    let refused = place.run("predict table --data friedman --rotate 10");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--rotate is of images"));
}
