//! Metropolis-adjusted microcanonical sampler (Robnik, Cohn-Gordon & Seljak 2025): trajectories of constant speed whose direction is turned by the
//! gradient.
//!
//! Position and direction, z in R^d and u on the unit sphere, have the law N(z; 0, I)·exp ℓ(z) times the uniform one. A drift is
//! z ← z + h√d·u: the speed of a typical Gaussian momentum, so that steps and lengths are comparable with those of `hmc`. A kick by t turns u towards
//! the force f = ∇ℓ(z) − z for a time t with f held, du/dt = √d/(d − 1)·(I − uuᵀ)f, which has a closed form: with e = f/‖f‖, δ = t√d‖f‖/(d − 1),
//!
//! u' = (u + e(sinh δ + ⟨e, u⟩(cosh δ − 1))) / c,  c = cosh δ + ⟨e, u⟩ sinh δ,
//!
//! and shrinks volumes of the sphere by c^(d−1). So log a = ℓ(z') − ℓ(z) − ½(‖z'‖² − ‖z‖²) − (d − 1) Σ_kicks log c. Kicks with the same force join.
//! Where half a kick has δ above 6, the step is far too large, and rounding decides what e^(−2δ) is to be compared with: a trajectory with such a point, first
//! and last included, is rejected as diverging, which is the same forwards and backwards. Directions are drawn anew for each trajectory; the number of steps is that of `hmc`. In one dimension no force turns a direction, and what
//! is left is a walk of normal steps. One gradient a step; the last is kept.

use super::proposal::Proposal;
use super::trajectory::{integrate, steps};
use super::{Fatal, Info, SMALLEST_STEP, Sampler, State, start_with_gradient};
use crate::compute::{Real, Stream, difference_dot, norm_squared, sum_fours};
use crate::posterior::{EvaluationError, Target};

/// The kernel with its buffers.
#[derive(Debug, Clone)]
pub struct Mams<R> {
    step_size: f64,
    /// Mean length of a trajectory.
    length: f64,
    /// In double precision: what forces make of it hangs on how near to them it is.
    direction: Vec<f64>,
    /// Where the trajectory is.
    end: Proposal<R>,
}

/// The largest δ of half a kick: of a Gaussian at its typical points, and at steps that are accepted, it is below 1.
const STEEPEST: f64 = 6.0;
/// The largest step, as of `hmc`.
pub(super) const LARGEST: f64 = 1.9;

impl<R: Real> Mams<R> {
    /// The kernel with step size h in (0, 1.9], at most the `length` of an average trajectory.
    pub fn new(step_size: f64, length: f64) -> Self {
        let mut kernel = Self {
            step_size,
            length,
            direction: Vec::new(),
            end: Proposal::new(true),
        };
        kernel.step_size = kernel.clamped(step_size);
        kernel
    }

    fn clamped(&self, step_size: f64) -> f64 {
        step_size.clamp(SMALLEST_STEP, self.length.clamp(SMALLEST_STEP, LARGEST))
    }
}

/// A force as a direction meets it.
#[derive(Clone, Copy)]
struct Force {
    norm: f64,
    /// ⟨e, u⟩.
    along: f64,
    dimension: f64,
}

impl Force {
    fn new<R: Real>(direction: &[f64], gradient: &[R], position: &[R]) -> Self {
        let all = [gradient, position, gradient, position];
        let norm = sum_fours(all, |g, z, _, _| (g - z) * (g - z)).sqrt();
        let force = gradient
            .iter()
            .zip(position)
            .map(|(g, z)| (*g - *z).to_f64());
        let product: f64 = direction.iter().zip(force).map(|(u, f)| u * f).sum();
        Self {
            norm,
            // rounding may leave the sphere
            along: match norm > 0.0 {
                true => (product / norm).clamp(-1.0, 1.0),
                false => 0.0,
            },
            dimension: direction.len() as f64,
        }
    }

