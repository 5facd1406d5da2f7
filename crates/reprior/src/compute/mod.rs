//! Dense kernels: products, factorisations, elementwise maps, Gaussian noise and random streams.
//!
//! What a [`Target`](crate::posterior::Target) of one's own needs of it is public; the kernels are the crate's own.
//! The only room that calls faer's kernels. Matrices are column-major slices seen through faer's views
//! ([`Matrix`], [`MatrixMut`]); every kernel writes into the caller's buffer, runs on the calling thread and on the team that
//! this thread may have, and gives the same bits whenever it is called with the same numbers on the same machine.

mod angle;
mod chacha;
mod cholesky;
mod cholesky_pull_back;
mod compiled;
mod correlate;
mod determinant;
mod eigen;
mod gather;
mod gram;
mod instructions;
mod lanes;
mod log_product;
mod log_sum;
mod lq;
mod matrix;
mod normal;
mod operations;
mod outer_product;
mod packed;
mod real;
mod scalar;
mod share;
mod sparse;
mod stream;
mod tall;
mod team;
mod tile;
mod transpose;
mod vector;

pub(crate) use angle::{difference_of_products, right_angle, upper_angle};
pub(crate) use cholesky::{Cholesky, NotPositiveDefinite};
pub(crate) use cholesky_pull_back::Semiseparable;
pub(crate) use compiled::OfPrecision;
pub(crate) use correlate::{Correlation, Outer, correlate};
pub(crate) use determinant::{inverse, log_determinant};
pub(crate) use eigen::{EigenFailed, symmetric_eigen};
pub(crate) use gather::{FeatureRun, Gather, WeightColumns, gather_product};
pub(crate) use gram::{add_gram_of_columns, gram_of_columns, gram_of_rows};
pub use instructions::{instructions, keep_to_instructions};
pub(crate) use log_product::{FACTORS, LogProduct};
pub(crate) use log_sum::LogSum;
pub(crate) use lq::lower_trapezoidal_factor;
pub use matrix::{Matrix, matrix};
pub(crate) use matrix::{
    MatrixMut, add_symmetric_product, column_pieces, copy_matrix, for_each_column, matrix_mut,
    mirror_lower, multiply, row_pieces_from_below,
};
pub(crate) use operations::Operations;
pub(crate) use outer_product::outer_product;
pub(crate) use packed::{
    COLUMNS, Packed, PackedShape, add_packed_columns, columns_of_piece, multiply_packed,
    multiply_packed_rows,
};
pub use real::Real;
pub(crate) use scalar::exp_f64;
pub(crate) use share::share;
pub(crate) use sparse::{SparseColumns, SparseMatrix, SparseRows, common_numbers, sum_of};
pub use stream::{Purpose, Stream};
pub(crate) use tall::{has_few_columns, multiply_columns, multiply_tall};
pub(crate) use team::{Team, hands, spread, with_team};
pub(crate) use tile::panel_rows;
pub(crate) use vector::{
    add_scaled, all_finite, autoregress, autoregress_about, blend, chi_squared, difference_dot,
    dot, dot_in_lanes, kick, kick_about, multiply_by, negate, norm_squared, one_minus_cos, rotate,
    simd, sum_fours,
};

/// Kernels that this workspace's benchmarks, tests and experiments reach for. Not of the interface: they change without notice.
#[doc(hidden)]
pub mod kernels {
    pub use super::cholesky::Cholesky;
    pub use super::determinant::log_determinant;
    pub use super::eigen::symmetric_eigen;
    pub use super::gram::{gram_of_columns, gram_of_rows};
    pub use super::log_sum::LogSum;
    pub use super::matrix::{MatrixMut, matrix_mut, multiply};
    pub use super::operations::Operations;
    pub use super::packed::{Packed, PackedShape, multiply_packed};
    pub use super::tall::multiply_columns;
    pub use super::team::with_team;
    pub use super::vector::{add_scaled, autoregress, dot, norm_squared};
}
