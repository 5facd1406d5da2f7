//! Full disks and lying files: a clear refusal or a right answer, never a panic, never a wait without end.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::{Place, SMALL, table};
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

const TINY: &str = "--data friedman --train 20 --test 6 --network fcn:4 --warmup 4 --draws 8 --chains 2 --projections 5";

/// How a command ends whose standard output is a full disk.
fn on_a_full_disk(place: &Place, arguments: &str) -> (Option<i32>, String) {
    let mut command = place.command(arguments);
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = command.stdout(full).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), stderr)
}

#[test]
fn output_that_is_lost_is_a_failure() {
    let place = Place::new();
    place.succeed(&format!("sample {TINY} --out run"));
    for arguments in [
        "summary run",
        "summary run --json",
        "predict run --data friedman",
        "plan --data friedman",
        "plan --data friedman --json",
        "plan --data friedman --method sgld",
        "plan --data friedman --method nngp",
        "report run",
        "--help",
        "sample --help",
        "--version",
        "resume run -q",
    ] {
        let (code, stderr) = on_a_full_disk(&place, arguments);
        assert_eq!(code, Some(1), "{arguments}: {stderr}");
        let last = stderr.lines().last().unwrap_or_default();
        assert!(
            last.starts_with("error: standard output could not be written"),
            "{arguments}: {stderr}"
        );
    }
    // another failure is the one that is told
    let (code, stderr) = on_a_full_disk(&place, "summary nowhere");
    assert!(
        code == Some(2) && !stderr.contains("standard output"),
        "{stderr}"
    );
}

#[test]
fn a_closed_pipe_stays_quiet() {
    let place = Place::new();
    place.succeed(&format!("sample {TINY} --out run"));
    for arguments in ["summary run", "predict run --data friedman", "--help"] {
        let mut command = place.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!stderr.contains("error"), "{arguments}: {stderr}");
    }
}

/// A kill between the making of the folder and its settings.
#[test]
fn a_folder_without_settings_can_be_sampled_into() {
    let place = Place::new();
    let methods = ["hmc", "sgld", "laplace", "nngp"];
    for (index, method) in methods.into_iter().enumerate() {
        let run = format!("run-{method}");
        // as versions before left it, and as this one does
        let mark = ["", "reprior\n"][index % 2];
        place.write(&format!("{run}/.lock"), mark);
        fs::create_dir(place.path(&format!("{run}/checkpoint"))).unwrap();
        place.write(&format!("{run}/.config.toml.99-0.tmp"), "[data]\nsou");
        place
            .run(&format!("resume {run}"))
            .assert_error(2, &[&run, "stopped before its settings were written"]);
        place
            .run(&format!("summary {run}"))
            .assert_error(2, &[&run, "not a run folder"]);
        let lengths = match method {
            "hmc" => "--warmup 4 --draws 8 --chains 2",
            "nngp" => "",
            _ => "--epochs 40 --draws 4 --chains 1",
        };
        let overwrite = ["", "--overwrite"][index / 2];
        place.succeed(&format!(
            "sample --data friedman --train 20 --test 6 --network fcn:4 --method {method} {lengths} --out {run} {overwrite}"
        ));
        assert!(!place.path(&format!("{run}/.config.toml.99-0.tmp")).exists());
        place.succeed(&format!("resume {run}"));
    }
}

/// Places of all numbers below `value`, as JSON pointers.
fn numbers(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(place.to_owned()),
        Value::Array(all) => {
            for (index, value) in all.iter().enumerate() {
                numbers(value, &format!("{place}/{index}"), found);
            }
        }
        Value::Object(all) => {
            for (key, value) in all {
                let key = key.replace('~', "~0").replace('/', "~1");
                numbers(value, &format!("{place}/{key}"), found);
            }
        }
        _ => {}
    }
}

/// Runs a command and fails if it panics, is killed, or says more than a line.
fn stays_calm(place: &Place, arguments: &str, what: &str) {
    let finished = place.run(arguments);
    match finished.code {
        Some(0) => {}
        Some(1 | 2) => {
            assert!(
                finished.stderr.starts_with("error: "),
                "{what}: {finished:?}"
            );
            assert_eq!(finished.stderr.lines().count(), 1, "{what}: {finished:?}");
        }
        _ => panic!("{what}: {finished:?}"),
    }
}

