//! Runs that are killed, stopped, damaged or disturbed.
#![cfg(unix)]

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Place, SMALL, Tree, assert_same, table};

/// Long enough to be interrupted (seconds), with everything recorded that can be.
const LONG: &str = "--data friedman --train 60 --test 30 --network fcn:32,16 --warmup 15 --draws 1200 --chains 2 \
    --keep 50 --keep-predictions 300 --keep-weights 20 --projections 10";

/// Waits until the run's checkpoints have changed.
fn wait_for_checkpoint(place: &Place, run: &str, before: &Tree) {
    let start = Instant::now();
    while place.tree(&format!("{run}/checkpoint")) == *before {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "no checkpoint is written"
        );
        sleep(Duration::from_millis(5));
    }
}

fn no_checkpoint() -> Tree {
    Tree::new()
}

#[test]
fn killed_ten_times_and_resumed_gives_the_same_bytes() {
    let place = Place::new();
    let start = Instant::now();
    place.succeed(&format!("sample {LONG} --out whole"));
    let whole = start.elapsed();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut kills = 0;
    let mut command = format!("sample {LONG} --out run --checkpoint-seconds 0.05");
    for round in 0..10 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // 2 to 12 hundredths of the whole run, so that all ten fall into it on any machine
        let share = 0.02 + 0.10 * ((random >> 40) as f64 / (1_u64 << 24) as f64);
        let delay = whole.mul_f64(share);
        let before = place.tree("run/checkpoint");
        let mut running = place.start(&command);
        if round % 2 == 1 {
            // on a slow machine too the run must get on
            wait_for_checkpoint(&place, "run", &before);
        }
        sleep(delay);
        kills += u32::from(!running.has_ended());
        running.signal("-KILL");
        running.wait();
        let has_begun = place.path("run/config.toml").exists();
        if has_begun {
            command = "resume run --checkpoint-seconds 0.05".to_owned();
        }
    }
    let before = place.summary("run");
    let resumed = place.succeed("resume run");
    assert!(resumed.stdout.contains("Run folder: run"), "{resumed:?}");
    assert_same(
        &place.tree("run/draws.zarr"),
        &place.tree("whole/draws.zarr"),
    );
    assert_eq!(
        place.read("run/config.toml"),
        place.read("whole/config.toml")
    );
    assert!(
        kills >= 5,
        "the run is too short to be killed {kills} times"
    );
    assert!(before["draws"].as_u64().unwrap() > 0, "{before}");
    // what was counted survives as well
    let (run, whole) = (place.summary("run"), place.summary("whole"));
    for key in [
        "steps",
        "n_gradients",
        "acceptance_rate",
        "step_size",
        "ess.prediction.mean",
        "metrics",
    ] {
        let value = |json: &serde_json::Value| {
            key.split('.')
                .fold(json.clone(), |json, key| json[key].clone())
        };
        assert_eq!(value(&run), value(&whole), "{key}");
    }
    let predict = |run: &str| {
        place
            .succeed(&format!("predict {run} --data friedman"))
            .stdout
    };
    assert_eq!(predict("run"), predict("whole"));
}

/// Momentum, the sampler of arrival and its adaptation survive as well.
#[test]
fn killed_on_arrival_and_later_gives_the_same_bytes() {
    let place = Place::new();
    let flags = "--data friedman --train 60 --test 30 --network fcn:32 --warmup 80 --arrival 40 --thin 5 --chains 2 \
        --projections 10 --draws 400 --method langevin";
    let start = Instant::now();
    place.succeed(&format!("sample {flags} --out whole"));
    let whole = start.elapsed();
    let mut command = format!("sample {flags} --out run --checkpoint-seconds 0.01");
    for _ in 0..6 {
        let before = place.tree("run/checkpoint");
        let running = place.start(&command);
        wait_for_checkpoint(&place, "run", &before);
        sleep(whole.mul_f64(0.04));
        running.signal("-KILL");
        running.wait();
        command = "resume run --checkpoint-seconds 0.01".to_owned();
    }
    place.succeed("resume run");
    assert_same(
        &place.tree("run/draws.zarr"),
        &place.tree("whole/draws.zarr"),
    );
    let gradients = |run: &str| place.summary(run)["n_gradients"].clone();
    assert_eq!(gradients("run"), gradients("whole"));
}

