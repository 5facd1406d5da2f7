//! Hron et al. 2022 at quick size: every claim of every figure holds.

mod common;

use common::{measured, quick};

#[test]
fn figure_2() {
    quick("hron2022-fig2", false);
}

#[test]
fn figure_3() {
    quick("hron2022-fig3", false);
}

#[test]
fn figure_5() {
    quick("hron2022-fig5", false);
}

/// Times are not asserted.
#[test]
fn figure_6() {
    let outcome = measured("hron2022-fig6", false);
    assert_eq!(outcome.tables[0].rows.len(), 2);
}

#[test]
fn figure_7() {
    quick("hron2022-fig7", false);
}

#[test]
fn figure_8() {
    quick("hron2022-fig8", false);
}

#[test]
fn figure_9() {
    quick("hron2022-fig9", false);
}

#[test]
fn figure_10() {
    quick("hron2022-fig10", false);
}

#[test]
fn figure_11() {
    quick("hron2022-fig11", false);
}

#[test]
fn proposition_2_3() {
    quick("hron2022-prop2.3", false);
}

#[test]
fn proposition_3_1() {
    quick("hron2022-prop3.1", false);
}

#[test]
fn appendix_d() {
    quick("hron2022-appendix-d", false);
}
