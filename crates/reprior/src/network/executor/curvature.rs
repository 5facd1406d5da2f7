//! Hessians of negative log-likelihoods in a network's outputs, the H of JᵀHJ, for the two likelihoods most used.

use crate::compute::Real;

/// Gaussian with standard deviation `sigma`: H = I/σ².
pub fn gaussian_curvature<R: Real>(sigma: f64) -> impl Fn(usize, &[R], &mut [R]) + Sync {
    let precision = R::from_f64(1.0 / (sigma * sigma));
    move |_, _, tangent| {
        for value in tangent {
            *value = precision * *value;
        }
    }
}

/// Categorical with logits as outputs: H = diag(p) − p·pᵀ with p = softmax(outputs).
pub fn categorical_curvature<R: Real>() -> impl Fn(usize, &[R], &mut [R]) + Sync {
    |_, outputs, tangent| {
        let logits = || outputs.iter().map(|y| y.to_f64());
        let largest = logits().fold(f64::NEG_INFINITY, f64::max);
        let (mut total, mut mean) = (0.0, 0.0);
        for (logit, value) in logits().zip(&*tangent) {
            let weight = (logit - largest).exp();
            total += weight;
            mean += weight * value.to_f64();
        }
        mean /= total;
        for (logit, value) in logits().zip(tangent) {
            let p = (logit - largest).exp() / total;
            *value = R::from_f64(p * (value.to_f64() - mean));
        }
    }
}
