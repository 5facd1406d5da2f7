//! Outputs that share a ridge, and its factorisation: σ² of the readout's posterior, λ of the map T.

use std::ops::Range;

use crate::compute::{Cholesky, NotPositiveDefinite, Real, simd};

/// Neighbouring outputs of one ridge r², and the Cholesky factor of α²·gram + r²I.
pub(super) struct RidgeGroup {
    pub outputs: Range<usize>,
    /// r².
    pub ridge: f64,
    /// r.
    pub root: f64,
    pub cholesky: Cholesky,
}

impl RidgeGroup {
    /// Room for a factorisation of the given size, of r = 1.
    pub fn new(outputs: Range<usize>, size: usize) -> Self {
        Self {
            outputs,
            ridge: 1.0,
            root: 1.0,
            cholesky: Cholesky::new(size),
        }
    }

    /// Groups of neighbouring outputs that have the same number, with that number.
    pub fn neighbours(numbers: &[f64]) -> impl Iterator<Item = (Range<usize>, f64)> {
        let mut start = 0;
        numbers.chunk_by(|a, b| a == b).map(move |same| {
            let outputs = start..start + same.len();
            start = outputs.end;
            (outputs, same[0])
        })
    }

    /// How many outputs.
    pub fn count(&self) -> usize {
        self.outputs.len()
    }

    /// The group's columns of a column-major matrix of so many rows.
    pub fn columns(&self, rows: usize) -> Range<usize> {
        self.outputs.start * rows..self.outputs.end * rows
    }

    /// Factorises α²·gram + r²I from the lower triangle of gram, column-major, and says how often its diagonal had to be raised.
    pub fn factorise<R: Real>(
        &mut self,
        factor: f64,
        gram: &[R],
    ) -> Result<u64, NotPositiveDefinite> {
        let size = self.cholesky.size();
        self.factorise_columns(factor, |column| {
            &gram[column * size + column..(column + 1) * size]
        })
    }

    /// The same where `gram` gives a column from the diagonal on.
    pub fn factorise_columns<'a, R: Real>(
        &mut self,
        factor: f64,
        gram: impl Fn(usize) -> &'a [R] + Sync,
    ) -> Result<u64, NotPositiveDefinite> {
        let (scale, ridge) = (factor * factor, self.ridge);
        let tries = self.cholesky.factorise_columns(|column, out| {
            let from = gram(column);
            simd(
                #[inline(always)]
                || {
                    for (out, from) in out.iter_mut().zip(from) {
                        *out = scale * from.to_f64();
                    }
                },
            );
            out[0] += ridge;
        })?;
        Ok(u64::from(tries))
    }
}
