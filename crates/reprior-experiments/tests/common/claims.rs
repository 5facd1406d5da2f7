//! What is expected of claims, and broken twins of what was measured, by which they must not hold.

use reprior_experiments::{Finding, Outcome, Row, Value, Verdict, find};

/// Claims that contain all of the words.
fn of<'a>(findings: &'a [Finding], words: &[&str]) -> Vec<&'a Finding> {
    let has = |finding: &&Finding| words.iter().all(|word| finding.claim.contains(word));
    findings.iter().filter(has).collect()
}

/// Asserts the verdicts of all claims that contain all of the words, of which there is one at least. Chains and training hang on the last
/// digits of a machine: a claim may be open at quick size where its numbers, had they been measured ten times as precisely and
/// without doubt, would give the verdict.
pub fn expect(outcome: &Outcome, words: &[&str], verdict: Verdict) {
    let found = of(&outcome.findings, words);
    assert!(!found.is_empty(), "no claim has {words:?}");
    let sharp = altered(outcome, words, |row| {
        row.values
            .retain(|(name, _)| !name.starts_with("doubt of "));
        let names: Vec<String> = row.values.iter().map(|(name, _)| name.clone()).collect();
        for name in names.iter().filter(|name| name.starts_with("± ")) {
            let error = row.number(name);
            put(row, name, 0.1 * error);
        }
    });
    for (finding, sharp) in found.into_iter().zip(sharp) {
        let is_open = finding.verdict == Verdict::CannotBeTold && verdict != finding.verdict;
        let own = if is_open { &sharp } else { finding };
        assert_eq!(own.verdict, verdict, "{finding:#?}\n{}", outcome.text());
    }
}

/// Asserts that verdicts are the expected one or open: of claims whose numbers are close to where they turn.
pub fn expect_or_open(outcome: &Outcome, words: &[&str], verdict: Verdict) {
    let found = of(&outcome.findings, words);
    assert!(!found.is_empty(), "no claim has {words:?}");
    for finding in found {
        let is_open = finding.verdict == Verdict::CannotBeTold;
        assert!(
            is_open || finding.verdict == verdict,
            "{finding:#?}\n{}",
            outcome.text()
        );
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
    for finding in altered(outcome, words, alter) {
        assert_ne!(finding.verdict, Verdict::Holds, "{finding:#?}");
    }
}

/// Asserts that claims that contain all of the words hold of altered rows, which are clearly as the claims say.
pub fn mended(outcome: &Outcome, words: &[&str], alter: impl Fn(&mut Row)) {
    for finding in altered(outcome, words, alter) {
        assert_eq!(finding.verdict, Verdict::Holds, "{finding:#?}");
    }
}

/// What is found of altered rows.
fn altered(outcome: &Outcome, words: &[&str], alter: impl Fn(&mut Row)) -> Vec<Finding> {
    let mut tables = outcome.tables.clone();
    let rows = tables.iter_mut().flat_map(|table| &mut table.rows);
    rows.for_each(alter);
    let findings = find(outcome.about.name).unwrap().findings(&tables);
    let found: Vec<Finding> = of(&findings, words).into_iter().cloned().collect();
    assert!(!found.is_empty(), "no claim has {words:?}");
    found
}

/// Writes over a value; nothing if there is none.
pub fn put(row: &mut Row, name: &str, value: impl Into<Value>) {
    if let Some((_, old)) = row.values.iter_mut().find(|(other, _)| other == name) {
        *old = value.into();
    }
}

/// Writes over an estimate, with an error of a hundredth and without doubt.
pub fn put_estimate(row: &mut Row, name: &str, value: f64) {
    put(row, name, value);
    put(row, &format!("± {name}"), 0.01 * value);
    let doubt = format!("doubt of {name}");
    row.values.retain(|(other, _)| *other != doubt);
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
