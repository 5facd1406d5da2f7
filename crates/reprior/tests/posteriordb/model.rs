//! A model on the unconstrained space, and its target after an affine change of variables.

use reprior::posterior::{EvaluationError, Target};

/// A posterior density whose parameters are functions of an unconstrained vector x.
pub trait Model: Sync {
    /// Names of the parameters as the reference draws have them.
    fn names(&self) -> Vec<String>;

    /// log density of x up to a constant, the logarithm of the Jacobian of the parameters included, and its gradient.
    fn log_density(&self, x: &[f64], gradient: &mut [f64]) -> f64;

    /// The log density alone.
    fn value(&self, x: &[f64]) -> f64 {
        self.log_density(x, &mut vec![0.0; x.len()])
    }

    /// The parameters at x, in the order of `names`.
    fn constrain(&self, x: &[f64]) -> Vec<f64>;

    /// x from the parameters.
    fn unconstrain(&self, parameters: &[f64]) -> Vec<f64>;
}

/// x = m + S z with S lower triangular. The samplers' identity mass matrix then fits, whatever the units of x. Any m
/// and any invertible S leave the law of x as it is; here they are the mean and the Cholesky factor of the covariance
/// of reference draws, stretched so that a tail is not beyond the standard normal's.
#[derive(Clone)]
pub struct Whitening {
    mean: Vec<f64>,
    factor: Vec<Vec<f64>>,
}

const STRETCH: f64 = 1.2;

impl Whitening {
    /// From vectors x.
    pub fn new(draws: &[Vec<f64>]) -> Self {
        let (n, dim) = (draws.len() as f64, draws[0].len());
        let mean: Vec<f64> = (0..dim)
            .map(|i| draws.iter().map(|x| x[i]).sum::<f64>() / n)
            .collect();
        let product = |i: usize, j: usize| {
            let terms = draws.iter().map(|x| (x[i] - mean[i]) * (x[j] - mean[j]));
            STRETCH * STRETCH * terms.sum::<f64>() / n
        };
        let covariance = (0..dim)
            .map(|i| (0..dim).map(|j| product(i, j)).collect())
            .collect();
        let factor = cholesky(covariance).unwrap();
        Self { mean, factor }
    }

    /// x = m + S z.
    pub fn unwhiten(&self, z: &[f64]) -> Vec<f64> {
        let rows = self.mean.iter().zip(&self.factor).enumerate();
        rows.map(|(i, (m, row))| m + dot(&row[..=i], &z[..=i]))
            .collect()
    }
}

/// The target of z: ℓ(z) = log density(x) + ½‖z‖².
pub struct Whitened<'a> {
    pub model: &'a dyn Model,
    pub whitening: Whitening,
}

impl Target for Whitened<'_> {
    type Real = f64;

    fn dim(&self) -> usize {
        self.whitening.mean.len()
    }

    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        let x = self.whitening.unwhiten(z);
        Ok(self.model.value(&x) + 0.5 * dot(z, z))
    }

    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        let x = self.whitening.unwhiten(z);
        let mut of_x = vec![0.0; x.len()];
        let value = self.model.log_density(&x, &mut of_x);
        for (j, (g, z)) in gradient.iter_mut().zip(z).enumerate() {
            let column = self.whitening.factor.iter().zip(&of_x).skip(j);
            *g = z + column.map(|(row, g)| row[j] * g).sum::<f64>();
        }
        Ok(value + 0.5 * dot(z, z))
    }
}

/// ⟨a, b⟩.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The lower factor, zeros above, of a symmetric matrix; `None` if it is not positive definite.
pub fn cholesky(mut a: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    for j in 0..a.len() {
        for i in 0..=j {
            let rest = a[j][i] - dot(&a[j][..i], &a[i][..i]);
            a[j][i] = if i < j {
                rest / a[i][i]
            } else if rest > 0.0 {
                rest.sqrt()
            } else {
                return None;
            };
        }
        a[j][j + 1..].fill(0.0);
    }
    Some(a)
}

/// L⁻¹b for lower triangular L.
pub fn solve_lower(factor: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let mut out: Vec<f64> = Vec::with_capacity(b.len());
    for (i, (row, b)) in factor.iter().zip(b).enumerate() {
        out.push((b - dot(&row[..i], &out)) / row[i]);
    }
    out
}

/// 1/(1 + e^{−x}).
pub fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Its inverse.
pub fn logit(p: f64) -> f64 {
    (p / (1.0 - p)).ln()
}

/// log density of σ = e^s under a half-Cauchy prior of this scale, with the Jacobian; and its derivative by s.
pub fn half_cauchy(s: f64, scale: f64) -> (f64, f64) {
    let square = (s.exp() / scale).powi(2);
    (s - square.ln_1p(), 1.0 - 2.0 * square / (1.0 + square))
}

/// The same for a half-normal prior.
pub fn half_normal(s: f64, scale: f64) -> (f64, f64) {
    let square = (s.exp() / scale).powi(2);
    (s - 0.5 * square, 1.0 - square)
}
