//! y = f + σε, ε ~ N(0, 1), per output.
//!
//! log p = Σ −½(y − f)²/σ² − log σ − ½ log 2π; the last is left out where samplers ask.

use super::name::{LikelihoodError, LikelihoodParameters, NamedLikelihood};
use super::{Approximation, Curvature, Derivatives, Likelihood};
use crate::compute::Stream;
use crate::metrics::PredictiveFamily;
use crate::model::dataset::Targets;

/// The Gaussian likelihood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gaussian;

impl Likelihood for Gaussian {
    fn log_density(
        &self,
        targets: &[f64],
        outputs: &[f64],
        scales: &[f64],
        mut derivatives: Option<Derivatives<'_>>,
    ) -> f64 {
        let rows = targets.len() / scales.len();
        let mut total = 0.0;
        for (j, &scale) in scales.iter().enumerate() {
            let precision = 1.0 / (scale * scale);
            let column = j * rows..(j + 1) * rows;
            let mut squares = 0.0;
            for at in column {
                let residual = targets[at] - outputs[at];
                squares += residual * residual;
                if let Some(derivatives) = &mut derivatives {
                    derivatives.outputs[at] = residual * precision;
                }
            }
            let squares = squares * precision;
            total -= 0.5 * squares + rows as f64 * scale.ln();
            if let Some(derivatives) = &mut derivatives {
                derivatives.log_scales[j] = squares - rows as f64;
            }
        }
        total
    }

    /// −½ log 2π of each.
    fn left_out(&self, targets: usize) -> f64 {
        -0.5 * targets as f64 * std::f64::consts::TAU.ln()
    }

    /// Exact: the targets themselves, with the mean of the σ².
    fn approximation(&self, targets: &[f64], scales: &[f64]) -> Approximation {
        Approximation {
            targets: targets.to_vec(),
            variances: vec![mean_square(scales); scales.len()],
        }
    }

    /// 1/σ² of each output.
    fn curvature(&self, _: &[f64], scales: &[f64], curvature: &mut Curvature) -> bool {
        curvature.set_diagonal(scales.iter().map(|sigma| sigma.powi(-2)));
        true
    }

    /// Exact: N(f, σ² + v).
    fn moderate(&self, _: &mut [f64], variances: &[f64], scales: &mut [f64]) {
        for (sigma, variance) in scales.iter_mut().zip(variances) {
            *sigma = (*sigma * *sigma + variance).sqrt();
        }
    }

    fn simulate(&self, outputs: &[f64], scales: &[f64], stream: &mut Stream, targets: &mut [f64]) {
        for ((y, f), scale) in targets.iter_mut().zip(outputs).zip(scales) {
            *y = f + scale * stream.normal();
        }
    }

    fn family(&self) -> Option<PredictiveFamily> {
        Some(PredictiveFamily::NORMAL)
    }

    fn is_gaussian(&self) -> bool {
        true
    }

    fn has_scale(&self) -> bool {
        true
    }
}

/// Mean over outputs of σ².
pub(super) fn mean_square(scales: &[f64]) -> f64 {
    scales.iter().map(|scale| scale * scale).sum::<f64>() / scales.len() as f64
}

impl NamedLikelihood for Gaussian {
    const NAME: &str = "gaussian";
    const PREDICTS: &str =
        "mean of the function given this draw's inner weights, in the target's own units";

    fn of_targets(_: &Targets, _: LikelihoodParameters) -> Result<Self, LikelihoodError> {
        Ok(Self)
    }

    fn example(_: LikelihoodParameters) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::super::check;
    use super::*;

    #[test]
    fn is_consistent() {
        check::consistent(&Gaussian, &[0.3, -1.0, 2.0, 0.1, 0.0, 0.7], 2);
        check::approximated(&Gaussian, 2);
        check::normalised(&Gaussian, false);
    }

    /// ∫ N(y; f, σ²) N(f; m, v) df, by quadrature.
    #[test]
    fn uncertain_outputs_widen_the_scale() {
        let (y, m, v, sigma) = (1.3, 0.4, 0.5_f64, 0.7);
        let own = |f: f64| (-(f - m).powi(2) / (2.0 * v)).exp() / (TAU * v).sqrt();
        let density = |y: f64, f: f64, sigma: f64| {
            let value = Gaussian.log_density(&[y], &[f], &[sigma], None);
            (value + Gaussian.left_out(1)).exp()
        };
        let nodes = (-8000..8000).map(|i| f64::from(i) * 1e-3);
        let integral: f64 = nodes.map(|f| own(f) * density(y, f, sigma) * 1e-3).sum();
        let (mut outputs, mut scales) = ([m], [sigma]);
        Gaussian.moderate(&mut outputs, &[v], &mut scales);
        assert!((density(y, outputs[0], scales[0]) - integral).abs() < 1e-9);
    }
}
