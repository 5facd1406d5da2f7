//! Flags of Laplace approximations and diffusions.

use clap::Args;

use super::written::{Precision, Subset};

/// What Laplace approximations and diffusions are told besides how the mode is trained.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Laplace approximations and diffusions (laplace, laplace-diffusion)")]
pub struct LaplaceArguments {
    /// Of laplace: kron (Kronecker factors of each layer, with the bias as one more input), kron-separate (biases as blocks of
    /// their own, as laplace-torch has them: other numbers, mostly further from full), full, diag or lowrank (leading eigenpairs)
    /// [default: kron]
    #[arg(long, value_name = "NAME")]
    pub hessian_structure: Option<String>,
    /// Of laplace: the weights that are random: all, last-layer, or a subnetwork of N weights as last(N), largest-magnitude(N) or
    /// largest-variance(N) [default: all]
    #[arg(long, value_name = "WHICH")]
    pub subset_of_weights: Option<Subset>,
    /// Of the prior that the curvature is added to: a number, prior (that of training), marglik, marglik-layer or
    /// marglik-parameter (largest marginal likelihood), or validation (a grid; takes --validation rows) [default: prior]
    #[arg(long, value_name = "ALPHA", allow_negative_numbers = true)]
    pub prior_precision: Option<Precision>,
    /// Of laplace: glm (the linearised network) or nn (the network itself; needs a good fit far from the mode) [default: glm]
    #[arg(long, value_name = "NAME")]
    pub pred_type: Option<String>,
    /// Class probabilities of the linearised network in closed form: probit, bridge or mc (1,000 draws of the logits of each row)
    /// [default: probit]
    #[arg(long, value_name = "NAME")]
    pub link_approx: Option<String>,
    /// Eigenpairs of lowrank and laplace-diffusion; those that have not converged are left out, and the summary says how much
    /// is [default: 100]
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub rank: Option<usize>,
    /// Eigenvalues below this part of the prior precision count as none; of lowrank with a prior precision that is looked for
    /// none does [default: 0.01]
    #[arg(long, value_name = "PART", allow_negative_numbers = true)]
    pub eigenvalue_threshold: Option<f64>,
    /// Training rows, the first ones, that the curvature is of, standing for all [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub curvature_rows: Option<usize>,
    /// Of laplace-diffusion: non-kernel, kernel, alternating or full [default: non-kernel]
    #[arg(long, value_name = "KIND")]
    pub diffusion: Option<String>,
    /// T, the steps of a diffusion, each of size 1/T [default: 20]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub diffusion_steps: Option<u64>,
    /// Steps of a diffusion: euler (as published) or heun (twice the work; kernel diffusions then keep what was fitted) [default:
    /// euler]
    #[arg(long, value_name = "NAME")]
    pub integrator: Option<String>,
}
