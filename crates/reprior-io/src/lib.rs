//! Data files and trained weights in; draws and checkpoints out.
//!
//! - `data`: readers of tables and images.
//! - `weights`: trained networks.
//! - `run`: the run folder, its draws, checkpoints and text files.

pub mod data;
pub mod memory;
pub mod regular;
pub mod run;
pub mod weights;
