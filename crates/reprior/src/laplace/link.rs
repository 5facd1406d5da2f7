//! Class probabilities E[softmax(f)] of Gaussian logits f ~ N(m, Σ): by draws, or by approximations in closed form.
//!
//! * `probit` (MacKay 1992; Spiegelhalter & Lauritzen 1990): softmax(m/√(1 + π/8·diag Σ)).
//! * `bridge`, the Laplace bridge (MacKay 1998; Hobbhahn, Kristiadi & Hennig 2022): the mean of a Dirichlet of parameters
//!   (1 − 2/C + e^{m_k}/C²·Σ_l e^{−m_l})/Σ_kk, after m and Σ are conditioned on Σ_k f_k = 0.

use serde::{Deserialize, Serialize};

use crate::compute::{Cholesky, LogSum, NotPositiveDefinite, Stream};

/// How probabilities are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// The mean over so many draws of the logits.
    Mc(usize),
    /// Multi-class probit.
    Probit,
    /// The Laplace bridge.
    Bridge,
}

/// `out` ← logarithms of the probabilities of each row of `means` (n × C, row after row) with its covariance (C × C each).
///
/// # Errors
/// A covariance that is not positive semi-definite, even with jitter; by draws alone.
pub fn log_probabilities(
    link: Link,
    means: &[f64],
    covariances: &[f64],
    outputs: usize,
    stream: &mut Stream,
    out: &mut [f64],
) -> Result<(), NotPositiveDefinite> {
    let mut cholesky = Cholesky::new(outputs);
    let rows = means
        .chunks_exact(outputs)
        .zip(covariances.chunks_exact(outputs * outputs));
    for ((mean, covariance), out) in rows.zip(out.chunks_exact_mut(outputs)) {
        match link {
            Link::Probit => {
                for (k, out) in out.iter_mut().enumerate() {
                    let variance = covariance[k * (outputs + 1)].max(0.0);
                    *out = mean[k] / (1.0 + std::f64::consts::PI / 8.0 * variance).sqrt();
                }
                log_softmax(out);
            }
            Link::Bridge => bridge(mean, covariance, out),
            // a function that nothing random changes
            Link::Mc(_) if covariance.iter().step_by(outputs + 1).all(|v| *v <= 0.0) => {
                out.copy_from_slice(mean);
                log_softmax(out);
            }
            Link::Mc(draws) => {
                cholesky.factorise(|row, column| covariance[column * outputs + row])?;
                let (mut noise, mut logits) = (vec![0.0; outputs], vec![0.0; outputs]);
                let mut sums = vec![LogSum::default(); outputs];
                for _ in 0..draws {
                    stream.fill_normal(&mut noise);
                    logits.copy_from_slice(mean);
                    cholesky.add_correlated(&mut logits, &noise);
                    log_softmax(&mut logits);
                    for (sum, &logarithm) in sums.iter_mut().zip(&logits) {
                        sum.add(logarithm);
                    }
                }
                for (out, sum) in out.iter_mut().zip(&sums) {
                    *out = sum.value() - (draws as f64).ln();
                }
            }
        }
    }
    Ok(())
}

fn bridge(mean: &[f64], covariance: &[f64], out: &mut [f64]) {
    let count = mean.len();
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
    for (k, out) in out.iter_mut().enumerate() {
        let variance = covariance[k * (count + 1)] - shift(k) * row_sum(k);
        let spread = logit(k).exp() / (classes * classes) * inverse;
        *out = (1.0 - 2.0 / classes + spread) / variance.max(f64::MIN_POSITIVE);
    }
    let total: f64 = out.iter().sum();
    if total.is_finite() && total > 0.0 {
        out.iter_mut().for_each(|p| *p = (*p / total).ln());
    } else {
        out.copy_from_slice(mean);
        log_softmax(out);
    }
}

