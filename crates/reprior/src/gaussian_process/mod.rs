//! Gaussian process regression with given kernel matrices: posterior, draws, marginal likelihood and its maximum.
//!
//! y = f(x) + σε for C outputs with the same prior covariance K, independent of one another. With K_s = K + σ²I
//! (Rasmussen & Williams 2006, algorithm 2.1):
//!
//! * mean K*ᵀK_s⁻¹Y, covariance K** − K*ᵀK_s⁻¹K*;
//! * ℓ = −½ Σ_j y_jᵀK_s⁻¹y_j − (C/2) log det K_s − (nC/2) log 2π.
//!
//! What it means depends on the kernel. With the NNGP kernel it is the exact posterior of an infinitely wide Bayesian network
//! (Neal 1996; Lee et al. 2018). With the NTK the mean is that of infinitely many infinitely wide networks, each trained
//! by gradient flow to the minimum of ½‖Y − f‖²; with σ > 0 of ½‖Y − f‖² + ½σ²‖θ − θ₀‖², on average over initial weights
//! θ₀ (Jacot, Gabriel & Hongler 2018; Lee et al. 2019). The variance is then that of a Gaussian process whose prior
//! covariance is Θ, a network linear in all its weights; how much trained networks differ from one another is
//! [`GaussianProcess::trained_ensemble_variance`].
//!
//! n³/3 operations once for all outputs, n² a test input and for each output; 8n² bytes beside the kernel.

mod leave_one_out;
mod simplex;
mod varying_noise;

// The search for noise and scales, for the program's runs; it changes without notice.
#[doc(hidden)]
pub mod evidence;
#[doc(hidden)]
pub mod noise;
#[doc(hidden)]
pub mod prior_scales;

pub(crate) use leave_one_out::log_density;
use thiserror::Error;

use crate::compute::{Cholesky, NotPositiveDefinite, Stream, dot, matrix, matrix_mut, multiply};
use crate::network::infinite::InfiniteError;

/// Why there is no posterior.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum GaussianProcessError {
    /// A matrix of the wrong size.
    #[error("{name}: {given} numbers, {needed} are needed")]
    Length {
        /// Which.
        name: &'static str,
        /// How many numbers it has.
        given: usize,
        /// How many it should have.
        needed: usize,
    },
    /// No targets, or one that is NaN or infinite.
    #[error("targets must be there and finite")]
    Targets,
    /// σ < 0, NaN or infinite.
    #[error("the noise σ is {0}: it must be zero or positive, and finite")]
    Noise(f64),
    /// The kernel with σ² on its diagonal cannot be factorised.
    #[error(transparent)]
    NotPositiveDefinite(#[from] NotPositiveDefinite),
    /// The kernel's eigenvalues cannot be found.
    #[error("the kernel matrix has an entry that is not finite")]
    Kernel,
    /// The network's kernel cannot be computed.
    #[error(transparent)]
    Network(#[from] InfiniteError),
}

/// A posterior Gaussian process.
pub struct GaussianProcess {
    outputs: usize,
    noise: f64,
    cholesky: Cholesky,
    jitter: u32,
    /// K_s⁻¹Y, n × C.
    weights: Vec<f64>,
    /// Σ_j y_jᵀK_s⁻¹y_j.
    fit: f64,
}

/// Variances at test inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Variances {
    /// One for each test input, never below 0.
    pub values: Vec<f64>,
    /// How many came out below 0 by rounding and were set to 0.
    pub clamped: u64,
}

impl Variances {
    fn new(raw: impl Iterator<Item = f64>) -> Self {
        let mut clamped = 0;
        let values = raw.map(|variance| {
            let is_below = variance < 0.0;
            clamped += u64::from(is_below);
            if is_below { 0.0 } else { variance }
        });
        Self {
            values: values.collect(),
            clamped,
        }
    }
}

fn check(name: &'static str, given: usize, needed: usize) -> Result<(), GaussianProcessError> {
    if given == needed {
        Ok(())
    } else {
        Err(GaussianProcessError::Length {
            name,
            given,
            needed,
        })
    }
}

/// Rows of the kernel that `targets` go with, once everything is of a size.
fn outputs(kernel: &[f64], n: usize, targets: &[f64]) -> Result<usize, GaussianProcessError> {
    check("the kernel", kernel.len(), n * n)?;
    if n == 0 || targets.is_empty() || !targets.iter().all(|y| y.is_finite()) {
        return Err(GaussianProcessError::Targets);
    }
    let outputs = targets.len() / n;
    check("targets", targets.len(), outputs.max(1) * n)?;
    Ok(outputs)
}

