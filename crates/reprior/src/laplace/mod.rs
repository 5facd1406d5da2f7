//! Laplace approximations around trained weights, and diffusions along the directions that their curvature finds.
//!
//! With the generalised Gauss-Newton matrix G = Σ JᵀHJ over all rows at weights ŵ and prior precisions P, the posterior is taken for
//! N(ŵ, (G + P)^(−1)). Users of laplace-torch find its words: the structure of the Hessian is full, kron, diag or lowrank; the subset
//! of the weights all, the last layer or a subnetwork; predictions are sampled, or linearised with a link (mc, probit, bridge).
//!
//! * [`Laplace`]: fit, samples, prior precisions by marginal likelihood or a grid, linearised predictions, kept and loaded;
//! * [`LaplaceFit`](fit::LaplaceFit): all of the way from the end of a training to draws;
//! * [`LogPosterior`](ascent::LogPosterior): how far weights are from the mode, and the way there;
//! * [`GaussNewton`](curvature::GaussNewton): G as an operator, its diagonal, Kronecker factors and parts, for the Fisher information of the outputs
//!   ([`FisherInformation`]) or the [`EmpiricalFisher`](row_curvature::EmpiricalFisher) matrix;
//! * [`Spectrum`](spectrum::Spectrum): eigenpairs, exactly or by block Lanczos;
//! * [`DiffusionPath`](diffusion::DiffusionPath): Laplace diffusions (Roy, Miani et al. 2024).

mod basis;
mod diag;
mod full;
mod kron;
mod last_layer;
mod posterior;
mod predictive;

// Operators, decompositions, diffusions and kept fits, for the program and the experiments; they change without notice.
#[doc(hidden)]
pub mod ascent;
#[doc(hidden)]
pub mod curvature;
#[doc(hidden)]
pub mod diffusion;
#[doc(hidden)]
pub mod fit;
#[doc(hidden)]
pub mod link;
#[doc(hidden)]
pub mod low_rank;
#[doc(hidden)]
pub mod precision;
#[doc(hidden)]
pub mod row_curvature;
#[doc(hidden)]
pub mod spectrum;
#[doc(hidden)]
pub mod structure;
#[doc(hidden)]
pub mod subset;

pub use link::Link;
pub use posterior::{HessianStructure, Laplace, LaplaceData, LaplaceError};
pub use precision::{PrecisionPer, PriorPrecision};
pub use predictive::Linearised;
pub use row_curvature::{FisherInformation, RowCurvature};
pub use spectrum::Lanczos;
pub use subset::Subset;
