//! y = f + σ·t_ν per output: like the Gaussian, but outliers count less (West 1984).
//!
//! log p = Σ log Γ((ν+1)/2) − log Γ(ν/2) − ½ log νπ − log σ − ½(ν+1) log(1 + r²/νσ²), r = y − f. The score
//! (ν+1)r/(νσ² + r²) falls off beyond √ν·σ. Fisher information (ν+1)/((ν+3)σ²).

use rand_distr::{Distribution, StudentT as StudentLaw};

use super::gaussian::mean_square;
use super::name::{LikelihoodError, LikelihoodName, LikelihoodParameters, NamedLikelihood};
use super::{Approximation, Curvature, Derivatives, Likelihood};
use crate::compute::Stream;
use crate::diagnostics::beta;
use crate::metrics::{PredictiveFamily, PredictiveLaw};
use crate::model::dataset::Targets;

/// The Student-t likelihood.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StudentT {
    degrees_of_freedom: f64,
}

impl StudentT {
    /// With ν degrees of freedom, positive and finite; `None` otherwise. Variances exist for ν > 2.
    pub fn new(degrees_of_freedom: f64) -> Option<Self> {
        let is_possible = degrees_of_freedom > 0.0 && degrees_of_freedom.is_finite();
        is_possible.then_some(Self { degrees_of_freedom })
    }

    /// ν.
    pub fn degrees_of_freedom(&self) -> f64 {
        self.degrees_of_freedom
    }

    /// log of the density's factor that depends on ν alone.
    pub(super) fn log_normaliser(&self) -> f64 {
        let nu = self.degrees_of_freedom;
        libm::lgamma(0.5 * (nu + 1.0))
            - libm::lgamma(0.5 * nu)
            - 0.5 * (nu * std::f64::consts::PI).ln()
    }
}

impl Likelihood for StudentT {
    fn log_density(
        &self,
        targets: &[f64],
        outputs: &[f64],
        scales: &[f64],
        mut derivatives: Option<Derivatives<'_>>,
    ) -> f64 {
        let nu = self.degrees_of_freedom;
        let rows = targets.len() / scales.len();
        let constant = self.log_normaliser();
        let mut total = 0.0;
        for (j, &scale) in scales.iter().enumerate() {
            let unit = nu * scale * scale;
            let (mut logarithms, mut by_log_scale) = (0.0, 0.0);
            for at in j * rows..(j + 1) * rows {
                let residual = targets[at] - outputs[at];
                let ratio = residual * residual / unit;
                logarithms += ratio.ln_1p();
                if let Some(derivatives) = &mut derivatives {
                    derivatives.outputs[at] = (nu + 1.0) * residual / (unit * (1.0 + ratio));
                    by_log_scale += (nu + 1.0) * ratio / (1.0 + ratio) - 1.0;
                }
            }
            total += rows as f64 * (constant - scale.ln()) - 0.5 * (nu + 1.0) * logarithms;
            if let Some(derivatives) = &mut derivatives {
                derivatives.log_scales[j] = by_log_scale;
            }
        }
        total
    }

    /// The targets themselves rather than score over information at 0, which would pull outliers in and far values
    /// with them; the variance is one over the Fisher information, which does not depend on f.
    fn approximation(&self, targets: &[f64], scales: &[f64]) -> Approximation {
        let nu = self.degrees_of_freedom;
        Approximation {
            targets: targets.to_vec(),
            variances: vec![mean_square(scales) * (nu + 3.0) / (nu + 1.0); scales.len()],
        }
    }

    /// (ν + 1)/((ν + 3)σ²) of each output.
    fn curvature(&self, _: &[f64], scales: &[f64], curvature: &mut Curvature) -> bool {
        let nu = self.degrees_of_freedom;
        let factor = (nu + 1.0) / (nu + 3.0);
        curvature.set_diagonal(scales.iter().map(|sigma| factor / (sigma * sigma)));
        true
    }

    fn simulate(&self, outputs: &[f64], scales: &[f64], stream: &mut Stream, targets: &mut [f64]) {
        for ((y, f), scale) in targets.iter_mut().zip(outputs).zip(scales) {
            // ν is checked in `new`
            let noise = StudentLaw::new(self.degrees_of_freedom)
                .map_or(f64::NAN, |law| law.sample(stream.generator()));
            *y = f + scale * noise;
        }
    }

    fn family(&self) -> Option<PredictiveFamily> {
        Some(PredictiveFamily::new(&StudentTLaw, self.degrees_of_freedom))
    }

