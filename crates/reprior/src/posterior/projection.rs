//! Random projections and norms of whole weights, the part that the data do not touch included.
//!
//! A direction is one rank-one matrix aᵢbᵢᵀ per layer with independent N(0, 1) entries, over √D: every weight takes
//! part, yet 100 projections of all weights cost one product per layer and the directions take memory of the order of
//! the widths (dense directions of a wide network would take gigabytes; Hron et al. 2022 use those). In the first layer
//! aᵢ is drawn in an orthonormal basis of the network's own d₀ + 1 inputs that begins with those that the chain's reduced
//! weights see (its law does not depend on the basis). The other coordinates meet weights that stay at their prior and
//! are not drawn: they add Gaussian noise of exactly the right covariance.

use crate::compute::{
    Purpose, Real, Stream, chi_squared, dot, matrix, matrix_mut, multiply, norm_squared,
    symmetric_eigen,
};
use crate::model::Model;

/// Directions for one model.
pub struct Projection<R> {
    count: usize,
    layers: Vec<ProjectionFactors<R>>,
    /// count × rank, column-major: root of the covariance of what the chain's weights do not determine.
    unseen_root: Vec<f64>,
    unseen_rank: usize,
    /// Dimension of the unseen weights.
    unseen_dimension: u64,
    work: Vec<R>,
    scale: f64,
}

struct ProjectionFactors<R> {
    rows: usize,
    units: usize,
    /// count × rows, column-major.
    left: Vec<R>,
    /// units × count, column-major.
    right: Vec<R>,
}

impl<R: Real> ProjectionFactors<R> {
    fn draw(rows: usize, units: usize, count: usize, stream: &mut Stream) -> Self {
        let mut right = vec![R::ZERO; units * count];
        stream.fill_normal(&mut right);
        let mut left = vec![R::ZERO; count * rows];
        stream.fill_normal(&mut left);
        Self {
            rows,
            units,
            left,
            right,
        }
    }
}

impl<R: Real> Projection<R> {
    /// `count` directions for the weights of `model`, a function of `seed` alone.
    pub fn new(model: &Model<R>, count: usize, seed: u64) -> Self {
        let architecture = &model.architecture;
        let shapes = model.reduced_network().layer_shapes();
        let widest = shapes.iter().map(|(_, units)| *units).max().unwrap_or(0);
        let mut layers = Vec::with_capacity(shapes.len());
        let (mut unseen_root, mut unseen_rank, mut unseen_dimension) = (Vec::new(), 0, 0);
        for (index, &(rows, units)) in shapes.iter().enumerate() {
            let mut stream = Stream::new(seed, 0, Purpose::Projection, index as u64);
            let factors = ProjectionFactors::draw(rows, units, count, &mut stream);
            if index == 0 && model.design.is_reduced() {
                // In an orthonormal basis of the inputs whose first r vectors are the rows of Q, a Gaussian direction
                // has independent N(0, 1) coordinates: `left` holds the first r of them, these are the others.
                let unseen_rows = model.design.whole_columns() - rows;
                let mut unseen = vec![0.0_f64; count * unseen_rows];
                stream.fill_normal(&mut unseen);
                if count > 0 {
                    (unseen_root, unseen_rank) =
                        unseen_covariance(&unseen, unseen_rows, &factors.right, units, count);
                }
                unseen_dimension = (unseen_rows * units) as u64;
            }
            layers.push(factors);
        }
        Self {
            count,
            layers,
            unseen_root,
            unseen_rank,
            unseen_dimension,
            work: vec![R::ZERO; count * widest],
            scale: 1.0 / (architecture.parameters() as f64).sqrt(),
        }
    }

    /// `count` directions for weights whose layers' matrices have these rows and columns, a function of `seed` alone.
    pub fn of_shapes(shapes: &[(usize, usize)], count: usize, seed: u64) -> Self {
        let widest = shapes.iter().map(|(_, units)| *units).max().unwrap_or(0);
        let parameters: usize = shapes.iter().map(|(rows, units)| rows * units).sum();
        let of_layer = |(index, &(rows, units)): (usize, &(usize, usize))| {
            let mut stream = Stream::new(seed, 0, Purpose::Projection, index as u64);
            ProjectionFactors::draw(rows, units, count, &mut stream)
        };
        Self {
            count,
            layers: shapes.iter().enumerate().map(of_layer).collect(),
            unseen_root: Vec::new(),
            unseen_rank: 0,
            unseen_dimension: 0,
            work: vec![R::ZERO; count * widest],
            scale: 1.0 / (parameters as f64).sqrt(),
        }
    }

