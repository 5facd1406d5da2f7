//! Images as networks take them - pixels from 0 to 1, the channels of a pixel side by side - and scores of what is predicted for them.

use std::sync::Arc;

use reprior::metrics::{ClassPredictions, ReliabilityBin};
use reprior::model::dataset::Dataset;
use reprior::model::likelihood::Categorical;
use reprior::stochastic::data::MinibatchData;

use crate::data::{labels, shape};
use crate::{Bench, Failure, Row};

/// Bins of calibration errors.
const BINS: usize = 15;
/// Bins of the calibration errors in Roy, Miani et al. (2024).
const PUBLISHED_BINS: usize = 100;

/// Images with their classes.
#[derive(Debug, Clone)]
pub struct Pictures {
    /// How many.
    pub rows: usize,
    /// Row-major, from 0 to 1.
    pub pixels: Arc<Vec<f32>>,
    /// From 0.
    pub labels: Vec<u32>,
}

impl Pictures {
    /// Of records as they came: pixels from 0 to 255, plane after plane.
    pub fn new(data: &Dataset) -> Self {
        let mut labels = labels(data).to_vec();
        labels.resize(data.rows, 0);
        let shape = shape(data);
        let (pixels, channels) = (shape.pixels(), shape.channels);
        let source = |at: usize| {
            let (image, within) = (at / data.columns, at % data.columns);
            image * data.columns + within % channels * pixels + within / channels
        };
        let values = (0..data.rows * data.columns).map(|at| data.inputs.get(source(at)) / 255.0);
        Self {
            rows: data.rows,
            pixels: Arc::new(values.map(|x| x as f32).collect()),
            labels,
        }
    }

    /// What minibatches are taken of.
    pub fn minibatches(&self, classes: usize) -> MinibatchData<f32> {
        let mut targets = vec![0.0; self.rows * classes];
        for (row, &label) in self.labels.iter().enumerate() {
            if let Some(target) = targets.get_mut(row * classes + label as usize) {
                *target = 1.0;
            }
        }
        MinibatchData {
            inputs: Arc::clone(&self.pixels),
            targets: targets.into(),
            likelihood: Arc::new(Categorical),
            scales: vec![1.0; classes],
        }
    }

    /// Threads for networks that learn them: few rows are for small networks, whose updates are too short to share.
    pub fn threads(&self, bench: &Bench<'_>) -> usize {
        if self.rows < 5000 { 1 } else { bench.threads }
    }

    /// Numbers of an image.
    pub fn columns(&self) -> usize {
        self.pixels.len() / self.rows.max(1)
    }

    /// The first rows.
    #[must_use]
    pub fn first(&self, rows: usize) -> Self {
        let rows = rows.min(self.rows);
        Self {
            rows,
            pixels: Arc::new(self.pixels[..rows * self.columns()].to_vec()),
            labels: self.labels[..rows].to_vec(),
        }
    }
}

/// What is made of predicted probabilities of classes.
#[derive(Debug, Clone, Copy)]
pub struct Scores {
    /// Mean largest probability.
    pub confidence: f64,
    /// Mean of −log of the true class's probability.
    pub nll: f64,
    /// From 0 to 1.
    pub accuracy: f64,
    /// Summed over classes.
    pub brier: f64,
    /// Expected and maximum calibration error, 15 bins.
    pub calibration: [f64; 2],
    /// The same in 100 bins without the last one, that of confidences from 0.99 on: what the published code does.
    pub published_calibration: [f64; 2],
}

impl Scores {
    /// Of probabilities, row-major.
    ///
    /// # Errors
    /// Probabilities that are none.
    pub fn new(probabilities: &[f64], labels: &[u32], classes: usize) -> Result<Self, Failure> {
        let predictions = ClassPredictions::new(probabilities, labels, classes)?;
        let table = predictions.reliability(BINS);
        let mut published = predictions.reliability(PUBLISHED_BINS);
        published.pop();
        Ok(Self {
            confidence: predictions.mean_confidence(),
            nll: predictions.nll(),
            accuracy: predictions.accuracy(),
            brier: predictions.brier(),
            calibration: [
                ReliabilityBin::expected_calibration_error(&table),
                ReliabilityBin::maximum_calibration_error(&table),
            ],
            published_calibration: [
                ReliabilityBin::expected_calibration_error(&published),
                ReliabilityBin::maximum_calibration_error(&published),
            ],
        })
    }

    /// `row` with these.
    pub fn onto(&self, row: Row) -> Row {
        row.with("confidence", self.confidence)
            .with("nll", self.nll)
            .with("accuracy", self.accuracy)
            .with("brier", self.brier)
            .with("ece", self.calibration[0])
            .with("mce", self.calibration[1])
    }
}
