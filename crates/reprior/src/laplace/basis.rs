//! The growing basis of block Lanczos, and Ritz pairs in it.

use super::Lanczos;
use super::curvature::SymmetricOperator;
use super::spectrum::{Spectrum, SpectrumError};
use crate::compute::{
    Matrix, Real, add_scaled, dot, matrix, matrix_mut, multiply, norm_squared, symmetric_eigen,
};

/// An orthonormal basis Q, A·Q and QᵀAQ.
pub(super) struct Basis<R> {
    size: usize,
    pub count: usize,
    vectors: Vec<R>,
    pub products: Vec<R>,
    /// Entry (i, j ≤ i) of QᵀAQ, row after row.
    projected: Vec<Vec<f64>>,
    /// Norm of the longest product of a vector of the basis.
    largest: f64,
}

/// Ritz pairs, the largest eigenvalue first.
pub(super) struct Ritz {
    pub values: Vec<f64>,
    /// Coefficients in the basis, a column for each.
    vectors: Vec<f64>,
}

impl Ritz {
    /// How many of the first pairs are wanted: those above `threshold`, and above `rounding` times the largest.
    pub fn wanted(&self, rank: usize, threshold: f64, rounding: f64) -> usize {
        let largest = self.values.first().copied().unwrap_or(0.0).max(0.0);
        let least = threshold.max(rounding * largest);
        let count = self.values.iter().take_while(|&&value| value > least);
        count.count().min(rank)
    }
}

impl<R: Real> Basis<R> {
    /// What is rounding, relative to the largest eigenvalue.
    const ROUNDING: f64 = if R::BYTES == 4 { 1e-6 } else { 1e-14 };

    /// Eigenvalues below this part of the largest are rounding.
    pub const LEAST: f64 = if R::BYTES == 4 { 3e-6 } else { 3e-13 };

    pub fn new(size: usize) -> Self {
        Self {
            size,
            count: 0,
            vectors: Vec::new(),
            products: Vec::new(),
            projected: Vec::new(),
            largest: 0.0,
        }
    }

