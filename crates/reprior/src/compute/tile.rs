//! The inner loop of products: a tile of the result in registers.
//!
//! The left factor lies in panels of [`VECTORS`] vector registers of rows, column after column, so that it is loaded in
//! order (Goto & van de Geijn 2008). A tile is a panel's rows by as many columns of the result as registers allow: for each column
//! of the panel [`VECTORS`] vectors are loaded, and each is multiplied by so many numbers of the right factor. Where a triangle or the
//! matrix ends one of the two is left out.
#![allow(unsafe_code)] // read and written without bounds checks; `super::packed` and `super::gram` test against faer

use std::marker::PhantomData;

use pulp::{Simd, WithSimd};

use super::instructions::arch;
use super::lanes::{Lanes, load, number, store};
use super::transpose::scatter_rows;
use super::{Matrix, MatrixMut, Real, spread};

/// Vector registers of rows in a panel.
pub(super) const VECTORS: usize = 2;
/// Columns of a tile: 12 sums, 2 vectors of the left factor and one number of the right one leave one of AVX2's 16 registers, and
/// twelve chains of additions hide their latency.
pub(super) const NARROW: usize = 6;
/// The same where there are 32 registers: 28 sums, so that a panel is read less than half as often.
pub(super) const WIDE: usize = 14;
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

/// Whether tiles have as many columns as 32 registers hold: [`WIDE`], and not [`NARROW`].
#[inline(always)]
pub(super) const fn is_wide<S: Simd>() -> bool {
    S::REGISTER_COUNT >= 32
}

/// The same of this processor's instruction set.
pub(super) fn are_tiles_wide() -> bool {
    struct AreWide;
    impl WithSimd for AreWide {
        type Output = bool;

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> bool {
            is_wide::<S>()
        }
    }
    arch().dispatch(AreWide)
}

/// How many columns of a panel are added up: some of which the first vector of rows counts alone, then some of both, then some of the
/// second alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Depths {
    pub first: usize,
    pub both: usize,
    pub second: usize,
}

impl Depths {
    /// Of both vectors.
    pub fn of_both(both: usize) -> Self {
        Self {
            first: 0,
            both,
            second: 0,
        }
    }

    /// Of the first alone.
    pub fn of_first(first: usize) -> Self {
        Self {
            first,
            both: 0,
            second: 0,
        }
    }

    /// Of the second alone.
    pub fn of_second(second: usize) -> Self {
        Self {
            first: 0,
            both: 0,
            second,
        }
    }
}

/// Sums over the columns of a panel times a row of `WIDTH` numbers, whose columns begin at `b` and go on by `stride`.
///
/// # Safety
/// `a` has so many columns of a panel, and each of `b` can be read at 0, `stride`, … as often.
#[inline(always)]
pub(super) unsafe fn tile<R: Real, S: Simd, const WIDTH: usize>(
    simd: S,
    depths: Depths,
    a: *const R,
    b: [*const R; WIDTH],
    stride: usize,
) -> [[R::Vector<S>; VECTORS]; WIDTH] {
    let mut factors = (a, b);
    let mut sums = [[R::splat(simd, R::ZERO); VECTORS]; WIDTH];
    // SAFETY: the caller's
    unsafe {
        let (factors, sums) = (&mut factors, &mut sums);
        add_columns::<R, S, 0, 1, WIDTH>(simd, depths.first, factors, stride, sums);
        add_columns::<R, S, 0, VECTORS, WIDTH>(simd, depths.both, factors, stride, sums);
        add_columns::<R, S, 1, 1, WIDTH>(simd, depths.second, factors, stride, sums);
    }
    sums
}

/// Adds `depth` more columns, of which `COUNT` vectors from number `FIRST` on count.
///
/// # Safety
/// As of [`tile`].
#[inline(always)]
unsafe fn add_columns<
    R: Real,
    S: Simd,
    const FIRST: usize,
    const COUNT: usize,
    const WIDTH: usize,
>(
    simd: S,
    depth: usize,
    (a, b): &mut (*const R, [*const R; WIDTH]),
    stride: usize,
    sums: &mut [[R::Vector<S>; VECTORS]; WIDTH],
) {
    let lanes = R::lanes::<S>();
    for _ in 0..depth {
        // SAFETY: the caller's
        unsafe {
            let rows: [R::Vector<S>; COUNT] =
                std::array::from_fn(|i| load::<R, S>(a.add((FIRST + i) * lanes)));
            *a = a.add(VECTORS * lanes);
            for (sums, b) in sums.iter_mut().zip(&mut *b) {
                let number = R::splat(simd, number(*b));
                *b = b.wrapping_add(stride);
                for (sum, &rows) in sums[FIRST..].iter_mut().zip(&rows) {
                    *sum = R::multiply_add(simd, rows, number, *sum);
                }
            }
        }
    }
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

    /// Has what a tile of `width` columns at (row, column) will be written onto fetched while the tile is being made: columns of a large matrix are too far
    /// from each other for the processor to guess.
    ///
    /// # Safety
    /// `row` and `column` are within the matrix.
    #[inline(always)]
    pub unsafe fn fetch<S: Simd>(&self, [row, column]: [usize; 2], width: usize) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let last = (row + VECTORS * R::lanes::<S>()).min(self.rows) - 1;
            for column in column..(column + width).min(self.columns) {
                // SAFETY: both numbers are within the matrix; nothing is read
                unsafe {
                    let first = self.first.add(column * self.stride);
                    _mm_prefetch::<_MM_HINT_T0>(first.add(row).cast());
                    _mm_prefetch::<_MM_HINT_T0>(first.add(last).cast());
                }
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (row, column, width);
    }

    /// Writes the tile at (row, column), cut off at the end of the matrix.
    ///
    /// # Safety
    /// `row` and `column` are within the matrix.
    #[inline(always)]
    pub unsafe fn store<S: Simd, const WIDTH: usize>(
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
                    let to = first.add(j * self.stride);
                    for (i, &sum) in sums.iter().enumerate() {
                        let to = to.add(i * lanes);
                        let sum = match onto {
                            Onto::Replace => sum,
                            _ => {
                                let sign = R::splat(simd, sign);
                                R::multiply_add(simd, sign, sum, load::<R, S>(to))
                            }
                        };
                        store::<R, S>(to, sum);
                    }
                }
            } else {
                for (j, sums) in tile.iter().enumerate().take(columns) {
                    let mut whole = [R::ZERO; MOST_ROWS];
                    for (i, &sum) in sums.iter().enumerate() {
                        store::<R, S>(whole.as_mut_ptr().add(i * lanes), sum);
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
    let height = panel_rows::<R>();
    let length = (height * a.ncols()).max(1);
    // a copy of a number takes about as long as some operations
    let panels = panels.chunks_exact_mut(length).enumerate();
    spread(8 * a.nrows() * a.ncols(), panels, |(index, panel)| {
        let first = index * height;
        let rows = a.subrows(first, height.min(a.nrows() - first));
        R::pack(PanelToPack { panel, scale, rows });
    });
}

/// A panel with the rows that are written to it, times a number.
pub struct PanelToPack<'a, R> {
    panel: &'a mut [R],
    scale: f64,
    rows: Matrix<'a, R>,
}

impl<R: Real> PanelToPack<'_, R> {
    pub fn run(self) {
        arch().dispatch(self);
    }
}

impl<R: Real> WithSimd for PanelToPack<'_, R> {
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
                    store::<R, S>(to.add(i * lanes), load::<R, S>(from.add(i * lanes)));
                }
            }
        }
        return;
    }
    scatter_rows::<R, S>(panel, height, a);
}
