//! Leading eigenpairs of a symmetric positive semi-definite operator.
//!
//! * Exact: of G itself (D × D), or of the matrix of inner products of its rows (n·C × n·C), the neural tangent kernel weighted by
//!   H, whichever is smaller: G = FᵀF and FFᵀ have the same eigenvalues, and u = Fᵀv/√λ.
//! * Block Lanczos with full reorthogonalisation: a basis Q grows by the residuals A·u − θ·u of the wanted Ritz pairs that have not
//!   converged (for a random start they span the next Krylov block; Golub & Underwood 1977), so that it may begin as well from
//!   the vectors of a matrix nearby. Only converged pairs are given back, with their residual norms |A·u − θ·u|.
//!
//! Between two looks at residuals blocks follow one another as in Lanczos' method. Cost: products with the operator, about
//! 14·D·m·b operations for each block of b vectors that joins m, and a dense decomposition (9·m³) each time that m has grown by a
//! quarter; two matrices D × m.

use thiserror::Error;

use super::SymmetricOperator;
use crate::compute::{
    EigenFailed, Matrix, Real, Stream, add_scaled, all_finite, dot, gram_of_rows, matrix,
    matrix_mut, multiply, norm_squared, symmetric_eigen,
};

/// Eigenpairs, the largest eigenvalue first.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum<R> {
    /// Not negative.
    pub values: Vec<f64>,
    /// Orthonormal columns, size × values.
    pub vectors: Vec<R>,
    /// |A·u − θ·u| of each; zeros for an exact decomposition.
    pub residuals: Vec<f64>,
    /// Products with the operator that it took.
    pub products: u64,
    /// Pairs that were asked for and had not converged, which are left out.
    pub unconverged: usize,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SpectrumError {
    /// A product has a number that is not finite.
    #[error(
        "a product with the curvature is not finite: the weights, or the inputs, are out of range"
    )]
    NotFinite,
    /// A small dense eigenvalue problem did not converge.
    #[error(transparent)]
    Eigen(#[from] EigenFailed),
}

/// How far a Lanczos decomposition goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lanczos {
    /// Eigenpairs wanted at most.
    pub rank: usize,
    /// Vectors multiplied at a time.
    pub block: usize,
    /// A pair has converged if |A·u − θ·u| ≤ tolerance·θ, or is as small as rounding of the largest eigenvalue.
    pub tolerance: f64,
    /// Pairs below this part of the largest eigenvalue are not wanted.
    pub threshold: f64,
    /// The most vectors of the basis; what has not converged by then is left out.
    pub most: usize,
}

impl Lanczos {
    /// For `rank` pairs: blocks of 16, 1 % of each eigenvalue, a basis of three times the rank.
    pub fn of_rank(rank: usize) -> Self {
        Self {
            rank,
            block: 16,
            tolerance: 0.01,
            threshold: 0.0,
            most: 3 * rank + 64,
        }
    }
}

impl<R: Real> Spectrum<R> {
    /// Of a dense matrix with its lower half given, column-major; pairs below `threshold` times the largest eigenvalue are left
    /// out.
    ///
    /// # Errors
    /// Numbers that are not finite.
    pub fn of_dense(values: &[f64], size: usize, threshold: f64) -> Result<Self, SpectrumError> {
        if !all_finite(values) {
            return Err(SpectrumError::NotFinite);
        }
        let (values, vectors) = symmetric_eigen(values, size)?;
        let kept = kept(&values, threshold);
        let columns = kept
            .iter()
            .flat_map(|&at| &vectors[at * size..(at + 1) * size]);
        Ok(Self {
            vectors: columns.map(|&value| R::from_f64(value)).collect(),
            values: kept.iter().map(|&at| values[at]).collect(),
            residuals: vec![0.0; kept.len()],
            products: 0,
            unconverged: 0,
        })
    }

