//! Gram matrices, one half of them, at the processor's peak.
//!
//! The factor is packed in panels, [`DEPTH`] columns at a time; two panels of that many stay in the nearest cache while
//! each tile of the lower half is made, both factors of which come from panels. Tiles are made in blocks of columns, whose own panels
//! stay in the next cache.
#![allow(unsafe_code)] // the calls of `tile` and `Out::store`

use pulp::{Simd, WithSimd};

use super::instructions::arch;
use super::matrix::{column_pieces, row_pieces_from_below};
use super::packed::COLUMNS;
use super::tall::gram_tall;
use super::tile::{Depths, NARROW, Onto, Out, VECTORS, is_wide, pack, panel_rows, tile};
use super::{Matrix, MatrixMut, Operations, Real, hands, spread};

/// Columns of the factor at a time: as many as a packed product makes at once, so that what is added up part by part of so many has the
/// same bits as all at once.
const DEPTH: usize = COLUMNS;

/// Columns of a tile where there are 32 registers: whole tiles make a panel.
const OF_A_PANEL: usize = 8;

/// Panels of the result that are worked on at once, at most.
const PANELS: usize = 4;

/// How many of the panels a thread takes at a time: as the lower ones are longer, two pieces for each thread at least, the longest first.
fn panels_of_piece(panels: usize, hands: usize) -> usize {
    match hands {
        1 => PANELS,
        hands => panels.div_ceil(2 * hands).clamp(1, PANELS),
    }
}

/// Columns of the result whose rows of the factor, some 340 kB, stay in a near cache while they meet all panels below: a multiple of a
/// tile's width and of every panel's height.
const fn near_columns<R: Real>() -> usize {
    match R::BYTES {
        8 => 336,
        _ => 672,
    }
}

/// Lower half of out ← a·aᵀ, or out ← out + a·aᵀ if `accumulate`, for a of n × p: n²p operations. Some entries above the
/// diagonal change as well. `out` must be column-major.
pub fn gram_of_rows<R: Real>(out: MatrixMut<'_, R>, accumulate: bool, a: Matrix<'_, R>) {
    Operations::product(operations_a_column::<R>(a.nrows()) * a.ncols());
    gram_onto(out, Onto::accumulate(accumulate), a);
}

/// Operations for each column of the factor: those of the lower half and of the rest of its vectors of rows.
fn operations_a_column<R: Real>(n: usize) -> usize {
    let lanes = panel_rows::<R>() / VECTORS;
    let vectors = 1..=n.div_ceil(lanes);
    2 * vectors
        .map(|vector| lanes * n.min(vector * lanes))
        .sum::<usize>()
}

/// As [`gram_of_rows`], and uncounted.
pub(super) fn gram_onto<R: Real>(mut out: MatrixMut<'_, R>, onto: Onto, a: Matrix<'_, R>) {
    let (n, p) = (a.nrows(), a.ncols());
    assert_eq!((out.nrows(), out.ncols()), (n, n));
    if p == 0 && onto == Onto::Replace {
        out.fill(R::ZERO);
    }
    let height = panel_rows::<R>();
    let (panels, a_column) = (n.div_ceil(height), operations_a_column::<R>(n));
    R::with_scratch(panels * height * DEPTH.min(p), |packed| {
        for first in (0..p).step_by(DEPTH) {
            let depth = DEPTH.min(p - first);
            let packed = &mut packed[..panels * height * depth];
            pack(packed, 1.0, a.subcols(first, depth));
            let onto = if first > 0 && onto == Onto::Replace {
                Onto::Add
            } else {
                onto
            };
            let rows_at_once = height * panels_of_piece(panels, hands(a_column * depth));
            let blocks = column_pieces(out.as_mut(), near_columns::<R>());
            let pieces = blocks.flat_map(|(first_column, block)| {
                let below = block.split_at_row_mut(first_column).1;
                let rows = row_pieces_from_below(below, rows_at_once);
                rows.map(move |(row, out)| (first_column, first_column + row, out))
            });
            spread(a_column * depth, pieces, |(first_column, start, out)| {
                R::gram(GramPiece {
                    out: Out::new(out),
                    start,
                    first_column,
                    onto,
                    depth,
                    packed,
                });
            });
        }
    });
}

/// Lower half of aᵀ·a (p × p) for a of n × p.
pub fn gram_of_columns<R: Real>(out: MatrixMut<'_, R>, a: Matrix<'_, R>) {
    add_gram_of_columns(out, false, a);
}

