//! The readout integrated out: log marginal likelihood given features, for a Gaussian likelihood.
//!
//! With Ψ = α·h̃, α = σ_w/√d_L, the features h̃ (n × p) extended by the constant column, K = ΨΨᵀ, K_s = σ²I + K:
//! * ℓ = −½ Σⱼ yⱼᵀK_s⁻¹yⱼ − (C/2) log det K_s (Hron et al. 2022, eq. 5 with its sign mended; −(nC/2) log 2π left out),
//! * ∂ℓ/∂Ψ = A(AᵀΨ) − C·K_s⁻¹Ψ with A = K_s⁻¹Y, where AᵀΨ = μᵀ,
//! * ∂ℓ/∂ log σ = σ²(‖A‖² − C·tr K_s⁻¹),
//! * readout | features ~ N(μ, Σ), Σ = (I + σ⁻²ΨᵀΨ)⁻¹, μ = σ⁻²ΣΨᵀY.
//!
//! `Data` space factorises K_s (n × n), `Feature` space M = σ²I + ΨᵀΨ (p × p). There yᵀK_s⁻¹y is taken as the minimum
//! of the ridge regression (‖Y − Ψμ‖² + σ²‖μ‖²)/σ², which errors in μ change in second order only (the textbook form
//! YᵀY − SᵀS cancels). Products run in the network's precision, factorisations in double precision; so do sums over rows where the noise is
//! small (`widened.rs`).
//!
//! Outputs with a σ of their own need a factorisation of their own: neighbouring outputs of one σ form a `RidgeGroup`.
//! In feature space all that rows have to say before the readout is solved for are sums over them, h̃ᵀh̃ and ΨᵀY (`Moments`), and what comes
//! after is again one term for each row and some that are shared: rows of one posterior may be in several places ([`Shard`](super::Shard)).
//!
//! Cost of ℓ with G groups: n²p + G·n³/3 or np² + G·p³/3 operations; the gradient adds 2n²p + G·2n³/3 or
//! 2np² + G·2p³/3.

use std::ops::Range;

use super::ridge::RidgeGroup;
use super::widened::{self, Widened};
use super::{EvaluationError, Space};
use crate::compute::{
    Matrix, MatrixMut, Packed, PackedShape, Real, for_each_column, gram_of_columns, gram_of_rows,
    matrix, matrix_mut, mirror_lower, multiply, multiply_packed, norm_squared, simd,
};
use crate::model::{Model, Noise};
use crate::network::{Part, Parts};

/// Work space for the readout of one model.
pub struct Readout<R> {
    pub(super) space: Space,
    pub(super) rows: usize,
    pub(super) p: usize,
    pub(super) outputs: usize,
    /// α.
    pub(super) factor: f64,
    pub(super) targets: Vec<R>,
    pub(super) targets_f64: Vec<f64>,
    /// n × n or p × p products in the network's precision.
    pub(super) gram: Vec<R>,
    /// The same in double precision, where the noise asks for it (`widened::is_needed`); feature space only.
    widened: Widened,
    is_widened: bool,
    /// Columns of features that `gram` has so far.
    columns_taken: usize,
    /// What all rows of the posterior are, of which these may be some.
    whole: Whole,
    pub(super) groups: Vec<RidgeGroup>,
    /// A = K_s⁻¹Y (n × C).
    pub(super) weighted_targets: Vec<f64>,
    /// μ (p × C); feature space only.
    pub(super) mean: Vec<f64>,
    /// Small products in the network's precision, (n or p) × C.
    pub(super) small: Vec<R>,
    pub(super) small_f64: Vec<f64>,
    /// Double-precision results in the network's precision, (n or p) × C.
    pub(super) narrow: Vec<R>,
    /// K_s⁻¹ or M⁻¹ and C⁻¹; empty until gradients are asked for.
    inverse: Vec<f64>,
    pub(super) inverse_factor: Vec<f64>,
    /// α²(AAᵀ − C·K_s⁻¹), the sum over groups; in data space, once gradients are asked for.
    symmetric: Option<Packed<R>>,
    pub(super) jitter_count: u64,
    pub(super) clamp_count: u64,
}

