//! Data files in; draws and checkpoints out.

pub mod data;
pub mod run;
