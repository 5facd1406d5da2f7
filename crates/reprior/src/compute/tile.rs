//! The inner loop of products: a tile of the result in registers.
//!
//! The left factor lies in panels of [`VECTORS`] vector registers of rows, column after column, so that it is loaded in
//! order (Goto & van de Geijn 2008). A tile is a panel's rows by [`WIDTH`] columns of the result: for each column of the
//! panel [`VECTORS`] vectors are loaded, and each is multiplied by [`WIDTH`] numbers of the right factor.
#![allow(unsafe_code)] // read and written without bounds checks; `super::packed` and `super::gram` test against faer

use std::marker::PhantomData;

use pulp::{Simd, WithSimd};

use super::instructions::arch;
use super::lanes::Lanes;
use super::transpose::scatter_rows;
use super::{Matrix, MatrixMut, Real, spread};

/// Vector registers of rows in a panel, and columns of a tile: 12 sums, 2 vectors of the left factor and one number of the
/// right one leave one of AVX2's 16 registers, and twelve chains of additions hide their latency.
pub(super) const VECTORS: usize = 2;
pub(super) const WIDTH: usize = 6;
/// The most rows of a panel: 2 vectors of 16 numbers.
pub(super) const MOST_ROWS: usize = 32;

/// Rows of a panel on this processor.
pub(crate) fn panel_rows<R: Real>() -> usize {
    struct PanelRows<R>(PhantomData<R>);
    impl<R: Lanes> WithSimd for PanelRows<R> {
        type Output = usize;

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> usize {
            VECTORS * R::lanes::<S>()
        }
    }
    arch().dispatch(PanelRows::<R>(PhantomData))
}

/// Sums over `depth` of a panel's column times a row of [`WIDTH`] numbers, whose columns begin at `b` and go on by
/// `stride`.
///
/// # Safety
/// `a` has `depth` columns of a panel, and each of `b` can be read at 0, `stride`, … (depth − 1)·`stride`.
#[inline(always)]
pub(super) unsafe fn tile<R: Real, S: Simd>(
    simd: S,
    depth: usize,
    mut a: *const R,
    mut b: [*const R; WIDTH],
    stride: usize,
) -> [[R::Vector<S>; VECTORS]; WIDTH] {
    let lanes = R::lanes::<S>();
    let mut sums = [[R::splat(simd, R::ZERO); VECTORS]; WIDTH];
    for _ in 0..depth {
        // SAFETY: the caller's
        unsafe {
            let rows: [R::Vector<S>; VECTORS] =
                std::array::from_fn(|i| a.add(i * lanes).cast::<R::Vector<S>>().read_unaligned());
            a = a.add(VECTORS * lanes);
            for (sums, b) in sums.iter_mut().zip(&mut b) {
                let number = R::splat(simd, **b);
                *b = b.wrapping_add(stride);
                for (sum, &rows) in sums.iter_mut().zip(&rows) {
                    *sum = R::multiply_add(simd, rows, number, *sum);
                }
            }
        }
    }
    sums
}

/// What a product does to the numbers that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Onto {
    Replace,
    Add,
    Subtract,
}

impl Onto {
    pub fn accumulate(accumulate: bool) -> Self {
        if accumulate { Self::Add } else { Self::Replace }
    }
}

/// The result, column-major: unchecked writes to it are within its bounds because tiles are cut to its shape.
pub(super) struct Out<'a, R> {
    first: *mut R,
    pub rows: usize,
    pub columns: usize,
    stride: usize,
    borrowed: PhantomData<&'a mut R>,
}

impl<'a, R: Real> Out<'a, R> {
    /// `matrix` must be column-major.
    pub fn new(matrix: MatrixMut<'a, R>) -> Self {
        assert!(matrix.row_stride() == 1 || matrix.nrows() <= 1);
        assert!(matrix.col_stride() >= 0 || matrix.ncols() <= 1);
        Self {
            rows: matrix.nrows(),
            columns: matrix.ncols(),
            stride: matrix.col_stride().unsigned_abs(),
            first: matrix.as_ptr_mut(),
            borrowed: PhantomData,
        }
    }

