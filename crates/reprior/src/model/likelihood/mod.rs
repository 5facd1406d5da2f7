//! Likelihoods: how targets depend on the network's outputs. One file each, with all that is the likelihood's own: density,
//! derivatives, curvature, links, the family of predictions, how targets are coded. A new one is one more file, and a line in
//! `name.rs` for its name.
//!
//! | name | y given f | targets |
//! |---|---|---|
//! | [`Gaussian`] | N(f, σ²) per output | real, standardised; classes as e_c − 1/C |
//! | [`GaussianHeteroscedastic`] | N(f, σ²e^{a·g}), an output g for each target | real, standardised |
//! | [`StudentT`] | f + σ·t_ν per output | real, standardised |
//! | [`StudentTHeteroscedastic`] | f + σe^{a·g/2}·t_ν, an output g for each target | real, standardised |
//! | [`Categorical`] | class c with probability softmax(f)_c | classes, one-hot |
//! | [`Bernoulli`] | second class with probability 1/(1 + e^{−f}) | two classes, as 0 and 1 |
//! | [`Poisson`] | counts with mean m·e^f, m the mean of the training counts | counts |
//!
//! Every likelihood comes with its own Gaussian approximation at f = 0, which is where the prior is centred: with g the
//! gradient and w the Fisher information of log p(y | f) there, pseudo-targets g/w of variance 1/w (one step of Fisher
//! scoring). Student-t and Poisson, for which that goes astray far from 0, take the mode of each target instead. The map T
//! of the `repriorised` coordinates is built from these. They do not change the posterior, only how close it is to
//! N(0, I) in those coordinates.

mod bernoulli;
mod categorical;
mod curvature;
mod gaussian;
mod heteroscedastic;
mod poisson;
mod rows;
mod student_t;
mod student_t_heteroscedastic;

// Names of likelihoods in the program's settings; they change without notice.
#[doc(hidden)]
pub mod name;

use std::fmt;

use crate::compute::Stream;
use crate::metrics::PredictiveFamily;

pub use bernoulli::Bernoulli;
pub use categorical::Categorical;
pub use curvature::Curvature;
pub use gaussian::Gaussian;
pub use heteroscedastic::GaussianHeteroscedastic;
pub use poisson::Poisson;
pub use student_t::StudentT;
pub use student_t_heteroscedastic::StudentTHeteroscedastic;

/// A likelihood. Matrices are column-major, rows × C; `scales` has one σ per output and is ignored where there is none.
pub trait Likelihood: fmt::Debug + Send + Sync {
    /// log p(targets | outputs), summed over rows. Writes the derivatives where they are asked for.
    ///
    /// What is not finite rejects the proposal. [`left_out`](Self::left_out) says what is missing: samplers have no use for it.
    fn log_density(
        &self,
        targets: &[f64],
        outputs: &[f64],
        scales: &[f64],
        derivatives: Option<Derivatives<'_>>,
    ) -> f64;

    /// What [`log_density`](Self::log_density) leaves out of log p of so many targets, a number that hangs on nothing else. Every
    /// log-density, NLL and marginal likelihood that is reported has it.
    fn left_out(&self, _targets: usize) -> f64 {
        0.0
    }

    /// The Gaussian approximation at outputs of zero.
    fn approximation(&self, targets: &[f64], scales: &[f64]) -> Approximation;

    /// The Fisher information of the outputs of one row, which Laplace approximations are made of; whether there is one. Without it
    /// they are refused.
    fn curvature(&self, _outputs: &[f64], _scales: &[f64], _curvature: &mut Curvature) -> bool {
        false
    }

    /// Takes in that the outputs of one row are f ~ N(`outputs`, diag(`variances`)): p(y | f) at `outputs` and `scales` is then
    /// E[p(y | f)], or close to it. Without more the outputs stay as they are.
    fn moderate(&self, _outputs: &mut [f64], _variances: &[f64], _scales: &mut [f64]) {}

    /// Appends the logarithms of E[p(class | f)] for f ~ N(`mean`, `covariance`) (C × C) of one row by the Laplace bridge; whether
    /// there is one.
    fn bridge(&self, _mean: &[f64], _covariance: &[f64], _out: &mut Vec<f64>) -> bool {
        false
    }

    /// E[y | f] of one row, in place of its outputs f.
    fn mean(&self, _outputs: &mut [f64]) {}

