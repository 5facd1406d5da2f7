//! Class c with probability softmax(f)_c.
//!
//! Targets are one-hot. log p = Σ_rows ⟨y, f⟩ − log Σ_c e^{f_c}, gradient y − softmax(f). At f = 0 the Fisher information
//! is I/C − 11ᵀ/C²: 1/C in every direction but the constant one, which does not matter. So pseudo-targets C·y − 1 of
//! variance C.

use super::curvature::exponentials;
use super::name::{
    LOG_PROBABILITIES, LikelihoodError, LikelihoodName, LikelihoodParameters, NamedLikelihood,
};
use super::{Approximation, Curvature, Derivatives, Likelihood, moderate_logits};
use crate::compute::{LogSum, Stream};
use crate::model::dataset::Targets;
use crate::model::standardisation::Standardisation;
use crate::model::targets;

/// The softmax likelihood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Categorical;

impl Likelihood for Categorical {
    fn log_density(
        &self,
        targets: &[f64],
        outputs: &[f64],
        scales: &[f64],
        mut derivatives: Option<Derivatives<'_>>,
    ) -> f64 {
        let classes = scales.len();
        let rows = targets.len() / classes;
        if let Some(derivatives) = &mut derivatives {
            derivatives.log_scales.fill(0.0);
        }
        let mut total = 0.0;
        for row in 0..rows {
            let entries = || (row..targets.len()).step_by(rows);
            let peak = entries().fold(f64::NEG_INFINITY, |peak, at| outputs[at].max(peak));
            let mut sum = 0.0;
            for at in entries() {
                let above = outputs[at] - peak;
                let exponential = above.exp();
                sum += exponential;
                total += targets[at] * above;
                if let Some(derivatives) = &mut derivatives {
                    derivatives.outputs[at] = exponential;
                }
            }
            if let Some(derivatives) = &mut derivatives {
                for at in entries() {
                    let probability = derivatives.outputs[at] / sum;
                    derivatives.outputs[at] = targets[at] - probability;
                }
            }
            total -= sum.ln();
        }
        total
    }

    fn approximation(&self, targets: &[f64], scales: &[f64]) -> Approximation {
        let classes = scales.len() as f64;
        Approximation {
            targets: targets.iter().map(|y| classes * y - 1.0).collect(),
            variances: vec![classes; scales.len()],
        }
    }

    /// diag(p) − p·pᵀ.
    fn curvature(&self, outputs: &[f64], _: &[f64], curvature: &mut Curvature) -> bool {
        curvature.set_softmax(outputs);
        true
    }

    fn moderate(&self, outputs: &mut [f64], variances: &[f64], _: &mut [f64]) {
        moderate_logits(outputs, variances);
    }

    /// MacKay (1998), Hobbhahn, Kristiadi & Hennig (2022): the mean of a Dirichlet of parameters
    /// (1 − 2/C + e^{m_k}/C²·Σ_l e^{−m_l})/Σ_kk, after m and Σ are conditioned on Σ_k f_k = 0.
    fn bridge(&self, mean: &[f64], covariance: &[f64], out: &mut Vec<f64>) -> bool {
        let (count, start) = (mean.len(), out.len());
        let row_sum = |k: usize| covariance[k * count..(k + 1) * count].iter().sum::<f64>();
        let total: f64 = covariance.iter().sum();
        // conditioned on the sum of all logits, along which probabilities do not change
        let shift = |k: usize| {
            if total > 0.0 {
                row_sum(k) / total
            } else {
                1.0 / count as f64
            }
        };
        let sum: f64 = mean.iter().sum();
        let logit = |k: usize| mean[k] - shift(k) * sum;
        let inverse: f64 = (0..count).map(|k| (-logit(k)).exp()).sum();
        let classes = count as f64;
        out.extend((0..count).map(|k| {
            let variance = covariance[k * (count + 1)] - shift(k) * row_sum(k);
            let spread = logit(k).exp() / (classes * classes) * inverse;
            (1.0 - 2.0 / classes + spread) / variance.max(f64::MIN_POSITIVE)
        }));
        let total: f64 = out[start..].iter().sum();
        if total.is_finite() && total > 0.0 {
            out[start..].iter_mut().for_each(|p| *p = (*p / total).ln());
        } else {
            out.truncate(start);
            self.log_probabilities(mean, out);
        }
        true
    }