/// The rows of a posterior, where a readout has those of a shard.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole {
    pub rows: usize,
    /// Whether terms that all rows share count here: of one shard alone.
    pub counts_shared: bool,
}

/// Sums over all rows of a posterior, for the readout of a shard.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moments<'a> {
    /// As [`Readout::write_moments`] has them.
    pub sums: &'a [f64],
    /// What these rows are.
    pub whole: Whole,
}

impl<R: Real> Readout<R> {
    /// Buffers for the readout of `model` in the given space.
    pub fn new(model: &Model<R>, space: Space) -> Self {
        let (rows, p) = (model.rows(), model.architecture.readout_rows());
        let outputs = model.architecture.outputs;
        let size = if space == Space::Feature { p } else { rows };
        let mean = if space == Space::Feature {
            p * outputs
        } else {
            0
        };
        let mut readout = Self {
            space,
            rows,
            p,
            outputs,
            factor: model.architecture.readout_scale.factor(p - 1),
            targets: model.targets.iter().map(|&y| R::from_f64(y)).collect(),
            targets_f64: model.targets.clone(),
            gram: vec![R::ZERO; size * size],
            widened: Widened::default(),
            is_widened: false,
            columns_taken: 0,
            whole: Whole {
                rows,
                counts_shared: true,
            },
            groups: groups(&model.noise, outputs)
                .into_iter()
                .map(|outputs| RidgeGroup::new(outputs, size))
                .collect(),
            weighted_targets: vec![0.0; rows * outputs],
            mean: vec![0.0; mean],
            small: vec![R::ZERO; rows.max(p) * outputs],
            small_f64: vec![0.0; rows.max(p) * outputs],
            narrow: vec![R::ZERO; rows.max(p) * outputs],
            inverse: Vec::new(),
            inverse_factor: Vec::new(),
            symmetric: None,
            jitter_count: 0,
            clamp_count: 0,
        };
        readout.set_noise(&model.noise.typical(outputs));
        readout
    }

    /// Sets σ of every output; outputs of one group have the same.
    pub fn set_noise(&mut self, scales: &[f64]) {
        for group in &mut self.groups {
            group.root = scales[group.outputs.start];
            group.ridge = group.root * group.root;
        }
        let variances = self.groups.iter().map(|group| group.ridge);
        let smallest = variances.fold(f64::INFINITY, f64::min);
        self.is_widened =
            self.space == Space::Feature && widened::is_needed::<R>(smallest, self.rows);
    }

    /// Where the linear algebra happens.
    pub fn space(&self) -> Space {
        self.space
    }

    /// How often a factorisation needed its diagonal raised.
    pub fn jitter_count(&self) -> u64 {
        self.jitter_count
    }

    /// How many predictive variances came out below zero by rounding and were set to zero.
    pub fn clamp_count(&self) -> u64 {
        self.clamp_count
    }

    /// Bytes of the work space, with `groups` different noise scales.
    pub fn bytes(
        rows: usize,
        p: usize,
        outputs: usize,
        space: Space,
        with_gradients: bool,
        groups: usize,
    ) -> usize {
        let size = if space == Space::Feature { p } else { rows };
        let gradients = if with_gradients { 16 + R::BYTES } else { 0 };
        let matrices = R::BYTES + 8 * groups + gradients;
        let widened = match space {
            Space::Feature if R::BYTES < 8 => Widened::bytes(rows, p, outputs),
            _ => 0,
        };
        size * size * matrices + (rows + rows.max(p)) * outputs * (2 * 8 + R::BYTES) + widened
    }

    /// Takes the next columns of the features, of n rows: all of them come before [`log_ratio`](Self::log_ratio), in order.
    /// In data space their part of K is added up while they are in the cache.
    pub fn take(&mut self, columns: Matrix<'_, R>) {
        if self.columns_taken == self.p {
            self.columns_taken = 0;
        }
        if self.space != Space::Feature {
            let n = self.rows;
            let gram = matrix_mut(&mut self.gram, n, n);
            gram_of_rows(gram, self.columns_taken > 0, columns);
        }
        self.columns_taken += columns.ncols();
    }

