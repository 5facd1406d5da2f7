//! Priors of the weights of minibatch methods, layer by layer.

use serde::{Deserialize, Serialize};

use crate::compute::Real;
use crate::network::parameters::ParameterMatrix;

/// The prior of each layer's weights and biases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "prior", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Prior {
    /// N(0, v), with one v for all weights and one for all biases.
    Gaussian {
        /// Variance of weights, positive.
        weights: f64,
        /// Variance of biases, positive.
        biases: f64,
    },
    /// N(mean, v) with a v of its own for the weights of each layer and another for its biases, each inverse-gamma a priori
    /// with density ∝ v^−(shape+1)·e^(−rate/v), and integrated out:
    /// log p = log Γ(k/2 + a) − log Γ(a) − (k/2 + a) log(b + S/2) + a log b − (k/2) log 2π for k numbers with
    /// S = Σ (θ − mean)², so that ∇ log p = (k/2 + a)/(b + S/2)·(mean − θ).
    NormalInverseGamma {
        /// a > 0.
        shape: f64,
        /// b > 0.
        rate: f64,
        /// Of all weights and biases.
        mean: f64,
    },
}

/// The gradient of a log prior: precision·(mean − θ).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pull {
    /// Of weights and of biases.
    pub precision: [f64; 2],
    /// Of both.
    pub mean: f64,
}

/// How many numbers, and the sum of their squared distances from the prior's mean: of weights and of biases.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WeightSums {
    /// Of weights and of biases.
    pub count: [usize; 2],
    /// Of weights and of biases.
    pub squares: [f64; 2],
}

impl Default for Prior {
    /// N(0, 1), that of the NTK parametrisation.
    fn default() -> Self {
        Self::Gaussian {
            weights: 1.0,
            biases: 1.0,
        }
    }
}

impl Prior {
    /// Whether [`pull`](Self::pull) depends on the weights, so that their spread has to be known.
    fn needs_spread(&self) -> bool {
        matches!(self, Self::NormalInverseGamma { .. })
    }

