//! Three linear regressions y ~ N(Xβ, σ²), x = (β, log σ): an autoregression of order K (β ~ N(0, 10²), σ ~ half-Cauchy
//! of scale 2.5), `blr` (β ~ N(0, 10²), σ ~ half-normal of scale 10), `kidscore_momhsiq` (β flat, σ ~ half-Cauchy).

use serde_json::Value;

use super::files::{number, numbers};
use super::model::{Model, dot, half_cauchy, half_normal};

/// The data and priors of one of them.
pub struct Regression {
    names: Vec<String>,
    rows: Vec<Vec<f64>>,
    y: Vec<f64>,
    /// 1/variance of the prior of each coefficient.
    precision: f64,
    sigma: fn(f64) -> (f64, f64),
}

fn cauchy(s: f64) -> (f64, f64) {
    half_cauchy(s, 2.5)
}

fn normal(s: f64) -> (f64, f64) {
    half_normal(s, 10.0)
}

fn names(first: &[&str], betas: usize) -> Vec<String> {
    let betas = (1..=betas).map(|k| format!("beta[{k}]"));
    let first = first.iter().map(|&name| name.to_owned());
    first.chain(betas).chain(["sigma".to_owned()]).collect()
}

/// y_t on a constant and y_{t−1}, …, y_{t−K}.
pub fn autoregression(data: &Value) -> Regression {
    let (y, order) = (numbers(&data["y"]), number(&data["K"]) as usize);
    let row = |t: usize| {
        [1.0]
            .into_iter()
            .chain((1..=order).map(|k| y[t - k]).collect::<Vec<_>>())
    };
    Regression {
        names: names(&["alpha"], order),
        rows: (order..y.len()).map(|t| row(t).collect()).collect(),
        y: y[order..].to_vec(),
        precision: 0.01,
        sigma: cauchy,
    }
}

/// y on the columns of X.
pub fn blr(data: &Value) -> Regression {
    let rows: Vec<_> = data["X"].as_array().unwrap().iter().map(numbers).collect();
    Regression {
        names: names(&[], rows[0].len()),
        rows,
        y: numbers(&data["y"]),
        precision: 0.01,
        sigma: normal,
    }
}

/// Children's test scores on a constant, their mothers' schooling and test scores.
pub fn kidscore(data: &Value) -> Regression {
    let school = numbers(&data["mom_hs"]);
    let score = numbers(&data["mom_iq"]);
    Regression {
        names: names(&[], 3),
        rows: school
            .iter()
            .zip(score)
            .map(|(h, q)| vec![1.0, *h, q])
            .collect(),
        y: numbers(&data["kid_score"]),
        precision: 0.0,
        sigma: cauchy,
    }
}

impl Model for Regression {
    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn log_density(&self, x: &[f64], gradient: &mut [f64]) -> f64 {
        let (beta, s) = (&x[..x.len() - 1], x[x.len() - 1]);
        let (prior, slope) = (self.sigma)(s);
        let precision = (-2.0 * s).exp();
        let n = self.y.len() as f64;
        for (g, b) in gradient.iter_mut().zip(beta) {
            *g = -self.precision * b;
        }
        let mut squares = 0.0;
        for (row, y) in self.rows.iter().zip(&self.y) {
            let residual = y - dot(row, beta);
            squares += residual * residual;
            for (g, x) in gradient.iter_mut().zip(row) {
                *g += precision * residual * x;
            }
        }
        gradient[beta.len()] = slope - n + precision * squares;
        prior - 0.5 * self.precision * dot(beta, beta) - n * s - 0.5 * precision * squares
    }

    fn constrain(&self, x: &[f64]) -> Vec<f64> {
        let mut parameters = x.to_vec();
        let sigma = parameters.last_mut().unwrap();
        *sigma = sigma.exp();
        parameters
    }

    fn unconstrain(&self, parameters: &[f64]) -> Vec<f64> {
        let mut x = parameters.to_vec();
        let s = x.last_mut().unwrap();
        *s = s.ln();
        x
    }
}
