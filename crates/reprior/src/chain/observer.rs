//! What sees a chain's draws: a writer of files, a collector in memory, anything.

use std::convert::Infallible;

use super::Statistics;
use super::snapshot::Snapshot;
use crate::posterior::Target;
use crate::sampler::State;

/// Sees what one chain produces, in order.
pub trait Observer<T: Target>: Send {
    /// What may go wrong, in words.
    type Error: std::error::Error + Send;

    /// `thin` more transitions of warm-up are done.
    ///
    /// # Errors
    /// Stops the run; what was drawn is kept.
    fn warmup(&mut self, statistics: &Statistics, log_density: [f64; 2])
    -> Result<(), Self::Error>;

    /// A draw: the state after `thin` more transitions. `log_density` is [ℓ, ℓ − ½‖z‖²]. `transition` numbers the
    /// transition that made it, counted from 1 over warm-up and draws; the target may be used for derived quantities.
    ///
    /// # Errors
    /// Stops the run; what was drawn is kept.
    fn draw(
        &mut self,
        target: &mut T,
        state: &State<T::Real>,
        statistics: &Statistics,
        log_density: [f64; 2],
        transition: u64,
    ) -> Result<(), Self::Error>;

    /// Everything so far is to survive a crash: `snapshot` is all that [`Chain::resume`](super::Chain::resume) needs.
    ///
    /// # Errors
    /// Stops the run.
    fn checkpoint(&mut self, snapshot: &Snapshot<T::Real>) -> Result<(), Self::Error>;
}

/// Keeps positions and statistics in memory.
#[derive(Debug, Clone, Default)]
pub struct Collect<R> {
    /// Positions, draw by draw.
    pub positions: Vec<Vec<R>>,
    /// Statistics, draw by draw.
    pub statistics: Vec<Statistics>,
    /// ℓ, draw by draw.
    pub log_ratios: Vec<f64>,
}

impl<T: Target> Observer<T> for Collect<T::Real> {
    type Error = Infallible;

    fn warmup(&mut self, _: &Statistics, _: [f64; 2]) -> Result<(), Infallible> {
        Ok(())
    }

    fn draw(
        &mut self,
        _: &mut T,
        state: &State<T::Real>,
        statistics: &Statistics,
        log_density: [f64; 2],
        _: u64,
    ) -> Result<(), Infallible> {
        self.positions.push(state.position.clone());
        self.statistics.push(statistics.clone());
        self.log_ratios.push(log_density[0]);
        Ok(())
    }

    fn checkpoint(&mut self, _: &Snapshot<T::Real>) -> Result<(), Infallible> {
        Ok(())
    }
}
