//! The approximations of Roy, Miani et al. (2024), Table 1, of a trained LeNet: where their draws come from, and what they predict.
//!
//! `sampled` and `linearised` are the low-rank Laplace approximation that their code draws from; `kron, …` and `diag, linearised` are
//! not in their table. Probabilities are averaged, not logits.

use reprior::compute::kernels::matrix_mut;
use reprior::compute::{Purpose, Stream, matrix};
use reprior::laplace::diffusion::{
    Decomposition, Diffusion, DiffusionData, DiffusionKind, DiffusionPath, Integrator,
};
use reprior::laplace::{
    FisherInformation, HessianStructure, Lanczos, Laplace, LaplaceData, PriorPrecision, Subset,
};
use reprior::model::likelihood::Categorical;
use reprior::network::Executor;
use reprior::network::parameters::ParameterLayout;

use super::lenet::Trained;
use crate::pictures::Pictures;
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
    executor: Executor<f32>,
    mode: Vec<f32>,
    classes: usize,
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
    pub fn new(trained: &Trained, cell: &Cell, bench: &Bench<'_>) -> Result<Self, Failure> {
        let executor = Executor::new(&trained.network).map_err(Failure::failed)?;
        let mut own = Self {
            executor: executor.with_threads(trained.train.threads(bench)),
            mode: trained.mode.clone(),
            classes: trained.classes,
            draws: vec![trained.mode.clone()],
            is_linearised: cell.text("method").ends_with("linearised"),
            least_rank: None,
        };
        let lanczos = Lanczos::of_rank(cell.count("rank"));
        let low_rank = HessianStructure::LowRank(lanczos);
        let [fitted, curved] = ["fitted rows", "curvature rows"].map(|name| cell.count(name));
        match cell.text("method") {
            "map" => {}
            "swag" => own.swag(trained, cell, bench)?,
            "last layer" => {
                let structure = HessianStructure::Full(1 << 32);
                own.laplace(trained, cell, structure, Subset::LastLayer, fitted)?;
            }
            "diag, sampled" | "diag, linearised" => {
                own.laplace(trained, cell, HessianStructure::Diag, Subset::All, fitted)?;
            }
            "kron, sampled" | "kron, linearised" => {
                own.laplace(trained, cell, HessianStructure::Kron, Subset::All, fitted)?;
            }
            "sampled" | "linearised" => {
                own.laplace(trained, cell, low_rank, Subset::All, curved)?;
            }
            "diffusion" => own.diffusion(trained, cell, lanczos, bench)?,
            other => return Err(Failure::Request(format!("unknown method `{other}`"))),
        }
        bench.advance(0.9)?;
        Ok(own)
    }

    fn swag(&mut self, trained: &Trained, cell: &Cell, bench: &Bench<'_>) -> Result<(), Failure> {
        let swag = trained.swag(cell.count("draws") as u64, bench)?;
        let mut stream = Stream::new(cell.count("seed") as u64, 0, Purpose::Recording, 0);
        self.draws = (0..cell.count("draws"))
            .map(|_| {
                let mut draw = self.mode.clone();
                swag.draw(&mut stream, &mut draw);
                draw
            })
            .collect();
        Ok(())
    }

    fn laplace(
        &mut self,
        trained: &Trained,
        cell: &Cell,
        structure: HessianStructure,
        subset: Subset,
        rows: usize,
    ) -> Result<(), Failure> {
        let part = trained.train.first(rows);
        let mut targets = vec![0.0; part.rows * self.classes];
        for (row, &label) in part.labels.iter().enumerate() {
            targets[label as usize * part.rows + row] = 1.0;
        }
        let data = LaplaceData {
            inputs: matrix(&part.pixels, trained.shape.features(), part.rows).transpose(),
            targets: &targets,
            likelihood: &Categorical,
            scales: &vec![1.0; self.classes],
            curvature: &FisherInformation {
                likelihood: &Categorical,
                scales: &[],
            },
            scale: trained.train.rows as f64 / part.rows as f64,
        };
        let seed = cell.count("seed") as u64;
        let laplace = Laplace::fit(
            &mut self.executor,
            &ParameterLayout::new(&trained.network),
            &trained.mode,
            data,
            structure,
            subset,
            &PriorPrecision::Scalar(cell.number("alpha")),
            &mut Stream::new(seed, 0, Purpose::Curvature, 0),
        )
        .map_err(Failure::failed)?;
        self.draws = (0..cell.count("draws") as u64)
            .map(|index| {
                let mut draw = self.mode.clone();
                let mut stream = Stream::new(seed, 0, Purpose::Recording, index);
                laplace.draw(&mut stream, &mut draw);
                draw
            })
            .collect();
        Ok(())
    }

    fn diffusion(
        &mut self,
        trained: &Trained,
        cell: &Cell,
        lanczos: Lanczos,
        bench: &Bench<'_>,
    ) -> Result<(), Failure> {
        let part = trained.train.first(cell.count("curvature rows"));
        let data = DiffusionData {
            inputs: matrix(&part.pixels, trained.shape.features(), part.rows).transpose(),
            curvature: &FisherInformation {
                likelihood: &Categorical,
                scales: &[],
            },
            scale: trained.train.rows as f64 / part.rows as f64,
        };
        let settings = Diffusion {
            kind: DiffusionKind::NonKernel,
            steps: cell.count("steps") as u64,
            precision: cell.number("alpha"),
            integrator: Integrator::Euler,
            decomposition: Decomposition::Lanczos(lanczos),
        };
        let (paths, seed) = (cell.count("paths") as u64, cell.count("seed") as u64);
        self.draws.clear();
        for chain in 0..paths {
            let mut path = DiffusionPath::new(settings, &self.mode, seed, chain);
            while !path.is_over() {
                path.advance(&mut self.executor, data)
                    .map_err(Failure::failed)?;
                let done = chain as f64 + path.steps() as f64 / settings.steps as f64;
                bench.advance(0.9 * done / paths as f64)?;
            }
            let least = self.least_rank.unwrap_or(usize::MAX);
            self.least_rank = Some(least.min(path.least_rank));
            self.draws.push(path.position().to_vec());
        }
        Ok(())
    }

    /// Mean class probabilities, row-major.
    ///
    /// # Errors
    /// Being stopped.
    pub fn predict(&mut self, inputs: &Pictures, bench: &Bench<'_>) -> Result<Vec<f64>, Failure> {
        let (rows, classes) = (inputs.rows, self.classes);
        let columns = self.executor.inputs_count();
        let x = matrix(&inputs.pixels, columns, rows).transpose();
        let (mut sum, mut f) = (vec![0.0; rows * classes], vec![0.0; rows * classes]);
        let mut at_mode = f.clone();
        if self.is_linearised {
            let out = matrix_mut(&mut at_mode, rows, classes);
            self.executor.outputs(&self.mode, x, out);
        }
        for draw in &self.draws {
            bench.advance(0.9)?;
            let out = matrix_mut(&mut f, rows, classes);
            if self.is_linearised {
                let away = draw.iter().zip(&self.mode).map(|(w, mode)| w - mode);
                let away: Vec<f32> = away.collect();
                self.executor.jvp(&self.mode, x, Some(&away), None, out);
                f.iter_mut().zip(&at_mode).for_each(|(f, mode)| *f += mode);
            } else {
                self.executor.outputs(draw, x, out);
            }
            for row in 0..rows {
                let logits = (0..classes).map(|class| f64::from(f[class * rows + row]));
                let largest = logits.clone().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = logits.clone().map(|f| (f - largest).exp()).sum();
                for (sum, f) in sum[row * classes..].iter_mut().zip(logits) {
                    *sum += (f - largest).exp() / (total * self.draws.len() as f64);
                }
            }
        }
        Ok(sum)
    }
}
