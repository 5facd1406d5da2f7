//! Families of distributions that a draw may predict for one output: location m, and a squared scale v. The normal one is here; each
//! likelihood brings its own ([`Likelihood::family`](crate::model::likelihood::Likelihood::family)).

use std::f64::consts::TAU;
use std::fmt;

use crate::diagnostics::normal;

/// The functions of a family, one parameter of which all members share (ν of Student-t; 0 where there is none).
pub trait PredictiveLaw: Send + Sync {
    /// Of the family; two with the same name and parameter are the same.
    fn name(&self) -> &'static str;

    /// log of the density, or of the probability of a count, under the member with location m and squared scale v.
    fn log_density(&self, parameter: f64, y: f64, member: [f64; 2]) -> f64;

    /// Probability of at most y.
    fn cdf(&self, parameter: f64, y: f64, member: [f64; 2]) -> f64;

    /// Variance of one member.
    fn variance(&self, parameter: f64, member: [f64; 2]) -> f64;

    /// Whether values are whole numbers from 0 on.
    fn is_discrete(&self) -> bool {
        false
    }

    /// Σ over members of the probability of at most y; a single squared scale stands for all.
    fn sum_of_cdfs(&self, parameter: f64, y: f64, [means, variances]: [&[f64]; 2]) -> f64 {
        let own = |(&m, &v): (&f64, &f64)| self.cdf(parameter, y, [m, v]);
        match variances {
            [one] => means.iter().map(|m| own((m, one))).sum(),
            _ => means.iter().zip(variances).map(own).sum(),
        }
    }
}

/// A family of distributions on the real line.
#[derive(Clone, Copy)]
pub struct PredictiveFamily {
    law: &'static dyn PredictiveLaw,
    parameter: f64,
}

struct Normal;

impl PredictiveLaw for Normal {
    fn name(&self) -> &'static str {
        "normal"
    }

    fn log_density(&self, _: f64, y: f64, [m, v]: [f64; 2]) -> f64 {
        let deviation = y - m;
        -0.5 * ((TAU * v).ln() + deviation * deviation / v)
    }

    fn cdf(&self, _: f64, y: f64, [m, v]: [f64; 2]) -> f64 {
        normal::cdf((y - m) / v.sqrt())
    }

    fn variance(&self, _: f64, [_, v]: [f64; 2]) -> f64 {
        v
    }
}

impl PredictiveFamily {
    /// N(m, v).
    pub const NORMAL: Self = Self::new(&Normal, 0.0);

    /// With the parameter that all members share.
    pub const fn new(law: &'static dyn PredictiveLaw, parameter: f64) -> Self {
        Self { law, parameter }
    }

    /// Variance of one member.
    pub(super) fn variance(self, m: f64, v: f64) -> f64 {
        self.law.variance(self.parameter, [m, v])
    }

    /// log of the density, or of the probability of a count, under the member with location m and squared scale v.
    pub fn log_density(self, y: f64, m: f64, v: f64) -> f64 {
        self.law.log_density(self.parameter, y, [m, v])
    }

    /// Probability of at most y under the member with location m and squared scale v.
    pub fn cdf(self, y: f64, m: f64, v: f64) -> f64 {
        self.law.cdf(self.parameter, y, [m, v])
    }

    /// Σ over members of the probability of at most y; a single squared scale stands for all.
    pub(super) fn sum_of_cdfs(self, y: f64, members: [&[f64]; 2]) -> f64 {
        self.law.sum_of_cdfs(self.parameter, y, members)
    }

    /// Whether values are whole numbers from 0 on.
    pub fn is_discrete(self) -> bool {
        self.law.is_discrete()
    }
}

impl PartialEq for PredictiveFamily {
    fn eq(&self, other: &Self) -> bool {
        self.law.name() == other.law.name() && self.parameter == other.parameter
    }
}

impl fmt::Debug for PredictiveFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.law.name(), self.parameter)
    }
}
