//! What does not fit, or is no file of weights.

use proptest::prelude::*;
use reprior::network::layer::{Branch, Layer, Padding, Parallel};
use reprior::network::{Activation, Composition};
use reprior_io::weights::{WeightsError, read_state_dict};
use safetensors::tensor::Dtype;

use super::networks::{
    Files, Named, SCALE, WITHOUT_BIAS, activation, convolution, convolutional, dense, file,
    normalised, perceptron, read, window,
};

/// What a file with changed tensors is refused with.
fn refused(network: &Composition, tensors: &[Named], change: impl Fn(&mut Vec<Named>)) -> String {
    let mut tensors = tensors.to_vec();
    change(&mut tensors);
    read(&file(&tensors, Dtype::F64), network)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_file_that_does_not_fit_is_refused_with_both_lists_and_the_first_difference() {
    let (network, tensors, _) = convolutional();
    type Change = fn(&mut Vec<Named>);
    let changes: [(Change, &str); 8] = [
        (
            |tensors| tensors.truncate(6),
            "it has 3 modules with tensors for 4 layers: nothing is left for readout",
        ),
        (
            |tensors| tensors.push(("9.weight".into(), vec![3], vec![0.0; 3])),
            "it has 5 modules with tensors for 4 layers: nothing takes 9",
        ),
        (
            |tensors| tensors[2].1 = vec![2, 2, 2, 3],
            "3.weight is 2×2×2×3, layer 4 (convolution) needs 2×3×2×2",
        ),
        (
            |tensors| tensors[1] = ("0.bias".into(), vec![1, 3], vec![0.0; 3]),
            "0.bias is 1×3, layer 1 (convolution) needs 3",
        ),
        (
            |tensors| tensors[4].0 = "6.weight_v".into(),
            "6.weight_v is not the name of a tensor of nn.Sequential",
        ),
        (
            |tensors| tensors[6].0 = "head.8.weight".into(),
            "belong to two sequences",
        ),
        (
            |tensors| tensors[4].0 = "6.running_mean".into(),
            "6 is batch normalisation, layer 7 (dense) is not",
        ),
        (
            |tensors| tensors.remove(4).2.clear(),
            "6 has no weight, which layer 7 (dense) needs",
        ),
    ];
    for (change, expected) in changes {
        let message = refused(&network, &tensors, change);
        let lines: Vec<&str> = message.lines().collect();
        assert_eq!(lines.len(), 3, "{message}");
        assert!(lines[0].contains(expected), "{message}");
        assert!(
            lines[1].starts_with("the file has: 0.weight 3×2×2×3, "),
            "{message}"
        );
        assert_eq!(
            lines[2],
            "the network needs: layer 1 (convolution): weight 3×2×2×3, bias 3; \
             layer 4 (convolution): weight 2×3×2×2, bias 2; layer 7 (dense): weight 4×12, bias 4; readout: weight 3×4, bias 3"
        );
    }
    let (network, tensors, _) = normalised();
    let without = |tensors: &mut Vec<Named>| tensors.retain(|(name, _, _)| !name.contains("mean"));
    let message = refused(&network, &tensors, without);
    let expected = "1 has no running_mean, which layer 2 (batch-norm) needs";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn a_bias_without_a_scale_is_refused_with_the_way_out() {
    let (mut network, tensors, _) = perceptron();
    network.readout_scale = WITHOUT_BIAS;
    let message = refused(&network, &tensors, |_| {});
    for part in [
        "10 has a bias, readout has none",
        "σ_b above 0",
        "bias=False",
        "readout: weight 2×5, no bias",
    ] {
        assert!(message.contains(part), "`{part}` is missing: {message}");
    }
    // without one in the file either, the readout's row of biases is zeros
    let (_, found) = read(&file(&tensors[..4], Dtype::F64), &network).unwrap();
    assert_eq!([found[46], found[52]], [0.0; 2]);
    network.layers[0] = dense(4, WITHOUT_BIAS);
    let message = refused(&network, &tensors, |_| {});
    assert!(
        message.contains("0 has a bias, layer 1 (dense) has none"),
        "{message}"
    );
}

#[test]
fn numbers_and_types_that_weights_do_not_have_are_refused() {
    let (network, tensors, _) = normalised();
    for (tensor, at, value, expected) in [
        (0, 30, f64::NAN, "0.weight holds NaN at [1, 1, 1, 0]"),
        (6, 1, f64::INFINITY, "4.bias holds inf at [1]"),
        (4, 2, -0.5, "1.running_var holds -0.5 at [2]: variances"),
        (3, 0, f64::NEG_INFINITY, "1.running_mean holds -inf at [0]"),
        (12, 1, 1e308, "8.bias holds 1"),
    ] {
        let message = refused(&network, &tensors, |tensors| tensors[tensor].2[at] = value);
        assert!(message.contains(expected), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    let error = read(&file(&tensors, Dtype::I64), &network).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("0.weight has the type I64"), "{message}");
}

#[test]
fn what_is_no_such_file_or_network_is_refused() {
    let (mut network, tensors, _) = perceptron();
    let bytes = file(&tensors, Dtype::F32);
    let (files, path) = Files::of(&bytes);
    let missing = files.0.path().join("none");
    for path in [&missing, &files.0.path().to_path_buf()] {
        let error = read_state_dict(path, &network).unwrap_err();
        assert!(matches!(error, WeightsError::Io { .. }), "{error}");
    }
    for end in [0, 7, 8, 100, bytes.len() - 1] {
        let error = read(&bytes[..end], &network).unwrap_err();
        assert!(matches!(error, WeightsError::Damaged { .. }), "{error}");
    }
    let long = [&bytes[..], &[0]].concat();
    let error = read(&long, &network).unwrap_err();
    assert!(
        error.to_string().contains("its tensors end at byte"),
        "{error}"
    );
    network.layers[1] = Layer::Parallel(Parallel {
        branches: vec![Branch {
            factor: 1.0,
            layers: vec![],
        }],
        combination: Default::default(),
    });
    let error = read_state_dict(&path, &network).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("layer 2 of the network has not two branches"),
        "{error}"
    );
    // weights after it would be taken for those of other pixels, whether the branches have any or not
    let (mut flat, tensors, _) = convolutional();
    assert_eq!(flat.layers[5], Layer::Flatten);
    let branch = |layers: &[Layer]| Branch {
        factor: 1.0,
        layers: layers.to_vec(),
    };
    let layers = [Layer::Flatten, activation(Activation::Tanh)];
    flat.layers[5] = Layer::Parallel(Parallel {
        branches: vec![branch(&layers[..1]), branch(&layers)],
        combination: Default::default(),
    });
    let error = read(&file(&tensors, Dtype::F32), &flat).unwrap_err();
    assert!(
        error.to_string().contains("flattens an image in a branch"),
        "{error}"
    );
    network.layers[1] = convolution(2, window([2, 2], 1, Padding::Valid), SCALE);
    let error = read_state_dict(&path, &network).unwrap_err();
    assert!(matches!(error, WeightsError::Shape(_)), "{error}");
}

proptest! {
    /// Every place of the file with any byte, and every length: weights or an error of a few lines, never a panic.
    #[test]
    fn damaged_files_never_panic(
        changes in prop::collection::vec((0.0..1.0_f64, any::<u8>()), 0..4),
        end in 0.0..1.5_f64,
    ) {
        let (network, tensors, _) = normalised();
        let mut bytes = file(&tensors, Dtype::F16);
        for (place, byte) in changes {
            let place = (place * bytes.len() as f64) as usize;
            bytes[place] = byte;
        }
        let end = ((end * bytes.len() as f64) as usize).min(bytes.len());
        match read(&bytes[..end], &network) {
            Ok((_, parameters)) => prop_assert!(parameters.iter().all(|x| x.is_finite())),
            Err(error) => prop_assert!(error.to_string().lines().count() <= 3, "{error}"),
        }
    }
}
