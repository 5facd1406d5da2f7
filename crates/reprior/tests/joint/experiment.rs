//! Weights and data from their joint law.

use std::sync::Arc;

use reprior::compute::{Matrix, Purpose, Stream};
use reprior::model::Model;
use reprior::network::{Activation, Composition};
use reprior::posterior::features::FeatureMap;
use reprior::posterior::projection::Projection;
use reprior::posterior::{Posterior, PosteriorSettings};

use super::case::Case;
use super::inverse::solve;
use super::prior::INPUTS;

pub const ROWS: usize = 4;
pub const TEST: usize = 2;
pub const OUTPUTS: usize = 2;
pub const PROJECTIONS: usize = 5;

/// What all replicates of a case share.
pub struct Experiment<'a> {
    pub case: &'a Case,
    /// Training inputs, row-major.
    pub x: Vec<f64>,
    /// Test inputs.
    pub test: Vec<f64>,
    /// The model without its data.
    pub blank: Probe,
}

/// A replicate's weights and data before the transitions.
pub struct Truth {
    pub model: Arc<Model<f64>>,
    pub weights: Vec<f64>,
    pub noise_coordinates: Vec<f64>,
    pub projections: Vec<f64>,
}

/// Numbers that are the same in every case.
pub fn fixed(count: usize, index: u64) -> Vec<f64> {
    let mut values = vec![0.0; count];
    Stream::new(31, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

/// log det(I + scale·HᵀH).
pub fn log_determinant(h: Matrix<'_, f64>, scale: f64) -> f64 {
    let p = h.ncols();
    let mut precision = vec![0.0; p * p];
    for (j, i) in (0..p).flat_map(|j| (0..p).map(move |i| (j, i))) {
        let product: f64 = (0..h.nrows()).map(|row| h[(row, i)] * h[(row, j)]).sum();
        precision[j * p + i] = f64::from(u8::from(i == j)) + scale * product;
    }
    solve(&precision, &vec![0.0; p]).1
}

/// A case's network at some inputs.
pub struct Probe {
    pub model: Model<f64>,
    map: FeatureMap<f64>,
}

impl Probe {
    pub fn new(case: &Case, inputs: &[f64], test: &[f64]) -> Self {
        let architecture =
            Composition::fully_connected(INPUTS, case.hidden, OUTPUTS, Activation::Gelu);
        let targets = vec![0.0; inputs.len() / INPUTS * OUTPUTS];
        let (noise, reduction) = (case.noise.clone(), case.reduction);
        let model = Model::new(architecture, noise, inputs, targets, test, reduction);
        let model = model.unwrap().with_likelihood(case.kind.likelihood());
        Self {
            map: FeatureMap::new(&model),
            model,
        }
    }

    /// Outputs at the inputs, column-major.
    pub fn outputs(&mut self, weights: &[f64]) -> Vec<f64> {
        let (inner, readout) = weights.split_at(self.model.inner_parameters());
        self.map.evaluate(&self.model, inner, false, |_| {});
        let (architecture, features) = (&self.model.architecture, self.map.features(&self.model));
        let p = architecture.readout_rows();
        let factor = architecture.readout_scale.factor(p - 1);
        let value = |w: &[f64], i| factor * (0..p).map(|k| features[(i, k)] * w[k]).sum::<f64>();
        let column = |w| (0..features.nrows()).map(move |i| value(w, i));
        readout.chunks(p).flat_map(column).collect()
    }

    /// log det(I + ΨᵀΨ) of the features Ψ of the last outputs.
    pub fn spread(&self) -> f64 {
        let h = self.map.features(&self.model);
        let factor = self.model.architecture.readout_scale.factor(h.ncols() - 1);
        log_determinant(h, factor * factor)
    }
}

impl<'a> Experiment<'a> {
    pub fn new(case: &'a Case) -> Self {
        let mut x = fixed(ROWS * INPUTS, 1);
        x.copy_within(0..INPUTS, 2 * INPUTS); // an exactly repeated row
        let test = [x[..INPUTS].to_vec(), fixed(INPUTS, 2)].concat(); // a known input and a new one
        Self {
            case,
            blank: Probe::new(case, &x, &test),
            x,
            test,
        }
    }

    /// The posterior of `model` in the coordinates of the case.
    pub fn posterior(&self, model: &Arc<Model<f64>>) -> Posterior<f64> {
        let frame = self.case.frame;
        let (space, regulariser) = (Some(frame.space), frame.regulariser);
        let model = Arc::clone(model);
        Posterior::new(
            model,
            PosteriorSettings {
                space,
                regulariser,
                ..frame.coordinates.into()
            },
        )
        .unwrap()
    }

    /// Weights and noise from the prior, data from the likelihood.
    pub fn truth(&mut self, stream: &mut Stream) -> (Truth, Projection<f64>) {
        let blank = &self.blank.model;
        let readout = blank.architecture.readout_parameters();
        let mut weights = vec![0.0; blank.inner_parameters() + readout];
        stream.fill_normal(&mut weights);
        let mut noise_coordinates = vec![0.0; blank.noise_coordinates()];
        stream.fill_normal(&mut noise_coordinates);
        let mut scales = [0.0; OUTPUTS];
        blank.noise.scales(&noise_coordinates, &mut scales);
        let f = self.blank.outputs(&weights);
        let blank = &self.blank.model;
        let mut targets = vec![0.0; f.len()];
        for row in 0..ROWS {
            let mut y = [0.0; OUTPUTS];
            let outputs: [f64; OUTPUTS] = std::array::from_fn(|j| f[j * ROWS + row]);
            let likelihood = &blank.likelihood;
            likelihood.simulate(&outputs, &scales, stream, &mut y);
            (0..OUTPUTS).for_each(|j| targets[j * ROWS + row] = y[j]);
        }
        let model = Arc::new(blank.with_targets(targets));
        let mut projection = Projection::new(&model, PROJECTIONS, 7);
        let mut projections = vec![0.0; PROJECTIONS];
        let mut mean_squares = vec![0.0; self.case.hidden.len() + 1];
        projection.project(&weights, stream, &mut projections, &mut mean_squares);
        let truth = Truth {
            model,
            weights,
            noise_coordinates,
            projections,
        };
        (truth, projection)
    }
}
