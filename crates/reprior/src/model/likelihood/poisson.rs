//! Counts with mean m·e^f; m is the mean of the training counts of each output, so that a prior centred at f = 0 is
//! centred at the data.
//!
//! log p = Σ y(f + log m) − m·e^f − log y!, gradient y − m·e^f. At f = 0 the Fisher information is m: pseudo-targets
//! log((y + ½)/(m + ½)) of variance 1/m.

use rand_distr::{Distribution, Poisson as PoissonLaw};

use super::name::{
    LikelihoodError, LikelihoodName, LikelihoodParameters, NamedLikelihood, column_major,
};
use super::{Approximation, Curvature, Derivatives, Likelihood};
use crate::compute::Stream;
use crate::metrics::{PredictiveFamily, PredictiveLaw, poisson};
use crate::model::dataset::Targets;
use crate::model::standardisation::Standardisation;
use crate::model::targets;

/// The Poisson likelihood with a logarithmic link.
#[derive(Debug, Clone, PartialEq)]
pub struct Poisson {
    means: Vec<f64>,
}

impl Poisson {
    /// With mean counts m of every output at f = 0, each positive and finite; `None` otherwise.
    pub fn new(means: Vec<f64>) -> Option<Self> {
        let is_possible = means.iter().all(|mean| *mean > 0.0 && mean.is_finite());
        is_possible.then_some(Self { means })
    }

    /// With the mean of column-major training counts, or a half over the number of rows where all are zero.
    pub fn of_counts(counts: &[f64], outputs: usize) -> Option<Self> {
        let rows = counts.len() / outputs.max(1);
        let mean = |column: &[f64]| column.iter().sum::<f64>().max(0.5) / rows as f64;
        Self::new(counts.chunks_exact(rows.max(1)).map(mean).collect())
    }
}

impl Likelihood for Poisson {
    fn log_density(
        &self,
        targets: &[f64],
        outputs: &[f64],
        _: &[f64],
        mut derivatives: Option<Derivatives<'_>>,
    ) -> f64 {
        let rows = targets.len() / self.means.len();
        if let Some(derivatives) = &mut derivatives {
            derivatives.log_scales.fill(0.0);
        }
        let mut total = 0.0;
        for (j, mean) in self.means.iter().enumerate() {
            let offset = mean.ln();
            for at in j * rows..(j + 1) * rows {
                let (y, logarithm) = (targets[at], outputs[at] + offset);
                let rate = logarithm.exp();
                total += y * logarithm - rate - libm::lgamma(y + 1.0);
                if let Some(derivatives) = &mut derivatives {
                    derivatives.outputs[at] = y - rate;
                }
            }
        }
        total
    }

    /// Targets log((y + ½)/(m + ½)), where the likelihood of one count has its mode but for the halves, rather than score
    /// over information at 0: that grows with y itself, and e^f of it beyond every bound that a chain could come back
    /// from. One variance for all outputs: one over the mean of their information.
    fn approximation(&self, targets: &[f64], _: &[f64]) -> Approximation {
        let rows = targets.len() / self.means.len();
        let centred = |(at, y): (usize, &f64)| ((y + 0.5) / (self.means[at / rows] + 0.5)).ln();
        let information = self.means.iter().sum::<f64>() / self.means.len() as f64;
        Approximation {
            targets: targets.iter().enumerate().map(centred).collect(),
            variances: vec![1.0 / information; self.means.len()],
        }
    }

    /// m·e^f of each output.
    fn curvature(&self, outputs: &[f64], _: &[f64], curvature: &mut Curvature) -> bool {
        let pairs = outputs.iter().zip(&self.means);
        curvature.set_diagonal(pairs.map(|(f, mean)| mean * f.exp()));
        true
    }

    /// The mean count is that of f ~ N(f, v): m·e^{f + v/2}.
    fn moderate(&self, outputs: &mut [f64], variances: &[f64], _: &mut [f64]) {
        for (f, variance) in outputs.iter_mut().zip(variances) {
            *f += 0.5 * variance;
        }
    }

    /// Rates m·e^f.
    fn mean(&self, outputs: &mut [f64]) {
        for (f, mean) in outputs.iter_mut().zip(&self.means) {
            *f = mean * f.exp();
        }
    }

    fn family(&self) -> Option<PredictiveFamily> {
        Some(PredictiveFamily::new(&PoissonFamily, 0.0))
    }

    fn simulate(&self, outputs: &[f64], _: &[f64], stream: &mut Stream, targets: &mut [f64]) {
        for ((y, f), mean) in targets.iter_mut().zip(outputs).zip(&self.means) {
            let law = PoissonLaw::new(mean * f.exp());
            *y = law.map_or(0.0, |law| law.sample(stream.generator()));
        }
    }
}

impl NamedLikelihood for Poisson {
    const NAME: &str = "poisson";
    const PREDICTS: &str = "mean count of this draw";

