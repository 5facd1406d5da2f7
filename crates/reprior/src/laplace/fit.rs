//! From the end of a training to draws: the way to the mode, the choice of weights and prior precisions, the fit, and draws of it;
//! or the ends of Laplace diffusions.

use std::sync::Arc;

use super::ascent::{Ascent, LogPosterior, LogPrior};
use super::diffusion::{Diffusion, DiffusionData, DiffusionPath};
use super::precision::{PrecisionChoice, curvature_of_priors};
use super::spectrum::Spectrum;
use super::subset::SubsetChoice;
use super::{
    FisherInformation, HessianStructure, Laplace, LaplaceData, LaplaceError, PriorPrecision, Subset,
};
use crate::compute::{Matrix, Purpose, Real, Stream, matrix};
use crate::model::likelihood::Curvature;
use crate::network::parameters::ParameterLayout;
use crate::network::{Composition, Executor};
use crate::stochastic::Prior;
use crate::stochastic::data::MinibatchData;

/// Nats from the mode at which the ascent to it is over.
const CLOSE: f64 = 1e-3;

/// What draws around trained weights are of.
#[derive(Debug, Clone, PartialEq)]
pub enum LaplaceMethod {
    /// A Gaussian.
    Approximation {
        /// Of the curvature.
        structure: HessianStructure,
        /// Which weights are random.
        subset: SubsetChoice,
        /// Prior precisions.
        precision: PrecisionChoice,
    },
    /// Paths, one for each draw.
    Diffusion(Diffusion),
}

/// A method with the network and the data that it is fitted to, and the fit once it is asked for.
#[derive(Debug)]
pub struct LaplaceFit<R> {
    method: LaplaceMethod,
    executor: Executor<R>,
    layout: ParameterLayout,
    data: MinibatchData<R>,
    held_out: Option<MinibatchData<R>>,
    /// n × C, column-major, of the rows that the curvature is of.
    targets: Vec<f64>,
    /// Rows that the curvature is of, and those that they stand for.
    rows: [usize; 2],
    key: [u64; 2],
    /// The prior of training, and how many gradients of all rows the way from its end to the mode may take.
    training: Option<(Vec<Prior>, usize)>,
    /// The weights that draws are around.
    mode: Option<Arc<[R]>>,
    ascent: Ascent,
    nats_to_mode: f64,
    fitted: Option<Laplace<R>>,
    /// The eigenpairs at the mode, where all paths begin.
    at_mode: Option<Arc<Spectrum<R>>>,
    path: Option<DiffusionPath<R>>,
}

impl<R: Real> LaplaceFit<R> {
    /// For a network and its training data, of which the first `rows` are what the curvature is of; random numbers are those of
    /// `seed` and `chain`.
    ///
    /// # Errors
    /// A layer that does not fit; a likelihood without a curvature.
    pub fn new(
        method: LaplaceMethod,
        network: &Composition,
        data: MinibatchData<R>,
        held_out: Option<MinibatchData<R>>,
        rows: usize,
        [seed, chain]: [u64; 2],
        threads: usize,
    ) -> Result<Self, LaplaceError> {
        let executor = Executor::new(network)?.with_threads(threads);
        let outputs = network.outputs;
        let (likelihood, zeros) = (&data.likelihood, vec![0.0; outputs]);
        if !likelihood.curvature(&zeros, &data.scales, &mut Curvature::default()) {
            return Err(LaplaceError::NoCurvature);
        }
        let all = data.targets.len() / outputs.max(1);
        let rows = rows.min(all);
        Ok(Self {
            targets: targets(&data, rows),
            method,
            executor,
            layout: ParameterLayout::new(network),
            data,
            held_out,
            rows: [rows, all],
            key: [seed, chain],
            training: None,
            mode: None,
            ascent: Ascent::default(),
            nats_to_mode: f64::NAN,
            fitted: None,
            at_mode: None,
            path: None,
        })
    }

    /// Weights that were trained here with `priors`, one for all layers or one each: a Laplace approximation goes on from where
    /// training ended to the mode, with at most so many gradients of all rows. Without this weights stay where they are.
    #[must_use]
    pub fn with_training(mut self, priors: Vec<Prior>, evaluations: usize) -> Self {
        self.training = Some((priors, evaluations));
        self
    }

    /// Takes the σ of every output that training ended with, before the weights that draws are around are found.
    pub fn set_scales(&mut self, scales: &[f64]) {
        if self.mode.is_some() {
            return;
        }
        let held_out = self.held_out.as_mut();
        for data in [Some(&mut self.data), held_out].into_iter().flatten() {
            data.scales.copy_from_slice(scales);
        }
    }

