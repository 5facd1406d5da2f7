//! The claims of Marceau-Caron & Ollivier (2017) at quick size.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::claims::{broken, expect_reasons, swap};

#[test]
fn table_1() {
    let outcome = common::measured("marceau2017-table1", false);
    expect_reasons(&outcome);
}