    /// ℓ at the given features, whose columns were all [taken](Self::take).
    ///
    /// # Errors
    /// Recoverable, if the kernel matrix cannot be factorised (features not finite).
    pub fn log_ratio(&mut self, features: Matrix<'_, R>) -> Result<f64, EvaluationError> {
        let (n, p) = (self.rows, self.p);
        debug_assert_eq!(self.columns_taken, p);
        let mut total = 0.0;
        if self.space == Space::Feature {
            self.sum_rows(features);
            if self.is_widened {
                self.mean.copy_from_slice(&self.widened.product);
            } else {
                let sums = self.mean.iter_mut().zip(&self.small);
                sums.for_each(|(mean, b)| *mean = b.to_f64());
            }
            let (gram, wide) = (&self.gram, &self.widened.gram);
            for group in &mut self.groups {
                self.jitter_count += match self.is_widened {
                    true => group.factorise(self.factor, wide),
                    false => group.factorise(self.factor, gram),
                }?;
            }
            self.solve_mean();
            return Ok(self.log_ratio_given_mean(features));
        }
        self.weighted_targets.copy_from_slice(&self.targets_f64);
        for group in &mut self.groups {
            self.jitter_count += group.factorise(self.factor, &self.gram)?;
            let count = group.count();
            let weighted = &mut self.weighted_targets[group.columns(n)];
            group.cholesky.solve_lower(weighted, count);
            let quadratic = norm_squared(weighted);
            group.cholesky.solve_upper(weighted, count);
            total -= 0.5 * (quadratic + count as f64 * group.cholesky.log_determinant());
        }
        Ok(total)
    }

    /// h̃ᵀh̃ and ΨᵀY, into `widened` where that is needed and otherwise into `gram` and `small`.
    fn sum_rows(&mut self, features: Matrix<'_, R>) {
        let (n, p, c) = (self.rows, self.p, self.outputs);
        if self.is_widened {
            self.widened.sum(self.factor, features, &self.targets_f64);
            return;
        }
        gram_of_columns(matrix_mut(&mut self.gram, p, p), features);
        let small = matrix_mut(&mut self.small[..p * c], p, c);
        let targets = matrix(&self.targets, n, c);
        multiply(small, false, self.factor, features.transpose(), targets);
    }

    /// Numbers that [`write_moments`](Self::write_moments) writes.
    pub(super) fn moment_count(&self) -> usize {
        self.p * (self.p + 1) / 2 + self.p * self.outputs
    }

