//! Gradients of the weights of convolutions and dense layers on panels: products of features and cotangents, summed over
//! samples and positions.
//!
//! For a convolution vectors run over samples: a tile of two channels of the input by six of the output is summed over the
//! positions where a tap of the window meets the image, and over the lanes at the end; [`CHUNK`] positions at a time, so that
//! the cotangents of six channels stay in the nearest cache for all taps and channels of the input. Where there is one
//! position, as in a dense layer, vectors run over features instead, which are transposed for that. 2 operations for each
//! weight, position and sample.
#![allow(unsafe_code)] // read and written without bounds checks; tested below against plain loops

use pulp::{Simd, WithSimd};

use super::Real;
use super::instructions::arch;
use super::lanes::{load, store};
use super::tile::{MOST_ROWS, VECTORS, panel_rows};

/// Positions at a time.
const CHUNK: usize = 64;

/// Where each tap of a window meets an image: pairs of a first feature of the image and a first feature of the result.
#[derive(Debug, Clone, PartialEq)]
pub struct Correlation {
    taps: usize,
    /// Chunk after chunk, in each tap after tap: where the pairs begin; and where the last ones end.
    starts: Vec<u32>,
    pairs: Vec<[u32; 2]>,
    /// The largest of each.
    largest: [usize; 2],
}

impl Correlation {
    /// `meets(tap, position)` is the first feature of the image under the tap, if there is one; a position's first feature of
    /// the result is `position`·`channels`.
    pub fn new(
        taps: usize,
        positions: usize,
        channels: usize,
        meets: impl Fn(usize, usize) -> Option<usize>,
    ) -> Self {
        let (mut starts, mut pairs, mut largest) = (vec![0], Vec::new(), [0, 0]);
        for chunk in (0..positions).step_by(CHUNK) {
            for tap in 0..taps {
                for position in chunk..positions.min(chunk + CHUNK) {
                    if let Some(left) = meets(tap, position) {
                        let right = position * channels;
                        pairs.push([left as u32, right as u32]);
                        largest = [largest[0].max(left), largest[1].max(right)];
                    }
                }
                starts.push(pairs.len() as u32);
            }
        }
        Self {
            taps,
            starts,
            pairs,
            largest,
        }
    }
}

/// Sizes of a product of features and cotangents.
#[derive(Debug, Clone, Copy)]
pub struct Outer<R> {
    /// Panels of samples.
    pub panels: usize,
    /// Channels of the image: rows of the gradient for each tap.
    pub left: usize,
    /// Channels of the result: columns of the gradient.
    pub right: usize,
    /// Rows of the gradient's matrix: as many as taps times channels, or one more for the bias, which is left alone.
    pub rows: usize,
    /// In front of the products.
    pub factor: R,
}

/// gradient ← gradient + factor·(sums over positions and samples). With `is_split` not over samples: each number of the
/// gradient is then a panel's rows, and panels follow one another.
pub fn correlate<R: Real>(
    gradient: &mut [R],
    is_split: bool,
    correlation: &Correlation,
    left: &[R],
    right: &[R],
    sizes: Outer<R>,
) {
    let height = panel_rows::<R>();
    let panels = sizes.panels;
    let copies = if is_split { panels * height } else { 1 };
    assert_eq!(gradient.len(), sizes.rows * sizes.right * copies);
    assert!(correlation.taps * sizes.left <= sizes.rows);
    if left.is_empty() || right.is_empty() || correlation.pairs.is_empty() {
        return;
    }
    let lengths = [left.len() / panels, right.len() / panels];
    assert!(left.len() == lengths[0] * panels && right.len() == lengths[1] * panels);
    assert!((correlation.largest[0] + sizes.left) * height <= lengths[0]);
    assert!((correlation.largest[1] + sizes.right) * height <= lengths[1]);
    let kernel = CorrelationKernel {
        gradient,
        correlation,
        left,
        right,
        lengths,
        sizes,
    };
    if is_split {
        arch().dispatch(SplitCorrelation(kernel));
    } else {
        arch().dispatch(SummedCorrelation(kernel));
    }
}

