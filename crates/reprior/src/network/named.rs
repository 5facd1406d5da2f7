//! Networks by name: `fcn:256,256`, `lenet`, `resnet:20,width=128`, `resnet-small`.
//!
//! - `fcn:W1,W2,…`: the input flattened, then dense layers with the activation that is asked for.
//! - `lenet`: as in Roy et al. (2024), two 5 × 5 convolutions of 6 and 16 channels, each with tanh and a 2 × 2 maximum, then
//!   dense layers of 120 and 84 with tanh.
//! - `resnet:DEPTH,width=W`: the wide ResNet without normalisation of Hron et al. (2022), three groups of (DEPTH − 2)/6 blocks
//!   with W, 2W and 4W channels. Block k = 1, 2, … is h ← b_k·shortcut(h) + a_k·branch(h) with a_k² + b_k² = 1 and
//!   a_k² = 1/(k + c) (Shao et al. 2020). `scaling=progressive-one`, the default, has c = 1 as published; `progressive-depth`
//!   has c half the number of all blocks, and `uniform` a_k² = 1/2. The first block of every group has a convolution on its
//!   shortcut.
//! - `resnet-small`: three groups of three blocks with 16, 32 and 64 channels, ReLU and batch normalisation, as in Roy et al.
//!   (2024). Strided convolutions have [`Padding::Same`], those of JAX and TensorFlow; with `resnet-small:padding=half`
//!   [`Padding::Half`], PyTorch's.

use std::fmt;
use std::str::FromStr;

use super::layer::{
    BatchNorm, Branch, Combination, Convolution, Dense, Layer, Padding, Parallel, Shape,
    ShapeError, Window,
};
use super::{Activation, Composition, LayerScale};

/// Names as the command line knows them.
const NETWORKS: &str = "fcn:WIDTH,WIDTH,…, lenet, resnet:DEPTH,width=WIDTH[,scaling=uniform|progressive-one|progressive-depth], resnet-small[:padding=same|half]";

/// A network without its input and outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedNetwork {
    /// Fully connected, with these widths; none for a linear model.
    FullyConnected(Vec<usize>),
    /// LeNet with tanh.
    Lenet,
    /// A wide residual network without normalisation.
    Resnet {
        /// 6·blocks of a group + 2.
        depth: usize,
        /// Channels of the first group.
        width: usize,
        /// Of the residual branches.
        scaling: Scaling,
    },
    /// The small residual network with batch normalisation.
    ResnetSmall {
        /// Of its convolutions: `Same` or `Half`.
        padding: Padding,
    },
}

/// How the residual branches of [`NamedNetwork::Resnet`] are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scaling {
    /// All alike: a_k² = 1/2.
    Uniform,
    /// a_k² = 1/(k + 1), that of Hron et al. (2022).
    #[default]
    ProgressiveOne,
    /// a_k² = 1/(k + half the number of blocks).
    ProgressiveDepth,
}

impl Scaling {
    /// Factors of the branch and the shortcut of block `k` (from 1) of `blocks`.
    fn factors(self, k: usize, blocks: usize) -> [f64; 2] {
        let square = match self {
            Self::Uniform => 0.5,
            Self::ProgressiveOne => 1.0 / (k as f64 + 1.0),
            Self::ProgressiveDepth => 1.0 / (k as f64 + 0.5 * blocks as f64),
        };
        [square.sqrt(), (1.0 - square).sqrt()]
    }
}

impl fmt::Display for Scaling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uniform => "uniform",
            Self::ProgressiveOne => "progressive-one",
            Self::ProgressiveDepth => "progressive-depth",
        })
    }
}

/// The name with every default written out, which [`FromStr`] reads back.
impl fmt::Display for NamedNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FullyConnected(widths) => {
                let widths: Vec<String> = widths.iter().map(usize::to_string).collect();
                write!(f, "fcn:{}", widths.join(","))
            }
            Self::Lenet => f.write_str("lenet"),
            Self::Resnet {
                depth,
                width,
                scaling,
            } => write!(f, "resnet:{depth},width={width},scaling={scaling}"),
            Self::ResnetSmall {
                padding: Padding::Half,
            } => f.write_str("resnet-small:padding=half"),
            Self::ResnetSmall { .. } => f.write_str("resnet-small"),
        }
    }
}

impl FromStr for Scaling {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "uniform" => Ok(Self::Uniform),
            "progressive-one" => Ok(Self::ProgressiveOne),
            "progressive-depth" => Ok(Self::ProgressiveDepth),
            _ => Err(format!(
                "unknown scaling `{text}`: use uniform, progressive-one or progressive-depth"
            )),
        }
    }
}

