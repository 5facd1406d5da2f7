//! Laplace approximations around trained weights, and diffusions along the directions that their curvature finds.
//!
//! With the generalised Gauss-Newton matrix G = Σ JᵀHJ over all rows at weights ŵ and prior precisions P, the posterior is taken for
//! N(ŵ, (G + P)^(−1)). Users of laplace-torch find its words: the structure of the Hessian is full, kron, diag or lowrank; the subset
//! of the weights all, the last layer or a subnetwork; predictions are sampled, or linearised with a link (mc, probit, bridge).
//!
//! * [`Laplace`]: fit, samples, prior precisions by marginal likelihood or a grid, linearised predictions;
//! * [`LogPosterior`]: how far weights are from the mode, and the way there;
//! * [`GaussNewton`]: G as an operator, its diagonal, Kronecker factors and parts, for the Fisher information of the outputs
//!   ([`OutputCurvature`]) or the [`EmpiricalFisher`] matrix;
//! * [`Spectrum`]: eigenpairs, exactly or by block Lanczos;
//! * [`DiffusionPath`]: Laplace diffusions (Roy, Miani et al. 2024).

mod ascent;
mod basis;
mod curvature;
mod diffusion;
mod last_layer;
mod likelihood;
mod link;
mod posterior;
mod precision;
mod predictive;
mod spectrum;
mod structure;
mod subset;

pub use ascent::{Ascent, LogPosterior, LogPrior};
pub use curvature::{GaussNewton, SymmetricOperator};
pub use diffusion::{
    Decomposition, Diffusion, DiffusionData, DiffusionKind, DiffusionPath, Integrator,
};
pub use likelihood::{EmpiricalFisher, OutputCurvature, RowCurvature};
pub use link::{Link, log_probabilities};
pub use posterior::{HessianStructure, Laplace, LaplaceData, LaplaceError, LeftOut};
pub use precision::{PrecisionPer, PriorPrecision};
pub use predictive::Linearised;
pub use spectrum::{Lanczos, Spectrum, SpectrumError};
pub use structure::{KroneckerFactors, LayerCurvature, Structure};
pub use subset::Subset;
