//! The recursion of a kernel through the layers, forwards and back, a column at a time: see [the module](super).

use super::super::gram;
use super::PriorScales;
use crate::compute::{Matrix, add_scaled, dot, matrix, matrix_mut, multiply, share};
use crate::network::layer::activation::map_covariances;
use crate::network::layer::covariance_slopes::covariance_slopes;
use crate::network::{Activation, LayerScale};

/// Rows below which a layer takes less time than the start of a thread.
pub(super) const FEWEST_SHARED: usize = 128;

/// Threads that are worth their start for the kernel of so many rows.
fn worth(threads: usize, rows: usize) -> usize {
    match rows < FEWEST_SHARED {
        true => 1,
        false => threads,
    }
}

/// Columns that add up together what they do to the variances, whatever the number of threads.
pub(super) const COLUMNS: usize = 32;

/// A network at its scales, for n inputs.
pub(super) struct Recursion<'a> {
    activations: &'a [Option<Activation>],
    /// σ_w², of the first layer by the number of inputs, and σ_b² of each layer.
    squares: Vec<[f64; 2]>,
    /// n × d.
    scaled: Vec<f64>,
    /// The diagonal of each layer's K.
    variances: Vec<Vec<f64>>,
    threads: usize,
}

/// Room of one thread: a column of every layer's K and of the slopes, and a variance for each of its rows.
struct Work {
    kernels: Vec<Vec<f64>>,
    slopes: [Vec<f64>; 3],
    second: Vec<f64>,
}

/// What some columns add to.
struct Sums {
    /// ΣG and ΣG∘K of each layer.
    layers: Vec<[f64; 2]>,
    /// G by the variances of each layer but the last.
    variances: Vec<Vec<f64>>,
}

impl Work {
    fn new(layers: usize, n: usize) -> Self {
        Self {
            kernels: vec![vec![0.0; n]; layers],
            slopes: std::array::from_fn(|_| vec![0.0; n]),
            second: vec![0.0; n],
        }
    }
}

impl Sums {
    fn new(layers: usize, n: usize) -> Self {
        Self {
            layers: vec![[0.0; 2]; layers],
            variances: vec![vec![0.0; n]; layers - 1],
        }
    }

    fn add(&mut self, other: &Self) {
        for (sums, own) in self.layers.iter_mut().zip(&other.layers) {
            sums[0] += own[0];
            sums[1] += own[1];
        }
        for (sums, own) in self.variances.iter_mut().zip(&other.variances) {
            add_scaled(sums, 1.0, own);
        }
    }
}

impl<'a> Recursion<'a> {
    /// Of `inputs` (n × d) at the scales, whose numbers agree.
    pub(super) fn new(
        activations: &'a [Option<Activation>],
        inputs: Matrix<'_, f64>,
        scales: &PriorScales,
        threads: usize,
    ) -> Self {
        let columns = inputs.col_iter().zip(&scales.inputs);
        let scaled = columns.flat_map(|(column, &scale)| column.iter().map(move |x| scale * x));
        let mut squares: Vec<[f64; 2]> = scales.layers.iter().map(LayerScale::squares).collect();
        squares[0][0] /= inputs.ncols() as f64;
        let mut recursion = Self {
            activations,
            squares,
            scaled: scaled.collect(),
            variances: Vec::new(),
            threads: worth(threads, inputs.nrows()),
        };
        let mut variances =
            gram::squares(matrix(&recursion.scaled, inputs.nrows(), inputs.ncols()));
        recursion.scale(0, &mut variances);
        for layer in 1..scales.layers.len() {
            let below = variances.clone();
            recursion.step(layer, &mut variances, &below, &below);
            recursion.variances.push(below);
        }
        recursion.variances.push(variances);
        recursion
    }

    /// The last kernel, n × n, of which the lower half counts.
    pub(super) fn kernel(&self) -> Vec<f64> {
        let n = self.rows();
        let mut kernel = self.products();
        let columns = kernel.chunks_mut(n.max(1)).enumerate();
        let rooms = vec![vec![0.0; n]; self.threads];
        share(rooms, columns, |second, (j, column)| {
            let column = &mut column[j..];
            self.scale(0, column);
            for layer in 1..self.squares.len() {
                let variances = &self.variances[layer - 1];
                second[j..].fill(variances[j]);
                self.step(layer, column, &variances[j..], &second[j..]);
            }
        });
        kernel
    }

    /// See [`KernelByScales::pull_back`](super::KernelByScales::pull_back).
    pub(super) fn pull_back(&self, cotangent: &mut [f64]) -> PriorScales {
        let n = self.rows();
        let products = self.products();
        let (layers, block) = (self.squares.len(), (n * COLUMNS).max(1));
        let mut parts: Vec<Sums> = (0..n.div_ceil(COLUMNS))
            .map(|_| Sums::new(layers, n))
            .collect();
        let tasks = products.chunks(block).zip(cotangent.chunks_mut(block));
        let tasks = tasks.zip(&mut parts).enumerate();
        let rooms = (0..self.threads).map(|_| Work::new(layers, n));
        share(
            rooms,
            tasks,
            |work, (block, ((products, cotangent), sums))| {
                let columns = products.chunks(n).zip(cotangent.chunks_mut(n));
                for (j, (products, cotangent)) in (block * COLUMNS..).zip(columns) {
                    let (above, below) = cotangent.split_at_mut(j + 1);
                    above[..j].fill(0.0);
                    // pairs are met once: they count twice
                    below.iter_mut().for_each(|g| *g *= 2.0);
                    self.pull_back_column(work, j, &products[j + 1..], below, sums);
                }
            },
        );
        drop(products);
        let mut sums = Sums::new(layers, n);
        parts.iter().for_each(|part| sums.add(part));
        let mut diagonal: Vec<f64> = (0..n).map(|i| cotangent[i * (n + 1)]).collect();
        self.pull_back_diagonal(&mut diagonal, &mut sums);
        for (i, g) in diagonal.into_iter().enumerate() {
            cotangent[i * (n + 1)] = g;
        }
        let of_layers = sums.layers.iter().zip(&self.squares);
        let of_layers = of_layers.map(|(&[all, with_kernel], &[_, bias])| LayerScale {
            weight: 2.0 * (with_kernel - bias * all),
            bias: 2.0 * bias * all,
        });
        PriorScales {
            inputs: self.by_inputs(cotangent),
            layers: of_layers.collect(),
        }
    }

