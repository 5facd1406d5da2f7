//! The recursion of K (NNGP) and Θ (NTK) from layer to layer, for a few pairs of images at a time.
//!
//! With weights and biases K ← σ_w²·K + σ_b² and Θ ← σ_w²·Θ + K, with an activation K ← E[f(u)·f(v)] and Θ ← Θ·E[f'(u)·f'(v)] for
//! (u, v) of covariance K (Lee et al. 2018, equation 4; Jacot, Gabriel & Hongler 2018, theorem 1); convolutions, pooling and
//! flattening are linear maps of both, and branches add up.

use super::super::layer::map_covariances;
use super::plan::{AxisMaps, BranchPlan, Displacements, KernelStep};
use crate::compute::simd;

/// Covariances of `batch` pairs of images: \[row displacement]\[column displacement]\[row]\[column]\[pair].
#[derive(Debug, Default)]
pub(super) struct Planes {
    /// Displacements of rows and of columns.
    pub counts: [usize; 2],
    /// Rows and columns of pixels.
    pub shape: [usize; 2],
    pub batch: usize,
    /// K.
    pub nngp: Vec<f64>,
    /// Θ; empty if it is not wanted.
    pub ntk: Vec<f64>,
}

/// The variances that activations need, node by node.
pub(super) enum ActivationVariances<'a> {
    /// Both images of each pair are the same, displacement 0 is there: its covariances are the variances, and kept.
    Own(&'a mut [Vec<f64>]),
    /// Those of the first images, \[row]\[column]\[pair], and of the second, whose columns come twice.
    Given {
        first: &'a [Vec<f64>],
        second: &'a [Vec<f64>],
    },
}

/// Memory to be used again.
#[derive(Debug, Default)]
pub(super) struct Pool(Vec<Vec<f64>>);

impl Pool {
    fn zeros(&mut self, length: usize) -> Vec<f64> {
        let mut values = self.0.pop().unwrap_or_default();
        values.clear();
        values.resize(length, 0.0);
        values
    }

    fn give(&mut self, values: Vec<f64>) {
        if values.capacity() > 0 {
            self.0.push(values);
        }
    }

    /// Planes of zeros, with Θ if `with_ntk`.
    pub fn planes(
        &mut self,
        counts: [usize; 2],
        shape: [usize; 2],
        batch: usize,
        with_ntk: bool,
    ) -> Planes {
        let length = counts[0] * counts[1] * shape[0] * shape[1] * batch;
        let nngp = self.zeros(length);
        let ntk = if with_ntk {
            self.zeros(length)
        } else {
            Vec::new()
        };
        Planes {
            counts,
            shape,
            batch,
            nngp,
            ntk,
        }
    }

    /// Takes the memory of planes that are not needed any more.
    pub fn take(&mut self, planes: Planes) {
        self.give(planes.nngp);
        self.give(planes.ntk);
    }
}

/// Leads `planes` through `steps`.
pub(super) fn run(
    steps: &[KernelStep],
    mut planes: Planes,
    variances: &mut ActivationVariances<'_>,
    pool: &mut Pool,
) -> Planes {
    for step in steps {
        match step {
            KernelStep::Scale { weight, bias } => scale(&mut planes, *weight, *bias),
            KernelStep::Linear(map) => {
                let counts = [0, 1].map(|axis: usize| map.axes[axis].outputs() / map.output[axis]);
                let with_ntk = !planes.ntk.is_empty();
                let mut output = pool.planes(counts, map.output, planes.batch, with_ntk);
                add_linear(map, &planes, &mut output, pool);
                pool.take(std::mem::replace(&mut planes, output));
            }
            KernelStep::Activation {
                function,
                node,
                displacements,
            } => {
                let map = |k: &mut [f64], ntk: &mut [f64], first: &[f64], second: &[f64]| {
                    map_covariances(*function, k, ntk, first, second);
                };
                match variances {
                    ActivationVariances::Own(kept) => {
                        keep(&planes, displacements, &mut kept[*node]);
                        let second = twice(&kept[*node], &planes);
                        activate(&mut planes, displacements, &kept[*node], &second, map);
                    }
                    ActivationVariances::Given { first, second } => {
                        activate(
                            &mut planes,
                            displacements,
                            &first[*node],
                            &second[*node],
                            map,
                        );
                    }
                }
            }
            KernelStep::Parallel { branches } => {
                let mut sum: Option<Planes> = None;
                for branch in branches {
                    let input = select(&planes, branch, pool);
                    let output = run(&branch.steps, input, variances, pool);
                    sum = Some(match sum {
                        None => scaled(output, branch.factor),
                        Some(mut sum) => {
                            add(&mut sum.nngp, &output.nngp, branch.factor);
                            add(&mut sum.ntk, &output.ntk, branch.factor);
                            pool.take(output);
                            sum
                        }
                    });
                }
                // a parallel layer has at least one branch
                if let Some(sum) = sum {
                    pool.take(std::mem::replace(&mut planes, sum));
                }
            }
        }
    }
    planes
}

