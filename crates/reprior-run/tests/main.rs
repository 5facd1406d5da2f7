//! Runs from settings to what they leave. A program of its own is only what has an allocator of its own (`hostile`):
//! generic code is compiled for each program anew.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod adversity;
mod annealed;
mod common;
mod durability;
mod earlier_configs;
mod given_table;
mod in_memory;
mod kept_draws;
mod leave_one_out;
mod start_at_run;
