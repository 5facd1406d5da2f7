//! Minibatch methods: what they record, that they go on where they were, and what they refuse.
#![allow(clippy::print_stderr, reason = "a test says what it skips")]

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Place, assert_same};

const SMALL: &str = "--data friedman --train 100 --test 20 --network fcn:16 --readout-weight-variance 1 --noise 0.3 --batch 20";

/// Each method with lengths of its own, and the draws of each chain that it records.
const METHODS: [(&str, u64, u64); 12] = [
    ("sgld --epochs 40 --draws 20", 4, 20),
    (
        "sgld --preconditioner rmsprop --chains 1 --warmup 10 --draws 7 --thin 3",
        1,
        7,
    ),
    (
        "sgld --preconditioner quasi-diagonal --parametrisation standard --epochs 20 --draws 10",
        4,
        10,
    ),
    (
        "sgld --preconditioner full --labels model --chains 2 --epochs 4 --draws 2",
        2,
        2,
    ),
    (
        "sgld --preconditioner kfac --chains 2 --epochs 4 --draws 2 --precision f64",
        2,
        2,
    ),
    (
        "sgld --schedule cyclical(50,0.5) --epochs 40 --draws 10 --chains 2",
        2,
        10,
    ),
    (
        "sghmc --epochs 40 --draws 20 --prior normal-inverse-gamma(1,1,0)",
        4,
        20,
    ),
    ("sgnht --epochs 40 --draws 20 --averaging forgetting", 4, 20),
    ("map --epochs 200 --weight-decay 0.01", 1, 1),
    ("dropout --dropout-rate 0.1 --epochs 200 --draws 30", 1, 30),
    ("swag --epochs 40 --swag-rank 5", 1, 30),
    ("ensemble --epochs 200 --optimiser sgd --momentum 0.5", 5, 1),
];

#[test]
fn every_method_records_draws_that_predict_reads() {
    let place = Place::new();
    for (index, (method, chains, draws)) in METHODS.into_iter().enumerate() {
        let run = format!("run{index}");
        place.succeed(&format!(
            "sample {SMALL} --method {method} --keep 1000 --keep-weights 2 --out {run}"
        ));
        let summary = place.summary(&run);
        assert_eq!(summary["status"], "complete", "{method}");
        assert_eq!(summary["chains"], chains, "{method}");
        assert_eq!(summary["draws"], draws, "{method}");
        // of the data's standard deviation of about 5
        let rmse = summary["metrics"]["rmse"].as_f64().unwrap();
        assert!(rmse > 0.5 && rmse < 7.0, "{method}: {rmse}");
        let is_sampler = method.starts_with("sg");
        assert_eq!(
            summary["minibatch"]["metrics_of_mean"].is_object(),
            is_sampler,
            "{method}"
        );
        assert_eq!(
            summary["ess"]["weights"].is_object(),
            is_sampler,
            "{method}"
        );
        let (_, rows) = place
            .succeed(&format!("predict {run} --data friedman"))
            .table();
        assert_eq!(rows.len(), 300, "{method}");
        // the settings that were written say the same again
        place.succeed(&format!(
            "sample --config {run}/config.toml --out again --overwrite"
        ));
        assert_same(
            &place.tree("again/draws.zarr"),
            &place.tree(&format!("{run}/draws.zarr")),
        );
        assert_eq!(
            place.read("again/config.toml"),
            place.read(&format!("{run}/config.toml"))
        );
    }
}

