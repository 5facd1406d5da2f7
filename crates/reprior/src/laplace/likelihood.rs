//! The curvature H of −log p(y | f) in the outputs f of one row, as H = Σ_c s_c·s_cᵀ: the H of the generalised Gauss-Newton
//! matrix Σ JᵀHJ (Schraudolph 2002), which is the Fisher information of the outputs; or of the empirical Fisher matrix, whose one
//! s is the derivative of −log p at the row's own target.
//!
//! | likelihood | H | s_c |
//! |---|---|---|
//! | Gaussian, Student-t | diag(h), h = 1/σ² and (ν + 1)/((ν + 3)σ²) | √h_c·e_c |
//! | categorical | diag(p) − p·pᵀ, p = softmax(f) | √p_c·(e_c − p) |
//! | Bernoulli | p(1 − p), p = 1/(1 + e^{−f}) | √(p(1 − p)) |
//! | Poisson | m·e^f | √(m·e^f) |

use std::fmt::Debug;

use crate::compute::{Real, add_scaled};
use crate::model::likelihood::{Derivatives, Likelihood};

/// The H of each row.
pub trait RowCurvature<R>: Debug + Sync {
    /// How many s_c there are, of a network with so many outputs.
    fn count(&self, outputs: usize) -> usize;

    /// `out` ← s_c at the outputs of a row.
    fn factor(&self, row: usize, outputs: &[R], c: usize, out: &mut [R]);

    /// `tangent` ← H·`tangent`.
    fn multiply(&self, row: usize, outputs: &[R], tangent: &mut [R]);

    /// Adds H (C × C) to `sum`.
    fn add_matrix(&self, row: usize, outputs: &[R], sum: &mut [f64]);

    /// Adds the diagonal of H to `sum`.
    fn add_diagonal(&self, row: usize, outputs: &[R], sum: &mut [f64]);
}

/// The empirical Fisher matrix's H: g·gᵀ with g the derivative of −log p in a row's outputs.
#[derive(Debug)]
pub struct EmpiricalFisher<'a> {
    /// n × C, row after row.
    pub targets: &'a [f64],
    /// Of the targets.
    pub likelihood: &'a dyn Likelihood,
    /// One σ for each output.
    pub scales: &'a [f64],
}

impl<R: Real> RowCurvature<R> for EmpiricalFisher<'_> {
    fn count(&self, _: usize) -> usize {
        1
    }

    fn factor(&self, row: usize, outputs: &[R], _: usize, out: &mut [R]) {
        let count = outputs.len();
        let outputs: Vec<f64> = outputs.iter().map(|f| f.to_f64()).collect();
        let (mut by_output, mut by_scale) = (vec![0.0; count], vec![0.0; count]);
        let derivatives = Derivatives {
            outputs: &mut by_output,
            log_scales: &mut by_scale,
        };
        let targets = &self.targets[row * count..(row + 1) * count];
        self.likelihood
            .log_density(targets, &outputs, self.scales, Some(derivatives));
        for (out, value) in out.iter_mut().zip(by_output) {
            *out = R::from_f64(value);
        }
    }

    fn multiply(&self, row: usize, outputs: &[R], tangent: &mut [R]) {
        let mut gradient = vec![R::ZERO; outputs.len()];
        self.factor(row, outputs, 0, &mut gradient);
        let along: R = gradient.iter().zip(&*tangent).map(|(&g, &t)| g * t).sum();
        for (value, g) in tangent.iter_mut().zip(gradient) {
            *value = along * g;
        }
    }

    fn add_matrix(&self, row: usize, outputs: &[R], sum: &mut [f64]) {
        let mut gradient = vec![R::ZERO; outputs.len()];
        self.factor(row, outputs, 0, &mut gradient);
        for (column, g) in sum.chunks_exact_mut(outputs.len()).zip(&gradient) {
            for (sum, other) in column.iter_mut().zip(&gradient) {
                *sum += g.to_f64() * other.to_f64();
            }
        }
    }

    fn add_diagonal(&self, row: usize, outputs: &[R], sum: &mut [f64]) {
        let mut gradient = vec![R::ZERO; outputs.len()];
        self.factor(row, outputs, 0, &mut gradient);
        for (sum, g) in sum.iter_mut().zip(&gradient) {
            *sum += g.to_f64().powi(2);
        }
    }
}

/// How −log p curves in the outputs of one row.
#[derive(Debug, Clone, PartialEq)]
pub enum OutputCurvature {
    /// The same diagonal H for every row, one number for each output.
    Constant(Vec<f64>),
    /// Classes with logits as outputs.
    Categorical,
    /// Two classes, for each output.
    Bernoulli,
    /// Counts with mean m·e^f, one m for each output.
    Poisson(Vec<f64>),
}

impl OutputCurvature {
    /// Of a Gaussian likelihood with a σ for each output.
    pub fn gaussian(scales: &[f64]) -> Self {
        Self::Constant(scales.iter().map(|sigma| sigma.powi(-2)).collect())
    }

    /// H of one output, where H is diagonal.
    fn entry(&self, c: usize, output: f64) -> f64 {
        match self {
            Self::Constant(values) => values[c],
            Self::Bernoulli => {
                let p = 1.0 / (1.0 + (-output).exp());
                p * (1.0 - p)
            }
            Self::Poisson(means) => means[c] * output.exp(),
            Self::Categorical => f64::NAN,
        }
    }