/// Lower half of out ← aᵀ·a, or out ← out + aᵀ·a if `accumulate`.
pub(crate) fn add_gram_of_columns<R: Real>(
    mut out: MatrixMut<'_, R>,
    accumulate: bool,
    a: Matrix<'_, R>,
) {
    if !gram_tall(out.as_mut(), Onto::accumulate(accumulate), a) {
        gram_of_rows(out, accumulate, a.transpose());
    }
}

/// Some panels of the result by as many columns as stay near, given some columns of the factor in panels.
pub struct GramPiece<'a, R> {
    out: Out<'a, R>,
    /// The first row and the first column, which is no later.
    start: usize,
    first_column: usize,
    onto: Onto,
    depth: usize,
    packed: &'a [R],
}

impl<R: Real> WithSimd for GramPiece<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match is_wide::<S>() {
            true => self.tiles::<S, OF_A_PANEL>(simd),
            false => self.tiles::<S, NARROW>(simd),
        }
    }
}

impl<R: Real> GramPiece<'_, R> {
    pub fn run(self) {
        arch().dispatch(self);
    }

    #[inline(always)]
    fn tiles<S: Simd, const WIDTH: usize>(self, simd: S) {
        let Self {
            out,
            start,
            first_column,
            onto,
            depth,
            packed,
        } = self;
        let lanes = R::lanes::<S>();
        let height = VECTORS * lanes;
        let length = height * depth;
        let last_row = start + out.rows - 1;
        for row in (0..out.rows).step_by(height) {
            let panel = &packed[(start + row) / height * length..][..length];
            let columns = out.columns.min(start + row + height - first_column);
            for column in (0..columns).step_by(WIDTH) {
                // rows past the last column are not wanted: any that can be read will do
                let from = |row: usize| packed[row / height * length + row % height..].as_ptr();
                let right: [_; WIDTH] = if height.is_multiple_of(WIDTH) {
                    // of one panel: a single register holds where they are
                    let first = from(first_column + column);
                    std::array::from_fn(|j| first.wrapping_add(j))
                } else {
                    std::array::from_fn(|j| {
                        from((first_column + (column + j).min(out.columns - 1)).min(last_row))
                    })
                };
                let depths = if first_column + column >= start + row + lanes {
                    // the first vector of rows ends above the diagonal
                    Depths::of_second(depth)
                } else if out.rows - row <= lanes {
                    Depths::of_first(depth)
                } else {
                    Depths::of_both(depth)
                };
                // SAFETY: both factors are panels of `depth` columns, and the tile begins within `out`
                unsafe {
                    out.fetch::<S>([row, column], WIDTH);
                    let tile = tile(simd, depths, panel.as_ptr(), right, height);
                    out.store(simd, [row, column], &tile, onto);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::stream::noise;
    use crate::compute::{matrix, matrix_mut, multiply};
    use proptest::prelude::*;

    /// Against faer's products, which are the safe twins of the unsafe tiles.
    fn agree<R: Real>(n: usize, p: usize, tolerance: f64) {
        let values = noise::<R>(n * p, 1);
        let a = matrix(&values, n, p);
        let lower_halves_agree = |out: &[R], expected: &[R], size: usize| {
            for column in 0..size {
                for at in column * size + column..(column + 1) * size {
                    let (x, y) = (out[at].to_f64(), expected[at].to_f64());
                    assert!(
                        (x - y).abs() < tolerance * (1.0 + y.abs()),
                        "{n} {p} {at}: {x} {y}"
                    );
                }
            }
        };
        let (mut expected, mut out) = (noise::<R>(n * n, 4), noise::<R>(n * n, 4));
        for accumulate in [true, false] {
            multiply(
                matrix_mut(&mut expected, n, n),
                accumulate,
                1.0,
                a,
                a.transpose(),
            );
            gram_of_rows(matrix_mut(&mut out, n, n), accumulate, a);
            lower_halves_agree(&out, &expected, n);
        }
        let (mut expected, mut out) = (noise::<R>(p * p, 4), noise::<R>(p * p, 4));
        multiply(
            matrix_mut(&mut expected, p, p),
            false,
            1.0,
            a.transpose(),
            a,
        );
        gram_of_columns(matrix_mut(&mut out, p, p), a);
        lower_halves_agree(&out, &expected, p);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn gram_matrices_agree_with_plain_products(n in 1_usize..130, p in 1_usize..300) {
            agree::<f64>(n, p, 1e-10);
            agree::<f32>(n, p, 2e-4);
        }
    }
}