/// Unless it is given the noise is learned, recorded with every draw and predicted with.
#[test]
fn noise_is_learned_with_the_weights() {
    let place = Place::new();
    let data = "--data friedman --train 150 --test 20 --network fcn:16 --batch 30";
    for (method, draws) in [
        ("sgld --epochs 300 --chains 2 --draws 20", 40),
        (
            "sgld --preconditioner rmsprop --epochs 300 --chains 1 --draws 20 --noise learn-each",
            20,
        ),
        ("swag --epochs 300 --draws 10", 10),
        ("ensemble --epochs 300 --chains 3", 3),
        ("laplace --epochs 300 --validation 20 --draws 10", 10),
    ] {
        let run = format!("sample {data} --method {method} --keep 1000 --out run --overwrite");
        place.succeed(&run);
        let summary = place.summary("run");
        let noise = summary["noise"].as_array().unwrap();
        assert_eq!(noise.len(), 1, "{method}");
        // the data have noise 1 and a spread of about 5
        let (mean, sd) = (noise[0]["mean"].as_f64().unwrap(), &noise[0]["sd"]);
        let sd = sd.as_f64().unwrap_or(0.0);
        assert!(mean > 0.4 && mean < 4.0, "{method}: {mean}");
        if method.starts_with("sgld") {
            // of log σ the posterior's spread is about 1/√(2·150)
            assert!(sd / mean > 0.02 && sd / mean < 0.2, "{method}: {sd}");
        }
        let is_shown = place.succeed("summary run --verbose").stdout;
        assert!(
            is_shown.contains("learned noise of"),
            "{method}: {is_shown}"
        );
        let variances = |flags: &str| {
            let predicted = place.succeed(&format!("predict run --data friedman{flags}"));
            let (header, rows) = predicted.table();
            let sd = header.iter().position(|name| name == "sd").unwrap();
            rows.iter()
                .map(|row| row[sd].parse::<f64>().unwrap().powi(2))
                .collect::<Vec<_>>()
        };
        let squares = mean * mean + sd * sd * (f64::from(draws) - 1.0) / f64::from(draws);
        for (with, without) in variances("").iter().zip(variances(" --no-noise")) {
            assert!(
                ((with - without) / squares - 1.0).abs() < 0.02,
                "{method}: {with} {without} {squares}"
            );
        }
    }
    for (flags, parts) in [
        (
            "--method sgld --likelihood poisson --noise learn",
            ["poisson", "--noise"],
        ),
        (
            "--method nngp --noise learn",
            ["known noise", "--noise auto"],
        ),
    ] {
        place
            .run(&format!("sample {data} {flags} --out no"))
            .assert_error(2, &parts);
    }
}

/// With the defaults of the preconditioners that are matrices chains get to the posterior, of real and coded targets and classes.
#[test]
fn matrices_as_preconditioners_work_with_their_defaults() {
    let place = Place::new();
    let mnist = std::path::Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/data/mnist"
    ));
    let mut cases = Vec::new();
    for preconditioner in ["full", "kfac"] {
        for data in ["strokes", "two-moons"] {
            for likelihood in ["gaussian", "categorical"] {
                cases.push(format!(
                    "{data} --train 100 --network fcn:3 --likelihood {likelihood} --preconditioner {preconditioner}"
                ));
            }
        }
        cases.push(format!(
            "friedman --train 100 --network fcn:8 --preconditioner {preconditioner}"
        ));
    }
    cases.push("strokes --train 100 --network fcn:16 --preconditioner kfac --batch 10".to_owned());
    if mnist.exists() {
        cases.push(format!(
            "{} --train 300 --network fcn:16 --likelihood categorical --preconditioner kfac",
            mnist.display()
        ));
    } else {
        eprintln!("no MNIST: its case is skipped");
    }
    for case in cases {
        // 811 weights are 0.2 s an update in full
        let updates = if case.contains("strokes") && case.contains("full") {
            30
        } else {
            400
        };
        place.succeed(&format!(
            "sample --data {case} --test 50 --method sgld --warmup {updates} --draws 10 --thin 10 --chains 1 --overwrite --out run"
        ));
        let summary = place.summary("run");
        let minibatch = &summary["minibatch"];
        let temperature = minibatch["configurational_temperature"].as_f64().unwrap();
        let nll = minibatch["train_nll"].as_f64().unwrap();
        // far below that of a draw of the prior, some hundreds; three units cannot fit ten classes
        let most = if case.contains("strokes") { 50.0 } else { 4.0 };
        assert!(
            temperature.is_finite() && nll < most,
            "{case}: {temperature} {nll}"
        );
    }
}

