//! Targets as the Gaussian likelihood sees them, and class probabilities from its predictions.
//!
//! Real targets are standardised; a class c of C is coded as the vector e_c − 1/C (Hron et al. 2022, Section 4).
//! A prediction for a class is the posterior probability of its code, given that the target is one of the C codes:
//! p(c) ∝ Σ_draws N(e_c − 1/C; m, v I), with m and v the mean and variance (noise included) of each draw.

use super::dataset::Targets;
use super::standardisation::Standardisation;
use crate::compute::LogSum;

/// Coded training targets, column-major rows × outputs.
pub fn code(targets: &Targets, standardisation: &Standardisation) -> Vec<f64> {
    match targets {
        Targets::Real { values, names } => {
            let outputs = names.len();
            let column = |output: usize| {
                let map = standardisation.targets[output];
                values
                    .iter()
                    .skip(output)
                    .step_by(outputs)
                    .map(move |&y| map.standardise(y))
            };
            (0..outputs).flat_map(column).collect()
        }
        Targets::Classes { labels, names } => {
            let classes = names.len();
            let code = |class: usize| {
                labels
                    .iter()
                    .map(move |&label| class_code(label as usize == class, classes))
            };
            (0..classes).flat_map(code).collect()
        }
    }
}

/// One entry of e_c − 1/C.
fn class_code(is_label: bool, classes: usize) -> f64 {
    f64::from(u8::from(is_label)) - 1.0 / classes as f64
}

/// Logarithms of the class probabilities of one input from draws (m, v): `means` yields each draw's C means, `variances` its
/// variance with noise. Exact however small they are; the probabilities sum to 1. `out` has C entries.
///
/// Per draw, log N(e_c − 1/C; m, v I) = m_c/v − (C/2) log v − (‖m‖² + 1 − 1/C + (2/C) Σ m)/2v + const; the terms common
/// to all classes are kept, because they weigh the draws against each other.
pub fn class_log_probabilities<'a>(draws: impl Iterator<Item = (&'a [f64], f64)>, out: &mut [f64]) {
    let classes = out.len() as f64;
    let code_norm = 1.0 - 1.0 / classes;
    let mut sums = vec![LogSum::default(); out.len()];
    for (mean, variance) in draws {
        let norm: f64 = mean.iter().map(|m| m * m).sum();
        let average = mean.iter().sum::<f64>() / classes;
        let common =
            -0.5 * classes * variance.ln() - (norm + code_norm + 2.0 * average) / (2.0 * variance);
        for (sum, &m) in sums.iter_mut().zip(mean) {
            sum.add(common + m / variance);
        }
    }
    let total = LogSum::of(sums.iter().map(LogSum::value));
    if total.is_finite() {
        for (out, sum) in out.iter_mut().zip(&sums) {
            *out = sum.value() - total;
        }
    } else {
        out.fill(-classes.ln());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::standardisation::Affine;

    fn identity(outputs: usize) -> Standardisation {
        Standardisation {
            inputs: crate::model::standardisation::InputScaling::Columns(vec![]),
            targets: vec![
                Affine {
                    mean: 1.0,
                    scale: 2.0
                };
                outputs
            ],
            constant_columns: vec![],
            constant_targets: vec![],
        }
    }

    #[test]
    fn classes_are_one_hot_minus_one_over_c() {
        let names = vec!["a".into(), "b".into()];
        let targets = Targets::Classes {
            labels: vec![1, 0, 1],
            names,
        };
        assert_eq!(
            code(&targets, &identity(2)),
            [-0.5, 0.5, -0.5, 0.5, -0.5, 0.5]
        );
        let names = vec!["u".into(), "v".into()];
        let targets = Targets::Real {
            values: vec![1.0, 3.0, 5.0, 7.0],
            names,
        };
        assert_eq!(code(&targets, &identity(2)), [0.0, 2.0, 1.0, 3.0]);
    }

    #[test]
    fn probabilities_are_the_normalised_densities_of_the_codes() {
        let draws = [
            (vec![0.3, -0.1, -0.2], 0.05_f64),
            (vec![0.1, 0.4, -0.5], 0.3),
            (vec![-9.0, 2.0, 1.0], 0.01),
        ];
        let mut direct = [0.0; 3];
        for (m, v) in draws.iter().map(|(m, v)| (m, *v)) {
            for (c, p) in direct.iter_mut().enumerate() {
                let squares = m
                    .iter()
                    .enumerate()
                    .map(|(j, m)| (class_code(j == c, 3) - m).powi(2));
                *p += v.powf(-1.5) * (-squares.sum::<f64>() / (2.0 * v)).exp();
            }
        }
        let total: f64 = direct.iter().sum();
        let mut out = [0.0; 3];
        class_log_probabilities(draws.iter().map(|(m, v)| (m.as_slice(), *v)), &mut out);
        for (p, d) in out.iter().zip(direct) {
            assert!((p.exp() - d / total).abs() < 1e-12);
        }
    }

    #[test]
    fn a_class_that_no_draw_believes_in_keeps_a_finite_logarithm() {
        // (e_c − m)²/2v differs by 1/v between the classes
        let (draws, mut out) = ([([0.5, -0.5], 1e-4), ([0.5, -0.5], 1e-4)], [0.0; 2]);
        class_log_probabilities(draws.iter().map(|(m, v)| (m.as_slice(), *v)), &mut out);
        assert!(
            out[0].abs() < 1e-9 && (out[1] + 1e4).abs() < 1e-6,
            "{out:?}"
        );
    }
}
