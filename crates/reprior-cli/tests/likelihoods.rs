//! Every likelihood, learned noise and the regulariser from end to end, and what is refused of them.

use crate::common::{Place, assert_same};

const SHORT: &str = "--network fcn:12 --warmup 20 --draws 30 --chains 2 --quiet";

/// Counts that grow with x, and a class that changes with it; 60 rows.
fn counts_and_classes(place: &Place) {
    let (mut counts, mut classes) = (String::from("x,count\n"), String::from("x,kind\n"));
    for i in 0..60 {
        let x = f64::from(i % 20) / 10.0 - 1.0;
        let count = (3.0 * (1.2 * x).exp()).round() + f64::from(i % 3);
        counts += &format!("{x},{count}\n");
        classes += &format!(
            "{x},{}\n",
            if x + f64::from(i % 4) * 0.1 > 0.2 {
                "warm"
            } else {
                "cold"
            }
        );
    }
    place.write("counts.csv", counts);
    place.write("classes.csv", classes);
}

fn values(rows: &[Vec<String>], column: usize) -> Vec<f64> {
    rows.iter()
        .map(|row| row[column].parse().unwrap())
        .collect()
}

/// A row so far out that the other class has a probability which no number can hold, and belongs to that class.
#[test]
fn probabilities_that_underflow_have_a_finite_nll() {
    let place = Place::new();
    let mut rows = String::from("x,kind\n");
    for i in 0..40 {
        let x = f64::from(i % 20) / 10.0 - 0.95;
        rows += &format!("{x},{}\n", if x > 0.0 { "warm" } else { "cold" });
    }
    rows += "20000,cold\n-0.5,cold\n";
    place.write("far.csv", rows);
    for flags in [
        "--likelihood bernoulli --method map --epochs 300",
        "--likelihood categorical --method map --epochs 300",
        "--likelihood categorical --bias-variance 0.01 --readout-weight-variance 1 --warmup 20 --draws 10 --chains 2",
    ] {
        place.succeed(&format!(
            "sample --data far.csv --train 40 --test 2 --network fcn:12 --activation relu {flags} --quiet --overwrite --out run"
        ));
        let metrics = place.summary("run")["metrics"].clone();
        let nll = metrics["nll"].as_f64();
        // half of −log p of the far row
        assert!(nll.is_some_and(|nll| nll > 400.0), "{flags}: {metrics}");
    }
    // codes far from what was predicted, in units of the noise
    place.succeed(
        "sample --data strokes --train 300 --test 100 --method map --likelihood gaussian --network fcn:64 --epochs 100 \
         --noise 0.05 --quiet --out codes",
    );
    let nll = place.summary("codes")["metrics"]["nll"].as_f64();
    assert!(nll.is_some_and(|nll| nll > 100.0), "{nll:?}");
}

/// Double precision where the noise needs it, and only there.
#[test]
fn precision_follows_the_noise() {
    let place = Place::new();
    let precision = |flags: &str| {
        let finished = place.succeed(&format!(
            "sample --data friedman --train 30 --test 5 --network fcn:6 --warmup 4 --draws 4 --chains 1 {flags} --overwrite --out run"
        ));
        let config = place.read("run/config.toml");
        let line = config.lines().find(|line| line.starts_with("precision"));
        (
            line.unwrap().to_owned(),
            finished.stderr.contains("--precision f64"),
        )
    };
    assert_eq!(precision(""), ("precision = \"f32\"".to_owned(), false));
    for small in ["--noise 0.002", "--noise 0.02 --readout-bias-variance 23"] {
        let chosen = precision(small);
        assert_eq!(chosen, ("precision = \"f64\"".to_owned(), true), "{small}");
        let fixed = precision(&format!("{small} --precision f32"));
        assert_eq!(fixed, ("precision = \"f32\"".to_owned(), false));
    }
}

/// Samples, and predicts with what was sampled; the metrics are those of the same test rows.
fn sample_and_predict(
    place: &Place,
    flags: &str,
    data: &str,
) -> (serde_json::Value, Vec<String>, Vec<Vec<String>>) {
    place.succeed(&format!(
        "sample --data {data} {flags} {SHORT} --keep 30 --overwrite --out run"
    ));
    let (header, rows) = place.succeed(&format!("predict run --data {data}")).table();
    (place.summary("run"), header, rows)
}

