//! Sums of products whose left factor is read where it lies: the inner loop of convolutions and of dense layers on panels.
//!
//! Samples come in panels: [`panel_rows`] of them (two vector registers), feature after feature, each feature's samples one
//! after the other. A window of an image is then a few runs of consecutive features, and a convolution at one position is the
//! tile of [`super::tile`] summed over those runs: nothing is copied to a matrix of windows first. 2 operations for each
//! number of each run, output and sample, and the runs themselves in memory (once for a layer).
#![allow(unsafe_code)] // read and written without bounds checks; tested below against plain loops

use pulp::{Simd, WithSimd};

use super::Real;
use super::instructions::arch;
use super::lanes::{load, number, store};
use super::tile::{VECTORS, panel_rows};

/// Consecutive features of a panel that meet consecutive numbers of each column of the right factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureRun {
    /// First feature.
    pub left: u32,
    /// First row of the right factor.
    pub right: u32,
    /// How many.
    pub depth: u32,
}

/// What each position of the result adds up.
#[derive(Debug, Clone, PartialEq)]
pub struct Gather {
    /// Where each position's runs begin, and where the last one's end.
    starts: Vec<u32>,
    runs: Vec<FeatureRun>,
    /// Features and rows that are read at most.
    features: usize,
    rows: usize,
}

impl Gather {
    /// A list of runs for each position; those that go on where the one before ended are made one.
    pub fn new(positions: impl IntoIterator<Item = Vec<FeatureRun>>) -> Self {
        let (mut starts, mut runs) = (vec![0], Vec::<FeatureRun>::new());
        let (mut features, mut rows) = (0, 0);
        for position in positions {
            let first = runs.len();
            for run in position {
                features = features.max((run.left + run.depth) as usize);
                rows = rows.max((run.right + run.depth) as usize);
                match runs[first..].last_mut() {
                    Some(last)
                        if last.left + last.depth == run.left
                            && last.right + last.depth == run.right =>
                    {
                        last.depth += run.depth;
                    }
                    _ => runs.push(run),
                }
            }
            starts.push(runs.len() as u32);
        }
        Self {
            starts,
            runs,
            features,
            rows,
        }
    }

    /// What one position adds up.
    pub fn runs(&self, position: usize) -> &[FeatureRun] {
        let [first, end] = [position, position + 1].map(|at| self.starts[at] as usize);
        &self.runs[first..end]
    }

    /// How many positions the result has.
    pub fn positions(&self) -> usize {
        self.starts.len() - 1
    }
}

/// The right factor: columns of weights with the factor in front of their products, and a bias.
#[derive(Debug, Clone, Copy)]
pub struct WeightColumns<'a, R> {
    /// Column-major.
    pub values: &'a [R],
    /// Rows of `values`.
    pub rows: usize,
    /// Columns of `values`: outputs of a position.
    pub columns: usize,
    /// In front of the products.
    pub factor: R,
    /// Row of the bias, and the factor in front of it.
    pub bias: Option<(usize, R)>,
}

/// out ← factor·(sums over the runs) + bias, or added to what is there if `accumulate`. `out` has positions × columns features
/// in each of `panels` panels, `left` as many in each panel as its length says.
pub fn gather_product<R: Real>(
    out: &mut [R],
    accumulate: bool,
    gather: &Gather,
    panels: usize,
    left: &[R],
    right: WeightColumns<'_, R>,
) {
    let height = panel_rows::<R>();
    let out_length = gather.positions() * right.columns * height;
    assert_eq!(out.len(), panels * out_length);
    assert!(left.len().is_multiple_of((panels * height).max(1)));
    if out.is_empty() {
        return;
    }
    let left_length = left.len() / panels;
    assert!(gather.features * height <= left_length);
    assert!(gather.rows <= right.rows && right.values.len() >= right.rows * right.columns);
    assert!(right.bias.is_none_or(|(row, _)| row < right.rows));
    R::gather_product(GatherPiece {
        out,
        accumulate,
        gather,
        left,
        left_length,
        right,
    });
}

/// All of a product.
pub struct GatherPiece<'a, R> {
    out: &'a mut [R],
    accumulate: bool,
    gather: &'a Gather,
    left: &'a [R],
    left_length: usize,
    right: WeightColumns<'a, R>,
}

impl<R: Real> WithSimd for GatherPiece<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let columns = self.right.columns;
        let mut column = 0;
        while column < columns {
            // six columns fill the registers; what is left over of them is not worth computing in full
            match columns - column {
                6.. => self.group::<S, 6>(simd, &mut column),
                4.. => self.group::<S, 4>(simd, &mut column),
                2.. => self.group::<S, 2>(simd, &mut column),
                _ => self.group::<S, 1>(simd, &mut column),
            }
        }
    }
}

