//! The toys of Roy, Miani et al. (2024), Figures 2 and 4: what sampled, linearised and diffused Laplace approximations of a small
//! network predict, where the truth can be seen.
//!
//! * [`Toy::sine`]: y = sin(5x + 1) + N(0, 0.01²), 50 x ~ U(0, 1); 1-10-10-1 with tanh (141 weights), α = 10;
//! * [`Toy::mixture`]: two classes, N((∓3.15, ±3.15), 0.6²·I); 2-16-16-2 with tanh (354 weights), α = 1.
//!
//! Weights are in the standard parametrisation as the paper's are, trained by Adam to the posterior's mode with the same α. Unlike
//! the paper's code G has the noise's precision, and α once.

use std::sync::Arc;

use reprior::compute::kernels::{MatrixMut, matrix_mut};
use reprior::compute::{Purpose, Stream, matrix};
use reprior::laplace::diffusion::{
    Decomposition, Diffusion, DiffusionData, DiffusionKind, DiffusionPath, Integrator,
};
use reprior::laplace::{
    FisherInformation, HessianStructure, Laplace, LaplaceData, PriorPrecision, Subset,
};
use reprior::model::likelihood::{Categorical, Gaussian, Likelihood};
use reprior::network::parameters::ParameterLayout;
use reprior::network::{Activation, Composition, Executor};
use reprior::stochastic::data::MinibatchData;
use reprior::stochastic::objective::Objective;
use reprior::stochastic::preconditioner::identity::Identity;
use reprior::stochastic::update::StochasticGradient;
use reprior::stochastic::{CurvatureLabels, Dynamics, Prior, StepSize, StochasticGradientSettings};

use crate::Failure;

/// A trained network with its data.
#[derive(Debug)]
pub struct Toy {
    network: Composition,
    /// Trained.
    pub weights: Vec<f64>,
    /// n × d₀, column-major.
    pub inputs: Vec<f64>,
    /// n × C, column-major.
    pub targets: Vec<f64>,
    likelihood: Arc<dyn Likelihood>,
    scales: Vec<f64>,
    /// α.
    pub precision: f64,
}

/// What draws are made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Approximation {
    /// The network at draws of the Laplace approximation.
    Sampled(HessianStructure),
    /// The linearised network at draws of the Laplace approximation.
    Linearised(HessianStructure),
    /// The network where diffusions of so many steps end.
    Diffusion(DiffusionKind, u64),
}

impl Toy {
    /// The sine, trained with `updates` updates.
    ///
    /// # Errors
    /// A training that leaves the range of numbers.
    pub fn sine(seed: u64, updates: u64) -> Result<Self, Failure> {
        let rows = 50;
        let mut stream = Stream::new(seed, 0, Purpose::Simulation, 0);
        let inputs: Vec<f64> = (0..rows).map(|_| stream.uniform()).collect();
        let target = |x: &f64| (5.0 * x + 1.0).sin() + 0.01 * stream.normal();
        let targets = inputs.iter().map(target).collect();
        let own = Self {
            network: standard(1, &[10, 10], 1)?,
            weights: Vec::new(),
            inputs,
            targets,
            likelihood: Arc::new(Gaussian),
            scales: vec![0.01],
            precision: 10.0,
        };
        own.train(seed, updates)
    }

    /// The mixture with so many points of each class.
    ///
    /// # Errors
    /// A training that leaves the range of numbers.
    pub fn mixture(seed: u64, per_class: usize, updates: u64) -> Result<Self, Failure> {
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
        let own = Self {
            network: standard(2, &[16, 16], 2)?,
            weights: Vec::new(),
            inputs,
            targets,
            likelihood: Arc::new(Categorical),
            scales: vec![1.0; 2],
            precision: 1.0,
        };
        own.train(seed, updates)
    }

    fn rows(&self) -> usize {
        self.targets.len() / self.network.outputs
    }

