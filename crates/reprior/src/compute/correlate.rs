//! Gradients of the weights of convolutions on panels, and of single samples' dense layers: products of features and cotangents, summed over
//! samples and positions.
//!
//! For a convolution vectors run over samples. A row of a window is a run of consecutive features of the image and of rows of the
//! gradient: a tile of a few of these by six columns is summed over the positions that have the run, so many of them at a time
//! that the cotangents of six channels stay in the nearest cache for all runs. 2 operations for each
//! weight, position and sample. For a dense layer's gradient over all samples see [`super::outer_product`].
#![allow(unsafe_code)] // read and written without bounds checks; tested below against plain loops

use std::collections::BTreeMap;

use pulp::{Simd, WithSimd};

use super::Real;
use super::gather::Gather;
use super::instructions::arch;
use super::lanes::{load, store};
use super::tile::{NARROW, VECTORS, is_wide, panel_rows};

/// Bytes of cotangents that are gone through at a time: with the features that they meet the half of a nearest cache.
const CHUNK: usize = 12 << 10;
/// The most bytes of sums whose lanes are added up at the end. Lanes of more are added up tile by tile, which takes a little longer.
const SUMS: usize = 4 << 20;

/// What becomes of a tile's sums: each lane is a sample's own, or they are added up at the end, or with the tile.
const PER_SAMPLE: u8 = 0;
const AT_THE_END: u8 = 1;
const AT_ONCE: u8 = 2;

/// Where each run of consecutive rows of the gradient meets an image.
#[derive(Debug, Clone, PartialEq)]
pub struct Correlation {
    /// Where each chunk of positions has its runs, and where the last one's end.
    chunks: Vec<usize>,
    runs: Vec<RowRun>,
    /// Pairs of a run's first feature of the image and a position's first feature of the result.
    pairs: Vec<[u32; 2]>,
    /// Features and rows that are met, positions and channels of the result.
    image: usize,
    rows: usize,
    positions: usize,
    channels: usize,
}

/// Consecutive rows of the gradient that meet consecutive features at some positions.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RowRun {
    row: usize,
    depth: usize,
    /// The first of its pairs, and the one after the last.
    pairs: [usize; 2],
}

impl Correlation {
    /// Of `gather`, forward: what each position of the result adds up. A position's first feature of the result is
    /// `position`·`channels`.
    pub fn new<R: Real>(gather: &Gather, channels: usize) -> Self {
        let at_a_time = CHUNK / (NARROW * panel_rows::<R>() * size_of::<R>());
        let mut correlation = Self {
            chunks: vec![0],
            runs: Vec::new(),
            pairs: Vec::new(),
            image: 0,
            rows: 0,
            positions: gather.positions(),
            channels,
        };
        for first in (0..gather.positions()).step_by(at_a_time) {
            let mut met = BTreeMap::<_, Vec<_>>::new();
            for position in first..gather.positions().min(first + at_a_time) {
                for run in gather.runs(position) {
                    let pair = [run.left, (position * channels) as u32];
                    met.entry((run.right, run.depth)).or_default().push(pair);
                }
            }
            for ((row, depth), pairs) in met {
                correlation.add(row as usize, depth as usize, &pairs);
            }
            correlation.chunks.push(correlation.runs.len());
        }
        correlation
    }

    fn add(&mut self, row: usize, depth: usize, pairs: &[[u32; 2]]) {
        let first = self.pairs.len();
        self.pairs.extend(pairs);
        let pairs = [first, self.pairs.len()];
        self.runs.push(RowRun { row, depth, pairs });
        self.rows = self.rows.max(row + depth);
        for pair in &self.pairs[first..] {
            self.image = self.image.max(pair[0] as usize + depth);
        }
    }
}

/// Sizes of a product of features and cotangents.
#[derive(Debug, Clone, Copy)]
pub struct Outer<R> {
    /// Panels of samples.
    pub panels: usize,
    /// Channels of the result: columns of the gradient.
    pub right: usize,
    /// Rows of the gradient's matrix: as many as a window has numbers, or one more for the bias, which is left alone.
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
    assert!(correlation.rows <= sizes.rows);
    if left.is_empty() || right.is_empty() || correlation.pairs.is_empty() {
        return;
    }
    let lengths = [left.len() / panels, right.len() / panels];
    assert!(left.len() == lengths[0] * panels && right.len() == lengths[1] * panels);
    assert!(correlation.image * height <= lengths[0]);
    assert!(correlation.positions * sizes.right * height <= lengths[1]);
    assert_eq!(correlation.channels, sizes.right);
    let kernel = CorrelationKernel {
        gradient,
        correlation,
        left,
        right,
        lengths,
        sizes,
    };
    // a vector for each number of the gradient, whatever its length
    let length = sizes.rows * sizes.right * height / VECTORS;
    if is_split {
        R::correlate(CorrelationInMode::PerSample(kernel));
    } else if length * size_of::<R>() > SUMS {
        R::correlate(CorrelationInMode::AtOnce(kernel));
    } else {
        R::with_scratch(length, |sums| {
            sums.fill(R::ZERO);
            R::correlate(CorrelationInMode::AtTheEnd(kernel, sums));
        });
    }
}

