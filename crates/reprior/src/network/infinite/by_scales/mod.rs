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

mod recursion;

use recursion::Recursion;

use crate::compute::Matrix;
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

impl KernelByScales {
    /// Of a fully connected network; `None` of any other.
    pub fn new(network: &Composition) -> Option<Self> {
        let hidden = network.as_fully_connected()?;
        Some(Self {
            inputs: network.inputs(),
            activations: hidden.iter().map(|layer| layer.activation).collect(),
        })
    }

    /// The kernel between all pairs of `inputs` (n × d, finite) at the scales, n × n, of which the lower half counts. Panics where their
    /// numbers do not agree.
    pub fn forward(
        &self,
        inputs: Matrix<'_, f64>,
        scales: &PriorScales,
        threads: usize,
    ) -> Vec<f64> {
        self.recursion(inputs, scales, threads).kernel()
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
        self.recursion(inputs, scales, threads).pull_back(cotangent)
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
        Recursion::new(&self.activations, inputs, scales, threads)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{InfiniteNetwork, Kinds};
    use super::recursion::{COLUMNS, FEWEST_SHARED};
    use super::*;
    use crate::compute::{Purpose, Stream, matrix};

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