    /// Of the outputs, at each row.
    pub fn curvature(&self) -> FisherInformation<'_> {
        FisherInformation {
            likelihood: &*self.likelihood,
            scales: &self.scales,
        }
    }

    fn train(mut self, seed: u64, updates: u64) -> Result<Self, Failure> {
        let rows = self.rows();
        let by_row = |values: &[f64]| -> Vec<f64> {
            let columns = values.len() / rows;
            let entry = |at: usize| values[at % columns * rows + at / columns];
            (0..values.len()).map(entry).collect()
        };
        let data = MinibatchData {
            inputs: Arc::new(by_row(&self.inputs)),
            targets: by_row(&self.targets).into(),
            likelihood: Arc::clone(&self.likelihood),
            scales: self.scales.clone(),
        };
        let objective = Objective::new(&self.network, data, 1).map_err(Failure::failed)?;
        let variance = 1.0 / self.precision;
        let settings = StochasticGradientSettings {
            step_size: 0.01,
            schedule: StepSize::Cyclical {
                length: updates,
                exploration: 0.0,
            },
            batch: usize::MAX,
            dynamics: Dynamics::ADAM,
            decay: Default::default(),
            labels: CurvatureLabels::Data,
            priors: vec![Prior::Gaussian {
                weights: variance,
                biases: variance,
            }],
            seed,
            chain: 0,
            temperature: 0.0,
            dropout: 0.0,
        };
        let mut stream = Stream::new(seed, 0, Purpose::Initial, 0);
        let start = objective.layout().draw_by_fan_in(1.0, &mut stream);
        let mut chain = StochasticGradient::new(objective, Box::new(Identity), settings, start)
            .map_err(Failure::failed)?;
        for _ in 0..updates {
            chain.update().map_err(Failure::failed)?;
        }
        self.weights = chain.state().position.clone();
        Ok(self)
    }

    /// An executor for the network.
    ///
    /// # Errors
    /// A layer that does not fit.
    pub fn executor(&self) -> Result<Executor<f64>, Failure> {
        Executor::new(&self.network).map_err(Failure::failed)
    }

    /// The Laplace approximation.
    ///
    /// # Errors
    /// A curvature that is not finite.
    pub fn laplace(
        &self,
        executor: &mut Executor<f64>,
        structure: HessianStructure,
        seed: u64,
    ) -> Result<Laplace<f64>, Failure> {
        let rows = self.rows();
        let data = LaplaceData {
            inputs: matrix(&self.inputs, rows, self.inputs.len() / rows),
            targets: &self.targets,
            likelihood: &*self.likelihood,
            scales: &self.scales,
            curvature: &self.curvature(),
            scale: 1.0,
        };
        let (layout, weights) = (ParameterLayout::new(&self.network), &self.weights);
        let prior = PriorPrecision::Scalar(self.precision);
        let mut stream = Stream::new(seed, 0, Purpose::Curvature, 0);
        let subset = Subset::All;
        Laplace::fit(
            executor,
            &layout,
            weights,
            data,
            structure,
            subset,
            &prior,
            &mut stream,
        )
        .map_err(Failure::failed)
    }

    /// Outputs of `draws` draws for `inputs` (m × d₀, column-major): each m × C, row after row. With `draws` = 0 the trained
    /// network's own.
    ///
    /// # Errors
    /// A curvature that is not finite.
    pub fn outputs(
        &self,
        approximation: Approximation,
        draws: u64,
        seed: u64,
        inputs: &[f64],
    ) -> Result<Vec<Vec<f64>>, Failure> {
        let mut executor = self.executor()?;
        let (columns, count) = (executor.inputs_count(), self.network.outputs);
        let rows = inputs.len() / columns;
        let inputs = matrix(inputs, rows, columns);
        let evaluate = |executor: &mut Executor<f64>, weights: &[f64]| {
            let mut f = vec![0.0; rows * count];
            let out = MatrixMut::from_row_major_slice_mut(&mut f, rows, count);
            executor.outputs(weights, inputs, out);
            f
        };
        if draws == 0 {
            return Ok(vec![evaluate(&mut executor, &self.weights)]);
        }
        let mut all = Vec::new();
        match approximation {
            Approximation::Diffusion(kind, steps) => {
                let own = self.rows();
                let data = DiffusionData {
                    inputs: matrix(&self.inputs, own, columns),
                    curvature: &self.curvature(),
                    scale: 1.0,
                };
                let settings = Diffusion {
                    kind,
                    steps,
                    precision: self.precision,
                    integrator: Integrator::Euler,
                    decomposition: Decomposition::Exact(1e-7),
                };
                for chain in 0..draws {
                    let mut path = DiffusionPath::new(settings, &self.weights, seed, chain);
                    path.run(&mut executor, data).map_err(Failure::failed)?;
                    all.push(evaluate(&mut executor, path.position()));
                }
            }
            Approximation::Sampled(structure) | Approximation::Linearised(structure) => {
                let laplace = self.laplace(&mut executor, structure, seed)?;
                let mut draw = self.weights.clone();
                for index in 0..draws {
                    let mut stream = Stream::new(seed, 0, Purpose::Recording, index);
                    laplace.draw(&mut stream, &mut draw);
                    if let Approximation::Sampled(_) = approximation {
                        all.push(evaluate(&mut executor, &draw));
                        continue;
                    }
                    let mut f = evaluate(&mut executor, &self.weights);
                    let pairs = draw.iter().zip(&self.weights);
                    let away: Vec<f64> = pairs.map(|(a, b)| a - b).collect();
                    let mut moved = vec![0.0; rows * count];
                    let out = matrix_mut(&mut moved, rows, count);
                    executor.jvp(&self.weights, inputs, Some(&away), None, out);
                    for (at, f) in f.iter_mut().enumerate() {
                        *f += moved[at % count * rows + at / count];
                    }
                    all.push(f);
                }
            }
        }
        Ok(all)
    }
}

fn standard(inputs: usize, widths: &[usize], outputs: usize) -> Result<Composition, Failure> {
    let network = Composition::fully_connected(inputs, widths, outputs, Activation::Tanh);
    network
        .in_standard_parametrisation()
        .map_err(Failure::failed)
}