#[test]
fn counts() {
    let place = Place::new();
    counts_and_classes(&place);
    let (summary, header, rows) = sample_and_predict(
        &place,
        "--likelihood poisson --train 40 --test 20",
        "counts.csv",
    );
    assert_eq!(summary["likelihood"], "poisson");
    assert_eq!(summary["coordinates"], "repriorised");
    assert!(
        summary["metrics"]["nll"].as_f64().unwrap() < 2.6,
        "{summary}"
    );
    assert_eq!(header, ["mean", "sd", "q05", "q50", "q95"]);
    let (mean, low, high) = (values(&rows, 0), values(&rows, 2), values(&rows, 4));
    for i in 0..20 {
        assert!(low[i].fract() == 0.0 && high[i].fract() == 0.0 && low[i] <= high[i]);
    }
    // the first row has x = −1 and about one count, the twentieth x = 0.9 and about nine
    assert!(mean[0] < 4.0 && mean[19] > 5.0, "{mean:?}");
    let (_, plain) = place
        .succeed("predict run --data counts.csv --no-noise")
        .table();
    assert!(values(&plain, 1)[0] < values(&rows, 1)[0]);
}

#[test]
fn classes() {
    let place = Place::new();
    counts_and_classes(&place);
    for likelihood in ["bernoulli", "categorical"] {
        let flags = format!("--likelihood {likelihood} --train 40 --test 20");
        let (summary, header, rows) = sample_and_predict(&place, &flags, "classes.csv");
        assert!(
            summary["metrics"]["accuracy"].as_f64().unwrap() > 0.7,
            "{likelihood}: {summary}"
        );
        assert_eq!(
            header,
            ["p_cold", "p_warm", "label", "confidence", "entropy"]
        );
        let (cold, warm) = (values(&rows, 0), values(&rows, 1));
        assert!(
            cold.iter()
                .zip(&warm)
                .all(|(c, w)| (c + w - 1.0).abs() < 1e-6)
        );
        assert!(cold[0] > 0.6 && warm[19] > 0.6, "{likelihood}: {cold:?}");
        assert!(!place.path("run/draws.zarr/predictions/sd").exists());
        let refused = place.run("predict run --data classes.csv --no-noise");
        refused.assert_error(2, &["--no-noise", likelihood]);
    }
}

/// Noise that grows with an input: intervals follow it, `--no-noise` leaves it out, and what is recorded is what is predicted.
#[test]
fn noise_that_depends_on_the_inputs() {
    let place = Place::new();
    let rows = (0..300_u32).map(|row| {
        let x = f64::from(row % 100) / 50.0 - 1.0;
        let own = 3.0 * ((f64::from(row) * 0.618_033_988_75).fract() - 0.5);
        format!("{x:.4},{:.6}\n", 2.0 * x + own * (1.5 * x).exp())
    });
    place.write("fan.csv", "x,y\n".to_owned() + &rows.collect::<String>());
    let data = "--data fan.csv --network fcn:16 --test 60 --likelihood";
    let gaussian = format!("{data} gaussian-heteroscedastic");
    let heavy = format!("{data} student-t-heteroscedastic --degrees-of-freedom 5");
    for flags in [
        "--warmup 100 --draws 60 --chains 2",
        "--warmup 100 --draws 60 --chains 2 --noise-variation 1.5",
        "--warmup 100 --draws 60 --chains 2 --noise 0.5 --coordinates standard",
        "--method ensemble --chains 2 --epochs 600",
        "--method sgld --draws 20 --chains 2 --epochs 800",
        "--method laplace --draws 10 --epochs 600",
        "--method map --epochs 600 --validation 30",
    ]
    .iter()
    .map(|flags| format!("{gaussian} {flags}"))
    .chain([
        format!("{heavy} --warmup 100 --draws 60 --chains 2"),
        format!("{heavy} --method ensemble --chains 2 --epochs 600"),
        format!("{heavy} --method laplace --draws 10 --epochs 600"),
    ]) {
        let sampled = place.succeed(&format!("sample {flags} --keep 1000 --out run --overwrite"));
        let summary = place.summary("run");
        let metrics = &summary["metrics"];
        let number = |name: &str| metrics[name].as_f64().unwrap();
        assert!(number("nll") < 1.75, "{flags}: {metrics} {sampled:?}");
        assert!(
            number("coverage_90") > 0.75,
            "{flags}: {metrics} {sampled:?}"
        );
        let sd = |flags: &str| {
            place.write("two.csv", "x\n-0.9\n0.9\n");
            let (header, rows) = place
                .succeed(&format!("predict run --data two.csv{flags}"))
                .table();
            let at = header.iter().position(|name| name == "sd").unwrap();
            [0, 1].map(|row: usize| rows[row][at].parse::<f64>().unwrap())
        };
        // the noise is 0.87·e^{1.5x}
        let (with, without) = (sd(""), sd(" --no-noise"));
        assert!(with[1] > 3.0 * with[0], "{flags}: {with:?}");
        assert!(with[1] > 1.5 && with[1] < 8.0, "{flags}: {with:?}");
        assert!(without[1] < 0.8 * with[1], "{flags}: {with:?} {without:?}");
        place.succeed("report run");
    }
    for (flags, parts) in [
        ("--coordinates marginal", ["gaussian", "--coordinates"]),
        ("--noise 0.1,0.2", ["one factor for all", "give one"]),
        ("--method nngp", ["gaussian", "--method nngp"]),
    ] {
        place
            .run(&format!("sample {gaussian} {flags} --out no"))
            .assert_error(2, &parts);
    }
}