    /// Sums over the rows of which these are the features, in feature space: the lower triangle of h̃ᵀh̃ column by column, then ΨᵀY.
    pub(super) fn write_moments(&mut self, features: Matrix<'_, R>, out: &mut [f64]) {
        self.sum_rows(features);
        let p = self.p;
        let lower = (0..p).flat_map(|column| column * p + column..(column + 1) * p);
        if self.is_widened {
            let Widened { gram, product, .. } = &self.widened;
            let sums = lower.map(|at| gram[at]).chain(product.iter().copied());
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum);
            return;
        }
        let sums = lower
            .map(|at| self.gram[at])
            .chain(self.small.iter().copied());
        out.iter_mut()
            .zip(sums)
            .for_each(|(out, sum)| *out = sum.to_f64());
    }

    /// The part of ℓ of these rows, whose features are given, among all that the moments are of.
    ///
    /// # Errors
    /// As for [`log_ratio`](Self::log_ratio).
    pub(super) fn log_ratio_among(
        &mut self,
        features: Matrix<'_, R>,
        moments: Moments<'_>,
    ) -> Result<f64, EvaluationError> {
        self.solve_among(moments)?;
        Ok(self.log_ratio_given_mean(features))
    }

    /// Factorisations and μ = M⁻¹ΨᵀY of all rows that the moments are of.
    ///
    /// # Errors
    /// As for [`log_ratio`](Self::log_ratio).
    pub(super) fn solve_among(&mut self, moments: Moments<'_>) -> Result<(), EvaluationError> {
        let p = self.p;
        self.whole = moments.whole;
        let (lower, right) = moments.sums.split_at(p * (p + 1) / 2);
        self.mean.copy_from_slice(right);
        for group in &mut self.groups {
            // the diagonal of a column comes after all columns before it
            let found = |column: usize| {
                &lower[column * p - column * column.saturating_sub(1) / 2..][..p - column]
            };
            self.jitter_count += group.factorise_columns(self.factor, found)?;
        }
        self.solve_mean();
        Ok(())
    }

    /// From ΨᵀY in the place of the mean and factorised groups to μ = M⁻¹ΨᵀY.
    fn solve_mean(&mut self) {
        for group in &self.groups {
            let columns = group.columns(self.p);
            let (mean, count) = (&mut self.mean[columns], group.count());
            group.cholesky.solve_lower(mean, count);
            group.cholesky.solve_upper(mean, count);
        }
    }

    /// A and ℓ, given μ.
    fn log_ratio_given_mean(&mut self, features: Matrix<'_, R>) -> f64 {
        let (n, p) = (self.rows, self.p);
        self.residual_of_mean(features);
        let mut total = 0.0;
        for group in &self.groups {
            let variance = group.ridge;
            let residual = norm_squared(&self.weighted_targets[group.columns(n)]) * variance;
            total -= 0.5 * residual;
            if self.whole.counts_shared {
                let rest = (self.whole.rows as f64 - p as f64) * variance.ln();
                let log_determinant = group.cholesky.log_determinant() + rest;
                let shared = norm_squared(&self.mean[group.columns(p)]);
                total -= 0.5 * (shared + group.count() as f64 * log_determinant);
            }
        }
        total
    }

    /// A = (Y − Ψμ)/σ².
    fn residual_of_mean(&mut self, features: Matrix<'_, R>) {
        let (n, p, c) = (self.rows, self.p, self.outputs);
        if self.is_widened {
            let residual = &mut self.weighted_targets;
            residual.copy_from_slice(&self.targets_f64);
            let (factor, mean) = (self.factor, &self.mean);
            self.widened.subtract_fit(residual, factor, features, mean);
            for group in &self.groups {
                let residual = &mut self.weighted_targets[group.columns(n)];
                residual.iter_mut().for_each(|own| *own /= group.ridge);
            }
            return;
        }
        let mean = narrow(&mut self.narrow, &self.mean);
        let fitted = matrix_mut(&mut self.small[..n * c], n, c);
        multiply(fitted, false, self.factor, features, matrix(mean, p, c));
        for group in &self.groups {
            let precision = 1.0 / (group.ridge);
            for at in group.columns(n) {
                self.weighted_targets[at] =
                    (self.targets_f64[at] - self.small[at].to_f64()) * precision;
            }
        }
    }

    /// Prepares [`cotangent`](Self::cotangent) and writes ∂ℓ/∂ log σ of every output, after
    /// [`log_ratio`](Self::log_ratio). Outputs of one group: the first one's entry has the group's derivative, the others'
    /// are 0.
    pub fn prepare_cotangent(&mut self, by_log_noise: &mut [f64]) {
        let (n, p) = (self.rows, self.p);
        let size = if self.space == Space::Feature { p } else { n };
        self.inverse.resize(size * size, 0.0);
        self.inverse_factor.resize(size * size, 0.0);
        by_log_noise.fill(0.0);
        // Σ over groups of α²(AAᵀ − C·K_s⁻¹) in data space, of C·M⁻¹ in feature space
        let scale = match self.space {
            Space::Feature => 1.0,
            _ => self.factor * self.factor,
        };
        for (index, group) in self.groups.iter().enumerate() {
            let (inverse, factor) = (&mut self.inverse, &mut self.inverse_factor);
            group.cholesky.inverse(inverse, factor);
            let trace: f64 = (0..size).map(|i| inverse[i * (size + 1)]).sum();
            let (count, variance) = (group.count() as f64, group.ridge);
            let weighted = &self.weighted_targets[group.columns(n)];
            let trace = match self.space {
                Space::Feature => self.whole.rows as f64 - p as f64 + variance * trace,
                _ => variance * trace,
            };
            let shared = if self.whole.counts_shared {
                count * trace
            } else {
                0.0
            };
            by_log_noise[group.outputs.start] = variance * norm_squared(weighted) - shared;
            if self.space != Space::Feature {
                let a = matrix(weighted, n, group.count());
                multiply(matrix_mut(factor, n, n), false, 1.0, a, a.transpose());
            }
            let is_feature = self.space == Space::Feature;
            let (inverse, factor) = (&*inverse, &*factor);
            for_each_column(&mut self.gram, size, |column, out| {
                let lower = column * size + column..(column + 1) * size;
                let (inverse, products) = (&inverse[lower.clone()], &factor[lower]);
                let out = &mut out[column..];
                simd(
                    #[inline(always)]
                    || {
                        if index == 0 {
                            out.fill(R::ZERO);
                        }
                        if is_feature {
                            for (out, inverse) in out.iter_mut().zip(inverse) {
                                *out += R::from_f64(scale * (count * inverse));
                            }
                        } else {
                            for ((out, inverse), product) in
                                out.iter_mut().zip(inverse).zip(products)
                            {
                                *out += R::from_f64(scale * (product - count * inverse));
                            }
                        }
                    },
                );
            });
        }
        mirror_lower(&mut self.gram, size);
        if self.space == Space::Feature {
            narrow(&mut self.narrow, &self.mean);
            narrow(&mut self.small, &self.weighted_targets);
        } else {
            let symmetric = matrix(&self.gram, n, n);
            self.symmetric
                .get_or_insert_with(|| Packed::new(symmetric, PackedShape::Full))
                .repack(symmetric);
        }
    }

    /// What [`cotangent`](Self::cotangent) may be asked for.
    pub(super) fn parts(&self) -> Parts {
        match self.space {
            Space::Feature => Parts::Rows,
            _ => Parts::Units,
        }
    }

    /// Writes [part](Self::parts) of ∂ℓ/∂h (rows × units) at the features of the last [`log_ratio`](Self::log_ratio), once
    /// [prepared](Self::prepare_cotangent).
    pub(super) fn cotangent(
        &self,
        mut out: MatrixMut<'_, R>,
        features: Matrix<'_, R>,
        part: &Part,
    ) {
        let (n, p, c) = (self.rows, self.p, self.outputs);
        let Part { rows, units } = part;
        if let Some(symmetric) = &self.symmetric {
            let h = features.subcols(units.start, units.len());
            multiply_packed(out, false, symmetric, h);
            return;
        }
        // K_s⁻¹Ψ = ΨM⁻¹
        let inverse = matrix(&self.gram, p, p).subcols(units.start, units.len());
        let features = features.subrows(rows.start, rows.len());
        let squared_factor = self.factor * self.factor;
        multiply(out.as_mut(), false, -squared_factor, features, inverse);
        // AᵀΨ = μᵀ
        let weighted = matrix(&self.small[..n * c], n, c).subrows(rows.start, rows.len());
        let mean = matrix(&self.narrow[..p * c], p, c).subrows(units.start, units.len());
        multiply(out, true, self.factor, weighted, mean.transpose());
    }
}

/// Ranges of neighbouring outputs that share a σ.
fn groups(noise: &Noise, outputs: usize) -> Vec<Range<usize>> {
    match noise {
        Noise::Learned(prior) if prior.per_output => {
            (0..outputs).map(|output| output..output + 1).collect()
        }
        Noise::Known(scales) if scales.len() == outputs => RidgeGroup::neighbours(scales)
            .map(|(outputs, _)| outputs)
            .collect(),
        _ => std::iter::once(0..outputs).collect(),
    }
}

/// `values` in the network's precision, in a buffer that is at least as long.
pub(super) fn narrow<'a, R: Real>(buffer: &'a mut [R], values: &[f64]) -> &'a [R] {
    let buffer = &mut buffer[..values.len()];
    for (narrow, &wide) in buffer.iter_mut().zip(values) {
        *narrow = R::from_f64(wide);
    }
    buffer
}
