//! `--weights`: chains begin at weights from a file, and the run folder needs the file no more.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Place, assert_same};
use serde_json::{Map, Value, json};

/// A safetensors file of tensors in double precision: the length of a JSON header, the header, the numbers.
fn weights(tensors: &[(&str, &[usize], Vec<f64>)]) -> Vec<u8> {
    let mut header = Map::new();
    let mut numbers = Vec::new();
    for (name, shape, values) in tensors {
        let start = numbers.len();
        numbers.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        let entry = json!({"dtype": "F64", "shape": shape, "data_offsets": [start, numbers.len()]});
        header.insert((*name).to_owned(), entry);
    }
    let header = Value::Object(header).to_string();
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], header.as_bytes(), &numbers].concat()
}

/// Any numbers of moderate size.
fn numbers(count: usize, phase: f64) -> Vec<f64> {
    (0..count).map(|i| (phase + 1.7 * i as f64).sin()).collect()
}

/// Of Linear(3, 4), Tanh, Linear(4, 1).
fn small() -> [(&'static str, &'static [usize], Vec<f64>); 4] {
    [
        ("0.weight", &[4, 3], numbers(12, 0.1)),
        ("0.bias", &[4], numbers(4, 0.2)),
        ("2.weight", &[1, 4], numbers(4, 0.3)),
        ("2.bias", &[1], numbers(1, 0.4)),
    ]
}

const SMALL: &str =
    "--data table.csv --target y --network fcn:4 --activation tanh --noise 0.3 --precision f64";

fn place() -> Place {
    let place = Place::new();
    // two targets: one is left out
    let table = crate::common::table(60);
    let lines = table
        .lines()
        .map(|line| line.rsplit_once(',').unwrap().0.to_owned());
    place.write("table.csv", lines.collect::<Vec<_>>().join("\n"));
    place.write("small.safetensors", weights(&small()));
    place
}

/// Column `name` of what `predict` prints.
fn predicted(place: &Place, run: &str, data: &str, name: &str) -> Vec<f64> {
    let flag = if name == "mean" || name == "sd" {
        "--no-noise"
    } else {
        ""
    };
    let finished = place.succeed(&format!("predict {run} --data {data} {flag}"));
    let (header, rows) = finished.table();
    let at = header.iter().position(|cell| cell == name).unwrap();
    rows.iter().map(|row| row[at].parse().unwrap()).collect()
}

/// What the network of `small` predicts, by hand, in the table's own units, as data.json says how to standardise.
fn by_hand(place: &Place, run: &str) -> Vec<f64> {
    let description: Value =
        serde_json::from_str(&place.read(&format!("{run}/data.json"))).unwrap();
    let number = |value: &Value| value.as_f64().unwrap();
    let map = |value: &Value| (number(&value["mean"]), number(&value["scale"]));
    let scaling = &description["standardisation"];
    let inputs = scaling["inputs"]["columns"].as_array().unwrap();
    let (target_mean, target_scale) = map(&scaling["targets"][0]);
    let [weight, bias, readout, last] = small().map(|(_, _, values)| values);
    let row = |line: &str| -> f64 {
        let cells = line.split(',').map(|cell| cell.parse::<f64>().unwrap());
        let x: Vec<f64> = cells
            .zip(inputs)
            .map(|(cell, column)| (cell - map(column).0) / map(column).1)
            .collect();
        let hidden = |unit: usize| {
            let sum: f64 = (0..3).map(|i| weight[3 * unit + i] * x[i]).sum();
            (sum + bias[unit]).tanh()
        };
        let output: f64 = (0..4).map(|unit| readout[unit] * hidden(unit)).sum();
        target_mean + target_scale * (output + last[0])
    };
    place.read("table.csv").lines().skip(1).map(row).collect()
}

#[track_caller]
fn assert_near(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < tolerance, "{found} {expected}");
    }
}

#[test]
fn every_chain_begins_at_the_weights() {
    let place = place();
    for (index, (method, lengths)) in [
        ("map", "--warmup 1 --draws 1"),
        ("map --parametrisation standard", "--warmup 1 --draws 1"),
        ("swag", "--warmup 4 --draws 2 --swag-updates 4"),
        ("sgld --temperature 0", "--warmup 1 --draws 2 --thin 1"),
        ("sghmc --temperature 0", "--warmup 1 --draws 2 --thin 1"),
    ]
    .into_iter()
    .enumerate()
    {
        let run = format!("run{index}");
        // so short a way that it does not show
        place.succeed(&format!(
            "sample {SMALL} --method {method} {lengths} --chains 2 --step-size 1e-12 --weights small.safetensors --keep 9 --out {run}"
        ));
        let expected = by_hand(&place, &run);
        let mean = predicted(&place, &run, "table.csv", "mean");
        assert_near(&mean, &expected, 1e-6);
        // all chains and draws alike
        let spread = predicted(&place, &run, "table.csv", "sd");
        assert_near(&spread, &vec![0.0; expected.len()], 1e-5);
    }
}

