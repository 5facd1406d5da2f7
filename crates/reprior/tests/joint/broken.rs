//! Faults on purpose, each of which the joint law must bring to light, beside the same code without the fault.

use reprior::compute::Stream;
use reprior::model::{InputReduction, Noise};
use reprior::posterior::{Coordinates, EvaluationError, Regulariser, Space, Target};
use reprior::sampler::{Fatal, Info, Method, Sampler, SamplerSettings, State};

use crate::LIMIT;
use crate::case::{Case, Frame, Kind};
use crate::distorted::Distortion;
use crate::replicate::{Outcome, outcome};

const RIGHT_NOISE: f64 = 1.0;
const WRONG_NOISE: f64 = std::f64::consts::SQRT_2;

/// A proposal with the Metropolis decision, written as in the papers.
#[derive(Debug, Clone, Copy)]
enum Kernel {
    /// √(1 − β²)z + βξ.
    Pcn { beta: f64, noise: f64 },
    /// [(2 − δ)z + 2δ∇ℓ(z) + √(8δ)ξ]/(2 + δ), with log a = sign·(ρ(z, z') − ρ(z', z)).
    Pcnl { delta: f64, sign: f64 },
    /// One leapfrog step with a fresh momentum.
    Langevin { step: f64, noise: f64 },
}

/// ρ(u, v) of Cotter et al. 2013, eq. 4.9, with ℓ for −Φ.
fn rho(u: &[f64], v: &[f64], log_ratio: f64, gradient: &[f64], delta: f64) -> f64 {
    let sum = |term: &dyn Fn(usize) -> f64| (0..u.len()).map(term).sum::<f64>();
    -log_ratio
        - 0.5 * sum(&|i| (v[i] - u[i]) * gradient[i])
        - 0.25 * delta * sum(&|i| (u[i] + v[i]) * gradient[i])
        + 0.25 * delta * sum(&|i| gradient[i] * gradient[i])
}

fn half_square(v: &[f64]) -> f64 {
    0.5 * v.iter().map(|x| x * x).sum::<f64>()
}

impl Sampler<f64> for Kernel {
    fn init(
        &mut self,
        target: &mut dyn Target<Real = f64>,
        position: Vec<f64>,
    ) -> Result<State<f64>, EvaluationError> {
        let mut gradient = vec![0.0; position.len()];
        let log_ratio = match self {
            Self::Pcn { .. } => target.log_ratio(&position)?,
            _ => target.log_ratio_and_gradient(&position, &mut gradient)?,
        };
        Ok(State {
            position,
            log_ratio,
            gradient,
            momentum: Vec::new(),
        })
    }

    fn step(
        &mut self,
        target: &mut dyn Target<Real = f64>,
        state: &mut State<f64>,
        stream: &mut Stream,
    ) -> Result<Info, Fatal> {
        let (z, g) = (&state.position, &state.gradient);
        let mut xi = vec![0.0; z.len()];
        stream.fill_normal(&mut xi);
        let each = |f: &dyn Fn(usize) -> f64| (0..z.len()).map(f).collect::<Vec<f64>>();
        let proposal = match *self {
            Self::Pcn { beta, noise } => {
                each(&|i| (1.0 - beta * beta).sqrt() * z[i] + beta * noise * xi[i])
            }
            Self::Pcnl { delta, .. } => each(&|i| {
                let drift = (2.0 - delta) * z[i] + 2.0 * delta * g[i];
                (drift + (8.0 * delta).sqrt() * xi[i]) / (2.0 + delta)
            }),
            Self::Langevin { step, noise } => {
                each(&|i| z[i] + step * (noise * xi[i] + 0.5 * step * (g[i] - z[i])))
            }
        };
        let mut there = vec![0.0; z.len()];
        let value = match self {
            Self::Pcn { .. } => target.log_ratio(&proposal),
            _ => target.log_ratio_and_gradient(&proposal, &mut there),
        };
        let value = value.map_err(|error| Fatal(error.to_string()))?;
        let log_acceptance = match *self {
            Self::Pcn { .. } => value - state.log_ratio,
            Self::Pcnl { delta, sign } => {
                let forth = rho(z, &proposal, state.log_ratio, g, delta);
                sign * (forth - rho(&proposal, z, value, &there, delta))
            }
            Self::Langevin { step, noise } => {
                let before = each(&|i| noise * xi[i]);
                let half = 0.5 * step;
                let after =
                    each(&|i| before[i] + half * (g[i] - z[i]) + half * (there[i] - proposal[i]));
                value - state.log_ratio + half_square(z) - half_square(&proposal)
                    + half_square(&before)
                    - half_square(&after)
            }
        };
        let is_accepted = stream.uniform().ln() < log_acceptance;
        if is_accepted {
            (state.position, state.gradient) = (proposal, there);
            state.log_ratio = value;
        }
        Ok(Info {
            acceptance_rate: log_acceptance.min(0.0).exp(),
            is_accepted,
            ..Default::default()
        })
    }
}

