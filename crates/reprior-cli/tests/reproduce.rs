//! `reprior reproduce`: what is listed, refused, written, gone on with.

use crate::common::Place;

#[test]
fn every_experiment_is_listed() {
    let place = Place::new();
    let text = place.succeed("reproduce --list").stdout;
    for name in ["hron2022-fig7", "pezzetti2024-fig1", "compare", "default"] {
        assert!(text.contains(name), "{text}");
    }
    let all = place.succeed("reproduce --list --json").json();
    let all = all.as_array().unwrap();
    assert!(all.len() >= 18, "{}", all.len());
    for entry in all {
        for key in ["name", "paper", "figure", "what"] {
            assert!(
                entry[key].as_str().is_some_and(|text| !text.is_empty()),
                "{entry}"
            );
        }
        assert!(entry["cost"]["full"].is_string(), "{entry}");
    }
}

#[test]
fn wrong_requests_are_refused_before_any_work() {
    let place = Place::new();
    place
        .run("reproduce figure-7")
        .assert_error(2, &["figure-7", "--list", "hron2022-fig7"]);
    place.run("reproduce").assert_error(2, &["NAME"]);
    place
        .run("reproduce hron2022-fig2 --quick --full")
        .assert_error(2, &["--quick", "--full"]);
    place
        .run("reproduce hron2022-fig7 --data nowhere")
        .assert_error(2, &["--data nowhere", "mnist/"]);
    place.write("empty/file", "");
    place
        .run("reproduce hron2022-fig7 --data empty")
        .assert_error(2, &["cifar10", "built-in"]);
    place
        .run("reproduce hron2022-fig2 --threads 0")
        .assert_error(2, &["--threads"]);
    assert!(!place.path("results").exists());
}

#[test]
fn what_was_measured_is_written_and_not_measured_again() {
    let place = Place::new();
    let first = place.succeed("reproduce hron2022-fig2 --quick");
    assert!(first.stdout.contains("holds: "), "{first:?}");
    assert!(first.stderr.contains("quick"), "{first:?}");
    let folder = "results/hron2022-fig2-quick";
    let table = place.read(&format!("{folder}/results.csv"));
    assert!(table.starts_with("coordinates,1st mean"), "{table}");
    let picture = place.read(&format!("{folder}/draws.svg"));
    assert!(picture.starts_with("<svg"), "{}", &picture[..100]);
    let document = place
        .succeed("reproduce hron2022-fig2 --quick --json")
        .json();
    assert_eq!(document["experiment"], "hron2022-fig2");
    assert_eq!(document["findings"][0]["verdict"], "holds");
    // a record that was cut off in the middle of a line is gone on with
    let record = place.read(&format!("{folder}/record.jsonl"));
    place.write(
        &format!("{folder}/record.jsonl"),
        &record[..record.len() - 10],
    );
    place.succeed("reproduce hron2022-fig2 --quick --quiet");
    assert_eq!(place.read(&format!("{folder}/results.csv")), table);
    // another experiment, or another size, is not mixed with it
    for other in ["hron2022-fig3 --quick", "hron2022-fig2"] {
        place
            .run(&format!("reproduce {other} --quiet --out {folder}"))
            .assert_error(2, &["record.jsonl", "--out"]);
    }
}
