//! Directions in which weights and predictions are watched.

use reprior::compute::kernels::dot;
use reprior::compute::{Purpose, Real, Stream};
use reprior::model::Model;

/// How many.
pub const DIRECTIONS: usize = 50;

/// Directions of all outputs, of entries N(0, 1), over the root of their number; and of weights, one rank-one matrix abᵀ for each
/// layer, all entries N(0, 1), over √D.
///
/// Unlike the library's [`Projection`](reprior::posterior::Projection) those of weights leave out what reduced inputs leave out: those weights are drawn afresh, so
/// that directions with them would seem to mix better than the chain does.
pub struct Directions {
    outputs: Vec<Vec<f64>>,
    /// Rows and units of each layer, the readout last.
    shapes: Vec<(usize, usize)>,
    /// a and b, layer by layer, direction by direction.
    factors: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Directions {
    /// Those for a model.
    pub fn new<R: Real>(model: &Model<R>) -> Self {
        let size = model.test_design.rows() * model.architecture.outputs;
        let of_outputs = |index: usize| {
            let mut values = vec![0.0; size];
            Stream::new(8, 0, Purpose::Projection, index as u64).fill_normal(&mut values);
            values
        };
        let shapes = model.reduced_network().layer_shapes();
        let mut factors = Vec::new();
        for (layer, &(rows, units)) in shapes.iter().enumerate() {
            for direction in 0..DIRECTIONS {
                let mut stream =
                    Stream::new(9, layer as u64, Purpose::Projection, direction as u64);
                let (mut a, mut b) = (vec![0.0; rows], vec![0.0; units]);
                stream.fill_normal(&mut a);
                stream.fill_normal(&mut b);
                factors.push((a, b));
            }
        }
        Self {
            outputs: (0..DIRECTIONS).map(of_outputs).collect(),
            shapes,
            factors,
        }
    }

    /// Of n* × C outputs.
    pub fn of_outputs(&self, values: &[f64]) -> Vec<f64> {
        let scale = (values.len().max(1) as f64).sqrt().recip();
        let directions = self.outputs.iter();
        directions
            .map(|direction| scale * dot(direction, values))
            .collect()
    }

    /// aᵀWb of every layer, summed; and of the readout alone.
    pub fn of_weights<R: Real>(&self, weights: &[R]) -> [Vec<f64>; 2] {
        let mut all = vec![0.0; DIRECTIONS];
        let mut readout = vec![0.0; DIRECTIONS];
        let mut start = 0;
        for (layer, &(rows, units)) in self.shapes.iter().enumerate() {
            let weights = &weights[start..start + rows * units];
            start += rows * units;
            let factors = &self.factors[layer * DIRECTIONS..];
            for (index, (a, b)) in factors.iter().take(DIRECTIONS).enumerate() {
                let unit = |(column, b): (&[R], &f64)| {
                    let pairs = column.iter().zip(a);
                    b * pairs.map(|(w, a)| w.to_f64() * a).sum::<f64>()
                };
                let value: f64 = weights.chunks_exact(rows).zip(b).map(unit).sum();
                all[index] += value;
                if layer + 1 == self.shapes.len() {
                    readout[index] = value;
                }
            }
        }
        let scale = (start as f64).sqrt().recip();
        all.iter_mut().for_each(|value| *value *= scale);
        [all, readout]
    }
}
