//! GARCH(1, 1): y_t ~ N(μ, v_t), v_t = α₀ + α₁(y_{t−1} − μ)² + β₁v_{t−1}, with flat priors on α₀ > 0, 0 < α₁ < 1,
//! 0 < β₁ < 1 − α₁. x = (μ, log α₀, logit α₁, logit q), β₁ = (1 − α₁) q.

use serde_json::Value;

use super::files::{number, numbers};
use super::model::{Model, logistic, logit};

/// The data.
pub struct Garch {
    y: Vec<f64>,
    /// v₁.
    first: f64,
}

impl Garch {
    pub fn new(data: &Value) -> Self {
        Self {
            y: numbers(&data["y"]),
            first: number(&data["sigma1"]).powi(2),
        }
    }
}

impl Model for Garch {
    fn names(&self) -> Vec<String> {
        ["mu", "alpha0", "alpha1", "beta1"]
            .map(str::to_owned)
            .to_vec()
    }

    fn log_density(&self, x: &[f64], gradient: &mut [f64]) -> f64 {
        let parameters = self.constrain(x);
        let [mu, alpha0, alpha1, beta1] = parameters[..] else {
            unreachable!("four parameters")
        };
        let q = logistic(x[3]);
        // the Jacobians of exp and of the two logistic functions, the second scaled by 1 − α₁
        let mut value = x[1] + alpha1.ln() + 2.0 * (1.0 - alpha1).ln() + q.ln() + (1.0 - q).ln();
        // v, its derivatives by the four parameters, and those of the log-density
        let (mut v, mut dv, mut by) = (self.first, [0.0; 4], [0.0; 4]);
        for (t, y) in self.y.iter().enumerate() {
            if t > 0 {
                let last = self.y[t - 1] - mu;
                dv = [
                    beta1 * dv[0] - 2.0 * alpha1 * last,
                    beta1 * dv[1] + 1.0,
                    beta1 * dv[2] + last * last,
                    beta1 * dv[3] + v,
                ];
                v = alpha0 + alpha1 * last * last + beta1 * v;
            }
            let residual = y - mu;
            value -= 0.5 * (v.ln() + residual * residual / v);
            let by_v = 0.5 * (residual * residual / v - 1.0) / v;
            by[0] += residual / v;
            for (by, dv) in by.iter_mut().zip(dv) {
                *by += by_v * dv;
            }
        }
        gradient[0] = by[0];
        gradient[1] = 1.0 + alpha0 * by[1];
        gradient[2] = 1.0 - 3.0 * alpha1 + alpha1 * (1.0 - alpha1) * (by[2] - q * by[3]);
        gradient[3] = 1.0 - 2.0 * q + (1.0 - alpha1) * q * (1.0 - q) * by[3];
        value
    }

    fn constrain(&self, x: &[f64]) -> Vec<f64> {
        let alpha1 = logistic(x[2]);
        vec![x[0], x[1].exp(), alpha1, (1.0 - alpha1) * logistic(x[3])]
    }

    fn unconstrain(&self, parameters: &[f64]) -> Vec<f64> {
        let [mu, alpha0, alpha1, beta1] = parameters[..] else {
            unreachable!("four parameters")
        };
        vec![
            mu,
            alpha0.ln(),
            logit(alpha1),
            logit(beta1 / (1.0 - alpha1)),
        ]
    }
}