/// A walk of steps of 10⁻⁶ stays where it begins.
const STILL: &str =
    "--method pcn --step-size 1e-6 --arrival 0 --warmup 1 --draws 2 --thin 1 --chains 2 --keep 2";

#[test]
fn chains_on_all_data_start_at_the_weights() {
    let place = place();
    let start = "--start small.safetensors";
    let run = |flags: &str, out: &str| {
        place.succeed(&format!("sample {SMALL} {flags} {STILL} --out {out}"));
    };
    // with a Gaussian likelihood the readout is integrated out in predictions: with another one they are of the file's
    let whole = format!("{start} --likelihood student-t --coordinates standard");
    run(&whole, "standard");
    let expected = by_hand(&place, "standard");
    let mean = predicted(&place, "standard", "table.csv", "mean");
    assert_near(&mean, &expected, 1e-4);
    // the data's own units, in which the network is another function
    run(&format!("{whole} --standardise off"), "raw");
    let expected = by_hand(&place, "raw");
    assert!((mean[0] - expected[0]).abs() > 0.01);
    let raw = predicted(&place, "raw", "table.csv", "mean");
    assert_near(&raw, &expected, 1e-4);
    // the readout at its mean given the features, whichever way that is said, of all inputs or of reduced ones
    let mut readout_means = Vec::new();
    for (index, flags) in [
        "--coordinates marginal --input-reduction off",
        "--coordinates marginal --input-reduction on",
        "--coordinates repriorised",
        "--coordinates standard",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("given{index}");
        run(&format!("{start} {flags}"), &name);
        readout_means.push(predicted(&place, &name, "table.csv", "mean"));
    }
    // which is another function than the file's
    assert!((readout_means[0][0] - mean[0]).abs() > 0.01);
    for other in &readout_means[1..] {
        assert_near(other, &readout_means[0], 1e-4);
    }
}

/// File k of a folder is chain k's, and the first one again where there are fewer.
#[test]
fn chains_start_at_the_weights_of_a_folder() {
    let place = place();
    let mut other = small();
    other[2].2 = numbers(4, 2.3);
    for (name, tensors) in [("b", small()), ("a", other), ("c", small())] {
        place.write(&format!("nets/{name}.safetensors"), weights(&tensors));
    }
    place.write("nets/readme.txt", "not one of them");
    place.succeed(&format!(
        "sample {SMALL} --likelihood student-t --coordinates standard --start nets {} --out run",
        STILL.replace("--chains 2", "--chains 4")
    ));
    let summary: Value = serde_json::from_str(&place.read("run/summary.json")).unwrap();
    assert_eq!(summary["chains"], 4);
    // two chains of four are of each function
    place.succeed(&format!(
        "sample {SMALL} --likelihood student-t --coordinates standard --start nets/a.safetensors {STILL} --out first"
    ));
    let means = |run: &str| predicted(&place, run, "table.csv", "mean");
    let (all, first, same) = (means("run"), means("first"), by_hand(&place, "run"));
    for ((all, first), same) in all.iter().zip(first).zip(same) {
        assert!((all - 0.5 * (first + same)).abs() < 1e-4);
    }
}

#[test]
fn starts_that_are_none_are_refused() {
    let place = place();
    place.write("wide.safetensors", weights(&small()));
    for (flags, said) in [
        ("--start none.safetensors", ".safetensors file"),
        (
            "--start wide.safetensors --coordinates tangent",
            "--coordinates marginal",
        ),
        (
            "--start wide.safetensors --scales learn",
            "leave --scales out",
        ),
    ] {
        place
            .run(&format!("sample {SMALL} {flags} --out run"))
            .assert_error(2, &[said]);
    }
    // with the tensors of both, line by line
    let wider = SMALL.replace("fcn:4", "fcn:5");
    let refused = place.run(&format!(
        "sample {wider} --start wide.safetensors --out run"
    ));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("layer 1 (dense) needs 5×3"));
    // the copy that a run has kept
    place.succeed(&format!(
        "sample {SMALL} --method map --warmup 1 --draws 1 --weights wide.safetensors --out made"
    ));
    place
        .run(&format!(
            "sample {SMALL} --start made/weights.safetensors --out made --overwrite"
        ))
        .assert_error(2, &["choose another --out"]);
    place
        .run("sample --data strokes --train 20 --pixels unit --standardise off --out run")
        .assert_error(2, &["leave one of the two out"]);
}

