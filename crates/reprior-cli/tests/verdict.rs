//! The verdict of real runs: it believes where the model is right, and says no, and why, where it is not.

use std::fmt::Write;

use crate::common::Place;
use serde_json::Value;

/// 400 rows of y = x + noise of standard deviation a half of x's, in no order; with `is_class` the labels are pure noise.
fn table(is_class: bool) -> String {
    let mut text = "x,y\n".to_owned();
    // two independent equidistributed sequences; the sum of three uniforms is nearly normal
    let uniform = |at: usize, root: f64| (at as f64 * root).fract() - 0.5;
    for at in 1..=400 {
        let x = 2.0 * uniform(at, 0.618_033_988_75);
        let roots = [0.414_213_562_37, 0.732_050_807_57, 0.236_067_977_5];
        let noise: f64 = roots.iter().map(|&root| uniform(at, root)).sum();
        match is_class {
            true => writeln!(text, "{x},{}", if noise > 0.0 { "up" } else { "down" }).unwrap(),
            false => writeln!(text, "{x},{}", x + 0.58 * noise).unwrap(),
        }
    }
    text
}

struct Judged {
    summary: Value,
    stdout: String,
}

impl Judged {
    fn has_warning(&self, parts: &[&str]) -> bool {
        let warnings = self.summary["warnings"].as_array().unwrap();
        let texts = warnings.iter().map(|warning| warning.as_str().unwrap());
        texts
            .into_iter()
            .any(|text| parts.iter().all(|part| text.contains(part)))
    }

    fn level(&self) -> &str {
        self.summary["verdict"]["level"].as_str().unwrap()
    }
}

fn judged(place: &Place, flags: &str) -> Judged {
    let stdout = place
        .succeed(&format!("sample {flags} --out run --overwrite"))
        .stdout;
    Judged {
        summary: place.summary("run"),
        stdout,
    }
}

#[test]
fn noise_that_is_right_too_small_and_too_large() {
    let place = Place::new();
    place.write("y.csv", table(false));
    let chains =
        "--data y.csv --train 200 --network linear --chains 4 --warmup 60 --draws 250 --thin 2";
    let right = judged(&place, &format!("{chains} --noise 0.45"));
    assert_eq!(right.level(), "good", "{}", right.stdout);
    assert!(
        right.stdout.contains(
            "Verdict: believe the predictions: the chains agree, and the test rows are as predicted."
        ),
        "{}",
        right.stdout
    );
    let small = judged(&place, &format!("{chains} --noise 0.05"));
    assert_eq!(small.level(), "bad", "{}", small.stdout);
    assert!(
        small.has_warning(&[
            "calibration: ",
            "too sure",
            "fixed at 0.05",
            "too small; try --noise learn"
        ]),
        "{}",
        small.stdout
    );
    assert!(
        small.has_warning(&["likelihood: ", "constant prediction"]),
        "{}",
        small.stdout
    );
    let large = judged(&place, &format!("{chains} --noise 1.5"));
    assert_eq!(large.level(), "caution", "{}", large.stdout);
    assert!(
        large.has_warning(&["not sure enough", "too large"]),
        "{}",
        large.stdout
    );
    // networks that are trained learn it too
    let ensemble =
        "--data y.csv --train 200 --network fcn:8 --method ensemble --epochs 100 --noise 0.05";
    let small = judged(&place, ensemble);
    assert_eq!(small.level(), "bad", "{}", small.stdout);
    assert!(
        small.has_warning(&["too small; try --noise learn"]),
        "{}",
        small.stdout
    );
}

#[test]
fn labels_of_noise_are_not_believed() {
    let place = Place::new();
    place.write("label.csv", table(true));
    let flags = "--data label.csv --train 200 --network fcn:8 --method map --epochs 100 --likelihood gaussian --noise 0.1";
    let codes = judged(&place, flags);
    assert_eq!(codes.level(), "bad", "{}", codes.stdout);
    assert!(
        codes.has_warning(&["predicted right", "try --likelihood categorical"]),
        "{}",
        codes.stdout
    );
    let flags = "--data label.csv --train 200 --network fcn:8 --method map --epochs 100 --bias-variance 0.01 --readout-weight-variance 1 --readout-bias-variance 0.01 --likelihood categorical";
    let classes = judged(&place, flags);
    assert!(
        !classes.has_warning(&["calibration: "]),
        "{}",
        classes.stdout
    );
}
