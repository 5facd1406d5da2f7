//! State dicts of residual networks, against their forward pass written out as PyTorch has it: planes, and zeros around them.

use std::collections::BTreeMap;

use reprior::network::layer::{Branch, Combination, Layer, Padding, Parallel};
use reprior::network::named::NamedNetwork;
use reprior::network::{Activation, Composition, LayerScale};
use reprior_io::weights::WeightsError;
use safetensors::tensor::Dtype;

use super::networks::{
    Named, SCALE, WITHOUT_BIAS, activation, convolution, dense, file, network, normalisation,
    outputs, read, state, values, window,
};

/// Channels, height and width.
type Planes = (Vec<f64>, [usize; 3]);

struct Torch(BTreeMap<String, (Vec<usize>, Vec<f64>)>);

impl Torch {
    fn new(tensors: &[Named]) -> Self {
        let own = tensors.iter().cloned();
        Self(
            own.map(|(name, shape, values)| (name, (shape, values)))
                .collect(),
        )
    }

    /// `Conv2d(…, stride, padding=size // 2)`.
    fn convolve(&self, name: &str, x: &Planes, stride: usize) -> Planes {
        let (shape, weight) = &self.0[&format!("{name}.weight")];
        let bias = self.0.get(&format!("{name}.bias"));
        let [units, channels, size] = [shape[0], shape[1], shape[2]];
        let [_, height, width] = x.1;
        let after = |length: usize| (length + 2 * (size / 2) - size) / stride + 1;
        let (rows, columns) = (after(height), after(width));
        let mut out = Vec::new();
        for unit in 0..units {
            for row in 0..rows {
                for column in 0..columns {
                    let mut sum = bias.map_or(0.0, |(_, bias)| bias[unit]);
                    for channel in 0..channels {
                        for (i, j) in (0..size).flat_map(|i| (0..size).map(move |j| (i, j))) {
                            let y = (row * stride + i).wrapping_sub(size / 2);
                            let z = (column * stride + j).wrapping_sub(size / 2);
                            if y < height && z < width {
                                let at = ((unit * channels + channel) * size + i) * size + j;
                                sum += weight[at] * x.0[(channel * height + y) * width + z];
                            }
                        }
                    }
                    out.push(sum);
                }
            }
        }
        (out, [units, rows, columns])
    }

    /// `BatchNorm2d` in `eval` mode.
    fn normalise(&self, name: &str, mut x: Planes) -> Planes {
        let of = |own: &str| &self.0[&format!("{name}.{own}")].1;
        let pixels = x.1[1] * x.1[2];
        for (channel, plane) in x.0.chunks_exact_mut(pixels).enumerate() {
            for value in plane {
                let unit = (*value - of("running_mean")[channel])
                    / (of("running_var")[channel] + 1e-5).sqrt();
                *value = of("weight")[channel] * unit + of("bias")[channel];
            }
        }
        x
    }

    /// The mean of each plane, and `Linear`.
    fn readout(&self, name: &str, x: &Planes) -> Vec<f64> {
        let pixels = x.1[1] * x.1[2];
        let means: Vec<f64> =
            x.0.chunks_exact(pixels)
                .map(|plane| plane.iter().sum::<f64>() / pixels as f64)
                .collect();
        let weight = &self.0[&format!("{name}.weight")].1;
        let bias = &self.0[&format!("{name}.bias")].1;
        let rows = weight.chunks_exact(means.len()).zip(bias);
        rows.map(|(row, bias)| bias + row.iter().zip(&means).map(|(w, x)| w * x).sum::<f64>())
            .collect()
    }
}

fn relu(mut x: Planes) -> Planes {
    x.0.iter_mut().for_each(|value| *value = value.max(0.0));
    x
}

fn sum(mut x: Planes, other: &Planes) -> Planes {
    x.0.iter_mut().zip(&other.0).for_each(|(x, y)| *x += y);
    x
}

