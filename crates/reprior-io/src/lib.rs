//! Data files and trained weights in; draws and checkpoints out.

pub mod data;
pub mod memory;
pub mod regular;
pub mod run;
pub mod weights;
