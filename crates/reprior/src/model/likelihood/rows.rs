//! Rows of the likelihoods whose noise depends on the inputs, block by block: exponentials and sums of a block are vector instructions.

use std::ops::Range;

use crate::compute::{FACTORS, exp_f64};

/// Rows that are worked on at a time, in vector registers.
pub(super) const BLOCK: usize = FACTORS;

/// At most [`BLOCK`] rows of a target; those that are missing have a residual of 0 and a variance of 1.
pub(super) struct Block {
    pub residual: [f64; BLOCK],
    /// log v and 1/v.
    pub log_variance: [f64; BLOCK],
    pub precision: [f64; BLOCK],
}

/// Where the rows of each target are in targets and outputs, column by column: those of all f, then those of all g.
pub(super) struct Rows {
    /// Where the columns of g begin.
    pub half: usize,
    /// Targets of a row.
    pub count: usize,
    /// What g is multiplied with.
    variation: f64,
}

impl Rows {
    pub fn of(targets: &[f64], scales: &[f64], variation: f64) -> Self {
        Self {
            variation,
            half: targets.len() / 2,
            count: scales.len() / 2,
        }
    }

    /// The column of target j.
    fn of_target(&self, j: usize) -> Range<usize> {
        let rows = self.half / self.count;
        j * rows..(j + 1) * rows
    }

    /// These rows, of one target; `log_variance` is that of its scale.
    #[inline(always)]
    pub fn block(
        &self,
        targets: &[f64],
        outputs: &[f64],
        log_variance: f64,
        rows: Range<usize>,
    ) -> Block {
        let (mut residual, mut logarithm) = ([0.0; BLOCK], [0.0; BLOCK]);
        let (f, g) = outputs.split_at(self.half);
        let pairs = targets[rows.clone()].iter().zip(&f[rows.clone()]);
        for (residual, (y, f)) in residual.iter_mut().zip(pairs) {
            *residual = y - f;
        }
        for (logarithm, g) in logarithm.iter_mut().zip(&g[rows]) {
            *logarithm = log_variance + self.variation * g;
        }
        let mut precision = [1.0; BLOCK];
        for (precision, &logarithm) in precision.iter_mut().zip(&logarithm) {
            *precision = exp_f64(-logarithm);
        }
        Block {
            residual,
            log_variance: logarithm,
            precision,
        }
    }

    /// Writes the derivatives of a block by f and by log v, those of g.
    #[inline(always)]
    pub fn write(
        &self,
        derivatives: &mut [f64],
        rows: Range<usize>,
        of_mean: &[f64; BLOCK],
        of_logarithm: &[f64; BLOCK],
    ) {
        let count = rows.len();
        let (f, g) = derivatives.split_at_mut(self.half);
        f[rows.clone()].copy_from_slice(&of_mean[..count]);
        for (g, of_logarithm) in g[rows].iter_mut().zip(of_logarithm) {
            *g = self.variation * of_logarithm;
        }
    }

    /// The rows of each block of target j.
    pub fn blocks(&self, j: usize) -> impl Iterator<Item = Range<usize>> {
        let all = self.of_target(j);
        let end = all.end;
        all.step_by(BLOCK)
            .map(move |first| first..end.min(first + BLOCK))
    }
}
