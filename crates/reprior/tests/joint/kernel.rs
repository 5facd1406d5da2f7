//! Samplers written anew from the papers' formulas, with faults that can be switched on.

use reprior::compute::Stream;
use reprior::posterior::{EvaluationError, Target};
use reprior::sampler::{Fatal, Info, Sampler, State};

/// A proposal with the Metropolis decision. Right with `noise` and `sign` 1.
#[derive(Debug, Clone, Copy)]
pub enum Kernel {
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
