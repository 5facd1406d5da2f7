//! The results that the repository shows: their README begins with what their findings say.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use reprior_experiments::ledger;

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