    fn matrix(&self) -> Matrix<'_, R> {
        matrix(&self.vectors, self.size, self.count)
    }

    /// Adds what columns have that the basis has not, and its products; how many vectors that was.
    pub fn join(
        &mut self,
        operator: &mut dyn SymmetricOperator<R>,
        columns: &[R],
    ) -> Result<usize, SpectrumError> {
        let size = self.size;
        let before = self.count;
        let mut block = columns.to_vec();
        let norms: Vec<f64> = columns
            .chunks_exact(size)
            .map(|c| norm_squared(c).sqrt())
            .collect();
        // twice is enough (Parlett 1998)
        for _ in 0..2 {
            let count = block.len() / size;
            let mut along = vec![R::ZERO; self.count * count];
            let own = matrix(&block, size, count);
            let out = matrix_mut(&mut along, self.count, count);
            multiply(out, false, 1.0, self.matrix().transpose(), own);
            let along = matrix(&along, self.count, count);
            multiply(
                matrix_mut(&mut block, size, count),
                true,
                -1.0,
                self.matrix(),
                along,
            );
        }
        for (column, norm) in block.chunks_exact_mut(size).zip(norms) {
            let mut last = norm_squared(column).sqrt();
            let mut from = before;
            loop {
                for other in self.vectors[from * size..].chunks_exact(size) {
                    add_scaled(column, -dot(other, column), other);
                }
                let left = norm_squared(column).sqrt();
                if !left.is_finite() {
                    return Err(SpectrumError::NotFinite);
                }
                if left <= 10.0 * Self::ROUNDING * norm {
                    break;
                }
                if left > 0.5 * last {
                    let scale = R::from_f64(left.recip());
                    self.vectors
                        .extend(column.iter().map(|&value| scale * value));
                    break;
                }
                // little is left of it: what rounding left of the rest of the basis is not small against that
                (last, from) = (left, 0);
            }
        }
        self.count = self.vectors.len() / size;
        let added = self.count - before;
        self.products.resize(self.vectors.len(), R::ZERO);
        if added > 0 {
            let from = before * size;
            let out = matrix_mut(&mut self.products[from..], size, added);
            operator.apply(matrix(&self.vectors[from..], size, added), out);
            self.project(before)?;
        }
        Ok(added)
    }

    /// The rows of QᵀAQ from number `before` on.
    fn project(&mut self, before: usize) -> Result<(), SpectrumError> {
        let (size, added) = (self.size, self.count - before);
        let products = &self.products[before * size..];
        for product in products.chunks_exact(size) {
            let norm = norm_squared(product).sqrt();
            if !norm.is_finite() {
                return Err(SpectrumError::NotFinite);
            }
            self.largest = self.largest.max(norm);
        }
        let mut along = vec![R::ZERO; self.count * added];
        let out = matrix_mut(&mut along, self.count, added);
        multiply(
            out,
            false,
            1.0,
            self.matrix().transpose(),
            matrix(products, size, added),
        );
        for (index, column) in along.chunks_exact(self.count).enumerate() {
            let row = &column[..before + index + 1];
            self.projected
                .push(row.iter().map(|value| value.to_f64()).collect());
        }
        Ok(())
    }

    pub fn ritz(&self) -> Result<Ritz, SpectrumError> {
        let count = self.count;
        let mut dense = vec![0.0; count * count];
        for (row, values) in self.projected.iter().enumerate() {
            for (column, &value) in values.iter().enumerate() {
                dense[column * count + row] = value;
            }
        }
        let (values, vectors) = symmetric_eigen(&dense, count)?;
        let columns = (0..count)
            .rev()
            .flat_map(|at| &vectors[at * count..(at + 1) * count]);
        Ok(Ritz {
            vectors: columns.copied().collect(),
            values: values.into_iter().rev().collect(),
        })
    }

    /// Q·y and A·Q·y − θ·Q·y of the pairs `range`.
    fn pairs(&self, ritz: &Ritz, range: std::ops::Range<usize>) -> [Vec<R>; 2] {
        let (size, count, number) = (self.size, self.count, range.len());
        let own = &ritz.vectors[range.start * count..range.end * count];
        let own: Vec<R> = own.iter().map(|&value| R::from_f64(value)).collect();
        let own = matrix(&own, count, number);
        let mut vectors = vec![R::ZERO; size * number];
        multiply(
            matrix_mut(&mut vectors, size, number),
            false,
            1.0,
            self.matrix(),
            own,
        );
        let mut residuals = vec![R::ZERO; size * number];
        let products = matrix(&self.products, size, count);
        multiply(
            matrix_mut(&mut residuals, size, number),
            false,
            1.0,
            products,
            own,
        );
        let columns = vectors
            .chunks_exact(size)
            .zip(residuals.chunks_exact_mut(size));
        for ((vector, residual), value) in columns.zip(&ritz.values[range]) {
            add_scaled(residual, -value, vector);
        }
        [vectors, residuals]
    }

    /// Whether a pair with such a residual has converged.
    fn has_converged(&self, value: f64, residual: f64, settings: &Lanczos) -> bool {
        residual <= settings.tolerance * value.abs() + Self::ROUNDING * self.largest
    }

    /// Residuals of the first pairs that have not converged, at most `block` of them.
    pub fn open(&self, ritz: &Ritz, wanted: usize, block: usize, settings: &Lanczos) -> Vec<R> {
        let mut open = Vec::new();
        for first in (0..wanted).step_by(block) {
            let range = first..wanted.min(first + block);
            let [_, residuals] = self.pairs(ritz, range.clone());
            for (residual, value) in residuals.chunks_exact(self.size).zip(&ritz.values[range]) {
                let norm = norm_squared(residual).sqrt();
                if !self.has_converged(*value, norm, settings) && open.len() < block * self.size {
                    open.extend_from_slice(residual);
                }
            }
            if !open.is_empty() {
                break;
            }
        }
        open
    }

    /// The wanted pairs that have converged.
    pub fn converged(&self, ritz: &Ritz, wanted: usize, settings: &Lanczos) -> Spectrum<R> {
        let mut found = Spectrum {
            values: Vec::new(),
            vectors: Vec::new(),
            residuals: Vec::new(),
            products: self.count as u64,
            unconverged: 0,
        };
        for first in (0..wanted).step_by(64) {
            let range = first..wanted.min(first + 64);
            let [vectors, residuals] = self.pairs(ritz, range.clone());
            let columns = vectors.chunks_exact(self.size);
            let columns = columns.zip(residuals.chunks_exact(self.size));
            for ((vector, residual), &value) in columns.zip(&ritz.values[range]) {
                let norm = norm_squared(residual).sqrt();
                if value > 0.0 && self.has_converged(value, norm, settings) {
                    found.values.push(value);
                    found.vectors.extend_from_slice(vector);
                    found.residuals.push(norm);
                } else {
                    found.unconverged += 1;
                }
            }
        }
        found
    }
}