#[test]
fn stopped_by_ctrl_c_and_resumed() {
    let place = Place::new();
    let whole = place.start(&format!("sample {LONG} --seed 5 --out whole"));
    let mut running = place.start(&format!(
        "sample {LONG} --seed 5 --out run --checkpoint-seconds 0.1"
    ));
    let start = Instant::now();
    let seen = loop {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "it does not get on"
        );
        // refused until the run has begun
        let summary = place.run("summary run --json");
        let draws = if summary.code == Some(0) {
            summary.json()["draws"].as_u64()
        } else {
            None
        };
        if draws.is_some_and(|draws| draws >= 3) {
            break draws.unwrap();
        }
        assert_ne!(summary.code, Some(101), "{summary:?}");
        sleep(Duration::from_millis(20));
    };
    assert!(!running.has_ended(), "the run is too short for this test");
    running.signal("-INT");
    let stopped = running.wait();
    assert_eq!(
        (stopped.code, stopped.stdout.as_str()),
        (Some(130), ""),
        "{stopped:?}"
    );
    assert!(stopped.stderr.contains("reprior resume run"), "{stopped:?}");
    let summary = place.summary("run");
    let (steps, draws) = (
        summary["steps"].as_u64().unwrap(),
        summary["draws"].as_u64().unwrap(),
    );
    assert_eq!(summary["status"], "incomplete");
    assert!(
        draws >= seen && draws < 1200 && steps >= 2 * (15 + draws),
        "{summary}"
    );
    assert!(
        !place
            .succeed("predict run --data friedman")
            .stdout
            .is_empty()
    );
    let resumed = place.succeed("resume run --threads 1");
    assert!(resumed.stdout.contains("1200 draws"), "{resumed:?}");
    assert_eq!(whole.wait().code, Some(0));
    assert_same(
        &place.tree("run/draws.zarr"),
        &place.tree("whole/draws.zarr"),
    );
}

#[test]
fn a_complete_run_says_so() {
    let place = Place::new();
    let first = place.succeed(&format!("sample {SMALL} --out run"));
    let before = place.tree("run/draws.zarr");
    let resumed = place.succeed("resume run");
    assert!(resumed.stderr.contains("complete"), "{resumed:?}");
    assert_eq!(resumed.stdout, first.stdout);
    assert_same(&before, &place.tree("run/draws.zarr"));
    assert_eq!(
        place.succeed("resume run --quiet --json").json(),
        place.summary("run")
    );
}

#[test]
fn damaged_checkpoints_are_refused() {
    let place = Place::new();
    place.succeed(&format!("sample {SMALL} --out run"));
    let mut names = fs::read_dir(place.path("run/checkpoint")).unwrap();
    let path = names.next().unwrap().unwrap().path();
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    let whole = fs::read(&path).unwrap();
    for length in [
        0,
        1,
        7,
        8,
        20,
        whole.len() / 3,
        whole.len() / 2,
        whole.len() - 1,
    ] {
        fs::write(&path, &whole[..length]).unwrap();
        for command in ["resume", "summary"] {
            let finished = place.run(&format!("{command} run"));
            let code = finished.code.unwrap();
            assert!([1, 2].contains(&code), "{length} bytes: {finished:?}");
            finished.assert_error(code, &[&name]);
        }
    }
    fs::write(&path, &whole).unwrap();
    place.succeed("resume run");
}