/// Predictions for the test rows by `predict` and by the run itself.
#[test]
fn predictions_are_those_that_were_recorded() {
    let place = Place::new();
    for (name, flags) in [
        (
            "classes",
            "--data strokes --network fcn:16 --likelihood categorical",
        ),
        (
            "codes",
            "--data strokes --network fcn:16 --likelihood gaussian --noise 0.4 --pixels unit",
        ),
        (
            "learned",
            "--data strokes --network fcn:16 --likelihood gaussian --noise learn",
        ),
        (
            "two",
            "--data two-moons --network fcn:16 --likelihood bernoulli",
        ),
        (
            "lenet",
            "--data strokes --network lenet --likelihood categorical --batch 30 --draws 2 --thin 2",
        ),
    ] {
        let length = if flags.contains("--draws") {
            ""
        } else {
            "--epochs 3 --draws 5"
        };
        place.succeed(&format!(
            "sample {flags} {length} --method sgld --chains 2 --keep 100 --out {name}"
        ));
        let summary = place.summary(name);
        let source = flags.split_whitespace().nth(1).unwrap();
        let run = place.succeed(&format!("predict {name} --data {source}"));
        let (header, rows) = run.table();
        assert!(header[0].starts_with("p_"), "{header:?}");
        let test = summary["metrics"]["confidence"].as_f64().unwrap();
        let at = header.iter().position(|cell| cell == "confidence").unwrap();
        let confidence: f64 = rows.iter().map(|row| row[at].parse::<f64>().unwrap()).sum();
        let confidence = confidence / rows.len() as f64;
        assert!(
            (confidence - test).abs() < 1e-5,
            "{name}: {confidence} {test}"
        );
    }
}

#[test]
fn killed_and_resumed_gives_the_same_bytes() {
    let place = Place::new();
    for (index, method) in [
        "sgnht --epochs 4000 --draws 40 --chains 2 --validation 20",
        "sgld --preconditioner quasi-diagonal --labels model --epochs 2000 --draws 40 --chains 1 --averaging forgetting",
        "swag --epochs 4000 --swag-rank 4 --swag-updates 8000",
        "dropout --epochs 4000 --dropout-rate 0.3",
    ]
    .into_iter()
    .enumerate()
    {
        // a noise that is learned is a part of the state
        let data = match index % 2 {
            0 => SMALL.replace("--noise 0.3", "--noise learn"),
            _ => SMALL.to_owned(),
        };
        let flags = format!("{data} --method {method} --projections 5");
        let start = Instant::now();
        place.succeed(&format!("sample {flags} --out whole{index}"));
        let whole = start.elapsed();
        let mut command = format!("sample {flags} --out run{index} --checkpoint-seconds 0.02");
        for share in [0.2, 0.3, 0.25] {
            let mut running = place.start(&command);
            sleep(whole.mul_f64(share).max(Duration::from_millis(50)));
            let _ = running.has_ended();
            running.signal("-KILL");
            running.wait();
            if place.path(&format!("run{index}/config.toml")).exists() {
                command = format!("resume run{index} --checkpoint-seconds 0.02 --threads 1");
            }
        }
        place.succeed(&format!("resume run{index}"));
        let tree = |run: &str| place.tree(&format!("{run}{index}/draws.zarr"));
        assert_same(&tree("run"), &tree("whole"));
        let summary = |run: &str| {
            let mut summary = place.summary(&format!("{run}{index}"));
            for key in ["seconds", "steps_per_second", "ess"] {
                summary[key].take();
            }
            summary
        };
        assert_eq!(summary("run"), summary("whole"));
    }
}

#[test]
fn a_step_that_is_too_large_is_named_and_what_was_drawn_is_kept() {
    let place = Place::new();
    let flags = "--data strokes --train 100 --test 10 --network fcn:8 --likelihood categorical --activation relu";
    let run = place.run(&format!(
        "sample {flags} --method sgld --step-size 1e30 --out run -q"
    ));
    assert_eq!(run.code, Some(1), "{run:?}");
    for part in [
        "chain",
        "update",
        "step size of 1000000000000000",
        "lower --step-size",
        "`run`",
    ] {
        assert!(run.stderr.contains(part), "`{part}` is missing: {run:?}");
    }
    // no checkpoint holds what is not finite
    let again = place.run("resume run -q");
    assert_eq!(again.code, Some(1), "{again:?}");
}

