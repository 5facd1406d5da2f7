//! Chains by their numbers, runs that are tried again, and runs that are put together.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{Place, Tree, assert_same};

const DATA: &str = "--data friedman --train 40 --test 20 --network fcn:16";
/// What is kept, by numbers: --keep-mb is for each run.
const KEPT: &str =
    "--keep 5 --keep-predictions 6 --keep-log-likelihood 10 --keep-weights 2 --projections 3";

/// The families of methods, with lengths.
const METHODS: [(&str, &str); 8] = [
    ("hmc-infinite", "--warmup 20 --draws 30"),
    ("pcn", "--warmup 30 --draws 30 --thin 2 --start mode"),
    (
        "mams",
        "--warmup 20 --draws 12 --replicas 2 --coordinates standard",
    ),
    ("smc", "--draws 12 --thin 1"),
    ("sgld", "--epochs 20 --draws 10"),
    ("swag", "--epochs 20 --draws 10"),
    (
        "laplace",
        "--epochs 20 --draws 10 --hessian-structure kron --pred-type glm",
    ),
    (
        "laplace-diffusion",
        "--epochs 20 --draws 6 --rank 10 --diffusion-steps 4",
    ),
];

/// What of a run does not hang on the clock.
fn lasting(place: &Place, run: &str) -> Tree {
    let mut tree = place.tree(run);
    let is_timed = |path: &Path| {
        path.starts_with("checkpoint") || path.ends_with("summary.json") || path.ends_with(".lock")
    };
    tree.retain(|path, _| !is_timed(path));
    tree
}

