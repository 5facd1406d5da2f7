//! Networks, files of their weights, and what PyTorch makes of them.

use std::io::Cursor;
use std::path::PathBuf;

use reprior::compute::kernels::matrix_mut;
use reprior::compute::matrix;
use reprior::network::layer::{BatchNorm, Convolution, Dense, Layer, Padding, Shape, Window};
use reprior::network::{Activation, Composition, Executor, LayerScale};
use reprior_io::weights::{WeightsError, read_state_dict, read_state_dict_bytes};
use safetensors::tensor::{Dtype, TensorView, serialize};
use tempfile::TempDir;

pub const SCALE: LayerScale = LayerScale {
    weight: 1.3,
    bias: 0.2,
};
pub const WITHOUT_BIAS: LayerScale = LayerScale {
    weight: 0.7,
    bias: 0.0,
};

/// Element by element, as above.
pub fn values(tensor: usize, count: usize) -> Vec<f64> {
    let value = |i: usize| {
        let number = (i * (2 * tensor + 5) + 3 * i * i + 7 * tensor) % 17;
        (number as f64 - 8.0) / 16.0
    };
    (0..count).map(value).collect()
}

pub type Named = (String, Vec<usize>, Vec<f64>);

/// A state_dict of tensors with these names and shapes.
pub fn state(tensors: &[(&str, &[usize])]) -> Vec<Named> {
    let of = |(index, (name, shape)): (usize, &(&str, &[usize]))| {
        let mut values = values(index + 1, shape.iter().product());
        if name.ends_with("running_var") {
            values.iter_mut().for_each(|value| *value += 1.0);
        }
        ((*name).to_owned(), shape.to_vec(), values)
    };
    tensors.iter().enumerate().map(of).collect()
}

fn encode(values: &[f64], dtype: Dtype) -> Vec<u8> {
    let encode = |&value: &f64| match dtype {
        Dtype::F64 => value.to_le_bytes().to_vec(),
        Dtype::F32 => (value as f32).to_le_bytes().to_vec(),
        Dtype::BF16 => (value as f32).to_le_bytes()[2..].to_vec(),
        // of zeros and normal numbers with few digits
        Dtype::F16 if value == 0.0 => vec![0, 0],
        Dtype::F16 => {
            let bits = (value as f32).to_bits();
            let exponent = (bits >> 23 & 255) + 15 - 127;
            let half = bits >> 31 << 15 | exponent << 10 | bits >> 13 & 1023;
            (half as u16).to_le_bytes().to_vec()
        }
        _ => (value as i64).to_le_bytes().to_vec(),
    };
    values.iter().flat_map(encode).collect()
}

pub fn file(tensors: &[Named], dtype: Dtype) -> Vec<u8> {
    let encoded = tensors
        .iter()
        .map(|(_, _, values)| encode(values, dtype))
        .collect::<Vec<_>>();
    let views = tensors.iter().zip(&encoded);
    let mut views: Vec<_> = views
        .map(|((name, shape, _), bytes)| {
            let view = TensorView::new(dtype, shape.clone(), bytes).unwrap();
            (name.clone(), view)
        })
        .collect();
    let batches = 7_i64.to_le_bytes();
    for (name, _, _) in tensors {
        if let Some(module) = name.strip_suffix("running_var") {
            let view = TensorView::new(Dtype::I64, vec![], &batches).unwrap();
            views.push((format!("{module}num_batches_tracked"), view));
        }
    }
    serialize(views, None).unwrap()
}

pub struct Files(pub TempDir);

impl Files {
    pub fn of(bytes: &[u8]) -> (Self, PathBuf) {
        let files = Self(tempfile::tempdir().unwrap());
        let path = files.0.path().join("net.safetensors");
        std::fs::write(&path, bytes).unwrap();
        (files, path)
    }
}

/// Reads a file with such bytes, from disk and from memory, which are one.
pub fn read(bytes: &[u8], network: &Composition) -> Result<(Composition, Vec<f64>), WeightsError> {
    let (_files, path) = Files::of(bytes);
    let from_disk = read_state_dict(&path, network);
    let from_memory = read_state_dict_bytes(Cursor::new(bytes), &path, network);
    assert_eq!(format!("{from_disk:?}"), format!("{from_memory:?}"));
    from_disk
}

/// Outputs for the two inputs, row by row.
pub fn outputs(network: &Composition, parameters: &[f64]) -> Vec<f64> {
    let shape = network.input;
    let features = shape.features();
    let planes = values(40, 2 * features);
    let mut inputs = vec![0.0; 2 * features];
    for sample in 0..2 {
        for pixel in 0..shape.pixels() {
            for channel in 0..shape.channels {
                inputs[(pixel * shape.channels + channel) * 2 + sample] =
                    planes[sample * features + channel * shape.pixels() + pixel];
            }
        }
    }
    let mut out = vec![0.0; 2 * network.outputs];
    let mut executor = Executor::new(network).unwrap();
    executor.outputs(
        parameters,
        matrix(&inputs, 2, features),
        matrix_mut(&mut out, 2, network.outputs),
    );
    let by_sample = |sample: usize| out.iter().skip(sample).step_by(2).copied();
    (0..2).flat_map(by_sample).collect()
}

