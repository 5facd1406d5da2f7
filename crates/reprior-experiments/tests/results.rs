//! The results that the repository shows: their README begins with what their findings say.

use std::path::Path;

use reprior_experiments::{judge, ledger};

#[test]
fn the_first_table_is_that_of_the_findings() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let text = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let table = ledger(&folder).unwrap();
    assert!(
        text.contains(table.trim_end()),
        "docs/results/README.md does not have what `reprior reproduce --ledger docs/results` prints"
    );
    let before = text.find("| paper |").unwrap();
    assert!(text[..before].lines().count() < 12, "the table comes first");
}

#[test]
fn the_verdicts_are_what_the_rules_say_of_the_numbers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let mut lacking = Vec::new();
    for judged in judge(&folder).unwrap() {
        let Some(now) = judged.now else {
            lacking.push(judged.name);
            continue;
        };
        assert_eq!(
            judged.before, now,
            "docs/results/{} was judged by other rules: run `reprior reproduce --judge docs/results`",
            judged.name
        );
    }
    // of these the tables that claims are judged by are too large to be shown
    let expected = [
        "hron2022-fig10",
        "pezzetti2024-section3",
        "marceau2017-table1",
    ];
    assert_eq!(lacking, expected);
}

#[test]
fn every_picture_and_folder_that_the_readme_names_is_there() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let text = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let mut links = 0;
    for part in text.split("](").skip(1) {
        let link = part.split(')').next().unwrap();
        if link.starts_with("http") {
            continue;
        }
        let path = link.split('#').next().unwrap();
        let is_there = folder.join(path).exists();
        assert!(is_there, "docs/results/README.md links {link}");
        links += 1;
    }
    assert!(links > 50, "{links}");
}