    /// Whether the likelihood is Gaussian or close to it: the predictive is a Gaussian too, and needs no link.
    pub fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_))
    }
}

impl<R: Real> RowCurvature<R> for OutputCurvature {
    fn count(&self, outputs: usize) -> usize {
        outputs
    }

    fn factor(&self, _: usize, outputs: &[R], c: usize, out: &mut [R]) {
        out.fill(R::ZERO);
        if *self != Self::Categorical {
            out[c] = R::from_f64(self.entry(c, outputs[c].to_f64()).sqrt());
            return;
        }
        let (largest, total) = log_total(outputs);
        let root = ((outputs[c].to_f64() - largest).exp() / total).sqrt();
        for (out, f) in out.iter_mut().zip(outputs) {
            *out = R::from_f64(-root * (f.to_f64() - largest).exp() / total);
        }
        out[c] += R::from_f64(root);
    }

    fn multiply(&self, _: usize, outputs: &[R], tangent: &mut [R]) {
        if *self != Self::Categorical {
            for (c, (value, f)) in tangent.iter_mut().zip(outputs).enumerate() {
                *value *= R::from_f64(self.entry(c, f.to_f64()));
            }
            return;
        }
        let (largest, total) = log_total(outputs);
        let p = |f: &R| (f.to_f64() - largest).exp() / total;
        let pairs = outputs.iter().zip(&*tangent);
        let mean: f64 = pairs.map(|(f, value)| p(f) * value.to_f64()).sum();
        for (f, value) in outputs.iter().zip(tangent) {
            *value = R::from_f64(p(f) * (value.to_f64() - mean));
        }
    }

    fn add_matrix(&self, row: usize, outputs: &[R], sum: &mut [f64]) {
        let count = outputs.len();
        let mut diagonal = vec![0.0; count];
        if *self == Self::Categorical {
            let (largest, total) = log_total(outputs);
            let p = |f: &R| (f.to_f64() - largest).exp() / total;
            diagonal.extend(outputs.iter().map(p));
            let probabilities = diagonal.split_off(count);
            for (column, own) in sum.chunks_exact_mut(count).zip(&probabilities) {
                add_scaled(column, -own, &probabilities);
            }
            diagonal = probabilities;
        } else {
            RowCurvature::<R>::add_diagonal(self, row, outputs, &mut diagonal);
        }
        for (c, own) in diagonal.into_iter().enumerate() {
            sum[c * (count + 1)] += own;
        }
    }

    fn add_diagonal(&self, _: usize, outputs: &[R], sum: &mut [f64]) {
        let (largest, total) = match self {
            Self::Categorical => log_total(outputs),
            _ => (0.0, 1.0),
        };
        for (c, (sum, f)) in sum.iter_mut().zip(outputs).enumerate() {
            *sum += match self {
                Self::Categorical => {
                    let p = (f.to_f64() - largest).exp() / total;
                    p * (1.0 - p)
                }
                _ => self.entry(c, f.to_f64()),
            };
        }
    }
}

/// The largest output, and Σ e^{f − largest}.
fn log_total<R: Real>(outputs: &[R]) -> (f64, f64) {
    let values = || outputs.iter().map(|f| f.to_f64());
    let largest = values().fold(f64::NEG_INFINITY, f64::max);
    (largest, values().map(|f| (f - largest).exp()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(curvature: &OutputCurvature, outputs: &[f64; 3]) -> [f64; 9] {
        let mut matrix = [0.0; 9];
        for (c, column) in matrix.chunks_exact_mut(3).enumerate() {
            column[c] = 1.0;
            curvature.multiply(0, outputs, column);
        }
        matrix
    }

    /// Σ s_c·s_cᵀ = H for every likelihood; and of classes H = diag(p) − p·pᵀ.
    #[test]
    fn factors_multiply_to_the_curvature() {
        let outputs = [0.3, -1.2, 2.0];
        for curvature in [
            OutputCurvature::gaussian(&[0.5, 1.0, 2.0]),
            OutputCurvature::Categorical,
            OutputCurvature::Bernoulli,
            OutputCurvature::Poisson(vec![1.0, 2.0, 0.1]),
        ] {
            let matrix = matrix(&curvature, &outputs);
            let mut sum = [0.0; 9];
            for c in 0..3 {
                let mut factor = [0.0; 3];
                curvature.factor(0, &outputs, c, &mut factor);
                for at in 0..9 {
                    sum[at] += factor[at / 3] * factor[at % 3];
                }
            }
            let (mut added, mut diagonal) = ([0.0; 9], [0.0; 3]);
            curvature.add_matrix(0, &outputs, &mut added);
            curvature.add_diagonal(0, &outputs, &mut diagonal);
            for at in 0..9 {
                assert!((sum[at] - matrix[at]).abs() < 1e-14, "{curvature:?}");
                assert!((added[at] - matrix[at]).abs() < 1e-14, "{curvature:?}");
            }
            for c in 0..3 {
                assert!((diagonal[c] - matrix[4 * c]).abs() < 1e-14, "{curvature:?}");
            }
        }
        let matrix = matrix(&OutputCurvature::Categorical, &outputs);
        let total: f64 = outputs.iter().map(|f| f.exp()).sum();
        let p = outputs.map(|f| f.exp() / total);
        assert!((matrix[1] + p[0] * p[1]).abs() < 1e-15);
        assert!((matrix[4] - p[1] * (1.0 - p[1])).abs() < 1e-15);
    }
}
