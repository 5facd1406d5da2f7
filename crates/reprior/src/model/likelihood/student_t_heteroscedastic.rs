//! y_j = f_j + σ_j·e^{a·g_j/2}·t_ν: heavy tails (West 1984) whose scale depends on the inputs. A network has two outputs for each
//! target, first all f, then all g, as under the [Gaussian](super::GaussianHeteroscedastic) with a noise of every row's own.
//!
//! With r = y − f, v = σ²e^{ag} and q = r²/νv, log p = Σ log Γ((ν+1)/2) − log Γ(ν/2) − ½ log νπ − log σ − ½ag − ½(ν+1) log(1 + q);
//! scores (ν+1)r/(νv + r²) of f, ½a((ν+1)q/(1+q) − 1) of g and (ν+1)q/(1+q) − 1 of log σ; Fisher information (ν+1)/((ν+3)v) of f and
//! ½a²ν/(ν+3) of g. A row far from where the network has it thus asks log v for at most ν/2, where the Gaussian is asked for ½r²/v.

use super::name::{LikelihoodError, LikelihoodName, LikelihoodParameters, NamedLikelihood};
use super::rows::{BLOCK, Rows};
use super::{Approximation, Curvature, Derivatives, GaussianHeteroscedastic, Likelihood, StudentT};
use crate::compute::{LogProduct, Stream, simd};
use crate::metrics::PredictiveFamily;
use crate::model::dataset::Targets;
use crate::model::standardisation::Standardisation;

/// Degrees of freedom from which on what 1 + q rounds off, times ν + 1, is added to the logarithms (Kahan): at 10¹⁶ nothing else is left.
const MOST_DEGREES: f64 = 1e6;

/// The Student-t likelihood with a scale of every row's own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StudentTHeteroscedastic {
    law: StudentT,
    by_row: GaussianHeteroscedastic,
}

impl StudentTHeteroscedastic {
    /// With ν degrees of freedom and a = 1; `None` where ν is not positive and finite. Variances exist for ν > 2.
    pub fn new(degrees_of_freedom: f64) -> Option<Self> {
        Some(Self {
            law: StudentT::new(degrees_of_freedom)?,
            by_row: GaussianHeteroscedastic::default(),
        })
    }

    /// With another a; `None` where that is not positive and finite.
    pub fn with_variation(self, variation: f64) -> Option<Self> {
        Some(Self {
            by_row: GaussianHeteroscedastic::new(variation)?,
            ..self
        })
    }

    /// ν.
    pub fn degrees_of_freedom(&self) -> f64 {
        self.law.degrees_of_freedom()
    }