    fn of_targets(targets: &Targets, _: LikelihoodParameters) -> Result<Self, LikelihoodError> {
        let Targets::Real { values, names } = targets else {
            return Err(LikelihoodError::NeedsReal(LikelihoodName::Poisson));
        };
        let is_count = |y: f64| y >= 0.0 && y.fract() == 0.0 && y.is_finite();
        if let Some(at) = values.iter().position(|&y| !is_count(y)) {
            return Err(LikelihoodError::NotACount {
                row: at / names.len(),
                value: values[at],
            });
        }
        let counts = column_major(values, names.len());
        Self::of_counts(&counts, names.len()).ok_or(LikelihoodError::NotACount {
            row: 0,
            value: f64::NAN,
        })
    }

    fn example(_: LikelihoodParameters) -> Self {
        Self { means: vec![1.0] }
    }

    /// The counts themselves.
    fn code(targets: &Targets, standardisation: &Standardisation) -> Vec<f64> {
        match targets {
            Targets::Real { values, names } => column_major(values, names.len()),
            Targets::Classes { .. } => targets::code(targets, standardisation),
        }
    }
}

/// Counts of mean m; v is not used.
struct PoissonFamily;

impl PredictiveLaw for PoissonFamily {
    fn name(&self) -> &'static str {
        "poisson"
    }

    fn log_density(&self, _: f64, y: f64, [m, _]: [f64; 2]) -> f64 {
        poisson::log_probability(y, m)
    }

    fn cdf(&self, _: f64, y: f64, [m, _]: [f64; 2]) -> f64 {
        poisson::cdf(y, m)
    }

    fn variance(&self, _: f64, [m, _]: [f64; 2]) -> f64 {
        m
    }

    fn is_discrete(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn is_consistent() {
        let law = Poisson::of_counts(&[0.0, 3.0, 7.0, 1.0, 1.0, 2.0], 2).unwrap();
        assert_eq!(law, Poisson::new(vec![10.0 / 3.0, 4.0 / 3.0]).unwrap());
        check::consistent(&law, &[0.0, 3.0, 7.0, 1.0, 1.0, 2.0], 2);
        check::approximated(&Poisson::new(vec![2.5]).unwrap(), 1);
        check::normalised(&Poisson::new(vec![2.5]).unwrap(), true);
        assert!(Poisson::new(vec![0.0]).is_none());
        assert!(Poisson::of_counts(&[0.0; 4], 1).is_some());
        // the outputs that large counts ask for are those that they have
        let likely = law.approximation(&[0.0, 300.0], &[1.0; 2]).targets;
        assert!(likely[1] > 0.9 * (300.0_f64 * 0.75).ln() && likely[1] < (300.0_f64 * 0.75).ln());
        assert!(likely[0] < -1.0);
        // a rate that is too large to be a number is no density
        let value = law.log_density(&[1.0, 1.0], &[1e6, 0.0], &[1.0; 2], None);
        assert_eq!(value, f64::NEG_INFINITY);
    }

    /// E[m·e^f] of f ~ N(0.3, 0.5), by quadrature.
    #[test]
    fn uncertain_outputs_raise_the_mean() {
        let law = Poisson::new(vec![2.5]).unwrap();
        let own = |f: f64| (-(f - 0.3).powi(2)).exp() / std::f64::consts::PI.sqrt();
        let nodes = (-8000..8000).map(|i| f64::from(i) * 1e-3);
        let integral: f64 = nodes.map(|f| own(f) * 2.5 * f.exp() * 1e-3).sum();
        let mut f = [0.3];
        law.moderate(&mut f, &[0.5], &mut []);
        law.mean(&mut f);
        assert!((f[0] - integral).abs() < 1e-9);
    }

    #[test]
    fn the_family_is_that_of_tables_and_of_the_likelihood() {
        let law = Poisson::new(vec![2.5]).unwrap();
        let family = law.family().unwrap();
        // e^{−2.5}(1 + 2.5 + 3.125)
        let exact = (-2.5_f64).exp() * 6.625;
        assert!((family.cdf(2.0, 2.5, 1.0) - exact).abs() < 1e-15);
        assert!((family.cdf(2.9, 2.5, 1.0) - exact).abs() < 1e-15);
        assert_eq!(family.cdf(-0.5, 2.5, 1.0), 0.0);
        // both tails agree about the middle
        for m in [0.3, 7.5, 1e4] {
            let mut sum = 0.0;
            for i in 0..=(2.0 * m) as u32 {
                sum += family.log_density(f64::from(i), m, 1.0).exp();
                let found = family.cdf(f64::from(i), m, 1.0);
                assert!((found - sum).abs() < 1e-10, "{m} {i}: {found} {sum}");
            }
        }
        let mut mean = [0.4];
        law.mean(&mut mean);
        let value = law.log_density(&[4.0], &[0.4], &[1.0], None) + law.left_out(1);
        assert!((family.log_density(4.0, mean[0], 1.0) - value).abs() < 1e-12);
    }
}
