//! The run folder: round trips, interruptions, damaged files, refusals.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;
mod damage;
mod folder;
mod killed;
mod memory;
mod relay;
mod resume;
mod round_trip;
