//! Files: data sets, weights, run folders.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod acceptance_by_width;
mod built_in;
mod common;
mod csv_tables;
mod image_folders;
mod npz_archives;
mod prediction_inputs;
mod real_data;
mod run;
mod table_columns;
mod torch_weights;
