//! The curvature H of −log p(y | f) in the outputs f of one row, as H = Σ_c s_c·s_cᵀ: the likelihood's Fisher information, which
//! makes Σ JᵀHJ the generalised Gauss-Newton matrix; or that of the empirical Fisher matrix, whose one s is the derivative of
//! −log p at the row's own target.

use std::cell::RefCell;
use std::fmt::Debug;

use crate::compute::Real;
use crate::model::likelihood::{Curvature, Derivatives, Likelihood};

/// The H of each row.
pub trait RowCurvature<R>: Debug + Sync {
    /// How many s_c there are, of a network with so many outputs.
    fn count(&self, outputs: usize) -> usize;

    /// `out` ← s_c at the outputs of a row.
    fn factor(&self, row: usize, outputs: &[R], c: usize, out: &mut [R]);

    /// `tangent` ← H·`tangent`.
    fn multiply(&self, row: usize, outputs: &[R], tangent: &mut [R]);

    /// Adds H (C × C) to `sum`.
    fn add_matrix(&self, row: usize, outputs: &[R], sum: &mut [f64]);

    /// Adds the diagonal of H to `sum`.
    fn add_diagonal(&self, row: usize, outputs: &[R], sum: &mut [f64]);
}

/// The Fisher information of the outputs under a likelihood; numbers that are not finite where the likelihood does not say what it
/// is.
#[derive(Debug, Clone, Copy)]
pub struct FisherInformation<'a> {
    /// Of the targets.
    pub likelihood: &'a dyn Likelihood,
    /// One σ for each output.
    pub scales: &'a [f64],
}

impl FisherInformation<'_> {
    /// What `use_it` makes of H at the outputs of a row; without new memory from the second row on.
    fn at<R: Real, T>(self, outputs: &[R], use_it: impl FnOnce(&Curvature) -> T) -> T {
        thread_local! {
            static SPACE: RefCell<(Vec<f64>, Curvature)> = RefCell::default();
        }
        SPACE.with_borrow_mut(|(f, curvature)| {
            f.clear();
            f.extend(outputs.iter().map(|value| value.to_f64()));
            if !self.likelihood.curvature(f, self.scales, curvature) {
                curvature.set_diagonal(f.iter().map(|_| f64::NAN));
            }
            use_it(curvature)
        })
    }
}

impl<R: Real> RowCurvature<R> for FisherInformation<'_> {
    fn count(&self, outputs: usize) -> usize {
        outputs
    }

    fn factor(&self, _: usize, outputs: &[R], c: usize, out: &mut [R]) {
        self.at(outputs, |curvature| curvature.factor(c, out));
    }

    fn multiply(&self, _: usize, outputs: &[R], tangent: &mut [R]) {
        self.at(outputs, |curvature| curvature.multiply(tangent));
    }

    fn add_matrix(&self, _: usize, outputs: &[R], sum: &mut [f64]) {
        self.at(outputs, |curvature| curvature.add_matrix(sum));
    }

    fn add_diagonal(&self, _: usize, outputs: &[R], sum: &mut [f64]) {
        self.at(outputs, |curvature| curvature.add_diagonal(sum));
    }
}

/// The empirical Fisher matrix's H: g·gᵀ with g the derivative of −log p in a row's outputs.
#[derive(Debug)]
pub struct EmpiricalFisher<'a> {
    /// n × C, row after row.
    pub targets: &'a [f64],
    /// Of the targets.
    pub likelihood: &'a dyn Likelihood,
    /// One σ for each output.
    pub scales: &'a [f64],
}

impl<R: Real> RowCurvature<R> for EmpiricalFisher<'_> {
    fn count(&self, _: usize) -> usize {
        1
    }

    fn factor(&self, row: usize, outputs: &[R], _: usize, out: &mut [R]) {
        let count = outputs.len();
        let outputs: Vec<f64> = outputs.iter().map(|f| f.to_f64()).collect();
        let (mut by_output, mut by_scale) = (vec![0.0; count], vec![0.0; count]);
        let derivatives = Derivatives {
            outputs: &mut by_output,
            log_scales: &mut by_scale,
        };
        let targets = &self.targets[row * count..(row + 1) * count];
        self.likelihood
            .log_density(targets, &outputs, self.scales, Some(derivatives));
        for (out, value) in out.iter_mut().zip(by_output) {
            *out = R::from_f64(value);
        }
    }

    fn multiply(&self, row: usize, outputs: &[R], tangent: &mut [R]) {
        let mut gradient = vec![R::ZERO; outputs.len()];
        self.factor(row, outputs, 0, &mut gradient);
        let along: R = gradient.iter().zip(&*tangent).map(|(&g, &t)| g * t).sum();
        for (value, g) in tangent.iter_mut().zip(gradient) {
            *value = along * g;
        }
    }

    fn add_matrix(&self, row: usize, outputs: &[R], sum: &mut [f64]) {
        let mut gradient = vec![R::ZERO; outputs.len()];
        self.factor(row, outputs, 0, &mut gradient);
        for (column, g) in sum.chunks_exact_mut(outputs.len()).zip(&gradient) {
            for (sum, other) in column.iter_mut().zip(&gradient) {
                *sum += g.to_f64() * other.to_f64();
            }
        }
    }

    fn add_diagonal(&self, row: usize, outputs: &[R], sum: &mut [f64]) {
        let mut gradient = vec![R::ZERO; outputs.len()];
        self.factor(row, outputs, 0, &mut gradient);
        for (sum, g) in sum.iter_mut().zip(&gradient) {
            *sum += g.to_f64().powi(2);
        }
    }
}
