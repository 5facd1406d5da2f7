//! What can be wrong with a file of weights, with the place and the way out.

use std::io;
use std::path::Path;

use reprior::network::layer::ShapeError;

/// Most characters of a name in a message.
const MOST_CHARACTERS: usize = 80;

/// Why weights could not be read. Every message is one line but [`WeightsError::Mismatch`]'s, which has three.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// The operating system refuses to read.
    #[error("the weights `{path}` cannot be read: {cause}")]
    Io {
        /// The file.
        path: String,
        /// What the operating system says.
        cause: io::Error,
    },
    /// Truncated, or something else than a safetensors file.
    #[error(
        "`{path}` is not a whole safetensors file: {reason}; write it with safetensors.torch.save_file(net.state_dict(), FILE)"
    )]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A tensor of a type that weights do not have.
    #[error(
        "`{path}`: {tensor} has the type {found}: weights must be F64, F32, F16 or BF16; save net.float().state_dict()"
    )]
    Type {
        /// The file.
        path: String,
        /// The tensor's name.
        tensor: String,
        /// Its type.
        found: String,
    },
    /// A number that no weight, mean or variance can be.
    #[error("`{path}`: {tensor} holds {value:?} at {index:?}: {allowed}")]
    Number {
        /// The file.
        path: String,
        /// The tensor's name.
        tensor: String,
        /// The number.
        value: f64,
        /// Where it is, from 0 along each dimension.
        index: Vec<usize>,
        /// What it must be.
        allowed: &'static str,
    },
    /// A network whose layers side by side are not those of residual blocks.
    #[error(
        "layer {0} of the network {1}: weights are read for layers one after the other, and for residual blocks of images, parallel layers of two branches"
    )]
    Parallel(String, &'static str),
    /// A network that cannot be.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The file's tensors are not those of the network.
    #[error(
        "`{path}` does not fit the network: {difference}\nthe file has: {file}\nthe network needs: {network}"
    )]
    Mismatch {
        /// The file.
        path: String,
        /// The first place where they differ.
        difference: String,
        /// Names and shapes of the file's tensors, in order.
        file: String,
        /// What the network's layers need, in order.
        network: String,
    },
}

impl WeightsError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |cause| Self::Io { path, cause }
    }

    pub(super) fn damaged(path: &Path, reason: impl ToString) -> Self {
        Self::Damaged {
            path: path.display().to_string(),
            reason: reason.to_string().replace(['\n', '\r'], " "),
        }
    }
}

/// A name from a file, fit for one line.
pub(super) fn printable(name: &str) -> String {
    let mut printable: String = name.escape_debug().take(MOST_CHARACTERS).collect();
    if printable.len() < name.len() {
        printable.push('…');
    }
    printable
}

/// `6×1×5×5`; of a scalar `scalar`.
pub(super) fn dimensions(shape: &[usize]) -> String {
    if shape.is_empty() {
        return "scalar".to_owned();
    }
    let lengths: Vec<String> = shape.iter().map(usize::to_string).collect();
    lengths.join("×")
}