/// When sums over samples are made; at the end of sums that are kept until then.
pub enum CorrelationInMode<'a, R> {
    PerSample(CorrelationKernel<'a, R>),
    AtOnce(CorrelationKernel<'a, R>),
    AtTheEnd(CorrelationKernel<'a, R>, &'a mut [R]),
}

impl<R: Real> CorrelationInMode<'_, R> {
    pub fn run(self) {
        match self {
            Self::PerSample(kernel) => arch().dispatch(InMode::<_, PER_SAMPLE>(kernel, &mut [])),
            Self::AtOnce(kernel) => arch().dispatch(InMode::<_, AT_ONCE>(kernel, &mut [])),
            Self::AtTheEnd(kernel, sums) => {
                arch().dispatch(InMode::<_, AT_THE_END>(kernel, sums));
            }
        }
    }
}

/// All of a gradient.
pub struct CorrelationKernel<'a, R> {
    gradient: &'a mut [R],
    correlation: &'a Correlation,
    left: &'a [R],
    right: &'a [R],
    lengths: [usize; 2],
    sizes: Outer<R>,
}

/// With the sums that are kept to the end.
struct InMode<'a, R, const MODE: u8>(CorrelationKernel<'a, R>, &'a mut [R]);

impl<R: Real, const MODE: u8> WithSimd for InMode<'_, R, MODE> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(mut kernel, sums) = self;
        kernel.each_panel::<S, MODE>(simd, sums);
        let factor = kernel.sizes.factor;
        let vectors = sums.chunks_exact(R::lanes::<S>());
        for (to, sum) in kernel.gradient.iter_mut().zip(vectors) {
            // SAFETY: a vector's numbers
            *to += factor * R::total(simd, unsafe { load::<R, S>(sum.as_ptr()) });
        }
    }
}

/// A tile's place: panel, the pairs to sum over, its first row within their run, its first row and column of the gradient.
#[derive(Clone, Copy)]
struct TilePlace<'a> {
    panel: usize,
    pairs: &'a [[u32; 2]],
    offset: usize,
    row: usize,
    column: usize,
}