    /// Of FᵀF for the `count` rows of F (count × size, column-major), through FFᵀ.
    ///
    /// # Errors
    /// Numbers that are not finite.
    pub fn of_rows(rows: &[R], count: usize, threshold: f64) -> Result<Self, SpectrumError> {
        let size = rows.len() / count.max(1);
        let factor = matrix(rows, count, size);
        let mut gram = vec![R::ZERO; count * count];
        gram_of_rows(matrix_mut(&mut gram, count, count), false, factor);
        let gram: Vec<f64> = gram.iter().map(|value| value.to_f64()).collect();
        let small = Spectrum::<R>::of_dense(&gram, count, threshold)?;
        let rank = small.values.len();
        let mut vectors = vec![R::ZERO; size * rank];
        let out = matrix_mut(&mut vectors, size, rank);
        multiply(
            out,
            false,
            1.0,
            factor.transpose(),
            matrix(&small.vectors, count, rank),
        );
        for column in vectors.chunks_exact_mut(size) {
            let norm = R::from_f64(norm_squared(column).sqrt().recip());
            column.iter_mut().for_each(|value| *value *= norm);
        }
        Ok(Self { vectors, ..small })
    }

    /// By block Lanczos, from `start`'s vectors if there are any, else from noise.
    ///
    /// # Errors
    /// Numbers that are not finite.
    pub fn lanczos(
        operator: &mut dyn SymmetricOperator<R>,
        settings: Lanczos,
        start: Option<&Self>,
        stream: &mut Stream,
    ) -> Result<Self, SpectrumError> {
        let size = operator.size();
        let rank = settings.rank.min(size);
        let block = settings.block.clamp(1, size.max(1));
        let most = settings.most.max(rank + block).min(size);
        let mut basis = Basis::new(size);
        let (mut next, mut check_at) = match start {
            Some(start) if !start.values.is_empty() => (start.vectors.clone(), 0),
            _ => (noise(size * block, stream), most.min(rank + block)),
        };
        loop {
            next.truncate((most - basis.count) * size);
            let added = basis.join(operator, &next)?;
            if added > 0 && basis.count < check_at {
                next = basis.products[(basis.count - added) * size..].to_vec();
                continue;
            }
            let ritz = basis.ritz()?;
            let wanted = ritz.wanted(rank, settings.threshold);
            let residuals = basis.open(&ritz, wanted, block, &settings);
            let is_over = basis.count >= most;
            if !residuals.is_empty() && added > 0 && !is_over {
                next = residuals;
            } else if wanted < rank && wanted == ritz.values.len() && !is_over {
                // an invariant subspace, or more is wanted than there is room for: the rest is looked for from noise
                next = noise(size * block, stream);
            } else {
                return Ok(basis.converged(&ritz, wanted, &settings));
            }
            check_at = (basis.count + basis.count / 4)
                .max(basis.count + block)
                .min(most);
        }
    }

    /// size.
    pub fn size(&self) -> usize {
        self.vectors.len() / self.values.len().max(1)
    }

    /// The vectors.
    pub fn matrix(&self) -> Matrix<'_, R> {
        let columns = self.values.len();
        matrix(&self.vectors, self.size(), columns)
    }

    /// `out` ← out + U·diag(`factor`)·Uᵀ·`vector`, with a factor for each eigenvalue.
    pub fn add_function(&self, factor: impl Fn(f64) -> f64, vector: &[R], out: &mut [R]) {
        for (value, column) in self
            .values
            .iter()
            .zip(self.vectors.chunks_exact(vector.len()))
        {
            let along = factor(*value) * dot(column, vector);
            add_scaled(out, along, column);
        }
    }
}

/// Places of the eigenvalues, given in nondecreasing order, that count, the largest first.
fn kept(values: &[f64], threshold: f64) -> Vec<usize> {
    let largest = values.last().copied().unwrap_or(0.0).max(0.0);
    let counts = |&at: &usize| values[at] > threshold * largest && values[at] > 0.0;
    (0..values.len()).rev().filter(counts).collect()
}

