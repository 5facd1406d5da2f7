//! Marceau-Caron & Ollivier (2017): Langevin dynamics with natural gradients.

mod paired;
mod runs;
mod table1;

use crate::Experiment;

pub(crate) const EXPERIMENTS: &[&dyn Experiment] = &[&table1::Table1];
