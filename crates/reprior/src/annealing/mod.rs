//! The log evidence of a target, and draws from it, by annealed sequential Monte Carlo (Neal 2001; Del Moral, Doucet & Jasra 2006).
//!
//! N particles begin as draws of the prior N(0, I), which is what π_β(z) ∝ N(z; 0, I)·exp βℓ(z) is at β = 0, and go through a ladder of β to
//! π_1, the posterior. From β to β + Δ
//!
//! * each weight W_i is multiplied by exp(Δℓ(z_i)), and log Z grows by log Σ_i W_i exp(Δℓ(z_i)), Σ W_i = 1 before;
//! * where the effective sample size 1/Σ W_i² has fallen below N/2, and at β = 1, particles are resampled, systematically (Kitagawa 1996);
//! * each particle makes some transitions of an exact method on π_{β+Δ}.
//!
//! Δ is such that the conditional effective sample size N(Σ W_i w_i)²/Σ W_i w_i², w_i = exp(Δℓ(z_i)), is a given share of N (Zhou, Johansen &
//! Aston 2016). The step size follows the acceptance rate of all particles from transition to transition. Both are found by a pilot of a quarter of
//! the particles, which are then dropped: temperatures chosen by the particles that are weighted would favour those that are well off (seen: log Z
//! too large by 3/N). So exp log Z is unbiased, whatever N is and however well transitions mix; its error is measured by replicates, which share nothing
//! ([`LogEvidence`]).
//!
//! Chains that start in one mode of several stay there; particles fill modes by their mass as long as it can be seen at every β. Cost: (5/4)N
//! times the temperatures times the transitions of the method; N positions and gradients.

mod evidence;
mod ladder;
mod particles;
mod population;
mod settings;

pub use evidence::LogEvidence;
pub use particles::Particle;
pub use population::{Annealing, Rung};
pub use settings::{AnnealingError, AnnealingSettings};
