//! One chain of a minibatch method: updates, epochs, and the draws made of them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::driver::ChainDriver;
use super::{DriverError, Progress, ProgressDetails, Schedule};
use crate::compute::{Purpose, Real, Stream};
use crate::laplace::LaplaceError;
use crate::laplace::fit::LaplaceFit;
use crate::stochastic::leave_units_out;
use crate::stochastic::swag::Swag;
use crate::stochastic::update::{StochasticGradient, Update};
use crate::stochastic::validation::Validation;

/// What draws are made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Collection {
    /// Positions, every `thin` updates after warm-up; of a cyclical schedule those of a cycle's sampling part count alone.
    Trajectory,
    /// After warm-up: draws of the Gaussian of [`Swag`] around positions that were taken every `every` updates after update
    /// `from`.
    Swag {
        /// Differences that are kept.
        rank: usize,
        /// Less than the warm-up.
        from: u64,
        /// At least 1.
        every: u64,
    },
    /// After warm-up: the last position with hidden units left out (Gal & Ghahramani 2016).
    Dropout {
        /// Probability in [0, 1) that a unit is left out.
        rate: f64,
    },
    /// After warm-up: draws of a Laplace approximation around the last position, or diffusions from it, see [`LaplaceFit`].
    Laplace,
}

/// How long, and what draws are made of. Warm-up and thinning count updates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MinibatchPlan {
    /// Lengths and seed.
    pub schedule: Schedule,
    /// What draws are made of.
    pub collection: Collection,
}

/// Sums over updates.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct UpdateStatistics {
    /// Updates that this covers.
    pub updates: u64,
    loss: f64,
    configurational: f64,
    kinetic: f64,
    /// Updates that have a kinetic temperature.
    kinetic_updates: u64,
    /// Numbers that a preconditioner had to correct, and factorisations that needed jitter.
    pub corrections: u64,
    /// Step size of the last update.
    pub step_size: f64,
}

impl UpdateStatistics {
    fn add(&mut self, update: &Update) {
        self.updates += 1;
        self.loss += update.loss;
        self.configurational += update.configurational_temperature;
        if let Some(kinetic) = update.kinetic_temperature {
            self.kinetic += kinetic;
            self.kinetic_updates += 1;
        }
        self.corrections += update.corrections;
        self.step_size = update.step_size;
    }

    /// Mean −log p of a minibatch's rows; NaN without updates.
    pub fn nll(&self) -> f64 {
        self.loss / self.updates as f64
    }

    /// Mean configurational temperature; NaN without updates.
    pub fn configurational_temperature(&self) -> f64 {
        self.configurational / self.updates as f64
    }

    /// Mean kinetic temperature; NaN where there is none.
    pub fn kinetic_temperature(&self) -> f64 {
        self.kinetic / self.kinetic_updates as f64
    }
}

/// An epoch that is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Epoch {
    /// Its updates.
    pub tally: UpdateStatistics,
    /// Mean −log p of the validation rows after it; NaN without any.
    pub validation_nll: f64,
}

/// Where a chain is, besides what [`StochasticGradient`] and [`Swag`] keep.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct MinibatchCounters {
    /// Updates, and draws that were made without one.
    pub transition: u64,
    /// Those after warm-up that count for draws.
    counted: u64,
    /// Epochs that are over.
    pub epochs: u64,
    epoch: UpdateStatistics,
    since_draw: UpdateStatistics,
    /// Of the last epoch.
    train_nll: Option<f64>,
    validation_nll: Option<f64>,
}

/// A draw, with all that it predicts with.
#[derive(Debug, Clone, Copy)]
pub struct MinibatchDraw<'a, R> {
    /// Weights.
    pub position: &'a [R],
    /// Means and variances of batch normalisation, where those are trained.
    pub statistics: &'a [f64],
    /// σ of every output.
    pub scales: &'a [f64],
    /// The updates since the draw before: of a trajectory those that may be drawn, after warm-up.
    pub since: &'a UpdateStatistics,
}

