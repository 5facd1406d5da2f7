//! The kernel of an infinitely wide fully connected network as a function of its prior scales, one for each input among them, and the
//! gradient of anything that depends on the kernel by the logarithms of the scales.
//!
//! With scaled inputs x̃_k = s_k·x_k, q^l the diagonal of K^l and κ the activation's covariance:
//!
//! * K¹ = σ_w²/d·X̃X̃ᵀ + σ_b², K^{l+1} = σ_w²·κ(K^l) + σ_b²; the last is the readout's.
//! * For dL = Σ_ij G_ij dK_ij, backwards: ∂L/∂ln σ_b = 2σ_b²·ΣG; ∂L/∂ln σ_w = 2Σ G∘(K^{l+1} − σ_b²); G ← σ_w²·G∘∂κ/∂k, and what moves a
//!   variance is added to the diagonal; ∂L/∂ln s_k = 2σ_w²/d·x̃_kᵀGx̃_k.
//!
//! **Cost**, beside n²d operations each way: 20 to 60 for a pair and an activation forwards, twice as many back (tanh thousands). 8n²
//! bytes a layer.

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

/// What [`KernelByScales::pull_back`] takes from the way forwards.
#[derive(Debug)]
pub struct KernelPass {
    scales: PriorScales,
    /// n × d.
    scaled: Vec<f64>,
    /// K of each layer, n × n, of which the lower halves count.
    kernels: Vec<Vec<f64>>,
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

impl KernelPass {
    /// The last kernel, n × n, of which the lower half counts.
    pub fn kernel(&self) -> &[f64] {
        self.kernels.last().map_or(&[], Vec::as_slice)
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

    /// The kernel between all pairs of `inputs` (n × d, finite) at the scales. Panics where their numbers do not agree.
    pub fn forward(
        &self,
        inputs: Matrix<'_, f64>,
        scales: &PriorScales,
        threads: usize,
    ) -> KernelPass {
        let n = inputs.nrows();
        let threads = worth(threads, n);
        assert_eq!(inputs.ncols(), self.inputs, "inputs");
        assert_eq!(scales.inputs.len(), self.inputs, "scales of inputs");
        assert_eq!(scales.layers.len(), self.activations.len() + 1, "layers");
        let columns = inputs.col_iter().zip(&scales.inputs);
        let scaled: Vec<f64> = columns
            .flat_map(|(column, &scale)| column.iter().map(move |x| scale * x))
            .collect();
        let mut first = vec![0.0; n * n];
        let all = matrix(&scaled, n, self.inputs);
        gram::products(&mut first, all, all, true, threads);
        let [mut weight, mut bias] = scales.layers[0].squares();
        weight /= self.inputs as f64;
        let mut kernels: Vec<Vec<f64>> = Vec::with_capacity(scales.layers.len());
        let mut below = first;
        for layer in 0..scales.layers.len() {
            if layer > 0 {
                [weight, bias] = scales.layers[layer].squares();
                below = self.activated(layer - 1, &kernels[layer - 1], n, threads);
            }
            share(
                vec![(); threads],
                below.chunks_mut(n.max(1)),
                |(), column| {
                    for k in column {
                        *k = weight * *k + bias;
                    }
                },
            );
            kernels.push(std::mem::take(&mut below));
        }
        KernelPass {
            scales: scales.clone(),
            scaled,
            kernels,
        }
    }

    /// κ of a layer's kernel.
    fn activated(&self, layer: usize, kernel: &[f64], n: usize, threads: usize) -> Vec<f64> {
        let mut mapped = kernel.to_vec();
        let Some(function) = self.activations[layer] else {
            return mapped;
        };
        let variances: Vec<f64> = (0..n).map(|i| kernel[i * (n + 1)]).collect();
        let columns = mapped.chunks_mut(n.max(1)).enumerate();
        share(
            vec![vec![0.0; n]; threads],
            columns,
            |second, (j, column)| {
                second.fill(variances[j]);
                map_covariances(
                    function,
                    &mut column[j..],
                    &mut [],
                    &variances[j..],
                    &second[j..],
                );
            },
        );
        mapped
    }

    /// ∂L/∂ of the logarithm of every scale, where dL = Σ_ij G_ij dK_ij over all pairs with a symmetric G, of which the lower half of
    /// `cotangent` (n × n) is read; it is overwritten.
    pub fn pull_back(
        &self,
        pass: &KernelPass,
        cotangent: &mut [f64],
        threads: usize,
    ) -> PriorScales {
        let n = pass.kernels[0].len().isqrt();
        let threads = worth(threads, n);
        let mut layers = pass.scales.layers.clone();
        // pairs are met once: the others count twice, and zeros above the diagonal
        for (j, column) in cotangent.chunks_mut(n.max(1)).enumerate() {
            column[..j].fill(0.0);
            column[j + 1..].iter_mut().for_each(|g| *g *= 2.0);
        }
        for layer in (0..layers.len()).rev() {
            let [weight, bias] = pass.scales.layers[layer].squares();
            let mut sums = vec![[0.0; 2]; n];
            let columns = cotangent.chunks(n.max(1)).zip(&mut sums).enumerate();
            share(vec![(); threads], columns, |(), (j, (column, sums))| {
                let kernel = &pass.kernels[layer][j * n..(j + 1) * n];
                *sums = [column[j..].iter().sum(), dot(&column[j..], &kernel[j..])];
            });
            let [all, with_kernel] = sums.iter().fold([0.0; 2], |total, own| {
                [total[0] + own[0], total[1] + own[1]]
            });
            layers[layer] = LayerScale {
                weight: 2.0 * (with_kernel - bias * all),
                bias: 2.0 * bias * all,
            };
            if layer > 0 {
                let below = &pass.kernels[layer - 1];
                self.through_activation(layer - 1, below, cotangent, weight, threads);
            }
        }
        let [weight, _] = pass.scales.layers[0].squares();
        let inputs = self.by_inputs(pass, cotangent, weight / self.inputs as f64);
        PriorScales { inputs, layers }
    }

    /// cotangent ← that by the layer's K, from that by κ times `weight`.
    fn through_activation(
        &self,
        layer: usize,
        kernel: &[f64],
        cotangent: &mut [f64],
        weight: f64,
        threads: usize,
    ) {
        let n = kernel.len().isqrt();
        let Some(function) = self.activations[layer] else {
            cotangent.iter_mut().for_each(|g| *g *= weight);
            return;
        };
        let variances: Vec<f64> = (0..n).map(|i| kernel[i * (n + 1)]).collect();
        // what each column does to the variances of its rows, and to its own
        let mut of_rows = vec![0.0; n * n];
        let mut of_variances = vec![0.0; n];
        let columns = cotangent.chunks_mut(n.max(1));
        let columns = columns.zip(of_rows.chunks_mut(n.max(1)));
        let columns = columns.zip(&mut of_variances).enumerate();
        let work = vec![[vec![0.0; n], vec![0.0; n]]; threads.max(1)];
        share(work, columns, |[by_k, by_second], (j, task)| {
            let ((column, by_first), of_variance) = task;
            let (column, by_first) = (&mut column[j..], &mut by_first[j..]);
            let slopes = [&mut by_k[j..], &mut *by_first, &mut by_second[j..]];
            let kernel = &kernel[j * n + j..(j + 1) * n];
            covariance_slopes(function, kernel, &variances[j..], variances[j], slopes);
            for g in column.iter_mut() {
                *g *= weight;
            }
            *of_variance = dot(column, &by_second[j..]);
            for ((g, by_k), by_first) in column.iter_mut().zip(&by_k[j..]).zip(by_first) {
                *by_first *= *g;
                *g *= by_k;
            }
        });
        for (j, of_rows) in of_rows.chunks(n.max(1)).enumerate() {
            add_scaled(&mut of_variances[j..], 1.0, &of_rows[j..]);
        }
        for (i, of_variance) in of_variances.into_iter().enumerate() {
            cotangent[i * (n + 1)] += of_variance;
        }
    }

    /// 2·weight·x̃_kᵀGx̃_k for every input.
    fn by_inputs(&self, pass: &KernelPass, cotangent: &[f64], weight: f64) -> Vec<f64> {
        let n = pass.kernels[0].len().isqrt();
        let mut product = vec![0.0; n * self.inputs];
        multiply(
            matrix_mut(&mut product, n, self.inputs),
            false,
            2.0 * weight,
            matrix(cotangent, n, n),
            matrix(&pass.scaled, n, self.inputs),
        );
        let columns = product.chunks(n.max(1)).zip(pass.scaled.chunks(n.max(1)));
        columns
            .map(|(product, scaled)| dot(product, scaled))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{InfiniteNetwork, Kinds};
    use super::*;
    use crate::compute::{Purpose, Stream};

    const ROWS: usize = 9;

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
        let pass = by.forward(matrix(x, ROWS, 4), scales, 2);
        let kernel = pass.kernel();
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
        let pass = by.forward(matrix(&x, ROWS, 4), &scales, 1);
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
                assert!((pass.kernel()[at] - expected.nngp[at]).abs() < 1e-13);
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
            let pass = by.forward(matrix(&x, ROWS, 4), &scales, 1);
            let found = by.pull_back(&pass, &mut g.clone(), 3);
            assert_eq!(found, by.pull_back(&pass, &mut g.clone(), 1));
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
}
