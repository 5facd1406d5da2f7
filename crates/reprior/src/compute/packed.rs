//! Products whose left factor is packed once and used many times, at the processor's peak, with triangles left out.
//!
//! A panel of the left factor knows which of its columns are not zero: a triangle costs its half and the diagonal's tiles.
//! The right factor is copied part by part to where its columns follow one another in the cache.
//!
//! The order of additions, and so every bit, depends on the shapes and the instruction set alone.
#![allow(unsafe_code)] // the calls of `tile` and `Out::store`

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::instructions::arch;
use super::matrix::column_pieces;
use super::tile::{
    Depths, NARROW, Onto, Out, VECTORS, WIDE, are_tiles_wide, is_wide, pack, panel_rows, tile,
};
use super::{Matrix, MatrixMut, Operations, Real, hands, spread};

/// Columns of the left factor that are worked through at a time: that much of a panel stays in the nearest cache.
const DEPTH: usize = 256;
/// Columns of the right factor at a time, a multiple of a tile's: with [`DEPTH`] rows, a part that stays in the second cache.
pub(crate) const COLUMNS: usize = 126;
/// Where the columns of that part begin: a line of cache further than their length.
const STRIDE: usize = DEPTH + 16;

/// Where a matrix is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackedShape {
    /// Everywhere.
    Full,
    /// On the diagonal and below: entry (i, j) for j ≤ i.
    Lower,
    /// On the diagonal and above: entry (i, j) for j ≥ i.
    Upper,
}

/// A matrix in panels, the left factor of [`multiply_packed`].
#[derive(Debug, Clone)]
pub struct Packed<R> {
    rows: usize,
    columns: usize,
    panels: Vec<Panel>,
    values: Vec<R>,
}

#[derive(Debug, Clone)]
struct Panel {
    /// Columns of its first vector of rows that are not zero, and of its second: these begin and end no earlier.
    vectors: [Range<usize>; VECTORS],
    /// Where its numbers begin.
    offset: usize,
}

impl Panel {
    /// That whose rows from number `first` on are of such a matrix.
    fn new(shape: PackedShape, first: usize, height: usize, [rows, columns]: [usize; 2]) -> Self {
        let lanes = height / VECTORS;
        let end = match shape {
            PackedShape::Lower => columns.min(first + lanes),
            _ => columns,
        };
        let start = match shape {
            PackedShape::Upper => first.min(columns),
            _ => 0,
        };
        let second = match shape {
            _ if first + lanes >= rows => end..end,
            PackedShape::Full => 0..columns,
            PackedShape::Lower => 0..columns.min(first + height),
            PackedShape::Upper => (first + lanes).min(columns)..columns,
        };
        Self {
            vectors: [start..end, second],
            offset: 0,
        }
    }

    /// Columns that are not zero.
    fn columns(&self) -> Range<usize> {
        self.vectors[0].start..self.vectors[1].end
    }

    /// What of some of these columns each vector counts.
    fn depths(&self, from: usize, to: usize) -> Depths {
        let [first, second] = &self.vectors;
        let alone = second.start.clamp(from, to) - from;
        let second_alone = to - first.end.clamp(from, to);
        Depths {
            first: alone,
            both: to - from - alone - second_alone,
            second: second_alone,
        }
    }
}

impl<R: Real> Packed<R> {
    /// Packs `matrix`, of which only what `shape` leaves is read.
    pub fn new(matrix: Matrix<'_, R>, shape: PackedShape) -> Self {
        let (rows, columns, height) = (matrix.nrows(), matrix.ncols(), panel_rows::<R>());
        let (mut panels, mut values) = (Vec::new(), Vec::new());
        for first in (0..rows).step_by(height) {
            let mut panel = Panel::new(shape, first, height, [rows, columns]);
            panel.offset = values.len();
            for column in panel.columns() {
                values.extend((first..first + height).map(|row| {
                    let is_kept = match shape {
                        PackedShape::Full => true,
                        PackedShape::Lower => column <= row,
                        PackedShape::Upper => column >= row,
                    };
                    if row < rows && is_kept {
                        matrix[(row, column)]
                    } else {
                        R::ZERO
                    }
                }));
            }
            panels.push(panel);
        }
        Self {
            rows,
            columns,
            panels,
            values,
        }
    }

    /// Packs another matrix of the same rows and columns, all of it, in place of the one before, which was of full shape.
    pub fn repack(&mut self, matrix: Matrix<'_, R>) {
        assert_eq!((matrix.nrows(), matrix.ncols()), (self.rows, self.columns));
        assert!(
            self.panels
                .iter()
                .all(|panel| panel.columns().len() == self.columns)
        );
        pack(&mut self.values, 1.0, matrix);
    }

