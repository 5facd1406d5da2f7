//! Laplace approximations and diffusions: what they record, that they go on where they were, and what they refuse.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Place, assert_same};
use reprior_io::run::{DrawReader, Selection};

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
        let predicted = place.succeed(&format!("predict {run} --data two-moons"));
        // what is predicted from is not what is kept
        if index == 0 {
            let said = "predictions in closed form, without draws";
            assert!(predicted.stderr.contains(said), "{predicted:?}");
        }
        let (_, rows) = predicted.table();
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

/// Numbers of a column of what `predict` writes.
fn column(header: &[String], rows: &[Vec<String>], name: &str) -> Vec<f64> {
    let at = header.iter().position(|column| column == name).unwrap();
    rows.iter().map(|row| row[at].parse().unwrap()).collect()
}

/// A number of what `predict` says of its predictions against the truth.
fn said(text: &str, name: &str) -> f64 {
    let rest = text.split(&format!("{name} ")).nth(1).unwrap();
    rest.split([',', '\n'])
        .next()
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

/// Of a linearised network the fit predicts, and the link acts: on the run's test rows what `predict` writes is what the run has in
/// closed form, chains mixed, and its metrics are the summary's.
#[test]
fn predictions_for_the_test_rows_are_those_in_closed_form() {
    let place = Place::new();
    let data = "--data two-moons --network fcn:10 --epochs 30 --batch 50 --draws 3 --chains 2";
    let mut written = Vec::new();
    for (index, method) in [
        "--likelihood categorical --link-approx probit",
        "--likelihood categorical --link-approx bridge",
        "--likelihood categorical --link-approx mc",
        "--likelihood bernoulli --hessian-structure diag",
        "--likelihood categorical --hessian-structure full --prior-precision marglik --precision f64",
        "--likelihood categorical --hessian-structure lowrank --rank 10",
        "--likelihood categorical --subset-of-weights last-layer",
        "--likelihood categorical --subset-of-weights last(12) --hessian-structure full",
    ]
    .into_iter()
    .enumerate()
    {
        let run = format!("run{index}");
        place.succeed(&format!("sample {data} --method laplace {method} --out {run}"));
        let predicted = place.succeed(&format!("predict {run} --data two-moons"));
        let (header, rows) = predicted.table();
        let found: Vec<Vec<f64>> = (0..2).map(|c| column(&header, &rows, &header[c])).collect();
        let reader = DrawReader::open(&place.path(&run)).unwrap();
        let all = reader.read::<f64>("predictions_closed_form", "log_probability", &Selection::all());
        let all = all.unwrap();
        assert_eq!(all.shape, [2, 200, 2], "{method}");
        for row in 0..200 {
            for (class, found) in found.iter().enumerate() {
                let of_chain = |chain: usize| all.values[chain * 400 + row * 2 + class].exp();
                let mixed = 0.5 * (of_chain(0) + of_chain(1));
                assert!((found[row] - mixed).abs() < 1e-9, "{method}: {row} {class}");
            }
        }
        let closed = &place.summary(&run)["minibatch"]["metrics_in_closed_form"];
        for (key, name) in [
            ("nll", "negative log-likelihood"),
            ("accuracy", "accuracy"),
            ("brier", "Brier score"),
            ("confidence", "mean confidence"),
        ] {
            let (found, expected) = (said(&predicted.stderr, name), closed[key].as_f64().unwrap());
            assert!((found - expected).abs() < 6e-5, "{method} {key}: {found} {expected}");
        }
        written.push(predicted.stdout);
    }
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        assert!(written[one] != written[other], "links {one} and {other}");
    }
}

/// A network that is linear in its weights has its posterior, and its predictions, in closed form.
#[test]
fn predictions_of_a_linear_network_are_exact() {
    let place = Place::new();
    let data = "--data friedman --train 60 --test 20 --network linear --noise 0.3 --precision f64";
    place.succeed(&format!("sample {data} --method nngp --out exact"));
    place.succeed(&format!(
        "sample {data} --method laplace --hessian-structure full --epochs 3 --draws 2 --out laplace"
    ));
    for flags in ["", " --no-noise"] {
        let [exact, laplace] = ["exact", "laplace"].map(|run| {
            let predict = format!("predict {run} --data friedman{flags}");
            place.succeed(&predict).table()
        });
        let of = |name: &str| [&exact, &laplace].map(|(header, rows)| column(header, rows, name));
        let ([means, found], [sds, found_sds]) = (of("mean"), of("sd"));
        assert!(means.len() > 100);
        for row in 0..means.len() {
            let (sd, found_sd) = (sds[row], found_sds[row]);
            assert!((sd / found_sd - 1.0).abs() < 1e-9, "{row}: {sd} {found_sd}");
            assert!((means[row] - found[row]).abs() < 1e-6 * sd, "{row}");
        }
    }
    // and the metrics are the summary's
    let said_of = place.succeed("predict laplace --data friedman").stderr;
    assert!(said(&said_of, "rmse") > 0.0);
}