fn noise<R: Real>(count: usize, stream: &mut Stream) -> Vec<R> {
    let mut values = vec![R::ZERO; count];
    stream.fill_normal(&mut values);
    values
}

/// An orthonormal basis Q, A·Q and QᵀAQ.
struct Basis<R> {
    size: usize,
    count: usize,
    vectors: Vec<R>,
    products: Vec<R>,
    /// Entry (i, j ≤ i) of QᵀAQ, row after row.
    projected: Vec<Vec<f64>>,
    /// Norm of the longest product of a vector of the basis.
    largest: f64,
}

/// Ritz pairs, the largest eigenvalue first.
struct Ritz {
    values: Vec<f64>,
    /// Coefficients in the basis, a column for each.
    vectors: Vec<f64>,
}

impl Ritz {
    /// How many of the first pairs are wanted.
    fn wanted(&self, rank: usize, threshold: f64) -> usize {
        let least = threshold * self.values.first().copied().unwrap_or(0.0).max(0.0);
        let count = self.values.iter().take_while(|&&value| value > least);
        count.count().min(rank)
    }
}

impl<R: Real> Basis<R> {
    /// What is rounding, relative to the largest eigenvalue.
    const ROUNDING: f64 = if R::BYTES == 4 { 1e-6 } else { 1e-14 };