impl<R: Real> GatherPiece<'_, R> {
    pub fn run(self) {
        arch().dispatch(self);
    }

    /// `N` columns at every position: they stay in the nearest cache meanwhile.
    #[inline(always)]
    fn group<S: Simd, const N: usize>(&mut self, simd: S, column: &mut usize) {
        let WeightColumns {
            values,
            rows,
            columns,
            factor,
            bias,
        } = self.right;
        let lanes = R::lanes::<S>();
        let height = VECTORS * lanes;
        let first = *column;
        *column += N;
        let right: [*const R; N] =
            std::array::from_fn(|j| values[(first + j) * rows..(first + j + 1) * rows].as_ptr());
        let biases: [R; N] = std::array::from_fn(|j| match bias {
            Some((row, factor)) => factor * values[(first + j) * rows + row],
            None => R::ZERO,
        });
        let factor = R::splat(simd, factor);
        let positions = self.gather.positions();
        let out_length = positions * columns * height;
        let panels = self.out.chunks_exact_mut(out_length);
        for (out, left) in panels.zip(self.left.chunks_exact(self.left_length)) {
            for position in 0..positions {
                let runs = self.gather.starts[position] as usize
                    ..self.gather.starts[position + 1] as usize;
                let at = (position * columns + first) * height;
                let out = &mut out[at..at + N * height];
                // SAFETY: the runs read within a panel of `left` and within the columns of `right`, as
                // `gather_product` checks, and `out` has N features
                unsafe {
                    let sums =
                        sum_runs::<R, S, N>(simd, &self.gather.runs[runs], left.as_ptr(), right);
                    for (j, sums) in sums.iter().enumerate() {
                        let bias = R::splat(simd, biases[j]);
                        for (i, &sum) in sums.iter().enumerate() {
                            let to = out.as_mut_ptr().add(j * height + i * lanes);
                            let start = if self.accumulate {
                                R::plus(simd, load::<R, S>(to), bias)
                            } else {
                                bias
                            };
                            store::<R, S>(to, R::multiply_add(simd, factor, sum, start));
                        }
                    }
                }
            }
        }
    }
}

/// The tile of `N` columns, summed over `runs`.
///
/// # Safety
/// Each run's features can be read from `left`, and its rows from every column of `right`.
#[inline(always)]
unsafe fn sum_runs<R: Real, S: Simd, const N: usize>(
    simd: S,
    runs: &[FeatureRun],
    left: *const R,
    right: [*const R; N],
) -> [[R::Vector<S>; VECTORS]; N] {
    let lanes = R::lanes::<S>();
    let mut sums = [[R::splat(simd, R::ZERO); VECTORS]; N];
    for run in runs {
        // SAFETY: the caller's
        unsafe {
            let mut a = left.add(run.left as usize * VECTORS * lanes);
            let first = run.right as usize;
            for row in first..first + run.depth as usize {
                let features: [R::Vector<S>; VECTORS] =
                    std::array::from_fn(|i| load::<R, S>(a.add(i * lanes)));
                a = a.add(VECTORS * lanes);
                for (sums, column) in sums.iter_mut().zip(&right) {
                    let number = R::splat(simd, number(column.add(row)));
                    for (sum, &feature) in sums.iter_mut().zip(&features) {
                        *sum = R::multiply_add(simd, feature, number, *sum);
                    }
                }
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::stream::noise;
    use proptest::prelude::*;

    /// The safe twin: one loop in another.
    fn agree<R: Real>(
        [panels, features, rows, columns]: [usize; 4],
        lists: Vec<Vec<FeatureRun>>,
        tolerance: f64,
    ) {
        let height = panel_rows::<R>();
        let left = noise::<R>(panels * features * height, 1);
        let values = noise::<R>((rows + 1) * columns, 2);
        let right = WeightColumns {
            values: &values,
            rows: rows + 1,
            columns,
            factor: R::from_f64(0.3),
            bias: Some((rows, R::from_f64(-0.7))),
        };
        let mut out = noise::<R>(panels * lists.len() * columns * height, 3);
        let mut expected: Vec<f64> = out.iter().map(|x| x.to_f64()).collect();
        for accumulate in [true, false] {
            for (at, expected) in expected.iter_mut().enumerate() {
                let (sample, feature) = (at % height, at / height);
                let (column, position) = (feature % columns, feature / columns % lists.len());
                let panel = feature / columns / lists.len();
                let mut sum = -0.7 * values[column * (rows + 1) + rows].to_f64();
                for run in &lists[position] {
                    for k in 0..run.depth as usize {
                        let feature = run.left as usize + k;
                        let x = left[(panel * features + feature) * height + sample];
                        let row = run.right as usize + k;
                        sum += 0.3 * x.to_f64() * values[column * (rows + 1) + row].to_f64();
                    }
                }
                *expected = if accumulate { *expected + sum } else { sum };
            }
            let gather = Gather::new(lists.clone());
            gather_product(&mut out, accumulate, &gather, panels, &left, right);
            for (x, y) in out.iter().zip(&expected) {
                assert!(
                    (x.to_f64() - y).abs() < tolerance * (1.0 + y.abs()),
                    "{x:?} {y}"
                );
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn agrees_with_plain_loops(
            panels in 1_usize..3, features in 1_u32..20, rows in 1_u32..20, columns in 1_usize..15,
            cuts in proptest::collection::vec(
                proptest::collection::vec((0_u32..100, 0_u32..100, 0_u32..100), 0..5), 1..6),
        ) {
            let lists: Vec<Vec<FeatureRun>> = cuts.iter().map(|runs| runs.iter().map(|&(a, b, c)| {
                let (left, right) = (a % features, b % rows);
                let depth = c % (features - left).min(rows - right) + 1;
                FeatureRun { left, right, depth }
            }).collect()).collect();
            let sizes = [panels, features as usize, rows as usize, columns];
            agree::<f64>(sizes, lists.clone(), 1e-12);
            agree::<f32>(sizes, lists, 1e-4);
        }
    }

    #[test]
    fn runs_that_go_on_are_joined() {
        let run = |left, right, depth| FeatureRun { left, right, depth };
        let gather = Gather::new([
            vec![run(0, 1, 2), run(2, 3, 4), run(6, 8, 1)],
            vec![run(7, 9, 1)],
        ]);
        assert_eq!(gather.runs, [run(0, 1, 6), run(6, 8, 1), run(7, 9, 1)]);
        assert_eq!(gather.positions(), 2);
    }
}