#[test]
fn a_run_says_its_instruction_set_and_where_it_goes_on_with_another() {
    let place = Place::new();
    let sampled = place.succeed(&format!("sample {SMALL} --out run"));
    assert!(!sampled.stderr.contains("instructions"), "{sampled:?}");
    let config = place.read("run/config.toml");
    let own = config
        .lines()
        .find(|line| line.starts_with("instructions = "))
        .unwrap();
    let told = "of abacus instructions";
    let others = config.replace(own, "instructions = \"abacus\"");
    place.write("others.toml", &others);
    let again = place.succeed("sample --config others.toml --out again");
    assert!(again.stderr.contains(told), "{again:?}");
    assert_eq!(place.read("again/config.toml"), config);
    // killed before it drew anything
    place.write("begun/config.toml", &others);
    let resumed = place.succeed("resume begun");
    assert!(resumed.stderr.contains(told), "{resumed:?}");
    assert_eq!(place.read("begun/config.toml"), others);
}

#[test]
fn damaged_or_changed_settings_are_refused() {
    let place = Place::new();
    place.succeed(&format!("sample {SMALL} --out run"));
    let config = place.read("run/config.toml");
    place.write("run/config.toml", &config[..config.len() / 2]);
    place.run("resume run").assert_error(2, &["run"]);
    place.write(
        "run/config.toml",
        config.replace("draws = 30", "draws = 40"),
    );
    place
        .run("resume run")
        .assert_error(2, &["run", "config.toml"]);
    place.write(
        "run/config.toml",
        config.replace("draws = 30", "draws = 30\ndrews = 1"),
    );
    place
        .run("resume run")
        .assert_error(2, &["config.toml", "line", "drews"]);
    place.write("run/config.toml", config);
    let data = place.read("run/data.json");
    place.write("run/data.json", &data[..data.len() / 2]);
    for command in ["resume run", "summary run", "predict run --data friedman"] {
        place
            .run(command)
            .assert_error(2, &["data.json", "damaged"]);
    }
}

#[test]
fn changed_data_are_refused() {
    let place = Place::new();
    place.write("table.csv", table(30));
    let flags = "--data table.csv --target y --network fcn:8 --warmup 10 --draws 10 --chains 2";
    place.succeed(&format!("sample {flags} --out run"));
    let before = place.tree("run");
    place.write("table.csv", table(30).replacen("0,11,0", "0,11,1", 1));
    assert!(place.read("table.csv") != table(30));
    for command in ["resume run", "predict run --data table.csv"] {
        place.run(command).assert_error(2, &["table.csv", "run"]);
    }
    fs::remove_file(place.path("table.csv")).unwrap();
    place
        .run("resume run")
        .assert_error(2, &["table.csv", "does not exist"]);
    assert!(
        place.tree("run") == before,
        "a refused command wrote something"
    );
    // the recorded draws can be summarised without the data
    assert_eq!(place.summary("run")["draws"], 10);
    place.write("table.csv", table(30));
    place.succeed("resume run");
}

#[test]
fn one_process_a_folder() {
    let place = Place::new();
    // both refusals wait a second for the lock first, on a busy machine longer: the run must not end by itself
    let endless = LONG.replace("--draws 1200", "--draws 1200000");
    assert!(endless != LONG);
    let mut running = place.start(&format!(
        "sample {endless} --out run --checkpoint-seconds 0.05"
    ));
    wait_for_checkpoint(&place, "run", &no_checkpoint());
    place
        .run("resume run")
        .assert_error(2, &["run", "another process"]);
    place
        .run(&format!("sample {SMALL} --out run --overwrite"))
        .assert_error(2, &["run", "another process"]);
    // reading disturbs nobody
    assert_eq!(place.summary("run")["status"], "incomplete");
    assert!(!running.has_ended(), "the run is too short for this test");
    running.signal("-KILL");
    running.wait();
    place.succeed(&format!("sample {SMALL} --out run --overwrite"));
    assert_eq!(place.summary("run")["draws"], 30);
}