    /// Appends the logarithms of the classes' probabilities at the outputs f of one row, exact however small they are;
    /// nothing where targets are no classes.
    fn log_probabilities(&self, _outputs: &[f64], _out: &mut Vec<f64>) {}

    /// The distribution of one real target given [`mean`](Self::mean) of its output and σ²; none where targets are classes, whose
    /// probabilities [`log_probabilities`](Self::log_probabilities) gives.
    fn family(&self) -> Option<PredictiveFamily> {
        None
    }

    /// Appends the σ of each target of one row where outputs change it from `scales`; whether they do.
    fn row_noise(&self, _outputs: &[f64], _scales: &[f64], _noise: &mut Vec<f64>) -> bool {
        false
    }

    /// How many of the network's outputs, the last ones, say how large the noise is.
    fn scale_outputs(&self, _outputs: usize) -> usize {
        0
    }

    /// Draws the targets of one row.
    fn simulate(&self, outputs: &[f64], scales: &[f64], stream: &mut Stream, targets: &mut [f64]);

    /// Whether y ~ N(f, σ²): the readout is then integrated out in closed form.
    fn is_gaussian(&self) -> bool {
        false
    }

    /// Whether there is a scale σ.
    fn has_scale(&self) -> bool {
        false
    }
}

/// Where derivatives of log p go; all entries are overwritten.
#[derive(Debug)]
pub struct Derivatives<'a> {
    /// ∂/∂f, column-major rows × C.
    pub outputs: &'a mut [f64],
    /// ∂/∂ log σ of each output.
    pub log_scales: &'a mut [f64],
}

/// Targets and the variances of the noise under which a Gaussian likelihood would look the same near f = 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Approximation {
    /// Column-major, rows × C.
    pub targets: Vec<f64>,
    /// C numbers, one for each output, positive. Outputs that follow one another with the same one share a factorisation.
    pub variances: Vec<f64>,
}

/// The probit approximation of the logistic function's mean: f/√(1 + π/8·v) in place of f ~ N(f, v) (Spiegelhalter & Lauritzen
/// 1990; MacKay 1992).
fn moderate_logits(outputs: &mut [f64], variances: &[f64]) {
    for (f, variance) in outputs.iter_mut().zip(variances) {
        *f /= (1.0 + std::f64::consts::PI / 8.0 * variance.max(0.0)).sqrt();
    }
}

#[cfg(test)]
pub(crate) mod check {
    //! What every likelihood must satisfy, for the tests of each.

    use super::*;
    use crate::compute::Purpose;

    /// That e^(log p) adds up to 1 over the targets of one row of one output: over counts from 0 to 400, or by quadrature over
    /// real ones.
    pub fn normalised(likelihood: &dyn Likelihood, is_count: bool) {
        for (f, sigma) in [(0.4, 0.3), (-0.7, 1.7)] {
            let density = |y: f64| {
                let value = likelihood.log_density(&[y], &[f], &[sigma], None);
                (value + likelihood.left_out(1)).exp()
            };
            let total: f64 = if is_count {
                (0..=400).map(|y| density(f64::from(y))).sum()
            } else {
                // y = f + sinh(u), whose tails are reached
                let step = 1e-3;
                let nodes = (-20_000..=20_000).map(|k| f64::from(k) * step);
                nodes.map(|u| density(f + u.sinh()) * u.cosh() * step).sum()
            };
            assert!((total - 1.0).abs() < 1e-6, "{likelihood:?}: {total}");
        }
    }