    /// δ of a kick by t, and the logarithm of c, where e^(−δ) may be nothing.
    fn turn(self, t: f64) -> [f64; 2] {
        if self.dimension < 2.0 {
            return [0.0; 2];
        }
        let delta = t * self.dimension.sqrt() * self.norm / (self.dimension - 1.0);
        // 2c·e^(−δ) = 1 + ⟨e, u⟩ + (1 − ⟨e, u⟩)e^(−2δ)
        let doubled = 1.0 + self.along + (1.0 - self.along) * (-2.0 * delta).exp();
        [delta, delta + (0.5 * doubled).ln()]
    }

    /// Whether it is too steep for steps of h.
    fn is_steep(self, h: f64) -> bool {
        let [delta, _] = self.turn(0.5 * h);
        // a force that is no number is steep too
        delta.is_nan() || delta > STEEPEST
    }

    /// The energy that a kick by t takes.
    fn kinetic(self, t: f64) -> f64 {
        (self.dimension - 1.0) * self.turn(t)[1]
    }

    /// Turns a direction by a kick by t.
    fn kick<R: Real>(self, direction: &mut [f64], t: f64, gradient: &[R], position: &[R]) {
        let [delta, log_c] = self.turn(t);
        if delta == 0.0 {
            return;
        }
        let small = (-delta).exp();
        // all by e^(−δ): sinh δ + ⟨e, u⟩(cosh δ − 1) and c
        let towards = 0.5 * (1.0 - small * small) + 0.5 * self.along * (1.0 - small).powi(2);
        let scale = (delta - log_c).exp();
        let (keep, add) = (small * scale, towards * scale / self.norm);
        for ((u, &g), &z) in direction.iter_mut().zip(gradient).zip(position) {
            *u = keep * *u + add * (g - z).to_f64();
        }
    }
}

/// A direction, uniform on the sphere; in one dimension a velocity N(0, 1), since from steps of one length only a lattice is reached.
fn draw_direction(direction: &mut [f64], stream: &mut Stream) {
    stream.fill_normal(direction);
    if direction.len() > 1 {
        let scale = 1.0 / norm_squared(direction).sqrt();
        for u in direction {
            *u *= scale;
        }
    }
}

impl<R: Real> Sampler<R> for Mams<R> {
    fn init(
        &mut self,
        target: &mut dyn Target<Real = R>,
        position: Vec<R>,
    ) -> Result<State<R>, EvaluationError> {
        start_with_gradient(target, position)
    }

    fn step(
        &mut self,
        target: &mut dyn Target<Real = R>,
        state: &mut State<R>,
        stream: &mut Stream,
    ) -> Result<Info, Fatal> {
        let h = self.step_size;
        let (end, direction) = (&mut self.end, &mut self.direction);
        end.start(state);
        direction.resize(state.position.len(), 0.0);
        let n_steps = steps(self.length, h, stream.uniform());
        draw_direction(direction, stream);
        let drift = h * (direction.len() as f64).sqrt();
        let force = Force::new(direction, &state.gradient, &state.position);
        let mut kinetic = match force.is_steep(h) {
            true => f64::INFINITY,
            false => force.kinetic(0.5 * h),
        };
        force.kick(direction, 0.5 * h, &state.gradient, &state.position);
        let found = integrate(n_steps, |is_last| {
            for (z, u) in end.position.iter_mut().zip(&*direction) {
                *z += R::from_f64(drift * u);
            }
            let proposed = end.evaluate(target)?;
            let force = Force::new(direction, &end.gradient, &end.position);
            let potential = difference_dot(&end.position, &state.position);
            // the energy of the point is that after half a kick
            let at_point = match force.is_steep(h) {
                true => f64::INFINITY,
                false => kinetic + force.kinetic(0.5 * h),
            };
            let log_acceptance = proposed - state.log_ratio - (potential + at_point);
            if !is_last {
                // the second half of this kick and the first of the next at once
                kinetic += force.kinetic(h);
                force.kick(direction, h, &end.gradient, &end.position);
            }
            Ok([proposed, log_acceptance])
        })?;
        Ok(self.end.decide_trajectory(state, found, true, stream))
    }

