//! Against neural-tangents 0.6.5 in double precision (`tests/golden/kernels.json`, which says how they were made).

use reprior::compute::{Matrix, matrix};
use reprior::network::infinite::{InfiniteNetwork, Kinds};
use reprior::network::layer::{Layer, Padding};
use reprior::network::{Activation, Composition};
use serde_json::Value;

use super::networks::*;

const GOLDEN: &str = include_str!("../golden/kernels.json");

pub fn golden() -> Value {
    serde_json::from_str(GOLDEN).unwrap()
}

/// Numbers of nested lists, the last index fastest.
pub fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        value => vec![value.as_f64().unwrap()],
    }
}

/// The largest difference relative to the geometric mean of the diagonals or, between two sets, to the largest number.
///
/// On the diagonals of tangent kernels neural-tangents has half of the digits only: where variance and covariance differ in
/// the last place, their angle √(1 − c²) is 1e-8 instead of 0 ([`equal_inputs_are_fully_correlated`] has the exact values).
fn difference(ours: &[f64], columns: usize, golden: &Value, diagonal: f64) -> f64 {
    let golden = numbers(golden);
    assert_eq!(ours.len(), golden.len());
    let rows = ours.len() / columns;
    let largest = golden.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
    let mut worst = 0.0_f64;
    for i in 0..rows {
        for j in 0..columns {
            let (a, b) = (ours[j * rows + i], golden[i * columns + j]);
            let scale = if rows == columns {
                (golden[i * (rows + 1)] * golden[j * (rows + 1)]).sqrt()
            } else {
                largest
            };
            let allowance = if rows == columns && i == j {
                diagonal
            } else {
                1.0
            };
            worst = worst.max((a - b).abs() / scale / allowance);
        }
    }
    worst
}

fn compare(name: &str, network: &Composition, x: Matrix<'_, f64>, entry: &Value) -> f64 {
    let infinite = InfiniteNetwork::new(network).unwrap_or_else(|e| panic!("{name}: {e}"));
    let n = x.nrows();
    let kernels = infinite.kernels(x, Kinds::NngpAndNtk, 2).unwrap();
    let mut worst = difference(&kernels.nngp, n, &entry["nngp"], 1.0);
    worst = worst.max(difference(&kernels.ntk, n, &entry["ntk"], 1e4));
    let alone = infinite.kernels(x, Kinds::Nngp, 1).unwrap();
    assert_eq!(alone.nngp, kernels.nngp, "{name}");
    // the same numbers by the two other ways
    let cross = infinite.cross_kernels(x, x, Kinds::NngpAndNtk, 1).unwrap();
    let diagonals = infinite.diagonals(x, Kinds::NngpAndNtk, 1).unwrap();
    for (whole, cross, diagonal) in [
        (&kernels.nngp, &cross.nngp, &diagonals.nngp),
        (&kernels.ntk, &cross.ntk, &diagonals.ntk),
    ] {
        for j in 0..n {
            assert_eq!(whole[j * (n + 1)], diagonal[j], "{name}");
            for i in j..n {
                assert_eq!(whole[j * n + i], cross[j * n + i], "{name}");
            }
        }
    }
    assert!(worst < 1e-12, "{name}: {worst:e}");
    worst
}

#[test]
fn dense_networks() {
    let golden = golden();
    let x = numbers(&golden["inputs"]["X"]);
    let z = numbers(&golden["inputs"]["Z"]);
    let (x, z) = (matrix(&x, 3, 5).transpose(), matrix(&z, 3, 2).transpose());
    let mut count = 0;
    for entry in golden["dense"].as_array().unwrap() {
        let name = entry["activation"].as_str().unwrap();
        let hidden = entry["hidden_layers"].as_u64().unwrap() as usize;
        let network = match name {
            "Relu" => fully_connected(3, hidden, Activation::Relu),
            "Erf" => fully_connected(3, hidden, Activation::Erf),
            "Gelu" => fully_connected(3, hidden, Activation::Gelu),
            "Identity" => fully_connected(3, hidden, Activation::Identity),
            "LeakyRelu0.1" => fully_connected(3, hidden, Activation::LeakyRelu(0.1)),
            "Sin" => fully_connected(3, hidden, Activation::Sin),
            "none (linear model)" => network([1, 1, 3], vec![]),
            "resblock: Dense,[id + Relu,Dense],Relu,readout" => {
                let block = sum([vec![], vec![relu(), dense()]]);
                network([1, 1, 3], vec![dense(), block, relu()])
            }
            other => panic!("{other}?"),
        };
        compare(name, &network, x, entry);
        if let Some(golden) = entry.get("nngp_XZ") {
            let infinite = InfiniteNetwork::new(&network).unwrap();
            let cross = infinite.cross_kernels(x, z, Kinds::NngpAndNtk, 2).unwrap();
            let worst = difference(&cross.nngp, 2, golden, 1.0).max(difference(
                &cross.ntk,
                2,
                &entry["ntk_XZ"],
                1.0,
            ));
            assert!(worst < 1e-12, "{name}: {worst:e}");
        }
        count += 1;
    }
    assert_eq!(count, 14);
}

