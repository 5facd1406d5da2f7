//! Limited-memory BFGS with a line search for the strong Wolfe conditions (Nocedal & Wright 2006, algorithms 7.4, 7.5, 3.5 and 3.6).
//!
//! A value that is not a number counts as infinite: the line search goes back from it. One evaluation is most often enough for a step;
//! memory: 30 vectors.

use std::collections::VecDeque;

use crate::compute::{add_scaled, dot};

/// Pairs of steps and differences of gradients that are kept.
const MEMORY: usize = 12;
/// Of the strong Wolfe conditions: decrease and curvature.
const DECREASE: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
/// Evaluations of one line search, at most.
const SEARCH: usize = 25;

/// When the search ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LbfgsSettings {
    /// Evaluations of value and gradient, at most.
    pub evaluations: usize,
    /// It has converged where a step lowers the value by less than this.
    pub tolerance: f64,
    /// No coordinate moves by more than this in the first step.
    pub first_step: f64,
}

/// Where the search ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Minimum {
    /// The place of the lowest value seen.
    pub at: Vec<f64>,
    /// That value.
    pub value: f64,
    /// Evaluations made.
    pub evaluations: usize,
    /// Whether it ended because there was nothing to gain.
    pub has_converged: bool,
}

/// A point of a line search.
#[derive(Clone)]
struct Trial {
    step: f64,
    at: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
    slope: f64,
}

struct Line<'a, F> {
    function: &'a mut F,
    start: &'a [f64],
    direction: &'a [f64],
    evaluations: usize,
}

impl<F: FnMut(&[f64], &mut [f64]) -> f64> Line<'_, F> {
    fn at(&mut self, step: f64) -> Trial {
        let mut at = self.start.to_vec();
        add_scaled(&mut at, step, self.direction);
        let mut gradient = vec![0.0; at.len()];
        self.evaluations += 1;
        let value = (self.function)(&at, &mut gradient);
        let slope = dot(&gradient, self.direction);
        let is_usable = value.is_finite() && slope.is_finite();
        Trial {
            step,
            at,
            value: if is_usable { value } else { f64::INFINITY },
            slope: if is_usable { slope } else { f64::INFINITY },
            gradient,
        }
    }

    /// A step with the strong Wolfe conditions, or the best that was found; `None` if none lowers the value.
    fn search(&mut self, origin: &Trial, first: f64, most: usize) -> Option<Trial> {
        let allowed =
            |trial: &Trial| trial.value <= origin.value + DECREASE * trial.step * origin.slope;
        let is_flat = |trial: &Trial| trial.slope.abs() <= -CURVATURE * origin.slope;
        let (mut low, mut step) = (origin.clone(), first);
        let mut high: Option<Trial> = None;
        while self.evaluations < most {
            let trial = self.at(step);
            if !allowed(&trial) || trial.value >= low.value {
                high = Some(trial);
            } else if is_flat(&trial) {
                return Some(trial);
            } else {
                let towards_high = high.as_ref().map_or(1.0, |high| high.step - low.step);
                if trial.slope * towards_high >= 0.0 {
                    high = Some(low);
                }
                low = trial;
            }
            step = match &high {
                None => 2.0 * low.step.max(step),
                Some(high) => between(&low, high),
            };
            let is_narrow = high
                .as_ref()
                .is_some_and(|high| (high.step - low.step).abs() < 1e-12 * first);
            if is_narrow {
                break;
            }
        }
        (low.step > 0.0).then_some(low)
    }
}

/// The minimum of the cubic through two points and their slopes, kept off their ends; their middle where one is infinite.
fn between(low: &Trial, high: &Trial) -> f64 {
    let width = high.step - low.step;
    let middle = low.step + 0.5 * width;
    if !high.value.is_finite() {
        return low.step + 0.1 * width;
    }
    let d1 = low.slope + high.slope - 3.0 * (low.value - high.value) / (low.step - high.step);
    let square = d1 * d1 - low.slope * high.slope;
    let d2 = square.max(0.0).sqrt().copysign(width);
    let step = high.step - width * (high.slope + d2 - d1) / (high.slope - low.slope + 2.0 * d2);
    let part = (step - low.step) / width;
    if square >= 0.0 && (0.1..=0.9).contains(&part) {
        step
    } else {
        middle
    }
}

/// −H∇ for the inverse Hessian that the pairs (s, y) tell of (algorithm 7.4).
fn direction(gradient: &[f64], pairs: &VecDeque<(Vec<f64>, Vec<f64>)>) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut shares = Vec::with_capacity(pairs.len());
    for (s, y) in pairs.iter().rev() {
        let share = dot(s, &direction) / dot(s, y);
        add_scaled(&mut direction, -share, y);
        shares.push(share);
    }
    if let Some((s, y)) = pairs.back() {
        let scale = dot(s, y) / dot(y, y);
        direction.iter_mut().for_each(|d| *d *= scale);
    }
    for ((s, y), share) in pairs.iter().zip(shares.into_iter().rev()) {
        let back = dot(y, &direction) / dot(s, y);
        add_scaled(&mut direction, share - back, s);
    }
    direction
}

