//! Laplace approximations around trained weights, and diffusions along the directions that their curvature finds.
//!
//! With the generalised Gauss-Newton matrix G = Σ JᵀHJ over all rows at weights ŵ and prior precisions P, the posterior is taken for
//! N(ŵ, (G + P)^(−1)). Users of laplace-torch find its words: the structure of the Hessian is full, kron, diag or lowrank; the subset
//! of the weights all, the last layer or a subnetwork; predictions are sampled, or linearised with a link (mc, probit, bridge).
//!
//! * [`Laplace`]: fit, samples, prior precisions by marginal likelihood or a grid, linearised predictions, kept and loaded;
//! * [`LaplaceFit`]: all of the way from the end of a training to draws;
//! * [`LogPosterior`]: how far weights are from the mode, and the way there;
//! * [`GaussNewton`]: G as an operator, its diagonal, Kronecker factors and parts, for the Fisher information of the outputs
//!   ([`FisherInformation`]) or the [`EmpiricalFisher`] matrix;
//! * [`Spectrum`]: eigenpairs, exactly or by block Lanczos;
//! * [`DiffusionPath`]: Laplace diffusions (Roy, Miani et al. 2024).

mod ascent;
mod basis;
mod curvature;
mod diag;
mod diffusion;
mod fit;
mod full;
mod kron;
mod last_layer;
mod link;
mod low_rank;
mod posterior;
mod precision;
mod predictive;
mod row_curvature;
mod spectrum;
mod structure;
mod subset;

pub use ascent::{Ascent, LogPosterior, LogPrior};
pub use curvature::{GaussNewton, SymmetricOperator};
pub use diffusion::{
    Decomposition, Diffusion, DiffusionData, DiffusionKind, DiffusionPath, Integrator,
};
pub use fit::{LaplaceFit, LaplaceMethod};
pub use link::{Link, log_probabilities};
pub use low_rank::LeftOut;
pub use posterior::{HessianStructure, KeptFit, Laplace, LaplaceData, LaplaceError};
pub use precision::{PrecisionChoice, PrecisionPer, PriorPrecision, prior_precisions};
pub use predictive::Linearised;
pub use row_curvature::{EmpiricalFisher, FisherInformation, RowCurvature};
pub use spectrum::{Lanczos, Spectrum, SpectrumError};
pub use structure::{Array, Arrays, DecompositionReport};
pub use subset::{Subset, SubsetChoice};