impl GaussianProcess {
    /// The posterior given `targets` (n × C, column-major) at n inputs with prior covariance `kernel` (n × n, of which the
    /// lower half is read) and noise σ.
    ///
    /// # Errors
    /// [`GaussianProcessError`]: sizes that do not agree, numbers out of range, a kernel that is not positive definite.
    pub fn new(
        kernel: &[f64],
        n: usize,
        targets: &[f64],
        noise: f64,
    ) -> Result<Self, GaussianProcessError> {
        let outputs = outputs(kernel, n, targets)?;
        if !(noise.is_finite() && noise >= 0.0) {
            return Err(GaussianProcessError::Noise(noise));
        }
        let mut cholesky = Cholesky::new(n);
        let on_diagonal = noise * noise;
        let jitter = cholesky.factorise(|row, column| {
            let k = kernel[column * n + row];
            if row == column { k + on_diagonal } else { k }
        })?;
        let mut weights = targets.to_vec();
        cholesky.solve_lower(&mut weights, outputs);
        let fit = dot(&weights, &weights);
        cholesky.solve_upper(&mut weights, outputs);
        Ok(Self {
            outputs,
            noise,
            cholesky,
            jitter,
            weights,
            fit,
        })
    }

    /// Training inputs n.
    pub fn size(&self) -> usize {
        self.cholesky.size()
    }

    /// Outputs C.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// σ.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// How many times the diagonal had to be raised before the factorisation went through; 0 if K_s is positive definite to
    /// working precision. See [`Cholesky::factorise`] for the amounts.
    pub fn jitter(&self) -> u32 {
        self.jitter
    }

    /// ℓ, in nats.
    pub fn log_marginal_likelihood(&self) -> f64 {
        let c = self.outputs as f64;
        let constant = self.size() as f64 * std::f64::consts::TAU.ln();
        -0.5 * self.fit - 0.5 * c * (self.cholesky.log_determinant() + constant)
    }

    /// ∂ℓ/∂t where ∂K_s/∂t is the symmetric matrix `derivative` (n × n): ½ Σ_j α_jᵀK'α_j − (C/2) tr K_s⁻¹K', α = K_s⁻¹Y.
    ///
    /// # Errors
    /// [`GaussianProcessError::Length`].
    pub fn gradient(&self, derivative: &[f64]) -> Result<f64, GaussianProcessError> {
        let (n, c) = (self.size(), self.outputs);
        check("the derivative", derivative.len(), n * n)?;
        let (mut inverse, mut work) = (vec![0.0; n * n], vec![0.0; n * n]);
        self.cholesky.inverse(&mut inverse, &mut work);
        drop(work);
        let mut product = vec![0.0; n * c];
        multiply(
            matrix_mut(&mut product, n, c),
            false,
            1.0,
            matrix(derivative, n, n),
            matrix(&self.weights, n, c),
        );
        let trace: f64 = (0..n)
            .map(|j| {
                let below = j * n + j + 1..(j + 1) * n;
                inverse[j * (n + 1)] * derivative[j * (n + 1)]
                    + 2.0 * dot(&inverse[below.clone()], &derivative[below])
            })
            .sum();
        Ok(0.5 * dot(&self.weights, &product) - 0.5 * c as f64 * trace)
    }

    /// ∂ℓ/∂log σ = σ²(Σ_j ‖α_j‖² − C tr K_s⁻¹).
    pub fn noise_gradient(&self) -> f64 {
        let trace: f64 = self.cholesky.inverse_diagonal().iter().sum();
        let fit = dot(&self.weights, &self.weights);
        self.noise.powi(2) * (fit - self.outputs as f64 * trace)
    }

    /// Posterior means of f, m × C, for `cross` = K* (n × m, training inputs the rows).
    ///
    /// # Errors
    /// [`GaussianProcessError::Length`].
    pub fn mean(&self, cross: &[f64]) -> Result<Vec<f64>, GaussianProcessError> {
        let (n, m) = (self.size(), self.tests(cross)?);
        let mut mean = vec![0.0; m * self.outputs];
        multiply(
            matrix_mut(&mut mean, m, self.outputs),
            false,
            1.0,
            matrix(cross, n, m).transpose(),
            matrix(&self.weights, n, self.outputs),
        );
        Ok(mean)
    }