impl FromStr for NamedNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        match name {
            "fcn" => fully_connected(settings),
            "resnet" => resnet(settings),
            "lenet" if !settings.is_empty() => Err(format!(
                "network `{name}` has no settings: `{settings}` cannot be used"
            )),
            "lenet" => Ok(Self::Lenet),
            "resnet-small" => Ok(Self::ResnetSmall {
                padding: match settings {
                    "" | "padding=same" => Padding::Same,
                    "padding=half" => Padding::Half,
                    _ => {
                        return Err(format!(
                            "unknown setting `{settings}` of the network `resnet-small`: write resnet-small:padding=half, or nothing after its name"
                        ));
                    }
                },
            }),
            _ => Err(format!("unknown network `{text}`: use one of {NETWORKS}")),
        }
    }
}

fn count(text: &str, what: &str) -> Result<usize, String> {
    let number = text.trim().parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| format!("{what} is `{text}`: it must be a whole number, at least 1"))
}

fn fully_connected(settings: &str) -> Result<NamedNetwork, String> {
    let widths = settings.split(',').filter(|_| !settings.trim().is_empty());
    let widths = widths.map(|width| count(width, "a width of the network `fcn`"));
    Ok(NamedNetwork::FullyConnected(
        widths.collect::<Result<_, _>>()?,
    ))
}

fn resnet(settings: &str) -> Result<NamedNetwork, String> {
    const USAGE: &str = "write resnet:20,width=128,scaling=progressive-one";
    let (depth, others) = settings.split_once(',').unwrap_or((settings, ""));
    let depth =
        count(depth, "the depth of the network `resnet`").map_err(|e| format!("{e}; {USAGE}"))?;
    if depth < 8 || (depth - 2) % 6 > 0 {
        return Err(format!(
            "a resnet's depth is 6·blocks + 2 (8, 14, 20, …), not {depth}"
        ));
    }
    let (mut width, mut scaling) = (None, Scaling::default());
    for setting in others.split(',').filter(|setting| !setting.is_empty()) {
        match setting.split_once('=') {
            Some(("width", value)) => {
                width = Some(count(value, "the width of the network `resnet`")?)
            }
            Some(("scaling", value)) => scaling = value.parse()?,
            _ => {
                return Err(format!(
                    "unknown setting `{setting}` of the network `resnet`: {USAGE}"
                ));
            }
        }
    }
    let width = width.ok_or_else(|| format!("the network `resnet` needs a width: {USAGE}"))?;
    Ok(NamedNetwork::Resnet {
        depth,
        width,
        scaling,
    })
}

impl NamedNetwork {
    /// The network for one kind of input. `activation` and `scale` are those of hidden layers where the name leaves them open:
    /// in `fcn` both, in `resnet` the activation, and the scale of its branches.
    ///
    /// # Errors
    /// A layer that does not fit the input, as the windows of `lenet` do not fit images below 16 × 16.
    pub fn network(
        &self,
        input: Shape,
        outputs: usize,
        activation: Activation,
        scale: LayerScale,
    ) -> Result<Composition, ShapeError> {
        let layers = match self {
            Self::FullyConnected(widths) => {
                let hidden = widths.iter().flat_map(|&units| {
                    [Layer::Dense(Dense { units, scale }), function(activation)]
                });
                std::iter::once(Layer::Flatten).chain(hidden).collect()
            }
            Self::Lenet => lenet(scale),
            Self::Resnet {
                depth,
                width,
                scaling,
            } => wide([*depth, *width], *scaling, activation, scale),
            Self::ResnetSmall { padding } => small(*padding),
        };
        let network = Composition {
            input,
            layers,
            outputs,
            readout_scale: LayerScale::READOUT,
        };
        network.shapes()?;
        Ok(network)
    }
}

fn function(function: Activation) -> Layer {
    Layer::Activation { function }
}

fn convolution(
    size: usize,
    stride: usize,
    channels: usize,
    padding: Padding,
    scale: LayerScale,
) -> Layer {
    let window = Window {
        size: [size; 2],
        stride: [stride; 2],
        padding,
    };
    Layer::Convolution(Convolution {
        channels,
        window,
        scale,
    })
}

fn sum(branches: [(f64, Vec<Layer>); 2]) -> Layer {
    let branches = branches.map(|(factor, layers)| Branch { factor, layers });
    Layer::Parallel(Parallel {
        branches: branches.into(),
        combination: Combination::Sum,
    })
}