    /// Has what the tile at (row, column) will be written onto fetched while the tile is being made: columns of a large matrix are too far
    /// from each other for the processor to guess.
    ///
    /// # Safety
    /// `row` and `column` are within the matrix.
    #[inline(always)]
    pub unsafe fn fetch<S: Simd>(&self, [row, column]: [usize; 2]) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let last = (row + VECTORS * R::lanes::<S>()).min(self.rows) - 1;
            for column in column..(column + WIDTH).min(self.columns) {
                // SAFETY: both numbers are within the matrix; nothing is read
                unsafe {
                    let first = self.first.add(column * self.stride);
                    _mm_prefetch::<_MM_HINT_T0>(first.add(row).cast());
                    _mm_prefetch::<_MM_HINT_T0>(first.add(last).cast());
                }
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (row, column);
    }

    /// Writes the tile at (row, column), cut off at the end of the matrix.
    ///
    /// # Safety
    /// `row` and `column` are within the matrix.
    #[inline(always)]
    pub unsafe fn store<S: Simd>(
        &self,
        simd: S,
        [row, column]: [usize; 2],
        tile: &[[R::Vector<S>; VECTORS]; WIDTH],
        onto: Onto,
    ) {
        let lanes = R::lanes::<S>();
        let sign = if onto == Onto::Subtract {
            -R::ONE
        } else {
            R::ONE
        };
        let rows = (VECTORS * lanes).min(self.rows - row);
        let columns = WIDTH.min(self.columns - column);
        // SAFETY: the caller's; row + rows ≤ self.rows and column + columns ≤ self.columns, and the borrow is unique
        unsafe {
            let first = self.first.add(column * self.stride + row);
            if rows == VECTORS * lanes {
                for (j, sums) in tile.iter().enumerate().take(columns) {
                    let to = first.add(j * self.stride).cast::<R::Vector<S>>();
                    for (i, &sum) in sums.iter().enumerate() {
                        let to = to.add(i);
                        to.write_unaligned(match onto {
                            Onto::Replace => sum,
                            _ => {
                                let sign = R::splat(simd, sign);
                                R::multiply_add(simd, sign, sum, to.read_unaligned())
                            }
                        });
                    }
                }
            } else {
                for (j, sums) in tile.iter().enumerate().take(columns) {
                    let mut whole = [R::ZERO; MOST_ROWS];
                    for (i, &sum) in sums.iter().enumerate() {
                        let to = whole.as_mut_ptr().add(i * lanes).cast::<R::Vector<S>>();
                        to.write_unaligned(sum);
                    }
                    for (i, &value) in whole[..rows].iter().enumerate() {
                        let to = first.add(j * self.stride + i);
                        *to = match onto {
                            Onto::Replace => value,
                            _ => *to + sign * value,
                        };
                    }
                }
            }
        }
    }
}

/// Writes all rows of a matrix, times a number, in panels; rows that are not there are zeros.
pub(super) fn pack<R: Real>(panels: &mut [R], scale: f64, a: Matrix<'_, R>) {
    struct Pack<'a, R> {
        panel: &'a mut [R],
        scale: f64,
        rows: Matrix<'a, R>,
    }
    impl<R: Real> WithSimd for Pack<'_, R> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            pack_panel::<R, S>(self.panel, self.rows);
            if self.scale != 1.0 {
                let scale = R::from_f64(self.scale);
                for number in self.panel {
                    *number *= scale;
                }
            }
        }
    }
    let height = panel_rows::<R>();
    let length = (height * a.ncols()).max(1);
    // a copy of a number takes about as long as some operations
    let panels = panels.chunks_exact_mut(length).enumerate();
    spread(8 * a.nrows() * a.ncols(), panels, |(index, panel)| {
        let first = index * height;
        let rows = a.subrows(first, height.min(a.nrows() - first));
        arch().dispatch(Pack { panel, scale, rows });
    });
}

/// Copies at most a panel's rows to it, column after column; rows that are not there are zeros.
#[inline(always)]
fn pack_panel<R: Real, S: Simd>(panel: &mut [R], a: Matrix<'_, R>) {
    let lanes = R::lanes::<S>();
    let height = VECTORS * lanes;
    if a.nrows() < height {
        panel.fill(R::ZERO);
    }
    if a.row_stride() == 1 && a.nrows() == height {
        for (source, out) in a.col_iter().zip(panel.chunks_exact_mut(height)) {
            let (from, to) = (source.as_ptr(), out.as_mut_ptr());
            for i in 0..VECTORS {
                // SAFETY: both have `height` numbers, one after the other
                unsafe {
                    let vector = from.add(i * lanes).cast::<R::Vector<S>>().read_unaligned();
                    to.add(i * lanes)
                        .cast::<R::Vector<S>>()
                        .write_unaligned(vector);
                }
            }
        }
        return;
    }
    scatter_rows::<R, S>(panel, height, a);
}