const COMMANDS: [&str; 3] = ["summary run", "predict run --data friedman", "report run"];

#[test]
fn a_wrong_number_in_the_description_of_draws_is_refused() {
    let place = Place::new();
    place.succeed(&format!("sample {TINY} --out run"));
    let file = "run/draws.zarr/zarr.json";
    let truth: Value = serde_json::from_str(&place.read(file)).unwrap();
    let root = "/consolidated_metadata/metadata";
    let mut places = Vec::new();
    numbers(truth.pointer(root).unwrap(), root, &mut places);
    let lies = [0, 1, 3, 1_000_000_000_000_u64, 1 << 61, (1 << 63) - 1];
    let mut refused = 0;
    // each number with one lie and one command; the library's test has all lies
    for (index, pointer) in places.iter().enumerate() {
        let mut document = truth.clone();
        let number = document.pointer_mut(pointer).unwrap();
        let lie = lies[index % lies.len()];
        if *number == json!(lie) {
            continue;
        }
        *number = json!(lie);
        place.write(file, document.to_string());
        let command = COMMANDS[index / lies.len() % COMMANDS.len()];
        let finished = place.run(command);
        finished.assert_error(2, &["zarr.json"]);
        refused += 1;
    }
    assert!(refused > 100, "{refused} of {}", places.len());
    place.write(file, truth.to_string());
    COMMANDS.iter().for_each(|command| {
        place.succeed(command);
    });
}

/// The same number everywhere, so that the description does not contradict itself: only the settings tell.
#[test]
fn a_description_of_another_run_is_refused() {
    let place = Place::new();
    place.succeed(&format!("sample {TINY} --out run"));
    let file = "run/draws.zarr/zarr.json";
    let truth: Value = serde_json::from_str(&place.read(file)).unwrap();
    for (dim, lie) in [
        ("coordinate", 10_u64),
        ("coordinate", 1_000_000_000_000),
        ("test_row", 5),
        ("test_row", 100_000_000),
        ("output", 2),
        ("train_row", 19),
    ] {
        let mut document = truth.clone();
        let arrays = document["consolidated_metadata"]["metadata"]
            .as_object_mut()
            .unwrap();
        for array in arrays.values_mut() {
            let names = array["dimension_names"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            for (axis, _) in names.iter().enumerate().filter(|(_, name)| *name == dim) {
                array["shape"][axis] = json!(lie);
                array["chunk_grid"]["configuration"]["chunk_shape"][axis] = json!(lie);
            }
            // a large draw has a chunk of its own
            if lie > 1_000_000 && names.len() > 2 && names.iter().any(|name| name == dim) {
                array["chunk_grid"]["configuration"]["chunk_shape"][1] = json!(1);
            }
        }
        assert!(document != truth, "{dim}");
        place.write(file, document.to_string());
        for command in COMMANDS {
            place.run(command).assert_error(2, &["zarr.json"]);
        }
    }
}

#[test]
fn a_wrong_number_in_the_description_of_the_data_is_no_panic() {
    let place = Place::new();
    place.succeed(&format!("sample {TINY} --out run"));
    let file = "run/data.json";
    let truth: Value = serde_json::from_str(&place.read(file)).unwrap();
    let mut places = Vec::new();
    numbers(&truth, "", &mut places);
    for (index, pointer) in places.iter().enumerate() {
        let lies = [json!(0), json!(1), json!(7), json!(1_000_000), json!(1e308)];
        let mut document = truth.clone();
        *document.pointer_mut(pointer).unwrap() = lies[index % lies.len()].clone();
        place.write(file, document.to_string());
        let command = COMMANDS[index / lies.len() % COMMANDS.len()];
        stays_calm(
            &place,
            command,
            &format!("{pointer} {}", lies[index % lies.len()]),
        );
    }
    for list in [
        "/output_names",
        "/column_names",
        "/standardisation/targets",
        "/standardisation/inputs/columns",
    ] {
        let mut document = truth.clone();
        let Some(all) = document.pointer_mut(list) else {
            continue;
        };
        all.as_array_mut().unwrap().pop();
        place.write(file, document.to_string());
        for command in COMMANDS {
            stays_calm(&place, command, list);
        }
    }
}

#[test]
fn a_small_file_of_more_cells_than_there_is_memory_for_is_refused() {
    let place = Place::new();
    let file = File::create(place.path("zeros.csv.gz")).unwrap();
    let mut gzip = GzEncoder::new(file, Compression::best());
    gzip.write_all(b"x,y\n").unwrap();
    let rows = b"0,0\n".repeat(1 << 18);
    (0..64).for_each(|_| gzip.write_all(&rows).unwrap());
    gzip.finish().unwrap();
    let sample = place.command("sample --data zeros.csv.gz --out run");
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 900000; exec \"$0\" \"$@\""])
        .arg(sample.get_program())
        .args(sample.get_args())
        .current_dir(place.path("."))
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("zeros.csv.gz`: it is larger than the memory that is free"),
        "{stderr}"
    );
}

