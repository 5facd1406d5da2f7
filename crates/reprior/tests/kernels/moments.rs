//! Second moments of activations: golden values, and quadrature in two dimensions.

use std::f64::consts::TAU;

use reprior::compute::matrix;
use reprior::network::infinite::{InfiniteNetwork, Kinds};
use reprior::network::layer::{Dense, Layer};
use reprior::network::{Activation, Composition, LayerScale};

use super::golden::{golden, numbers};
use super::networks::*;

/// On vectors of two numbers: pre-activations have covariance x·x', and readouts their second moments.
fn bare(function: Activation) -> Composition {
    let scale = |weight| LayerScale { weight, bias: 0.0 };
    let first = Layer::Dense(Dense {
        units: 1,
        scale: scale(2.0_f64.sqrt()),
    });
    let mut network = network([1, 1, 2], vec![first, act(function)]);
    network.readout_scale = scale(1.0);
    network
}

#[test]
fn golden_moments() {
    let golden = golden();
    // their covariances are those of the file
    let x = [
        [1.0, 0.0],
        [0.6, 0.8],
        [0.0, 2.0],
        [-1.0, 0.0],
        [1e-3, 0.0],
        [1.0, 1e-6],
    ];
    let (mut worst, mut worst_tangent) = (0.0_f64, 0.0_f64);
    let entries = golden["activation_moments"].as_array().unwrap();
    assert_eq!(entries.len(), 6);
    for entry in entries {
        let function = match entry["activation"].as_str().unwrap() {
            "Relu" => Activation::Relu,
            "Erf" => Activation::Erf,
            "Gelu" => Activation::Gelu,
            "Identity" => Activation::Identity,
            "LeakyRelu0.1" => Activation::LeakyRelu(0.1),
            "Sin" => Activation::Sin,
            other => panic!("{other}?"),
        };
        let covariances = numbers(&entry["cov"]);
        for (i, a) in x.iter().enumerate() {
            for (j, b) in x.iter().enumerate() {
                let product = a[0] * b[0] + a[1] * b[1];
                assert!((covariances[i * 6 + j] - product).abs() < 1e-15);
            }
        }
        let infinite = InfiniteNetwork::new(&bare(function)).unwrap();
        let x = matrix(x.as_flattened(), 2, 6).transpose();
        let kernels = infinite.kernels(x, Kinds::NngpAndNtk, 1).unwrap();
        let moments = numbers(&entry["E_aa"]);
        let tangent = numbers(&entry["ntk = E_aa + cov*E_a'a'"]);
        for at in 0..36 {
            let scale = (moments[at / 6 * 7] * moments[at % 6 * 7]).sqrt();
            let error = (kernels.nngp[at] - moments[at]).abs() / scale;
            worst = worst.max(error);
            let error = (kernels.ntk[at] - tangent[at]).abs() / scale;
            // where inputs are all but parallel neural-tangents has half of the digits of an angle of 0 or π
            let is_near = |i: usize| i != 1 && i != 2;
            let near = is_near(at / 6) && is_near(at % 6) || at / 6 == at % 6;
            worst_tangent = worst_tangent.max(if near { error * 1e-4 } else { error });
        }
    }
    assert!(worst < 1e-11, "{worst:e}");
    assert!(worst_tangent < 1e-11, "{worst_tangent:e}");
}

/// E[f(u)f(v)] and E[f'(u)f'(v)] by the trapezoidal rule on ±9 standard deviations: errors fall faster than any power of
/// the step.
fn quadrature(function: Activation, [q, r, k]: [f64; 3], step: f64) -> [f64; 2] {
    let count = (9.0 / step) as i32;
    let points: Vec<f64> = (-count..=count).map(|i| f64::from(i) * step).collect();
    let weight = |z: f64| step * (-0.5 * z * z).exp() / TAU.sqrt();
    let evaluate = |x: Vec<f64>| {
        let (mut derivatives, mut values) = (x.clone(), x);
        function.apply_with_derivative(&mut derivatives, &mut values);
        (values, derivatives)
    };
    let (u, du) = evaluate(points.iter().map(|z| q.sqrt() * z).collect());
    let (slope, rest) = (k / q.sqrt(), (r - k * k / q).max(0.0).sqrt());
    let mut sums = [0.0; 2];
    for (i, &z) in points.iter().enumerate() {
        let (v, dv) = evaluate(points.iter().map(|w| slope * z + rest * w).collect());
        let mean = |v: &[f64]| {
            v.iter()
                .zip(&points)
                .map(|(v, &w)| v * weight(w))
                .sum::<f64>()
        };
        sums[0] += weight(z) * u[i] * mean(&v);
        sums[1] += weight(z) * du[i] * mean(&dv);
    }
    sums
}

#[test]
fn quadrature_agrees() {
    let cases: [[f64; 3]; 6] = [
        [1.0, 1.0, 0.3],
        [0.04, 2.0, -0.2],
        [3.0, 5.0, 3.8],
        [2.0, 2.0, 2.0],
        [2.0, 0.5, -1.0],
        [1.7, 30.0, 4.0],
    ];
    for (function, tolerance) in [
        (Activation::Erf, 1e-13),
        (Activation::Gelu, 1e-13),
        (Activation::Sin, 1e-13),
        (Activation::Identity, 1e-13),
        (Activation::Tanh, 3e-10),
    ] {
        let infinite = InfiniteNetwork::new(&bare(function)).unwrap();
        for [q, r, k] in cases {
            let second = [k / q.sqrt(), (r - k * k / q).max(0.0).sqrt()];
            let x = [[q.sqrt(), 0.0], second];
            let x = matrix(x.as_flattened(), 2, 2).transpose();
            let kernels = infinite.kernels(x, Kinds::NngpAndNtk, 1).unwrap();
            let [value, slope] = quadrature(function, [q, r, k], 0.04);
            let scale = (kernels.nngp[0] * kernels.nngp[3]).sqrt();
            let error = (kernels.nngp[1] - value).abs() / scale;
            assert!(error < tolerance, "{function} {q} {r} {k}: {error:e}");
            let tangent = value + k * slope;
            // an angle of 1e-8 where inputs are parallel
            let allowance = if k * k == q * r { 1e-7 } else { tolerance };
            let error = (kernels.ntk[1] - tangent).abs() / (kernels.ntk[0] * kernels.ntk[3]).sqrt();
            assert!(error < allowance, "{function}' {q} {r} {k}: {error:e}");
        }
    }
}