fn case(kind: Kind) -> Case {
    Case {
        hidden: &[3],
        reduction: InputReduction::On,
        kind,
        noise: Noise::from(0.3),
        frame: Frame {
            coordinates: Coordinates::Repriorised,
            space: Space::Feature,
            regulariser: Regulariser::Matched,
        },
        settings: SamplerSettings::default(),
        replicates: 1500,
        seed: 99,
    }
}

fn is_found(outcome: &Outcome) -> bool {
    outcome.largest.z > LIMIT
}

fn check(what: &str, right: &Outcome, wrong: &Outcome) {
    eprintln!("{what}: {right:?} {wrong:?}");
    assert!(!is_found(right), "{what}: {right:?}");
    assert!(is_found(wrong), "{what} is not found: {wrong:?}");
}

fn check_kernels(what: &str, kind: Kind, right: Kernel, wrong: Kernel) {
    let run = |kernel: Kernel| outcome(&case(kind), Distortion::None, &|| Box::new(kernel));
    check(what, &run(right), &run(wrong));
}

fn check_targets(what: &str, case: &Case, distortion: Distortion) {
    let run = |distortion| outcome(case, distortion, &|| case.settings.sampler());
    check(what, &run(Distortion::None), &run(distortion));
}

#[test]
fn a_missing_determinant_is_found() {
    for kind in [Kind::Categorical, Kind::Poisson] {
        let mut case = case(kind);
        case.settings.method = Method::Elliptical;
        check_targets("no determinant", &case, Distortion::NoDeterminant);
    }
}

#[test]
fn a_likelihood_that_counts_twice_is_found() {
    for (kind, method) in [
        (Kind::Gaussian, Method::Pcnl),
        (Kind::Gaussian, Method::Pcn),
        (Kind::Bernoulli, Method::Pcn),
    ] {
        let mut case = case(kind);
        case.settings.method = method;
        case.settings.step_size = Some(0.5);
        check_targets("twice the likelihood", &case, Distortion::LikelihoodAlone);
    }
}

#[test]
fn a_ratio_with_the_wrong_sign_is_found() {
    for kind in [Kind::Gaussian, Kind::Categorical] {
        let kernel = |sign| Kernel::Pcnl { delta: 0.2, sign };
        check_kernels("wrong sign", kind, kernel(1.0), kernel(-1.0));
    }
}

#[test]
fn too_much_noise_is_found() {
    for kind in [Kind::Gaussian, Kind::StudentT, Kind::Poisson] {
        let pcn = |noise| Kernel::Pcn { beta: 0.5, noise };
        check_kernels("pcn", kind, pcn(RIGHT_NOISE), pcn(WRONG_NOISE));
        let langevin = |noise| Kernel::Langevin { step: 0.4, noise };
        check_kernels(
            "langevin",
            kind,
            langevin(RIGHT_NOISE),
            langevin(WRONG_NOISE),
        );
    }
}
