//! The quick size of experiments, with the built-in data: every finding has to hold.

use std::sync::atomic::AtomicBool;

use reprior_experiments::{Bench, DataFolder, Outcome, Size, find, perform};

/// Performs the quick size of the experiment `name`; all it finds holds, and a record of it goes on without measuring anything anew.
pub fn holds(name: &str, as_published: bool) -> Outcome {
    let experiment = find(name).unwrap_or_else(|| panic!("no experiment {name}"));
    let (data, stop) = (DataFolder::default(), AtomicBool::new(false));
    let bench = Bench {
        size: Size::Quick,
        data: &data,
        threads: 2,
        stop: &stop,
        progress: &|part| assert!((0.0..=1.0).contains(&part), "{part}"),
    };
    let cells = experiment.cells(Size::Quick, as_published);
    for (index, cell) in cells.iter().enumerate() {
        assert!(!cells[..index].contains(cell), "twice: {}", cell.label());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut begun = 0;
    let mut count = |event: reprior_experiments::Event<'_>| {
        begun += usize::from(event.cell.is_some());
    };
    let outcome = perform(experiment, &cells, &bench, folder.path(), &mut count).expect("it runs");
    let again = perform(experiment, &cells, &bench, folder.path(), &mut count).expect("it runs");
    assert_eq!(begun, cells.len());
    assert_eq!(outcome.tables, again.tables);
    let failed = outcome.findings.iter().filter(|finding| !finding.holds);
    let failed: Vec<String> = failed
        .map(|finding| format!("{}: {}", finding.claim, finding.measured))
        .collect();
    assert!(
        failed.is_empty() && !outcome.findings.is_empty(),
        "{failed:#?}\n{}",
        outcome.text()
    );
    assert!(!outcome.write(folder.path()).expect("it writes").is_empty());
    outcome
}
