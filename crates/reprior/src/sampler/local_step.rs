//! Step sizes that follow the steepness of the place where a trajectory begins.
//!
//! Where the noise is sampled along, or depends on the inputs, a posterior is several times narrower in one place than in another, and a step size that
//! fits where warm-up ended is too long where a chain gets to later: on table concrete, with a noise of its own for every row, single chains of
//! four stood still for half of their draws, at an acceptance of 10⁻⁴. Along the same chains' warm-up the step size that was accepted was in proportion to
//! 1/‖∇ℓ‖ over a range of six. So
//!
//! log h ~ N(log h̄ − c − a·log(‖∇ℓ(z)‖/g), τ²), drawn anew for each trajectory,
//!
//! with h̄ the step size and g the gradient's norm that warm-up found, and the trajectory's acceptance is multiplied by p(h | z')/p(h | z): h is a
//! coordinate that is drawn given the position, and the law of that pair is kept (Bou-Rabee, Carpenter & Marsden 2024). ‖∇ℓ‖ varies along a
//! trajectory too, by a third: a and τ stand between following it and being rejected for it. Steps too long lose more than steps too short, hence c.

use crate::compute::{Real, Stream, norm_squared};

/// a.
const EXPONENT: f64 = 0.6;
/// τ.
const SPREAD: f64 = 0.4;
/// c.
const SHORTER: f64 = 0.35;

/// ‖∇ℓ‖, no less than what single precision tells from zero.
pub(super) fn gradient_norm<R: Real>(gradient: &[R]) -> f64 {
    norm_squared(gradient).sqrt().max(1e-30)
}

/// A step size drawn for one trajectory.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalStep {
    /// log h̄ − c + a·log g.
    level: f64,
    /// log h.
    log_step: f64,
    /// What it has as its mean where the trajectory begins.
    mean: f64,
}

impl LocalStep {
    /// Draws h where the gradient is so; `usual` is h̄ with g.
    pub fn draw<R: Real>(usual: [f64; 2], gradient: &[R], stream: &mut Stream) -> Self {
        let [step_size, norm] = usual;
        let level = step_size.ln() - SHORTER + EXPONENT * norm.ln();
        let mean = mean(level, gradient);
        Self {
            level,
            log_step: mean + SPREAD * stream.normal(),
            mean,
        }
    }

    /// h.
    pub fn step_size(&self) -> f64 {
        self.log_step.exp()
    }

    /// log p(h | z') − log p(h | z) at the end z', where the gradient is so.
    pub fn log_ratio<R: Real>(&self, gradient: &[R]) -> f64 {
        let there = (self.log_step - mean(self.level, gradient)) / SPREAD;
        let here = (self.log_step - self.mean) / SPREAD;
        0.5 * (here * here - there * there)
    }
}

fn mean<R: Real>(level: f64, gradient: &[R]) -> f64 {
    level - EXPONENT * gradient_norm(gradient).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::Purpose;

    #[test]
    fn step_sizes_follow_the_gradient() {
        let gradient = [6.0, 8.0];
        let draw = |index: u64| {
            let mut stream = Stream::new(1, 0, Purpose::Transition, index);
            LocalStep::draw([0.01, 5.0], &gradient, &mut stream)
                .step_size()
                .ln()
        };
        let draws: Vec<f64> = (0..4000).map(draw).collect();
        let mean = draws.iter().sum::<f64>() / 4000.0;
        let expected = 0.01_f64.ln() - SHORTER - EXPONENT * 2.0_f64.ln();
        assert!((mean - expected).abs() < 4.0 * SPREAD / 4000.0_f64.sqrt());
    }

    /// The ratio there and the ratio back are each other's inverse, and that of densities of the same normal law is 1.
    #[test]
    fn the_ratio_is_that_of_both_ends() {
        let (here, there) = ([3.0, 4.0], [0.5, 0.1]);
        let mut stream = Stream::new(1, 0, Purpose::Transition, 0);
        let step = LocalStep::draw([0.01, 5.0], &here, &mut stream);
        let back = LocalStep {
            mean: mean(step.level, &there),
            ..step
        };
        assert!((step.log_ratio(&there) + back.log_ratio(&here)).abs() < 1e-12);
        assert_eq!(step.log_ratio(&here), 0.0);
        let log_density = |gradient: &[f64]| {
            let mean = 0.01_f64.ln() - SHORTER - EXPONENT * (gradient_norm(gradient) / 5.0).ln();
            -0.5 * ((step.step_size().ln() - mean) / SPREAD).powi(2)
        };
        let expected = log_density(&there) - log_density(&here);
        assert!((step.log_ratio(&there) - expected).abs() < 1e-12);
    }
}