#[test]
fn what_never_ends_is_not_read() {
    let place = Place::new();
    for name in ["pipe.csv", "pipe.npz", "pipe.toml"] {
        let made = Command::new("mkfifo").arg(place.path(name)).status();
        assert!(made.unwrap().success());
    }
    std::os::unix::fs::symlink("/dev/zero", place.path("zero.toml")).unwrap();
    let refuse = |arguments: &str| {
        let refused = place.run(arguments);
        refused.assert_error(2, &["not a regular file"]);
    };
    refuse("sample --data pipe.csv --out r");
    refuse("plan --data pipe.npz");
    refuse("plan --data friedman --network pipe.toml");
    refuse("plan --data friedman --network zero.toml");
    refuse("plan --data friedman --config pipe.toml");
    refuse("plan --data friedman --config /dev/zero");
    assert!(!place.path("r").exists());
    place.succeed(&format!("sample {TINY} --out run"));
    refuse("predict run --data pipe.csv");
    // standard input that is a file has an end
    place.write("settings.toml", "[data]\nsource = \"friedman\"\n");
    let mut command = place.command("plan --config /dev/stdin");
    command.stdin(File::open(place.path("settings.toml")).unwrap());
    assert_eq!(command.output().unwrap().status.code(), Some(0));
}

#[test]
fn what_cannot_be_sampled_is_refused_before_any_work() {
    let place = Place::new();
    let one_class = "a,b,c\n".to_owned() + &"1,2,A\n2,1,A\n".repeat(20);
    place.write("one.csv", one_class);
    for flags in [
        "--likelihood categorical",
        "--likelihood gaussian",
        "--method sgld --likelihood categorical",
    ] {
        place
            .run(&format!("sample --data one.csv {flags} --out r"))
            .assert_error(2, &["one.csv", "single class", "`A`"]);
    }
    for noise in ["1e-300", "1e300", "1e-13", "1e13", "0.1,1e300"] {
        let refused = place.run(&format!("sample {SMALL} --noise {noise} --out r"));
        refused.assert_error(2, &["the noise is 1e"]);
        assert!(refused.stderr.len() < 200, "{refused:?}");
    }
    let refused = place.run(&format!(
        "sample {SMALL} --noise learn --noise-median 1e-300 --out r"
    ));
    refused.assert_error(2, &["--noise-median is 1e-300"]);
    let large = table(30).replacen("y,z\n", "y,height\n", 1);
    let large = large.lines().enumerate().map(|(line, text)| match line {
        7 => format!("{},-1e160\n", text.rsplit_once(',').unwrap().0),
        _ => format!("{text}\n"),
    });
    place.write("large.csv", large.collect::<String>());
    for train in ["30", "4 --test 10"] {
        let refused = place.run(&format!(
            "sample --data large.csv --target y,height --train {train} --network fcn:4 --out r"
        ));
        refused.assert_error(2, &["`height`", "-1e160", "large.csv"]);
    }
    assert!(!place.path("r").exists());
}

/// Counts of any size are predicted in the same time; as large as this, sums over counts would not end.
#[test]
fn large_counts_are_predicted() {
    let place = Place::new();
    let mut text = "x,y\n".to_owned();
    for row in 0..40_u64 {
        text += &format!(
            "{},{}\n",
            row as f64 / 40.0,
            100_000_000_000 + row * 1_000_000_007
        );
    }
    place.write("counts.csv", text);
    place.succeed("sample --data counts.csv --likelihood poisson --network fcn:4 --warmup 10 --draws 10 --chains 1 --out run");
    place.succeed("predict run --data counts.csv --out p.csv");
    place.succeed("report run");
    assert_eq!(place.read("p.csv").lines().count(), 41);
}
