//! The library: each module is a subject. A program of its own is only what has an allocator of its own (`allocations`):
//! generic code is compiled for each program anew.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod annealing;
mod common;
mod compositions;
mod convergence;
mod coordinates;
mod diagnostics;
mod empirical_kernels;
mod fit;
mod joint;
mod kernels;
mod laplace;
mod learned_scales;
mod leave_one_out;
mod metrics;
mod nuts;
mod operations;
mod posterior;
mod posteriordb;
mod samplers;
mod shards;
mod stochastic;
mod tangent;
mod threads;
mod wide_limit;