    /// The weights that draws are around, of training that ended at `position` and with these means and variances of batch
    /// normalisation (none leave the network's), which stay frozen from here on: found when they are first asked for.
    ///
    /// # Errors
    /// [`LaplaceError`].
    pub fn settle(&mut self, position: &[R], statistics: &[f64]) -> Result<Arc<[R]>, LaplaceError> {
        if let Some(mode) = &self.mode {
            return Ok(Arc::clone(mode));
        }
        self.executor.set_statistics(statistics);
        let mut weights = position.to_vec();
        if let (
            LaplaceMethod::Approximation {
                structure, subset, ..
            },
            Some((priors, most)),
        ) = (&self.method, self.training.clone())
        {
            let structure = match subset {
                SubsetChoice::All => *structure,
                _ => HessianStructure::Diag,
            };
            let precisions = curvature_of_priors(&self.layout, &priors, &weights, structure);
            let prior = PriorPrecision::PerParameter(precisions);
            let curvature = self.laplace(&weights, structure, Subset::All, &prior)?;
            self.ascent = self.log_posterior(LogPrior::Layers(&priors)).ascend(
                &mut weights,
                &curvature,
                most,
                CLOSE,
            );
        }
        let mode: Arc<[R]> = weights.into();
        self.mode = Some(Arc::clone(&mode));
        Ok(mode)
    }

    /// The way from where training ended to the mode.
    pub fn ascent(&self) -> Ascent {
        self.ascent
    }

    /// What the log-posterior of training can still rise by, in nats, as far as the curvature that was fitted says
    /// ([`Laplace::nats_to_mode`]); of weights that were given that with the prior precision of the approximation. NaN before a fit.
    pub fn nats_to_mode(&self) -> f64 {
        self.nats_to_mode
    }

    fn log_posterior<'a>(&'a mut self, prior: LogPrior<'a>) -> LogPosterior<'a, R> {
        LogPosterior {
            executor: &mut self.executor,
            layout: &self.layout,
            data: &self.data,
            prior,
        }
    }

    /// How far `mode` is from one.
    fn distance(
        &mut self,
        laplace: &mut Laplace<R>,
        mode: &[R],
        structure: HessianStructure,
    ) -> Result<f64, LaplaceError> {
        let mut gradient = vec![R::ZERO; mode.len()];
        let readout = self.executor.readout_parameters();
        let Some((priors, _)) = self.training.clone() else {
            let mut own = vec![0.0; mode.len()];
            laplace
                .subset()
                .scatter(laplace.precisions(), &mut own, readout);
            self.log_posterior(LogPrior::Precisions(&own))
                .evaluate(mode, &mut gradient);
            return Ok(laplace.nats_to_mode(&gradient));
        };
        self.log_posterior(LogPrior::Layers(&priors))
            .evaluate(mode, &mut gradient);
        let precisions = curvature_of_priors(&self.layout, &priors, mode, structure);
        let own = laplace.subset().gather(&precisions, readout);
        let before = laplace.precisions().to_vec();
        laplace.set_prior_precision(&PriorPrecision::PerParameter(own))?;
        let nats = laplace.nats_to_mode(&gradient);
        laplace.set_prior_precision(&PriorPrecision::PerParameter(before))?;
        Ok(nats)
    }

    /// The Gaussian around `mode`, fitted when it is first asked for; none for diffusions.
    ///
    /// # Errors
    /// [`LaplaceError`].
    pub fn fit(&mut self, mode: &[R]) -> Result<Option<&Laplace<R>>, LaplaceError> {
        let LaplaceMethod::Approximation {
            structure,
            subset,
            precision,
        } = self.method.clone()
        else {
            return Ok(None);
        };
        if self.fitted.is_none() {
            let subset = self.choose(subset, mode, &precision)?;
            let prior = match &precision {
                PrecisionChoice::Given(all) => {
                    let own = subset.gather(all, self.executor.readout_parameters());
                    match own.first() {
                        Some(&first) if own.iter().all(|p| *p == first) => {
                            PriorPrecision::Scalar(first)
                        }
                        _ => PriorPrecision::PerParameter(own),
                    }
                }
                _ => PriorPrecision::Scalar(1.0),
            };
            let mut laplace = self.laplace(mode, structure, subset, &prior)?;
            if self.rows[0] < self.rows[1] {
                laplace.set_log_likelihood(self.log_likelihood(mode));
            }
            match (precision, &self.held_out) {
                (PrecisionChoice::MarginalLikelihood(per), _) => {
                    laplace.maximise_marginal_likelihood(per)?;
                }
                (PrecisionChoice::Validation, Some(held_out)) => {
                    let rows = held_out.targets.len() / self.executor.outputs_count();
                    laplace.validate(&mut self.executor, held_out, inputs(held_out, rows))?;
                }
                _ => {}
            }
            self.nats_to_mode = self.distance(&mut laplace, mode, structure)?;
            self.fitted = Some(laplace);
        }
        Ok(self.fitted.as_ref())
    }

