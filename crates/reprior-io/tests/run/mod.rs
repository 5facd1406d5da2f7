//! The run folder: round trips, interruptions, damaged files, refusals.

mod common;
mod damage;
mod folder;
mod killed;
mod memory;
mod relay;
mod resume;
mod round_trip;
