//! The two precisions on disk.

use reprior::compute::Real;
use reprior_io::run::{Checkpoint, RunError, Values};

/// A precision that can be written to and read from a run folder.
pub trait Stored: Real {
    /// A slice to write.
    fn values(values: &[Self]) -> Values<'_>;
    /// A tensor of a checkpoint.
    fn tensor(checkpoint: &Checkpoint, name: &str, shape: &[usize]) -> Result<Vec<Self>, RunError>;
}

impl Stored for f32 {
    fn values(values: &[Self]) -> Values<'_> {
        Values::F32(values)
    }
    fn tensor(checkpoint: &Checkpoint, name: &str, shape: &[usize]) -> Result<Vec<Self>, RunError> {
        checkpoint.f32(name, shape)
    }
}

impl Stored for f64 {
    fn values(values: &[Self]) -> Values<'_> {
        Values::F64(values)
    }
    fn tensor(checkpoint: &Checkpoint, name: &str, shape: &[usize]) -> Result<Vec<Self>, RunError> {
        checkpoint.f64(name, shape)
    }
}
