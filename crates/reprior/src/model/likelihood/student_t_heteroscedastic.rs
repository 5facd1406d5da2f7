//! y_j = f_j + σ_j·e^{g_j/2}·t_ν: heavy tails (West 1984) whose scale depends on the inputs. A network has two outputs for each
//! target, first all f, then all g, as under the [Gaussian](super::GaussianHeteroscedastic) with a noise of every row's own.
//!
//! With r = y − f, v = σ²e^g and q = r²/νv, log p = Σ log Γ((ν+1)/2) − log Γ(ν/2) − ½ log νπ − log σ − ½g − ½(ν+1) log(1 + q);
//! scores (ν+1)r/(νv + r²) of f, ½((ν+1)q/(1+q) − 1) of g and twice that of log σ; Fisher information (ν+1)/((ν+3)v) of f and
//! ½ν/(ν+3) of g. A row far from where the network has it thus asks g for at most ν/2, where the Gaussian is asked for ½r²/v.

use super::heteroscedastic::Rows;
use super::name::{LikelihoodError, LikelihoodName, NamedLikelihood};
use super::{Approximation, Curvature, Derivatives, GaussianHeteroscedastic, Likelihood, StudentT};
use crate::compute::Stream;
use crate::metrics::PredictiveFamily;
use crate::model::dataset::Targets;
use crate::model::standardisation::Standardisation;

/// The Student-t likelihood with a scale of every row's own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StudentTHeteroscedastic {
    law: StudentT,
}

impl StudentTHeteroscedastic {
    /// With ν degrees of freedom, positive and finite; `None` otherwise. Variances exist for ν > 2.
    pub fn new(degrees_of_freedom: f64) -> Option<Self> {
        StudentT::new(degrees_of_freedom).map(|law| Self { law })
    }

    /// ν.
    pub fn degrees_of_freedom(&self) -> f64 {
        self.law.degrees_of_freedom()
    }

    /// The Fisher information of f at v = 1, and of g.
    fn information(&self) -> [f64; 2] {
        let nu = self.degrees_of_freedom();
        [(nu + 1.0) / (nu + 3.0), 0.5 * nu / (nu + 3.0)]
    }
}

impl Likelihood for StudentTHeteroscedastic {
    fn log_density(
        &self,
        targets: &[f64],
        outputs: &[f64],
        scales: &[f64],
        mut derivatives: Option<Derivatives<'_>>,
    ) -> f64 {
        let nu = self.degrees_of_freedom();
        let rows = Rows::of(targets, scales);
        let mut total = rows.half as f64 * self.law.log_normaliser();
        for (j, &scale) in scales[..rows.count].iter().enumerate() {
            let log_variance = 2.0 * scale.ln();
            let mut by_log_scale = 0.0;
            for at in rows.of_target(j) {
                let log_variance = log_variance + outputs[rows.half + at];
                let precision = (-log_variance).exp();
                let residual = targets[at] - outputs[at];
                let ratio = residual * residual * precision / nu;
                total -= 0.5 * ((nu + 1.0) * ratio.ln_1p() + log_variance);
                if let Some(derivatives) = &mut derivatives {
                    let weight = (nu + 1.0) / (nu * (1.0 + ratio));
                    let excess = weight * nu * ratio - 1.0;
                    by_log_scale += excess;
                    derivatives.outputs[at] = weight * residual * precision;
                    derivatives.outputs[rows.half + at] = 0.5 * excess;
                }
            }
            if let Some(derivatives) = &mut derivatives {
                derivatives.log_scales[j] = by_log_scale;
                derivatives.log_scales[rows.count + j] = 0.0;
            }
        }
        total
    }

    /// The targets themselves and g = 0, with one over the mean of the Fisher informations there.
    fn approximation(&self, targets: &[f64], scales: &[f64]) -> Approximation {
        super::heteroscedastic::approximation(targets, scales, self.information())
    }

    /// (ν + 1)/((ν + 3)v) of each f, ½ν/(ν + 3) of each g.
    fn curvature(&self, outputs: &[f64], scales: &[f64], curvature: &mut Curvature) -> bool {
        super::heteroscedastic::set_curvature(outputs, scales, self.information(), curvature);
        true
    }

    /// f of each target; zeros in place of g.
    fn mean(&self, outputs: &mut [f64]) {
        GaussianHeteroscedastic.mean(outputs);
    }

    /// The scale σe^{g/2}, which is not the standard deviation: that is √(ν/(ν − 2)) times as large.
    fn row_noise(&self, outputs: &[f64], scales: &[f64], noise: &mut Vec<f64>) -> bool {
        GaussianHeteroscedastic.row_noise(outputs, scales, noise)
    }

