//! Covariances of functions of a layer's parameters: sums over parameters of products of gradients, sample by sample.

use super::operation::{Cotangents, MatrixGaussian, Operation, Point};
use crate::compute::{Real, matrix, matrix_mut, multiply, panel_rows, simd};

/// [`Operation::covariance`] from gradients of single samples: (cotangents)·(parameters) rows of samples are held.
pub(crate) fn covariance_of_gradients<R: Real, O: Operation<R> + ?Sized>(
    operation: &O,
    at: Point<'_, R>,
    cotangents: Cotangents<'_, R>,
    spread: MatrixGaussian<'_, R>,
    scratch: &mut Vec<R>,
    out: &mut [R],
) {
    let ((rows, _), height, count) = (operation.rows(), panel_rows::<R>(), cotangents.count());
    let length = operation.parameters() * height;
    let units = operation.parameters() / rows.max(1);
    scratch.clear();
    scratch.resize((2 * count + 1) * length, R::ZERO);
    let (gradients, rest) = scratch.split_at_mut(count * length);
    let (scaled, rotated) = rest.split_at_mut(count * length);
    for (cotangent, own) in cotangents.iter().zip(gradients.chunks_exact_mut(length)) {
        operation.vjp_weights(at, cotangent, true, own);
        if let Some([inputs, outputs]) = spread.rotations {
            let inputs = matrix(inputs, rows, rows);
            let unit = rows * height;
            for (from, to) in own.chunks_exact(unit).zip(rotated.chunks_exact_mut(unit)) {
                let (from, to) = (matrix(from, height, rows), matrix_mut(to, height, rows));
                multiply(to, false, 1.0, from, inputs);
            }
            let out = matrix_mut(own, unit, units);
            let from = matrix(rotated, unit, units);
            multiply(out, false, 1.0, from, matrix(outputs, units, units));
        }
    }
    for (own, scaled) in gradients
        .chunks_exact(length)
        .zip(scaled.chunks_exact_mut(length))
    {
        let rows = own
            .chunks_exact(height)
            .zip(scaled.chunks_exact_mut(height));
        for (entry, (from, to)) in rows.enumerate() {
            let variance = spread.variances[entry % spread.variances.len()];
            for (to, &value) in to.iter_mut().zip(from) {
                *to = variance * value;
            }
        }
    }
    add_products(scaled, gradients, count, out);
}

/// Adds Σ a_i·b_i over rows of samples for each pair of `count` parts of both, the lower half of pairs.
pub(crate) fn add_products<R: Real>(a: &[R], b: &[R], count: usize, out: &mut [R]) {
    let height = panel_rows::<R>();
    let length = a.len() / count.max(1);
    simd(
        #[inline(always)]
        || {
            for (i, a) in a.chunks_exact(length).enumerate() {
                for (j, b) in b.chunks_exact(length).enumerate().take(i + 1) {
                    let mut sums = [R::ZERO; 32];
                    let sums = &mut sums[..height];
                    for (a, b) in a.chunks_exact(height).zip(b.chunks_exact(height)) {
                        for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
                            *sum += a * b;
                        }
                    }
                    let to = &mut out[(j * count + i) * height..][..height];
                    for (to, &sum) in to.iter_mut().zip(&*sums) {
                        *to += sum;
                    }
                }
            }
        },
    );
}
