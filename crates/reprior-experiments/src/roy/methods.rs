//! The approximations of Roy, Miani et al. (2024), Table 1, of a trained LeNet: where their draws come from, and what they predict.
//!
//! `sampled` and `linearised` are the low-rank Laplace approximation that their code draws from; `kron, …` and `diag, linearised` are
//! not in their table. α of the diagonal and the last layer's is the best of a grid on validation images, as theirs; of the low-rank ones
//! and the diffusion it is that of training.
//!
//! As published: half the covariance with α counted twice along the eigenpairs, T − 1 steps of size 1/T, and logits averaged.

use std::sync::{Arc, Mutex, PoisonError};

use reprior::compute::kernels::add_scaled;
use reprior::compute::{Purpose, Stream};
use reprior::laplace::diffusion::{Decomposition, Diffusion, DiffusionKind, Integrator};
use reprior::laplace::spectrum::Spectrum;
use reprior::laplace::{HessianStructure, Lanczos, PriorPrecision, Subset};

use super::lenet::LeNet;
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
    averaged: Averaged,
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
        let threads = lenet.train.threads(bench);
        let network = network(lenet, cell.count(rows), precision)?.with_threads(threads);
        let is_published = cell.text("convention") == PUBLISHED;
        let mut own = Self {
            draws: network.at_mode(),
            network,
            is_linearised: method.ends_with("linearised"),
            averaged: match is_published {
                true => Averaged::Logits,
                false => Averaged::Probabilities,
            },
            precision,
            least_rank: None,
        };
        match method {
            "map" => {}
            "swag" => own.swag(lenet, cell, bench)?,
            "last layer" => {
                own.by_grid(
                    HessianStructure::Full(1 << 32),
                    Subset::LastLayer,
                    lenet,
                    cell,
                )?;
            }
            "diag, sampled" | "diag, linearised" => {
                own.by_grid(HessianStructure::Diag, Subset::All, lenet, cell)?;
            }
            "kron, sampled" | "kron, linearised" => {
                let seed = cell.long("seed");
                let laplace = own
                    .network
                    .laplace(HessianStructure::Kron, Subset::All, seed)?;
                own.draws = own.network.draws(&laplace, seed, cell.long("draws"));
            }
            "sampled" | "linearised" => {
                let spectrum = leading(&mut own.network, lenet, cell)?;
                let rank = cell.count("rank");
                let covariance = Covariance::of(is_published, precision);
                own.draws = covariance.draws(&own.network.mode, &spectrum, rank, cell);
            }
            "diffusion" => own.diffusion(cell, is_published, bench)?,
            other => return Err(Failure::Request(format!("unknown method `{other}`"))),
        }
        Ok(own)
    }

    fn swag(&mut self, lenet: &LeNet, cell: &Cell, bench: &Bench<'_>) -> Result<(), Failure> {
        let swag = lenet.swag(cell.long("draws"), bench)?;
        let mut stream = Stream::new(cell.long("seed"), 0, Purpose::Recording, 0);
        self.draws = vec![lenet.mode.clone(); cell.count("draws")];
        self.draws
            .iter_mut()
            .for_each(|draw| swag.draw(&mut stream, draw));
        Ok(())
    }

    /// Draws with the α of [`PRECISIONS`] that has the lowest NLL on validation images.
    fn by_grid(
        &mut self,
        structure: HessianStructure,
        subset: Subset,
        lenet: &LeNet,
        cell: &Cell,
    ) -> Result<(), Failure> {
        let (seed, count) = (cell.long("seed"), cell.long("draws"));
        let mut laplace = self.network.laplace(structure, subset, seed)?;
        let mut least = f64::INFINITY;
        for precision in PRECISIONS {
            laplace.set_prior_precision(&PriorPrecision::Scalar(precision))?;
            let draws = self.network.draws(&laplace, seed, count);
            let x = &lenet.validation.pixels;
            let logits = self
                .network
                .logits(&draws, self.is_linearised, x, || Ok(()))?;
            let probabilities = logits.probabilities(self.averaged, None);
            let nll = Scores::new(&probabilities, &lenet.validation.labels, logits.classes)?.nll;
            if nll.value < least {
                (least, self.precision, self.draws) = (nll.value, precision, draws);
            }
        }
        Ok(())
    }

    fn diffusion(
        &mut self,
        cell: &Cell,
        is_published: bool,
        bench: &Bench<'_>,
    ) -> Result<(), Failure> {
        let settings = diffusion(cell, self.precision);
        let (seed, paths) = (cell.long("seed"), cell.long("paths"));
        let advance = |done| bench.advance(0.9 * done);
        let ends = self.network.diffusions(settings, seed, paths, advance)?;
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

    /// Mean class probabilities, row-major.
    ///
    /// # Errors
    /// Being stopped.
    pub fn predict(&mut self, pictures: &Pictures, bench: &Bench<'_>) -> Result<Vec<f64>, Failure> {
        Ok(self
            .logits(pictures, bench)?
            .probabilities(self.averaged, None))
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

/// The diffusion of a cell, with eigenpairs by Lanczos, or all of them where its rank is 0.
pub fn diffusion(cell: &Cell, precision: f64) -> Diffusion {
    Diffusion {
        kind: DiffusionKind::NonKernel,
        steps: cell.long("steps"),
        precision,
        integrator: Integrator::Euler,
        decomposition: match cell.count("rank") {
            0 => Decomposition::Exact(crate::trained::ROUNDING),
            rank => Decomposition::Lanczos(Lanczos::of_rank(rank)),
        },
    }
}

/// The covariance of the low-rank approximation: `part`·(Λ + `precision` + `shift`)⁻¹ along eigenpairs, `part`/`precision` elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct Covariance {
    /// Of all of it.
    pub part: f64,
    /// α.
    pub precision: f64,
    /// What is added to it along eigenpairs.
    pub shift: f64,
}

impl Covariance {
    /// That of the equations, or that of the published code.
    pub fn of(is_published: bool, precision: f64) -> Self {
        Self {
            part: if is_published { 0.5 } else { 1.0 },
            precision,
            shift: if is_published { precision } else { 0.0 },
        }
    }

    /// As many draws around `mode` as a cell says, with the `rank` leading eigenpairs (0: all).
    pub fn draws(
        self,
        mode: &[f32],
        spectrum: &Spectrum<f32>,
        rank: usize,
        cell: &Cell,
    ) -> Vec<Vec<f32>> {
        let mut leading = spectrum.clone();
        if rank > 0 {
            leading.values.truncate(rank);
            leading.vectors.truncate(rank * mode.len());
        }
        let scale = self.part.sqrt();
        let prior = scale / self.precision.sqrt();
        let along = |value: f64| scale / (value + self.precision + self.shift).sqrt();
        let draw = |index| {
            let mut noise = vec![0.0; mode.len()];
            Stream::new(cell.long("seed"), 0, Purpose::Recording, index).fill_normal(&mut noise);
            let mut draw = mode.to_vec();
            add_scaled(&mut draw, prior, &noise);
            leading.add_function(|value| along(value) - prior, &noise, &mut draw);
            draw
        };
        (0..cell.long("draws")).map(draw).collect()
    }
}

/// The last decomposition with what it is of: cells that follow one another share it.
static LAST: Mutex<Option<(String, Arc<Spectrum<f32>>)>> = Mutex::new(None);

/// The leading eigenpairs of a cell's curvature; all of them where its rank is 0.
///
/// # Errors
/// A curvature that is not finite.
pub fn leading(
    network: &mut TrainedNetwork<f32>,
    lenet: &LeNet,
    cell: &Cell,
) -> Result<Arc<Spectrum<f32>>, Failure> {
    let rank = cell.count("rank");
    let rows = cell.number("curvature rows");
    let key = format!("{} {rows} {rank}", lenet.key);
    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, found)) = last().as_ref().filter(|(other, _)| *other == key) {
        return Ok(Arc::clone(found));
    }
    let lanczos = (rank > 0).then(|| Lanczos::of_rank(rank));
    let found = Arc::new(network.spectrum(lanczos, cell.long("seed"))?);
    *last() = Some((key, Arc::clone(&found)));
    Ok(found)
}