/// Sees what one chain produces, in order.
pub trait MinibatchObserver<R: Real>: Send {
    /// What may go wrong, in words.
    type Error: std::error::Error + Send;

    /// An epoch is over.
    ///
    /// # Errors
    /// Stops the run; what was drawn is kept.
    fn epoch(&mut self, epoch: &Epoch) -> Result<(), Self::Error>;

    /// Training is over at `mode`; draws around it are to come.
    ///
    /// # Errors
    /// Stops the run.
    fn trained(&mut self, mode: &[R]) -> Result<(), Self::Error>;

    /// Draw number `draw`.
    ///
    /// # Errors
    /// Stops the run; what was drawn is kept.
    fn draw(&mut self, made: MinibatchDraw<'_, R>, draw: u64) -> Result<(), Self::Error>;

    /// Everything so far is to survive a crash: counters, [`StochasticGradient::state`] and the Gaussian are all that
    /// [`MinibatchChain::resume`] needs.
    ///
    /// # Errors
    /// Stops the run.
    fn checkpoint(&mut self, chain: &MinibatchChain<R>) -> Result<(), Self::Error>;
}

/// A chain of a minibatch method.
#[derive(Debug)]
pub struct MinibatchChain<R> {
    plan: MinibatchPlan,
    total: u64,
    updates: StochasticGradient<R>,
    swag: Option<Swag<R>>,
    validation: Option<Validation<R>>,
    laplace: Option<LaplaceFit<R>>,
    has_ended_training: bool,
    counters: MinibatchCounters,
    /// A draw that is not the position itself.
    drawn: Vec<R>,
    /// The position is of no use any more.
    is_lost: bool,
}

/// A Laplace approximation, and the weights that it is around.
type AroundWeights<'a, R> = (&'a mut LaplaceFit<R>, Arc<[R]>);

impl<R: Real> MinibatchChain<R> {
    /// A chain before its first update.
    pub fn start(
        plan: MinibatchPlan,
        updates: StochasticGradient<R>,
        validation: Option<Validation<R>>,
    ) -> Self {
        let swag = match plan.collection {
            Collection::Swag { rank, .. } => Some(Swag::new(updates.state().position.len(), rank)),
            _ => None,
        };
        Self::resume(
            plan,
            updates,
            validation,
            swag,
            MinibatchCounters::default(),
        )
    }

    /// A chain that goes on with what a checkpoint kept.
    pub fn resume(
        plan: MinibatchPlan,
        updates: StochasticGradient<R>,
        validation: Option<Validation<R>>,
        swag: Option<Swag<R>>,
        counters: MinibatchCounters,
    ) -> Self {
        let drawn = match plan.collection {
            Collection::Trajectory => Vec::new(),
            _ => vec![R::ZERO; updates.state().position.len()],
        };
        Self {
            total: transitions(&plan, &updates),
            plan,
            updates,
            swag,
            validation,
            laplace: None,
            has_ended_training: false,
            counters,
            drawn,
            is_lost: false,
        }
    }

    /// With what draws of [`Collection::Laplace`] are of.
    #[must_use]
    pub fn with_laplace(mut self, laplace: LaplaceFit<R>) -> Self {
        self.laplace = Some(laplace);
        self
    }