    fn step_size(&self) -> Option<f64> {
        Some(self.step_size)
    }

    fn set_step_size(&mut self, step_size: f64) {
        self.step_size = self.clamped(step_size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Purpose, dot};

    fn numbers(count: usize, index: u64) -> Vec<f64> {
        let mut values = vec![0.0; count];
        Stream::new(3, 0, Purpose::Initial, index).fill_normal(&mut values);
        values
    }

    fn direction(dimension: usize) -> Vec<f64> {
        let mut u = vec![0.0; dimension];
        draw_direction(&mut u, &mut Stream::new(3, 0, Purpose::Initial, 9));
        u
    }

    #[test]
    fn kicks_with_one_force_join_and_stay_on_the_sphere() {
        for dimension in [2, 3, 40] {
            let (gradient, position) = (numbers(dimension, 1), numbers(dimension, 2));
            for size in [1e-3, 1.0, 300.0] {
                let gradient: Vec<f64> = gradient.iter().map(|g| size * g).collect();
                let (mut one, mut two) = (direction(dimension), direction(dimension));
                let force = |u: &[f64]| Force::new(u, &gradient, &position);
                let whole = force(&one).kinetic(0.7);
                let first = force(&one);
                first.kick(&mut one, 0.7, &gradient, &position);
                let mut parts = 0.0;
                for t in [0.2, 0.5] {
                    let force = force(&two);
                    parts += force.kinetic(t);
                    force.kick(&mut two, t, &gradient, &position);
                }
                assert!((dot(&one, &one) - 1.0).abs() < 1e-12);
                let apart = one.iter().zip(&two).map(|(a, b)| (a - b).abs());
                assert!(apart.fold(0.0, f64::max) < 1e-9, "{dimension} {size}");
                assert!((whole - parts).abs() < 1e-9 * (1.0 + whole.abs()));
            }
        }
    }

    /// Far too large a step would be accepted if the volume of what cannot be told from one direction were believed.
    #[test]
    fn where_rounding_decides_nothing_is_accepted() {
        struct Narrow;
        impl Target for Narrow {
            type Real = f64;
            fn dim(&self) -> usize {
                3
            }
            fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
                Ok(-0.5e6 * norm_squared(z))
            }
            fn log_ratio_and_gradient(
                &mut self,
                z: &[f64],
                gradient: &mut [f64],
            ) -> Result<f64, EvaluationError> {
                for (g, z) in gradient.iter_mut().zip(z) {
                    *g = -1e6 * z;
                }
                self.log_ratio(z)
            }
        }
        for (step, is_good) in [(1.0, false), (0.1, false), (0.01, false), (1e-4, true)] {
            let mut kernel = Mams::new(step, step);
            let mut state = kernel.init(&mut Narrow, vec![1e-3; 3]).unwrap();
            let mut stream = Stream::new(5, 0, Purpose::Transition, 1);
            let info = kernel.step(&mut Narrow, &mut state, &mut stream).unwrap();
            assert_eq!(info.diverging, !is_good, "{step} {info:?}");
            assert_eq!(info.acceptance_rate > 0.5, is_good, "{step} {info:?}");
        }
    }

    /// In the plane a direction is an angle, and a kick's volume the derivative of the new angle by the old one: 1/c.
    #[test]
    fn the_energy_of_a_kick_is_the_volume_that_it_takes() {
        let (gradient, position) = (vec![1.3, -0.4], vec![0.2, 0.5]);
        let kicked = |angle: f64| {
            let mut u = vec![angle.cos(), angle.sin()];
            let force = Force::new(&u, &gradient, &position);
            force.kick(&mut u, 0.6, &gradient, &position);
            (u[1].atan2(u[0]), force.kinetic(0.6))
        };
        for angle in [-2.5, -1.0, 0.3, 1.9] {
            let h = 1e-5;
            let derivative = (kicked(angle + h).0 - kicked(angle - h).0) / (2.0 * h);
            let (_, energy) = kicked(angle);
            assert!((derivative.ln() + energy).abs() < 1e-7, "{angle}");
        }
    }
}
