//! Data files in; draws and checkpoints out.
