//! The program as people run it: commands, folders, messages.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bad_input;
mod batch_norm;
mod clusters;
mod common;
mod export;
mod faults;
mod help;
mod interruption;
mod keeping;
mod laplace;
mod learned_scales;
mod leave_one_out;
mod likelihoods;
mod maps;
mod merge;
mod minibatch;
mod report;
mod reproduce;
mod runs;
mod tables;
mod tangent;
mod timed;
mod verdict;
mod weights;
