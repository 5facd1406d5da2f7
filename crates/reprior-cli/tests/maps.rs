//! The maps of the house name every crate and every room: what is not on them does not exist for a newcomer.

use std::fs;
use std::path::Path;

fn folders(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap().map(Result::unwrap);
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// What of the names a text does not mention as code.
fn missing(text: &str, names: &[String]) -> Vec<String> {
    let is_missing = |name: &&String| {
        let forms = ["`", "``", "/"].map(|start| format!("{start}{name}`"));
        !forms.iter().any(|form| text.contains(form))
    };
    names.iter().filter(is_missing).cloned().collect()
}

#[test]
fn every_crate_and_every_room_is_on_the_maps() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let crates = folders(&root.join("crates"));
    assert!(crates.contains(&"reprior".to_owned()), "{crates:?}");
    for map in ["CONTRIBUTING.md", "docs/src/architecture.md"] {
        let text = read(map);
        assert_eq!(missing(&text, &crates), [""; 0], "{map}");
        for name in &crates {
            let rooms = folders(&root.join("crates").join(name).join("src"));
            assert_eq!(missing(&text, &rooms), [""; 0], "{map}: rooms of {name}");
        }
    }
    // a library's first page names its own
    for name in [
        "reprior",
        "reprior-run",
        "reprior-io",
        "reprior-report",
        "reprior-experiments",
    ] {
        let source = root.join("crates").join(name).join("src");
        let text = fs::read_to_string(source.join("lib.rs")).unwrap();
        let docs: String = text
            .lines()
            .filter(|line| line.starts_with("//!"))
            .collect();
        assert_eq!(
            missing(&docs, &folders(&source)),
            [""; 0],
            "{name}/src/lib.rs"
        );
    }
}

#[test]
fn a_room_that_is_not_there_is_missed() {
    let names = ["sampler", "cellar"].map(str::to_owned);
    assert_eq!(missing("| `sampler` | kernels |", &names), ["cellar"]);
}