/// The two inputs that `outputs` has.
fn inputs(network: &Composition) -> [Planes; 2] {
    let shape = network.input;
    let all = values(40, 2 * shape.features());
    [0, 1].map(|sample| {
        let own = &all[sample * shape.features()..(sample + 1) * shape.features()];
        (own.to_vec(), [shape.channels, shape.height, shape.width])
    })
}

#[track_caller]
fn assert_outputs(
    network: &Composition,
    tensors: &[Named],
    forward: impl Fn(&Torch, Planes) -> Vec<f64>,
) {
    let torch = Torch::new(tensors);
    let expected: Vec<f64> = inputs(network)
        .into_iter()
        .flat_map(|x| forward(&torch, x))
        .collect();
    assert!(
        expected.iter().any(|value| value.abs() > 1e-3),
        "{expected:?}"
    );
    let standard = network.in_standard_parametrisation().unwrap();
    for network in [network, &standard] {
        let (filled, parameters) = read(&file(tensors, Dtype::F64), network).unwrap();
        let found = outputs(&filled, &parameters);
        for (found, expected) in found.iter().zip(&expected) {
            let error = (found - expected).abs();
            assert!(error < 1e-10 * (1.0 + expected.abs()), "{found} {expected}");
        }
    }
}

/// Tensors of `resnet-small` with 3 input channels and 4 classes, by the names that `names` gives to the stem, to part `part` of
/// the branch of a block, to a shortcut and to the head.
fn small(names: [&dyn Fn(usize, usize) -> String; 4]) -> Vec<Named> {
    let mut shapes: Vec<(String, Vec<usize>)> = Vec::new();
    let [stem, branch, shortcut, head] = names;
    let normalised = |shapes: &mut Vec<(String, Vec<usize>)>, name: String, channels: usize| {
        for own in ["weight", "bias", "running_mean", "running_var"] {
            shapes.push((format!("{name}.{own}"), vec![channels]));
        }
    };
    shapes.push((format!("{}.weight", stem(0, 0)), vec![16, 3, 3, 3]));
    normalised(&mut shapes, stem(0, 1), 16);
    for block in 0..9 {
        let channels = 16 << (block / 3);
        let is_strided = block == 3 || block == 6;
        let inputs = if is_strided { channels / 2 } else { channels };
        for (part, inputs) in [(0, inputs), (1, channels)] {
            let name = format!("{}.weight", branch(block, 2 * part));
            shapes.push((name, vec![channels, inputs, 3, 3]));
            normalised(&mut shapes, branch(block, 2 * part + 1), channels);
        }
        if is_strided {
            let name = shortcut(block, 0);
            shapes.push((format!("{name}.weight"), vec![channels, inputs, 1, 1]));
            shapes.push((format!("{name}.bias"), vec![channels]));
        }
    }
    shapes.push((format!("{}.weight", head(0, 0)), vec![4, 64]));
    shapes.push((format!("{}.bias", head(0, 0)), vec![4]));
    let views: Vec<(&str, &[usize])> = shapes
        .iter()
        .map(|(name, shape)| (name.as_str(), shape.as_slice()))
        .collect();
    let mut tensors = state(&views);
    for (name, _, values) in &mut tensors {
        // numbers stay moderate through nineteen layers
        if name.ends_with("running_var") {
            values.iter_mut().for_each(|value| *value += 3.0);
        }
    }
    tensors
}

/// The forward pass of that.
fn forward(torch: &Torch, x: Planes, names: [&dyn Fn(usize, usize) -> String; 4]) -> Vec<f64> {
    let [stem, branch, shortcut, head] = names;
    let mut x = relu(torch.normalise(&stem(0, 1), torch.convolve(&stem(0, 0), &x, 1)));
    for block in 0..9 {
        let stride = if block == 3 || block == 6 { 2 } else { 1 };
        let first = torch.convolve(&branch(block, 0), &x, stride);
        let first = relu(torch.normalise(&branch(block, 1), first));
        let second = torch.convolve(&branch(block, 2), &first, 1);
        let second = torch.normalise(&branch(block, 3), second);
        let skipped = match stride {
            1 => x,
            _ => torch.convolve(&shortcut(block, 0), &x, 2),
        };
        x = relu(sum(second, &skipped));
    }
    torch.readout(&head(0, 0), &x)
}

