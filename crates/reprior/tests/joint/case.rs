//! What is sampled, and how.

use std::f64::consts::FRAC_PI_2;
use std::sync::Arc;

use reprior::model::likelihood::{
    Bernoulli, Categorical, Gaussian, GaussianHeteroscedastic, Likelihood, Poisson, StudentT,
    StudentTHeteroscedastic,
};
use reprior::model::{InputReduction, Noise, NoisePrior};
use reprior::posterior::{Coordinates, Regulariser, Space};
use reprior::sampler::{Method, SamplerSettings};

/// Degrees of freedom of the Student-t likelihood.
const NU: f64 = 4.0;
/// Mean counts of the Poisson likelihood at outputs of zero.
const COUNTS: [f64; 2] = [1.5, 3.0];

/// A likelihood by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Gaussian,
    StudentT,
    Categorical,
    Bernoulli,
    Poisson,
    Heteroscedastic,
    StudentTHeteroscedastic,
}

impl Kind {
    pub fn likelihood(self) -> Arc<dyn Likelihood> {
        match self {
            Self::Gaussian => Arc::new(Gaussian),
            Self::StudentT => Arc::new(StudentT::new(NU).unwrap()),
            Self::Categorical => Arc::new(Categorical),
            Self::Bernoulli => Arc::new(Bernoulli),
            Self::Poisson => Arc::new(Poisson::new(COUNTS.to_vec()).unwrap()),
            Self::Heteroscedastic => Arc::new(GaussianHeteroscedastic::default()),
            Self::StudentTHeteroscedastic => Arc::new(StudentTHeteroscedastic::new(NU).unwrap()),
        }
    }

    /// A function of one target and its row's outputs with mean 0 given the outputs, and the mean of its square: a
    /// residual, or the Student-t score; none of an output without a target. Written anew here, not with the library's likelihoods.
    pub fn residual(self, output: usize, y: f64, outputs: &[f64], scale: f64) -> Option<[f64; 2]> {
        let f = outputs[output];
        let of_probability = |p: f64| [y - p, p * (1.0 - p)];
        Some(match self {
            Self::Gaussian => [(y - f) / scale, 1.0],
            Self::Heteroscedastic if output == 0 => {
                [(y - f) / (scale * (0.5 * outputs[1]).exp()), 1.0]
            }
            Self::StudentTHeteroscedastic if output == 0 => {
                student_score((y - f) / (scale * (0.5 * outputs[1]).exp()))
            }
            Self::Heteroscedastic | Self::StudentTHeteroscedastic => return None,
            Self::StudentT => student_score((y - f) / scale),
            Self::Categorical => {
                let total: f64 = outputs.iter().map(|f| f.exp()).sum();
                of_probability(f.exp() / total)
            }
            Self::Bernoulli => of_probability(1.0 / (1.0 + (-f).exp())),
            Self::Poisson => {
                let rate = COUNTS[output] * f.exp();
                [(y - rate) / rate.sqrt(), 1.0]
            }
        })
    }
}

/// The Student-t score of a residual in units of its scale, and the mean of its square.
fn student_score(t: f64) -> [f64; 2] {
    [(NU + 1.0) * t / (NU + t * t), (NU + 1.0) / (NU + 3.0)]
}

/// A coordinate system and where the readout is solved for.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    pub coordinates: Coordinates,
    pub space: Space,
    pub regulariser: Regulariser,
}

impl Frame {
    /// Every one that a likelihood has: 13 for the Gaussian, 10 for others.
    pub fn all(kind: Kind) -> Vec<Self> {
        let frame = |coordinates, space, regulariser| Self {
            coordinates,
            space,
            regulariser,
        };
        let matched = Regulariser::Matched;
        let mut all = vec![frame(Coordinates::Standard, Space::Data, matched)];
        for space in [Space::Feature, Space::Data, Space::DataSymmetric] {
            if kind == Kind::Gaussian {
                all.push(frame(Coordinates::Marginal, space, matched));
            }
            for regulariser in [matched, Regulariser::Value(0.7), Regulariser::PerRow(1.0)] {
                all.push(frame(Coordinates::Repriorised, space, regulariser));
            }
        }
        all
    }
}

/// One posterior in one coordinate system, and one sampler.
#[derive(Debug, Clone)]
pub struct Case {
    pub hidden: &'static [usize],
    pub reduction: InputReduction,
    pub kind: Kind,
    pub noise: Noise,
    pub frame: Frame,
    pub settings: SamplerSettings,
    pub replicates: u64,
    pub seed: u64,
}

/// A scale to learn with a prior that leaves most positions neither hopelessly stiff nor nearly free.
pub fn learned(per_output: bool) -> Noise {
    Noise::Learned(NoisePrior {
        median: 0.4,
        spread: 0.5,
        per_output,
    })
}

/// Every sampler, with step sizes such that some proposals are accepted and some are not.
pub fn samplers(is_stiff: bool) -> Vec<SamplerSettings> {
    let step_size = |method| {
        let (usual, stiff) = match method {
            Method::HmcInfinite | Method::Hmc | Method::Mams => (0.4, 0.15),
            Method::Pcn => (0.6, 0.2),
            Method::Pcnl => (0.6, 0.3),
            Method::Rwm => (0.3, 0.1),
            Method::Nuts => (0.3, 0.1),
            Method::Elliptical => return None,
            _ => (0.5, 0.2),
        };
        Some(if is_stiff { stiff } else { usual })
    };
    let settings = |method| SamplerSettings {
        method,
        step_size: step_size(method),
        ..Default::default()
    };
    // all but `mclmc`, which is biased
    let exact = Method::ALL.into_iter().filter(|method| method.is_exact());
    let mut all: Vec<SamplerSettings> = exact.map(settings).collect();
    for settings in &mut all {
        match settings.method {
            Method::Langevin => settings.damping = Some(0.3),
            Method::HmcInfinite => {
                settings.damping = Some(1.0);
                settings.trajectory = Some(FRAC_PI_2);
            }
            _ => {}
        }
    }
    all.push(SamplerSettings {
        damping: Some(0.3),
        trajectory: Some(0.7),
        ..settings(Method::HmcInfinite)
    });
    all
}