fn scale(planes: &mut Planes, weight: f64, bias: f64) {
    simd(
        #[inline(always)]
        || {
            for k in &mut planes.nngp {
                *k = weight.mul_add(*k, bias);
            }
            for (ntk, k) in planes.ntk.iter_mut().zip(&planes.nngp) {
                *ntk = weight.mul_add(*ntk, *k);
            }
        },
    );
}

/// output ← output + map(input).
pub(super) fn add_linear(map: &AxisMaps, input: &Planes, output: &mut Planes, pool: &mut Pool) {
    let batch = input.batch;
    let columns = input.counts[1];
    let [rows, width] = [map.output[0], input.shape[1]];
    let outer = output.counts[0];
    let mut half = pool.zeros(map.axes[0].outputs() * columns * width * batch);
    map.axes[0].add_rows(&input.nngp, &mut half, columns, width * batch);
    map.axes[1].add_columns(&half, &mut output.nngp, [outer, rows, batch]);
    if !input.ntk.is_empty() {
        half.fill(0.0);
        map.axes[0].add_rows(&input.ntk, &mut half, columns, width * batch);
        map.axes[1].add_columns(&half, &mut output.ntk, [outer, rows, batch]);
    }
    pool.give(half);
}

/// Row by row: the second image's row and first column are where the displacement leads.
fn activate(
    planes: &mut Planes,
    displacements: &Displacements,
    first: &[f64],
    second: &[f64],
    map: impl Fn(&mut [f64], &mut [f64], &[f64], &[f64]),
) {
    let ([height, width], batch) = (planes.shape, planes.batch);
    let length = width * batch;
    let mut start = 0;
    for &down in &displacements[0] {
        for &right in &displacements[1] {
            for row in 0..height {
                let other = ((row + down) % height * 2 * width + right) * batch;
                let ntk = match planes.ntk.as_mut_slice() {
                    [] => &mut [],
                    ntk => &mut ntk[start..start + length],
                };
                map(
                    &mut planes.nngp[start..start + length],
                    ntk,
                    &first[row * length..(row + 1) * length],
                    &second[other..other + length],
                );
                start += length;
            }
        }
    }
}

/// Copies the covariances of displacement 0, which are the variances.
fn keep(planes: &Planes, displacements: &Displacements, variances: &mut Vec<f64>) {
    let length = planes.shape[0] * planes.shape[1] * planes.batch;
    debug_assert!(displacements.iter().all(|list| list.first() == Some(&0)));
    variances.clear();
    variances.extend_from_slice(&planes.nngp[..length]);
}

/// Variances with every row's columns twice.
fn twice(variances: &[f64], planes: &Planes) -> Vec<f64> {
    let rows = variances.chunks(planes.shape[1] * planes.batch);
    rows.flat_map(|row| row.iter().chain(row))
        .copied()
        .collect()
}

fn select(planes: &Planes, branch: &BranchPlan, pool: &mut Pool) -> Planes {
    let counts = [branch.select[0].len(), branch.select[1].len()];
    let with_ntk = !planes.ntk.is_empty();
    let mut output = pool.planes(counts, planes.shape, planes.batch, with_ntk);
    let length = planes.shape[0] * planes.shape[1] * planes.batch;
    let mut to = 0;
    for &down in &branch.select[0] {
        for &right in &branch.select[1] {
            let from = (down * planes.counts[1] + right) * length;
            let copy = |from: &[f64], to: &mut [f64]| to.copy_from_slice(from);
            copy(
                &planes.nngp[from..from + length],
                &mut output.nngp[to..to + length],
            );
            if with_ntk {
                copy(
                    &planes.ntk[from..from + length],
                    &mut output.ntk[to..to + length],
                );
            }
            to += length;
        }
    }
    output
}

fn scaled(mut planes: Planes, factor: f64) -> Planes {
    for values in [&mut planes.nngp, &mut planes.ntk] {
        values.iter_mut().for_each(|value| *value *= factor);
    }
    planes
}

fn add(sum: &mut [f64], values: &[f64], factor: f64) {
    simd(
        #[inline(always)]
        || {
            for (sum, &value) in sum.iter_mut().zip(values) {
                *sum = factor.mul_add(value, *sum);
            }
        },
    );
}
