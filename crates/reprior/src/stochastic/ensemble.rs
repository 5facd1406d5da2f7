//! Predictions of ensembles: the mean over positions of E[y | f(x; θ)], class probabilities where targets are classes.

use std::sync::Arc;

use crate::compute::{Real, matrix, matrix_mut};
use crate::model::likelihood::Likelihood;
use crate::network::layer::ShapeError;
use crate::network::{Composition, Executor};

/// Inputs that positions predict for, and the mean of the predictions so far.
#[derive(Debug)]
pub struct Ensemble<R> {
    executor: Executor<R>,
    inputs: Arc<Vec<R>>,
    likelihood: Arc<dyn Likelihood>,
    rows: usize,
    outputs: Vec<R>,
    /// Row-major, n* × C.
    last: Vec<f64>,
    sum: Vec<f64>,
    members: u64,
}

impl<R: Real> Ensemble<R> {
    /// For `inputs`, row-major; with so many threads. What is left of the inputs after whole rows is not used.
    ///
    /// # Errors
    /// A layer that does not fit.
    pub fn new(
        network: &Composition,
        likelihood: Arc<dyn Likelihood>,
        inputs: Arc<Vec<R>>,
        threads: usize,
    ) -> Result<Self, ShapeError> {
        let executor = Executor::new(network)?.with_threads(threads);
        let rows = inputs.len() / executor.inputs_count().max(1);
        let length = rows * executor.outputs_count();
        Ok(Self {
            executor,
            inputs,
            likelihood,
            rows,
            outputs: vec![R::ZERO; length],
            last: vec![0.0; length],
            sum: vec![0.0; length],
            members: 0,
        })
    }

    /// Takes other means and variances of batch normalisation, see
    /// [`Composition::statistics`]; none leave the network as it is.
    pub fn set_statistics(&mut self, statistics: &[f64]) {
        self.executor.set_statistics(statistics);
    }

    /// The network's outputs at one position, n* × C, row-major.
    pub fn outputs(&mut self, weights: &[R]) -> &[R] {
        let (rows, columns) = (self.rows, self.executor.inputs_count());
        let c = self.executor.outputs_count();
        let inputs = matrix(&self.inputs[..rows * columns], columns, rows).transpose();
        let out = matrix_mut(&mut self.outputs, c, rows).transpose_mut();
        self.executor.outputs(weights, inputs, out);
        &self.outputs
    }

    /// The outputs at `weights` of the network linearised at `mode`, n* × C, row-major: f(mode) + J·(weights − mode).
    pub fn linearised(&mut self, mode: &[R], weights: &[R]) -> &[R] {
        let away: Vec<R> = weights.iter().zip(mode).map(|(&w, &m)| w - m).collect();
        let (rows, columns) = (self.rows, self.executor.inputs_count());
        let c = self.executor.outputs_count();
        let mut tangents = vec![R::ZERO; rows * c];
        let inputs = matrix(&self.inputs[..rows * columns], columns, rows).transpose();
        let out = matrix_mut(&mut tangents, c, rows).transpose_mut();
        self.executor.jvp(mode, inputs, Some(&away), None, out);
        self.outputs(mode);
        for (f, tangent) in self.outputs.iter_mut().zip(tangents) {
            *f += tangent;
        }
        &self.outputs
    }

    /// The inputs, row-major.
    pub fn inputs(&self) -> &[R] {
        &self.inputs
    }

    /// The predictions at one position, n* × C, row-major, which are not added to the mean.
    pub fn predict(&mut self, weights: &[R]) -> &[f64] {
        self.outputs(weights);
        let c = self.executor.outputs_count();
        for (last, f) in self.last.iter_mut().zip(&self.outputs) {
            *last = f.to_f64();
        }
        for row in self.last.chunks_exact_mut(c.max(1)) {
            self.likelihood.mean(row);
        }
        &self.last
    }

    /// Takes one more member in.
    pub fn add(&mut self, weights: &[R]) {
        self.predict(weights);
        for (sum, last) in self.sum.iter_mut().zip(&self.last) {
            *sum += last;
        }
        self.members += 1;
    }

    /// Rows that are predicted for.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Outputs of the network.
    pub fn outputs_count(&self) -> usize {
        self.executor.outputs_count()
    }

    /// Members so far.
    pub fn members(&self) -> u64 {
        self.members
    }

    /// The mean of all members' predictions, n* × C, row-major; NaN if there are none.
    pub fn mean(&self) -> Vec<f64> {
        let count = self.members as f64;
        self.sum.iter().map(|sum| sum / count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Purpose, Stream};
    use crate::model::likelihood::Categorical;
    use crate::network::{Activation, Composition};

    #[test]
    fn the_mean_is_that_of_probabilities() {
        let network = Composition::fully_connected(3, &[4], 2, Activation::Relu);
        let mut stream = Stream::new(0, 0, Purpose::Initial, 0);
        let mut normals = |count: usize| {
            let mut values = vec![0.0; count];
            stream.fill_normal(&mut values);
            values
        };
        let inputs = Arc::new(normals(3 * 20));
        let (one, other) = (normals(26), normals(26));
        let mut ensemble = Ensemble::new(&network, Arc::new(Categorical), inputs, 2).unwrap();
        let (a, b) = (
            ensemble.predict(&one).to_vec(),
            ensemble.predict(&other).to_vec(),
        );
        ensemble.add(&one);
        ensemble.add(&other);
        assert_eq!(ensemble.members(), 2);
        for (at, mean) in ensemble.mean().iter().enumerate() {
            assert!((mean - 0.5 * (a[at] + b[at])).abs() < 1e-15);
        }
        assert!(a.chunks_exact(2).all(|p| (p[0] + p[1] - 1.0).abs() < 1e-14));
    }
}
