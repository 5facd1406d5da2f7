//! Data files in; draws and checkpoints out.

pub mod run;
