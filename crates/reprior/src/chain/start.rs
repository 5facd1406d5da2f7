//! Where a chain, or a replica of it, starts: at a draw from the prior.

use super::StartError;
use crate::compute::{Real, Stream};
use crate::posterior::{EvaluationError, Target, Tempered};
use crate::sampler::{Sampler, State};

/// Draws from the prior that are tried as a start.
const START_TRIES: u64 = 100;

/// The state at the first draw from N(0, I), of those that `stream` makes by the number of the try, at which the target can be evaluated.
///
/// # Errors
/// None could be; a target that says that nothing will help.
pub(super) fn start_at_prior<T: Target>(
    chain: usize,
    stream: impl Fn(u64) -> Stream,
    sampler: &mut dyn Sampler<T::Real>,
    target: &mut Tempered<T>,
) -> Result<State<T::Real>, StartError> {
    let mut last = String::new();
    for attempt in 0..START_TRIES {
        let mut position = vec![T::Real::ZERO; target.dim()];
        stream(attempt).fill_normal(&mut position);
        match sampler.init(target, position) {
            Ok(state) => return Ok(state),
            Err(EvaluationError::Fatal(reason)) => return Err(StartError::Fatal { chain, reason }),
            Err(EvaluationError::Recoverable(reason)) => last = reason,
        }
    }
    Err(StartError::NoStart {
        chain,
        tries: START_TRIES,
        reason: last,
    })
}