/// Searches for a minimum from `start`. `function` gives the value and writes the gradient.
pub fn minimise(
    start: &[f64],
    settings: LbfgsSettings,
    mut function: impl FnMut(&[f64], &mut [f64]) -> f64,
) -> Minimum {
    let none = vec![0.0; start.len()];
    let mut line = Line {
        function: &mut function,
        start,
        direction: &none,
        evaluations: 0,
    };
    let mut here = line.at(0.0);
    let mut evaluations = 1;
    let mut pairs = VecDeque::new();
    let mut has_converged = false;
    while evaluations < settings.evaluations && here.value.is_finite() {
        let along = direction(&here.gradient, &pairs);
        here.slope = dot(&here.gradient, &along);
        here.step = 0.0;
        if here.slope >= 0.0 || !here.slope.is_finite() {
            // nothing to follow, or rounding has spoilt the pairs
            has_converged = pairs.is_empty();
            if has_converged {
                break;
            }
            pairs.clear();
            continue;
        }
        let longest = along.iter().fold(0.0_f64, |most, d| most.max(d.abs()));
        let first = if pairs.is_empty() {
            settings.first_step / longest
        } else {
            1.0
        };
        let mut line = Line {
            function: &mut function,
            start: &here.at,
            direction: &along,
            evaluations: 0,
        };
        let most = SEARCH.min(settings.evaluations - evaluations);
        let found = line.search(&here, first, most);
        evaluations += line.evaluations;
        let Some(next) = found else {
            has_converged = pairs.is_empty();
            if has_converged {
                break;
            }
            pairs.clear();
            continue;
        };
        let mut s = next.at.clone();
        add_scaled(&mut s, -1.0, &here.at);
        let mut y = next.gradient.clone();
        add_scaled(&mut y, -1.0, &here.gradient);
        let gain = here.value - next.value;
        if dot(&s, &y) > 1e-12 * dot(&y, &y).sqrt() * dot(&s, &s).sqrt() {
            pairs.push_back((s, y));
            if pairs.len() > MEMORY {
                pairs.pop_front();
            }
        }
        here = next;
        if gain < settings.tolerance {
            has_converged = true;
            break;
        }
    }
    Minimum {
        at: here.at,
        value: here.value,
        evaluations,
        has_converged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: LbfgsSettings = LbfgsSettings {
        evaluations: 500,
        tolerance: 1e-14,
        first_step: 0.5,
    };

    #[test]
    fn rosenbrocks_valley() {
        let found = minimise(&[-1.2, 1.0, -1.2, 1.0], SETTINGS, |x, gradient| {
            let mut value = 0.0;
            for (x, gradient) in x.chunks(2).zip(gradient.chunks_mut(2)) {
                let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
                value += a * a + 100.0 * b * b;
                gradient[0] = -2.0 * a - 400.0 * b * x[0];
                gradient[1] = 200.0 * b;
            }
            value
        });
        assert!(found.has_converged && found.evaluations < 120, "{found:?}");
        assert!(found.at.iter().all(|x| (x - 1.0).abs() < 1e-5), "{found:?}");
    }

    /// −ln x + x²/2 with its minimum at 1: the first steps leave where it is defined.
    #[test]
    fn it_goes_back_from_where_there_is_no_value() {
        let settings = LbfgsSettings {
            first_step: 50.0,
            ..SETTINGS
        };
        let found = minimise(&[3.0], settings, |x, gradient| {
            gradient[0] = x[0] - 1.0 / x[0];
            0.5 * x[0] * x[0] - x[0].ln()
        });
        assert!((found.at[0] - 1.0).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn ill_conditioned_and_of_many_variables() {
        let count = 200;
        let curvature = |i: usize| 10.0_f64.powf(4.0 * i as f64 / count as f64);
        let found = minimise(&vec![1.0; count], SETTINGS, |x, gradient| {
            let mut value = 0.0;
            for (i, (x, gradient)) in x.iter().zip(gradient).enumerate() {
                *gradient = curvature(i) * x;
                value += 0.5 * curvature(i) * x * x;
            }
            value
        });
        assert!(found.value < 1e-4, "{}", found.value);
    }

    #[test]
    fn there_may_be_nothing_to_gain() {
        let found = minimise(&[2.0], SETTINGS, |_, gradient| {
            gradient[0] = 0.0;
            3.0
        });
        assert!(found.has_converged && found.at == [2.0] && found.evaluations == 1);
        let nowhere = minimise(&[2.0], SETTINGS, |_, _| f64::NAN);
        assert!(!nowhere.has_converged && nowhere.value == f64::INFINITY);
    }
}