    /// Bytes of a packed matrix, the padding of its last panel and of the diagonal left out.
    pub fn bytes(rows: usize, columns: usize, shape: PackedShape) -> usize {
        let triangle = rows.min(columns) * rows.min(columns) / 2;
        let zeros = if shape == PackedShape::Full {
            0
        } else {
            triangle
        };
        (rows * columns - zeros) * R::BYTES
    }
}

/// out ← a·b, or out ← out + a·b if `accumulate`; 2·columns operations for each entry of `a` that is not zero. `out` must be
/// column-major.
pub fn multiply_packed<R: Real>(
    out: MatrixMut<'_, R>,
    accumulate: bool,
    a: &Packed<R>,
    b: Matrix<'_, R>,
) {
    multiply_part(out, accumulate, a, [0..a.rows, 0..a.columns], b);
}

/// As [`multiply_packed`] of some rows of `a`, which begin at a panel's first: a multiple of `panel_rows`.
pub fn multiply_packed_rows<R: Real>(
    out: MatrixMut<'_, R>,
    a: &Packed<R>,
    rows: Range<usize>,
    b: Matrix<'_, R>,
) {
    multiply_part(out, false, a, [rows, 0..a.columns], b);
}

/// out ← out + a·b with some columns of `a` alone, as many as `b` has rows.
pub fn add_packed_columns<R: Real>(
    out: MatrixMut<'_, R>,
    a: &Packed<R>,
    columns: Range<usize>,
    b: Matrix<'_, R>,
) {
    multiply_part(out, true, a, [0..a.rows, columns], b);
}

fn multiply_part<R: Real>(
    mut out: MatrixMut<'_, R>,
    accumulate: bool,
    a: &Packed<R>,
    [rows, columns]: [Range<usize>; 2],
    b: Matrix<'_, R>,
) {
    let height = panel_rows::<R>();
    assert!(rows.start.is_multiple_of(height) && rows.end <= a.rows && columns.end <= a.columns);
    assert_eq!((out.nrows(), out.ncols()), (rows.len(), b.ncols()));
    assert_eq!(columns.len(), b.nrows());
    if !accumulate && columns.is_empty() {
        out.fill(R::ZERO);
        return;
    }
    let panels = rows.start / height..rows.end.div_ceil(height);
    let overlap = |vector: &Range<usize>| {
        let end = vector.end.min(columns.end);
        end.saturating_sub(vector.start.max(columns.start))
    };
    let vectors = a.panels[panels.clone()].iter().flat_map(|p| &p.vectors);
    let entries = height / VECTORS * vectors.map(overlap).sum::<usize>();
    let operations = 2 * entries * b.ncols();
    Operations::product(operations);
    let panels = &a.panels[panels];
    let product = Product {
        onto: Onto::accumulate(accumulate),
        values: &a.values,
        panels: Panels::Listed(panels),
        columns,
    };
    product.of_columns(out, b, operations);
}

/// Operations from which on faer's product is no faster than one whose left factor is packed before, and the least length of a side.
const LARGE: (usize, usize) = (1 << 25, 96);

/// out ← scale·a·b, or out ← out + scale·a·b, where this is a large product: spread over a thread's team, and as fast as faer's on one.
/// Whether it was.
pub(super) fn multiply_large<R: Real>(
    out: MatrixMut<'_, R>,
    accumulate: bool,
    scale: f64,
    a: Matrix<'_, R>,
    b: Matrix<'_, R>,
) -> bool {
    let (rows, depth, columns) = (a.nrows(), a.ncols(), b.ncols());
    let operations = 2 * rows * depth * columns;
    let least = rows.min(depth).min(columns);
    if operations < LARGE.0 || least < LARGE.1 || out.row_stride() != 1 {
        return false;
    }
    assert_eq!((out.nrows(), out.ncols()), (rows, columns));
    assert_eq!(depth, b.nrows());
    let height = panel_rows::<R>();
    let length = height * depth;
    R::with_scratch(rows.div_ceil(height) * length, |packed| {
        pack(packed, scale, a);
        let product = Product {
            onto: Onto::accumulate(accumulate),
            values: packed,
            panels: Panels::Full([rows, depth]),
            columns: 0..depth,
        };
        product.of_columns(out, b, operations);
    });
    true
}

/// How many of the columns of a product of so many operations a thread takes at a time: whole tiles, once or twice for each thread,
/// whichever leaves the busiest with fewer; all where it works alone.
pub(crate) fn columns_of_piece(columns: usize, operations: usize) -> usize {
    let hands = hands(operations);
    if hands == 1 {
        return columns.max(1);
    }
    let width = if are_tiles_wide() { WIDE } else { NARROW };
    width * tiles_of_piece(columns.div_ceil(width), hands)
}

fn tiles_of_piece(tiles: usize, hands: usize) -> usize {
    let of_the_busiest = |piece: &usize| tiles.div_ceil(*piece).div_ceil(hands) * piece;
    let pieces = tiles.div_ceil(2 * hands).max(1)..=tiles.div_ceil(hands).max(1);
    pieces.min_by_key(of_the_busiest).unwrap_or(1)
}