/// Waits for a file; dropping what makes it kills it.
fn wait_for(path: &Path) {
    let start = Instant::now();
    while !path.exists() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "no {}",
            path.display()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What there is to know of data hangs on how they were asked for; the data do not.
#[test]
fn runs_of_settings_that_were_written_out_are_merged() {
    let place = Place::new();
    let rows: String = (0..40)
        .map(|row| format!("{},{}\n", row % 7, u8::from(row % 3 == 0)))
        .collect();
    place.write("t.csv", format!("x,y\n{rows}"));
    place.succeed(
        "sample --data t.csv --target y --train 30 --network fcn:8 --warmup 5 --draws 6 --chains 1 --quiet --out a",
    );
    place.succeed("sample --config a/config.toml --first-chain 1 --quiet --out b");
    place.succeed("merge a b --out all");
    assert!(place.succeed("summary all").stdout.contains("2 chains"));
    // other data are refused as before
    place.write("t.csv", format!("x,y\n{}", rows.replace("6,", "5,")));
    place.succeed("sample --config a/config.toml --first-chain 2 --quiet --out c");
    place
        .run("merge a c --allow-gaps --out others")
        .assert_error(2, &["they were made with other data"]);
}

#[test]
fn merged_runs_are_one_run_byte_for_byte() {
    let place = Place::new();
    for (method, lengths) in METHODS {
        let sample = format!("sample {DATA} {KEPT} --method {method} {lengths} --seed 4 --quiet");
        let name = |part: &str| format!("{method}-{part}");
        let [whole, first, last, merged] = ["whole", "first", "last", "merged"].map(name);
        place.succeed(&format!("{sample} --chains 3 --out {whole}"));
        place.succeed(&format!("{sample} --chains 2 --out {first}"));
        place.succeed(&format!("{sample} --chains 1 --first-chain 2 --out {last}"));
        // in any order
        place.succeed(&format!("merge {last} {first} --out {merged}"));
        assert_same(&lasting(&place, &whole), &lasting(&place, &merged));
        let [own, other] = [&whole, &merged].map(|run| {
            let mut summary = place.summary(run);
            let timed = |name: &str| name.contains("second");
            summary
                .as_object_mut()
                .unwrap()
                .retain(|key, _| !timed(key));
            summary
        });
        let numbers = ["draws", "chains", "rhat_max", "metrics", "loo", "verdict"];
        for number in numbers {
            assert_eq!(own[number], other[number], "{method}: {number}");
        }
        place.succeed(&format!(
            "predict {merged} --data friedman --out {merged}.csv"
        ));
        place.succeed(&format!(
            "predict {whole} --data friedman --out {whole}.csv"
        ));
        assert_eq!(
            place.read(&format!("{merged}.csv")),
            place.read(&format!("{whole}.csv"))
        );
    }
}

#[test]
fn a_merged_run_goes_on() {
    let place = Place::new();
    let sample = format!("sample {DATA} --warmup 20 --draws 30 --quiet");
    for first in 0..3 {
        place.succeed(&format!(
            "{sample} --chains 1 --first-chain {first} --out run-{first}"
        ));
    }
    place.succeed("merge run-0 run-1 run-2 --out all");
    let labels = |run: &str| {
        let bytes = std::fs::read(place.path(&format!("{run}/draws.zarr/posterior/chain/c.0")));
        let bytes = bytes.unwrap();
        let (labels, _) = bytes.as_chunks::<8>();
        labels
            .iter()
            .map(|&own| i64::from_le_bytes(own))
            .collect::<Vec<_>>()
    };
    assert_eq!(labels("run-2"), [2]);
    assert_eq!(labels("all"), [0, 1, 2]);
    place.succeed("resume all --minutes 0.002 --quiet");
    assert!(place.summary("all")["draws"].as_u64() > Some(30));
    // what its config.toml says is what it is
    place.succeed("merge run-2 run-1 --out later");
    assert!(place.read("later/config.toml").contains("first-chain = 1"));
    place.succeed("sample --config later/config.toml --out again --quiet");
    assert_same(&lasting(&place, "later"), &lasting(&place, "again"));
    // a chain that failed is left out, and the others stay who they are
    place
        .run("merge run-0 run-2 --out gap")
        .assert_error(2, &["no run has chain 1", "--allow-gaps"]);
    place.succeed("merge run-0 run-2 --out gap --allow-gaps");
    assert_eq!(labels("gap"), [0, 2]);
    assert!(
        place
            .read("gap/config.toml")
            .contains("chain-numbers = [0, 2]")
    );
    place.succeed("sample --config gap/config.toml --out gap-again --quiet");
    assert_same(&lasting(&place, "gap"), &lasting(&place, "gap-again"));
}

#[test]
fn runs_that_do_not_go_together_are_refused() {
    let place = Place::new();
    let sample = format!("sample {DATA} --warmup 5 --draws 10 --chains 1 --quiet");
    place.succeed(&format!("{sample} --out one"));
    for (name, flags) in [
        ("seed", "--seed 2"),
        ("noise", "--noise 0.2"),
        ("same", ""),
        ("data", "--standardise off"),
    ] {
        place.succeed(&format!("{sample} --first-chain 1 {flags} --out {name}"));
    }
    place.succeed(&format!("{sample} --out twin"));
    place.succeed(&format!("sample {DATA} --method nngp --out nngp"));
    for (runs, parts) in [
        ("one seed", &["`seed` and `one`", "seed is 2, not 0"][..]),
        ("one noise", &["noise is 0.2"]),
        ("one data", &["standardise is off"]),
        (
            "one twin",
            &["`one` and `twin` both have chain 0", "--allow-overlaps"],
        ),
        ("one one", &["named twice"]),
        ("one nngp", &["nngp, which has no chains"]),
        ("one nothing", &["nothing"]),
    ] {
        place
            .run(&format!("merge {runs} --out merged"))
            .assert_error(2, parts);
        assert!(!place.path("merged").exists(), "{runs}");
    }
    place.succeed("merge one twin same --out merged --allow-overlaps");
    place
        .run("merge one same --out merged")
        .assert_error(2, &["`merged` holds a run already"]);
    place
        .run("merge one same --out one --overwrite")
        .assert_error(2, &["--out one is where the run `one` is"]);
    place.succeed("merge one same --out merged --overwrite");
    // one whose chains have not come to their end
    let going = place.start(&format!(
        "sample {DATA} --draws 1000000 --chains 1 --first-chain 2 --checkpoint-seconds 0 --out going"
    ));
    wait_for(&place.path("going/checkpoint/chain-000.safetensors"));
    place
        .run("merge one same going --out never")
        .assert_error(2, &["going"]);
    drop(going);
    place.run("merge one same going --out never").assert_error(
        2,
        &["`going` has not come to its end", "reprior resume going"],
    );
}

#[test]
fn a_request_that_is_made_again_goes_on() {
    let place = Place::new();
    let sample = format!("sample {DATA} --warmup 20 --draws 4000 --thin 1 --chains 1 --or-resume");
    // absent: it begins; killed: it goes on; complete: nothing is left to do
    let going = place.start(&format!("{sample} --checkpoint-seconds 0.02 --out run"));
    wait_for(&place.path("run/checkpoint/chain-000.safetensors"));
    drop(going);
    let kept = std::fs::metadata(place.path("run/checkpoint/chain-000.safetensors")).unwrap();
    place.succeed(&format!("{sample} --quiet --out run"));
    assert!(kept.len() > 0);
    place.succeed(&format!("{sample} --quiet --out whole"));
    assert_same(&lasting(&place, "run"), &lasting(&place, "whole"));
    let before = lasting(&place, "run");
    let again = place.succeed(&format!("{sample} --out run"));
    assert!(again.stderr.contains("This run is complete"), "{again:?}");
    assert_same(&before, &lasting(&place, "run"));
    // another request is not taken for this one
    for (flags, parts) in [
        (
            "--seed 1",
            &["`run` holds another run", "seed is 0, not 1"][..],
        ),
        ("--noise 0.3", &["noise is learn, not 0.3"]),
        ("--first-chain 1", &["first-chain is not given, not 1"]),
        ("--keep 3", &["keep is"]),
    ] {
        place
            .run(&format!("{sample} {flags} --out run"))
            .assert_error(2, parts);
    }
    // against the clock, lengths are what they turned out to be
    let timed = format!("sample {DATA} --minutes 0.02 --or-resume --quiet --out timed");
    place.succeed(&timed);
    let before = lasting(&place, "timed");
    place.succeed(&timed);
    assert_same(&before, &lasting(&place, "timed"));
    place
        .run(&format!("{sample} --overwrite --out run"))
        .assert_error(2, &["--overwrite", "--or-resume"]);
}

#[test]
fn numbers_that_no_chain_has_are_refused() {
    let place = Place::new();
    let sample = format!("sample {DATA} --warmup 2 --draws 2");
    place
        .run(&format!("{sample} --first-chain 9999999999"))
        .assert_error(2, &["--first-chain", "1048576"]);
    place
        .run(&format!("sample {DATA} --method nngp --first-chain 3"))
        .assert_error(2, &["--first-chain", "nngp"]);
    place
        .run(&format!("{sample} --chains 99999999999"))
        .assert_error(2, &["chains"]);
    place.succeed(&format!("{sample} --first-chain 0 --chains 2 --out run"));
    let config = place.read("run/config.toml");
    assert!(!config.contains("first-chain"), "{config}");
    let listed = config.replace("chains = 2", "chains = 2\nchain-numbers = [3, 1]");
    place.write("listed.toml", listed);
    place
        .run("sample --config listed.toml --out listed")
        .assert_error(2, &["chain-numbers must rise"]);
}