struct CorrelationKernel<'a, R> {
    gradient: &'a mut [R],
    correlation: &'a Correlation,
    left: &'a [R],
    right: &'a [R],
    lengths: [usize; 2],
    sizes: Outer<R>,
}

struct SummedCorrelation<'a, R>(CorrelationKernel<'a, R>);
struct SplitCorrelation<'a, R>(CorrelationKernel<'a, R>);

impl<R: Real> WithSimd for SummedCorrelation<'_, R> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        self.0.each_panel::<S, false>(simd);
    }
}

impl<R: Real> WithSimd for SplitCorrelation<'_, R> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        self.0.each_panel::<S, true>(simd);
    }
}

/// A tile's place: panel, the pairs to sum over, its first channel of the image, its first row and column of the gradient.
struct TilePlace<'a> {
    panel: usize,
    pairs: &'a [[u32; 2]],
    channel: usize,
    row: usize,
    column: usize,
}

impl<R: Real> CorrelationKernel<'_, R> {
    #[inline(always)]
    fn each_panel<S: Simd, const SPLIT: bool>(&mut self, simd: S) {
        let taps = self.correlation.taps;
        let chunks = (self.correlation.starts.len() - 1) / taps;
        for panel in 0..self.sizes.panels {
            for chunk in 0..chunks {
                let mut column = 0;
                while column < self.sizes.right {
                    let at = [panel, chunk, column];
                    column += match self.sizes.right - column {
                        6.. => self.group::<S, SPLIT, 6>(simd, at),
                        4.. => self.group::<S, SPLIT, 4>(simd, at),
                        2.. => self.group::<S, SPLIT, 2>(simd, at),
                        _ => self.group::<S, SPLIT, 1>(simd, at),
                    };
                }
            }
        }
    }

    /// `N` columns of the gradient, all rows.
    #[inline(always)]
    fn group<S: Simd, const SPLIT: bool, const N: usize>(
        &mut self,
        simd: S,
        [panel, chunk, column]: [usize; 3],
    ) -> usize {
        let correlation = self.correlation;
        for tap in 0..correlation.taps {
            let starts = &correlation.starts[chunk * correlation.taps + tap..];
            let pairs = &correlation.pairs[starts[0] as usize..starts[1] as usize];
            let mut channel = 0;
            while channel < self.sizes.left {
                let row = tap * self.sizes.left + channel;
                let place = TilePlace {
                    panel,
                    pairs,
                    channel,
                    row,
                    column,
                };
                if channel + 1 < self.sizes.left {
                    self.tile::<S, SPLIT, 2, N>(simd, place);
                    channel += 2;
                } else {
                    self.tile::<S, SPLIT, 1, N>(simd, place);
                    channel += 1;
                }
            }
        }
        N
    }

    #[inline(always)]
    fn tile<S: Simd, const SPLIT: bool, const M: usize, const N: usize>(
        &mut self,
        simd: S,
        place: TilePlace<'_>,
    ) {
        let lanes = R::lanes::<S>();
        let height = VECTORS * lanes;
        let left = self.left[place.panel * self.lengths[0] + place.channel * height..].as_ptr();
        let right = self.right[place.panel * self.lengths[1] + place.column * height..].as_ptr();
        let zero = R::splat(simd, R::ZERO);
        let (rows, columns, factor) = (self.sizes.rows, self.sizes.right, self.sizes.factor);
        if SPLIT {
            for vector in 0..VECTORS {
                let mut sums = [[zero; N]; M];
                for &pair in place.pairs {
                    // SAFETY: `correlate` has checked the largest of each pair
                    unsafe { add::<R, S, M, N>(simd, &mut sums, pair, [left, right], vector) };
                }
                let factor = R::splat(simd, factor);
                for (i, sums) in sums.iter().enumerate() {
                    for (j, &sum) in sums.iter().enumerate() {
                        let entry =
                            (place.panel * columns + place.column + j) * rows + place.row + i;
                        let at = entry * height + vector * lanes;
                        let to = self.gradient[at..at + lanes].as_mut_ptr();
                        // SAFETY: `to` has a vector's numbers
                        unsafe {
                            let old = load::<R, S>(to);
                            store::<R, S>(to, R::multiply_add(simd, factor, sum, old));
                        }
                    }
                }
            }
        } else {
            // with one row the two vectors have sums of their own: chains of additions enough to hide their latency
            let mut sums = [[[zero; N]; M]; 2];
            for &pair in place.pairs {
                for vector in 0..VECTORS {
                    let which = if M == 1 { vector % 2 } else { 0 };
                    let sums = &mut sums[which];
                    // SAFETY: `correlate` has checked the largest of each pair
                    unsafe { add::<R, S, M, N>(simd, sums, pair, [left, right], vector) };
                }
            }
            let [own, other] = sums;
            for (i, (own, other)) in own.iter().zip(&other).enumerate() {
                for (j, (&own, &other)) in own.iter().zip(other).enumerate() {
                    let sum = if M == 1 {
                        R::plus(simd, own, other)
                    } else {
                        own
                    };
                    let at = (place.column + j) * rows + place.row + i;
                    self.gradient[at] += factor * R::total(simd, sum);
                }
            }
        }
    }
}