#[test]
fn wrong_requests_are_refused_with_a_way_out() {
    let place = Place::new();
    for (flags, parts) in [
        ("--method sgld --batch 0", ["--batch", "at least 1"]),
        (
            "--method map --epochs 9 --warmup 3",
            ["--epochs", "--warmup"],
        ),
        ("--method swag --warmup 100 --thin 2", ["swag", "--thin"]),
        (
            "--method dropout --warmup 0",
            ["dropout", "at least 1 update"],
        ),
        (
            "--method sgld --preconditioner rmsprop --labels model",
            ["--labels", "quasi-diagonal"],
        ),
        ("--method sgld --space data", ["--space", "leave it out"]),
        (
            "--method sgld --schedule cyclical(1000,0.99) --draws 10 --thin 100000000000000000",
            ["updates", "fewer"],
        ),
        (
            "--method sgld --momentum 0.5",
            ["--momentum", "--optimiser sgd"],
        ),
        (
            "--method map --momentum 0.5",
            ["--momentum", "--optimiser sgd"],
        ),
        (
            "--method map --momentum 1 --optimiser sgd",
            ["--momentum", "[0, 1)"],
        ),
        ("--method pcn --batch 5", ["--batch", "sgld"]),
        ("--method nngp --epochs 5", ["--epochs", "closed form"]),
        ("--method map --temperature 1", ["--temperature", "sgld"]),
        (
            "--method sgld --coordinates marginal",
            ["--coordinates", "leave it out"],
        ),
        ("--method sgld --damping 0.1", ["--damping", "leave it out"]),
        (
            "--method sgnht --preconditioner diagonal",
            ["thermostat", "identity"],
        ),
        (
            "--method sgld --preconditioner full --network fcn:900",
            ["GB", "quasi-diagonal"],
        ),
        ("--method sgld --draws 100000", ["100000 draws", "--epochs"]),
        (
            "--train 240 --method sgld --validation 240",
            ["--validation", "fewer"],
        ),
        (
            "--method sgld --schedule halfing(3)",
            ["halfing", "halving(UPDATES)"],
        ),
        ("--method sgld --epochs 3 --thin 4", ["--epochs", "--thin"]),
        ("--method sgld --step-size nan", ["--step-size", "positive"]),
        (
            "--method swag --swag-updates 100000",
            ["--swag-updates", "warm-up"],
        ),
        ("--method sgld --pixels unit", ["--pixels", "images"]),
        (
            "--method sgld --prior gaussian(0,1)",
            ["variance of weights", "positive"],
        ),
        (
            "--method map --weight-decay 0.1 --prior network",
            ["--prior", "--weight-decay"],
        ),
        ("--method sgld --epsilon 1", ["--epsilon", "identity"]),
        ("--method sgld --friction 0.5", ["--friction", "sghmc"]),
        ("--method sghmc --friction 2", ["friction is 2", "(0, 1]"]),
        (
            "--method sgld --temperature -1",
            ["temperature is -1", "zero or positive"],
        ),
        (
            "--method sgld --preconditioner newton",
            ["newton", "quasi-diagonal"],
        ),
        ("--method sgld --labels mine", ["mine", "data, model"]),
        (
            "--method dropout --preconditioner kfac --optimiser sgd",
            ["dropout", "kfac"],
        ),
    ] {
        let run = place.run(&format!("sample --data friedman {flags} --out run"));
        run.assert_error(2, &parts);
        assert!(!place.path("run").exists(), "{flags} left a folder");
    }
    let dropout =
        "sample --data strokes --likelihood categorical --network lenet --method dropout --out run";
    place
        .run(dropout)
        .assert_error(2, &["dropout", "fcn:WIDTH"]);
    let bench = "bench --data friedman --method sgld";
    place
        .run(bench)
        .assert_error(2, &["bench", "another --method"]);
}

