//! Draws around the mode that a training ended at: of a Laplace approximation, or where Laplace diffusions end.

use std::sync::Arc;

use crate::compute::{Matrix, NotPositiveDefinite, Purpose, Real, Stream, matrix};
use crate::laplace::{
    Ascent, Diffusion, DiffusionData, DiffusionPath, HessianStructure, Laplace, LaplaceData,
    LaplaceError, Linearised, Link, LogPosterior, LogPrior, OutputCurvature, PrecisionPer,
    PriorPrecision, Subset, log_probabilities,
};
use crate::network::layer::ShapeError;
use crate::network::{Composition, Executor, Layout};
use crate::stochastic::{MinibatchData, Prior};

/// What draws around a mode are made of.
#[derive(Debug, Clone, PartialEq)]
pub enum ModeDraws {
    /// A Gaussian.
    Laplace {
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

/// Which weights are random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubsetChoice {
    /// All.
    All,
    /// The readout's.
    LastLayer,
    /// So many of the last ones.
    Last(usize),
    /// So many with the largest magnitudes.
    LargestMagnitude(usize),
    /// So many with the largest variances of a diagonal approximation.
    LargestVariance(usize),
}

/// Where prior precisions come from.
#[derive(Debug, Clone, PartialEq)]
pub enum PrecisionChoice {
    /// One for each parameter.
    Given(Vec<f64>),
    /// The largest marginal likelihood.
    MarginalLikelihood(PrecisionPer),
    /// One of a grid between 10⁻³ and 10⁵ for all parameters: the smallest NLL of the held-out rows by the linearised network
    /// with the probit link.
    Validation,
}

/// Precisions that are tried on held-out rows.
const GRID: ([f64; 2], usize) = ([1e-3, 1e5], 25);

/// Nats from the mode at which the ascent to it is over.
const CLOSE: f64 = 1e-3;

/// What draws around a mode take.
#[derive(Debug)]
pub struct AroundMode<R> {
    draws: ModeDraws,
    executor: Executor<R>,
    layout: Layout,
    data: MinibatchData<R>,
    held_out: Option<MinibatchData<R>>,
    /// n × C, column-major, of the rows that the curvature is of.
    targets: Vec<f64>,
    curvature: OutputCurvature,
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
    path: Option<DiffusionPath<R>>,
}

impl<R: Real> AroundMode<R> {
    /// For a network and its training data, of which the first `rows` are what the curvature is of; random numbers are those of
    /// `seed` and `chain`.
    ///
    /// # Errors
    /// A layer that does not fit.
    #[allow(clippy::too_many_arguments, reason = "each of them is needed")]
    pub fn new(
        draws: ModeDraws,
        network: &Composition,
        data: MinibatchData<R>,
        held_out: Option<MinibatchData<R>>,
        curvature: OutputCurvature,
        rows: usize,
        [seed, chain]: [u64; 2],
        threads: usize,
    ) -> Result<Self, ShapeError> {
        let executor = Executor::new(network)?.with_threads(threads);
        let outputs = network.outputs;
        let all = data.targets.len() / outputs.max(1);
        let rows = rows.min(all);
        let column = |c: usize| (0..rows).map(move |row| row * outputs + c);
        let targets = (0..outputs).flat_map(column).map(|at| data.targets[at]);
        Ok(Self {
            targets: targets.collect(),
            draws,
            executor,
            layout: Layout::new(network),
            data,
            held_out,
            curvature,
            rows: [rows, all],
            key: [seed, chain],
            training: None,
            mode: None,
            ascent: Ascent::default(),
            nats_to_mode: f64::NAN,
            fitted: None,
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

    /// The weights that draws are around, of training that ended at `position`: found when they are first asked for.
    ///
    /// # Errors
    /// [`LaplaceError`].
    pub fn settle(&mut self, position: &[R]) -> Result<Arc<[R]>, LaplaceError> {
        if let Some(mode) = &self.mode {
            return Ok(Arc::clone(mode));
        }
        let mut weights = position.to_vec();
        if let (
            ModeDraws::Laplace {
                structure, subset, ..
            },
            Some((priors, most)),
        ) = (&self.draws, self.training.clone())
        {
            let structure = match subset {
                SubsetChoice::All => *structure,
                _ => HessianStructure::Diag,
            };
            let precisions = self.precisions_of_training(&priors, &weights, structure);
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

    /// The curvature of the prior of training at `weights`; for Kronecker factors its mean over each layer.
    fn precisions_of_training(
        &self,
        priors: &[Prior],
        weights: &[R],
        structure: HessianStructure,
    ) -> Vec<f64> {
        let mut all = Vec::with_capacity(weights.len());
        for (layer, prior) in self.layout.layers.iter().zip(priors.iter().cycle()) {
            let own = &weights[layer.range.clone()];
            let spread = prior.spread(own, layer.rows, layer.has_bias);
            let [weight, bias] = prior.pull(spread).precision;
            let biases = layer.rows - layer.fan_in();
            let mean =
                (layer.fan_in() as f64 * weight + biases as f64 * bias) / layer.rows.max(1) as f64;
            let [weight, bias] = match structure {
                HessianStructure::Kron | HessianStructure::KronSeparate => [mean; 2],
                _ => [weight, bias],
            };
            for _ in 0..layer.units {
                all.extend(std::iter::repeat_n(weight, layer.fan_in()));
                all.extend(std::iter::repeat_n(bias, biases));
            }
        }
        all
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
        let precisions = self.precisions_of_training(&priors, mode, structure);
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
        let ModeDraws::Laplace {
            structure,
            subset,
            precision,
        } = self.draws.clone()
        else {
            return Ok(None);
        };
        if self.fitted.is_none() {
            let subset = self.subset(subset, mode, &precision)?;
            let prior = match &precision {
                PrecisionChoice::Given(all) => {
                    let readout = self.executor.readout_parameters();
                    let own = subset.gather(all, readout);
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
            match precision {
                PrecisionChoice::Given(_) => {}
                PrecisionChoice::MarginalLikelihood(per) => {
                    laplace.maximise_marginal_likelihood(per)?;
                }
                PrecisionChoice::Validation => self.validate(&mut laplace)?,
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
            curvature: &self.curvature,
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

    fn subset(
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

    /// Sets the precision of the grid with the smallest NLL of the held-out rows.
    fn validate(&mut self, laplace: &mut Laplace<R>) -> Result<(), LaplaceError> {
        let Some(held_out) = self.held_out.clone() else {
            return Ok(());
        };
        let outputs = self.executor.outputs_count();
        let rows = held_out.targets.len() / outputs;
        let (executor, curvature) = (&mut self.executor, &self.curvature);
        let score = |laplace: &mut Laplace<R>| {
            let [means, variances] =
                laplace.linearised_variances(executor, inputs(&held_out, rows));
            let scales = &held_out.scales;
            Ok(score(
                curvature,
                &means,
                &variances,
                &held_out.targets,
                scales,
            ))
        };
        laplace.search_precision(GRID.0, GRID.1, score)?;
        Ok(())
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
        if let ModeDraws::Diffusion(settings) = self.draws {
            let [rows, all] = self.rows;
            let data = DiffusionData {
                inputs: inputs(&self.data, rows),
                curvature: &self.curvature,
                scale: all as f64 / rows as f64,
            };
            // paths are independent of each other as other chains are
            let number = (chain << 40) | draw;
            let path = self
                .path
                .get_or_insert_with(|| DiffusionPath::new(settings, mode, seed, number));
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

    /// The linearised network's outputs for `inputs` (row-major) in closed form; none for diffusions.
    ///
    /// # Errors
    /// [`LaplaceError`].
    pub fn linearised(
        &mut self,
        mode: &[R],
        inputs: &[R],
    ) -> Result<Option<Linearised>, LaplaceError> {
        if self.fit(mode)?.is_none() {
            return Ok(None);
        }
        let columns = self.executor.inputs_count();
        let rows = inputs.len() / columns;
        let inputs = matrix(&inputs[..rows * columns], columns, rows).transpose();
        let laplace = self.fitted.as_ref();
        Ok(laplace.map(|laplace| laplace.linearised(&mut self.executor, inputs)))
    }

    /// The logarithms of the classes' probabilities of what [`linearised`](Self::linearised) gave, rows × classes; of two classes
    /// with one output by the probit link.
    ///
    /// # Errors
    /// A covariance that is not positive semi-definite; by draws alone.
    pub fn log_probabilities(
        &self,
        found: &Linearised,
        link: Link,
    ) -> Result<Vec<f64>, NotPositiveDefinite> {
        let [seed, chain] = self.key;
        let (means, covariances) = (&found.means, &found.covariances);
        if self.curvature == OutputCurvature::Bernoulli {
            let pairs = means.iter().zip(covariances);
            let logits: Vec<f64> = pairs.map(|(f, v)| moderated(*f, *v)).collect();
            let mut out = Vec::with_capacity(2 * logits.len());
            self.data.likelihood.log_probabilities(&logits, &mut out);
            return Ok(out);
        }
        let mut out = vec![0.0; means.len()];
        let mut stream = Stream::new(seed, chain, Purpose::Prediction, 0);
        log_probabilities(
            link,
            means,
            covariances,
            found.outputs,
            &mut stream,
            &mut out,
        )?;
        Ok(out)
    }
}

fn inputs<R: Real>(data: &MinibatchData<R>, rows: usize) -> Matrix<'_, R> {
    let all = data.targets.len() / data.scales.len().max(1);
    let columns = data.inputs.len() / all.max(1);
    matrix(&data.inputs[..rows * columns], columns, rows).transpose()
}

fn moderated(f: f64, variance: f64) -> f64 {
    f / (1.0 + std::f64::consts::PI / 8.0 * variance).sqrt()
}

/// Σ log p of targets (row after row) under the linearised network, with the probit link for classes.
fn score(
    curvature: &OutputCurvature,
    means: &[f64],
    variances: &[f64],
    targets: &[f64],
    scales: &[f64],
) -> f64 {
    let count = scales.len();
    let mut total = 0.0;
    let rows = means.chunks_exact(count).zip(variances.chunks_exact(count));
    for ((means, variances), targets) in rows.zip(targets.chunks_exact(count)) {
        let pairs = means.iter().zip(variances);
        let logits = pairs.clone().map(|(f, variance)| moderated(*f, *variance));
        match curvature {
            OutputCurvature::Categorical => {
                let largest = logits.clone().fold(f64::NEG_INFINITY, f64::max);
                let all: f64 = logits.clone().map(|f| (f - largest).exp()).sum();
                let own: f64 = logits.zip(targets).map(|(f, y)| y * (f - largest)).sum();
                total += own - all.ln();
            }
            OutputCurvature::Bernoulli => {
                for (f, y) in logits.zip(targets) {
                    total += y * f - f.max(0.0) - (-f.abs()).exp().ln_1p();
                }
            }
            _ => {
                for (((f, variance), y), scale) in pairs.zip(targets).zip(scales) {
                    let variance = variance + scale * scale;
                    total -= 0.5 * ((y - f).powi(2) / variance + variance.ln());
                }
            }
        }
    }
    total
}

/// The prior precision of every parameter of a layout, one prior for all layers or one each; none of priors that are no Gaussians.
pub fn prior_precisions(layout: &Layout, priors: &[Prior]) -> Option<Vec<f64>> {
    let mut all = Vec::with_capacity(layout.len());
    for (index, layer) in layout.layers.iter().enumerate() {
        let prior = priors.get(index).or(priors.first())?;
        let Prior::Gaussian { weights, biases } = *prior else {
            return None;
        };
        for _ in 0..layer.units {
            all.extend(std::iter::repeat_n(1.0 / weights, layer.fan_in()));
            all.extend(std::iter::repeat_n(
                1.0 / biases,
                layer.rows - layer.fan_in(),
            ));
        }
    }
    Some(all)
}
