//! `--start RUN`: chains begin at the states that those of an earlier run ended in.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reprior_io::run::{DrawReader, Selection};
use reprior_run::{Failure, Options, resume, sample};

use crate::common::{Silent, settings};

const DATA: &str = "--data friedman --train 40 --test 5";

fn made(flags: &str, out: &Path) -> Result<(), Failure> {
    let stop = AtomicBool::new(false);
    let options = Options {
        threads: Some(1),
        checkpoint_every: Duration::from_secs(60),
        stop: &stop,
        watcher: &Silent,
        more: None,
        is_part: false,
    };
    let network = match flags.contains("--network") {
        true => "",
        false => "--network fcn:6",
    };
    // a noise that is known is not searched for
    let noise = match flags.contains("--noise") {
        true => "",
        false => "--noise 0.3",
    };
    let settings = settings(&format!("{DATA} {network} {noise} {flags}"));
    sample(settings, out, false, &options).map(|_| ())
}

/// ℓ at the recorded draws, chain after chain.
fn log_ratios(run: &Path, chains: usize) -> Vec<Vec<f64>> {
    let reader = DrawReader::open(run).unwrap();
    let read = reader.read::<f64>("sample_stats", "log_ratio", &Selection::all());
    let values = read.unwrap().values;
    values
        .chunks(values.len() / chains)
        .map(<[f64]>::to_vec)
        .collect()
}

/// A walk of steps of 10⁻⁶ stays where it begins.
const STILL: &str = "--method pcn --step-size 1e-6 --arrival 0 --warmup 1 --draws 3 --thin 1";

#[test]
fn chains_begin_where_those_of_the_run_ended() {
    let place = tempfile::tempdir().unwrap();
    let [first, second, third] = ["a", "b", "c"].map(|name| place.path().join(name));
    for coordinates in ["marginal", "repriorised", "standard"] {
        let of = format!("--coordinates {coordinates} --precision");
        made(
            &format!("{of} f64 --chains 2 --warmup 40 --draws 5 --thin 1"),
            &first,
        )
        .unwrap();
        let ended: Vec<f64> = log_ratios(&first, 2).iter().map(|chain| chain[4]).collect();
        assert!((ended[0] - ended[1]).abs() > 0.1, "{ended:?}");
        // three chains of another seed, in single precision
        let start = first.display();
        let flags = format!("{of} f32 --chains 3 --seed 9 --start {start} {STILL}");
        made(&flags, &second).unwrap();
        for (chain, began) in log_ratios(&second, 3).iter().enumerate() {
            let expected = ended[chain % 2];
            assert!(
                (began[0] - expected).abs() < 0.02,
                "{coordinates} {chain}: {} {expected}",
                began[0]
            );
        }
        let config = std::fs::read_to_string(second.join("config.toml")).unwrap();
        assert!(config.contains(&format!("start = \"{start}\"")), "{config}");
        // gone on with when the earlier run has gone
        std::fs::rename(&first, &third).unwrap();
        let stop = AtomicBool::new(false);
        let options = Options {
            threads: Some(1),
            checkpoint_every: Duration::from_secs(60),
            stop: &stop,
            watcher: &Silent,
            more: None,
            is_part: false,
        };
        resume(&second, &options).unwrap();
        for run in [&second, &third] {
            std::fs::remove_dir_all(run).unwrap();
        }
    }
}

#[test]
fn a_run_that_is_no_start_is_refused_with_a_way_out() {
    let place = tempfile::tempdir().unwrap();
    let [first, reduced, other, out] =
        ["a", "reduced", "sgld", "out"].map(|name| place.path().join(name));
    let short = "--chains 2 --warmup 20 --draws 4 --thin 1";
    made(short, &first).unwrap();
    made(&format!("{short} --input-reduction on"), &reduced).unwrap();
    made("--method sgld --epochs 3 --batch 10 --draws 2", &other).unwrap();
    let [first, reduced, other] = [&first, &reduced, &other].map(|run| run.display());
    for (flags, said) in [
        ("--start mod".to_owned(), "neither `prior` nor `mode`"),
        (format!("--start {other}"), "no chains on all data"),
        (
            format!("--start {first} --coordinates standard"),
            "--coordinates marginal, not standard",
        ),
        (
            format!("--start {first} --network fcn:7"),
            "--network fcn:6, not fcn:7",
        ),
        (
            format!("--start {first} --noise learn --noise-median 0.3"),
            "coordinates, and",
        ),
        (
            format!("--start {reduced} --input-reduction on --shuffle 3"),
            "its data are others",
        ),
        (
            format!("--start {reduced} --input-reduction on --bias-variance 0.5"),
            "another --bias-variance",
        ),
        (
            format!("--start {reduced} --input-reduction on --standardise off"),
            "another --standardise",
        ),
    ] {
        let error = made(&format!("{flags} {STILL}"), &out)
            .unwrap_err()
            .to_string();
        assert!(error.contains(said), "{flags}: {error}");
        assert!(!out.join("draws.zarr").exists(), "{flags}: {error}");
    }
    // whole inputs are the same coordinates whatever rows and prior
    made(
        &format!("--start {first} --shuffle 3 --bias-variance 0.5 {STILL}"),
        &out,
    )
    .unwrap();
}