#[test]
fn heavy_tails_and_learned_noise() {
    let place = Place::new();
    for flags in [
        "--likelihood student-t --degrees-of-freedom 3 --noise 0.3",
        "--likelihood student-t --noise learn",
        "--noise learn",
        "--noise learn-each --noise-median 0.5 --noise-spread 0.7",
        "--noise learn --coordinates repriorised --regulariser 1n",
        "--noise learn --coordinates standard --method pcn",
    ] {
        let flags = format!("{flags} --train 60 --test 30");
        let (summary, header, rows) = sample_and_predict(&place, &flags, "friedman");
        assert!(
            summary["metrics"]["rmse"].as_f64().unwrap() < 6.0,
            "{flags}: {summary}"
        );
        assert_eq!((header.len(), rows.len()), (5, 300));
        let learned = summary["noise"].as_array().unwrap();
        assert_eq!(
            learned.len(),
            usize::from(flags.contains("learn")),
            "{flags}"
        );
        for noise in learned {
            // the data have sd 5 and noise 1
            let (low, high) = (
                noise["q05"].as_f64().unwrap(),
                noise["q95"].as_f64().unwrap(),
            );
            assert!(
                low > 0.05 && high < 10.0 && low < high,
                "{flags}: {summary}"
            );
        }
    }
}

#[test]
fn several_outputs_have_noise_of_their_own() {
    let place = Place::new();
    let mut text = String::from("x,calm,wild\n");
    for i in 0..80 {
        let x = f64::from(i % 20) / 10.0 - 1.0;
        let jitter = f64::from((i * 7919) % 17) / 8.0 - 1.0;
        text += &format!("{x},{},{}\n", x + 0.02 * jitter, x + jitter);
    }
    place.write("two.csv", text);
    let flags = "--target calm,wild --noise learn-each --train 60 --test 20";
    let (summary, header, _) = sample_and_predict(&place, flags, "two.csv");
    assert_eq!(header[5..7], ["mean_wild", "sd_wild"]);
    let mean = |at: usize| summary["noise"][at]["mean"].as_f64().unwrap();
    assert!(mean(1) > 2.0 * mean(0), "{summary}");
    sample_and_predict(&place, "--target calm,wild --noise 0.1,0.9", "two.csv");
}

