//! Dense kernels: products, factorisations, elementwise maps, Gaussian noise and random streams.
//!
//! The only room that calls faer's kernels. Matrices are column-major slices seen through faer's views
//! ([`Matrix`], [`MatrixMut`]); every kernel writes into the caller's buffer, runs on the calling thread and
//! gives the same bits whenever it is called with the same numbers on the same machine.

mod angle;
mod chacha;
mod cholesky;
mod cholesky_pull_back;
mod correlate;
mod determinant;
mod eigen;
mod gather;
mod gram;
mod lanes;
mod log_sum;
mod lq;
mod matrix;
mod normal;
mod operations;
mod packed;
mod real;
mod scalar;
mod sparse;
mod stream;
mod team;
mod tile;
mod vector;

pub(crate) use angle::{difference_of_products, right_angle, upper_angle};
pub use cholesky::{Cholesky, NotPositiveDefinite};
pub use cholesky_pull_back::Semiseparable;
pub(crate) use correlate::{Correlation, Outer, correlate, outer_product};
pub use determinant::log_determinant;
pub use eigen::{EigenFailed, symmetric_eigen};
pub(crate) use gather::{Columns, Gather, Run, gather_product};
pub use gram::{gram_of_columns, gram_of_rows};
pub use log_sum::LogSum;
pub use lq::{Lq, lower_trapezoidal_factor};
pub use matrix::{
    Matrix, MatrixMut, add_symmetric_product, matrix, matrix_mut, mirror_lower, multiply,
};
pub use operations::Operations;
pub use packed::{Packed, Shape, multiply_packed};
pub use real::Real;
pub(crate) use sparse::SparseColumns;
pub use stream::{Purpose, Stream};
pub(crate) use team::Team;
pub(crate) use tile::panel_rows;
pub use vector::{
    add_scaled, all_finite, autoregress, autoregress_about, blend, chi_squared, difference_dot,
    dot, kick, kick_about, negate, norm_squared, one_minus_cos, rotate, simd,
};
pub(crate) use vector::{dot_in_lanes, sum_fours};