    /// Number of directions.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of layers that have a norm: hidden layers and the readout.
    pub fn layers(&self) -> usize {
        self.layers.len()
    }

    /// Writes the projections (count) and, per layer, ‖weights‖²/number of weights. `weights` are all layers' in the
    /// chain's coordinates, readout included; `stream` draws what those leave open.
    pub fn project(
        &mut self,
        weights: &[R],
        stream: &mut Stream,
        projections: &mut [f64],
        norms: &mut [f64],
    ) {
        let mut noise = vec![0.0; self.unseen_rank];
        stream.fill_normal(&mut noise);
        projections.fill(0.0);
        for (column, &e) in self.unseen_root.chunks_exact(self.count.max(1)).zip(&noise) {
            for (z, root) in projections.iter_mut().zip(column) {
                *z += root * e;
            }
        }
        let mut rest = weights;
        for (index, layer) in self.layers.iter().enumerate() {
            let (own, above) = rest.split_at(layer.rows * layer.units);
            rest = above;
            // (units × count) = Wᵀ·left ᵀ
            let product = &mut self.work[..layer.units * self.count];
            multiply(
                matrix_mut(product, layer.units, self.count),
                false,
                1.0,
                matrix(own, layer.rows, layer.units).transpose(),
                matrix(&layer.left, self.count, layer.rows).transpose(),
            );
            let columns = product
                .chunks_exact(layer.units)
                .zip(layer.right.chunks_exact(layer.units));
            for (z, (product, right)) in projections.iter_mut().zip(columns) {
                *z += dot(product, right);
            }
            let (mut norm, mut count) = (norm_squared(own), own.len() as f64);
            if index == 0 && self.unseen_dimension > 0 {
                let freedom = self.unseen_dimension - self.unseen_rank as u64;
                norm += norm_squared(&noise) + chi_squared(freedom, stream);
                count += self.unseen_dimension as f64;
            }
            norms[index] = norm / count;
        }
        projections.iter_mut().for_each(|z| *z *= self.scale);
    }

    /// Bytes of the directions.
    pub fn bytes(model: &Model<R>, count: usize) -> usize {
        let shapes = model.reduced_network().layer_shapes();
        let numbers = |&(rows, units): &(usize, usize)| rows + units;
        let readout = model.architecture.outputs;
        (shapes.iter().map(numbers).sum::<usize>() - readout) * count * R::BYTES
    }
}

/// Root of the covariance over unseen weights W ~ N(0, I) of aᵢᵀW bᵢ: (aᵢ·aⱼ)(bᵢ·bⱼ). Column-major count × rank.
fn unseen_covariance<R: Real>(
    left: &[f64],
    rows: usize,
    right: &[R],
    units: usize,
    count: usize,
) -> (Vec<f64>, usize) {
    let gram = |i: usize, j: usize| {
        let a: f64 = (0..rows)
            .map(|k| left[i * rows + k] * left[j * rows + k])
            .sum();
        a * dot(
            &right[i * units..(i + 1) * units],
            &right[j * units..(j + 1) * units],
        )
    };
    let covariance: Vec<f64> = (0..count)
        .flat_map(|j| (0..count).map(move |i| (i, j)))
        .map(|(i, j)| gram(i, j))
        .collect();
    // entries are finite, so that the eigenvalues are found
    let Ok((values, vectors)) = symmetric_eigen(&covariance, count) else {
        return (Vec::new(), 0);
    };
    let largest = values.last().copied().unwrap_or(0.0);
    let mut root = Vec::new();
    let mut rank = 0;
    for (value, vector) in values.iter().zip(vectors.chunks_exact(count.max(1))) {
        if *value > 1e-12 * largest && rank < rows * units {
            root.extend(vector.iter().map(|v| v * value.sqrt()));
            rank += 1;
        }
    }
    (root, rank)
}