/// A scale for each input would make another function of the weights; scales of the layers do not.
#[test]
fn scales_of_inputs_are_refused_under_a_network_that_is_given() {
    let place = place();
    place.succeed(&format!(
        "sample {SMALL} --scales evidence --warmup 5 --draws 5 --chains 2 --out scaled"
    ));
    for (flags, said) in [
        (
            "--scales evidence --start small.safetensors",
            "the network of --start was not trained on",
        ),
        (
            "--scales evidence --method sgld --weights small.safetensors",
            "the network of --weights was not trained on",
        ),
        (
            "--scales evidence --method laplace --weights small.safetensors",
            "the network of --weights was not trained on",
        ),
    ] {
        let run = place.run(&format!("sample {SMALL} {flags} --out run"));
        run.assert_error(2, &["--scales evidence", said, "leave one of the two out"]);
        assert!(!place.path("run").exists(), "{flags}");
    }
    place
        .run("sample --config scaled/config.toml --start small.safetensors --out run")
        .assert_error(2, &["input-scales", "the network of --start"]);
    // an earlier run has its own states
    place.succeed(&format!(
        "sample {SMALL} --scales evidence --warmup 5 --draws 5 --chains 2 --start scaled --out next"
    ));
}

/// The likelihood is of all rows, however few the curvature is of.
#[test]
fn the_evidence_has_the_likelihood_of_all_rows() {
    let place = place();
    let fit = |flags: &str| {
        place.succeed(&format!(
            "sample {SMALL} --method laplace --weights small.safetensors --draws 2 {flags} --out run --overwrite"
        ));
        place.summary("run")["minibatch"]["laplace"][0].clone()
    };
    for structure in ["full", "kron", "full --prior-precision marglik"] {
        let [all, some] = ["", "--curvature-rows 20"]
            .map(|rows| fit(&format!("--hessian-structure {structure} {rows}")));
        let of = |fit: &Value, name: &str| fit[name].as_f64().unwrap();
        let [one, other] = [&all, &some].map(|fit| of(fit, "log_likelihood"));
        assert!(
            (one - other).abs() < 1e-9 * one.abs(),
            "{structure}: {one} {other}"
        );
        let [one, other] = [&all, &some].map(|fit| of(fit, "log_marginal_likelihood"));
        // the curvature is another
        assert!(one != other, "{structure}");
    }
}

/// With statistics and without, the same function: γ(h − m)/√(v + ε) + β = γ'h/√(1 + ε) + β' with γ' = γ√((1 + ε)/(v + ε)) and
/// β' = β − γm/√(v + ε). Langevin dynamics keep the file's.
#[test]
fn statistics_come_with_the_weights_to_whatever_opens_the_run() {
    let place = Place::new();
    let network = r#"layers = [
        { type = "convolution", channels = 2, size = [3, 3], stride = [2, 2], scale = { weight = 1.0, bias = 0.0 } },
        { type = "batch-norm" },
        { type = "activation", function = "relu" },
        { type = "global-average-pool" },
    ]"#;
    place.write("net.toml", network);
    place.succeed("sample --data strokes --train 60 --test 30 --network fcn:2 --method map --epochs 1 --draws 1 --likelihood categorical --out first");
    let first = place.succeed("predict first --data strokes");
    let classes = first.table().0.len() - 3;
    let (scale, shift) = ([0.8, -1.3], [0.3, 0.9]);
    let (mean, variance) = ([0.4, -0.7], [0.3, 2.5]);
    let file = |scale: [f64; 2], shift: [f64; 2], mean: [f64; 2], variance: [f64; 2]| {
        weights(&[
            ("0.weight", &[2, 1, 3, 3], numbers(18, 1.0)),
            ("1.weight", &[2], scale.to_vec()),
            ("1.bias", &[2], shift.to_vec()),
            ("1.running_mean", &[2], mean.to_vec()),
            ("1.running_var", &[2], variance.to_vec()),
            ("5.weight", &[classes, 2], numbers(2 * classes, 2.0)),
            ("5.bias", &[classes], numbers(classes, 3.0)),
        ])
    };
    place.write("with.safetensors", file(scale, shift, mean, variance));
    let slope = |c: usize| scale[c] / (variance[c] + 1e-5).sqrt();
    let folded = [0, 1].map(|c| slope(c) * 1.00001_f64.sqrt());
    let moved = [0, 1].map(|c| shift[c] - slope(c) * mean[c]);
    place.write(
        "folded.safetensors",
        file(folded, moved, [0.0; 2], [1.0; 2]),
    );
    let confidence = |name: &str| {
        place.succeed(&format!(
            "sample --data strokes --train 60 --test 30 --network net.toml --likelihood categorical --precision f64 --method sgld \
             --warmup 1 --draws 1 --step-size 1e-24 --keep 1 --weights {name}.safetensors --out {name}"
        ));
        let all = predicted(&place, name, "strokes", "confidence");
        let of_summary = place.summary(name)["metrics"]["confidence"].as_f64();
        (all, of_summary.unwrap())
    };
    let (all, of_summary) = confidence("with");
    let (all_folded, of_folded) = confidence("folded");
    assert_near(&all, &all_folded, 1e-8);
    assert_near(&[of_summary], &[of_folded], 1e-8);
    assert!(all.iter().any(|p| (p - all[0]).abs() > 1e-3), "{all:?}");
}

