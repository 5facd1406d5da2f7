//! Class probabilities of Gaussian outputs f ~ N(m, Σ): E[p(class | f)] by draws, or by approximations in closed form, which are the
//! likelihood's own ([`Likelihood::moderate`], [`Likelihood::bridge`]).

use serde::{Deserialize, Serialize};

use crate::compute::{Cholesky, LogSum, NotPositiveDefinite, Stream};
use crate::model::likelihood::Likelihood;

/// How probabilities are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// The mean over so many draws of the outputs.
    Mc(usize),
    /// The probit approximation, from variances alone.
    Probit,
    /// The Laplace bridge; of likelihoods without one the probit approximation.
    Bridge,
}

/// Appends the logarithms of the classes' probabilities for each row of `means` (n × C, row after row) with its covariance (C × C
/// each); nothing where targets are no classes.
///
/// # Errors
/// A covariance that is not positive semi-definite, even with jitter; by draws alone.
pub fn log_probabilities(
    likelihood: &dyn Likelihood,
    link: Link,
    [means, covariances]: [&[f64]; 2],
    outputs: usize,
    stream: &mut Stream,
    out: &mut Vec<f64>,
) -> Result<(), NotPositiveDefinite> {
    let mut cholesky = Cholesky::new(outputs);
    let (mut noise, mut f) = (vec![0.0; outputs], vec![0.0; outputs]);
    let rows = means
        .chunks_exact(outputs)
        .zip(covariances.chunks_exact(outputs * outputs));
    for (mean, covariance) in rows {
        f.copy_from_slice(mean);
        let variances = || covariance.iter().step_by(outputs + 1).copied();
        match link {
            Link::Bridge if likelihood.bridge(mean, covariance, out) => {}
            Link::Probit | Link::Bridge => {
                likelihood.moderate(&mut f, &variances().collect::<Vec<_>>(), &mut []);
                likelihood.log_probabilities(&f, out);
            }
            // a function that nothing random changes
            Link::Mc(_) if variances().all(|v| v <= 0.0) => likelihood.log_probabilities(&f, out),
            Link::Mc(draws) => {
                cholesky.factorise(|row, column| covariance[column * outputs + row])?;
                let (mut sums, mut own) = (Vec::new(), Vec::new());
                for _ in 0..draws {
                    stream.fill_normal(&mut noise);
                    f.copy_from_slice(mean);
                    cholesky.add_correlated(&mut f, &noise);
                    own.clear();
                    likelihood.log_probabilities(&f, &mut own);
                    sums.resize_with(own.len(), LogSum::default);
                    for (sum, &logarithm) in sums.iter_mut().zip(&own) {
                        sum.add(logarithm);
                    }
                }
                let average = |sum: &LogSum| sum.value() - (draws as f64).ln();
                out.extend(sums.iter().map(average));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::Purpose;
    use crate::model::likelihood::{Bernoulli, Categorical};

    fn probabilities(
        link: Link,
        means: &[f64],
        covariances: &[f64],
        outputs: usize,
        stream: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), NotPositiveDefinite> {
        let (numbers, mut found) = ([means, covariances], Vec::new());
        log_probabilities(&Categorical, link, numbers, outputs, stream, &mut found)?;
        for (out, logarithm) in out.iter_mut().zip(found) {
            *out = logarithm.exp();
        }
        Ok(())
    }

    #[test]
    fn logarithms_reach_further_than_probabilities() {
        let (mean, covariance) = ([2000.0, 0.0], [1e-9, 0.0, 0.0, 1e-9]);
        let mut stream = Stream::new(3, 0, Purpose::Prediction, 0);
        for link in [Link::Probit, Link::Bridge, Link::Mc(3)] {
            let (numbers, mut found) = ([&mean[..], &covariance], Vec::new());
            log_probabilities(&Categorical, link, numbers, 2, &mut stream, &mut found).unwrap();
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
        Categorical.mean(&mut exact);
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

    /// Of two classes with one output: the logistic integral over a fine grid.
    #[test]
    fn two_classes_with_one_output_have_links_too() {
        let mut stream = Stream::new(5, 0, Purpose::Prediction, 0);
        let (m, v) = (0.8_f64, 1.7_f64);
        let density =
            |f: f64| (-(f - m).powi(2) / (2.0 * v)).exp() / (std::f64::consts::TAU * v).sqrt();
        let integral: f64 = (-4000..4000)
            .map(|i| f64::from(i) * 0.005)
            .map(|f| density(f) / (1.0 + (-f).exp()) * 0.005)
            .sum();
        let links = [
            (Link::Mc(200_000), 2e-3),
            (Link::Probit, 0.02),
            (Link::Bridge, 0.02),
        ];
        for (link, tolerance) in links {
            let mut found = Vec::new();
            let numbers = [&[m][..], &[v]];
            log_probabilities(&Bernoulli, link, numbers, 1, &mut stream, &mut found).unwrap();
            assert!(
                (found[1].exp() - integral).abs() < tolerance,
                "{link:?} {found:?}"
            );
            assert!((found[0].exp() + found[1].exp() - 1.0).abs() < 1e-9);
        }
    }
}