fn log_softmax(logits: &mut [f64]) {
    let total = LogSum::of(logits.iter().copied());
    logits.iter_mut().for_each(|f| *f -= total);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::Purpose;

    fn probabilities(
        link: Link,
        means: &[f64],
        covariances: &[f64],
        outputs: usize,
        stream: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), NotPositiveDefinite> {
        log_probabilities(link, means, covariances, outputs, stream, out)?;
        out.iter_mut().for_each(|p| *p = p.exp());
        Ok(())
    }

    #[test]
    fn logarithms_reach_further_than_probabilities() {
        let (mean, covariance, mut found) = ([2000.0, 0.0], [1e-9, 0.0, 0.0, 1e-9], [0.0; 2]);
        let mut stream = Stream::new(3, 0, Purpose::Prediction, 0);
        for link in [Link::Probit, Link::Bridge, Link::Mc(3)] {
            log_probabilities(link, &mean, &covariance, 2, &mut stream, &mut found).unwrap();
            assert!(found[0].abs() < 1e-6, "{link:?} {found:?}");
            assert!((found[1] + 2000.0).abs() < 0.1, "{link:?} {found:?}");
        }
    }

    /// All three agree where logits hardly vary; draws agree with a sum over a fine grid of two logits where they do.
    #[test]
    fn links_agree_where_they_should() {
        let mut stream = Stream::new(3, 0, Purpose::Prediction, 0);
        let mean = [1.0, -0.5, 0.2];
        let small: Vec<f64> = (0..9)
            .map(|at| if at % 4 == 0 { 1e-3 } else { 0.0 })
            .collect();
        let mut exact = mean;
        log_softmax(&mut exact);
        exact.iter_mut().for_each(|p| *p = p.exp());
        for link in [Link::Mc(20_000), Link::Probit] {
            let mut found = [0.0; 3];
            probabilities(link, &mean, &small, 3, &mut stream, &mut found).unwrap();
            for (a, b) in found.iter().zip(exact) {
                assert!((a - b).abs() < 2e-3, "{link:?} {found:?}");
            }
        }
        // two classes: a logistic integral of the difference of the logits
        let covariance = [1.5, 0.4, 0.4, 0.8];
        let (m, v) = (1.2, 1.5 + 0.8 - 2.0 * 0.4);
        let density =
            |f: f64| (-(f - m).powi(2) / (2.0 * v)).exp() / (std::f64::consts::TAU * v).sqrt();
        let integral: f64 = (-4000..4000)
            .map(|i| f64::from(i) * 0.005)
            .map(|f| density(f) / (1.0 + (-f).exp()) * 0.005)
            .sum();
        let mut found = [0.0; 2];
        let link = Link::Mc(200_000);
        probabilities(link, &[1.0, -0.2], &covariance, 2, &mut stream, &mut found).unwrap();
        assert!((found[0] - integral).abs() < 2e-3, "{found:?} {integral}");
        for link in [Link::Probit, Link::Bridge] {
            probabilities(link, &[1.0, -0.2], &covariance, 2, &mut stream, &mut found).unwrap();
            assert!(
                (found[0] - integral).abs() < 0.06,
                "{link:?} {found:?} {integral}"
            );
            assert!((found[0] + found[1] - 1.0).abs() < 1e-12);
        }
    }

    /// By hand, for a diagonal covariance and three classes.
    #[test]
    fn the_bridge_is_the_formula() {
        let (mean, variance) = ([0.5, 0.1, -0.6], 0.7);
        let covariance: Vec<f64> = (0..9)
            .map(|at| if at % 4 == 0 { variance } else { 0.0 })
            .collect();
        let mut found = [0.0; 3];
        let mut stream = Stream::new(0, 0, Purpose::Prediction, 0);
        probabilities(Link::Bridge, &mean, &covariance, 3, &mut stream, &mut found).unwrap();
        // the mean is zero already; every variance becomes 0.7·(1 − 1/3)
        let inverse: f64 = mean.iter().map(|m| (-m).exp()).sum();
        let alpha =
            mean.map(|m| (1.0 - 2.0 / 3.0 + m.exp() / 9.0 * inverse) / (variance * 2.0 / 3.0));
        let total: f64 = alpha.iter().sum();
        for (a, b) in found.iter().zip(alpha) {
            assert!((a - b / total).abs() < 1e-12);
        }
    }
}
