//! Eight schools, not centred: y_j ~ N(θ_j, σ_j²), θ_j = μ + τ t_j, t_j ~ N(0, 1), μ ~ N(0, 5²), τ ~ half-Cauchy of
//! scale 5. x = (t, μ, log τ).

use serde_json::Value;

use super::files::numbers;
use super::model::{Model, half_cauchy};

/// The data.
pub struct EightSchools {
    y: Vec<f64>,
    sigma: Vec<f64>,
}

impl EightSchools {
    pub fn new(data: &Value) -> Self {
        Self {
            y: numbers(&data["y"]),
            sigma: numbers(&data["sigma"]),
        }
    }
}

impl Model for EightSchools {
    fn names(&self) -> Vec<String> {
        let thetas = (1..=self.y.len()).map(|j| format!("theta[{j}]"));
        thetas.chain(["mu".to_owned(), "tau".to_owned()]).collect()
    }

    fn log_density(&self, x: &[f64], gradient: &mut [f64]) -> f64 {
        let schools = self.y.len();
        let (mu, s) = (x[schools], x[schools + 1]);
        let tau = s.exp();
        let (prior, slope) = half_cauchy(s, 5.0);
        let mut value = prior - 0.5 * mu * mu / 25.0;
        (gradient[schools], gradient[schools + 1]) = (-mu / 25.0, slope);
        for j in 0..schools {
            let precision = self.sigma[j].powi(-2);
            let residual = self.y[j] - mu - tau * x[j];
            value -= 0.5 * x[j] * x[j] + 0.5 * precision * residual * residual;
            let by_theta = precision * residual;
            gradient[j] = tau * by_theta - x[j];
            gradient[schools] += by_theta;
            gradient[schools + 1] += tau * x[j] * by_theta;
        }
        value
    }

    fn constrain(&self, x: &[f64]) -> Vec<f64> {
        let (t, rest) = x.split_at(self.y.len());
        let (mu, tau) = (rest[0], rest[1].exp());
        let thetas = t.iter().map(|t| mu + tau * t);
        thetas.chain([mu, tau]).collect()
    }

    fn unconstrain(&self, parameters: &[f64]) -> Vec<f64> {
        let (theta, rest) = parameters.split_at(self.y.len());
        let (mu, tau) = (rest[0], rest[1]);
        let t = theta.iter().map(|theta| (theta - mu) / tau);
        t.chain([mu, tau.ln()]).collect()
    }
}
