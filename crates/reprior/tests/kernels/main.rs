//! Kernels of infinitely wide networks and the Gaussian processes with them.
#![allow(clippy::unwrap_used)]

mod golden;
mod moments;
mod networks;
mod plain;
mod process;
mod properties;
mod residual;
