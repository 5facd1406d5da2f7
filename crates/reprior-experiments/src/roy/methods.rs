//! The approximations of Roy, Miani et al. (2024), Table 1, of a trained LeNet: where their draws come from, and what they predict.
//!
//! `sampled` and `linearised` are the low-rank Laplace approximation that their code draws from; `kron, …` and `diag, linearised` are
//! not in their table. Probabilities are averaged, not logits.

use reprior::compute::{Purpose, Stream};
use reprior::laplace::diffusion::{Decomposition, Diffusion, DiffusionKind, Integrator};
use reprior::laplace::{HessianStructure, Lanczos, Subset};

use super::lenet::LeNet;
use crate::pictures::Pictures;
use crate::trained::TrainedNetwork;
use crate::{Bench, Cell, Failure};

/// Draws of weights, and how they predict.
pub struct Fitted {
    network: TrainedNetwork<f32>,
    draws: Vec<Vec<f32>>,
    is_linearised: bool,
    /// Least number of eigenpairs that a diffusion had at any step.
    pub least_rank: Option<usize>,
}

impl Fitted {
    /// The approximation that a cell names.
    ///
    /// # Errors
    /// A curvature that is not finite, too large or not available; being stopped.
    pub fn new(lenet: &LeNet, cell: &Cell, bench: &Bench<'_>) -> Result<Self, Failure> {
        let train = &lenet.train;
        let rows = match cell.text("method") {
            "sampled" | "linearised" | "diffusion" => "curvature rows",
            _ => "fitted rows",
        };
        let part = train.first(cell.count(rows));
        let data = part.minibatches(lenet.network.outputs);
        let mode = lenet.mode.clone();
        let network = TrainedNetwork::new(&lenet.network, mode, data, cell.number("alpha"))?;
        let mut own = Self {
            draws: network.at_mode(),
            network: network.with_threads(train.threads(bench)),
            is_linearised: cell.text("method").ends_with("linearised"),
            least_rank: None,
        };
        own.network.scale = train.rows as f64 / part.rows as f64;
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
        let seed = cell.long("seed");
        if cell.text("method") == "diffusion" {
            let settings = Diffusion {
                kind: DiffusionKind::NonKernel,
                steps: cell.long("steps"),
                precision: own.network.precision,
                integrator: Integrator::Euler,
                decomposition: Decomposition::Lanczos(lanczos),
            };
            let paths = cell.long("paths");
            let advance = |done| bench.advance(0.9 * done);
            let paths = own.network.diffusions(settings, seed, paths, advance)?;
            own.least_rank = paths.iter().map(|path| path.least_rank).min();
            own.draws = paths.iter().map(|path| path.position().to_vec()).collect();
        } else {
            let draws = cell.long("draws");
            own.draws = own.network.laplace_draws(structure, subset, seed, draws)?;
        }
        Ok(own)
    }

    /// Mean class probabilities, row-major.
    ///
    /// # Errors
    /// Being stopped.
    pub fn predict(&mut self, pictures: &Pictures, bench: &Bench<'_>) -> Result<Vec<f64>, Failure> {
        let (draws, x) = (&self.draws, &pictures.pixels);
        self.network
            .mean_probabilities(draws, self.is_linearised, x, || bench.advance(0.9))
    }
}
