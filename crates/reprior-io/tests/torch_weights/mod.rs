//! Weights of PyTorch's: the same outputs as PyTorch's own; files that do not fit, or are damaged, are refused.
//!
//! All networks have as element i of their tensor number s (counted from 1 over those in a state_dict but
//! num_batches_tracked, numbers of modules ascending) ((i·(2s + 5) + 3i² + 7s) mod 17 − 8)/16, plus 1 in `running_var`, and
//! inputs with s = 40: exact in every type. Outputs are those of PyTorch 2.15 in double precision, in `eval` mode.

mod networks;
mod refused;
mod residual;

use networks::{convolutional, file, networks, normalised, outputs, perceptron, read};
use reprior::network::layer::{BatchNorm, Layer};
use safetensors::tensor::Dtype;

#[test]
fn outputs_are_those_of_pytorch() {
    for (network, tensors, expected) in networks() {
        let standard = network.in_standard_parametrisation().unwrap();
        for dtype in [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16] {
            let bytes = file(&tensors, dtype);
            for network in [&network, &standard] {
                let (filled, parameters) = read(&bytes, network).unwrap();
                let found = outputs(&filled, &parameters);
                for (found, expected) in found.iter().zip(&expected) {
                    assert!(
                        (found - expected).abs() < 1e-12,
                        "{dtype:?}: {found} {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_prefix_and_nested_sequences_are_understood() {
    let (network, tensors, _) = perceptron();
    let (_, plain) = read(&file(&tensors, Dtype::F64), &network).unwrap();
    let renamed = |rename: &dyn Fn(&str) -> String| {
        let renamed = tensors.iter().map(|(name, shape, values)| {
            let name = rename(name);
            (name, shape.clone(), values.clone())
        });
        read(&file(&renamed.collect::<Vec<_>>(), Dtype::F64), &network)
    };
    let (_, found) = renamed(&|name| format!("_orig_mod.net.{name}")).unwrap();
    assert_eq!(found, plain);
    // Sequential(Sequential(Linear, Tanh, Linear), ..., Linear)
    let nested = |name: &str| match name.strip_prefix("10") {
        Some(own) => format!("net.10{own}"),
        None => format!("net.0.{name}"),
    };
    assert_eq!(renamed(&nested).unwrap().1, plain);
}

#[test]
fn parameters_are_weights_over_the_scales_of_their_layers() {
    let (network, tensors, _) = perceptron();
    let (_, found) = read(&file(&tensors, Dtype::F64), &network).unwrap();
    // unit 1 of the first layer: row 1 of the weight, and its bias
    let (weight, bias) = (&tensors[0].2[3..6], tensors[1].2[1]);
    let factor = 1.3 / 3.0_f64.sqrt();
    for (found, weight) in found[4..7].iter().zip(weight) {
        assert!((found * factor - weight).abs() < 1e-15, "{found} {weight}");
    }
    assert!((found[7] * 0.2 - bias).abs() < 1e-15);
    // the second layer has no biases in the file
    assert!(found[16..41].iter().skip(4).step_by(5).all(|&b| b == 0.0));
}

#[test]
fn statistics_are_taken_over_and_an_affine_map_that_is_not_there_is_the_identity() {
    let (network, mut tensors, _) = normalised();
    tensors.retain(|(name, _, _)| name != "1.weight" && name != "1.bias");
    let (filled, parameters) = read(&file(&tensors, Dtype::F64), &network).unwrap();
    let Layer::BatchNorm(layer) = &filled.layers[1] else {
        panic!("{:?}", filled.layers[1])
    };
    assert_eq!(layer.mean, tensors[1].2);
    assert_eq!(layer.variance, tensors[2].2);
    assert_eq!(layer.epsilon, BatchNorm::EPSILON);
    assert_eq!(parameters[54..60], [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
}

/// What a description leaves out at its end the readout does by itself.
#[test]
fn an_image_that_the_readout_flattens_has_its_weights_in_the_same_places() {
    let (mut network, mut tensors, _) = convolutional();
    network.layers.truncate(6);
    assert_eq!(network.layers[5], Layer::Flatten);
    network.outputs = 4;
    tensors.truncate(6);
    let bytes = file(&tensors, Dtype::F32);
    let (_, flattened) = read(&bytes, &network).unwrap();
    network.layers.truncate(5);
    assert_eq!(read(&bytes, &network).unwrap().1, flattened);
    // the first unit: pixel after pixel here, channel after channel there
    let factor = 1.3 / 12.0_f64.sqrt();
    let (own, weight) = (&flattened[flattened.len() - 4 * 13..], &tensors[4].2);
    for (ours, theirs) in [(0, 0), (1, 6), (2, 1), (3, 7), (11, 11)] {
        assert!(
            (own[ours] * factor - weight[theirs]).abs() < 1e-15,
            "{ours}"
        );
    }
}