    /// Posterior variances of f at m test inputs, the same for every output, without the noise; `prior` are the prior ones.
    ///
    /// # Errors
    /// [`GaussianProcessError::Length`].
    pub fn variance(
        &self,
        cross: &[f64],
        prior: &[f64],
    ) -> Result<Variances, GaussianProcessError> {
        let (n, m) = (self.size(), self.tests(cross)?);
        check("prior variances", prior.len(), m)?;
        let mut half = cross.to_vec();
        self.cholesky.solve_lower(&mut half, m);
        let variances = half.chunks(n).zip(prior);
        let variances = variances.map(|(half, prior)| prior - dot(half, half));
        Ok(Variances::new(variances))
    }

    /// Posterior covariance of f between m test inputs, m × m; `prior` (m × m) is the prior one.
    ///
    /// # Errors
    /// [`GaussianProcessError::Length`].
    pub fn covariance(
        &self,
        cross: &[f64],
        prior: &[f64],
    ) -> Result<Vec<f64>, GaussianProcessError> {
        let (n, m) = (self.size(), self.tests(cross)?);
        check("the prior covariance", prior.len(), m * m)?;
        let mut half = cross.to_vec();
        self.cholesky.solve_lower(&mut half, m);
        let (half, mut covariance) = (matrix(&half, n, m), prior.to_vec());
        multiply(
            matrix_mut(&mut covariance, m, m),
            true,
            -1.0,
            half.transpose(),
            half,
        );
        Ok(covariance)
    }

    /// Exact draws of f at the test inputs, `count` of them one after the other, each m × C; and how many times the diagonal
    /// of the posterior covariance had to be raised, as for [`jitter`](Self::jitter). m³/3 operations once, m²C a draw.
    ///
    /// # Errors
    /// [`GaussianProcessError`]: sizes, or a posterior covariance that is not positive semi-definite.
    pub fn draws(
        &self,
        cross: &[f64],
        prior: &[f64],
        count: usize,
        stream: &mut Stream,
    ) -> Result<(Vec<f64>, u32), GaussianProcessError> {
        let mean = self.mean(cross)?;
        let (covariance, m) = (self.covariance(cross, prior)?, self.tests(cross)?);
        let mut cholesky = Cholesky::new(m);
        let jitter = cholesky.factorise(|row, column| covariance[column * m + row])?;
        let mut noise = vec![0.0_f64; m * self.outputs * count];
        stream.fill_normal(&mut noise);
        let mut draws: Vec<f64> = std::iter::repeat_n(&mean, count)
            .flatten()
            .copied()
            .collect();
        cholesky.add_correlated(&mut draws, &noise);
        Ok((draws, jitter))
    }

    /// With the NTK as this process's kernel: the variance of f over infinitely wide networks that were trained to the end
    /// from different initial weights, from the NNGP kernel (`nngp` n × n, `cross` n × m, `prior` m):
    /// K** + AKAᵀ − 2AK*, A = Θ*ᵀ(Θ + σ²I)⁻¹ (Lee et al. 2019, equation 16; `ntk_cross` is Θ*).
    ///
    /// # Errors
    /// [`GaussianProcessError::Length`].
    pub fn trained_ensemble_variance(
        &self,
        ntk_cross: &[f64],
        nngp: &[f64],
        cross: &[f64],
        prior: &[f64],
    ) -> Result<Variances, GaussianProcessError> {
        let (n, m) = (self.size(), self.tests(ntk_cross)?);
        check("the NNGP kernel", nngp.len(), n * n)?;
        check("the NNGP kernel with test inputs", cross.len(), n * m)?;
        check("prior variances", prior.len(), m)?;
        let mut a = ntk_cross.to_vec();
        self.cholesky.solve_lower(&mut a, m);
        self.cholesky.solve_upper(&mut a, m);
        let mut product = vec![0.0; n * m];
        multiply(
            matrix_mut(&mut product, n, m),
            false,
            1.0,
            matrix(nngp, n, n),
            matrix(&a, n, m),
        );
        let columns = a
            .chunks(n)
            .zip(product.chunks(n))
            .zip(cross.chunks(n))
            .zip(prior);
        let variance = columns
            .map(|(((a, product), cross), prior)| prior + dot(a, product) - 2.0 * dot(a, cross));
        Ok(Variances::new(variance))
    }

    /// Test inputs of a matrix with training inputs.
    fn tests(&self, cross: &[f64]) -> Result<usize, GaussianProcessError> {
        let n = self.size();
        check(
            "the kernel with test inputs",
            cross.len(),
            cross.len() / n * n,
        )?;
        Ok(cross.len() / n)
    }
}
