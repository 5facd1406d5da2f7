//! Samples the posterior of Bayesian neural networks.
//!
//! ```
//! use reprior::{Regression, SampleSettings};
//!
//! # fn main() -> Result<(), reprior::FitError> {
//! let x: Vec<f64> = (0..40).map(|i| f64::from(i) / 8.0).collect();
//! let y: Vec<f64> = x.iter().map(|x| 20.0 + 5.0 * x.sin()).collect();
//! let settings = SampleSettings { seed: 1, ..SampleSettings::default() };
//! let fit = Regression::new(&x, &y).hidden([32]).noise(0.5).sample(&settings)?;
//! println!("{}", fit.summary());
//! let prediction = fit.predict(&[2.0, 7.0])?;
//! for (mean, sd) in prediction.mean().iter().zip(prediction.sd()) {
//!     println!("{mean:.2} ± {sd:.2}");
//! }
//! # assert!((prediction.mean()[0] - 24.5).abs() < 1.0 && prediction.sd()[1] > prediction.sd()[0]);
//! # Ok(())
//! # }
//! ```
//!
//! [`Classification`] is the same for classes. More methods, networks, likelihoods and coordinates are in the modules behind
//! them, each of which uses only those below it in this list:
//!
//! - `fit`: the front door: [`Regression`], [`Classification`], [`Fit`].
//! - [`annealing`]: particles from the prior to the posterior; the log evidence.
//! - [`chain`]: many chains over threads, warm-up, checkpoints.
//! - [`laplace`]: Laplace approximations and diffusions around trained weights.
//! - [`stochastic`]: minibatch methods.
//! - [`sampler`]: transition kernels.
//! - [`posterior`]: the same posterior in different coordinates; [`posterior::Target`] is the contract with samplers.
//! - [`model`]: data, prior and likelihood.
//! - [`gaussian_process`]: regression with given kernels.
//! - `optimise`: minima of functions with gradients.
//! - [`network`]: layers, their derivatives, kernels of infinite width.
//! - [`compute`]: dense kernels and random streams.
//! - [`metrics`]: how good predictions are.
//! - [`diagnostics`]: effective sample sizes, R-hat, Monte-Carlo standard errors.
//!
//! Modules that are not shown serve this workspace's own crates, tests and benchmarks: they change without notice.

pub mod annealing;
pub mod chain;
pub mod compute;
pub mod diagnostics;
mod fit;
pub mod gaussian_process;
pub mod laplace;
pub mod metrics;
pub mod model;
pub mod network;
#[doc(hidden)]
pub mod optimise;
pub mod posterior;
pub mod sampler;
pub mod stochastic;

pub use fit::{
    AsRow, ClassProbabilities, Classification, Fit, FitError, FitSummary, Prediction, Regression,
    SampleSettings,
};
