//! Gram matrices, one half of them, at the processor's peak.
//!
//! The factor is packed in panels, [`DEPTH`] columns at a time; two panels of that many stay in the nearest cache while
//! each tile of the lower half is made, both factors of which come from panels.
#![allow(unsafe_code)] // the calls of `tile` and `Out::store`

use pulp::{Arch, Simd, WithSimd};

use super::tile::{Out, VECTORS, WIDTH, pack_panel, panel_rows, tile};
use super::{Matrix, MatrixMut, Operations, Real};

/// Columns of the factor at a time.
const DEPTH: usize = 128;

/// Lower half of out ← a·aᵀ, or out ← out + a·aᵀ if `accumulate`, for a of n × p: n²p operations. Some entries above the
/// diagonal change as well. `out` must be column-major.
pub fn gram_of_rows<R: Real>(mut out: MatrixMut<'_, R>, accumulate: bool, a: Matrix<'_, R>) {
    let (n, p) = (a.nrows(), a.ncols());
    assert_eq!((out.nrows(), out.ncols()), (n, n));
    if p == 0 && !accumulate {
        out.fill(R::ZERO);
    }
    let height = panel_rows::<R>();
    let panels = n.div_ceil(height);
    let entries: usize = (1..=panels)
        .map(|panel| height * n.min(panel * height))
        .sum();
    Operations::product(2 * entries * p);
    R::with_scratch(panels * height * DEPTH.min(p), |packed| {
        for first in (0..p).step_by(DEPTH) {
            let depth = DEPTH.min(p - first);
            Arch::new().dispatch(GramBlock {
                out: Out::new(out.as_mut()),
                accumulate: accumulate || first > 0,
                a: a.subcols(first, depth),
                packed: &mut packed[..panels * height * depth],
            });
        }
    });
}

/// Lower half of aᵀ·a (p × p) for a of n × p.
pub fn gram_of_columns<R: Real>(out: MatrixMut<'_, R>, a: Matrix<'_, R>) {
    gram_of_rows(out, false, a.transpose());
}

/// Some columns of the factor, and room for them in panels.
struct GramBlock<'a, R> {
    out: Out<'a, R>,
    accumulate: bool,
    a: Matrix<'a, R>,
    packed: &'a mut [R],
}

impl<R: Real> WithSimd for GramBlock<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            out,
            accumulate,
            a,
            packed,
        } = self;
        let (height, depth) = (VECTORS * R::lanes::<S>(), a.ncols());
        let length = height * depth;
        for (index, panel) in packed.chunks_exact_mut(length).enumerate() {
            let rows = height.min(a.nrows() - index * height);
            pack_panel::<R, S>(panel, a.subrows(index * height, rows));
        }
        for (index, panel) in packed.chunks_exact(length).enumerate() {
            for column in (0..out.columns.min((index + 1) * height)).step_by(WIDTH) {
                // rows past the last panel are not wanted: any that can be read will do
                let right = std::array::from_fn(|j| {
                    let row = (column + j).min(out.columns - 1);
                    packed[row / height * length + row % height..].as_ptr()
                });
                // SAFETY: both factors are panels of `depth` columns, and the tile begins within `out`
                unsafe {
                    let tile = tile(simd, depth, panel.as_ptr(), right, height);
                    out.store(simd, [index * height, column], &tile, accumulate);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Purpose, Stream, matrix, matrix_mut, multiply};
    use proptest::prelude::*;

    fn noise<R: Real>(n: usize, index: u64) -> Vec<R> {
        let mut values = vec![R::ZERO; n];
        Stream::new(0, 0, Purpose::Initial, index).fill_normal(&mut values);
        values
    }

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