    fn has_scale(&self) -> bool {
        true
    }
}

impl NamedLikelihood for StudentT {
    const NAME: &str = "student-t";
    const PREDICTS: &str = "function of this draw, in the target's own units";
    const HAS_DEGREES_OF_FREEDOM: bool = true;

    fn of_targets(
        targets: &Targets,
        parameters: LikelihoodParameters,
    ) -> Result<Self, LikelihoodError> {
        let degrees_of_freedom = parameters.degrees_of_freedom;
        match targets {
            Targets::Real { .. } => Self::new(degrees_of_freedom)
                .ok_or(LikelihoodError::DegreesOfFreedom(degrees_of_freedom)),
            Targets::Classes { .. } => Err(LikelihoodError::NeedsReal(LikelihoodName::StudentT)),
        }
    }

    fn example(parameters: LikelihoodParameters) -> Self {
        Self {
            degrees_of_freedom: parameters.degrees_of_freedom,
        }
    }
}

/// m + √v·t_ν: mean m, variance vν/(ν − 2), infinite for ν ≤ 2.
struct StudentTLaw;

impl PredictiveLaw for StudentTLaw {
    fn name(&self) -> &'static str {
        "student-t"
    }

    fn log_density(&self, nu: f64, y: f64, [m, v]: [f64; 2]) -> f64 {
        let deviation = y - m;
        libm::lgamma(0.5 * (nu + 1.0))
            - libm::lgamma(0.5 * nu)
            - 0.5 * (nu * std::f64::consts::PI * v).ln()
            - 0.5 * (nu + 1.0) * (deviation * deviation / (nu * v)).ln_1p()
    }

    fn cdf(&self, nu: f64, y: f64, [m, v]: [f64; 2]) -> f64 {
        let x = (y - m) / v.sqrt();
        let tail = 0.5 * beta::cdf(nu / (nu + x * x), 0.5 * nu, 0.5);
        if x > 0.0 { 1.0 - tail } else { tail }
    }

    fn variance(&self, nu: f64, [_, v]: [f64; 2]) -> f64 {
        if nu > 2.0 {
            v * nu / (nu - 2.0)
        } else {
            f64::INFINITY
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn is_consistent() {
        let law = StudentT::new(4.0).unwrap();
        check::consistent(&law, &[0.3, -1.0, 9.0, 0.1, 0.0, 0.7], 2);
        check::approximated(&law, 2);
        check::normalised(&law, false);
        assert!(StudentT::new(0.0).is_none() && StudentT::new(f64::NAN).is_none());
    }

    #[test]
    fn tends_to_the_gaussian() {
        let (y, f, s) = ([0.3, -1.0], [0.5, 0.2], [0.7]);
        let wide = StudentT::new(1e7).unwrap();
        let gaussian =
            super::super::Gaussian.log_density(&y, &f, &s, None) - std::f64::consts::TAU.ln();
        assert!((wide.log_density(&y, &f, &s, None) - gaussian).abs() < 1e-5);
    }

    fn family(nu: f64) -> PredictiveFamily {
        StudentT::new(nu).unwrap().family().unwrap()
    }

    #[test]
    fn distribution_functions_are_those_of_tables() {
        // t with 4 degrees of freedom: the 95 % point is 2.131847; with 1, the quartile is 1
        assert!((family(4.0).cdf(2.131_846_786, 0.0, 1.0) - 0.95).abs() < 1e-9);
        assert!((family(1.0).cdf(3.0 - 2.0, 3.0, 4.0) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn the_family_with_many_degrees_is_normal() {
        for y in [-2.0, 0.3, 4.0] {
            let (t, g) = (family(1e8), PredictiveFamily::NORMAL);
            assert!((t.cdf(y, 0.5, 2.0) - g.cdf(y, 0.5, 2.0)).abs() < 1e-7);
            assert!((t.log_density(y, 0.5, 2.0) - g.log_density(y, 0.5, 2.0)).abs() < 1e-6);
        }
    }

    /// The family is the likelihood itself, constants included.
    #[test]
    fn the_family_has_the_density_of_the_likelihood() {
        let law = StudentT::new(3.5).unwrap();
        let value = law.log_density(&[1.7], &[0.4], &[0.6], None) + law.left_out(1);
        assert!((family(3.5).log_density(1.7, 0.4, 0.36) - value).abs() < 1e-12);
    }
}