    fn new(size: usize) -> Self {
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
    fn join(
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

    fn ritz(&self) -> Result<Ritz, SpectrumError> {
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
        residual <= settings.tolerance * value.abs() + 3.0 * Self::ROUNDING * self.largest
    }

    /// Residuals of the first pairs that have not converged, at most `block` of them.
    fn open(&self, ritz: &Ritz, wanted: usize, block: usize, settings: &Lanczos) -> Vec<R> {
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
    fn converged(&self, ritz: &Ritz, wanted: usize, settings: &Lanczos) -> Spectrum<R> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{MatrixMut, Purpose, mirror_lower};

    /// A known matrix.
    struct Dense {
        size: usize,
        values: Vec<f64>,
    }

    impl SymmetricOperator<f64> for Dense {
        fn size(&self) -> usize {
            self.size
        }
        fn apply(&mut self, vectors: Matrix<'_, f64>, out: MatrixMut<'_, f64>) {
            multiply(
                out,
                false,
                1.0,
                matrix(&self.values, self.size, self.size),
                vectors,
            );
        }
    }

    /// FᵀF for F (rows × size) whose rows fade away.
    fn factor(rows: usize, size: usize, index: u64) -> Vec<f64> {
        let mut stream = Stream::new(5, 0, Purpose::Initial, index);
        let mut factor = noise::<f64>(rows * size, &mut stream);
        for column in factor.chunks_exact_mut(rows) {
            for (row, value) in column.iter_mut().enumerate() {
                *value *= 0.9_f64.powi(row as i32);
            }
        }
        factor
    }

    fn square(factor: &[f64], rows: usize) -> Dense {
        let size = factor.len() / rows;
        let mut values = vec![0.0; size * size];
        let own = matrix(factor, rows, size);
        gram_of_rows(matrix_mut(&mut values, size, size), false, own.transpose());
        mirror_lower(&mut values, size);
        Dense { size, values }
    }

    fn stream() -> Stream {
        Stream::new(1, 0, Purpose::Initial, 9)
    }

    fn settings(rank: usize) -> Lanczos {
        Lanczos {
            block: 6,
            tolerance: 1e-9,
            most: 1000,
            ..Lanczos::of_rank(rank)
        }
    }

    fn check(found: &Spectrum<f64>, exact: &Spectrum<f64>, operator: &mut Dense, count: usize) {
        assert_eq!((found.values.len(), found.unconverged), (count, 0));
        let size = operator.size;
        for (a, b) in found.values.iter().zip(&exact.values) {
            assert!((a - b).abs() < 1e-8 * exact.values[0], "{a} {b}");
        }
        let mut products = vec![0.0; size * count];
        operator.apply(found.matrix(), matrix_mut(&mut products, size, count));
        for (at, product) in products.chunks_exact(size).enumerate() {
            let own = &found.vectors[at * size..(at + 1) * size];
            let mut residual = product.to_vec();
            add_scaled(&mut residual, -found.values[at], own);
            let norm = norm_squared(&residual).sqrt();
            assert!(norm <= 1e-8 * exact.values[0], "{at}: {norm}");
            assert!((norm - found.residuals[at]).abs() < 1e-9 * exact.values[0]);
            for other in found.vectors[..at * size].chunks_exact(size) {
                assert!(dot(own, other).abs() < 1e-10);
            }
        }
    }

    #[test]
    fn lanczos_and_rows_agree_with_the_dense_decomposition() {
        let (rows, size) = (60, 150);
        let factor = factor(rows, size, 0);
        let mut operator = square(&factor, rows);
        let exact = Spectrum::of_dense(&operator.values, size, 1e-12).unwrap();
        assert_eq!(exact.values.len(), rows);
        let by_rows = Spectrum::of_rows(&factor, rows, 1e-12).unwrap();
        check(&by_rows, &exact, &mut operator, rows);
        for rank in [1, 10, 40] {
            let found =
                Spectrum::lanczos(&mut operator, settings(rank), None, &mut stream()).unwrap();
            check(&found, &exact, &mut operator, rank);
            assert!(found.products < 150);
        }
        // more than there are
        let found = Spectrum::lanczos(
            &mut operator,
            Lanczos {
                threshold: 1e-10,
                ..settings(100)
            },
            None,
            &mut stream(),
        )
        .unwrap();
        check(&found, &exact, &mut operator, rows);
    }

    /// The vectors of a matrix nearby save products.
    #[test]
    fn a_warm_start_finds_the_same_with_fewer_products() {
        let (rows, size, rank) = (100, 300, 30);
        let mut factor = factor(rows, size, 0);
        let lanczos = Lanczos {
            tolerance: 0.01,
            ..settings(rank)
        };
        let mut operator = square(&factor, rows);
        let before = Spectrum::lanczos(&mut operator, lanczos, None, &mut stream()).unwrap();
        let mut moved = stream();
        factor
            .iter_mut()
            .for_each(|value| *value *= 1.0 + 1e-3 * moved.normal());
        let mut operator = square(&factor, rows);
        let cold = Spectrum::lanczos(&mut operator, lanczos, None, &mut stream()).unwrap();
        let warm = Spectrum::lanczos(&mut operator, lanczos, Some(&before), &mut stream()).unwrap();
        for (a, b) in warm.values.iter().zip(&cold.values) {
            assert!((a - b).abs() < 1e-5 * b, "{a} {b}");
        }
        assert!(
            warm.products < cold.products,
            "{} {}",
            warm.products,
            cold.products
        );
    }

    #[test]
    fn pairs_that_have_not_converged_are_left_out_and_counted() {
        let (rows, size) = (60, 150);
        let mut operator = square(&factor(rows, size, 0), rows);
        let few = Lanczos {
            most: 30,
            ..settings(20)
        };
        let found = Spectrum::lanczos(&mut operator, few, None, &mut stream()).unwrap();
        assert!(found.unconverged > 0 && found.values.len() + found.unconverged == 20);
        assert!(
            found
                .residuals
                .iter()
                .zip(&found.values)
                .all(|(r, v)| *r < 1e-8 * v)
        );
    }

    #[test]
    fn what_is_not_finite_is_an_error() {
        let mut operator = Dense {
            size: 3,
            values: vec![f64::NAN; 9],
        };
        let found = Spectrum::lanczos(&mut operator, settings(2), None, &mut stream());
        assert_eq!(found, Err(SpectrumError::NotFinite));
        assert!(Spectrum::<f64>::of_dense(&[f64::INFINITY; 4], 2, 0.0).is_err());
    }
}