fn resnet_small() -> Composition {
    let named: NamedNetwork = "resnet-small:padding=half".parse().unwrap();
    let scale = LayerScale::HIDDEN;
    named
        .network([8, 8, 3].into(), 4, Activation::Relu, scale)
        .unwrap()
}

#[test]
fn resnet_small_takes_torchvisions_names() {
    let stem = |_: usize, part: usize| ["conv1", "bn1"][part].to_owned();
    let branch = |block: usize, part: usize| {
        let own = ["conv1", "bn1", "conv2", "bn2"][part];
        format!("module.layer{}.{}.{own}", 1 + block / 3, block % 3)
    };
    for (shortcut, head) in [
        ("downsample.0", "fc"),
        ("shortcut.0", "linear"),
        ("shortcut", "fc"),
    ] {
        let shortcut =
            |block: usize, _: usize| format!("module.layer{}.0.{shortcut}", 1 + block / 3);
        let head = |_: usize, _: usize| head.to_owned();
        let names: [&dyn Fn(usize, usize) -> String; 4] = [&stem, &branch, &shortcut, &head];
        let tensors = small(names);
        assert_outputs(&resnet_small(), &tensors, |torch, x| {
            forward(torch, x, names)
        });
    }
}

#[test]
fn resnet_small_takes_the_names_of_lippes_tutorials() {
    let stem = |_: usize, part: usize| format!("input_net.{part}");
    let branch = |block: usize, part: usize| format!("blocks.{block}.net.{}", [0, 1, 3, 4][part]);
    let shortcut = |block: usize, _: usize| format!("blocks.{block}.downsample");
    let head = |_: usize, _: usize| "output_net.2".to_owned();
    let names: [&dyn Fn(usize, usize) -> String; 4] = [&stem, &branch, &shortcut, &head];
    let tensors = small(names);
    assert_outputs(&resnet_small(), &tensors, |torch, x| {
        forward(torch, x, names)
    });
}

fn block(branches: [Vec<Layer>; 2]) -> Layer {
    Layer::Parallel(Parallel {
        branches: branches
            .map(|layers| Branch {
                factor: 1.0,
                layers,
            })
            .into(),
        combination: Combination::Sum,
    })
}

/// Without normalisation but on one shortcut, which is the second branch here; eleven blocks, whose names are not in the order of
/// their letters.
fn plain() -> (Composition, Vec<Named>) {
    let same = |channels, scale| convolution(channels, window([3, 3], 1, Padding::Same), scale);
    let mut layers = vec![same(2, SCALE)];
    let mut shapes = vec![
        ("conv1.weight".to_owned(), vec![2, 1, 3, 3]),
        ("conv1.bias".to_owned(), vec![2]),
    ];
    for index in 0..11 {
        let branch = vec![
            activation(Activation::Relu),
            same(2, WITHOUT_BIAS),
            activation(Activation::Relu),
            same(2, WITHOUT_BIAS),
        ];
        let mut shortcut = Vec::new();
        for part in 1..=2 {
            shapes.push((
                format!("layer1.{index}.conv{part}.weight"),
                vec![2, 2, 3, 3],
            ));
        }
        if index == 0 {
            shortcut = vec![dense(2, WITHOUT_BIAS), normalisation()];
            shapes.push(("layer1.0.shortcut.0.weight".to_owned(), vec![2, 2, 1, 1]));
            for own in ["weight", "bias", "running_mean", "running_var"] {
                shapes.push((format!("layer1.0.shortcut.1.{own}"), vec![2]));
            }
        }
        layers.push(block([branch, shortcut]));
    }
    layers.push(Layer::GlobalAveragePool);
    shapes.push(("linear.weight".to_owned(), vec![3, 2]));
    shapes.push(("linear.bias".to_owned(), vec![3]));
    let views: Vec<(&str, &[usize])> = shapes
        .iter()
        .map(|(name, shape)| (name.as_str(), shape.as_slice()))
        .collect();
    (network([4, 5, 1], layers, 3), state(&views))
}