/// What a file says of a preconditioner, an optimiser or a length is forgotten when a flag changes these.
#[test]
fn flags_override_a_file_with_everything_written_out() {
    let place = Place::new();
    for (name, own) in [
        (
            "quasi",
            "sgld --preconditioner quasi-diagonal --epochs 4 --draws 2 --chains 2",
        ),
        ("swag", "swag --epochs 20"),
    ] {
        place.succeed(&format!("sample {SMALL} --method {own} --out {name}"));
    }
    for (config, flags, written) in [
        ("quasi", "--weight-decay 0.01", "weight-decay = 0.01"),
        (
            "quasi",
            "--preconditioner identity",
            "preconditioner = \"identity\"",
        ),
        ("quasi", "--preconditioner kfac", "step-size = 0.05"),
        ("quasi", "--epochs 8", "thin = 10"),
        ("quasi", "--draws 3 --thin 2", "draws = 3"),
        ("quasi", "--method map --epochs 3", "warmup = 2"),
        (
            "quasi",
            "--method pcn --warmup 5 --draws 5 --thin 1",
            "method = \"pcn\"",
        ),
        ("swag", "--optimiser adam", "step-size = 0.005"),
        ("swag", "--epochs 4", "swag-updates = 5"),
    ] {
        place.succeed(&format!(
            "sample --config {config}/config.toml {flags} --out other --overwrite"
        ));
        let config = place.read("other/config.toml");
        assert!(config.contains(written), "{flags}: {config}");
    }
}

/// The temperature is that of the updates that lead to draws, and all updates are counted.
#[test]
fn warm_up_is_no_part_of_what_draws_say() {
    let place = Place::new();
    place.succeed(&format!(
        "sample {SMALL} --method sgld --warmup 30 --draws 2 --thin 1 --chains 1 --precision f64 --out long"
    ));
    place.succeed(&format!(
        "sample {SMALL} --method sgld --schedule cyclical(10,0.5) --warmup 20 --draws 4 --thin 5 --chains 1 --out cycles"
    ));
    let temperature = |run: &str| {
        let summary = place.summary(run);
        summary["minibatch"]["configurational_temperature"]
            .as_f64()
            .unwrap()
    };
    // each later one alone, from the same chain
    place.succeed(&format!(
        "sample {SMALL} --method sgld --warmup 31 --draws 1 --thin 1 --chains 1 --precision f64 --out last"
    ));
    place.succeed(&format!(
        "sample {SMALL} --method sgld --warmup 30 --draws 1 --thin 1 --chains 1 --precision f64 --out first"
    ));
    let mean = 0.5 * (temperature("first") + temperature("last"));
    assert!((temperature("long") - mean).abs() < 1e-9 * mean.abs());
    assert_eq!(place.summary("cycles")["steps"], 20 + 4 * 10);
    let plan = place
        .succeed("plan --config cycles/config.toml --json")
        .json();
    assert_eq!(plan["transitions"], 20 + 4 * 10, "{plan}");
    place.succeed(&format!(
        "sample {SMALL} --method dropout --epochs 20 --draws 5 --out dropout"
    ));
    let dropout = place.summary("dropout");
    assert_eq!(dropout["steps"], 100, "{dropout}");
    assert!(dropout["step_size"][0].as_f64().unwrap() > 0.0, "{dropout}");
}

#[test]
fn plans_count_memory_and_updates() {
    let place = Place::new();
    let flags = "--data friedman --train 95 --network fcn:100 --method sgld --batch 10 --epochs 30 --preconditioner diagonal";
    let plan = place.succeed(&format!("plan {flags} --json")).json();
    assert_eq!(plan["updates_per_epoch"], 10, "{plan}");
    assert_eq!(plan["epochs"], 30, "{plan}");
    assert_eq!(plan["transitions"], 4 * 300, "{plan}");
    assert_eq!(plan["parameters"], 11 * 100 + 101, "{plan}");
    assert!(
        place
            .succeed(&format!("plan {flags}"))
            .stdout
            .contains("updates of an epoch")
    );
}
