//! `--scales learn`: scales of weights sampled along, recorded by name, and applied by `predict`.

use crate::common::Place;
use serde_json::Value;

const RUN: &str = "sample --data table.csv --no-shuffle --train 60 --test 40 --network fcn:6,5 --warmup 60 --draws 40 --chains 2 --out run";

/// Rows of a table in which `other` does not matter, with their targets.
fn rows() -> Vec<(String, f64)> {
    let of_row = |row: u32| {
        let part = |step: f64| (f64::from(row) * step).fract() - 0.5;
        let (x, other) = (part(0.414_213_562_37), part(0.732_050_807_57));
        let y = (4.0 * x).sin() + 0.2 * part(0.618_033_988_75);
        (format!("{x:.6},{other:.6},{y:.6}\n"), y)
    };
    (0..100).map(of_row).collect()
}

fn text(rows: &[(String, f64)]) -> String {
    let rows: String = rows.iter().map(|(row, _)| row.as_str()).collect();
    format!("x,other,y\n{rows}")
}

#[test]
fn scales_of_inputs_are_sampled_recorded_and_predicted_with() {
    for flags in [
        "--scales learn --scale-spread 0.5",
        "--scales learn-half-normal --coordinates repriorised",
        "--scales learn --likelihood student-t",
    ] {
        let (place, rows) = (Place::new(), rows());
        place.write("table.csv", text(&rows));
        place.write("new.csv", text(&rows[60..]));
        place.succeed(&format!("{RUN} {flags}"));
        let summary: Value =
            serde_json::from_str(&place.succeed("summary run --json").stdout).unwrap();
        let learned = summary["weight_scales"].as_array().unwrap();
        let names: Vec<&str> = learned
            .iter()
            .map(|own| own["weights"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["x", "other", "layer 2"]);
        for own in learned {
            let of = |key: &str| own[key].as_f64().unwrap();
            assert!(of("q05") > 0.0 && of("q05") <= of("mean") && of("sd") > 0.0);
        }
        let said = place.succeed("summary run --verbose").stdout;
        assert!(said.contains("learned scale of the weights of"), "{said}");
        // kept positions predict what was recorded
        place.succeed("predict run --data new.csv --out predictions.csv");
        let predictions = place.read("predictions.csv");
        let means = predictions.lines().skip(1).map(|line| {
            let mean = line.split(',').next().unwrap();
            mean.parse::<f64>().unwrap()
        });
        let errors = means
            .zip(&rows[60..])
            .map(|(mean, (_, y))| (mean - y).powi(2));
        let rmse = (errors.sum::<f64>() / 40.0).sqrt();
        let recorded = summary["metrics"]["rmse"].as_f64().unwrap();
        assert!((rmse / recorded - 1.0).abs() < 1e-4, "{rmse} {recorded}");
    }
}

#[test]
fn what_has_no_learned_scales_is_refused_with_a_way_out() {
    let place = Place::new();
    place.write("table.csv", text(&rows()));
    for (flags, expected) in [
        ("--scales learn --method sgld", "chains on all data"),
        ("--scales learn --method laplace", "chains on all data"),
        (
            "--scales learn --coordinates tangent --noise 0.1",
            "another --coordinates",
        ),
        (
            "--scales learn --input-reduction on",
            "--input-reduction on",
        ),
        ("--scale-spread 2", "--scales learn"),
        (
            "--scales learn-half-normal --scale-spread 2",
            "--scales learn",
        ),
        ("--scales learn --scale-spread 0", "--scale-spread is 0"),
        ("--scales ard", "unknown scales `ard`"),
    ] {
        let said = place.run(&format!("{RUN} {flags}"));
        said.assert_error(2, &[expected]);
    }
}