pub fn dense(units: usize, scale: LayerScale) -> Layer {
    Layer::Dense(Dense { units, scale })
}

pub fn activation(function: Activation) -> Layer {
    Layer::Activation { function }
}

pub fn window(size: [usize; 2], stride: usize, padding: Padding) -> Window {
    Window {
        size,
        stride: [stride; 2],
        padding,
    }
}

pub fn convolution(channels: usize, window: Window, scale: LayerScale) -> Layer {
    Layer::Convolution(Convolution {
        channels,
        window,
        scale,
    })
}

pub fn normalisation() -> Layer {
    Layer::BatchNorm(BatchNorm {
        mean: vec![],
        variance: vec![],
        epsilon: BatchNorm::EPSILON,
    })
}

pub fn network(input: [usize; 3], layers: Vec<Layer>, outputs: usize) -> Composition {
    Composition {
        input: Shape::from(input),
        layers,
        outputs,
        readout_scale: SCALE,
    }
}

/// Linear(3, 4), Tanh, Linear(4, 5, bias=False), six Identity, GELU, Linear(5, 2).
pub fn perceptron() -> (Composition, Vec<Named>, [f64; 4]) {
    let layers = vec![
        dense(4, SCALE),
        activation(Activation::Tanh),
        dense(5, SCALE),
        activation(Activation::Gelu),
    ];
    let tensors = state(&[
        ("0.weight", &[4, 3]),
        ("0.bias", &[4]),
        ("2.weight", &[5, 4]),
        ("10.weight", &[2, 5]),
        ("10.bias", &[2]),
    ]);
    let outputs = [
        -0.4773360740463957,
        -0.4437465011120463,
        -0.4342073444884365,
        -0.3215366932137578,
    ];
    (network([1, 1, 3], layers, 2), tensors, outputs)
}

/// Conv2d(2, 3, (2, 3)), Tanh, MaxPool2d(2), Conv2d(3, 2, 2), ReLU, Flatten, Linear(12, 4), Tanh, Linear(4, 3) of images of
/// 7 × 10.
pub fn convolutional() -> (Composition, Vec<Named>, [f64; 6]) {
    let layers = vec![
        convolution(3, window([2, 3], 1, Padding::Valid), SCALE),
        activation(Activation::Tanh),
        Layer::MaxPool(window([2, 2], 2, Padding::Valid)),
        convolution(2, window([2, 2], 1, Padding::Valid), SCALE),
        activation(Activation::Relu),
        Layer::Flatten,
        dense(4, SCALE),
        activation(Activation::Tanh),
    ];
    let tensors = state(&[
        ("0.weight", &[3, 2, 2, 3]),
        ("0.bias", &[3]),
        ("3.weight", &[2, 3, 2, 2]),
        ("3.bias", &[2]),
        ("6.weight", &[4, 12]),
        ("6.bias", &[4]),
        ("8.weight", &[3, 4]),
        ("8.bias", &[3]),
    ]);
    let outputs = [
        -0.7654969520609987,
        -0.1658749855988918,
        -0.3581712666919232,
        -0.7795302603121639,
        -0.17623058712593853,
        -0.3205071203623794,
    ];
    (network([7, 10, 2], layers, 3), tensors, outputs)
}

/// Conv2d(2, 3, 3, padding=1, bias=False), BatchNorm2d(3), LeakyReLU(0.25), AvgPool2d(2), Conv2d(3, 2, 1), Flatten,
/// BatchNorm1d(12), Tanh, Linear(12, 2) of images of 4 × 6.
pub fn normalised() -> (Composition, Vec<Named>, [f64; 4]) {
    let layers = vec![
        convolution(3, window([3, 3], 1, Padding::Same), WITHOUT_BIAS),
        normalisation(),
        activation(Activation::LeakyRelu(0.25)),
        Layer::AveragePool(window([2, 2], 2, Padding::Valid)),
        dense(2, SCALE),
        Layer::Flatten,
        normalisation(),
        activation(Activation::Tanh),
    ];
    let tensors = state(&[
        ("0.weight", &[3, 2, 3, 3]),
        ("1.weight", &[3]),
        ("1.bias", &[3]),
        ("1.running_mean", &[3]),
        ("1.running_var", &[3]),
        ("4.weight", &[2, 3, 1, 1]),
        ("4.bias", &[2]),
        ("6.weight", &[12]),
        ("6.bias", &[12]),
        ("6.running_mean", &[12]),
        ("6.running_var", &[12]),
        ("8.weight", &[2, 12]),
        ("8.bias", &[2]),
    ]);
    let outputs = [
        0.1851151631534857,
        0.009406794398730517,
        0.18672611017027418,
        0.009149255452070959,
    ];
    (network([4, 6, 2], layers, 2), tensors, outputs)
}

pub fn networks() -> [(Composition, Vec<Named>, Vec<f64>); 3] {
    let (one, two, three) = (perceptron(), convolutional(), normalised());
    [
        (one.0, one.1, one.2.to_vec()),
        (two.0, two.1, two.2.to_vec()),
        (three.0, three.1, three.2.to_vec()),
    ]
}
