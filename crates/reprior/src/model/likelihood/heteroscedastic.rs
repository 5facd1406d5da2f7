//! y_j ~ N(f_j, σ_j²·e^{a·g_j}): a Gaussian whose noise depends on the inputs. A network has two outputs for each target, first all f,
//! then all g (Nix & Weigend 1994). With a the noise of single rows may go less far than the function, or further.
//!
//! With r = y − f and v = σ²e^{ag}, log p = Σ −½r²/v − log σ − ½ag − ½ log 2π; scores r/v of f, ½a(r²/v − 1) of g and r²/v − 1 of log σ;
//! Fisher information 1/v of f and ½a² of g. Coded targets have a zero for each g, and scales one number, which does not count.

use super::name::{LikelihoodError, LikelihoodName, LikelihoodParameters, NamedLikelihood};
use super::rows::{BLOCK, Rows};
use super::{Approximation, Curvature, Derivatives, Likelihood};
use crate::compute::{Stream, simd};
use crate::metrics::PredictiveFamily;
use crate::model::dataset::Targets;
use crate::model::standardisation::Standardisation;
use crate::model::targets;

/// The Fisher information of f at v = 1, and of log v.
const INFORMATION: [f64; 2] = [1.0, 0.5];

/// The Gaussian likelihood with a noise of every row's own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GaussianHeteroscedastic {
    /// a.
    pub(super) variation: f64,
}

/// With a = 1.
impl Default for GaussianHeteroscedastic {
    fn default() -> Self {
        Self { variation: 1.0 }
    }
}

impl GaussianHeteroscedastic {
    /// With another a; none if that is not positive and finite.
    pub fn new(variation: f64) -> Option<Self> {
        (variation > 0.0 && variation.is_finite()).then_some(Self { variation })
    }

    /// The targets themselves and g = 0, with one over the Fisher informations there (given those of f at v = 1 and of log v): the mean of those
    /// of all f, and that of each g.
    pub(super) fn approximation_by(
        &self,
        targets: &[f64],
        scales: &[f64],
        [of_mean, of_log_variance]: [f64; 2],
    ) -> Approximation {
        let half = scales.len() / 2;
        let of_means = scales[..half].iter().map(|sigma| of_mean / sigma.powi(2));
        let of_mean = of_means.sum::<f64>() / half as f64;
        let of_logarithm = of_log_variance * self.variation * self.variation;
        let of_outputs = |information: f64| vec![1.0 / information; half];
        Approximation {
            targets: targets.to_vec(),
            variances: [of_outputs(of_mean), of_outputs(of_logarithm)].concat(),
        }
    }

    /// That of each f over its row's v, and of each g.
    pub(super) fn set_curvature(
        &self,
        outputs: &[f64],
        scales: &[f64],
        [of_mean, of_log_variance]: [f64; 2],
        curvature: &mut Curvature,
    ) {
        let (_, logarithms) = outputs.split_at(outputs.len() / 2);
        let of_means = logarithms
            .iter()
            .zip(scales)
            .map(|(g, sigma)| of_mean * (-self.variation * g).exp() / (sigma * sigma));
        let of_logarithm = of_log_variance * self.variation * self.variation;
        curvature.set_diagonal(of_means.chain(logarithms.iter().map(|_| of_logarithm)));
    }
}

impl Likelihood for GaussianHeteroscedastic {
    fn log_density(
        &self,
        targets: &[f64],
        outputs: &[f64],
        scales: &[f64],
        mut derivatives: Option<Derivatives<'_>>,
    ) -> f64 {
        let rows = Rows::of(targets, scales, self.variation);
        let mut total = 0.0;
        for (j, &scale) in scales[..rows.count].iter().enumerate() {
            let log_variance = 2.0 * scale.ln();
            // of each lane, with −1 for every row that a block lacks
            let (mut losses, mut excesses) = ([0.0; BLOCK], [0.0; BLOCK]);
            let mut lacking = 0;
            simd(
                #[inline(always)]
                || {
                    for at in rows.blocks(j) {
                        let block = rows.block(targets, outputs, log_variance, at.clone());
                        let (mut of_mean, mut of_logarithm) = ([0.0; BLOCK], [0.0; BLOCK]);
                        for i in 0..BLOCK {
                            of_mean[i] = block.residual[i] * block.precision[i];
                            let excess = block.residual[i] * of_mean[i] - 1.0;
                            of_logarithm[i] = 0.5 * excess;
                            losses[i] += excess + 1.0 + block.log_variance[i];
                            excesses[i] += excess;
                        }
                        lacking += BLOCK - at.len();
                        if let Some(derivatives) = &mut derivatives {
                            let all = &mut *derivatives.outputs;
                            rows.write(all, at, &of_mean, &of_logarithm);
                        }
                    }
                },
            );
            total -= 0.5 * losses.iter().sum::<f64>();
            let by_log_scale = excesses.iter().sum::<f64>() + lacking as f64;
            if let Some(derivatives) = &mut derivatives {
                derivatives.log_scales[j] = by_log_scale;
                derivatives.log_scales[rows.count + j] = 0.0;
            }
        }
        total
    }