fn lenet(scale: LayerScale) -> Vec<Layer> {
    let halve = Layer::MaxPool(Window {
        size: [2; 2],
        stride: [2; 2],
        padding: Padding::Valid,
    });
    let mut layers = Vec::new();
    for channels in [6, 16] {
        let convolution = convolution(5, 1, channels, Padding::Valid, scale);
        layers.extend([convolution, function(Activation::Tanh), halve.clone()]);
    }
    layers.push(Layer::Flatten);
    for units in [120, 84] {
        layers.extend([
            Layer::Dense(Dense { units, scale }),
            function(Activation::Tanh),
        ]);
    }
    layers
}

fn wide(
    [depth, width]: [usize; 2],
    scaling: Scaling,
    activation: Activation,
    scale: LayerScale,
) -> Vec<Layer> {
    let each = (depth - 2) / 6;
    // the stem and the shortcuts keep their input's variance, whatever the branches do
    let plain = LayerScale {
        weight: 1.0,
        bias: scale.bias,
    };
    let same = |stride, channels, scale| convolution(3, stride, channels, Padding::Same, scale);
    let mut layers = vec![same(1, width, plain)];
    for block in 0..3 * each {
        let (group, is_first) = (block / each, block % each == 0);
        let channels = width << group;
        let stride = if is_first && group > 0 { 2 } else { 1 };
        let branch = vec![
            function(activation),
            same(stride, channels, scale),
            function(activation),
            same(1, channels, scale),
        ];
        let shortcut = if is_first {
            vec![same(stride, channels, plain)]
        } else {
            Vec::new()
        };
        let [a, b] = scaling.factors(block + 1, 3 * each);
        layers.push(sum([(b, shortcut), (a, branch)]));
    }
    layers.push(Layer::GlobalAveragePool);
    layers
}

