//! Elliptical slice sampling (Murray, Adams, MacKay 2010, Figure 2).
//!
//! A slice log u below ℓ(z) is drawn, then points z cos θ + ν sin θ of the ellipse through z and ν ~ N(0, I) are tried,
//! the bracket of angles shrinking towards θ = 0, until one lies on the slice. No step size, and it always moves.
//!
//! A network's first pre-activations move along an ellipse as its weights do: see [`Target::log_ratio_on_ellipse`].

use std::f64::consts::TAU;

use super::{Fatal, Info, Sampler, State, evaluate, start};
use crate::compute::{Real, Stream};
use crate::posterior::target::Ellipse;
use crate::posterior::{EvaluationError, Target};

/// The elliptical slice kernel.
#[derive(Debug, Clone, Default)]
pub struct Elliptical<R> {
    direction: Vec<R>,
    proposal: Vec<R>,
}

/// Points tried before the state is left where it is: the bracket is then smaller than rounding errors of ℓ allow.
const MAX_POINTS: u32 = 200;

impl<R: Real> Elliptical<R> {
    /// The kernel.
    pub fn new() -> Self {
        Self {
            direction: Vec::new(),
            proposal: Vec::new(),
        }
    }
}

impl<R: Real> Sampler<R> for Elliptical<R> {
    fn init(
        &mut self,
        target: &mut dyn Target<Real = R>,
        position: Vec<R>,
    ) -> Result<State<R>, EvaluationError> {
        start(target, position)
    }

    fn step(
        &mut self,
        target: &mut dyn Target<Real = R>,
        state: &mut State<R>,
        stream: &mut Stream,
    ) -> Result<Info, Fatal> {
        let dim = state.position.len();
        self.direction.resize(dim, R::ZERO);
        self.proposal.resize(dim, R::ZERO);
        stream.fill_normal(&mut self.direction);
        let slice = stream.uniform().ln();
        let mut angle = TAU * stream.uniform();
        let (mut low, mut high) = (angle - TAU, angle);
        let mut failed = false;
        for point in 1..=MAX_POINTS {
            let ellipse = Ellipse {
                position: &state.position,
                direction: &self.direction,
                point: &mut self.proposal,
                is_new: point == 1,
            };
            let proposed = evaluate(target.log_ratio_on_ellipse(ellipse, angle))?;
            failed |= proposed == f64::NEG_INFINITY;
            let change = proposed - state.log_ratio;
            if change > slice {
                let mut ellipse = Ellipse {
                    position: &state.position,
                    direction: &self.direction,
                    point: &mut self.proposal,
                    is_new: false,
                };
                ellipse.write_point(0, angle);
                std::mem::swap(&mut state.position, &mut self.proposal);
                state.log_ratio = proposed;
                return Ok(Info {
                    acceptance_rate: 1.0 / f64::from(point),
                    is_accepted: true,
                    n_evaluations: point,
                    n_gradients: 0,
                    n_steps: point,
                    energy_error: -change,
                    diverging: failed,
                });
            }
            if angle < 0.0 {
                low = angle;
            } else {
                high = angle;
            }
            angle = low + (high - low) * stream.uniform();
        }
        Ok(Info {
            n_evaluations: MAX_POINTS,
            n_steps: MAX_POINTS,
            energy_error: f64::NAN,
            diverging: true,
            ..Info::default()
        })
    }
}
