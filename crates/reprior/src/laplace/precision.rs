//! Prior precisions, and how they are chosen: the log marginal likelihood of a Laplace approximation (MacKay 1992),
//!
//! log p(y) ≈ log p(y | ŵ) − ½·ŵᵀPŵ − ½·log det(I + P^(−1)G),
//!
//! whose best scalar is found on a grid and by golden sections; for layers and parameters by MacKay's fixed point α = γ/Σŵ² with
//! the effective numbers of parameters γ = Σ(1 − α·Σ_ii).

use serde::{Deserialize, Serialize};

use super::{HessianStructure, Laplace, LaplaceError};
use crate::compute::{Matrix, Real};
use crate::network::Executor;
use crate::network::parameters::{ParameterLayout, ParameterMatrix};
use crate::stochastic::Prior;
use crate::stochastic::data::MinibatchData;

/// Precisions of the prior N(0, P^(−1)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PriorPrecision {
    /// The same for all parameters.
    Scalar(f64),
    /// One for each layer with random parameters.
    PerLayer(Vec<f64>),
    /// One for each random parameter.
    PerParameter(Vec<f64>),
}

/// What precisions may differ between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrecisionPer {
    /// One for all.
    All,
    /// One for each layer with parameters.
    Layer,
    /// One for each parameter.
    Parameter,
}

/// Where prior precisions come from.
#[derive(Debug, Clone, PartialEq)]
pub enum PrecisionChoice {
    /// One for each parameter.
    Given(Vec<f64>),
    /// The largest marginal likelihood.
    MarginalLikelihood(PrecisionPer),
    /// One of a grid between 10⁻³ and 10⁵ for all parameters: the smallest NLL of held-out rows by the linearised network, in closed
    /// form as the likelihood has it ([`Likelihood::moderate`](crate::model::likelihood::Likelihood::moderate)).
    Validation,
}

/// Precisions that are tried on held-out rows.
const GRID: ([f64; 2], usize) = ([1e-3, 1e5], 25);

/// Precisions are looked for between these.
const RANGE: [f64; 2] = [1e-6, 1e10];

impl<R: Real> Laplace<R> {
    /// Chooses the prior precisions with the largest [`log_marginal_likelihood`](Self::log_marginal_likelihood), which it
    /// returns. One for each parameter is for diagonal and spectral structures.
    ///
    /// # Errors
    /// [`LaplaceError`]: numbers that are not finite; precisions within a layer for Kronecker factors.
    pub fn maximise_marginal_likelihood(&mut self, per: PrecisionPer) -> Result<f64, LaplaceError> {
        let start = self.best_on_grid(1e-6, 1e10, 33)?;
        self.set_prior_precision(&PriorPrecision::Scalar(start))?;
        if per == PrecisionPer::All {
            let best = self.golden(start / 4.0, start * 4.0)?;
            self.set_prior_precision(&PriorPrecision::Scalar(best))?;
            return Ok(self.log_marginal_likelihood());
        }
        let mut last = self.log_marginal_likelihood();
        for _ in 0..200 {
            let next = self.fixed_point(per);
            self.set_prior_precision(&match per {
                PrecisionPer::Parameter => PriorPrecision::PerParameter(next),
                _ => PriorPrecision::PerLayer(next),
            })?;
            let value = self.log_marginal_likelihood();
            if (value - last).abs() < 1e-9 * (1.0 + value.abs()) {
                break;
            }
            last = value;
        }
        Ok(self.log_marginal_likelihood())
    }

    /// Chooses σ of a Gaussian likelihood, the same for all outputs, and one prior precision for all weights, in turn until neither
    /// changes: those with the largest marginal likelihood at the weights as they are. `fitted` is the σ of the curvature,
    /// `residuals` the sum of `count` squared residuals. Returns σ.
    ///
    /// # Errors
    /// Numbers that are not finite.
    pub fn maximise_with_noise(
        &mut self,
        fitted: f64,
        residuals: f64,
        count: usize,
    ) -> Result<f64, LaplaceError> {
        let number = count as f64;
        let mut sigma = (residuals / number).sqrt().max(1e-6 * fitted);
        for _ in 0..100 {
            let before = sigma;
            let mut value = |log_sigma: f64| -> Result<f64, LaplaceError> {
                let variance = (2.0 * log_sigma).exp();
                let log_likelihood = -0.5
                    * (number * (std::f64::consts::TAU * variance).ln() + residuals / variance);
                self.rescale(fitted * fitted / variance, log_likelihood)?;
                Ok(self.log_marginal_likelihood())
            };
            let (low, high) = (sigma.ln() - 2.0, sigma.ln() + 2.0);
            sigma = golden_section(low, high, &mut value)?.exp();
            value(sigma.ln())?;
            self.maximise_marginal_likelihood(PrecisionPer::All)?;
            if (sigma / before - 1.0).abs() < 1e-7 {
                break;
            }
        }
        Ok(sigma)
    }

    /// The scalar precision of a grid of `count` between two (in equal ratios) that `score` is largest for.
    ///
    /// # Errors
    /// Those of `score`.
    pub fn search_precision(
        &mut self,
        [least, most]: [f64; 2],
        count: usize,
        mut score: impl FnMut(&mut Self) -> Result<f64, LaplaceError>,
    ) -> Result<f64, LaplaceError> {
        let mut best = (f64::NEG_INFINITY, least);
        for index in 0..count {
            let part = index as f64 / (count.max(2) - 1) as f64;
            let alpha = least * (most / least).powf(part);
            self.set_prior_precision(&PriorPrecision::Scalar(alpha))?;
            let value = score(self)?;
            if value > best.0 {
                best = (value, alpha);
            }
        }
        self.set_prior_precision(&PriorPrecision::Scalar(best.1))?;
        Ok(best.1)
    }