/// Adds the products of one vector of samples at one position.
///
/// # Safety
/// `M` features can be read at the pair's first from left[0], and `N` at its second from left[1].
#[inline(always)]
unsafe fn add<R: Real, S: Simd, const M: usize, const N: usize>(
    simd: S,
    sums: &mut [[R::Vector<S>; N]; M],
    pair: [u32; 2],
    [left, right]: [*const R; 2],
    vector: usize,
) {
    let lanes = R::lanes::<S>();
    let height = VECTORS * lanes;
    // SAFETY: the caller's
    unsafe {
        let left = left.add(pair[0] as usize * height + vector * lanes);
        let right = right.add(pair[1] as usize * height + vector * lanes);
        let features: [R::Vector<S>; M] =
            std::array::from_fn(|i| load::<R, S>(left.add(i * height)));
        for j in 0..N {
            let cotangent = load::<R, S>(right.add(j * height));
            for (sums, &feature) in sums.iter_mut().zip(&features) {
                sums[j] = R::multiply_add(simd, feature, cotangent, sums[j]);
            }
        }
    }
}

/// As [`correlate`] with one tap at one position, summed over samples: gradient ← gradient + factor·leftᵀ·right.
pub fn outer_product<R: Real>(gradient: &mut [R], left: &[R], right: &[R], sizes: Outer<R>) {
    let height = panel_rows::<R>();
    let panels = sizes.panels;
    assert_eq!(left.len(), panels * sizes.left * height);
    assert_eq!(right.len(), panels * sizes.right * height);
    assert!(sizes.left <= sizes.rows && gradient.len() == sizes.rows * sizes.right);
    if gradient.is_empty() {
        return;
    }
    let blocks = sizes.left.div_ceil(height);
    R::with_scratch(panels * blocks * height * height, |turned| {
        arch().dispatch(Flat {
            gradient,
            left,
            right,
            turned,
            sizes,
        });
    });
}

struct Flat<'a, R> {
    gradient: &'a mut [R],
    left: &'a [R],
    right: &'a [R],
    turned: &'a mut [R],
    sizes: Outer<R>,
}

impl<R: Real> WithSimd for Flat<'_, R> {
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
            let features = height.min(self.sizes.left - first);
            if features < height {
                square.fill(R::ZERO);
            }
            let from =
                &self.left[(panel * self.sizes.left + first) * height..][..features * height];
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

