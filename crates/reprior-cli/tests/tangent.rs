//! Tangent coordinates: the same posterior as marginal ones, approximations named, wrong requests refused.

use crate::common::{Place, assert_same};

const DATA: &str =
    "--data friedman --train 8 --test 12 --activation tanh --noise 0.5 --input-reduction on";

#[test]
fn predictions_are_those_of_marginal_coordinates() {
    let place = Place::new();
    place.succeed(&format!(
        "sample {DATA} --network fcn:16 --chains 2 --warmup 100 --draws 400 --thin 2 --out marginal"
    ));
    let tangent =
        format!("{DATA} --network fcn:16 --coordinates tangent --chains 2 --draws 200 --thin 3");
    for (name, rest) in [
        ("exact", "--determinant exact --method pcn --warmup 100"),
        (
            "series",
            "--determinant series(6,40) --method elliptical --warmup 50",
        ),
    ] {
        place.succeed(&format!("sample {tangent} {rest} --out {name}"));
        let run = place.succeed(&format!("summary {name} --verbose"));
        assert!(
            run.stdout.contains(&format!(
                "tangent coordinates (determinant {}",
                match name {
                    "exact" => "exact)",
                    _ => "approximate: 6 Taylor terms, 40 Hutchinson probes)",
                }
            )),
            "{run:?}"
        );
        let is_warned = run.stdout.contains("draws are of an approximation");
        assert_eq!(is_warned, name == "series", "{run:?}");
    }
    let predictions = ["marginal", "exact", "series"].map(|run| {
        let (_, rows) = place
            .succeed(&format!("predict {run} --data friedman --no-noise"))
            .table();
        let numbers = rows
            .into_iter()
            .map(|row| [0, 1].map(|at| row[at].parse::<f64>().unwrap()));
        numbers.collect::<Vec<_>>()
    });
    let [marginal, tangent @ ..] = &predictions;
    for other in tangent {
        assert_eq!(other.len(), marginal.len());
        for ([mean, sd], [other_mean, other_sd]) in marginal.iter().zip(other) {
            assert!(
                (mean - other_mean).abs() < 0.45 * sd,
                "{mean} {other_mean} {sd}"
            );
            assert!((other_sd / sd).ln().abs() < 0.35, "{sd} {other_sd}");
        }
    }
}

#[test]
fn runs_resume_and_say_how_the_determinant_is_had() {
    let place = Place::new();
    let flags = format!(
        "{DATA} --network fcn:24 --coordinates tangent --method rwm --chains 2 --warmup 10 --draws 5 --thin 2"
    );
    place.succeed(&format!("sample {flags} --out run"));
    let config = place.read("run/config.toml");
    assert!(
        config.contains("determinant = \"series(4,16)\"") && config.contains("arrival = 0"),
        "{config}"
    );
    assert_eq!(
        place.summary("run")["determinant"],
        "approximate: 4 Taylor terms, 16 Hutchinson probes"
    );
    place.succeed("sample --config run/config.toml --out again");
    assert_same(
        &place.tree("run/draws.zarr"),
        &place.tree("again/draws.zarr"),
    );
    // small networks need no approximation
    let plan = place.succeed(
        "plan --data friedman --train 12 --network fcn:4 --coordinates tangent --method pcn",
    );
    assert!(plan.stdout.contains("exact"), "{plan:?}");
    // another choice of coordinates leaves the determinant behind
    place.succeed("plan --config run/config.toml --coordinates marginal");
}

#[test]
fn wrong_requests_are_refused_with_a_way_out() {
    let place = Place::new();
    let flags = "--data friedman --train 20 --network fcn:8 --coordinates tangent";
    for (wrong, parts) in [
        ("--method pcn --noise learn", ["known noise", "--noise"]),
        ("--method pcn --space data", ["--space", "leave it out"]),
        (
            "--determinant hessian(2,4)",
            ["--determinant hessian", "--regulariser"],
        ),
        (
            "--method pcn --likelihood student-t",
            ["student-t", "repriorised"],
        ),
        (
            "--method pcn --determinant series(0,3)",
            ["series(0,3)", "at least one"],
        ),
        (
            "--method pcn --determinant 5",
            ["unknown determinant `5`", "exact"],
        ),
    ] {
        place
            .run(&format!("sample {flags} {wrong} --out run"))
            .assert_error(2, &parts);
    }
    place
        .run("sample --data friedman --determinant exact --out run")
        .assert_error(2, &["--determinant exact", "--coordinates tangent"]);
    place
        .run("sample --data friedman --regulariser 1 --out run")
        .assert_error(2, &["--regulariser", "repriorised or tangent"]);
    place
        .run(&format!("bench {flags} --method pcn"))
        .assert_error(2, &["--coordinates"]);
}
