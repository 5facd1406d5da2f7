//! The comparison of ours at quick size.

mod common;

use common::quick;

#[test]
fn compare() {
    let outcome = quick("compare", false);
    // every sampler in three coordinate systems, and the papers' five
    assert_eq!(outcome.tables[0].rows.len(), 32);
}
