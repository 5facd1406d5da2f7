//! Kernels of infinitely wide networks and the Gaussian processes with them.

mod golden;
mod moments;
mod networks;
mod plain;
mod process;
mod properties;
mod residual;