    /// Mean of all weights and biases.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Gaussian { .. } => 0.0,
            Self::NormalInverseGamma { mean, .. } => mean,
        }
    }

    /// The spread of one layer's matrix of `rows` rows, the last one the biases if `has_bias`.
    pub fn spread<R: Real>(&self, matrix: &[R], rows: usize, has_bias: bool) -> WeightSums {
        let mut spread = WeightSums::default();
        let mean = self.mean();
        for unit in matrix.chunks_exact(rows.max(1)) {
            let (weights, bias) = unit.split_at(rows - usize::from(has_bias));
            for (kind, values) in [weights, bias].into_iter().enumerate() {
                spread.count[kind] += values.len();
                let squares = values.iter().map(|value| (value.to_f64() - mean).powi(2));
                spread.squares[kind] += squares.sum::<f64>();
            }
        }
        spread
    }

    /// ∇ log p of a layer with this spread.
    pub fn pull(&self, spread: WeightSums) -> Pull {
        let precision = match *self {
            Self::Gaussian { weights, biases } => [1.0 / weights, 1.0 / biases],
            Self::NormalInverseGamma { shape, rate, .. } => [0, 1].map(|kind| {
                let count = spread.count[kind] as f64;
                (0.5 * count + shape) / (rate + 0.5 * spread.squares[kind])
            }),
        };
        Pull {
            precision,
            mean: self.mean(),
        }
    }

    /// ∇ log p of one layer of `position`.
    pub(super) fn pull_of<R: Real>(&self, position: &[R], layer: &ParameterMatrix) -> Pull {
        if !self.needs_spread() {
            return self.pull(WeightSums::default());
        }
        let matrix = &position[layer.range.clone()];
        self.pull(self.spread(matrix, layer.rows, layer.has_bias))
    }

    /// log p of a layer with this spread.
    pub fn log_density(&self, spread: WeightSums) -> f64 {
        let log_two_pi = (2.0 * std::f64::consts::PI).ln();
        let of_kind = |kind: usize| {
            let (count, squares) = (spread.count[kind] as f64, spread.squares[kind]);
            match *self {
                Self::Gaussian { weights, biases } => {
                    let variance = [weights, biases][kind];
                    -0.5 * (squares / variance + count * (log_two_pi + variance.ln()))
                }
                Self::NormalInverseGamma { shape, rate, .. } => {
                    let after = 0.5 * count + shape;
                    libm::lgamma(after) - libm::lgamma(shape) - after * (rate + 0.5 * squares).ln()
                        + shape * rate.ln()
                        - 0.5 * count * log_two_pi
                }
            }
        };
        of_kind(0) + of_kind(1)
    }

    /// What is out of range, in words.
    ///
    /// # Errors
    /// The name of the number, its value and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        let positive = |name: &str, value: f64| {
            if value.is_finite() && value > 0.0 {
                return Ok(());
            }
            Err(format!(
                "the prior's {name} is {value}: it must be positive and finite"
            ))
        };
        match *self {
            Self::Gaussian { weights, biases } => {
                positive("variance of weights", weights)?;
                positive("variance of biases", biases)
            }
            Self::NormalInverseGamma { shape, rate, mean } => {
                positive("shape", shape)?;
                positive("rate", rate)?;
                if mean.is_finite() {
                    return Ok(());
                }
                Err(format!("the prior's mean is {mean}: it must be finite"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIORS: [Prior; 2] = [
        Prior::Gaussian {
            weights: 0.1,
            biases: 2.0,
        },
        Prior::NormalInverseGamma {
            shape: 0.7,
            rate: 0.3,
            mean: 0.2,
        },
    ];

    #[test]
    fn the_pull_is_the_gradient_of_the_log_density() {
        let matrix = [0.3, -0.5, 0.9, 1.1, 0.2, -0.4];
        for prior in PRIORS {
            for has_bias in [true, false] {
                let value = |matrix: &[f64]| prior.log_density(prior.spread(matrix, 3, has_bias));
                let pull = prior.pull(prior.spread(&matrix, 3, has_bias));
                for at in 0..6 {
                    let moved = |by: f64| {
                        let mut moved = matrix;
                        moved[at] += by;
                        value(&moved)
                    };
                    let numeric = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                    let kind = usize::from(has_bias && at % 3 == 2);
                    let exact = pull.precision[kind] * (pull.mean - matrix[at]);
                    assert!(
                        (numeric - exact).abs() < 1e-7 * (1.0 + exact.abs()),
                        "{prior:?}"
                    );
                }
            }
        }
    }

    /// The variance integrated out numerically: ∫ N(θ; m, v)·IG(v; a, b) dv.
    #[test]
    fn normal_inverse_gamma_is_what_its_integral_says() {
        let (prior, theta) = (PRIORS[1], [0.5, -0.1, 0.4]);
        let Prior::NormalInverseGamma {
            shape: a,
            rate: b,
            mean,
        } = prior
        else {
            unreachable!()
        };
        let squares: f64 = theta.iter().map(|t| (t - mean).powi(2)).sum();
        let density = |v: f64| {
            let normal = (-0.5 * squares / v).exp() / (2.0 * std::f64::consts::PI * v).powf(1.5);
            normal * b.powf(a) / libm::tgamma(a) * v.powf(-a - 1.0) * (-b / v).exp()
        };
        // over log v
        let step = 0.001;
        let integral: f64 = (-20_000..40_000)
            .map(|k| (f64::from(k) * step).exp())
            .map(|v| density(v) * v * step)
            .sum();
        let found = prior.log_density(prior.spread(&theta, 3, false));
        // the biases, of which there are none, add nothing
        assert!(
            (integral.ln() - found).abs() < 1e-6,
            "{} {found}",
            integral.ln()
        );
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let wrong = Prior::Gaussian {
            weights: 0.0,
            biases: 1.0,
        };
        assert!(
            wrong
                .check()
                .unwrap_err()
                .contains("variance of weights is 0")
        );
        let wrong = Prior::NormalInverseGamma {
            shape: 1.0,
            rate: f64::NAN,
            mean: 0.0,
        };
        assert!(wrong.check().unwrap_err().contains("rate"));
        assert_eq!(Prior::default().check(), Ok(()));
    }
}
