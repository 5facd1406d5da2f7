//! The claims of Roy, Miani et al. (2024) at quick size.

mod common;

use common::quick;
use reprior_experiments::Value;

#[test]
fn figure_2() {
    quick("roy2024-fig2", false);
}

#[test]
fn figure_4() {
    quick("roy2024-fig4", false);
}

#[test]
fn figure_6() {
    quick("roy2024-fig6", false);
}

#[test]
fn figure_7() {
    quick("roy2024-fig7", false);
}

/// Figures 8 and 9 are the same of other data, which the built-in images stand for here.
#[test]
fn figure_5() {
    quick("roy2024-fig5", false);
}

#[test]
fn theorem_5_1() {
    quick("roy2024-theorem5.1", false);
}

#[test]
fn table_1() {
    let outcome = quick("roy2024-table1", false);
    let table = &outcome.tables[0];
    assert!(table.columns().contains(&"ece, faulty bins"));
    // numbers of MNIST stand beside those of MNIST only
    assert_eq!(table.distinct("published nll"), vec![Value::Missing]);
    assert_eq!(table.distinct("data"), vec!["strokes".into()]);
}

#[test]
fn table_2() {
    quick("roy2024-table2", false);
}