impl<R: Real> CorrelationKernel<'_, R> {
    #[inline(always)]
    fn each_panel<S: Simd, const MODE: u8>(&mut self, simd: S, sums: &mut [R]) {
        for panel in 0..self.sizes.panels {
            for chunk in self.correlation.chunks.windows(2) {
                let runs = &self.correlation.runs[chunk[0]..chunk[1]];
                let mut column = 0;
                while column < self.sizes.right {
                    let at = [panel, column];
                    column += match self.sizes.right - column {
                        NARROW.. => self.group::<S, MODE, NARROW>(simd, runs, at, sums),
                        4.. => self.group::<S, MODE, 4>(simd, runs, at, sums),
                        2.. => self.group::<S, MODE, 2>(simd, runs, at, sums),
                        _ => self.group::<S, MODE, 1>(simd, runs, at, sums),
                    };
                }
            }
        }
    }

    /// `N` columns of the gradient, all rows, some positions.
    #[inline(always)]
    fn group<S: Simd, const MODE: u8, const N: usize>(
        &mut self,
        simd: S,
        runs: &[RowRun],
        [panel, column]: [usize; 2],
        sums: &mut [R],
    ) -> usize {
        // what registers hold beside a vector of each row and one of the cotangents
        let most = if is_wide::<S>() { 4 } else { 2 };
        for run in runs {
            let pairs = &self.correlation.pairs[run.pairs[0]..run.pairs[1]];
            let tiles = run.depth.div_ceil(most);
            let mut offset = 0;
            for tile in 0..tiles {
                // rows in parts that are as equal as can be
                let count = (run.depth + tile) / tiles;
                let place = TilePlace {
                    panel,
                    pairs,
                    offset,
                    row: run.row + offset,
                    column,
                };
                match count {
                    4 if is_wide::<S>() => self.tile::<S, MODE, 4, N>(simd, place, sums),
                    3 if is_wide::<S>() => self.tile::<S, MODE, 3, N>(simd, place, sums),
                    2 => self.tile::<S, MODE, 2, N>(simd, place, sums),
                    _ => self.tile::<S, MODE, 1, N>(simd, place, sums),
                }
                offset += count;
            }
        }
        N
    }

    #[inline(always)]
    fn tile<S: Simd, const MODE: u8, const M: usize, const N: usize>(
        &mut self,
        simd: S,
        place: TilePlace<'_>,
        sums: &mut [R],
    ) {
        let lanes = R::lanes::<S>();
        let height = VECTORS * lanes;
        let left = self.left[place.panel * self.lengths[0] + place.offset * height..].as_ptr();
        let right = self.right[place.panel * self.lengths[1] + place.column * height..].as_ptr();
        let zero = R::splat(simd, R::ZERO);
        let (rows, columns) = (self.sizes.rows, self.sizes.right);
        if MODE == PER_SAMPLE {
            let factor = R::splat(simd, self.sizes.factor);
            for vector in 0..VECTORS {
                let mut own = [[zero; N]; M];
                for &pair in place.pairs {
                    // SAFETY: `correlate` has checked how far pairs go
                    unsafe { add::<R, S, M, N>(simd, &mut own, pair, [left, right], vector) };
                }
                let column = place.panel * columns + place.column;
                for (i, own) in own.iter().enumerate() {
                    for (j, &sum) in own.iter().enumerate() {
                        let entry = (column + j) * rows + place.row + i;
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
            let mut own = [[[zero; N]; M]; 2];
            for &pair in place.pairs {
                for vector in 0..VECTORS {
                    let which = if M == 1 { vector % 2 } else { 0 };
                    // SAFETY: `correlate` has checked how far pairs go
                    unsafe {
                        add::<R, S, M, N>(simd, &mut own[which], pair, [left, right], vector)
                    };
                }
            }
            let [own, other] = own;
            for j in 0..N {
                let at = (place.column + j) * rows + place.row;
                if MODE == AT_ONCE {
                    let to = &mut self.gradient[at..at + M];
                    for (to, (own, other)) in to.iter_mut().zip(own.iter().zip(&other)) {
                        let sum = R::plus(simd, own[j], other[j]);
                        *to += self.sizes.factor * R::total(simd, sum);
                    }
                    continue;
                }
                let at = at * lanes;
                let to = &mut sums[at..at + M * lanes];
                for (to, (own, other)) in to.chunks_exact_mut(lanes).zip(own.iter().zip(&other)) {
                    let sum = if M == 1 {
                        R::plus(simd, own[j], other[j])
                    } else {
                        own[j]
                    };
                    // SAFETY: `to` has a vector's numbers
                    unsafe {
                        let old = load::<R, S>(to.as_ptr());
                        store::<R, S>(to.as_mut_ptr(), R::plus(simd, sum, old));
                    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::gather::FeatureRun;
    use crate::compute::matrix::assert_close;
    use crate::compute::stream::noise;
    use proptest::prelude::*;

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
            right,
            rows,
            factor: R::from_f64(factor),
        };
        let meets = |tap: usize, position: usize| {
            meets[(tap * positions + position) % meets.len()].map(|pixel| pixel * left)
        };
        let gather = Gather::new((0..positions).map(|position| {
            let run = |tap| {
                let [from, right, depth] = [meets(tap, position)?, tap * left, left];
                let [left, right, depth] = [from, right, depth].map(|n| n as u32);
                Some(FeatureRun { left, right, depth })
            };
            (0..taps).filter_map(run).collect()
        }));
        let correlation = Correlation::new::<R>(&gather, right);
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
        assert_close(&gradient, &expected, tolerance);
        correlate(
            &mut split,
            true,
            &correlation,
            &features,
            &cotangents,
            sizes,
        );
        assert_close(&split, &expected_split, tolerance);
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
    }

    /// Lanes are added up tile by tile.
    #[test]
    fn large_gradients_agree_with_plain_loops() {
        let meets = [Some(3), Some(0), None, Some(7)];
        agree::<f64>([1, 9, 3, 64, 256], &meets, 1e-12);
        agree::<f32>([1, 9, 3, 64, 256], &meets, 2e-4);
    }
}
