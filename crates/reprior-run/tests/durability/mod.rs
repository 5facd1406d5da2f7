//! Disks that refuse, processes that die, and what people do with run folders: whatever happens, a run ends with the bytes that it would have had.
//!
//! * `families` has every call that changes the folder fail, in runs of every family of methods; `beside` the same of what else writes to run
//!   folders: replacing, merging, copying a run.
//! * `sequences` does random things to run folders, one after another, and compares with a model of what they must hold.
//!
//! The faults come from `disk`, below the library and without a real one: the same in every run, on any machine.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr, reason = "how many faults there were")]

mod beside;
mod common;
mod disk;
mod families;
mod model;
mod ordeal;
mod sequences;