    /// −½ log 2π of each target.
    fn left_out(&self, targets: usize) -> f64 {
        -0.25 * targets as f64 * std::f64::consts::TAU.ln()
    }

    /// The targets themselves and g = 0, with one over the Fisher informations there: the mean of those of all f, and that of each g. Scores of g at f = 0, far
    /// from where f will be, say nothing.
    fn approximation(&self, targets: &[f64], scales: &[f64]) -> Approximation {
        self.approximation_by(targets, scales, INFORMATION)
    }

    /// 1/v of each f, ½a² of each g.
    fn curvature(&self, outputs: &[f64], scales: &[f64], curvature: &mut Curvature) -> bool {
        self.set_curvature(outputs, scales, INFORMATION, curvature);
        true
    }

    /// f of each target; zeros in place of g.
    fn mean(&self, outputs: &mut [f64]) {
        let half = outputs.len() / 2;
        outputs[half..].fill(0.0);
    }

    fn row_noise(&self, outputs: &[f64], scales: &[f64], noise: &mut Vec<f64>) -> bool {
        let (_, logarithms) = outputs.split_at(outputs.len() / 2);
        noise.extend(
            logarithms
                .iter()
                .zip(scales)
                .map(|(g, sigma)| sigma * (0.5 * self.variation * g).exp()),
        );
        true
    }

    fn scale_outputs(&self, outputs: usize) -> usize {
        outputs / 2
    }

    fn simulate(&self, outputs: &[f64], scales: &[f64], stream: &mut Stream, targets: &mut [f64]) {
        let half = outputs.len() / 2;
        for j in 0..half {
            let logarithm = 0.5 * self.variation * outputs[half + j];
            targets[j] = outputs[j] + scales[j] * logarithm.exp() * stream.normal();
        }
        targets[half..].fill(0.0);
    }

    fn family(&self) -> Option<PredictiveFamily> {
        Some(PredictiveFamily::NORMAL)
    }

    fn has_scale(&self) -> bool {
        true
    }
}

impl NamedLikelihood for GaussianHeteroscedastic {
    const NAME: &str = "gaussian-heteroscedastic";
    const PREDICTS: &str = "function of this draw, in the target's own units";

    fn of_targets(
        targets: &Targets,
        parameters: LikelihoodParameters,
    ) -> Result<Self, LikelihoodError> {
        let variation = parameters.noise_variation;
        match targets {
            Targets::Real { .. } => {
                Self::new(variation).ok_or(LikelihoodError::NoiseVariation(variation))
            }
            Targets::Classes { .. } => Err(LikelihoodError::NeedsReal(
                LikelihoodName::GaussianHeteroscedastic,
            )),
        }
    }

    fn example(parameters: LikelihoodParameters) -> Self {
        Self {
            variation: parameters.noise_variation,
        }
    }

    fn outputs(targets: &Targets) -> usize {
        2 * targets.outputs()
    }

    fn code(targets: &Targets, standardisation: &Standardisation) -> Vec<f64> {
        let mut coded = targets::code(targets, standardisation);
        coded.resize(2 * coded.len(), 0.0);
        coded
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Gaussian, check};
    use super::*;

    #[test]
    fn is_consistent() {
        let targets = [0.3, -1.0, 2.0, 0.1, 0.0, 0.7, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        for variation in [1.0, 0.5, 1.7] {
            let law = GaussianHeteroscedastic::new(variation).unwrap();
            check::consistent(&law, &targets, 4);
            check::approximated(&law, 2);
        }
        assert!(GaussianHeteroscedastic::new(0.0).is_none());
        assert!(GaussianHeteroscedastic::new(f64::NAN).is_none());
    }

    /// At any g it is the Gaussian likelihood of another σ.
    #[test]
    fn each_row_is_gaussian_with_its_own_noise() {
        let rows = [[0.4, -0.3, 0.9], [-1.2, 0.6, 0.1], [2.0, 0.0, -0.7]];
        let column = |at: usize| rows.map(|row| row[at]).to_vec();
        let targets = [column(0), vec![0.0; 3]].concat();
        let outputs = [column(1), column(2)].concat();
        let own = GaussianHeteroscedastic::new(0.6).unwrap();
        let value = own.log_density(&targets, &outputs, &[0.5, 9.0], None) + own.left_out(6);
        let expected: f64 = rows
            .iter()
            .map(|[y, f, g]| {
                let sigma = 0.5 * (0.3 * g).exp();
                Gaussian.log_density(&[*y], &[*f], &[sigma], None) + Gaussian.left_out(1)
            })
            .sum();
        assert!((value - expected).abs() < 1e-12);
        let mut noise = Vec::new();
        assert!(own.row_noise(&[0.1, 0.9], &[0.5, 9.0], &mut noise));
        assert_eq!(noise, [0.5 * (0.3_f64 * 0.9).exp()]);
    }
}