    /// What draws of [`Collection::Laplace`] are of, and the weights that they are around.
    ///
    /// # Errors
    /// [`LaplaceError`].
    pub fn laplace(&mut self) -> Result<Option<AroundWeights<'_, R>>, LaplaceError> {
        let Some(laplace) = &mut self.laplace else {
            return Ok(None);
        };
        let state = self.updates.state();
        laplace.set_scales(self.updates.objective().scales());
        let mode = laplace.settle(&state.position, &state.statistics)?;
        Ok(Some((laplace, mode)))
    }

    /// Which chain.
    pub fn index(&self) -> usize {
        self.updates.settings().chain as usize
    }

    /// Counters.
    pub fn counters(&self) -> &MinibatchCounters {
        &self.counters
    }

    /// The chain of updates.
    pub fn updates(&self) -> &StochasticGradient<R> {
        &self.updates
    }

    /// The Gaussian, where draws are of one.
    pub fn swag(&self) -> Option<&Swag<R>> {
        self.swag.as_ref()
    }

    /// One update, or one draw that needs none.
    ///
    /// # Errors
    /// [`DriverError`]; the chain is then of no use any more.
    pub fn advance<O: MinibatchObserver<R>>(
        &mut self,
        observer: &mut O,
    ) -> Result<(), DriverError<O::Error>> {
        let chain = self.index();
        let told = |error| DriverError::Observer { chain, error };
        let transition = self.counters.transition + 1;
        let warmup = self.plan.schedule.warmup;
        let is_update = transition <= warmup || self.plan.collection == Collection::Trajectory;
        if !is_update && !self.draw_of_laplace(transition, observer)? {
            return Ok(());
        }
        if is_update {
            self.update(transition)?;
            let per_epoch = self.updates.updates_per_epoch();
            if transition.is_multiple_of(per_epoch) {
                let epoch = self.end_epoch();
                observer.epoch(&epoch).map_err(told)?;
            }
        }
        self.counters.transition = transition;
        if transition <= warmup || (is_update && !self.updates.is_sampling()) {
            return Ok(());
        }
        self.counters.counted += 1;
        let thin = self.plan.schedule.thin;
        if self.counters.counted.is_multiple_of(thin) {
            let draw = self.counters.counted / thin - 1;
            let since = self.counters.since_draw;
            self.counters.since_draw = UpdateStatistics {
                step_size: since.step_size,
                ..UpdateStatistics::default()
            };
            let statistics = self.make_draw(draw);
            let position = match self.plan.collection {
                Collection::Trajectory => &self.updates.state().position,
                _ => &self.drawn,
            };
            let made = MinibatchDraw {
                position,
                statistics: &statistics,
                scales: self.updates.objective().scales(),
                since: &since,
            };
            observer.draw(made, draw).map_err(told)?;
        }
        Ok(())
    }

    /// Goes on with a draw of a Laplace approximation or diffusion; whether it is finished.
    fn draw_of_laplace<O: MinibatchObserver<R>>(
        &mut self,
        transition: u64,
        observer: &mut O,
    ) -> Result<bool, DriverError<O::Error>> {
        let chain = self.index();
        let Some(laplace) = &mut self.laplace else {
            return Ok(true);
        };
        let failed = |error: LaplaceError| DriverError::Target {
            chain,
            transition,
            reason: error.to_string(),
        };
        let state = self.updates.state();
        laplace.set_scales(self.updates.objective().scales());
        let mode = laplace.settle(&state.position, &state.statistics);
        let mode = mode.map_err(failed)?;
        if !self.has_ended_training {
            self.has_ended_training = true;
            if self.counters.counted == 0 {
                // those of training are not the first draw's
                self.counters.since_draw.corrections = 0;
            }
            let told = |error| DriverError::Observer { chain, error };
            observer.trained(&mode).map_err(told)?;
        }
        let found = laplace.advance(&mode, self.counters.counted, &mut self.drawn);
        let (is_over, unconverged) = found.map_err(failed)?;
        self.counters.since_draw.corrections += unconverged;
        Ok(is_over)
    }

    fn update<E: std::error::Error>(&mut self, transition: u64) -> Result<(), DriverError<E>> {
        let update = self.updates.update().map_err(|error| {
            self.is_lost = true;
            DriverError::Target {
                chain: self.updates.settings().chain as usize,
                transition,
                reason: error.to_string(),
            }
        })?;
        self.counters.epoch.add(&update);
        let is_trajectory = self.plan.collection == Collection::Trajectory;
        if is_trajectory && transition == self.plan.schedule.warmup + 1 {
            self.counters.since_draw = UpdateStatistics::default();
        }
        if !is_trajectory || self.updates.is_sampling() {
            self.counters.since_draw.add(&update);
        }
        if let (Collection::Swag { from, every, .. }, Some(swag)) =
            (self.plan.collection, &mut self.swag)
            && transition > from
            && (transition - from).is_multiple_of(every)
        {
            swag.add(&self.updates.state().position);
        }
        Ok(())
    }

    fn end_epoch(&mut self) -> Epoch {
        let tally = std::mem::take(&mut self.counters.epoch);
        let state = self.updates.state();
        let validation = self.validation.as_mut().map(|rows| {
            rows.set_statistics(&state.statistics);
            rows.set_scales(self.updates.objective().scales());
            rows.nll(&state.position)
        });
        self.counters.epochs += 1;
        self.counters.train_nll = Some(tally.nll());
        self.counters.validation_nll = validation;
        Epoch {
            tally,
            validation_nll: validation.unwrap_or(f64::NAN),
        }
    }

    /// Makes draw number `draw` of what is no trajectory; the statistics of batch normalisation that it has.
    fn make_draw(&mut self, draw: u64) -> Vec<f64> {
        let position = &self.updates.state().position;
        let settings = self.updates.settings();
        let stream = || Stream::new(settings.seed, settings.chain, Purpose::Recording, draw);
        match (self.plan.collection, &self.swag) {
            (Collection::Swag { .. }, Some(swag)) => {
                swag.draw(&mut stream(), &mut self.drawn);
                // what no minibatch has been evaluated with
                return self.updates.statistics_at(&self.drawn);
            }
            (Collection::Dropout { rate }, _) => {
                self.drawn.copy_from_slice(position);
                let layout = self.updates.objective().layout();
                leave_units_out(layout, rate, &mut stream(), &mut self.drawn);
            }
            _ => {}
        }
        self.updates.state().statistics.clone()
    }

    /// Means and variances of batch normalisation at the mean of all draws, which has been in no minibatch; where that is the last
    /// position, those of training.
    pub fn statistics_of_mean(&mut self, mean: &[R]) -> Vec<f64> {
        let state = self.updates.state();
        match mean == state.position {
            true => state.statistics.clone(),
            false => self.updates.statistics_at(mean),
        }
    }

    /// Where the chain is.
    pub fn progress(&self) -> Progress {
        let (counters, settings) = (&self.counters, self.updates.settings());
        let made = self.updates.state().update;
        Progress {
            chain: self.index(),
            transition: counters.transition,
            total: self.total,
            is_warmup: counters.transition <= self.plan.schedule.warmup,
            step_size: Some(settings.step_size * settings.schedule.factor(made)),
            news: ProgressDetails::Updates {
                epochs: counters.epochs,
                train_nll: counters.train_nll,
                validation_nll: counters.validation_nll,
            },
        }
    }
}

impl<R: Real, O: MinibatchObserver<R>> ChainDriver for (MinibatchChain<R>, O) {
    type Error = O::Error;

    fn advance(&mut self, _: &(dyn Fn() -> bool + Sync)) -> Result<(), DriverError<O::Error>> {
        self.0.advance(&mut self.1)
    }

    fn checkpoint(&mut self) -> Result<(), DriverError<O::Error>> {
        if self.0.is_lost {
            return Ok(());
        }
        let chain = self.0.index();
        self.1
            .checkpoint(&self.0)
            .map_err(|error| DriverError::Observer { chain, error })
    }

    fn progress(&self) -> Progress {
        self.0.progress()
    }
}

/// Transitions until every draw has been made.
fn transitions<R: Real>(plan: &MinibatchPlan, updates: &StochasticGradient<R>) -> u64 {
    let schedule = plan.schedule;
    match plan.collection {
        Collection::Trajectory => {
            let steps = updates.settings().schedule;
            schedule.warmup + steps.updates_for(schedule.warmup, schedule.draws * schedule.thin)
        }
        _ => schedule.transitions(),
    }
}
