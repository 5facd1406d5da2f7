//! Noise and scales of an infinitely wide network that maximise the marginal likelihood (MacKay 1992).
//!
//! The network's own scales are the start: all σ_w of it are multiplied by one factor, all σ_b by another. Their maximum is
//! found with the simplex method over (ln σ, ln factor, ln factor), some 100 to 200 kernels and factorisations.

use super::noise::fit_noise;
use super::simplex::minimise;
use super::{GaussianProcess, GaussianProcessError};
use crate::compute::Matrix;
use crate::network::infinite::{InfiniteNetwork, Kinds};

/// Which of a network's kernels is the prior covariance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covariance {
    /// K: the prior of the network's function.
    Nngp,
    /// Θ: see [the module](super).
    Ntk,
}

/// The most likely scales.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// σ.
    pub noise: f64,
    /// What all σ_w are multiplied by.
    pub weight_factor: f64,
    /// What all σ_b are multiplied by; 1 if there are none.
    pub bias_factor: f64,
    /// ℓ there, in nats.
    pub log_marginal_likelihood: f64,
    /// How many kernels it took.
    pub evaluations: usize,
    /// Whether a factor or the noise is at a limit of what is searched: the data say nothing of it on one side.
    pub is_at_limit: bool,
}

/// Factors stay between this and its inverse, the noise between these multiples of its start.
const LEAST: f64 = 1e-3;
/// ℓ is found to this, in nats.
const TOLERANCE: f64 = 1e-7;
const EVALUATIONS: usize = 500;

impl InfiniteNetwork {
    /// One of the kernels between all pairs of `inputs`, n × n.
    fn kernel(
        &self,
        inputs: Matrix<'_, f64>,
        covariance: Covariance,
        threads: usize,
    ) -> Result<Vec<f64>, GaussianProcessError> {
        Ok(match covariance {
            Covariance::Nngp => self.kernels(inputs, Kinds::Nngp, threads)?.nngp,
            Covariance::Ntk => self.kernels(inputs, Kinds::NngpAndNtk, threads)?.ntk,
        })
    }
}

/// σ and the factors of σ_w and σ_b that maximise ℓ for `inputs` (n × features) and `targets` (n × C, column-major).
///
/// # Errors
/// [`GaussianProcessError`]: sizes and numbers of the inputs and targets.
pub fn fit_scales(
    network: &InfiniteNetwork,
    covariance: Covariance,
    inputs: Matrix<'_, f64>,
    targets: &[f64],
    threads: usize,
) -> Result<Evidence, GaussianProcessError> {
    let n = inputs.nrows();
    let start = fit_noise(&network.kernel(inputs, covariance, threads)?, n, targets)?;
    let has_bias = network.has_bias();
    let parameters = |at: &[f64]| {
        let bias = if has_bias { at[2] } else { 0.0 };
        [at[0], at[1], bias].map(f64::exp)
    };
    let is_within = |at: &[f64]| {
        let centre = [start.noise.ln(), 0.0, 0.0];
        at.iter()
            .zip(centre)
            .all(|(a, c)| (a - c).abs() <= -LEAST.ln())
    };
    let objective = |at: &[f64]| {
        if !is_within(at) {
            return f64::INFINITY;
        }
        let [noise, weight, bias] = parameters(at);
        let scaled = network.scaled(weight, bias);
        let value = scaled
            .kernel(inputs, covariance, threads)
            .and_then(|kernel| GaussianProcess::new(&kernel, n, targets, noise));
        // a kernel that overflows is not a likely one
        value.map_or(f64::INFINITY, |process| -process.log_marginal_likelihood())
    };
    let mut at = vec![start.noise.ln(), 0.0];
    if has_bias {
        at.push(0.0);
    }
    let mut found = minimise(&at, 0.3, TOLERANCE, EVALUATIONS, objective);
    // once more from there: a simplex may have become flat
    let again = minimise(&found.at, 0.1, TOLERANCE, EVALUATIONS, objective);
    let evaluations = found.evaluations + again.evaluations;
    if again.value < found.value {
        found = again;
    }
    let [noise, weight_factor, bias_factor] = parameters(&found.at);
    let centre = [start.noise.ln(), 0.0, 0.0];
    let is_at_limit = found
        .at
        .iter()
        .zip(centre)
        .any(|(a, c)| -LEAST.ln() - (a - c).abs() < 1e-2);
    Ok(Evidence {
        noise,
        weight_factor,
        bias_factor,
        log_marginal_likelihood: -found.value,
        evaluations,
        is_at_limit,
    })
}
