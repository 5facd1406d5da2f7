//! stub
use crate::Experiment;
pub(crate) const EXPERIMENTS: &[&dyn Experiment] = &[];