    fn best_on_grid(&mut self, least: f64, most: f64, count: usize) -> Result<f64, LaplaceError> {
        let score = |own: &mut Self| Ok(own.log_marginal_likelihood());
        self.search_precision([least, most], count, score)
    }

    /// The best scalar between two, by golden sections of its logarithm.
    fn golden(&mut self, least: f64, most: f64) -> Result<f64, LaplaceError> {
        let mut value = |x: f64| -> Result<f64, LaplaceError> {
            self.set_prior_precision(&PriorPrecision::Scalar(x.exp()))?;
            Ok(self.log_marginal_likelihood())
        };
        Ok(golden_section(least.ln(), most.ln(), &mut value)?.exp())
    }

    /// Sets the precision of the grid with the smallest NLL of rows that were held out, `inputs` those of them.
    ///
    /// # Errors
    /// Numbers that are not finite.
    pub fn validate(
        &mut self,
        executor: &mut Executor<R>,
        held_out: &MinibatchData<R>,
        inputs: Matrix<'_, R>,
    ) -> Result<f64, LaplaceError> {
        let count = executor.outputs_count();
        let mut scales = vec![0.0; count];
        let score = |own: &mut Self| {
            let [mut means, variances] = own.linearised_variances(executor, inputs);
            let mut total = 0.0;
            let rows = means
                .chunks_exact_mut(count)
                .zip(variances.chunks_exact(count));
            for ((f, variances), y) in rows.zip(held_out.targets.chunks_exact(count)) {
                scales.copy_from_slice(&held_out.scales);
                held_out.likelihood.moderate(f, variances, &mut scales);
                total += held_out.likelihood.log_density(y, f, &scales, None);
            }
            Ok(total)
        };
        self.search_precision(GRID.0, GRID.1, score)
    }

    /// MacKay's next precisions.
    fn fixed_point(&self, per: PrecisionPer) -> Vec<f64> {
        let (variances, precisions) = (self.variances(), self.precisions());
        let mean = self.subset_mean();
        let of = |range: std::ops::Range<usize>| {
            let gamma: f64 = range
                .clone()
                .map(|at| 1.0 - precisions[at] * variances[at])
                .sum();
            let square: f64 = mean[range].iter().map(|w| w * w).sum();
            if square > 0.0 {
                (gamma.max(0.0) / square).clamp(RANGE[0], RANGE[1])
            } else {
                RANGE[1]
            }
        };
        match per {
            PrecisionPer::Parameter => (0..mean.len()).map(|at| of(at..at + 1)).collect(),
            _ => self
                .layers()
                .iter()
                .map(|range| of(range.clone()))
                .collect(),
        }
    }
}

/// Where a function of one maximum between two numbers is largest.
fn golden_section(
    mut low: f64,
    mut high: f64,
    value: &mut dyn FnMut(f64) -> Result<f64, LaplaceError>,
) -> Result<f64, LaplaceError> {
    let part = (5.0_f64.sqrt() - 1.0) / 2.0;
    let mut inner = [high - part * (high - low), low + part * (high - low)];
    let mut values = [value(inner[0])?, value(inner[1])?];
    while high - low > 1e-7 {
        if values[0] > values[1] {
            high = inner[1];
            inner = [high - part * (high - low), inner[0]];
            values = [value(inner[0])?, values[0]];
        } else {
            low = inner[0];
            inner = [inner[1], low + part * (high - low)];
            values = [values[1], value(inner[1])?];
        }
    }
    Ok(0.5 * (low + high))
}

/// The prior precision of every parameter of a layout, one prior for all layers or one each; none of priors that are no Gaussians.
pub fn prior_precisions(layout: &ParameterLayout, priors: &[Prior]) -> Option<Vec<f64>> {
    let mut all = Vec::with_capacity(layout.len());
    for (index, layer) in layout.layers.iter().enumerate() {
        let prior = priors.get(index).or(priors.first())?;
        let Prior::Gaussian { weights, biases } = *prior else {
            return None;
        };
        extend(&mut all, layer, [1.0 / weights, 1.0 / biases]);
    }
    Some(all)
}

/// The curvature of priors at `weights`, for each of these; for Kronecker factors its mean over each layer.
pub(super) fn curvature_of_priors<R: Real>(
    layout: &ParameterLayout,
    priors: &[Prior],
    weights: &[R],
    structure: HessianStructure,
) -> Vec<f64> {
    let mut all = Vec::with_capacity(weights.len());
    for (layer, prior) in layout.layers.iter().zip(priors.iter().cycle()) {
        let own = &weights[layer.range.clone()];
        let spread = prior.spread(own, layer.rows, layer.has_bias);
        let [weight, bias] = prior.pull(spread).precision;
        let biases = layer.rows - layer.fan_in();
        let mean =
            (layer.fan_in() as f64 * weight + biases as f64 * bias) / layer.rows.max(1) as f64;
        extend(
            &mut all,
            layer,
            match structure.is_kronecker() {
                true => [mean; 2],
                false => [weight, bias],
            },
        );
    }
    all
}

/// Appends the precisions of one layer's weights and biases.
fn extend(all: &mut Vec<f64>, layer: &ParameterMatrix, [weight, bias]: [f64; 2]) {
    for _ in 0..layer.units {
        all.extend(std::iter::repeat_n(weight, layer.fan_in()));
        all.extend(std::iter::repeat_n(bias, layer.rows - layer.fan_in()));
    }
}