    fn rows(&self) -> usize {
        self.variances[0].len()
    }

    fn inputs(&self) -> Matrix<'_, f64> {
        let n = self.rows();
        matrix(&self.scaled, n, self.scaled.len() / n.max(1))
    }

    /// X̃X̃ᵀ, n × n, of which the lower half counts.
    fn products(&self) -> Vec<f64> {
        let n = self.rows();
        let mut products = vec![0.0; n * n];
        let inputs = self.inputs();
        gram::products(&mut products, inputs, inputs, true, self.threads);
        products
    }

    /// `column` ← σ_w²·column + σ_b² of a layer.
    fn scale(&self, layer: usize, column: &mut [f64]) {
        let [weight, bias] = self.squares[layer];
        for k in column {
            *k = weight * *k + bias;
        }
    }

    /// `column` ← K of a layer, from K of the layer below, between units of these variances there.
    fn step(&self, layer: usize, column: &mut [f64], first: &[f64], second: &[f64]) {
        if let Some(function) = self.activations[layer - 1] {
            map_covariances(function, column, &mut [], first, second);
        }
        self.scale(layer, column);
    }

    /// 2σ_w²/d·x̃_kᵀGx̃_k for every input, with G by the first layer's K, in its lower half.
    fn by_inputs(&self, cotangent: &[f64]) -> Vec<f64> {
        let (n, [weight, _]) = (self.rows(), self.squares[0]);
        let mut product = vec![0.0; self.scaled.len()];
        let inputs = self.inputs();
        multiply(
            matrix_mut(&mut product, n, inputs.ncols()),
            false,
            2.0 * weight,
            matrix(cotangent, n, n),
            inputs,
        );
        let columns = product.chunks(n.max(1)).zip(self.scaled.chunks(n.max(1)));
        columns
            .map(|(product, scaled)| dot(product, scaled))
            .collect()
    }

    /// From G of column `j` below its diagonal, pairs met once, and X̃X̃ᵀ there: G by the first layer's K in its place.
    fn pull_back_column(
        &self,
        work: &mut Work,
        j: usize,
        products: &[f64],
        cotangent: &mut [f64],
        sums: &mut Sums,
    ) {
        let count = cotangent.len();
        work.kernels[0][..count].copy_from_slice(products);
        self.scale(0, &mut work.kernels[0][..count]);
        for layer in 1..self.squares.len() {
            let variances = &self.variances[layer - 1];
            let (below, own) = work.kernels.split_at_mut(layer);
            let own = &mut own[0][..count];
            own.copy_from_slice(&below[layer - 1][..count]);
            work.second[..count].fill(variances[j]);
            self.step(layer, own, &variances[j + 1..], &work.second[..count]);
        }
        for layer in (0..self.squares.len()).rev() {
            let kernel = &work.kernels[layer][..count];
            sums.layers[layer][0] += cotangent.iter().sum::<f64>();
            sums.layers[layer][1] += dot(cotangent, kernel);
            if layer == 0 {
                return;
            }
            let [weight, _] = self.squares[layer];
            cotangent.iter_mut().for_each(|g| *g *= weight);
            let Some(function) = self.activations[layer - 1] else {
                continue;
            };
            let variances = &self.variances[layer - 1];
            let [by_k, by_first, by_second] = work.slopes.each_mut().map(|s| &mut s[..count]);
            let slopes = [&mut *by_k, &mut *by_first, &mut *by_second];
            let kernel = &work.kernels[layer - 1][..count];
            covariance_slopes(function, kernel, &variances[j + 1..], variances[j], slopes);
            let by_variances = &mut sums.variances[layer - 1][j..];
            by_variances[0] += dot(cotangent, by_second);
            let slopes = by_k.iter().zip(by_first.iter());
            let rows = cotangent.iter_mut().zip(&mut by_variances[1..]);
            for ((g, by_variance), (by_k, by_first)) in rows.zip(slopes) {
                *by_variance += *g * by_first;
                *g *= by_k;
            }
        }
    }

    /// The same of the diagonal, whose pairs are of one input with itself and which has what others do to variances.
    fn pull_back_diagonal(&self, diagonal: &mut [f64], sums: &mut Sums) {
        for layer in (0..self.squares.len()).rev() {
            sums.layers[layer][0] += diagonal.iter().sum::<f64>();
            sums.layers[layer][1] += dot(diagonal, &self.variances[layer]);
            if layer == 0 {
                return;
            }
            let [weight, _] = self.squares[layer];
            let others = &sums.variances[layer - 1];
            let variances = &self.variances[layer - 1];
            for ((g, &q), other) in diagonal.iter_mut().zip(variances).zip(others) {
                let slope = self.activations[layer - 1].map_or(1.0, |function| {
                    let mut slopes = [[0.0]; 3];
                    let room = slopes.each_mut().map(|slope| slope.as_mut_slice());
                    covariance_slopes(function, &[q], &[q], q, room);
                    slopes.iter().flatten().sum()
                });
                *g = weight * slope * *g + other;
            }
        }
    }
}