    /// Class probabilities.
    fn mean(&self, outputs: &mut [f64]) {
        let sum = exponentials(outputs);
        outputs.iter_mut().for_each(|f| *f /= sum);
    }

    fn log_probabilities(&self, outputs: &[f64], out: &mut Vec<f64>) {
        let total = LogSum::of(outputs.iter().copied());
        out.extend(outputs.iter().map(|f| f - total));
    }

    fn simulate(&self, outputs: &[f64], _: &[f64], stream: &mut Stream, targets: &mut [f64]) {
        let mut probabilities = outputs.to_vec();
        self.mean(&mut probabilities);
        let mut rest = stream.uniform();
        let last = probabilities.len() - 1;
        targets.fill(0.0);
        for (class, probability) in probabilities.iter().enumerate() {
            if rest < *probability || class == last {
                targets[class] = 1.0;
                break;
            }
            rest -= probability;
        }
    }
}

impl NamedLikelihood for Categorical {
    const NAME: &str = "categorical";
    const PREDICTS: &str = LOG_PROBABILITIES;

    fn of_targets(targets: &Targets, _: LikelihoodParameters) -> Result<Self, LikelihoodError> {
        match targets {
            Targets::Classes { .. } => Ok(Self),
            Targets::Real { .. } => Err(LikelihoodError::NeedsClasses(LikelihoodName::Categorical)),
        }
    }

    fn example(_: LikelihoodParameters) -> Self {
        Self
    }

    /// One-hot.
    fn code(targets: &Targets, standardisation: &Standardisation) -> Vec<f64> {
        let Targets::Classes { labels, names } = targets else {
            return targets::code(targets, standardisation);
        };
        let one_hot = |class: usize| {
            let is_class = move |&label: &u32| f64::from(u8::from(label as usize == class));
            labels.iter().map(is_class)
        };
        (0..names.len()).flat_map(one_hot).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn logarithms_are_those_of_the_probabilities_and_reach_further() {
        let (mut near, mut logarithms) = ([0.3, -1.2, 2.0], Vec::new());
        Categorical.log_probabilities(&near, &mut logarithms);
        Categorical.mean(&mut near);
        for (p, logarithm) in near.iter().zip(&logarithms) {
            assert!((p.ln() - logarithm).abs() < 1e-14);
        }
        logarithms.clear();
        Categorical.log_probabilities(&[800.0, -800.0], &mut logarithms);
        assert_eq!(logarithms, [0.0, -1600.0]);
    }

    #[test]
    fn is_consistent() {
        // rows of class 0, 2, 1
        let targets = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0];
        check::consistent(&Categorical, &targets, 3);
        let mass = |class: usize| {
            let mut y = [0.0; 3];
            y[class] = 1.0;
            Categorical
                .log_density(&y, &[0.3, -1.0, 2.0], &[1.0; 3], None)
                .exp()
        };
        assert!(((0..3).map(mass).sum::<f64>() - 1.0).abs() < 1e-15);
        let far = [800.0, -800.0];
        assert_eq!(
            Categorical.log_density(&[0.0, 1.0], &far, &[1.0; 2], None),
            -1600.0
        );
    }

    #[test]
    fn the_approximation_has_the_fisher_information_off_the_constant_direction() {
        // Σ_c of squared scores is tr(I/C − 11ᵀ/C²) = 1 − 1/C: over the C − 1 directions that matter, 1/C each
        let mut stream = Stream::new(3, 0, crate::compute::Purpose::Initial, 0);
        let (classes, mut sum, mut y) = (4, 0.0, [0.0; 4]);
        for _ in 0..1000 {
            Categorical.simulate(&[0.0; 4], &[1.0; 4], &mut stream, &mut y);
            let pseudo = Categorical.approximation(&y, &[1.0; 4]);
            let score = pseudo.targets.iter().map(|t| t / pseudo.variances[0]);
            sum += score.map(|g| g * g).sum::<f64>() / (classes - 1) as f64;
            assert_eq!(pseudo.variances, [4.0; 4]);
        }
        assert!((sum / 1000.0 - 0.25).abs() < 1e-12);
    }
}
