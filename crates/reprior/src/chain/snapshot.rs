//! A chain's exact state, and why a chain cannot start from one.

use thiserror::Error;

use super::Statistics;
use super::ladder::Ladder;
use crate::compute::Real;
use crate::sampler::kernels::Adaptation;
use crate::sampler::{SamplerSettings, State};

/// All that a chain needs to go on: its exact state.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot<R> {
    /// Transitions made.
    pub transition: u64,
    /// Position, ℓ, gradient, momentum.
    pub state: State<R>,
    /// Step size in use; absent for methods without one.
    pub step_size: Option<f64>,
    /// What warm-up finds [beside it](crate::sampler::Sampler::tuned), in use.
    pub tuned: Option<f64>,
    /// The adaptation, while there is one.
    pub adaptation: Option<Adaptation>,
    /// How many of the last transitions failed in a row: they diverged, or ℓ could not be evaluated.
    pub failures: u64,
    /// Statistics since the last record.
    pub since_record: Statistics,
    /// Statistics of the whole warm-up.
    pub warmup: Statistics,
    /// Statistics of everything after it.
    pub sampling: Statistics,
    /// The replicas, of a chain that has any.
    pub ladder: Option<Ladder<R>>,
}

/// Why a chain cannot start.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum StartError {
    /// Zero of something in the [`Schedule`](super::Schedule).
    #[error("the number of {0} is 0: it must be at least 1")]
    Zero(&'static str),
    /// More transitions than a 64-bit counter holds.
    #[error("warm-up plus draws × thin is more transitions than can be counted")]
    Overflow,
    /// Every draw of the prior that was tried failed.
    #[error(
        "chain {chain}: none of {tries} draws from the prior could be evaluated; the last said: {reason}"
    )]
    NoStart {
        /// Which chain.
        chain: usize,
        /// How many were tried.
        tries: u64,
        /// What the last one said.
        reason: String,
    },
    /// The target said that nothing will help.
    #[error("chain {chain}: {reason}")]
    Fatal {
        /// Which chain.
        chain: usize,
        /// What the target said.
        reason: String,
    },
    /// A start that is no position of the target.
    #[error(
        "chain {chain}: the position to start at has {found} coordinates, the target has {expected}"
    )]
    Position {
        /// Which chain.
        chain: usize,
        /// Coordinates of the position.
        found: usize,
        /// Coordinates of the target.
        expected: usize,
    },
    /// A snapshot of another target.
    #[error("chain {chain}: the checkpoint has {found} coordinates, the target has {expected}")]
    Dimension {
        /// Which chain.
        chain: usize,
        /// Coordinates in the snapshot.
        found: usize,
        /// Coordinates of the target.
        expected: usize,
    },
    /// A snapshot of another density: of another model, or of a version of this library with other coordinates.
    #[error(
        "chain {chain}: the log-density at the checkpoint's position is {found}, where the checkpoint has {expected}: it was made with another model, \
         or by another version; go on with that one, or begin anew"
    )]
    Density {
        /// Which chain.
        chain: usize,
        /// ℓ as it is now.
        found: f64,
        /// ℓ in the snapshot.
        expected: f64,
    },
    /// A snapshot of a chain with another number of replicas.
    #[error("chain {chain}: the checkpoint has {found} replicas, {expected} were asked for")]
    Replicas {
        /// Which chain.
        chain: usize,
        /// Replicas in the snapshot.
        found: usize,
        /// Replicas asked for.
        expected: usize,
    },
    /// A snapshot of another method.
    #[error(
        "chain {chain}: the checkpoint was made by another method: its {what} has {found} coordinates, not {expected}"
    )]
    Method {
        /// Which chain.
        chain: usize,
        /// The gradient or the momentum.
        what: &'static str,
        /// Its coordinates in the snapshot.
        found: usize,
        /// Its coordinates as the method keeps it.
        expected: usize,
    },
}

impl<R: Real> Snapshot<R> {
    /// Whether a target of this dimension and the sampler in use at this transition can go on from here.
    pub(super) fn check(
        &self,
        chain: usize,
        dimension: usize,
        settings: &SamplerSettings,
    ) -> Result<(), StartError> {
        let replicas = self.ladder.as_ref().map_or(0, |own| own.replicas.len());
        if replicas != settings.replicas {
            return Err(StartError::Replicas {
                chain,
                found: replicas,
                expected: settings.replicas,
            });
        }
        let own = std::iter::once(&self.state);
        let of_replicas = self.ladder.iter().flat_map(|ladder| &ladder.replicas);
        own.chain(of_replicas.map(|replica| &replica.state))
            .try_for_each(|state| check(state, chain, dimension, settings))
    }
}

/// Whether a state is of a target of this dimension, and of the sampler in use.
fn check<R: Real>(
    state: &State<R>,
    chain: usize,
    dimension: usize,
    settings: &SamplerSettings,
) -> Result<(), StartError> {
    let found = state.position.len();
    if found != dimension {
        return Err(StartError::Dimension {
            chain,
            found,
            expected: dimension,
        });
    }
    let kept = |keeps| if keeps { dimension } else { 0 };
    let check = |what, found, expected| {
        if found == expected {
            return Ok(());
        }
        Err(StartError::Method {
            chain,
            what,
            found,
            expected,
        })
    };
    let gradient = state.gradient.len();
    check(
        "gradient",
        gradient,
        kept(settings.method.needs_gradients()),
    )?;
    match state.momentum.len() {
        // there is none before the first transition
        0 => Ok(()),
        found => check("momentum", found, kept(settings.keeps_momentum())),
    }
}