/// The panels of a left factor.
enum Panels<'a> {
    /// Each of them.
    Listed(&'a [Panel]),
    /// Those of so many rows and columns, one after the other.
    Full([usize; 2]),
}

impl Panels<'_> {
    fn count(&self, height: usize) -> usize {
        match self {
            Self::Listed(panels) => panels.len(),
            Self::Full([rows, _]) => rows.div_ceil(height),
        }
    }

    fn panel(&self, index: usize, height: usize) -> Panel {
        match self {
            Self::Listed(panels) => panels[index].clone(),
            Self::Full([rows, columns]) => {
                let shape = [*rows, *columns];
                let mut panel = Panel::new(PackedShape::Full, index * height, height, shape);
                panel.offset = index * height * columns;
                panel
            }
        }
    }
}

/// A product without its right factor.
struct Product<'a, R> {
    onto: Onto,
    values: &'a [R],
    panels: Panels<'a>,
    /// Of the left factor.
    columns: Range<usize>,
}

impl<R: Real> Product<'_, R> {
    /// Spread by columns of the result; each is made in the same way among many or alone.
    fn of_columns(&self, out: MatrixMut<'_, R>, b: Matrix<'_, R>, operations: usize) {
        let at_once = columns_of_piece(b.ncols(), operations);
        spread(operations, column_pieces(out, at_once), |(start, out)| {
            let b = b.subcols(start, out.ncols());
            R::with_scratch(COLUMNS * STRIDE, |part| {
                R::packed_product(PackedPiece {
                    product: self,
                    out: Out::new(out),
                    b,
                    part,
                });
            });
        });
    }
}

/// Some columns of a product.
pub struct PackedPiece<'a, R> {
    product: &'a Product<'a, R>,
    out: Out<'a, R>,
    b: Matrix<'a, R>,
    part: &'a mut [R],
}

impl<R: Real> WithSimd for PackedPiece<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match is_wide::<S>() {
            true => self.tiles::<S, WIDE>(simd),
            false => self.tiles::<S, NARROW>(simd),
        }
    }
}

impl<R: Real> PackedPiece<'_, R> {
    pub fn run(self) {
        arch().dispatch(self);
    }

    #[inline(always)]
    fn tiles<S: Simd, const WIDTH: usize>(self, simd: S) {
        let Self {
            product,
            out,
            b,
            part,
        } = self;
        let (values, all) = (product.values, &product.columns);
        let height = VECTORS * R::lanes::<S>();
        for first_column in (0..out.columns).step_by(COLUMNS) {
            let columns = COLUMNS.min(out.columns - first_column);
            for start in all.clone().step_by(DEPTH) {
                let depth = DEPTH.min(all.end - start);
                let row = start - all.start;
                copy_part(part, b.submatrix(row, first_column, depth, columns));
                for index in 0..product.panels.count(height) {
                    let panel = product.panels.panel(index, height);
                    let own = panel.columns();
                    let from = start.max(own.start);
                    let to = (start + depth).min(own.end);
                    if from >= to {
                        continue;
                    }
                    let onto = match product.onto {
                        Onto::Replace if from > own.start.max(all.start) => Onto::Add,
                        onto => onto,
                    };
                    let begin = panel.offset + (from - own.start) * height;
                    let left = values[begin..begin + (to - from) * height].as_ptr();
                    let depths = panel.depths(from, to);
                    for column in (0..columns).step_by(WIDTH) {
                        // a tile that is cut off multiplies columns of an earlier part as well: COLUMNS is a
                        // multiple of WIDTH
                        let right: [_; WIDTH] = std::array::from_fn(|j| {
                            part[(column + j) * STRIDE + from - start..].as_ptr()
                        });
                        // SAFETY: `left` has to − from columns of a panel, so many numbers follow in each column
                        // of the part, and the tile begins within `out`
                        unsafe {
                            let tile = tile(simd, depths, left, right, 1);
                            let at = [index * height, first_column + column];
                            out.store(simd, at, &tile, onto);
                        }
                    }
                }
            }
        }
    }
}

