//! The claims of Marceau-Caron & Ollivier (2017) at quick size.

mod common;

#[test]
fn table_1() {
    common::quick("marceau2017-table1", false);
}
