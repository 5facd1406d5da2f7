//! The contract between posteriors and samplers.

use std::ops::Range;

use thiserror::Error;

use crate::compute::{NotPositiveDefinite, Real, blend, one_minus_cos};

/// A density against the standard normal: π(z) ∝ N(z; 0, I)·exp ℓ(z).
///
/// Two methods are needed, and a third where there is a gradient. A target owns its work space, hence `&mut self`; each
/// chain has a target of its own.
///
/// ```
/// use reprior::posterior::{EvaluationError, Target};
///
/// /// One observation y of z with noise σ: ℓ(z) = −(y − z)²/2σ².
/// struct Observation { y: f64, sigma: f64 }
///
/// impl Target for Observation {
///     type Real = f64;
///     fn dim(&self) -> usize { 1 }
///     fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
///         Ok(-0.5 * ((self.y - z[0]) / self.sigma).powi(2))
///     }
///     fn log_ratio_and_gradient(&mut self, z: &[f64], gradient: &mut [f64]) -> Result<f64, EvaluationError> {
///         gradient[0] = (self.y - z[0]) / self.sigma.powi(2);
///         self.log_ratio(z)
///     }
/// }
/// let mut target = Observation { y: 1.0, sigma: 0.5 };
/// assert_eq!(target.log_ratio(&[0.5]).unwrap(), -0.5);
/// ```
pub trait Target: Send {
    /// Precision of positions and gradients.
    type Real: Real;

    /// Number of coordinates; may be 0.
    fn dim(&self) -> usize;

    /// ℓ(z). A NaN counts as −∞: the proposal is rejected.
    ///
    /// # Errors
    /// A recoverable error rejects the proposal and is counted; a fatal one stops the run.
    fn log_ratio(&mut self, z: &[Self::Real]) -> Result<f64, EvaluationError>;

    /// ℓ(z), with ∇ℓ(z) written to `gradient` (`dim` entries, all of them overwritten). A gradient that is not finite
    /// counts as a failed evaluation. Methods without gradients never call it, unless the target
    /// [allows it](Self::arrives_by_gradients) or
    /// [`SamplerSettings::arrival`](crate::sampler::SamplerSettings::arrival) asks for it.
    ///
    /// # Errors
    /// As for [`log_ratio`](Self::log_ratio). Unless it is written, a fatal one: the target has no gradient.
    fn log_ratio_and_gradient(
        &mut self,
        _z: &[Self::Real],
        _gradient: &mut [Self::Real],
    ) -> Result<f64, EvaluationError> {
        let message = "the target has no gradient: use a method that needs none (pcn, elliptical or rwm), without arrival";
        Err(EvaluationError::Fatal(message.to_owned()))
    }

    /// ℓ at a point of an ellipse (see [`Ellipse`]). Elliptical slice sampling asks for several points of one ellipse: a
    /// target part of whose work is linear in the position can do that part once.
    ///
    /// # Errors
    /// As for [`log_ratio`](Self::log_ratio).
    fn log_ratio_on_ellipse(
        &mut self,
        mut ellipse: Ellipse<'_, Self::Real>,
        angle: f64,
    ) -> Result<f64, EvaluationError> {
        ellipse.write_point(0, angle);
        self.log_ratio(ellipse.point)
    }

    /// Whether chains of methods without gradients may use those of this target to get from a prior draw to the posterior
    /// (the first transitions of warm-up). They may not unless this says so.
    fn arrives_by_gradients(&self) -> bool {
        false
    }

    /// Coordinates that stay at 0, their prior's median, while a mode of the others is searched for: scales of noise. Along with them a mode is a
    /// function through all targets and next to no noise, with hardly any of the posterior around it.
    fn held_at_modes(&self) -> Vec<Range<usize>> {
        Vec::new()
    }

    /// Held coordinates that another search is to move, given ∇ℓ at the mode with the held ones at 0, and what ℓ has to gain there for each
    /// unit of them, so that they do not run off; none where they may stay.
    fn released(&self, _gradient: &[Self::Real]) -> Vec<(usize, f64)> {
        Vec::new()
    }

    /// Moves a position on its way to a mode by cheaper means than gradients of ℓ, where the target has such; whether it did: it does not once it is
    /// `halted`. Random numbers are those of this seed and chain.
    fn approach_mode(
        &mut self,
        _position: &mut [Self::Real],
        _seed_and_chain: [u64; 2],
        _halted: &dyn Fn() -> bool,
    ) -> bool {
        false
    }

    /// How many numerical corrections (jitter on a diagonal) evaluations have needed since the target was made.
    fn corrections(&self) -> u64 {
        0
    }
}

impl<T: Target + ?Sized> Target for Box<T> {
    type Real = T::Real;
    fn dim(&self) -> usize {
        (**self).dim()
    }
    fn log_ratio(&mut self, z: &[Self::Real]) -> Result<f64, EvaluationError> {
        (**self).log_ratio(z)
    }
    fn log_ratio_and_gradient(
        &mut self,
        z: &[Self::Real],
        gradient: &mut [Self::Real],
    ) -> Result<f64, EvaluationError> {
        (**self).log_ratio_and_gradient(z, gradient)
    }
    fn log_ratio_on_ellipse(
        &mut self,
        ellipse: Ellipse<'_, Self::Real>,
        angle: f64,
    ) -> Result<f64, EvaluationError> {
        (**self).log_ratio_on_ellipse(ellipse, angle)
    }
    fn arrives_by_gradients(&self) -> bool {
        (**self).arrives_by_gradients()
    }
    fn held_at_modes(&self) -> Vec<Range<usize>> {
        (**self).held_at_modes()
    }
    fn released(&self, gradient: &[Self::Real]) -> Vec<(usize, f64)> {
        (**self).released(gradient)
    }
    fn approach_mode(
        &mut self,
        position: &mut [Self::Real],
        seed_and_chain: [u64; 2],
        halted: &dyn Fn() -> bool,
    ) -> bool {
        (**self).approach_mode(position, seed_and_chain, halted)
    }
    fn corrections(&self) -> u64 {
        (**self).corrections()
    }
}

/// The ellipse z cos α + ν sin α through a position z and a direction ν.
#[derive(Debug)]
pub struct Ellipse<'a, R> {
    /// z.
    pub position: &'a [R],
    /// ν.
    pub direction: &'a [R],
    /// Work space for a point, as long as the others.
    pub point: &'a mut [R],
    /// Whether this is another ellipse than in the call before.
    pub is_new: bool,
}

impl<R: Real> Ellipse<'_, R> {
    /// Writes the point at `angle` to the work space, from coordinate `from` on.
    pub fn write_point(&mut self, from: usize, angle: f64) {
        blend(
            &mut self.point[from..],
            one_minus_cos(angle),
            &self.position[from..],
            angle.sin(),
            &self.direction[from..],
        );
    }
}

/// Why ℓ could not be evaluated.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum EvaluationError {
    /// This position is bad; others may be good. The proposal is rejected.
    #[error("{0}")]
    Recoverable(String),
    /// Nothing will help: the run stops, what is drawn is kept.
    #[error("{0}")]
    Fatal(String),
}

impl From<NotPositiveDefinite> for EvaluationError {
    fn from(error: NotPositiveDefinite) -> Self {
        Self::Recoverable(format!(
            "{error}; more noise or double precision (--precision f64) may help"
        ))
    }
}