/// Without its file, or with a damaged one, nothing is predicted, and the way out is named; `--pred-type nn` needs none.
#[test]
fn a_fit_that_cannot_be_read_is_refused() {
    let place = Place::new();
    place.succeed(&format!(
        "sample {CLASSES} --method laplace --draws 2 --out run"
    ));
    let file = place.path("run/laplace/chain-000.safetensors");
    let whole = std::fs::read(&file).unwrap();
    let parts = [
        "Laplace approximation of chain 0",
        "reprior sample --config run/config.toml --out NEW",
    ];
    let refused = || {
        place
            .run("predict run --data two-moons")
            .assert_error(2, &parts)
    };
    let mut damaged = whole.clone();
    let middle = damaged.len() - 40;
    damaged[middle] ^= 1;
    std::fs::write(&file, damaged).unwrap();
    refused();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    refused();
    std::fs::remove_file(&file).unwrap();
    refused();
    std::fs::write(&file, whole).unwrap();
    place.succeed("predict run --data two-moons");
    let other = place.path("run/laplace");
    place.succeed(&format!(
        "sample {CLASSES} --method laplace --pred-type nn --draws 2 --out run --overwrite"
    ));
    assert!(!other.exists());
    place.succeed("predict run --data two-moons");
}

/// The plan counts what a fit takes in the run folder.
#[test]
fn plans_count_the_kept_fit() {
    let place = Place::new();
    for structure in [
        "kron",
        "diag",
        "full",
        "lowrank",
        "kron --subset-of-weights last-layer",
    ] {
        let method =
            format!("{CLASSES} --method laplace --draws 2 --hessian-structure {structure}");
        let bytes = |method: &str| {
            let plan = place.succeed(&format!("plan {method} --json")).json();
            plan["run_folder_bytes"].as_u64().unwrap()
        };
        let counted = bytes(&method) - bytes(&format!("{method} --pred-type nn"));
        place.succeed(&format!("sample {method} --out run --overwrite"));
        let file = std::fs::metadata(place.path("run/laplace/chain-000.safetensors")).unwrap();
        // the linearised network's modes and predictions in closed form are in the difference too
        assert!(
            file.len() <= counted,
            "{structure}: {} {counted}",
            file.len()
        );
        // of low rank as many pairs are counted as were asked for
        assert!(
            structure == "lowrank" || counted < 3 * file.len() + 20_000,
            "{structure}: {} {counted}",
            file.len()
        );
    }
}

/// Every likelihood with a curvature has Laplace approximations: counts too.
#[test]
fn counts_have_laplace_approximations() {
    let place = Place::new();
    let mut text = "x,y\n".to_owned();
    for row in 0..120 {
        let x = f64::from(row) / 40.0 - 1.5;
        text += &format!("{x},{}\n", (3.0 * x.exp()).round() + f64::from(row % 3));
    }
    place.write("counts.csv", text);
    place.succeed(
        "sample --data counts.csv --target y --likelihood poisson --network fcn:10 --epochs 200 --method laplace --draws 50 --out run",
    );
    let summary = place.summary("run");
    let nll = summary["metrics"]["nll"].as_f64().unwrap();
    assert!(nll > 1.0 && nll < 3.5, "{nll}");
    place.succeed("predict run --data counts.csv");
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
            "laplace --prior-precision validation --validation 20 --likelihood poisson",
            "--prior-precision validation needs a gaussian, categorical or bernoulli likelihood: use marglik, or a number",
        ),
        (
            "laplace --rank 5",
            "--rank belongs to laplace-diffusion and --hessian-structure lowrank: leave it out",
        ),
        (
            "laplace --diffusion-steps 5",
            "--diffusion-steps belongs to laplace-diffusion: leave it out",
        ),
        (
            "laplace --pred-type nn --link-approx probit",
            "--link-approx belongs to laplace with --pred-type glm",
        ),
        (
            "laplace-diffusion --hessian-structure diag",
            "--hessian-structure belongs to laplace: leave it out",
        ),
        (
            "laplace-diffusion --diffusion-steps 0",
            "--diffusion-steps is 0: it must be at least 1",
        ),
        (
            "laplace-diffusion --prior-precision marglik",
            "belongs to laplace: give a number, or prior",
        ),
        (
            "laplace --prior normal-inverse-gamma(1,1,0)",
            "give --prior-precision a number, or marglik",
        ),
        ("map --rank 5", "--rank belongs to laplace-diffusion"),
        ("pcn --rank 5", "belongs to minibatch methods"),
    ] {
        let batch = if arguments.starts_with("pcn") {
            "--data two-moons --likelihood categorical"
        } else if arguments.contains("--likelihood") {
            "--data two-moons"
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

/// The curvature is of the rows that train: neither of test rows nor of those that are held out.
#[test]
fn plans_count_the_rows_that_train() {
    let place = Place::new();
    let bytes = |rows: &str| {
        let plan = place.succeed(&format!(
            "plan --data two-moons {rows} --likelihood categorical --network fcn:10 --method laplace --hessian-structure full --json"
        ));
        plan.json()["curvature_bytes"].as_u64().unwrap()
    };
    // of 52 weights in single precision, through rows times classes
    let through = |jacobian: u64| jacobian * (52 * 2 * 4 + 24 * jacobian);
    assert_eq!(bytes("--train 20 --test 10"), through(40));
    assert_eq!(bytes("--train 20 --test 200"), through(40));
    assert_eq!(bytes("--train 20 --test 10 --validation 5"), through(30));
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
    assert!(refused.stderr.contains("--rotate is for images"));
}
