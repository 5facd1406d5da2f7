//! From inputs to kernels: single images first, then pairs.

use super::InfiniteNetwork;
use super::Kernels;
use super::ntk_recursion::{ActivationVariances, Planes, Pool, add_linear, run};
use super::plan::Displacements;
use super::samples::{ImageBlock, Samples};
use crate::compute::{share, simd};

/// Columns of the result that one task fills.
const COLUMNS: usize = 8;

/// What a thread keeps to itself.
#[derive(Default)]
struct PairWorkspace {
    pool: Pool,
    first: Vec<ImageBlock>,
    second: ImageBlock,
    kept: Vec<Vec<f64>>,
    products: Vec<f64>,
}

impl PairWorkspace {
    /// One for each thread.
    fn of(threads: usize) -> impl Iterator<Item = Self> {
        std::iter::repeat_with(Self::default).take(threads.max(1))
    }
}

impl InfiniteNetwork {
    /// The variances of every image at every activation.
    pub(super) fn fill_variances(&self, samples: &mut Samples<'_>, threads: usize) {
        let (total, n, batch) = (self.variances(), samples.count(), self.batch);
        if total == 0 || n == 0 {
            return;
        }
        let mut variances = std::mem::take(&mut samples.variances);
        let lower = self.nodes.len() - self.upper_nodes;
        for (is_below, nodes) in [(true, 0..lower), (false, lower..self.nodes.len())] {
            if nodes.is_empty() {
                continue;
            }
            let offset =
                |node: usize| -> usize { self.nodes[..node].iter().map(|[h, w]| h * w).sum() };
            // those below are needed for those above
            if !is_below {
                samples.variances.clone_from(&variances);
            }
            let shared = &*samples;
            let tasks = variances.chunks_mut(total * batch).enumerate();
            share(PairWorkspace::of(threads), tasks, |space, (index, out)| {
                let (start, count) = (index * batch, out.len() / total);
                self.keep_variances(shared, start..start + count, is_below, space);
                for node in nodes.clone() {
                    for (at, values) in space.kept[node].chunks(count).enumerate() {
                        for (b, &value) in values.iter().enumerate() {
                            out[b * total + offset(node) + at] = value;
                        }
                    }
                }
            });
        }
        samples.variances = variances;
    }

    /// Each of some images with itself, below or above the cut.
    fn keep_variances(
        &self,
        samples: &Samples<'_>,
        images: std::ops::Range<usize>,
        is_below: bool,
        space: &mut PairWorkspace,
    ) {
        space.kept.resize_with(self.nodes.len(), Vec::new);
        space.first.resize_with(1, ImageBlock::default);
        let (count, start) = (images.len(), images.start);
        let nodes = if is_below {
            0
        } else {
            self.nodes.len() - self.upper_nodes
        };
        let image = |b| start + b;
        samples.pack(self, &mut space.first[0], count, image, false, nodes);
        samples.pack(self, &mut space.second, count, image, true, nodes);
        let products = samples.squares.get(images).unwrap_or_default();
        let (first, second) = (&space.first[0], &space.second);
        let planes = if is_below {
            let planes =
                self.input_planes(&self.own.0, first, second, products, &mut space.pool, false);
            run(
                &self.own.1,
                planes,
                &mut ActivationVariances::Own(&mut space.kept),
                &mut space.pool,
            )
        } else {
            let planes = self.cut_planes(first, second, products, &mut space.pool, false);
            run(
                &self.upper,
                planes,
                &mut ActivationVariances::Own(&mut space.kept),
                &mut space.pool,
            )
        };
        space.pool.take(planes);
    }

    /// Kernels between two sets of inputs; of one set with itself just the lower half. With vectors `out.nngp` has their
    /// products.
    pub(super) fn fill(
        &self,
        out: &mut Kernels,
        rows: &Samples<'_>,
        columns: &Samples<'_>,
        is_symmetric: bool,
        threads: usize,
    ) {
        let n = rows.count();
        if n == 0 || columns.count() == 0 {
            return;
        }
        let with_ntk = !out.ntk.is_empty();
        let nodes = self.nodes.len();
        let nngp = out.nngp.chunks_mut(n * COLUMNS);
        let mut ntk = out.ntk.chunks_mut(n * COLUMNS);
        let tasks: Vec<_> = nngp.map(|k| (k, ntk.next().unwrap_or_default())).collect();
        let tasks = tasks.into_iter().enumerate();
        share(
            PairWorkspace::of(threads),
            tasks,
            |space, (index, (nngp, ntk))| {
                let (first, count) = (index * COLUMNS, nngp.len() / n);
                space.first.resize_with(COLUMNS, ImageBlock::default);
                let begin = if is_symmetric { first } else { 0 };
                for start in (begin..n).step_by(self.batch) {
                    let size = self.batch.min(n - start);
                    rows.pack(self, &mut space.second, size, |b| start + b, true, nodes);
                    for column in 0..count {
                        let left = &mut space.first[column];
                        if left.count != size || start == begin {
                            columns.pack(self, left, size, |_| first + column, false, nodes);
                        }
                        let at = column * n + start..column * n + start + size;
                        space.products.clear();
                        space.products.extend_from_slice(&nngp[at.clone()]);
                        let (left, pool) = (&space.first[column], &mut space.pool);
                        let planes =
                            self.cut_planes(left, &space.second, &space.products, pool, with_ntk);
                        let planes = self.above_cut(planes, left, &space.second, pool);
                        nngp[at.clone()].copy_from_slice(&planes.nngp);
                        if with_ntk {
                            ntk[at].copy_from_slice(&planes.ntk);
                        }
                        pool.take(planes);
                    }
                }
            },
        );
    }