    fn scale_outputs(&self, outputs: usize) -> usize {
        GaussianHeteroscedastic.scale_outputs(outputs)
    }

    fn simulate(&self, outputs: &[f64], scales: &[f64], stream: &mut Stream, targets: &mut [f64]) {
        let half = outputs.len() / 2;
        let mut noise = Vec::with_capacity(half);
        self.row_noise(outputs, scales, &mut noise);
        self.law
            .simulate(&outputs[..half], &noise, stream, &mut targets[..half]);
        targets[half..].fill(0.0);
    }

    fn family(&self) -> Option<PredictiveFamily> {
        self.law.family()
    }

    fn has_scale(&self) -> bool {
        true
    }
}

impl NamedLikelihood for StudentTHeteroscedastic {
    const NAME: &str = "student-t-heteroscedastic";
    const PREDICTS: &str = "function of this draw, in the target's own units";
    const HAS_DEGREES_OF_FREEDOM: bool = true;

    fn of_targets(targets: &Targets, degrees_of_freedom: f64) -> Result<Self, LikelihoodError> {
        match targets {
            Targets::Real { .. } => Self::new(degrees_of_freedom)
                .ok_or(LikelihoodError::DegreesOfFreedom(degrees_of_freedom)),
            Targets::Classes { .. } => Err(LikelihoodError::NeedsReal(
                LikelihoodName::StudentTHeteroscedastic,
            )),
        }
    }

    fn example(degrees_of_freedom: f64) -> Self {
        Self {
            law: StudentT::example(degrees_of_freedom),
        }
    }

    fn outputs(targets: &Targets) -> usize {
        GaussianHeteroscedastic::outputs(targets)
    }

    fn code(targets: &Targets, standardisation: &Standardisation) -> Vec<f64> {
        GaussianHeteroscedastic::code(targets, standardisation)
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn is_consistent() {
        let law = StudentTHeteroscedastic::new(4.0).unwrap();
        let targets = [0.3, -1.0, 9.0, 0.1, 0.0, 0.7, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        check::consistent(&law, &targets, 4);
        check::approximated(&law, 2);
        assert!(StudentTHeteroscedastic::new(-1.0).is_none());
    }

    const ROWS: [[f64; 3]; 3] = [[0.4, -0.3, 0.9], [-1.2, 0.6, 0.1], [2.0, 0.0, -0.7]];

    /// Targets and outputs of [`ROWS`].
    fn columns() -> [Vec<f64>; 2] {
        let column = |at: usize| ROWS.map(|row| row[at]).to_vec();
        [
            [column(0), vec![0.0; 3]].concat(),
            [column(1), column(2)].concat(),
        ]
    }

    /// At any g it is the Student-t likelihood of another σ.
    #[test]
    fn each_row_is_student_t_with_its_own_scale() {
        let [targets, outputs] = columns();
        let (own, plain) = (
            StudentTHeteroscedastic::new(3.5).unwrap(),
            StudentT::new(3.5).unwrap(),
        );
        let value = own.log_density(&targets, &outputs, &[0.5, 9.0], None) + own.left_out(6);
        let each = ROWS.iter().map(|[y, f, g]| {
            let sigma = 0.5 * (0.5 * g).exp();
            plain.log_density(&[*y], &[*f], &[sigma], None) + plain.left_out(1)
        });
        assert!((value - each.sum::<f64>()).abs() < 1e-12);
    }

    #[test]
    fn tends_to_the_gaussian() {
        let [targets, outputs] = columns();
        let value = |law: &dyn Likelihood| {
            law.log_density(&targets, &outputs, &[0.5, 9.0], None) + law.left_out(6)
        };
        let wide = StudentTHeteroscedastic::new(1e8).unwrap();
        assert!((value(&wide) - value(&GaussianHeteroscedastic)).abs() < 1e-5);
    }

    /// However far a target is, it moves g by no more than ν/2 in its row's score.
    #[test]
    fn an_outlier_asks_for_a_bounded_noise() {
        let law = StudentTHeteroscedastic::new(4.0).unwrap();
        let (mut by_output, mut by_scale) = ([0.0; 2], [0.0; 2]);
        let derivatives = Derivatives {
            outputs: &mut by_output,
            log_scales: &mut by_scale,
        };
        law.log_density(&[1e9, 0.0], &[0.0; 2], &[1.0; 2], Some(derivatives));
        assert!((by_output[1] - 2.0).abs() < 1e-9 && by_output[0].abs() < 1e-8);
    }
}
