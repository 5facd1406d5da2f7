//! Networks with batch normalisation, trained from the command line: statistics are trained, kept, and predicted with.

use crate::common::{Place, assert_same};

/// Two convolutions, one of them in a residual block, each normalised.
const NETWORK: &str = r#"
[[layers]]
type = "convolution"
channels = 6
size = [3, 3]
stride = [2, 2]

[[layers]]
type = "batch-norm"

[[layers]]
type = "activation"
function = "relu"

[[layers]]
type = "parallel"

[[layers.branches]]

[[layers.branches]]
layers = [
    { type = "convolution", channels = 6, size = [3, 3] },
    { type = "batch-norm" },
]

[[layers]]
type = "activation"
function = "relu"

[[layers]]
type = "flatten"
"#;

const FLAGS: &str = "--data strokes --train 300 --test 100 --network net.toml --likelihood categorical --batch 50 --step-size 0.03";

fn place() -> Place {
    let place = Place::new();
    place.write("net.toml", NETWORK);
    place
}

fn accuracy(place: &Place, run: &str) -> f64 {
    place.summary(run)["metrics"]["accuracy"].as_f64().unwrap()
}

/// Most probable classes that `predict` says, and the share of them that are those of the images.
fn predicted_accuracy(place: &Place, run: &str) -> f64 {
    let finished = place.succeed(&format!("predict {run} --data strokes"));
    let said = finished.stderr.split("accuracy").nth(1).unwrap_or_default();
    let number = said.split_whitespace().next().unwrap_or_default();
    let number = number.trim_end_matches([',', ';']);
    number
        .parse()
        .unwrap_or_else(|_| panic!("{}", finished.stderr))
}

/// What was recorded on the way and what the run predicts from its folder, with statistics of each draw, are alike; and where draws are
/// not meant to be wide, good.
#[test]
fn every_training_method_trains_statistics_and_predicts_with_them() {
    let place = place();
    for (method, flags, least) in [
        ("map", "--epochs 60", 0.5),
        ("ensemble", "--epochs 60 --chains 2", 0.5),
        ("swag", "--epochs 60 --draws 4 --optimiser adam", 0.5),
        (
            "laplace",
            // of draws both times: closed forms of linearised networks say something else
            "--epochs 60 --draws 5 --hessian-structure diag --pred-type nn",
            0.0,
        ),
        (
            "laplace-diffusion",
            "--epochs 60 --draws 2 --diffusion-steps 2 --rank 5 --curvature-rows 60",
            0.0,
        ),
    ] {
        place.succeed(&format!(
            "sample {FLAGS} --method {method} {flags} --out {method}"
        ));
        let recorded = accuracy(&place, method);
        let predicted = predicted_accuracy(&place, method);
        assert!(recorded > least, "{method}: {recorded}");
        assert!(
            (predicted - recorded).abs() < 0.2,
            "{method}: {predicted} {recorded}"
        );
    }
}

/// A sampler keeps the statistics that the network has.
#[test]
fn a_sampler_keeps_statistics_as_they_are() {
    let place = place();
    let finished = place.succeed(&format!(
        "sample {FLAGS} --method sgld --epochs 2 --draws 4 --out sgld"
    ));
    assert!(
        finished.stderr.contains("keeps its statistics"),
        "{finished:?}"
    );
    assert!(!place.path("sgld/draws.zarr/positions/batch_norm").exists());
}

#[test]
fn a_run_that_is_killed_goes_on_to_the_same_bytes() {
    let place = place();
    let flags = format!("{FLAGS} --method swag --epochs 60 --draws 6");
    place.succeed(&format!("sample {flags} --out whole"));
    let mut command = format!("sample {flags} --out run --checkpoint-seconds 0.02");
    let mut kills = 0;
    for _ in 0..6 {
        let mut running = place.start(&command);
        let start = std::time::Instant::now();
        let before = place.tree("run/checkpoint");
        while !running.has_ended()
            && place.tree("run/checkpoint") == before
            && start.elapsed().as_secs() < 20
        {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        kills += u32::from(!running.has_ended());
        running.signal("-KILL");
        running.wait();
        command = "resume run --checkpoint-seconds 0.02".to_owned();
    }
    assert!(kills > 1, "{kills}");
    place.succeed("resume run");
    assert_same(
        &place.tree("run/draws.zarr"),
        &place.tree("whole/draws.zarr"),
    );
    let predict = |run: &str| {
        place
            .succeed(&format!("predict {run} --data strokes"))
            .stdout
    };
    assert_eq!(predict("run"), predict("whole"));
}

/// The network of its name from end to end, for as short as can be.
#[test]
fn resnet_small_is_trained_from_the_command_line() {
    let place = Place::new();
    let flags = "--data strokes --train 64 --test 10 --network resnet-small --likelihood categorical --batch 32";
    place.succeed(&format!(
        "sample {flags} --method map --optimiser sgd --momentum 0.9 --step-size 0.02 --weight-decay 0.0005 --parametrisation standard --epochs 2 --out map"
    ));
    assert!(accuracy(&place, "map").is_finite());
    place.succeed("predict map --data strokes");
}
