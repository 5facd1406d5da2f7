//! Every claim that the published results are said to show has broken twins, by which it is not shown: the same numbers with errors of
//! far too few draws; under exchanged labels, in mirrored order, or several times as large.

use std::path::Path;

use reprior_experiments::{Experiment, Judged, Table, Value, Verdict, find, judge};

/// Errors of a ten-thousandth of the draws: a hundred times as large.
fn of_few_draws(tables: &[Table]) -> Vec<Table> {
    let mut twin = tables.to_vec();
    for (name, value) in twin
        .iter_mut()
        .flat_map(|table| &mut table.rows)
        .flat_map(|row| &mut row.values)
    {
        if let (true, Value::Number(error)) = (name.starts_with("± "), value) {
            *error *= 100.0;
        }
    }
    twin
}

/// The distinct values of a column, in ascending order.
fn distinct(table: &Table, column: &str) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    for value in table.rows.iter().filter_map(|row| row.get(column)) {
        if *value != Value::Missing && !found.contains(value) {
            found.push(value.clone());
        }
    }
    found.sort_by(|a, b| match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.total_cmp(b),
        _ => a.to_string().cmp(&b.to_string()),
    });
    found
}

/// A table whose column has other values in the place of its own.
fn exchanged(
    tables: &[Table],
    at: usize,
    column: &str,
    own: &[Value],
    other: &[Value],
) -> Vec<Table> {
    let mut twin = tables.to_vec();
    for (name, value) in twin[at].rows.iter_mut().flat_map(|row| &mut row.values) {
        if name == column
            && let Some(place) = own.iter().position(|own| own == value)
        {
            *value = other[place].clone();
        }
    }
    twin
}

/// Twins under other labels; such whose smallest number is the largest; and of other sizes: of every column of every table.
fn relabelled(tables: &[Table]) -> Vec<Vec<Table>> {
    let mut twins = Vec::new();
    for (at, table) in tables.iter().enumerate() {
        for column in table.columns() {
            let own = distinct(table, column);
            if own.is_empty() || column.starts_with("± ") || column.starts_with("doubt of ") {
                continue;
            }
            let mut other = own.clone();
            other.reverse();
            twins.push(exchanged(tables, at, column, &own, &other));
            for factor in [1e-3, 0.1, 0.5, 2.0, 10.0, 1e3] {
                let scaled = own.iter().map(|value| match value {
                    Value::Number(number) => Value::Number(factor * number),
                    word => word.clone(),
                });
                let scaled: Vec<Value> = scaled.collect();
                twins.push(exchanged(tables, at, column, &own, &scaled));
            }
            if matches!(own[0], Value::Text(_)) {
                for shift in 1..own.len() {
                    other = own.clone();
                    other.rotate_left(shift);
                    twins.push(exchanged(tables, at, column, &own, &other));
                }
            }
        }
    }
    twins
}

/// Whether the claim is made of the tables and not shown by them.
fn fails(experiment: &dyn Experiment, tables: &[Table], claim: &str) -> bool {
    let findings = experiment.findings(tables);
    let own = findings.iter().find(|finding| finding.claim == claim);
    own.is_some_and(|finding| finding.verdict != Verdict::Holds)
}

#[test]
fn what_holds_has_twins_by_which_it_does_not() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let (mut claims, mut without, mut sharp) = (0, Vec::new(), 0);
    for Judged {
        name, now, tables, ..
    } in judge(&folder).unwrap()
    {
        let experiment = find(name).unwrap();
        let twins = relabelled(&tables);
        let few = of_few_draws(&tables);
        for finding in now
            .iter()
            .flatten()
            .filter(|finding| finding.verdict == Verdict::Holds)
        {
            claims += 1;
            let claim = &finding.claim;
            if !twins.iter().any(|twin| fails(experiment, twin, claim)) {
                without.push(format!("{name}: {claim}"));
            }
            sharp += usize::from(!fails(experiment, &few, claim));
        }
    }
    assert!(claims > 80, "{claims}");
    assert!(without.is_empty(), "{without:#?}");
    // some are of facts that have no error, or of differences of hundreds of errors
    assert!(4 * sharp < claims, "{sharp} of {claims}");
}