impl<R: Real> Flat<'_, R> {
    #[inline(always)]
    fn group<S: Simd, const N: usize>(&mut self, simd: S, column: usize) -> usize {
        let lanes = R::lanes::<S>();
        let height = VECTORS * lanes;
        let Outer {
            panels,
            left,
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
            let kept = height.min(left - first);
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
    use crate::compute::stream::noise;
    use proptest::prelude::*;

    fn close<R: Real>(a: &[R], b: &[f64], tolerance: f64) {
        for (x, y) in a.iter().zip(b) {
            let error = (x.to_f64() - y).abs();
            assert!(error < tolerance * (1.0 + y.abs()), "{x:?} {y}");
        }
    }

    /// Against one loop in another, the safe twin.
    fn agree<R: Real>(
        [panels, taps, positions, left, right]: [usize; 5],
        meets: &[Option<usize>],
        tolerance: f64,
    ) {
        let height = panel_rows::<R>();
        let (rows, factor) = (taps * left + 1, 0.4);
        let pixels = 10;
        let features = noise::<R>(panels * pixels * left * height, 1);
        let cotangents = noise::<R>(panels * positions * right * height, 2);
        let sizes = Outer {
            panels,
            left,
            right,
            rows,
            factor: R::from_f64(factor),
        };
        let meets = |tap: usize, position: usize| {
            meets[(tap * positions + position) % meets.len()].map(|pixel| pixel * left)
        };
        let correlation = Correlation::new(taps, positions, right, meets);
        let mut gradient = noise::<R>(rows * right, 3);
        let mut split = noise::<R>(rows * right * panels * height, 4);
        let mut expected: Vec<f64> = gradient.iter().map(|x| x.to_f64()).collect();
        let mut expected_split: Vec<f64> = split.iter().map(|x| x.to_f64()).collect();
        for panel in 0..panels {
            for tap in 0..taps {
                for position in 0..positions {
                    let Some(first) = meets(tap, position) else {
                        continue;
                    };
                    for (a, b) in (0..left).flat_map(|a| (0..right).map(move |b| (a, b))) {
                        let entry = b * rows + tap * left + a;
                        for sample in 0..height {
                            let feature = panel * pixels * left + first + a;
                            let cotangent = (panel * positions + position) * right + b;
                            let x = features[feature * height + sample].to_f64();
                            let y = cotangents[cotangent * height + sample].to_f64();
                            expected[entry] += factor * x * y;
                            let at = (panel * rows * right + entry) * height + sample;
                            expected_split[at] += factor * x * y;
                        }
                    }
                }
            }
        }
        correlate(
            &mut gradient,
            false,
            &correlation,
            &features,
            &cotangents,
            sizes,
        );
        close(&gradient, &expected, tolerance);
        correlate(
            &mut split,
            true,
            &correlation,
            &features,
            &cotangents,
            sizes,
        );
        close(&split, &expected_split, tolerance);
    }

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
            left,
            right,
            rows,
            factor,
        };
        outer_product(&mut gradient, &features, &cotangents, sizes);
        close(&gradient, &expected, tolerance);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn correlations_agree_with_plain_loops(
            panels in 1_usize..3, taps in 1_usize..4, positions in 1_usize..90, left in 1_usize..6,
            right in 1_usize..15, meets in proptest::collection::vec(proptest::option::of(0_usize..10), 1..9),
        ) {
            agree::<f64>([panels, taps, positions, left, right], &meets, 1e-12);
            agree::<f32>([panels, taps, positions, left, right], &meets, 2e-4);
        }

        #[test]
        fn outer_products_agree_with_plain_loops(panels in 1_usize..4, left in 1_usize..50, right in 1_usize..20) {
            flat::<f64>([panels, left, right], 1e-12);
            flat::<f32>([panels, left, right], 2e-4);
        }
    }
}