#[test]
fn blocks_of_other_networks_are_taken_in_the_order_of_their_numbers() {
    let (network, tensors) = plain();
    assert_outputs(&network, &tensors, |torch, x| {
        let mut x = torch.convolve("conv1", &x, 1);
        for index in 0..11 {
            let name = |own: &str| format!("layer1.{index}.{own}");
            let first = torch.convolve(&name("conv1"), &relu(x.clone()), 1);
            let second = torch.convolve(&name("conv2"), &relu(first), 1);
            if index == 0 {
                x = torch.normalise(
                    "layer1.0.shortcut.1",
                    torch.convolve("layer1.0.shortcut.0", &x, 1),
                );
            }
            x = sum(second, &x);
        }
        torch.readout("linear", &x)
    });
}

#[test]
fn what_does_not_fit_is_named_with_what_would() {
    let (network, tensors) = plain();
    let refused = |network: &Composition, change: &dyn Fn(&mut Vec<Named>)| {
        let mut tensors = tensors.clone();
        change(&mut tensors);
        let error = read(&file(&tensors, Dtype::F64), network).unwrap_err();
        error.to_string()
    };
    type Change = fn(&mut Vec<Named>);
    let changes: [(Change, &str); 7] = [
        (
            |tensors| tensors[3].1 = vec![2, 2, 1, 9],
            "layer1.0.conv2.weight is 2×2×1×9, layer 2.1.4 (convolution) needs 2×2×3×3",
        ),
        (
            |tensors| tensors.retain(|(name, _, _)| !name.contains("shortcut.1")),
            "the shortcut of block 1 has layer1.0.shortcut.0, the network's layer 2.2.1 (dense), layer 2.2.2 (batch-norm)",
        ),
        (
            |tensors| tensors.retain(|(name, _, _)| name != "layer1.4.conv1.weight"),
            "the branch of block 5 has layer1.4.conv2, the network's layer 6.1.2 (convolution), layer 6.1.4 (convolution)",
        ),
        (
            |tensors| tensors.retain(|(name, _, _)| !name.starts_with("layer1.10")),
            "it has 10 blocks, and the network 11 parallel layers with weights",
        ),
        (
            |tensors| tensors.retain(|(name, _, _)| !name.starts_with("linear")),
            "what follows the blocks has none with tensors, the network's readout",
        ),
        (
            |tensors| tensors[2].0 = "layer1.0.attention.weight".into(),
            "layer1.0.attention.weight is not the name of a tensor of a residual network, such as conv1",
        ),
        (
            |tensors| tensors.push(("other.conv1.weight".into(), vec![2], vec![0.0; 2])),
            "conv1 and other.conv1 have one place",
        ),
    ];
    for (change, expected) in changes {
        let message = refused(&network, &change);
        assert_eq!(message.lines().count(), 3, "{message}");
        assert!(message.contains(expected), "`{expected}`: {message}");
    }
    let mut nested = network.clone();
    let inner = block([Vec::new(), vec![dense(2, SCALE)]]);
    nested.layers[1] = block([vec![inner], Vec::new()]);
    let message = refused(&nested, &|_| {});
    assert!(
        message.contains("layer 2.1.1 of the network is parallel in a branch"),
        "{message}"
    );
    let mut between = network.clone();
    between.layers.insert(2, dense(2, SCALE));
    let error = read(&file(&tensors, Dtype::F64), &between).unwrap_err();
    assert!(matches!(error, WeightsError::Parallel(..)), "{error}");
    let expected = "layer 3 (dense) of the network has weights between parallel layers";
    assert!(error.to_string().contains(expected), "{error}");
}