fn convolutional(name: &str) -> Vec<Layer> {
    let erf = || act(Activation::Erf);
    match name {
        "conv3 relu flatten readout" => vec![conv3(1), relu(), Layer::Flatten],
        "conv3 relu gap readout" => vec![conv3(1), relu(), gap()],
        "conv3 gelu gap readout" => vec![conv3(1), gelu(), gap()],
        "conv3 erf flatten readout" => vec![conv3(1), erf()],
        "conv3 erf gap readout" => vec![conv3(1), erf(), gap()],
        "conv3circular relu gap readout" => vec![conv(3, 1, Padding::Circular), relu(), gap()],
        "conv3s2 relu flatten readout" => vec![conv3(2), relu(), Layer::Flatten],
        "conv3s2 relu gap readout" => vec![conv3(2), relu(), gap()],
        "conv3 relu conv3 relu gap readout" => vec![conv3(1), relu(), conv3(1), relu(), gap()],
        "conv3 relu conv3s2 relu flatten readout" => vec![conv3(1), relu(), conv3(2), relu()],
        "conv3 relu conv3s2 relu gap readout" => vec![conv3(1), relu(), conv3(2), relu(), gap()],
        "conv3 relu avgpool2s2 conv3 relu gap readout" => {
            vec![conv3(1), relu(), pool(2, 2), conv3(1), relu(), gap()]
        }
        "conv3 relu avgpool2s1 flatten readout" => vec![conv3(1), relu(), pool(2, 1)],
        "conv3 relu avgpool4 flatten readout" => vec![conv3(1), relu(), pool(4, 1)],
        "conv3 flatten readout" => vec![conv3(1)],
        "conv3 gap readout" => vec![conv3(1), gap()],
        "conv1 relu gap readout" => vec![conv(1, 1, Padding::Same), relu(), gap()],
        "conv3 RES(relu,conv3,relu,conv3|id) gap readout" => {
            let branch = vec![relu(), conv3(1), relu(), conv3(1)];
            vec![conv3(1), sum([branch, vec![]]), gap()]
        }
        "conv3 RES(relu,conv3s2,relu,conv3|conv3s2) relu gap readout" => {
            let branch = vec![relu(), conv3(2), relu(), conv3(1)];
            vec![conv3(1), sum([branch, vec![conv3(2)]]), relu(), gap()]
        }
        "conv3 RES(gelu,conv3s2,gelu,conv3|conv3s2) RES(gelu,conv3,gelu,conv3|id) avgpool2s1 flatten readout" =>
        {
            let first = vec![gelu(), conv3(2), gelu(), conv3(1)];
            let second = vec![gelu(), conv3(1), gelu(), conv3(1)];
            vec![
                conv3(1),
                sum([first, vec![conv3(2)]]),
                sum([second, vec![]]),
                pool(2, 1),
            ]
        }
        other => panic!("{other}?"),
    }
}

#[test]
fn convolutional_networks() {
    let golden = golden();
    let images = numbers(&golden["inputs"]["IMG_NHWC"]);
    let images = matrix(&images, 32, 3).transpose();
    let entries = golden["conv"].as_array().unwrap();
    assert_eq!(entries.len(), 20);
    for entry in entries {
        let name = entry["net"].as_str().unwrap();
        compare(
            name,
            &network([4, 4, 2], convolutional(name)),
            images,
            entry,
        );
    }
}

/// With ReLU, K(x, x) ← σ_w²K/2 + σ_b² and Θ(x, x) ← σ_w²Θ/2 + K at every layer, exactly.
#[test]
fn equal_inputs_are_fully_correlated() {
    let (n, d) = (40, 7);
    let values = noise(n * d, 1);
    let x = matrix(&values, n, d);
    let infinite = InfiniteNetwork::new(&fully_connected(d, 3, Activation::Relu)).unwrap();
    let kernels = infinite.kernels(x, Kinds::NngpAndNtk, 2).unwrap();
    // and far from a set in which it was computed in another place
    let cross = infinite
        .cross_kernels(x.subrows(30, 10), x, Kinds::NngpAndNtk, 1)
        .unwrap();
    for i in 0..n {
        let square: f64 = (0..d).map(|k| x[(i, k)].powi(2)).sum();
        let mut k = 2.0 * square / d as f64 + 0.01;
        let mut theta = k;
        for layer in 0..3 {
            let weight = if layer == 2 { 1.0 } else { 2.0 };
            k = weight * 0.5 * k + 0.01;
            theta = weight * 0.5 * theta + k;
        }
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-14, "{a} {b}");
        close(kernels.nngp[i * (n + 1)], k);
        close(kernels.ntk[i * (n + 1)], theta);
        if i >= 30 {
            close(cross.ntk[i * 10 + i - 30], theta);
        }
    }
}
