//! Gradients of the weights of dense layers on panels: products of features and cotangents, summed over samples.
//!
//! Vectors run over features, which are transposed for that: no lanes have to be added up. 2 operations for each weight and sample.
#![allow(unsafe_code)] // read and written without bounds checks; tested below against plain loops

use pulp::{Simd, WithSimd};

use super::instructions::arch;
use super::lanes::{load, store};
use super::tile::{MOST_ROWS, VECTORS, panel_rows};
use super::{Outer, Real};

/// gradient ← gradient + factor·leftᵀ·right, summed over samples.
pub fn outer_product<R: Real>(gradient: &mut [R], left: &[R], right: &[R], sizes: Outer<R>) {
    let height = panel_rows::<R>();
    let panels = sizes.panels;
    let features = left.len() / (panels * height).max(1);
    assert_eq!(left.len(), panels * features * height);
    assert_eq!(right.len(), panels * sizes.right * height);
    assert!(features <= sizes.rows && gradient.len() == sizes.rows * sizes.right);
    if gradient.is_empty() {
        return;
    }
    let blocks = features.div_ceil(height);
    R::with_scratch(panels * blocks * height * height, |turned| {
        R::outer_product(OuterProduct {
            gradient,
            left,
            right,
            turned,
            features,
            sizes,
        });
    });
}

/// The gradient, its factors and room for the first of them.
pub struct OuterProduct<'a, R> {
    gradient: &'a mut [R],
    left: &'a [R],
    right: &'a [R],
    turned: &'a mut [R],
    /// Of each sample.
    features: usize,
    sizes: Outer<R>,
}

impl<R: Real> WithSimd for OuterProduct<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let height = VECTORS * R::lanes::<S>();
        let panels = self.sizes.panels;
        // block of features after block, in each panel after panel: sample after sample, the features of each together
        let squares = self.turned.chunks_exact_mut(height * height);
        for (index, square) in squares.enumerate() {
            let (block, panel) = (index / panels, index % panels);
            let first = block * height;
            let features = height.min(self.features - first);
            if features < height {
                square.fill(R::ZERO);
            }
            let from = &self.left[(panel * self.features + first) * height..][..features * height];
            for (feature, samples) in from.chunks_exact(height).enumerate() {
                for (to, &value) in square[feature..].iter_mut().step_by(height).zip(samples) {
                    *to = value;
                }
            }
        }
        let mut column = 0;
        while column < self.sizes.right {
            column += match self.sizes.right - column {
                6.. => self.group::<S, 6>(simd, column),
                4.. => self.group::<S, 4>(simd, column),
                2.. => self.group::<S, 2>(simd, column),
                _ => self.group::<S, 1>(simd, column),
            };
        }
    }
}

impl<R: Real> OuterProduct<'_, R> {
    pub fn run(self) {
        arch().dispatch(self);
    }

    #[inline(always)]
    fn group<S: Simd, const N: usize>(&mut self, simd: S, column: usize) -> usize {
        let lanes = R::lanes::<S>();
        let height = VECTORS * lanes;
        let Outer {
            panels,
            right,
            rows,
            factor,
        } = self.sizes;
        let factor = R::splat(simd, factor);
        let blocks = self.turned.chunks_exact(panels * height * height);
        for (block, squares) in blocks.enumerate() {
            let mut sums = [[R::splat(simd, R::ZERO); VECTORS]; N];
            for (panel, square) in squares.chunks_exact(height * height).enumerate() {
                let at = (panel * right + column) * height;
                let cotangents = self.right[at..at + N * height].as_ptr();
                for sample in 0..height {
                    // SAFETY: the square has `height` features of each of `height` samples, and so many samples has each
                    // of the N cotangents
                    unsafe {
                        let from = square.as_ptr().add(sample * height);
                        let features: [R::Vector<S>; VECTORS] =
                            std::array::from_fn(|i| load::<R, S>(from.add(i * lanes)));
                        for (j, sums) in sums.iter_mut().enumerate() {
                            let number = R::splat(simd, *cotangents.add(j * height + sample));
                            for (sum, &feature) in sums.iter_mut().zip(&features) {
                                *sum = R::multiply_add(simd, feature, number, *sum);
                            }
                        }
                    }
                }
            }
            let first = block * height;
            let kept = height.min(self.features - first);
            for (j, sums) in sums.iter().enumerate() {
                let to = &mut self.gradient[(column + j) * rows + first..][..kept];
                let mut whole = [R::ZERO; MOST_ROWS];
                let is_whole = kept == height;
                let target = if is_whole {
                    to.as_mut_ptr()
                } else {
                    whole.as_mut_ptr()
                };
                for (i, &sum) in sums.iter().enumerate() {
                    // SAFETY: the target has `height` numbers
                    unsafe {
                        let at = target.add(i * lanes);
                        let old = load::<R, S>(at);
                        store::<R, S>(at, R::multiply_add(simd, factor, sum, old));
                    }
                }
                if !is_whole {
                    for (to, &value) in to.iter_mut().zip(&whole) {
                        *to += value;
                    }
                }
            }
        }
        N
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::matrix::assert_close;
    use crate::compute::stream::noise;
    use proptest::prelude::*;

    fn flat<R: Real>([panels, left, right]: [usize; 3], tolerance: f64) {
        let height = panel_rows::<R>();
        let features = noise::<R>(panels * left * height, 1);
        let cotangents = noise::<R>(panels * right * height, 2);
        let (rows, factor) = (left + 1, 0.4);
        let mut gradient = noise::<R>(rows * right, 3);
        let mut expected: Vec<f64> = gradient.iter().map(|x| x.to_f64()).collect();
        for (b, a) in (0..right).flat_map(|b| (0..left).map(move |a| (b, a))) {
            for (panel, sample) in (0..panels).flat_map(|p| (0..height).map(move |s| (p, s))) {
                let x = features[(panel * left + a) * height + sample].to_f64();
                let y = cotangents[(panel * right + b) * height + sample].to_f64();
                expected[b * rows + a] += factor * x * y;
            }
        }
        let factor = R::from_f64(factor);
        let sizes = Outer {
            panels,
            right,
            rows,
            factor,
        };
        outer_product(&mut gradient, &features, &cotangents, sizes);
        assert_close(&gradient, &expected, tolerance);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn outer_products_agree_with_plain_loops(panels in 1_usize..4, left in 1_usize..50, right in 1_usize..20) {
            flat::<f64>([panels, left, right], 1e-12);
            flat::<f32>([panels, left, right], 2e-4);
        }
    }
}
