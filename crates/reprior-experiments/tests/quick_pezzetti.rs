//! Pezzetti et al. 2024 at quick size: every claim of every figure holds.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::quick;

#[test]
fn figure_1() {
    quick("pezzetti2024-fig1", true);
}

#[test]
fn figure_2() {
    quick("pezzetti2024-fig2", false);
}

#[test]
fn figure_3() {
    quick("pezzetti2024-fig3", false);
}

#[test]
fn figures_4_to_6() {
    quick("pezzetti2024-fig4", false);
}

#[test]
fn section_3() {
    quick("pezzetti2024-section3", false);
}