/// Copies a matrix of at most [`DEPTH`] × [`COLUMNS`] to columns [`STRIDE`] apart: in order, so that it is fetched ahead of
/// time, and to where columns do not compete for the same places in the cache.
#[inline(always)]
fn copy_part<R: Real>(part: &mut [R], b: Matrix<'_, R>) {
    for (column, out) in b.col_iter().zip(part.chunks_exact_mut(STRIDE)) {
        match column.try_as_col_major() {
            Some(column) => out[..b.nrows()].copy_from_slice(column.as_slice()),
            None => {
                for (out, &value) in out.iter_mut().zip(column.iter()) {
                    *out = value;
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

    fn shaped<R: Real>(shape: PackedShape, rows: usize, columns: usize) -> Vec<R> {
        let mut values = noise(rows * columns, 1);
        for column in 0..columns {
            for row in 0..rows {
                let is_zero = match shape {
                    PackedShape::Full => false,
                    PackedShape::Lower => column > row,
                    PackedShape::Upper => column < row,
                };
                if is_zero {
                    values[column * rows + row] = R::ZERO;
                }
            }
        }
        values
    }

    fn close<R: Real>(a: &[R], b: &[R], tolerance: f64) -> bool {
        a.iter()
            .zip(b)
            .all(|(x, y)| (x.to_f64() - y.to_f64()).abs() < tolerance * (1.0 + y.to_f64().abs()))
    }

    #[test]
    fn no_thread_has_more_than_its_share() {
        assert_eq!(tiles_of_piece(18, 2), 9);
        assert_eq!(tiles_of_piece(0, 4), 1);
        for hands in 2..9_usize {
            for tiles in 1..200_usize {
                let piece = tiles_of_piece(tiles, hands);
                let pieces = tiles.div_ceil(piece);
                assert!(pieces <= 2 * hands);
                assert_eq!(pieces.div_ceil(hands) * piece, tiles.div_ceil(hands));
            }
        }
    }

    /// Against faer's products, which are the safe twins of the unsafe tiles.
    fn agree<R: Real>([n, k, d]: [usize; 3], shape: PackedShape, transposed: bool, tolerance: f64) {
        let a: Vec<R> = shaped(shape, n, k);
        let flipped: Vec<R> = (0..n * k).map(|at| a[at % k * n + at / k]).collect();
        let (view, b) = (matrix(&a, n, k), noise(k * d, 2));
        let source = if transposed {
            matrix(&flipped, k, n).transpose()
        } else {
            view
        };
        let mut packed = Packed::new(source, shape);
        if shape == PackedShape::Full {
            packed = Packed::new(matrix(&vec![R::ONE; n * k], n, k), shape);
            packed.repack(source);
        }
        let right = matrix(&b, k, d);
        let (mut expected, mut out) = (noise(n * d, 3), noise(n * d, 3));
        for accumulate in [true, false] {
            multiply(
                matrix_mut(&mut expected, n, d),
                accumulate,
                1.0,
                view,
                right,
            );
            multiply_packed(matrix_mut(&mut out, n, d), accumulate, &packed, right);
            assert!(close(&out, &expected, tolerance), "{n} {k} {d} {shape:?}");
        }
        // a right factor whose rows are contiguous
        let turned: Vec<R> = (0..k * d).map(|at| b[at % d * k + at / d]).collect();
        let right = matrix(&turned, d, k).transpose();
        multiply_packed(matrix_mut(&mut out, n, d), false, &packed, right);
        assert!(close(&out, &expected, tolerance), "{n} {k} {d} {shape:?}");
        // rows by rows, and columns by columns
        let mut in_rows = noise(n * d, 3);
        let block = 2 * panel_rows::<R>();
        for first in (0..n).step_by(block) {
            let rows = first..n.min(first + block);
            let out = matrix_mut(&mut in_rows, n, d).subrows_mut(first, rows.len());
            multiply_packed_rows(out, &packed, rows, right);
        }
        assert!(
            close(&in_rows, &expected, tolerance),
            "{n} {k} {d} {shape:?}"
        );
        let mut in_columns = vec![R::ZERO; n * d];
        for first in (0..k).step_by(37) {
            let columns = first..k.min(first + 37);
            let right = right.subrows(first, columns.len());
            let out = matrix_mut(&mut in_columns, n, d);
            add_packed_columns(out, &packed, columns, right);
        }
        assert!(
            close(&in_columns, &expected, tolerance),
            "{n} {k} {d} {shape:?}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn packed_products_agree_with_plain_ones(
            n in 1_usize..130, k in 1_usize..600, d in 1_usize..140, shape in 0..3, transposed: bool,
        ) {
            let shape = [PackedShape::Full, PackedShape::Lower, PackedShape::Upper][shape as usize];
            let (n, k) = if shape == PackedShape::Upper && n > k { (k, n) } else { (n, k) };
            agree::<f64>([n, k, d], shape, transposed, 1e-10);
            agree::<f32>([n, k, d], shape, transposed, 2e-4);
        }
    }

    #[test]
    fn nothing_to_add_up_is_zero() {
        let packed = Packed::<f64>::new(matrix(&[], 2, 0), PackedShape::Full);
        let mut out = [1.0; 6];
        multiply_packed(
            matrix_mut(&mut out, 2, 3),
            false,
            &packed,
            matrix(&[], 0, 3),
        );
        assert_eq!(out, [0.0; 6]);
    }
}
