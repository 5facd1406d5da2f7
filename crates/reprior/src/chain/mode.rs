//! The mode of a target, max ℓ(z) − ½‖z‖², near where a chain starts.

use std::ops::Range;

use crate::compute::{Real, norm_squared};
use crate::optimise::lbfgs::{LbfgsSettings, minimise};
use crate::posterior::{EvaluationError, Target};

/// Where a search for a mode ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Mode<R> {
    /// The position.
    pub position: Vec<R>,
    /// ℓ(z) − ½‖z‖² there.
    pub log_density: f64,
    /// Gradients that it took.
    pub evaluations: usize,
}

/// No coordinate moves by more than this in the first step, in standard deviations of the prior.
const FIRST_STEP: f64 = 0.05;
/// Nats below which a step has gained nothing: chains leave the mode by half a nat for each coordinate.
const TOLERANCE: f64 = 0.1;

/// A mode by L-BFGS from `start`, with `evaluations` gradients at most; where it ended if it has not converged by then.
///
/// Coordinates that are [held](Target::held_at_modes) are at 0. If that turns out to be far off, the search goes on with those that are
/// [released](Target::released), for as many gradients once more.
///
/// # Errors
/// The target says that nothing will help.
pub fn find_mode<T: Target + ?Sized>(
    target: &mut T,
    start: &[T::Real],
    evaluations: usize,
) -> Result<Mode<T::Real>, EvaluationError> {
    if start.is_empty() {
        // nothing to look for
        return Ok(Mode {
            position: Vec::new(),
            log_density: target.log_ratio(start)?,
            evaluations: 0,
        });
    }
    let held = target.held_at_modes();
    let mut from = start.to_vec();
    for range in &held {
        from[range.clone()].fill(T::Real::ZERO);
    }
    let first = search(target, &from, &held, &[], evaluations)?;
    if held.iter().all(Range::is_empty) {
        return Ok(first);
    }
    match target.log_ratio_and_gradient(&first.position, &mut from) {
        Ok(_) => {}
        Err(EvaluationError::Recoverable(_)) => return Ok(first),
        Err(error) => return Err(error),
    }
    let released = target.released(&from);
    let before = first.evaluations + 1;
    let mut found = match released.is_empty() {
        true => Mode {
            evaluations: 0,
            ..first
        },
        false => search(target, &first.position, &held, &released, evaluations)?,
    };
    found.evaluations += before;
    Ok(found)
}

/// The search from a place, with the coordinates of some ranges where they are but for those that are released.
fn search<T: Target + ?Sized>(
    target: &mut T,
    from: &[T::Real],
    held: &[Range<usize>],
    released: &[(usize, f64)],
    evaluations: usize,
) -> Result<Mode<T::Real>, EvaluationError> {
    let mut position = from.to_vec();
    let mut gradient = position.clone();
    let from: Vec<f64> = from.iter().map(|z| z.to_f64()).collect();
    let mut fatal = None;
    let settings = LbfgsSettings {
        evaluations,
        tolerance: TOLERANCE,
        first_step: FIRST_STEP,
    };
    let gains = |z: &[f64]| released.iter().map(|&(at, gain)| gain * z[at]).sum::<f64>();
    let found = minimise(&from, settings, |z, slope| {
        if fatal.is_some() {
            return f64::NAN;
        }
        for (to, z) in position.iter_mut().zip(z) {
            *to = T::Real::from_f64(*z);
        }
        match target.log_ratio_and_gradient(&position, &mut gradient) {
            Ok(value) => {
                for ((slope, g), z) in slope.iter_mut().zip(&gradient).zip(z) {
                    *slope = z - g.to_f64();
                }
                for range in held {
                    slope[range.clone()].fill(0.0);
                }
                for &(at, gain) in released {
                    slope[at] = z[at] - gradient[at].to_f64() - gain;
                }
                0.5 * norm_squared(z) - value - gains(z)
            }
            Err(EvaluationError::Recoverable(_)) => f64::NAN,
            Err(error) => {
                fatal = Some(error);
                f64::NAN
            }
        }
    });
    if let Some(error) = fatal {
        return Err(error);
    }
    Ok(Mode {
        position: found.at.iter().map(|z| T::Real::from_f64(*z)).collect(),
        log_density: -found.value - gains(&found.at),
        evaluations: found.evaluations,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ℓ of y = A·z with noise: a Gaussian whose mode is known, that fails where it is told to.
    struct Line {
        slope: [f64; 2],
        y: f64,
        variance: f64,
        fails: Option<EvaluationError>,
    }

    impl Target for Line {
        type Real = f64;

        fn dim(&self) -> usize {
            2
        }

        fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
            let away = self.y - self.slope[0] * z[0] - self.slope[1] * z[1];
            Ok(-0.5 * away * away / self.variance)
        }

        fn log_ratio_and_gradient(
            &mut self,
            z: &[f64],
            gradient: &mut [f64],
        ) -> Result<f64, EvaluationError> {
            if let Some(error) = self.fails.clone() {
                return Err(error);
            }
            let away = self.y - self.slope[0] * z[0] - self.slope[1] * z[1];
            for (gradient, slope) in gradient.iter_mut().zip(self.slope) {
                *gradient = slope * away / self.variance;
            }
            self.log_ratio(z)
        }
    }

    const LINE: Line = Line {
        slope: [2.0, -1.0],
        y: 3.0,
        variance: 0.01,
        fails: None,
    };

    #[test]
    fn a_gaussian_has_the_mode_of_linear_regression() {
        let mut line = LINE;
        let found = find_mode(&mut line, &[5.0, -4.0], 200).unwrap();
        // a·y/(a·a + σ²)
        let share = 3.0 / (5.0 + 0.01);
        for (found, expected) in found.position.iter().zip([2.0 * share, -share]) {
            assert!((found - expected).abs() < 0.02, "{found} {expected}");
        }
        assert!(found.evaluations <= 200);
    }

    #[test]
    fn failures_leave_the_start_or_end_everything() {
        let with = |error| Line {
            fails: Some(error),
            ..LINE
        };
        let said = "bad".to_owned();
        let mut recoverable = with(EvaluationError::Recoverable(said.clone()));
        let found = find_mode(&mut recoverable, &[5.0, -4.0], 200).unwrap();
        assert_eq!(found.position, [5.0, -4.0]);
        let mut fatal = with(EvaluationError::Fatal(said));
        assert!(find_mode(&mut fatal, &[5.0, -4.0], 200).is_err());
    }
}