fn small(padding: Padding) -> Vec<Layer> {
    let norm = || {
        Layer::BatchNorm(BatchNorm {
            mean: Vec::new(),
            variance: Vec::new(),
            epsilon: BatchNorm::EPSILON,
        })
    };
    let without_bias = LayerScale {
        bias: 0.0,
        ..LayerScale::HIDDEN
    };
    let same = |size, stride, channels, scale| convolution(size, stride, channels, padding, scale);
    let relu = || function(Activation::Relu);
    let mut layers = vec![same(3, 1, 16, without_bias), norm(), relu()];
    for block in 0..9 {
        let (group, is_strided) = (block / 3, block == 3 || block == 6);
        let (channels, stride) = (16 << group, if is_strided { 2 } else { 1 });
        let branch = vec![
            same(3, stride, channels, without_bias),
            norm(),
            relu(),
            same(3, 1, channels, without_bias),
            norm(),
        ];
        let shortcut = if is_strided {
            vec![same(1, stride, channels, LayerScale::HIDDEN)]
        } else {
            Vec::new()
        };
        layers.extend([sum([(1.0, shortcut), (1.0, branch)]), relu()]);
    }
    layers.push(Layer::GlobalAveragePool);
    layers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Executor;

    const CIFAR: [usize; 3] = [32, 32, 3];

    fn network(name: &str, input: [usize; 3]) -> Composition {
        let named: NamedNetwork = name.parse().unwrap();
        let scale = LayerScale {
            weight: 2.2_f64.sqrt(),
            bias: 0.0,
        };
        named
            .network(Shape::from(input), 10, Activation::Gelu, scale)
            .unwrap()
    }

    fn parameters(network: &Composition) -> usize {
        let count = Executor::<f32>::new(network).unwrap().parameters();
        assert_eq!(count, network.parameters());
        count
    }

    #[test]
    fn parameters_are_as_many_as_published() {
        let lenet = NamedNetwork::Lenet;
        let lenet = lenet.network([28, 28, 1].into(), 10, Activation::Tanh, LayerScale::HIDDEN);
        assert_eq!(parameters(&lenet.unwrap()), 44_426);
        assert_eq!(parameters(&network("resnet-small", CIFAR)), 272_378);
        let torch = network("resnet-small:padding=half", CIFAR);
        assert_eq!(parameters(&torch), 272_378);
        // 3 + 1 is 27 → w, then by group: branches (w_in + w)·w·9 first and 2·w²·9 after it, shortcut w_in·w·9
        let w = 8;
        let group = |inputs: usize, w: usize| 9 * ((inputs + w) * w + inputs * w + 2 * 2 * w * w);
        let inner = 27 * w + group(w, w) + group(w, 2 * w) + group(2 * w, 4 * w);
        let count = parameters(&network("resnet:20,width=8", CIFAR));
        assert_eq!(count, inner + (4 * w + 1) * 10);
        let linear = network("fcn:", [1, 1, 3]);
        assert_eq!(parameters(&linear), 40);
        let wide = NamedNetwork::FullyConnected(vec![512]);
        let wide = wide.network(CIFAR.into(), 10, Activation::Gelu, LayerScale::HIDDEN);
        assert_eq!(parameters(&wide.unwrap()), 1_578_506);
    }

    #[test]
    fn residual_factors_keep_the_variance() {
        for (scaling, first, last) in [
            (Scaling::Uniform, 0.5, 0.5),
            (Scaling::ProgressiveOne, 1.0 / 2.0, 1.0 / 10.0),
            (Scaling::ProgressiveDepth, 1.0 / 5.5, 1.0 / 13.5),
        ] {
            for (k, square) in [(1, first), (9, last)] {
                let [a, b] = scaling.factors(k, 9);
                assert!((a * a - square).abs() < 1e-15 && (a * a + b * b - 1.0).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn the_published_scaling_is_the_default_and_names_read_back() {
        let published = "resnet:20,width=128,scaling=progressive-one";
        for (name, written) in [
            ("resnet:20,width=128", published),
            (published, published),
            (
                "resnet:8,width=2,scaling=uniform",
                "resnet:8,width=2,scaling=uniform",
            ),
            (
                "resnet:8,scaling=progressive-depth,width=2",
                "resnet:8,width=2,scaling=progressive-depth",
            ),
            ("fcn:4, 5", "fcn:4,5"),
            ("fcn:", "fcn:"),
            ("lenet", "lenet"),
            ("resnet-small", "resnet-small"),
            ("resnet-small:padding=same", "resnet-small"),
            ("resnet-small:padding=half", "resnet-small:padding=half"),
        ] {
            let named: NamedNetwork = name.parse().unwrap();
            assert_eq!(named.to_string(), written);
            assert_eq!(written.parse::<NamedNetwork>().unwrap(), named);
        }
    }

    #[test]
    fn wrong_names_say_what_is_right() {
        for (name, part) in [
            ("lenet5", "resnet-small"),
            ("lenet:3", "no settings"),
            ("resnet-small:padding=valid", "resnet-small:padding=half"),
            ("fcn:3,x", "whole number"),
            ("fcn:0", "at least 1"),
            ("resnet", "width=128"),
            ("resnet:20", "needs a width"),
            ("resnet:21,width=4", "6·blocks + 2"),
            ("resnet:20,wide=4", "unknown setting `wide=4`"),
            ("resnet:20,width=4,scaling=none", "progressive-depth"),
        ] {
            let error = name.parse::<NamedNetwork>().unwrap_err();
            assert!(error.contains(part), "{name}: {error}");
        }
        let small =
            NamedNetwork::Lenet.network([8, 8, 1].into(), 10, Activation::Tanh, LayerScale::HIDDEN);
        assert!(small.unwrap_err().to_string().contains("its window of 5×5"));
    }

    #[test]
    fn descriptions_round_trip() {
        for name in [
            "lenet",
            "resnet:14,width=3,scaling=progressive-one",
            "resnet-small",
            "fcn:4,5",
        ] {
            let network = network(name, CIFAR);
            let text = serde_json::to_string(&network).unwrap();
            assert_eq!(serde_json::from_str::<Composition>(&text).unwrap(), network);
        }
        let text = r#"{"input": [8, 8, 1], "outputs": 2, "layers": [
            {"type": "convolution", "channels": 4, "size": [3, 3], "padding": "circular"},
            {"type": "activation", "function": "gelu"},
            {"type": "parallel", "branches": [{}, {"factor": 0.5, "layers": [{"type": "dense", "units": 4}]}]},
            {"type": "global-average-pool"}]}"#;
        let network: Composition = serde_json::from_str(text).unwrap();
        assert_eq!(parameters(&network), 10 * 4 + 5 * 4 + 5 * 2);
        for (right, wrong) in [
            ("channels", "units"),
            ("padding", "pading"),
            ("branches", "arms"),
        ] {
            let error = serde_json::from_str::<Composition>(&text.replace(right, wrong));
            let error = error.unwrap_err().to_string();
            assert!(
                error.contains(&format!("unknown field `{wrong}`")),
                "{error}"
            );
        }
        let pool = r#"{"type": "max-pool", "size": [2, 2], "strides": [2, 2]}"#;
        let error = serde_json::from_str::<Layer>(pool).unwrap_err().to_string();
        assert!(error.contains("unknown field `strides`"), "{error}");
    }
}