    fn laplace(
        &mut self,
        mode: &[R],
        structure: HessianStructure,
        subset: Subset,
        prior: &PriorPrecision,
    ) -> Result<Laplace<R>, LaplaceError> {
        let [rows, all] = self.rows;
        let data = LaplaceData {
            inputs: inputs(&self.data, rows),
            targets: &self.targets,
            likelihood: &*self.data.likelihood,
            scales: &self.data.scales,
            curvature: &fisher(&self.data),
            scale: all as f64 / rows as f64,
        };
        let [seed, chain] = self.key;
        let mut stream = Stream::new(seed, chain, Purpose::Curvature, 0);
        let (executor, layout) = (&mut self.executor, &self.layout);
        Laplace::fit(
            executor,
            layout,
            mode,
            data,
            structure,
            subset,
            prior,
            &mut stream,
        )
    }

    /// log p(y | w) of all rows: a few that stand for them would say how likely they are themselves.
    fn log_likelihood(&mut self, weights: &[R]) -> f64 {
        let all = self.rows[1];
        let data = LaplaceData {
            inputs: inputs(&self.data, all),
            targets: &targets(&self.data, all),
            likelihood: &*self.data.likelihood,
            scales: &self.data.scales,
            curvature: &fisher(&self.data),
            scale: 1.0,
        };
        data.log_likelihood(&mut self.executor, weights)
    }

    fn choose(
        &mut self,
        choice: SubsetChoice,
        mode: &[R],
        precision: &PrecisionChoice,
    ) -> Result<Subset, LaplaceError> {
        Ok(match choice {
            SubsetChoice::All => Subset::All,
            SubsetChoice::LastLayer => Subset::LastLayer,
            SubsetChoice::Last(count) => Subset::last(mode.len(), count),
            SubsetChoice::LargestMagnitude(count) => {
                let magnitudes: Vec<f64> = mode.iter().map(|w| w.to_f64().abs()).collect();
                Subset::largest(&magnitudes, count)
            }
            SubsetChoice::LargestVariance(count) => {
                let prior = match precision {
                    PrecisionChoice::Given(all) => PriorPrecision::PerParameter(all.clone()),
                    _ => PriorPrecision::Scalar(1.0),
                };
                let diagonal = self.laplace(mode, HessianStructure::Diag, Subset::All, &prior)?;
                Subset::largest(&diagonal.variances(), count)
            }
        })
    }

    /// Writes draw number `draw` around `mode` to `position` where it is finished: a diffusion makes one step at a time. Returns
    /// whether it is, and the eigenpairs that had not converged.
    ///
    /// # Errors
    /// [`LaplaceError`].
    pub fn advance(
        &mut self,
        mode: &[R],
        draw: u64,
        position: &mut [R],
    ) -> Result<(bool, u64), LaplaceError> {
        let [seed, chain] = self.key;
        if let LaplaceMethod::Diffusion(settings) = self.method {
            let [rows, all] = self.rows;
            let data = DiffusionData {
                inputs: inputs(&self.data, rows),
                curvature: &fisher(&self.data),
                scale: all as f64 / rows as f64,
            };
            // paths are independent of each other as other chains are
            let number = (chain << 40) | draw;
            let path = match self.path.as_mut() {
                Some(path) => path,
                None => {
                    let at_mode = match &self.at_mode {
                        Some(known) => Arc::clone(known),
                        // with random numbers of the chain, whichever draw it goes on with after an interruption
                        None => DiffusionPath::new(settings, mode, seed, chain << 40)
                            .eigenpairs(&mut self.executor, data)?,
                    };
                    self.at_mode = Some(Arc::clone(&at_mode));
                    let path = DiffusionPath::new(settings, mode, seed, number);
                    self.path.insert(path.with_eigenpairs(at_mode))
                }
            };
            path.advance(&mut self.executor, data)?;
            if !path.is_over() {
                return Ok((false, 0));
            }
            position.copy_from_slice(path.position());
            let unconverged = path.unconverged;
            self.path = None;
            return Ok((true, unconverged));
        }
        if let Some(laplace) = self.fit(mode)? {
            let mut stream = Stream::new(seed, chain, Purpose::Recording, draw);
            laplace.draw(&mut stream, position);
        }
        Ok((true, 0))
    }
}

fn fisher<R>(data: &MinibatchData<R>) -> FisherInformation<'_> {
    FisherInformation {
        likelihood: &*data.likelihood,
        scales: &data.scales,
    }
}

fn inputs<R: Real>(data: &MinibatchData<R>, rows: usize) -> Matrix<'_, R> {
    let all = data.targets.len() / data.scales.len().max(1);
    let columns = data.inputs.len() / all.max(1);
    matrix(&data.inputs[..rows * columns], columns, rows).transpose()
}

/// Column-major targets of the first rows.
fn targets<R>(data: &MinibatchData<R>, rows: usize) -> Vec<f64> {
    let outputs = data.scales.len();
    let column = |c: usize| (0..rows).map(move |row| row * outputs + c);
    let places = (0..outputs).flat_map(column);
    places.map(|at| data.targets[at]).collect()
}
