//! Minima of functions with gradients.

pub mod lbfgs;
