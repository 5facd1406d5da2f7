//! The wide residual network as published (Hron et al. 2022, Section 4.2.2): its kernel in the limit of many channels, written
//! out for images of one pixel.
//!
//! Of one pixel a window of 3 × 3 sees nothing but zeros around it, and its scale counts all nine: a convolution multiplies
//! kernels by σ_w²/9. Blocks k = 1, 2, … are √(k/(k+1))·shortcut + √(1/(k+1))·branch, a branch is twice GELU and a
//! convolution of σ_w² = 2.2, σ_b = 0; the stem and the first shortcut of each group are convolutions with σ_w = 1.

use std::f64::consts::TAU;

use reprior::compute::matrix;
use reprior::network::infinite::{InfiniteNetwork, Kinds};
use reprior::network::layer::Shape;
use reprior::network::named::NamedNetwork;
use reprior::network::{Activation, LayerScale};

use super::networks::noise;

/// Second moments of two inputs: k₁₁, k₂₂, k₁₂.
type Moments = [f64; 3];

/// E[gelu(u) gelu(v)] of Gaussian (u, v) with these second moments, as in neural-tangents.
fn gelu([k11, k22, k12]: Moments) -> f64 {
    let (p, p1) = (k11 * k22, (1.0 + k11) * (1.0 + k22));
    let d = (p1 - k12 * k12).sqrt();
    ((k12 * k12 + p * d * d) / (p1 * d) + k12 * k12.atan2(d)) / TAU + k12 / 4.0
}

fn all(f: impl Fn(Moments) -> f64, [k11, k22, k12]: Moments) -> Moments {
    [f([k11; 3]), f([k22; 3]), f([k11, k22, k12])]
}

/// The kernel below the readout, `groups` of `blocks`, from x·x′/channels.
fn published(mut k: Moments, blocks: usize) -> Moments {
    let times = |factor: f64, k: Moments| k.map(|k| factor * k);
    k = times(1.0 / 9.0, k);
    for block in 1..=3 * blocks {
        let index = block as f64;
        let mut branch = k;
        for _ in 0..2 {
            branch = times(2.2 / 9.0, all(gelu, branch));
        }
        if block % blocks == 1 % blocks {
            k = times(1.0 / 9.0, k);
        }
        for (k, branch) in k.iter_mut().zip(branch) {
            *k = (index * *k + branch) / (index + 1.0);
        }
    }
    k
}

#[test]
fn the_residual_network_is_the_published_one() {
    const CHANNELS: usize = 3;
    // large, so that GELU is far from linear after divisions by nine
    let x: Vec<f64> = noise(2 * CHANNELS, 8).iter().map(|x| 20.0 * x).collect();
    let product = |i: usize, j: usize| {
        let row = |i: usize| &x[i * CHANNELS..][..CHANNELS];
        let products = row(i).iter().zip(row(j)).map(|(a, b)| a * b);
        products.sum::<f64>() / CHANNELS as f64
    };
    let scale = LayerScale {
        weight: 2.2_f64.sqrt(),
        bias: 0.0,
    };
    for (depth, blocks) in [(8, 1), (20, 3)] {
        let named: NamedNetwork = format!("resnet:{depth},width=4").parse().unwrap();
        let input = Shape::from([1, 1, CHANNELS]);
        let network = named.network(input, 1, Activation::Gelu, scale).unwrap();
        let inputs = matrix(&x, CHANNELS, 2).transpose();
        let infinite = InfiniteNetwork::new(&network).unwrap();
        let found = infinite.kernels(inputs, Kinds::Nngp, 1).unwrap().nngp;
        let below = published([product(0, 0), product(1, 1), product(0, 1)], blocks);
        let readout = LayerScale::READOUT;
        for (index, below) in [(0, below[0]), (3, below[1]), (1, below[2])] {
            let exact = readout.weight.powi(2) * below + readout.bias.powi(2);
            let found = found[index];
            assert!(
                (found / exact - 1.0).abs() < 1e-12,
                "depth {depth}, {index}: {found} {exact}"
            );
        }
    }
}
