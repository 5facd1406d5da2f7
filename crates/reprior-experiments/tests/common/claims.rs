//! What is expected of claims, and broken twins of what was measured, by which they must not hold.
#![allow(dead_code, reason = "not every test has every kind of twin")]

use reprior_experiments::{Finding, Outcome, Row, Value, Verdict, find};

/// Claims that contain all of the words.
fn of<'a>(findings: &'a [Finding], words: &[&str]) -> Vec<&'a Finding> {
    let has = |finding: &&Finding| words.iter().all(|word| finding.claim.contains(word));
    findings.iter().filter(has).collect()
}

/// Asserts the verdicts of all claims that contain all of the words, of which there is one at least.
pub fn expect(outcome: &Outcome, words: &[&str], verdict: Verdict) {
    let found = of(&outcome.findings, words);
    assert!(!found.is_empty(), "no claim has {words:?}");
    for finding in found {
        assert_eq!(finding.verdict, verdict, "{finding:#?}\n{}", outcome.text());
    }
}

/// Asserts that what cannot be told says why.
pub fn expect_reasons(outcome: &Outcome) {
    for finding in &outcome.findings {
        let is_open = finding.verdict == Verdict::CannotBeTold;
        assert_eq!(finding.because.is_some(), is_open, "{finding:#?}");
    }
}

/// Asserts that claims that contain all of the words do not hold of altered rows, and that there are such claims. A claim that stands at
/// other rows already must hold of these before: what a twin shows is worth nothing otherwise.
pub fn broken(outcome: &Outcome, words: &[&str], alter: impl Fn(&mut Row)) {
    let mut tables = outcome.tables.clone();
    let rows = tables.iter_mut().flat_map(|table| &mut table.rows);
    rows.for_each(alter);
    let findings = find(outcome.about.name).unwrap().findings(&tables);
    let found = of(&findings, words);
    assert!(!found.is_empty(), "no claim has {words:?}");
    for finding in found {
        assert_ne!(finding.verdict, Verdict::Holds, "{finding:#?}");
    }
}

/// Writes over a value; nothing if there is none.
pub fn put(row: &mut Row, name: &str, value: impl Into<Value>) {
    if let Some((_, old)) = row.values.iter_mut().find(|(other, _)| other == name) {
        *old = value.into();
    }
}

/// Exchanges two words of a column.
pub fn swap(row: &mut Row, name: &str, words: [&str; 2]) {
    let own = row.text(name).to_owned();
    if own == words[0] {
        put(row, name, words[1]);
    } else if own == words[1] {
        put(row, name, words[0]);
    }
}

/// Puts the last first in a column of numbers: x to 1/x.
pub fn reverse(row: &mut Row, name: &str) {
    let value = row.number(name);
    put(row, name, 1.0 / value);
}
