//! Experiments of the papers: their claims, and twins of each claim that must not hold.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod broken_twins;
mod common;
mod quick_compare;
mod quick_hron;
mod quick_marceau;
mod quick_pezzetti;
mod quick_roy;
mod quick_tables;
mod results;
mod theory;
mod toys;