    /// The Fisher information of f at v = 1, and of log v.
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
        let rows = Rows::of(targets, scales, self.by_row.variation);
        let mut total = rows.half as f64 * self.law.log_normaliser();
        for (j, &scale) in scales[..rows.count].iter().enumerate() {
            let log_variance = 2.0 * scale.ln();
            // of each lane, with an excess of −1 for every row that a block lacks
            let (mut log_variances, mut excesses) = ([0.0; BLOCK], [0.0; BLOCK]);
            let (mut tails, mut lacking) = (LogProduct::default(), 0);
            let (loses, mut lost) = (nu > MOST_DEGREES, [0.0; BLOCK]);
            simd(
                #[inline(always)]
                || {
                    for at in rows.blocks(j) {
                        let block = rows.block(targets, outputs, log_variance, at.clone());
                        let (mut factors, mut ratios) = ([1.0; BLOCK], [0.0; BLOCK]);
                        let (mut of_mean, mut of_logarithm) = ([0.0; BLOCK], [0.0; BLOCK]);
                        for i in 0..BLOCK {
                            let (residual, precision) = (block.residual[i], block.precision[i]);
                            let ratio = residual * residual * precision / nu;
                            (ratios[i], factors[i]) = (ratio, 1.0 + ratio);
                            let weight = (nu + 1.0) / (nu * factors[i]);
                            let excess = weight * nu * ratio - 1.0;
                            of_mean[i] = weight * residual * precision;
                            of_logarithm[i] = 0.5 * excess;
                            log_variances[i] += block.log_variance[i];
                            excesses[i] += excess;
                        }
                        tails.multiply(&factors);
                        if loses {
                            for i in 0..BLOCK {
                                lost[i] += (ratios[i] - (factors[i] - 1.0)) / factors[i];
                            }
                        }
                        lacking += BLOCK - at.len();
                        if let Some(derivatives) = &mut derivatives {
                            let all = &mut *derivatives.outputs;
                            rows.write(all, at, &of_mean, &of_logarithm);
                        }
                    }
                },
            );
            let log_variances: f64 = log_variances.iter().sum();
            let logarithms = match (tails.value(), lost.iter().sum::<f64>()) {
                (sum, lost) if sum.is_finite() => sum + lost,
                (sum, _) => sum,
            };
            total -= 0.5 * ((nu + 1.0) * logarithms + log_variances);
            let by_log_scale = excesses.iter().sum::<f64>() + lacking as f64;
            if let Some(derivatives) = &mut derivatives {
                derivatives.log_scales[j] = by_log_scale;
                derivatives.log_scales[rows.count + j] = 0.0;
            }
        }
        total
    }

    /// The targets themselves and g = 0, with one over the Fisher informations there: the mean of those of all f, and that of each g.
    fn approximation(&self, targets: &[f64], scales: &[f64]) -> Approximation {
        self.by_row
            .approximation_by(targets, scales, self.information())
    }

    /// (ν + 1)/((ν + 3)v) of each f, ½a²ν/(ν + 3) of each g.
    fn curvature(&self, outputs: &[f64], scales: &[f64], curvature: &mut Curvature) -> bool {
        self.by_row
            .set_curvature(outputs, scales, self.information(), curvature);
        true
    }

    /// f of each target; zeros in place of g.
    fn mean(&self, outputs: &mut [f64]) {
        self.by_row.mean(outputs);
    }

    /// The scale σe^{sg/2}, which is not the standard deviation: that is √(ν/(ν − 2)) times as large.
    fn row_noise(&self, outputs: &[f64], scales: &[f64], noise: &mut Vec<f64>) -> bool {
        self.by_row.row_noise(outputs, scales, noise)
    }

    fn scale_outputs(&self, outputs: usize) -> usize {
        self.by_row.scale_outputs(outputs)
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

    fn of_targets(
        targets: &Targets,
        parameters: LikelihoodParameters,
    ) -> Result<Self, LikelihoodError> {
        let by_row = GaussianHeteroscedastic::of_targets(targets, parameters);
        let (degrees, name) = (
            parameters.degrees_of_freedom,
            LikelihoodName::StudentTHeteroscedastic,
        );
        match targets {
            Targets::Real { .. } => Ok(Self {
                law: StudentT::new(degrees).ok_or(LikelihoodError::DegreesOfFreedom(degrees))?,
                by_row: by_row?,
            }),
            Targets::Classes { .. } => Err(LikelihoodError::NeedsReal(name)),
        }
    }

    fn example(parameters: LikelihoodParameters) -> Self {
        Self {
            law: StudentT::example(parameters),
            by_row: GaussianHeteroscedastic::example(parameters),
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
        let targets = [0.3, -1.0, 9.0, 0.1, 0.0, 0.7, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let law = StudentTHeteroscedastic::new(4.0).unwrap();
        for variation in [1.0, 0.5, 1.7] {
            let law = law.with_variation(variation).unwrap();
            check::consistent(&law, &targets, 4);
            check::approximated(&law, 2);
        }
        assert!(StudentTHeteroscedastic::new(-1.0).is_none());
        assert!(law.with_variation(-1.0).is_none());
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
            StudentTHeteroscedastic::new(3.5)
                .and_then(|law| law.with_variation(0.6))
                .unwrap(),
            StudentT::new(3.5).unwrap(),
        );
        let value = own.log_density(&targets, &outputs, &[0.5, 9.0], None) + own.left_out(6);
        let each = ROWS.iter().map(|[y, f, g]| {
            let sigma = 0.5 * (0.3 * g).exp();
            plain.log_density(&[*y], &[*f], &[sigma], None) + plain.left_out(1)
        });
        assert!((value - each.sum::<f64>()).abs() < 1e-12);
    }

    /// Rows by the dozen, in blocks that are not full, of several targets, with some that are far away.
    #[test]
    fn blocks_are_the_sum_of_their_rows() {
        let law = StudentTHeteroscedastic::new(3.5).unwrap();
        let (rows, count) = (75, 2);
        let half = rows * count;
        let numbers = |factor: usize, scale: f64| -> Vec<f64> {
            let number = |at: usize| ((at * factor % 101) as f64 / 50.0 - 1.0) * scale;
            (0..half).map(number).collect()
        };
        let mut targets = [numbers(37, 3.0), vec![0.0; half]].concat();
        targets[80] = 1e120;
        let outputs = [numbers(53, 2.0), numbers(71, 5.0)].concat();
        let scales = [0.5, 2.0, 9.0, 9.0];
        let gradient = |targets: &[f64], outputs: &[f64], scales: &[f64]| {
            let mut own = (vec![0.0; outputs.len()], vec![0.0; scales.len()]);
            let derivatives = Derivatives {
                outputs: &mut own.0,
                log_scales: &mut own.1,
            };
            let value = law.log_density(targets, outputs, scales, Some(derivatives));
            (value, own)
        };
        let (value, (by_output, by_scale)) = gradient(&targets, &outputs, &scales);
        assert_eq!(value, law.log_density(&targets, &outputs, &scales, None));
        let near = |x: f64, y: f64| (x - y).abs() < 1e-11 * (1.0 + y.abs());
        let (mut sum, mut by_scale_sum) = (0.0, [0.0; 2]);
        for at in 0..half {
            let scales = [scales[at / rows], 9.0];
            let (value, (own, scale)) = gradient(
                &[targets[at], 0.0],
                &[outputs[at], outputs[half + at]],
                &scales,
            );
            sum += value;
            by_scale_sum[at / rows] += scale[0];
            assert!(
                near(by_output[at], own[0]) && near(by_output[half + at], own[1]),
                "{at}"
            );
        }
        assert!(near(value, sum), "{value} {sum}");
        assert!(near(by_scale[0], by_scale_sum[0]) && near(by_scale[1], by_scale_sum[1]));
        targets[3] = f64::NAN;
        assert!(law.log_density(&targets, &outputs, &scales, None).is_nan());
        targets[3] = 1e200;
        let value = law.log_density(&targets, &outputs, &scales, None);
        assert_eq!(value, f64::NEG_INFINITY);
    }

    #[test]
    fn tends_to_the_gaussian() {
        let [targets, outputs] = columns();
        let value = |law: &dyn Likelihood| {
            law.log_density(&targets, &outputs, &[0.5, 9.0], None) + law.left_out(6)
        };
        let wide = StudentTHeteroscedastic::new(1e8).unwrap();
        assert!((value(&wide) - value(&GaussianHeteroscedastic::default())).abs() < 1e-5);
    }

    /// However close to it, and with the normalisers, whose own rounding grows with ν, left out.
    #[test]
    fn is_the_gaussian_at_any_number_of_degrees() {
        let [targets, outputs] = columns();
        let fall = |law: &dyn Likelihood| {
            let value = |targets: &[f64]| law.log_density(targets, &outputs, &[0.5, 9.0], None);
            value(&targets) - value(&outputs)
        };
        let exact = fall(&GaussianHeteroscedastic::default());
        for degrees in [1e10, 1e13, 1e16, 1e18] {
            let law = StudentTHeteroscedastic::new(degrees).unwrap();
            let own = fall(&law);
            assert!(
                (own - exact).abs() < 1e-4 * exact.abs(),
                "{degrees}: {own} {exact}"
            );
        }
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
