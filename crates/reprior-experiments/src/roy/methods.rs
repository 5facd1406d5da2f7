//! The approximations of Roy, Miani et al. (2024), Table 1, of a trained LeNet: where their draws come from, and what they predict.
//!
//! `sampled` and `linearised` are the low-rank Laplace approximation that their code draws from; `kron, …` and `diag, linearised` are
//! not in their table. α is the best of a grid for the NLL of validation images, as theirs (Appendix E.3): each one's own, but that of
//! sampled Laplace for linearised Laplace and the diffusion with the same eigenpairs too.
//!
//! As published: half the covariance with α counted twice along the eigenpairs, T − 1 steps of size 1/T, and logits averaged.

use std::sync::Arc;

use reprior::laplace::spectrum::Spectrum;
use reprior::laplace::{HessianStructure, PriorPrecision, Subset};

use super::lenet::LeNet;
use super::low_rank::{Covariance, diffusion, leading, tuned_precision};
use crate::pictures::Pictures;
use crate::scores::{Averaged, DrawnLogits, Scores};
use crate::trained::TrainedNetwork;
use crate::{Bench, Cell, Failure};

/// Prior precisions that are tried.
pub const PRECISIONS: [f64; 6] = [0.1, 1.0, 5.0, 10.0, 50.0, 100.0];
/// The value of a cell's `convention` for what the published code does; otherwise it is what the equations say.
pub const PUBLISHED: &str = "as published";

/// Draws of weights, and how they predict.
pub struct Fitted {
    network: TrainedNetwork<f32>,
    draws: Vec<Vec<f32>>,
    is_linearised: bool,
    /// What is averaged over draws.
    pub averaged: Averaged,
    /// α.
    pub precision: f64,
    /// Least number of eigenpairs that a diffusion had at any step.
    pub least_rank: Option<usize>,
}

/// The curvature of the first `rows` training images of a LeNet, which stand for all.
///
/// # Errors
/// A layer that does not fit.
pub fn network(lenet: &LeNet, rows: usize, precision: f64) -> Result<TrainedNetwork<f32>, Failure> {
    let train = &lenet.train;
    let part = train.first(rows);
    let data = part.minibatches(lenet.network.outputs);
    let mut network = TrainedNetwork::new(&lenet.network, lenet.mode.clone(), data, precision)?;
    network.scale = train.rows as f64 / part.rows as f64;
    Ok(network)
}

impl Fitted {
    /// The approximation that a cell names.
    ///
    /// # Errors
    /// A curvature that is not finite, too large or not available; being stopped.
    pub fn new(lenet: &LeNet, cell: &Cell, bench: &Bench<'_>) -> Result<Self, Failure> {
        let method = cell.text("method");
        let is_low_rank = matches!(method, "sampled" | "linearised" | "diffusion");
        let rows = if is_low_rank {
            "curvature rows"
        } else {
            "fitted rows"
        };
        let precision = cell.number("alpha");
        let threads = lenet.threads;
        let network = network(lenet, cell.count(rows), precision)?.with_threads(threads);
        let is_published = cell.text("convention") == PUBLISHED;
        let mut own = Self {
            draws: network.at_mode(),
            network,
            is_linearised: method.ends_with("linearised"),
            averaged: Averaged::of(is_published),
            precision,
            least_rank: None,
        };
        match method {
            "map" => {}
            "swag" => own.draws = lenet.swag(cell.long("draws"), bench)?,
            "last layer" => {
                let structure = HessianStructure::Full(1 << 32);
                own.laplace(structure, Subset::LastLayer, lenet, cell)?;
            }
            "diag, sampled" | "diag, linearised" => {
                own.laplace(HessianStructure::Diag, Subset::All, lenet, cell)?;
            }
            "kron, sampled" | "kron, linearised" => {
                own.laplace(HessianStructure::Kron, Subset::All, lenet, cell)?;
            }
            "sampled" | "linearised" | "diffusion" => {
                let spectrum = leading(&mut own.network, lenet, cell, bench.stop)?;
                let rank = cell.count("rank");
                own.precision =
                    tuned_precision(&mut own.network, lenet, &spectrum, rank, is_published, cell)?;
                if method == "diffusion" {
                    own.diffusion(cell, spectrum, is_published, bench)?;
                } else {
                    let covariance = Covariance::of(is_published, own.precision);
                    own.draws = covariance.draws(&own.network.mode, &spectrum, rank, cell);
                }
            }
            other => return Err(Failure::Request(format!("unknown method `{other}`"))),
        }
        Ok(own)
    }

