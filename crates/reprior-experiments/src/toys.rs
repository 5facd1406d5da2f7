//! The toys of Roy, Miani et al. (2024), Figures 2 and 4: what sampled, linearised and diffused Laplace approximations of a small
//! network predict, where the truth can be seen.
//!
//! * [`Toy::sine`]: y = sin(5x + 1) + N(0, 0.01²), 50 x ~ U(0, 1); 1-10-10-1 with tanh (141 weights), α = 10;
//! * [`Toy::mixture`]: two classes, N((∓3.15, ±3.15), 0.6²·I); 2-16-16-2 with tanh (354 weights), α = 1.
//!
//! Weights are in the standard parametrisation as the paper's are, trained by Adam to the posterior's mode with the same α. Unlike
//! the paper's code G has the noise's precision, and α once.

use std::sync::Arc;

use reprior::compute::{Purpose, Stream, matrix};
use reprior::laplace::diffusion::{Decomposition, Diffusion, DiffusionKind, Integrator};
use reprior::laplace::{HessianStructure, Subset};
use reprior::model::likelihood::{Categorical, Gaussian, Likelihood};
use reprior::network::{Activation, Composition};
use reprior::stochastic::data::MinibatchData;

use crate::Failure;
use crate::trained::{CurvatureRows, TrainedNetwork};
use crate::training::Training;

/// A trained network with its data.
#[derive(Debug)]
pub struct Toy {
    network: TrainedNetwork<f64>,
    /// n × d₀, column-major.
    pub inputs: Vec<f64>,
    /// n × C, column-major.
    pub targets: Vec<f64>,
}

/// Weights, draw by draw.
pub type Draws = Vec<Vec<f64>>;

impl Toy {
    /// The sine, trained with `updates` updates.
    ///
    /// # Errors
    /// A training that leaves the range of numbers.
    pub fn sine(seed: u64, updates: usize) -> Result<Self, Failure> {
        let rows = 50;
        let mut stream = Stream::new(seed, 0, Purpose::Simulation, 0);
        let inputs: Vec<f64> = (0..rows).map(|_| stream.uniform()).collect();
        let target = |x: &f64| (5.0 * x + 1.0).sin() + 0.01 * stream.normal();
        let targets = inputs.iter().map(target).collect();
        let network = Composition::fully_connected(1, &[10, 10], 1, Activation::Tanh);
        let training = training(seed, updates, 10.0);
        Self::train(
            &network,
            [inputs, targets],
            Arc::new(Gaussian),
            0.01,
            &training,
        )
    }

    /// The mixture with so many points of each class.
    ///
    /// # Errors
    /// A training that leaves the range of numbers.
    pub fn mixture(seed: u64, per_class: usize, updates: usize) -> Result<Self, Failure> {
        let rows = 2 * per_class;
        let mut stream = Stream::new(seed, 1, Purpose::Simulation, 0);
        let (mut inputs, mut targets) = (vec![0.0; rows * 2], vec![0.0; rows * 2]);
        for row in 0..rows {
            let class = row % 2;
            let sign = [-1.0, 1.0][class];
            inputs[row] = 3.15 * sign + 0.6 * stream.normal();
            inputs[rows + row] = -3.15 * sign + 0.6 * stream.normal();
            targets[class * rows + row] = 1.0;
        }
        let network = Composition::fully_connected(2, &[16, 16], 2, Activation::Tanh);
        let training = training(seed, updates, 1.0);
        Self::train(
            &network,
            [inputs, targets],
            Arc::new(Categorical),
            1.0,
            &training,
        )
    }

    /// Of outputs with noise of one scale.
    fn train(
        network: &Composition,
        [inputs, targets]: [Vec<f64>; 2],
        likelihood: Arc<dyn Likelihood>,
        scale: f64,
        training: &Training,
    ) -> Result<Self, Failure> {
        let network = network.in_standard_parametrisation()?;
        let scales = vec![scale; network.outputs];
        let rows = targets.len() / network.outputs;
        let by_row = |values: &[f64]| -> Vec<f64> {
            let columns = values.len() / rows;
            let entry = |at: usize| values[at % columns * rows + at / columns];
            (0..values.len()).map(entry).collect()
        };
        let data = MinibatchData {
            inputs: Arc::new(by_row(&inputs)),
            targets: by_row(&targets).into(),
            likelihood: Arc::clone(&likelihood),
            scales: scales.clone(),
        };
        let mode = training.mode(&network, data, 1, |_| Ok(()))?;
        Ok(Self {
            network: TrainedNetwork::new(&network, mode, likelihood, scales, training.precision)?,
            inputs,
            targets,
        })
    }

    /// The trained network's weights, as a draw of its own.
    pub fn mode(&self) -> Draws {
        vec![self.network.mode.clone()]
    }

    /// Draws of the Laplace approximation.
    ///
    /// # Errors
    /// A curvature that is not finite.
    pub fn laplace(
        &mut self,
        structure: HessianStructure,
        seed: u64,
        draws: u64,
    ) -> Result<Draws, Failure> {
        let rows = curvature_rows(&self.inputs, &self.targets, &self.network);
        self.network
            .laplace_draws(rows, structure, Subset::All, seed, draws)
    }

    /// Ends of diffusions; `advance` is called with the part that is done.
    ///
    /// # Errors
    /// A curvature that is not finite; what `advance` says.
    pub fn diffusions(
        &mut self,
        kind: DiffusionKind,
        steps: u64,
        integrator: Integrator,
        [seed, draws]: [u64; 2],
        advance: impl FnMut(f64) -> Result<(), Failure>,
    ) -> Result<Draws, Failure> {
        let settings = Diffusion {
            kind,
            steps,
            precision: self.network.precision,
            integrator,
            decomposition: Decomposition::Exact(1e-7),
        };
        let rows = curvature_rows(&self.inputs, &self.targets, &self.network);
        let paths = self
            .network
            .diffusions(rows, settings, seed, draws, advance)?;
        Ok(paths.iter().map(|path| path.position().to_vec()).collect())
    }

    /// Outputs at draws for `inputs` (m × d₀, column-major), of the network or of that linearised at the mode: each m × C, row
    /// after row.
    pub fn outputs(
        &mut self,
        draws: &Draws,
        is_linearised: bool,
        inputs: &[f64],
    ) -> Result<Vec<Vec<f64>>, Failure> {
        let columns = self.network.inputs();
        let inputs = matrix(inputs, inputs.len() / columns, columns);
        let mut all = Vec::new();
        self.network.predict(draws, is_linearised, inputs, |f| {
            all.push(f.to_vec());
            Ok(())
        })?;
        Ok(all)
    }
}

fn curvature_rows<'a>(
    inputs: &'a [f64],
    targets: &'a [f64],
    network: &TrainedNetwork<f64>,
) -> CurvatureRows<'a, f64> {
    let rows = targets.len() / network.outputs();
    CurvatureRows {
        inputs: matrix(inputs, rows, network.inputs()),
        targets,
        scale: 1.0,
    }
}

fn training(seed: u64, updates: usize, precision: f64) -> Training {
    Training {
        seed,
        step_size: 0.01,
        batch: usize::MAX,
        epochs: updates,
        precision,
    }
}
