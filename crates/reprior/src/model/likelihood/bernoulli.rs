//! The second of two classes with probability 1/(1 + e^{−f}), one output; several outputs are independent.
//!
//! Targets are 0 and 1. log p = Σ y f − log(1 + e^f), gradient y − p. At f = 0 the Fisher information is ¼: pseudo-targets
//! ±2 of variance 4.

use super::name::{
    LOG_PROBABILITIES, LikelihoodError, LikelihoodName, LikelihoodParameters, NamedLikelihood,
};
use super::{Approximation, Curvature, Derivatives, Likelihood, moderate_logits};
use crate::compute::Stream;
use crate::model::dataset::Targets;
use crate::model::standardisation::Standardisation;
use crate::model::targets;

/// The logistic likelihood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bernoulli;

/// log(1 + e^f) without overflow.
fn softplus(f: f64) -> f64 {
    f.max(0.0) + (-f.abs()).exp().ln_1p()
}

/// 1/(1 + e^{−f}).
fn probability(f: f64) -> f64 {
    1.0 / (1.0 + (-f).exp())
}

impl Likelihood for Bernoulli {
    fn log_density(
        &self,
        targets: &[f64],
        outputs: &[f64],
        _: &[f64],
        mut derivatives: Option<Derivatives<'_>>,
    ) -> f64 {
        if let Some(derivatives) = &mut derivatives {
            derivatives.log_scales.fill(0.0);
        }
        let mut total = 0.0;
        for (at, (&y, &f)) in targets.iter().zip(outputs).enumerate() {
            total += y * f - softplus(f);
            if let Some(derivatives) = &mut derivatives {
                derivatives.outputs[at] = y - probability(f);
            }
        }
        total
    }

    fn approximation(&self, targets: &[f64], scales: &[f64]) -> Approximation {
        Approximation {
            targets: targets.iter().map(|y| 4.0 * (y - 0.5)).collect(),
            variances: vec![4.0; scales.len()],
        }
    }

    /// p(1 − p) of each output.
    fn curvature(&self, outputs: &[f64], _: &[f64], curvature: &mut Curvature) -> bool {
        curvature.set_diagonal(outputs.iter().map(|&f| {
            let p = probability(f);
            p * (1.0 - p)
        }));
        true
    }

    fn moderate(&self, outputs: &mut [f64], variances: &[f64], _: &mut [f64]) {
        moderate_logits(outputs, variances);
    }

    fn mean(&self, outputs: &mut [f64]) {
        outputs.iter_mut().for_each(|f| *f = probability(*f));
    }

    /// Of the first class and the second for each output.
    fn log_probabilities(&self, outputs: &[f64], out: &mut Vec<f64>) {
        out.extend(outputs.iter().flat_map(|&f| [-softplus(f), -softplus(-f)]));
    }

    fn simulate(&self, outputs: &[f64], _: &[f64], stream: &mut Stream, targets: &mut [f64]) {
        for (y, &f) in targets.iter_mut().zip(outputs) {
            *y = f64::from(u8::from(stream.uniform() < probability(f)));
        }
    }
}

impl NamedLikelihood for Bernoulli {
    const NAME: &str = "bernoulli";
    const PREDICTS: &str = LOG_PROBABILITIES;

    fn of_targets(targets: &Targets, _: LikelihoodParameters) -> Result<Self, LikelihoodError> {
        match targets {
            Targets::Classes { names, .. } if names.len() == 2 => Ok(Self),
            Targets::Classes { names, .. } => Err(LikelihoodError::NeedsTwoClasses(names.len())),
            Targets::Real { .. } => Err(LikelihoodError::NeedsClasses(LikelihoodName::Bernoulli)),
        }
    }

    fn example(_: LikelihoodParameters) -> Self {
        Self
    }

    fn outputs(_: &Targets) -> usize {
        1
    }

    /// 0 and 1.
    fn code(targets: &Targets, standardisation: &Standardisation) -> Vec<f64> {
        match targets {
            Targets::Classes { labels, .. } => {
                labels.iter().map(|&l| f64::from(l.min(1))).collect()
            }
            Targets::Real { .. } => targets::code(targets, standardisation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn logarithms_are_those_of_the_probabilities_and_reach_further() {
        let mut logarithms = Vec::new();
        Bernoulli.log_probabilities(&[0.7, 900.0], &mut logarithms);
        let p = probability(0.7);
        assert!((logarithms[0] - (1.0 - p).ln()).abs() < 1e-14);
        assert!((logarithms[1] - p.ln()).abs() < 1e-14);
        assert_eq!(logarithms[2..], [-900.0, 0.0]);
    }

    #[test]
    fn is_consistent() {
        check::consistent(&Bernoulli, &[0.0, 1.0, 1.0, 0.0], 1);
        check::approximated(&Bernoulli, 1);
        let mass = |y: f64| Bernoulli.log_density(&[y], &[0.4], &[1.0], None).exp();
        assert!((mass(0.0) + mass(1.0) - 1.0).abs() < 1e-15);
        assert_eq!(
            Bernoulli.log_density(&[0.0], &[900.0], &[1.0], None),
            -900.0
        );
        assert_eq!(Bernoulli.log_density(&[1.0], &[900.0], &[1.0], None), 0.0);
    }
}
