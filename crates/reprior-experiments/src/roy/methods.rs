//! The approximations of Roy, Miani et al. (2024), Table 1, of a trained LeNet: where their draws come from, and what they predict.
//!
//! `sampled` and `linearised` are the low-rank Laplace approximation that their code draws from; `kron, …` and `diag, linearised` are
//! not in their table. Probabilities are averaged, not logits.

use std::sync::Arc;

use reprior::compute::{Matrix, Purpose, Stream, matrix};
use reprior::laplace::diffusion::{Decomposition, Diffusion, DiffusionKind, Integrator};
use reprior::laplace::{HessianStructure, Lanczos, Subset};
use reprior::model::likelihood::Categorical;

use super::lenet::LeNet;
use crate::data::one_hot;
use crate::pictures::Pictures;
use crate::trained::{CurvatureRows, TrainedNetwork};
use crate::{Bench, Cell, Failure};

/// Every method.
pub const METHODS: [&str; 10] = [
    "map",
    "swag",
    "last layer",
    "diag, sampled",
    "diag, linearised",
    "kron, sampled",
    "kron, linearised",
    "sampled",
    "linearised",
    "diffusion",
];

/// Draws of weights, and how they predict.
pub struct Fitted {
    network: TrainedNetwork<f32>,
    draws: Vec<Vec<f32>>,
    is_linearised: bool,
    /// Least number of eigenpairs that a diffusion had at any step.
    pub least_rank: Option<usize>,
}

fn inputs(pictures: &Pictures) -> Matrix<'_, f32> {
    matrix(&pictures.pixels, pictures.columns(), pictures.rows).transpose()
}

impl Fitted {
    /// The approximation that a cell names.
    ///
    /// # Errors
    /// A curvature that is not finite, too large or not available; being stopped.
    pub fn new(lenet: &LeNet, cell: &Cell, bench: &Bench<'_>) -> Result<Self, Failure> {
        let classes = lenet.network.outputs;
        let network = TrainedNetwork::new(
            &lenet.network,
            lenet.mode.clone(),
            Arc::new(Categorical),
            vec![1.0; classes],
            cell.number("alpha"),
        )?;
        let mut own = Self {
            network: network.with_threads(lenet.train.threads(bench)),
            draws: vec![lenet.mode.clone()],
            is_linearised: cell.text("method").ends_with("linearised"),
            least_rank: None,
        };
        let lanczos = Lanczos::of_rank(cell.count("rank"));
        let (structure, subset) = match cell.text("method") {
            "map" => return Ok(own),
            "swag" => {
                let swag = lenet.swag(cell.long("draws"), bench)?;
                let mut stream = Stream::new(cell.long("seed"), 0, Purpose::Recording, 0);
                own.draws = vec![lenet.mode.clone(); cell.count("draws")];
                own.draws
                    .iter_mut()
                    .for_each(|draw| swag.draw(&mut stream, draw));
                return Ok(own);
            }
            "last layer" => (HessianStructure::Full(1 << 32), Subset::LastLayer),
            "diag, sampled" | "diag, linearised" => (HessianStructure::Diag, Subset::All),
            "kron, sampled" | "kron, linearised" => (HessianStructure::Kron, Subset::All),
            "sampled" | "linearised" | "diffusion" => {
                (HessianStructure::LowRank(lanczos), Subset::All)
            }
            other => return Err(Failure::Request(format!("unknown method `{other}`"))),
        };
        let rows = match structure {
            HessianStructure::LowRank(_) => "curvature rows",
            _ => "fitted rows",
        };
        let part = lenet.train.first(cell.count(rows));
        let rows = CurvatureRows {
            inputs: inputs(&part),
            targets: &one_hot(&part.labels, classes),
            scale: lenet.train.rows as f64 / part.rows as f64,
        };
        let seed = cell.long("seed");
        if cell.text("method") == "diffusion" {
            let settings = Diffusion {
                kind: DiffusionKind::NonKernel,
                steps: cell.long("steps"),
                precision: cell.number("alpha"),
                integrator: Integrator::Euler,
                decomposition: Decomposition::Lanczos(lanczos),
            };
            let paths = cell.long("paths");
            let advance = |done| bench.advance(0.9 * done);
            let paths = own
                .network
                .diffusions(rows, settings, seed, paths, advance)?;
            own.least_rank = paths.iter().map(|path| path.least_rank).min();
            own.draws = paths.iter().map(|path| path.position().to_vec()).collect();
        } else {
            let draws = cell.long("draws");
            own.draws = own
                .network
                .laplace_draws(rows, structure, subset, seed, draws)?;
        }
        Ok(own)
    }

    /// Mean class probabilities, row-major.
    ///
    /// # Errors
    /// Being stopped.
    pub fn predict(&mut self, pictures: &Pictures, bench: &Bench<'_>) -> Result<Vec<f64>, Failure> {
        let (draws, x) = (&self.draws, inputs(pictures));
        self.network
            .mean_probabilities(draws, self.is_linearised, x, || bench.advance(0.9))
    }
}