    /// Draws of an approximation with its own α.
    fn laplace(
        &mut self,
        structure: HessianStructure,
        subset: Subset,
        lenet: &LeNet,
        cell: &Cell,
    ) -> Result<(), Failure> {
        let (seed, count) = (cell.long("seed"), cell.long("draws"));
        let mut laplace = self.network.laplace(structure, subset, seed)?;
        let tuning = Tuning {
            lenet,
            is_linearised: self.is_linearised,
            averaged: self.averaged,
        };
        let found = tuning.best(&mut self.network, |network, precision| {
            laplace.set_prior_precision(&PriorPrecision::Scalar(precision))?;
            Ok(network.draws(&laplace, seed, count))
        })?;
        (self.precision, self.draws) = found;
        Ok(())
    }

    fn diffusion(
        &mut self,
        cell: &Cell,
        at_mode: Arc<Spectrum<f32>>,
        is_published: bool,
        bench: &Bench<'_>,
    ) -> Result<(), Failure> {
        let settings = diffusion(cell, self.precision);
        let (seed, paths) = (cell.long("seed"), cell.long("paths"));
        let advance = |done| bench.advance(0.9 * done);
        let ends = self
            .network
            .diffusions(settings, Some(at_mode), seed, paths, advance)?;
        self.least_rank = ends.iter().map(|end| end.least_rank).min();
        let position = |end: crate::trained::DiffusionEnd<f32>| match is_published {
            true => end.before,
            false => end.position,
        };
        self.draws = ends.into_iter().map(position).collect();
        Ok(())
    }

    /// What each draw predicts.
    ///
    /// # Errors
    /// Being stopped.
    pub fn logits(
        &mut self,
        pictures: &Pictures,
        bench: &Bench<'_>,
    ) -> Result<DrawnLogits, Failure> {
        let (draws, x) = (&self.draws, &pictures.pixels);
        self.network
            .logits(draws, self.is_linearised, x, || bench.advance(0.9))
    }

    /// Scores of the mean predictions.
    ///
    /// # Errors
    /// Being stopped; logits that are not finite.
    pub fn scores(&mut self, pictures: &Pictures, bench: &Bench<'_>) -> Result<Scores, Failure> {
        let logits = self.logits(pictures, bench)?;
        logits.scores(self.averaged, &pictures.labels)
    }
}

/// How validation images tell values of α apart.
pub struct Tuning<'a> {
    /// The network and its images.
    pub lenet: &'a LeNet,
    /// Whether draws are of the linearised network.
    pub is_linearised: bool,
    /// What is averaged over draws.
    pub averaged: Averaged,
}

impl Tuning<'_> {
    /// The α of [`PRECISIONS`] whose `draws` have the lowest NLL on validation images, and these.
    ///
    /// # Errors
    /// What `draws` says; logits that are not finite.
    pub fn best(
        &self,
        network: &mut TrainedNetwork<f32>,
        mut draws: impl FnMut(&TrainedNetwork<f32>, f64) -> Result<Vec<Vec<f32>>, Failure>,
    ) -> Result<(f64, Vec<Vec<f32>>), Failure> {
        let images = &self.lenet.validation;
        let (mut least, mut best) = (f64::INFINITY, (PRECISIONS[0], Vec::new()));
        for precision in PRECISIONS {
            let drawn = draws(network, precision)?;
            let logits = network.logits(&drawn, self.is_linearised, &images.pixels, || Ok(()))?;
            let probabilities = logits.probabilities(self.averaged, None);
            let nll = Scores::new(&probabilities, &images.labels, logits.classes)?.nll;
            if nll.value < least {
                (least, best) = (nll.value, (precision, drawn));
            }
        }
        Ok(best)
    }
}
