//! Counts k_i ~ Poisson(exp f_i), f a Gaussian process with covariance K = α² exp(−(x_i − x_j)²/2ρ²) + 10⁻¹⁰ I,
//! ρ ~ Gamma(25, 4), α ~ half-normal of scale 2. x = (log ρ, log α, t), f = L t, K = LLᵀ, t ~ N(0, I).
//!
//! dL = L Φ(L⁻¹ dK L⁻ᵀ), Φ the lower triangle with the diagonal halved (Murray 2016, "Differentiation of the Cholesky
//! decomposition", Equation 8).

use serde_json::Value;

use super::files::numbers;
use super::model::{Model, cholesky, dot, half_normal, solve_lower};

/// The data.
pub struct PoissonProcess {
    x: Vec<f64>,
    counts: Vec<f64>,
}

type Matrix = Vec<Vec<f64>>;

impl PoissonProcess {
    pub fn new(data: &Value) -> Self {
        Self {
            x: numbers(&data["x"]),
            counts: numbers(&data["k"]),
        }
    }

    fn matrix(&self, entry: impl Fn(f64, f64) -> f64) -> Matrix {
        let row = |a: &f64| self.x.iter().map(|b| entry(*a, *b)).collect();
        self.x.iter().map(row).collect()
    }

    fn factor(&self, rho: f64, alpha: f64) -> Option<Matrix> {
        let mut k = self.matrix(|a, b| alpha * alpha * (-0.5 * ((a - b) / rho).powi(2)).exp());
        for (i, row) in k.iter_mut().enumerate() {
            row[i] += 1e-10;
        }
        cholesky(k)
    }

    /// log density, L, and the derivative by f; nothing where K is singular to rounding.
    fn parts(&self, x: &[f64]) -> Option<(f64, Matrix, Vec<f64>)> {
        let (rho, alpha, t) = (x[0].exp(), x[1].exp(), &x[2..]);
        let factor = self.factor(rho, alpha)?;
        let (prior, _) = half_normal(x[1], 2.0);
        let mut value = 25.0 * x[0] - 4.0 * rho + prior - 0.5 * dot(t, t);
        let mut by_f = multiply_lower(&factor, t);
        for (f, k) in by_f.iter_mut().zip(&self.counts) {
            value += k * *f - f.exp();
            *f = k - f.exp();
        }
        Some((value, factor, by_f))
    }
}

/// L t.
fn multiply_lower(factor: &Matrix, t: &[f64]) -> Vec<f64> {
    factor.iter().map(|row| dot(row, t)).collect()
}

/// dL t for a change dK.
fn change(factor: &Matrix, dk: &Matrix, t: &[f64]) -> Vec<f64> {
    // rows of dK, symmetric, are its columns: A = L⁻¹ dK, then L⁻¹Aᵀ, symmetric again
    let columns: Vec<Vec<f64>> = dk
        .iter()
        .map(|column| solve_lower(factor, column))
        .collect();
    let transposed =
        |m: &Matrix, i: usize| -> Vec<f64> { m.iter().map(|column| column[i]).collect() };
    let inner: Vec<Vec<f64>> = (0..t.len())
        .map(|i| solve_lower(factor, &transposed(&columns, i)))
        .collect();
    let lower: Vec<f64> = inner
        .iter()
        .enumerate()
        .map(|(i, row)| dot(&row[..i], &t[..i]) + 0.5 * row[i] * t[i])
        .collect();
    multiply_lower(factor, &lower)
}

impl Model for PoissonProcess {
    fn names(&self) -> Vec<String> {
        let f = (1..=self.x.len()).map(|i| format!("f[{i}]"));
        ["rho".to_owned(), "alpha".to_owned()]
            .into_iter()
            .chain(f)
            .collect()
    }

    fn value(&self, x: &[f64]) -> f64 {
        self.parts(x).map_or(f64::NAN, |(value, _, _)| value)
    }

    fn log_density(&self, x: &[f64], gradient: &mut [f64]) -> f64 {
        let (rho, alpha, t) = (x[0].exp(), x[1].exp(), &x[2..]);
        let Some((value, factor, by_f)) = self.parts(x) else {
            return f64::NAN;
        };
        let (_, slope) = half_normal(x[1], 2.0);
        let entry = |a: f64, b: f64| {
            let square = ((a - b) / rho).powi(2);
            (alpha * alpha * (-0.5 * square).exp(), square)
        };
        let by_log_rho = self.matrix(|a, b| entry(a, b).0 * entry(a, b).1);
        let by_log_alpha = self.matrix(|a, b| 2.0 * entry(a, b).0);
        gradient[0] = 25.0 - 4.0 * rho + dot(&by_f, &change(&factor, &by_log_rho, t));
        gradient[1] = slope + dot(&by_f, &change(&factor, &by_log_alpha, t));
        for (i, g) in gradient[2..].iter_mut().enumerate() {
            let column: f64 = factor.iter().zip(&by_f).map(|(row, g)| row[i] * g).sum();
            *g = column - t[i];
        }
        value
    }

    fn constrain(&self, x: &[f64]) -> Vec<f64> {
        let (rho, alpha) = (x[0].exp(), x[1].exp());
        let factor = self.factor(rho, alpha).unwrap();
        let f = multiply_lower(&factor, &x[2..]);
        [rho, alpha].into_iter().chain(f).collect()
    }

    fn unconstrain(&self, parameters: &[f64]) -> Vec<f64> {
        let (rho, alpha) = (parameters[0], parameters[1]);
        let factor = self.factor(rho, alpha).unwrap();
        let t = solve_lower(&factor, &parameters[2..]);
        [rho.ln(), alpha.ln()].into_iter().chain(t).collect()
    }
}
