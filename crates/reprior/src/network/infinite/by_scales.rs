//! The kernel of an infinitely wide fully connected network as a function of its prior scales, one for each input among them, and the
//! gradient of anything that depends on the kernel by the logarithms of the scales.
//!
//! With scaled inputs x̃_k = s_k·x_k, q^l the diagonal of K^l and κ the activation's covariance:
//!
//! * K¹ = σ_w²/d·X̃X̃ᵀ + σ_b², K^{l+1} = σ_w²·κ(K^l) + σ_b²; the last is the readout's.
//! * For dL = Σ_ij G_ij dK_ij, backwards: ∂L/∂ln σ_b = 2σ_b²·ΣG; ∂L/∂ln σ_w = 2Σ G∘(K^{l+1} − σ_b²); G ← σ_w²·G∘∂κ/∂k, and what moves a
//!   variance is added to the diagonal; ∂L/∂ln s_k = 2σ_w²/d·x̃_kᵀGx̃_k.
//!
//! A pair of inputs meets others on its diagonal entries alone, so that each column goes through all layers while it is in the cache, and the
//! way back makes them again: no layer's matrix is kept.
//!
//! **Cost**, beside n²d operations forwards and twice as many back: 20 to 60 for a pair and an activation forwards, three times as many back
//! (tanh thousands). Memory: 8n² bytes forwards, as much again back beside G.

use super::gram;
use crate::compute::{Matrix, add_scaled, dot, matrix, matrix_mut, multiply, share};
use crate::network::layer::activation::map_covariances;
use crate::network::layer::covariance_slopes::covariance_slopes;
use crate::network::{Activation, Composition, LayerScale};

/// Prior scales of a fully connected network, or something for each of them.
#[derive(Debug, Clone, PartialEq)]
pub struct PriorScales {
    /// s, for each input: what its weights' standard deviations are multiplied by.
    pub inputs: Vec<f64>,
    /// σ_w and σ_b of each layer, the readout last.
    pub layers: Vec<LayerScale>,
}

/// A fully connected network with infinitely wide layers, its scales left open.
#[derive(Debug, Clone)]
pub struct KernelByScales {
    inputs: usize,
    activations: Vec<Option<Activation>>,
}

/// Rows below which a layer takes less time than the start of a thread.
const FEWEST_SHARED: usize = 128;

/// Threads that are worth their start for the kernel of so many rows.
fn worth(threads: usize, rows: usize) -> usize {
    match rows < FEWEST_SHARED {
        true => 1,
        false => threads,
    }
}

/// Columns that add up together what they do to the variances, whatever the number of threads.
const COLUMNS: usize = 32;

/// A network at its scales, for n inputs.
struct Recursion<'a> {
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

impl Recursion<'_> {
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

    /// From G of column `j` below its diagonal, pairs met once, and X̃X̃ᵀ there: G by X̃X̃ᵀ/d·σ_w² of the first layer in its place.
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

impl KernelByScales {
    /// Of a fully connected network; `None` of any other.
    pub fn new(network: &Composition) -> Option<Self> {
        let hidden = network.as_fully_connected()?;
        Some(Self {
            inputs: network.inputs(),
            activations: hidden.iter().map(|layer| layer.activation).collect(),
        })
    }