    /// Kernels of every image with itself.
    pub(super) fn fill_diagonals(&self, out: &mut Kernels, samples: &Samples<'_>, threads: usize) {
        let with_ntk = !out.ntk.is_empty();
        let (nodes, batch) = (self.nodes.len(), self.batch);
        let mut ntk = out.ntk.chunks_mut(batch);
        let nngp = out.nngp.chunks_mut(batch);
        let tasks: Vec<_> = nngp.map(|k| (k, ntk.next().unwrap_or_default())).collect();
        let tasks = tasks.into_iter().enumerate();
        share(
            PairWorkspace::of(threads),
            tasks,
            |space, (index, (nngp, ntk))| {
                space.first.resize_with(1, ImageBlock::default);
                let (start, count) = (index * batch, nngp.len());
                let image = |b| start + b;
                samples.pack(self, &mut space.first[0], count, image, false, nodes);
                samples.pack(self, &mut space.second, count, image, true, nodes);
                let products = samples
                    .squares
                    .get(start..start + count)
                    .unwrap_or_default();
                let (first, second, pool) = (&space.first[0], &space.second, &mut space.pool);
                let planes = self.cut_planes(first, second, products, pool, with_ntk);
                let planes = self.above_cut(planes, first, second, pool);
                nngp.copy_from_slice(&planes.nngp);
                if with_ntk {
                    ntk.copy_from_slice(&planes.ntk);
                }
                pool.take(planes);
            },
        );
    }

    /// What the cut leads to, chunk by chunk of displacements.
    fn cut_planes(
        &self,
        first: &ImageBlock,
        second: &ImageBlock,
        products: &[f64],
        pool: &mut Pool,
        with_ntk: bool,
    ) -> Planes {
        let [counts, shape] = self.cut;
        let mut sum = pool.planes(counts, shape, second.count, with_ntk);
        for chunk in &self.lower {
            let planes = self.input_planes(&chunk.inputs, first, second, products, pool, with_ntk);
            let mut variances = ActivationVariances::Given {
                first: &first.nodes,
                second: &second.nodes,
            };
            let planes = run(&chunk.steps, planes, &mut variances, pool);
            add_linear(&chunk.cut, &planes, &mut sum, pool);
            pool.take(planes);
        }
        sum
    }

    fn above_cut(
        &self,
        planes: Planes,
        first: &ImageBlock,
        second: &ImageBlock,
        pool: &mut Pool,
    ) -> Planes {
        let mut variances = ActivationVariances::Given {
            first: &first.nodes,
            second: &second.nodes,
        };
        run(&self.upper, planes, &mut variances, pool)
    }

    /// Covariances of the data: the mean over channels of their products. Θ is 0.
    fn input_planes(
        &self,
        displacements: &Displacements,
        first: &ImageBlock,
        second: &ImageBlock,
        products: &[f64],
        pool: &mut Pool,
        with_ntk: bool,
    ) -> Planes {
        let counts = [displacements[0].len(), displacements[1].len()];
        let [height, width, channels]: [usize; 3] = self.input.into();
        let batch = second.count;
        let mut planes = pool.planes(counts, [height, width], batch, with_ntk);
        let scale = 1.0 / channels as f64;
        if height * width == 1 {
            for (k, product) in planes.nngp.iter_mut().zip(products) {
                *k = scale * product;
            }
            return planes;
        }
        simd(
            #[inline(always)]
            || self.multiply_pixels(&mut planes, displacements, first, second),
        );
        planes
    }

    #[inline(always)]
    fn multiply_pixels(
        &self,
        planes: &mut Planes,
        displacements: &Displacements,
        first: &ImageBlock,
        second: &ImageBlock,
    ) {
        let [height, width, channels]: [usize; 3] = self.input.into();
        let batch = second.count;
        let scale = 1.0 / channels as f64;
        let length = width * batch;
        let mut rows = planes.nngp.chunks_exact_mut(length);
        for &down in &displacements[0] {
            for &right in &displacements[1] {
                for (row, k) in rows.by_ref().take(height).enumerate() {
                    let other = (row + down) % height;
                    for channel in 0..channels {
                        let from = (channel * height + row) * length;
                        let a = &first.inputs[from..from + length];
                        let from = ((channel * height + other) * 2 * width + right) * batch;
                        let b = &second.inputs[from..from + length];
                        for ((k, a), b) in k.iter_mut().zip(a).zip(b) {
                            *k = a.mul_add(*b, *k);
                        }
                    }
                    for k in k {
                        *k *= scale;
                    }
                }
            }
        }
    }
}