    /// Derivatives against central differences; that the score has mean zero under `simulate`; and that the mean is that
    /// of `mean`.
    pub fn consistent(likelihood: &dyn Likelihood, targets: &[f64], outputs: usize) {
        let rows = targets.len() / outputs;
        let mut stream = Stream::new(1, 0, Purpose::Initial, 0);
        let mut f = vec![0.0; targets.len()];
        stream.fill_normal(&mut f);
        let scales: Vec<f64> = (0..outputs).map(|j| 0.4 + 0.2 * j as f64).collect();
        let (mut by_output, mut by_scale) = (vec![f64::NAN; f.len()], vec![f64::NAN; outputs]);
        let derivatives = Derivatives {
            outputs: &mut by_output,
            log_scales: &mut by_scale,
        };
        let value = likelihood.log_density(targets, &f, &scales, Some(derivatives));
        assert_eq!(value, likelihood.log_density(targets, &f, &scales, None));
        let h = 1e-5;
        for at in 0..f.len() {
            let mut moved = f.clone();
            moved[at] += h;
            let up = likelihood.log_density(targets, &moved, &scales, None);
            moved[at] -= 2.0 * h;
            let numeric = (up - likelihood.log_density(targets, &moved, &scales, None)) / (2.0 * h);
            assert!(
                (numeric - by_output[at]).abs() < 1e-6 * (1.0 + numeric.abs()),
                "{likelihood:?} {at}"
            );
        }
        for j in 0..outputs {
            let mut moved = scales.clone();
            moved[j] *= h.exp();
            let up = likelihood.log_density(targets, &f, &moved, None);
            moved[j] = scales[j] * (-h).exp();
            let numeric = (up - likelihood.log_density(targets, &f, &moved, None)) / (2.0 * h);
            assert!(
                (numeric - by_scale[j]).abs() < 1e-6 * (1.0 + numeric.abs()),
                "{likelihood:?} scale"
            );
        }
        // 40,000 simulated rows: scores are zero on average, targets have the mean that they should, and the mean of the scores'
        // products is the curvature
        let row: Vec<f64> = (0..outputs).map(|j| f[j * rows]).collect();
        let mut mean = row.clone();
        likelihood.mean(&mut mean);
        let mut information = vec![0.0; outputs * outputs];
        let mut curvature = Curvature::default();
        assert!(likelihood.curvature(&row, &scales, &mut curvature));
        curvature.add_matrix(&mut information);
        let mut products = vec![[0.0; 2]; outputs * outputs];
        let (count, mut y) = (40_000, vec![0.0; outputs]);
        let (mut sums, mut squares) = (vec![0.0; 2 * outputs], vec![0.0; 2 * outputs]);
        for _ in 0..count {
            likelihood.simulate(&row, &scales, &mut stream, &mut y);
            let mut score = vec![0.0; outputs];
            let derivatives = Derivatives {
                outputs: &mut score,
                log_scales: &mut by_scale,
            };
            likelihood.log_density(&y, &row, &scales, Some(derivatives));
            for (at, [sum, square]) in products.iter_mut().enumerate() {
                let excess = score[at / outputs] * score[at % outputs] - information[at];
                *sum += excess;
                *square += excess * excess;
            }
            for j in 0..outputs {
                for (at, value) in [(j, score[j]), (outputs + j, y[j] - mean[j])] {
                    sums[at] += value;
                    squares[at] += value * value;
                }
            }
        }
        for (sum, square) in sums.iter().zip(&squares) {
            // nothing but zeros where an output has no target
            let z = sum / square.sqrt().max(1e-6);
            assert!(z.abs() < 4.5, "{likelihood:?}: {z}");
        }
        for [sum, square] in products {
            // a sum of rounding where the products do not vary
            let z = sum / square.sqrt().max(1e-6);
            assert!(z.abs() < 4.5, "{likelihood:?}: curvature {z}");
        }
    }

    /// The approximation's score and Fisher information at f = 0, per entry and averaged over what `simulate` gives.
    pub fn approximated(likelihood: &dyn Likelihood, outputs: usize) {
        let scales = vec![0.5; outputs];
        let zeros = vec![0.0; outputs];
        let mut stream = Stream::new(2, 0, Purpose::Initial, 0);
        let (count, mut y) = (40_000, vec![0.0; outputs]);
        let (mut information, mut variances) = (vec![0.0; outputs], Vec::new());
        for _ in 0..count {
            likelihood.simulate(&zeros, &scales, &mut stream, &mut y);
            let (mut score, mut unused) = (vec![0.0; outputs], vec![0.0; outputs]);
            let derivatives = Derivatives {
                outputs: &mut score,
                log_scales: &mut unused,
            };
            likelihood.log_density(&y, &zeros, &scales, Some(derivatives));
            let approximation = likelihood.approximation(&y, &scales);
            variances = approximation.variances;
            for (information, g) in information.iter_mut().zip(score) {
                *information += g * g / f64::from(count);
            }
        }
        for (information, variance) in information.iter().zip(variances) {
            assert!(
                (information * variance - 1.0).abs() < 0.05,
                "{likelihood:?}: {information} {variance}"
            );
        }
    }
}