    fn recursion(
        &self,
        inputs: Matrix<'_, f64>,
        scales: &PriorScales,
        threads: usize,
    ) -> Recursion<'_> {
        assert_eq!(inputs.ncols(), self.inputs, "inputs");
        assert_eq!(scales.inputs.len(), self.inputs, "scales of inputs");
        assert_eq!(scales.layers.len(), self.activations.len() + 1, "layers");
        let columns = inputs.col_iter().zip(&scales.inputs);
        let scaled = columns.flat_map(|(column, &scale)| column.iter().map(move |x| scale * x));
        let mut squares: Vec<[f64; 2]> = scales.layers.iter().map(LayerScale::squares).collect();
        squares[0][0] /= self.inputs as f64;
        let mut recursion = Recursion {
            activations: &self.activations,
            squares,
            scaled: scaled.collect(),
            variances: Vec::new(),
            threads: worth(threads, inputs.nrows()),
        };
        let mut variances = gram::squares(matrix(&recursion.scaled, inputs.nrows(), self.inputs));
        recursion.scale(0, &mut variances);
        for layer in 1..scales.layers.len() {
            let below = variances.clone();
            recursion.step(layer, &mut variances, &below, &below);
            recursion.variances.push(below);
        }
        recursion.variances.push(variances);
        recursion
    }

    /// The kernel between all pairs of `inputs` (n × d, finite) at the scales, n × n, of which the lower half counts. Panics where their
    /// numbers do not agree.
    pub fn forward(
        &self,
        inputs: Matrix<'_, f64>,
        scales: &PriorScales,
        threads: usize,
    ) -> Vec<f64> {
        let n = inputs.nrows();
        let recursion = self.recursion(inputs, scales, threads);
        let mut kernel = recursion.products();
        let columns = kernel.chunks_mut(n.max(1)).enumerate();
        let rooms = vec![vec![0.0; n]; recursion.threads];
        share(rooms, columns, |second, (j, column)| {
            let column = &mut column[j..];
            recursion.scale(0, column);
            for layer in 1..recursion.squares.len() {
                let variances = &recursion.variances[layer - 1];
                second[j..].fill(variances[j]);
                recursion.step(layer, column, &variances[j..], &second[j..]);
            }
        });
        kernel
    }

    /// ∂L/∂ of the logarithm of every scale, where dL = Σ_ij G_ij dK_ij over all pairs of [`forward`](Self::forward)'s kernel with a symmetric
    /// G, of which the lower half of `cotangent` (n × n) is read; it is overwritten. The same bits for any number of threads.
    pub fn pull_back(
        &self,
        inputs: Matrix<'_, f64>,
        scales: &PriorScales,
        cotangent: &mut [f64],
        threads: usize,
    ) -> PriorScales {
        let n = inputs.nrows();
        let recursion = self.recursion(inputs, scales, threads);
        let products = recursion.products();
        let (layers, block) = (scales.layers.len(), (n * COLUMNS).max(1));
        let mut parts: Vec<Sums> = (0..n.div_ceil(COLUMNS))
            .map(|_| Sums::new(layers, n))
            .collect();
        let tasks = products.chunks(block).zip(cotangent.chunks_mut(block));
        let tasks = tasks.zip(&mut parts).enumerate();
        let rooms = (0..recursion.threads).map(|_| Work::new(layers, n));
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
                    recursion.pull_back_column(work, j, &products[j + 1..], below, sums);
                }
            },
        );
        drop(products);
        let mut sums = Sums::new(layers, n);
        parts.iter().for_each(|part| sums.add(part));
        let mut diagonal: Vec<f64> = (0..n).map(|i| cotangent[i * (n + 1)]).collect();
        recursion.pull_back_diagonal(&mut diagonal, &mut sums);
        for (i, g) in diagonal.into_iter().enumerate() {
            cotangent[i * (n + 1)] = g;
        }
        let of_layers = sums.layers.iter().zip(&recursion.squares);
        let of_layers = of_layers.map(|(&[all, with_kernel], &[_, bias])| LayerScale {
            weight: 2.0 * (with_kernel - bias * all),
            bias: 2.0 * bias * all,
        });
        PriorScales {
            inputs: recursion.by_inputs(cotangent),
            layers: of_layers.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{InfiniteNetwork, Kinds};
    use super::*;
    use crate::compute::{Purpose, Stream};

    /// More than the columns that are added up together.
    const ROWS: usize = COLUMNS + 9;

    fn example() -> (Composition, Vec<f64>, PriorScales, Vec<f64>) {
        let network = Composition::fully_connected(4, &[5, 5], 2, Activation::Gelu);
        let mut stream = Stream::new(8, 0, Purpose::Simulation, 0);
        let mut x = vec![0.0; ROWS * 4];
        stream.fill_normal(&mut x);
        let scale = |weight, bias| LayerScale { weight, bias };
        let scales = PriorScales {
            inputs: vec![0.3, 1.0, 2.2, 0.9],
            layers: vec![scale(1.2, 0.4), scale(1.5, 0.2), scale(0.8, 0.6)],
        };
        // any symmetric G
        let mut g = vec![0.0; ROWS * ROWS];
        stream.fill_normal(&mut g);
        crate::compute::mirror_lower(&mut g, ROWS);
        (network, x, scales, g)
    }

    fn of_kernel(by: &KernelByScales, x: &[f64], scales: &PriorScales, g: &[f64]) -> f64 {
        let kernel = by.forward(matrix(x, ROWS, 4), scales, 2);
        (0..ROWS * ROWS)
            .map(|at| {
                let (row, column) = (at % ROWS, at / ROWS);
                g[at] * kernel[row.min(column) * ROWS + row.max(column)]
            })
            .sum()
    }

    #[test]
    fn the_kernel_is_that_of_the_infinite_network() {
        let (mut network, x, scales, _) = example();
        let by = KernelByScales::new(&network).unwrap();
        let kernel = by.forward(matrix(&x, ROWS, 4), &scales, 1);
        let mut own = scales.layers.iter();
        for scale in network.hidden_scales_mut() {
            *scale = *own.next().unwrap();
        }
        network.readout_scale = scales.layers[2];
        let scaled: Vec<f64> = (0..ROWS * 4)
            .map(|at| x[at] * scales.inputs[at / ROWS])
            .collect();
        let infinite = InfiniteNetwork::new(&network).unwrap();
        let expected = infinite
            .kernels(matrix(&scaled, ROWS, 4), Kinds::Nngp, 1)
            .unwrap();
        for column in 0..ROWS {
            for row in column..ROWS {
                let at = column * ROWS + row;
                assert!((kernel[at] - expected.nngp[at]).abs() < 1e-13);
            }
        }
    }

    #[test]
    fn the_pull_back_is_the_gradient_by_logarithms() {
        let (network, x, scales, g) = example();
        for function in [
            Activation::Gelu,
            Activation::Relu,
            Activation::Erf,
            Activation::Identity,
        ] {
            let mut by = KernelByScales::new(&network).unwrap();
            by.activations = vec![Some(function), None];
            let found = by.pull_back(matrix(&x, ROWS, 4), &scales, &mut g.clone(), 1);
            let step = 1e-5_f64;
            let check = |found: f64, change: &dyn Fn(&mut PriorScales, f64)| {
                let at = |step: f64| {
                    let mut scales = scales.clone();
                    change(&mut scales, step.exp());
                    of_kernel(&by, &x, &scales, &g)
                };
                let expected = (at(step) - at(-step)) / (2.0 * step);
                assert!(
                    (found - expected).abs() < 1e-6 * (1.0 + expected.abs()),
                    "{function:?}: {found} {expected}"
                );
            };
            for (k, &found) in found.inputs.iter().enumerate() {
                check(found, &|scales, factor| scales.inputs[k] *= factor);
            }
            for (layer, found) in found.layers.iter().enumerate() {
                check(found.weight, &|scales, factor| {
                    scales.layers[layer].weight *= factor
                });
                check(found.bias, &|scales, factor| {
                    scales.layers[layer].bias *= factor
                });
            }
        }
    }

    /// With as many rows as several threads are worth.
    #[test]
    fn any_number_of_threads_gives_the_same_bits() {
        let rows = FEWEST_SHARED + 7;
        let (network, _, scales, _) = example();
        let by = KernelByScales::new(&network).unwrap();
        let mut stream = Stream::new(9, 0, Purpose::Simulation, 0);
        let (mut x, mut g) = (vec![0.0; rows * 4], vec![0.0; rows * rows]);
        stream.fill_normal(&mut x);
        stream.fill_normal(&mut g);
        let x = matrix(&x, rows, 4);
        let with = |threads| {
            let back = by.pull_back(x, &scales, &mut g.clone(), threads);
            (by.forward(x, &scales, threads), back)
        };
        let one = with(1);
        assert_eq!(one, with(2));
        assert_eq!(one, with(5));
    }
}
