//! What papers measured, as functions of (data, settings) that return a table.
//!
//! So far what changes with the width of a network, over draws from its prior: how far the posterior is from the prior
//! ([`divergences_by_width`]) and how far its gradient is from the prior's ([`gradient_gaps_by_width`]); and the toys of Laplace
//! approximations and diffusions ([`Toy`]).

mod divergence;
mod gradient_gap;
mod toys;
mod width;

pub use divergence::{Divergences, divergences, divergences_by_width, limit_of_divergence};
pub use gradient_gap::{GradientGaps, gradient_gaps, gradient_gaps_by_width};
pub use toys::{Approximation, Toy};
pub use width::{ByWidth, Estimate, ExperimentError, PriorDraws, Problem};