#[test]
fn the_run_folder_needs_the_file_no_more() {
    let place = place();
    let flags = format!(
        "sample {SMALL} --method sgld --chains 2 --batch 20 --epochs 4000 --draws 20 --keep 5 --weights small.safetensors --checkpoint-seconds 0.02"
    );
    let start = Instant::now();
    place.succeed(&format!("{flags} --out whole"));
    let whole = start.elapsed();
    let running = place.start(&format!("{flags} --out run"));
    sleep(whole.mul_f64(0.4).max(Duration::from_millis(50)));
    running.signal("-KILL");
    running.wait();
    std::fs::remove_file(place.path("small.safetensors")).unwrap();
    assert!(place.path("run/config.toml").exists());
    std::fs::rename(place.path("run"), place.path("moved")).unwrap();
    place.succeed("resume moved");
    assert_same(
        &place.tree("moved/draws.zarr"),
        &place.tree("whole/draws.zarr"),
    );
    let mean = |run: &str| predicted(&place, run, "table.csv", "mean");
    assert_eq!(mean("moved"), mean("whole"));
    // the same settings in another folder, and in place of themselves
    place.succeed("sample --config whole/config.toml --out again");
    place.succeed("sample --config again/config.toml --out again --overwrite");
    for run in ["moved", "again"] {
        let own = place.tree(run);
        assert_eq!(
            own["weights.safetensors".as_ref() as &std::path::Path],
            weights(&small())
        );
        assert_eq!(
            place.read(&format!("{run}/config.toml")),
            place.read("whole/config.toml")
        );
    }
    assert_same(
        &place.tree("again/draws.zarr"),
        &place.tree("whole/draws.zarr"),
    );
    // an earlier run's weights do not stay
    place.succeed("sample --data friedman --train 40 --network fcn:4 --method map --epochs 1 --draws 1 --out again --overwrite");
    assert!(!place.path("again/weights.safetensors").exists());
    std::fs::remove_file(place.path("moved/weights.safetensors")).unwrap();
    let refused = place.run("predict moved --data table.csv");
    refused.assert_error(2, &["moved/weights.safetensors", "cannot be read"]);
}

#[test]
fn what_cannot_be_begun_at_is_refused_before_a_folder_is_made() {
    let place = place();
    let whole = weights(&small());
    place.write("cut.safetensors", &whole[..whole.len() - 1]);
    let mut large = small();
    large[3].2[0] = 1e200;
    place.write("large.safetensors", weights(&large));
    for (flags, parts) in [
        (
            "--method map --weights none.safetensors",
            ["none.safetensors", "cannot be read"],
        ),
        (
            "--method map --weights cut.safetensors",
            ["cut.safetensors", "not a whole safetensors file"],
        ),
        (
            "--method map --weights large.safetensors --precision f32",
            ["large.safetensors", "--precision f64"],
        ),
        (
            "--method ensemble --weights small.safetensors",
            ["--weights", "ensemble"],
        ),
        (
            "--method hmc --weights small.safetensors",
            ["--weights", "map"],
        ),
        (
            "--method nngp --weights small.safetensors",
            ["--weights", "leave it out"],
        ),
    ] {
        let flags = format!(
            "{} {flags} --out run",
            SMALL.replace(" --precision f64", "")
        );
        place
            .run(&format!("sample {flags}"))
            .assert_error(2, &parts);
        assert!(!place.path("run").exists(), "{flags}");
    }
    let run = place.run("sample --data table.csv --network fcn:5,4 --method sgld --weights small.safetensors --out run");
    assert_eq!(run.code, Some(2), "{run:?}");
    for part in [
        "error: `small.safetensors` does not fit the network: 0.weight is 4×3, layer 1 (dense) needs 5×3",
        "\nthe file has: 0.weight 4×3, 0.bias 4, 2.weight 1×4, 2.bias 1\n",
        "\nthe network needs: layer 1 (dense): weight 5×3, bias 5; layer 3 (dense): weight 4×5, bias 4; readout: weight 1×4, bias 1\n",
    ] {
        assert!(run.stderr.contains(part), "`{part}` is missing: {run:?}");
    }
    assert!(!place.path("run").exists());
    let run =
        place.run("plan --data table.csv --network fcn:4 --method map --weights none.safetensors");
    run.assert_error(2, &["none.safetensors"]);
}
