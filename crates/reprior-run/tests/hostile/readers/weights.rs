//! Trained weights: the `state_dict` of a sequence of dense layers, of convolutions, of a residual network.

use std::io::Cursor;
use std::path::Path;
use std::sync::OnceLock;

use reprior::network::layer::{Layer, Shape};
use reprior::network::named::NamedNetwork;
use reprior::network::{Activation, Composition, LayerScale};
use reprior_io::weights::read_state_dict_bytes;
use serde::Deserialize;
use serde_json::Value;

/// What stands in headers.
pub const WORDS: &[&str] = &[
    "\"dtype\":\"F64\"",
    "\"F32\"",
    "\"F16\"",
    "\"BF16\"",
    "\"I64\"",
    "\"shape\":[2,4]",
    "\"data_offsets\":[0,8]",
    "0.weight",
    "2.bias",
    "running_var",
    "num_batches_tracked",
    "conv1.weight",
    "layer1.0.bn1.bias",
    "downsample.0",
    "fc.weight",
    "__metadata__",
];

/// The most bytes that a header may ask the file to have here.
const MOST: u64 = 1 << 16;

#[derive(Deserialize)]
struct Described {
    layers: Vec<Layer>,
}

const CONVOLUTIONAL: &str = r#"
layers = [
    { type = "convolution", channels = 2, size = [3, 3] },
    { type = "batch-norm", mean = [0.0, 0.0], variance = [1.0, 1.0] },
    { type = "activation", function = "relu" },
    { type = "average-pool", size = [2, 2] },
    { type = "flatten" },
    { type = "dense", units = 3 },
]
"#;

/// What the weights are to be of.
fn networks() -> &'static [Composition] {
    static NETWORKS: OnceLock<Vec<Composition>> = OnceLock::new();
    NETWORKS.get_or_init(|| {
        let scale = LayerScale {
            weight: 1.5,
            bias: 0.1,
        };
        let described: Described = toml::from_str(CONVOLUTIONAL).unwrap();
        let residual: NamedNetwork = "resnet:8,width=1".parse().unwrap();
        let shape = Shape::from([4, 4, 1]);
        vec![
            Composition::fully_connected(3, &[4], 2, Activation::Tanh),
            Composition {
                input: shape,
                layers: described.layers,
                outputs: 2,
                readout_scale: scale,
            },
            residual.network(shape, 2, Activation::Relu, scale).unwrap(),
        ]
    })
}

/// A byte that chooses the network, and whether the rest is a file or a header alone, which then gets its length and its tensors.
pub fn weights(bytes: &[u8]) {
    let Some((&choice, rest)) = bytes.split_first() else {
        return;
    };
    let whole = match choice >> 4 & 1 {
        0 => rest.to_vec(),
        _ => [
            &(rest.len() as u64).to_le_bytes()[..],
            rest,
            &vec![0; claimed(rest)],
        ]
        .concat(),
    };
    let network = &networks()[usize::from(choice & 15) % networks().len()];
    let path = Path::new("net.safetensors");
    if let Err(error) = read_state_dict_bytes(Cursor::new(whole), path, network) {
        // what does not fit is told in three lines
        let error = error.to_string();
        assert!(error.lines().count() <= 3, "{error}");
    }
}

/// Where the last tensor ends.
fn claimed(header: &[u8]) -> usize {
    let header: Option<Value> = serde_json::from_slice(header).ok();
    let tensors = header.as_ref().and_then(Value::as_object);
    let ends = tensors.into_iter().flat_map(|all| all.values());
    let end = ends.filter_map(|tensor| tensor.get("data_offsets")?.get(1)?.as_u64());
    end.max().unwrap_or(0).min(MOST) as usize
}