/// With λ matched, given as a number and in the symmetric space, the posterior is the same: predictions agree.
#[test]
fn the_regulariser_changes_coordinates_only() {
    let place = Place::new();
    let mut all = Vec::new();
    for flags in [
        "--coordinates marginal",
        "--coordinates repriorised --regulariser 0.02",
        "--coordinates repriorised --space data-symmetric",
    ] {
        let flags = format!("{flags} --train 20 --test 10 --seed 3");
        let flags = format!(
            "{flags} --network fcn:12 --noise 0.1 --warmup 60 --draws 200 --chains 4 --quiet"
        );
        place.succeed(&format!(
            "sample --data friedman {flags} --overwrite --out run"
        ));
        let (_, rows) = place.succeed("predict run --data friedman").table();
        all.push((values(&rows, 0), values(&rows, 1)));
    }
    for (mean, sd) in &all[1..] {
        for i in 0..10 {
            let difference = (mean[i] - all[0].0[i]).abs();
            assert!(difference < 0.4 * sd[i], "{i}: {difference} {}", sd[i]);
        }
    }
}

#[test]
fn an_interrupted_run_of_learned_noise_ends_with_the_same_bytes() {
    let place = Place::new();
    let flags = "--data friedman --likelihood student-t --noise learn --train 30 --test 5 --method langevin";
    place.succeed(&format!(
        "sample {flags} {SHORT} --seed 5 --threads 1 --out whole"
    ));
    place.succeed("sample --config whole/config.toml --quiet --threads 2 --out again");
    let same = |name: &str| {
        let mut tree = place.tree(name);
        tree.retain(|path, _| path.starts_with("draws.zarr"));
        tree
    };
    assert_same(&same("whole"), &same("again"));
}

#[test]
fn wrong_requests_are_refused_with_a_way_out() {
    let place = Place::new();
    counts_and_classes(&place);
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "friedman",
            "--likelihood binomial",
            &["binomial", "poisson"],
        ),
        ("friedman", "--likelihood poisson", &["counts", "`y` has"]),
        (
            "friedman",
            "--likelihood categorical",
            &["categorical", "--task classification"],
        ),
        (
            "strokes",
            "--likelihood bernoulli",
            &["two classes", "10", "categorical"],
        ),
        (
            "strokes",
            "--likelihood student-t",
            &["student-t", "gaussian or categorical"],
        ),
        (
            "strokes",
            "--likelihood categorical --noise 0.1",
            &["no noise scale", "--noise"],
        ),
        (
            "strokes",
            "--likelihood gaussian --noise learn-each",
            &["share one noise"],
        ),
        (
            "strokes",
            "--likelihood categorical --coordinates marginal",
            &["repriorised or standard"],
        ),
        ("friedman", "--noise quiet", &["`quiet`", "learn"]),
        (
            "friedman",
            "--noise 0.1,0.2",
            &["2 noise scales", "1 outputs"],
        ),
        (
            "friedman",
            "--likelihood gaussian-heteroscedastic --noise learn-each",
            &["gaussian-heteroscedastic", "one factor for all", "`learn`"],
        ),
        ("friedman", "--noise -1", &["-1", "positive"]),
        (
            "friedman",
            "--noise 0.1 --noise-median 0.2",
            &["--noise learn"],
        ),
        (
            "friedman",
            "--noise learn --noise-spread 0",
            &["--noise-spread", "positive"],
        ),
        ("friedman", "--degrees-of-freedom 3", &["student-t"]),
        (
            "friedman",
            "--likelihood student-t --degrees-of-freedom 0",
            &["--degrees-of-freedom", "positive"],
        ),
        ("friedman", "--noise-variation 2", &["heteroscedastic"]),
        (
            "friedman",
            "--likelihood gaussian-heteroscedastic --noise-variation 0",
            &["--noise-variation", "0.001"],
        ),
        (
            "friedman",
            "--regulariser 1n",
            &["--coordinates repriorised"],
        ),
        (
            "friedman",
            "--coordinates repriorised --regulariser -1",
            &["-1", "1n"],
        ),
        ("friedman", "--space data-symmetric", &["repriorised"]),
    ];
    for (data, flags, parts) in cases {
        let refused = place.run(&format!("sample --data {data} {flags} --out refused"));
        refused.assert_error(2, parts);
        assert!(
            !place.path("refused").exists(),
            "{flags} left a folder behind"
        );
    }
}
