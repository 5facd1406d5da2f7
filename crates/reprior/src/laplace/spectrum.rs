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

use super::basis::Basis;
use super::curvature::SymmetricOperator;
use crate::compute::{
    EigenFailed, Matrix, Real, Stream, add_scaled, all_finite, dot, gram_of_rows, matrix,
    matrix_mut, multiply, symmetric_eigen,
};

/// Columns of rows that are taken to double precision at a time.
const COLUMNS: usize = 4096;

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
    /// The operator was told to give up.
    #[error("the decomposition was stopped")]
    Stopped,
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
    /// A pair has converged if |A·u − θ·u| ≤ tolerance·θ, or is rounding: 1e-6 of the largest eigenvalue in single precision, 1e-14
    /// in double.
    pub tolerance: f64,
    /// Pairs with eigenvalues of at most this are not wanted, nor those below 3e-6 of the largest one (3e-13 in double precision),
    /// which rounding makes.
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
            most: rank.saturating_mul(3).saturating_add(64),
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
        // in double precision: squares of numbers that are right to 1e-7 are right to 1e-14 of the largest
        let double = |first: usize| -> Vec<f64> {
            let end = size.min(first + COLUMNS) * count;
            let own = rows[first * count..end].iter();
            own.map(|value| value.to_f64()).collect()
        };
        let mut gram = vec![0.0; count * count];
        for first in (0..size).step_by(COLUMNS) {
            let part = double(first);
            let out = matrix_mut(&mut gram, count, count);
            gram_of_rows(out, first > 0, matrix(&part, count, part.len() / count));
        }
        let small = Spectrum::<f64>::of_dense(&gram, count, threshold)?;
        let rank = small.values.len();
        let mut vectors = vec![R::ZERO; size * rank];
        for first in (0..size).step_by(COLUMNS) {
            let part = double(first);
            let columns = part.len() / count;
            let mut out = vec![0.0; columns * rank];
            let own = matrix(&part, count, columns).transpose();
            let right = matrix(&small.vectors, count, rank);
            multiply(matrix_mut(&mut out, columns, rank), false, 1.0, own, right);
            for (index, own) in out.chunks_exact(columns).enumerate() {
                let scale = small.values[index].sqrt().recip();
                let to = &mut vectors[index * size + first..][..columns];
                for (to, value) in to.iter_mut().zip(own) {
                    *to = R::from_f64(scale * value);
                }
            }
        }
        Ok(Self {
            vectors,
            values: small.values,
            residuals: small.residuals,
            products: 0,
            unconverged: 0,
        })
    }

    /// By block Lanczos, from `start`'s vectors if there are any, else from noise.
    ///
    /// # Errors
    /// Numbers that are not finite; an operator that was [stopped](SymmetricOperator::is_stopped).
    pub fn lanczos(
        operator: &mut dyn SymmetricOperator<R>,
        settings: Lanczos,
        start: Option<&Self>,
        stream: &mut Stream,
    ) -> Result<Self, SpectrumError> {
        let size = operator.size();
        let rank = settings.rank.min(size);
        let block = settings.block.clamp(1, size.max(1));
        let most = settings.most.max(rank.saturating_add(block)).min(size);
        let mut basis = Basis::new(size);
        let (mut next, mut check_at) = match start {
            Some(start) if !start.values.is_empty() => (start.vectors.clone(), 0),
            _ => (noise(size * block, stream), most.min(rank + block)),
        };
        loop {
            if operator.is_stopped() {
                return Err(SpectrumError::Stopped);
            }
            next.truncate((most - basis.count) * size);
            let added = basis.join(operator, &next)?;
            if added > 0 && basis.count < check_at {
                next = basis.products[(basis.count - added) * size..].to_vec();
                continue;
            }
            let ritz = basis.ritz()?;
            let wanted = ritz.wanted(rank, settings.threshold, Basis::<R>::LEAST);
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::curvature::Stoppable;
    use super::*;
    use crate::compute::{MatrixMut, Purpose, mirror_lower, norm_squared};

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
    fn a_decomposition_that_is_stopped_ends() {
        let stop = AtomicBool::new(false);
        let mut operator = Stoppable {
            operator: square(&factor(40, 40, 3), 40),
            stop: &stop,
        };
        let whole = Spectrum::<f64>::lanczos(&mut operator, settings(10), None, &mut stream());
        assert!(whole.is_ok());
        stop.store(true, Ordering::Relaxed);
        let found = Spectrum::<f64>::lanczos(&mut operator, settings(10), None, &mut stream());
        assert_eq!(found, Err(SpectrumError::Stopped));
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
