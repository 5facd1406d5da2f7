//! The isokinetic steps that `mams` and `mclmc` share: drifts of constant speed, and kicks that turn a direction (Robnik, De Luca, Silverstein &
//! Seljak 2023; Ver Steeg & Galstyan 2021).
//!
//! Position and direction, z in R^d and u on the unit sphere, have the law N(z; 0, I)·exp ℓ(z) times the uniform one. A drift is
//! z ← z + h√d·u: the speed of a typical Gaussian momentum, so that steps and lengths are comparable with those of `hmc`. A kick by t turns u towards
//! the force f = ∇ℓ(z) − z for a time t with f held, du/dt = √d/(d − 1)·(I − uuᵀ)f, which has a closed form: with e = f/‖f‖, δ = t√d‖f‖/(d − 1),
//!
//! u' = (u + e(sinh δ + ⟨e, u⟩(cosh δ − 1))) / c,  c = cosh δ + ⟨e, u⟩ sinh δ,
//!
//! and shrinks volumes of the sphere by c^(d−1): the kinetic energy that it takes is (d − 1)·log c. Kicks with the same force join. A refresh of part
//! of a direction forgets it at the rate 1/L: u ← √(1 − s²)·u + s·ξ/√d brought back to the sphere, s² = 1 − e^(−2h/L), which is the paper's
//! u + √((e^(2h/L) − 1)/d)·ξ. A kick or a drift is O(d), in double precision what concerns directions.

use crate::compute::{Real, Stream, norm_squared, sum_fours};

/// The largest δ of half a kick: of a Gaussian at its typical points, and at steps that are accepted, it is below 1.
const STEEPEST: f64 = 6.0;
/// The largest step, as of `hmc`.
pub(super) const LARGEST: f64 = 1.9;

/// A force as a direction meets it.
#[derive(Clone, Copy)]
pub(super) struct Force {
    norm: f64,
    /// ⟨e, u⟩.
    along: f64,
    dimension: f64,
}

impl Force {
    pub fn new<R: Real>(direction: &[f64], gradient: &[R], position: &[R]) -> Self {
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
    pub fn is_steep(self, h: f64) -> bool {
        let [delta, _] = self.turn(0.5 * h);
        // a force that is no number is steep too
        delta.is_nan() || delta > STEEPEST
    }

    /// The energy that a kick by t takes.
    pub fn kinetic(self, t: f64) -> f64 {
        (self.dimension - 1.0) * self.turn(t)[1]
    }

    /// Turns a direction by a kick by t.
    pub fn kick<R: Real>(self, direction: &mut [f64], t: f64, gradient: &[R], position: &[R]) {
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
pub(super) fn draw_direction(direction: &mut [f64], stream: &mut Stream) {
    stream.fill_normal(direction);
    if direction.len() > 1 {
        let scale = 1.0 / norm_squared(direction).sqrt();
        for u in direction {
            *u *= scale;
        }
    }
}

/// Fills `direction` with one that is partly another than `old`, after a time `h` of forgetting it at the rate 1/`length`; with a fresh one where
/// there is none yet, and in one dimension.
pub(super) fn refresh_direction<R: Real>(
    direction: &mut [f64],
    [h, length]: [f64; 2],
    old: &[R],
    stream: &mut Stream,
) {
    let dimension = direction.len();
    if old.is_empty() || dimension < 2 {
        return draw_direction(direction, stream);
    }
    stream.fill_normal(direction);
    let kept = (-h / length).exp();
    let noise = ((1.0 - kept * kept) / dimension as f64).sqrt();
    for (u, old) in direction.iter_mut().zip(old) {
        *u = kept * old.to_f64() + noise * *u;
    }
    let scale = 1.0 / norm_squared(direction).sqrt();
    for u in direction {
        *u *= scale;
    }
}

/// Drifts for a time `h`.
pub(super) fn drift<R: Real>(position: &mut [R], h: f64, direction: &[f64]) {
    let length = h * (direction.len() as f64).sqrt();
    for (z, u) in position.iter_mut().zip(direction) {
        *z += R::from_f64(length * u);
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

    /// Of a direction that is refreshed on and on the mean product with where it began is e^(−t/L), up to terms of 1/d.
    #[test]
    fn a_direction_is_forgotten_at_the_rate_asked_for() {
        let (dimension, h, length, tries) = (400, 0.3, 0.7, 200);
        let mut sum = 0.0;
        for index in 0..tries {
            let mut stream = Stream::new(4, 0, Purpose::Initial, index);
            let mut first = vec![0.0; dimension];
            draw_direction(&mut first, &mut stream);
            let (mut old, mut new) = (first.clone(), first.clone());
            for _ in 0..3 {
                refresh_direction(&mut new, [h, length], &old, &mut stream);
                old.copy_from_slice(&new);
            }
            assert!((dot(&new, &new) - 1.0).abs() < 1e-12);
            sum += dot(&first, &new);
        }
        let found = sum / tries as f64;
        let expected = (-3.0 * h / length).exp();
        // five standard errors of a product with variance 1/d, and the bias
        let error = 5.0 / (dimension as f64 * tries as f64).sqrt() + 1.0 / dimension as f64;
        assert!((found - expected).abs() < error, "{found} {expected}");
    }
}
