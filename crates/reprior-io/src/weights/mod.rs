//! Weights trained elsewhere: the `state_dict` of PyTorch's `nn.Sequential`, or of a residual network, as a
//! [safetensors](https://github.com/huggingface/safetensors) file, for a network described here.
//!
//! Modules of a sequence with tensors, in the numeric order of their index (`0.weight` before `3.weight` before `10.weight`, with any one
//! prefix, as in `net.0.weight`), belong to the description's layers with parameters, in order; the last to its readout.
//! The file does not say what lies between them: activations, pooling, strides, padding and ε are the description's.
//!
//! | module | tensors | here |
//! |---|---|---|
//! | `Linear` | `weight` units × inputs, `bias` | dense layer or readout |
//! | `Conv2d` | `weight` channels × inputs × height × width, `bias` | convolution; with a window of one pixel also a dense layer of images |
//! | `BatchNorm1d`, `BatchNorm2d` | `weight`, `bias`, `running_mean`, `running_var` | batch normalisation |
//!
//! A network with parallel layers of two branches takes the tensors of a residual network. Names say which block a module is of,
//! whether of its branch or its shortcut, and which comes first:
//!
//! | | torchvision | Lippe's tutorials |
//! |---|---|---|
//! | before the blocks | `conv1`, `bn1` | `input_net.0`, `input_net.1` |
//! | the branch of a block | `layer2.0.conv1`, `layer2.0.bn1`, `layer2.0.conv2`, … | `blocks.3.net.0`, `blocks.3.net.1`, … |
//! | its shortcut | `layer2.0.downsample.0` or `layer2.0.shortcut.0`, … | `blocks.3.downsample` |
//! | after the blocks | `fc` or `linear` | `output_net.2` |
//!
//! Of the two branches here the one with fewer layers is the shortcut. Other names are refused: a file of safetensors keeps no order
//! that could tell two convolutions of one shape apart.
//!
//! A layer computes z = f·h·W + σ_b·b with f = σ_w/√fan-in, so that a weight w of the file is the parameter w/f, a bias b is
//! b/σ_b. Features of an image are ordered row, column, channel here and channel, row, column there: weights of
//! convolutions, and of what follows where an image is flattened, change places.
//!
//! Costs one pass over the file; memory: a tensor and all parameters, in double precision.

mod difference;
mod error;
mod file;
mod modules;
mod needs;
mod place;
mod residual;

use std::io::{Read, Seek};
use std::path::Path;

use reprior::network::Composition;

use difference::first_difference;
pub use error::WeightsError;
use file::TensorFile;
use modules::{in_order, modules};
use needs::{Need, needs};
use place::place;

/// Reads the weights of `network` from a file of PyTorch's.
///
/// Returns the network with the file's statistics in its layers of batch normalisation, and all of its parameters, the
/// readout's last, in the parametrisation of `network`: layer by layer a matrix of (fan-in + 1) × units, column-major. A
/// module without a bias has the bias 0 where the network has one.
///
/// # Errors
/// [`WeightsError`]: a file that cannot be read, is damaged, or holds what is no finite number; a network with parallel layers
/// that are no residual blocks, or whose layers do not fit; a file of other layers, with all tensors of both and the first that differs.
pub fn read_state_dict(
    path: &Path,
    network: &Composition,
) -> Result<(Composition, Vec<f64>), WeightsError> {
    let needs = needs(network)?;
    read_tensors(TensorFile::open(path)?, path, network, &needs)
}

/// As [`read_state_dict`], of a file that `bytes` gives, such as one in memory; messages call it `path`.
///
/// # Errors
/// As [`read_state_dict`].
pub fn read_state_dict_bytes(
    bytes: impl Read + Seek,
    path: &Path,
    network: &Composition,
) -> Result<(Composition, Vec<f64>), WeightsError> {
    let needs = needs(network)?;
    read_tensors(TensorFile::new(bytes, path)?, path, network, &needs)
}

fn read_tensors(
    mut file: TensorFile<impl Read + Seek>,
    path: &Path,
    network: &Composition,
    needs: &[Need],
) -> Result<(Composition, Vec<f64>), WeightsError> {
    let mismatch = |difference: String| WeightsError::Mismatch {
        path: path.display().to_string(),
        difference,
        file: in_order(&file.tensors),
        network: needs::in_words(needs),
    };
    let modules = match needs.iter().any(|need| need.block.is_some()) {
        true => residual::modules(&file.tensors, needs),
        false => modules(&file.tensors),
    };
    let modules = modules.map_err(mismatch)?;
    if let Some(difference) = first_difference(&file.tensors, &modules, needs) {
        return Err(mismatch(difference));
    }
    place(&mut file, &modules, needs, network)
}
