//! What the Hamiltonian methods share: how momentum is refreshed, how long a trajectory is and when it is given up.

use std::f64::consts::FRAC_PI_2;

use super::Fatal;
use crate::compute::{Real, Stream, autoregress, sum_fours};

/// Mean length of a trajectory unless told otherwise: a quarter turn of the standard normal, which ends independent of
/// where it began.
pub(super) const QUARTER_TURN: f64 = FRAC_PI_2;
/// Relative jitter of a trajectory's length, so that no direction is resonant.
const JITTER: f64 = 0.25;
/// Steps of the longest trajectory unless told otherwise: while the step size is still being found, or where it must be tiny, a
/// trajectory is cut short rather than left to take hours. The number of steps does not depend on the state, so the law stays right.
pub const MAX_STEPS: u32 = 128;
/// Energy error beyond which a trajectory is given up as diverging.
pub const DIVERGENCE: f64 = 1000.0;

/// How long trajectories are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrajectoryLength {
    /// On average, in the units of the step size.
    pub mean: f64,
    /// Steps at most, 1 or more.
    pub max_steps: u32,
}

impl From<f64> for TrajectoryLength {
    /// Of so much on average, in [`MAX_STEPS`] at most.
    fn from(mean: f64) -> Self {
        Self {
            mean,
            max_steps: MAX_STEPS,
        }
    }
}

impl TrajectoryLength {
    /// Steps of a trajectory, for a uniform number in (0, 1).
    pub(super) fn steps(self, step_size: f64, uniform: f64) -> u32 {
        let length = self.mean * (1.0 - JITTER + 2.0 * JITTER * uniform);
        let most = f64::from(self.max_steps.max(1));
        (length / step_size).round().clamp(1.0, most) as u32
    }
}

/// Whether a trajectory with this log acceptance ratio is given up.
pub(super) fn is_diverging(log_acceptance: f64) -> bool {
    log_acceptance.is_nan() || log_acceptance < -DIVERGENCE
}

/// Makes `n_steps` steps, or as many as it takes to diverge: `step` is told whether it is the last, and gives ℓ with the log
/// acceptance ratio of its end. Returns those of the last, and how many there were.
pub(super) fn integrate(
    n_steps: u32,
    mut step: impl FnMut(bool) -> Result<[f64; 2], Fatal>,
) -> Result<([f64; 2], u32), Fatal> {
    let mut taken = 0;
    loop {
        taken += 1;
        let is_last = taken == n_steps;
        let end = step(is_last)?;
        if is_last || is_diverging(end[1]) {
            return Ok((end, taken));
        }
    }
}

/// What a kick by `scale`·(g − z) has just added to ½‖v‖² in its second half. Trajectories join the second half of one
/// kick with the first of the next; the energy between them is that of the point, which a steep descent must be judged by.
pub(super) fn second_half<R: Real>(v: &[R], scale: f64, g: &[R], z: Option<&[R]>) -> f64 {
    match z {
        Some(z) => sum_fours([v, g, z, z], |v, g, z, _| {
            let half = 0.5 * scale * (g - z);
            half * (v - 0.5 * half)
        }),
        None => sum_fours([v, g, g, g], |v, g, _, _| {
            let half = 0.5 * scale * g;
            half * (v - 0.5 * half)
        }),
    }
}

/// Fills `noise` with the momentum m refreshed in part, √(1 − b)·m + √b·ξ; with ξ where there is no momentum yet.
pub(super) fn refresh<R: Real>(noise: &mut [R], damping: f64, momentum: &[R], stream: &mut Stream) {
    if momentum.is_empty() || damping >= 1.0 {
        return stream.fill_normal(noise);
    }
    let shrink = damping / (1.0 + (1.0 - damping).sqrt());
    stream.fill_normal_then(noise, |start, part| {
        autoregress(part, damping.sqrt(), shrink, &momentum[start..]);
    });
}
