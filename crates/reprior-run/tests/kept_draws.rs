//! What is kept of runs whose number of draws was changed: enough, and read as it was written.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use reprior_io::run::{DrawReader, Selection};
use reprior_run::{More, Options, Predictor, resume, sample};

use crate::common::{Silent, options, settings};

fn read(run: &Path, group: &str, name: &str) -> Vec<f64> {
    let reader = DrawReader::open(run).unwrap();
    let all = reader.read::<f64>(group, name, &Selection::all());
    all.unwrap().values
}

/// The gaussian mixture of the recorded draws, each with the noise of its own draw.
fn nll(run: &Path, every: usize) -> f64 {
    let (mean, sd) = (
        read(run, "predictions", "mean"),
        read(run, "predictions", "sd"),
    );
    let noise = read(run, "posterior", "noise");
    let targets = read(run, "predictions_constant_data", "y");
    let rows = targets.len();
    let recorded = mean.len() / rows / 2;
    let of_chain = noise.len() / 2;
    let density = |row: usize, y: f64| {
        let each = (0..2 * recorded).map(|draw| {
            let at = draw * rows + row;
            let sigma = noise[draw / recorded * of_chain + draw % recorded * every];
            let variance = sd[at] * sd[at] + sigma * sigma;
            (-0.5 * (y - mean[at]).powi(2) / variance).exp()
                / (2.0 * std::f64::consts::PI * variance).sqrt()
        });
        each.sum::<f64>() / (2 * recorded) as f64
    };
    let all = targets
        .iter()
        .enumerate()
        .map(|(row, &y)| -density(row, y).ln());
    all.sum::<f64>() / rows as f64
}

#[test]
fn recorded_predictions_have_the_noise_of_their_draws() {
    let place = tempfile::tempdir().unwrap();
    let run = place.path().join("run");
    let stop = AtomicBool::new(false);
    let flags = "--data friedman --train 20 --test 30 --network fcn:4 --likelihood gaussian --noise learn --chains 2 --warmup 20 --draws 100 \
                 --thin 1 --keep-predictions 4";
    let short = options(2, &stop, &Silent);
    let made = sample(settings(flags), &run, false, &short).unwrap();
    let found = made.metrics.unwrap().nll();
    assert!((nll(&run, 25) - found).abs() < 1e-6, "{found}");
    // ten draws more, of which one is recorded: 5 of 110, every 25 still
    let longer = Options {
        more: Some(More {
            minutes: Some(1e-6),
            until: None,
        }),
        ..options(2, &stop, &Silent)
    };
    let made = resume(&run, &longer).unwrap();
    assert_eq!((made.draws, made.metrics_draws), (110, 5));
    let found = made.metrics.unwrap().nll();
    assert!((nll(&run, 25) - found).abs() < 1e-6, "{found}");
    assert!((nll(&run, 22) - found).abs() > 1e-4, "{found}");
}

#[test]
fn a_run_that_ends_at_its_first_look_has_what_others_have() {
    let place = tempfile::tempdir().unwrap();
    let run = place.path().join("run");
    let stop = AtomicBool::new(false);
    let made = |flags: &str| {
        let flags = format!(
            "--data friedman --train 20 --test 30 --network fcn:4 --noise 0.5 --chains 2 --warmup 20 {flags} --until rhat<99,ess>0.1"
        );
        let summary = sample(settings(&flags), &run, true, &options(2, &stop, &Silent)).unwrap();
        let [positions, _] = Predictor::of(run.as_path()).unwrap().draws().unwrap();
        (summary.draws, summary.metrics_draws, positions)
    };
    let (draws, predictions, positions) = made("");
    assert_eq!(draws, 250);
    assert!(predictions >= 50, "{predictions}");
    assert!(positions >= 16, "{positions}");
    let (_, predictions, _) = made("--keep-predictions 10");
    assert_eq!(predictions, 10);
}
