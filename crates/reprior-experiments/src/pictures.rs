//! Images as networks take them: pixels from 0 to 1, the channels of a pixel side by side.

use std::sync::Arc;

use reprior::model::dataset::Dataset;
use reprior::model::likelihood::Categorical;
use reprior::stochastic::data::MinibatchData;

use crate::Bench;
use crate::data::{labels, shape};

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
        self.part(0, rows)
    }

    /// At most so many rows from row `start` on.
    #[must_use]
    pub fn part(&self, start: usize, rows: usize) -> Self {
        let start = start.min(self.rows);
        let end = (start + rows).min(self.rows);
        let columns = self.columns();
        Self {
            rows: end - start,
            pixels: Arc::new(self.pixels[start * columns..end * columns].to_vec()),
            labels: self.labels[start..end].to_vec(),
        }
    }
}
