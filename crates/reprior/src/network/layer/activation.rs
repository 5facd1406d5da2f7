//! Elementwise nonlinearities as layers; the functions themselves are in [`Activation`].
//!
//! f' takes the place of the input where nobody else wants it; the vjp multiplies by it. The tangent of the vjp is
//! f'·δ̇ + f''·ḣ·δ.
//!
//! **At infinite width.** For Gaussian (u, v) with mean 0, variances q and q' and covariance k a layer maps k to
//! κ = E[f(u)f(v)] and the tangent kernel Θ to Θ·κ̇, κ̇ = E[f'(u)f'(v)] = ∂κ/∂k. With d = √(qq' − k²):
//!
//! | f | κ | κ̇ |
//! |---|---|---|
//! | relu, leaky (slope a) (Cho & Saul 2009, equation 6) | (1 − a)²·d/2π + κ̇·k | (1 + a²)/2 − (1 − a)²·atan2(d, k)/2π |
//! | erf (Williams 1997, equation 11) | (2/π)·atan2(2k, e), e = √((1 + 2q)(1 + 2q') − 4k²) | 4/(πe) |
//! | gelu (Tsuchida et al. 2021), p = (1 + q)(1 + q'), g = √(p − k²) | \[(k² + qq'g²)/(pg) + k·atan2(k, g)\]/2π + k/4 | \[k(3 + q + q' + k²/g²)/(pg) + atan2(k, g)\]/2π + 1/4 |
//! | sin | e^{−(q + q')/2} sinh k | e^{−(q + q')/2} cosh k |
//! | tanh | a mixture of error functions, see `tanh_moments` | |
//!
//! Differences of products are taken without cancellation, so that images that are equal get the exact value of their
//! variance, and those that nearly are one as accurate as k itself allows.

use std::f64::consts::{PI, TAU};

use super::tanh_moments;
use crate::compute::{Real, difference_of_products, right_angle, simd, upper_angle};
use crate::network::Activation;
use crate::network::operation::{Cotangent, Direction, Keeps, Operation, Point, no_tangent};

/// An activation as an operation.
#[derive(Debug)]
pub(crate) struct ElementwiseActivation(pub Activation);

impl<R: Real> Operation<R> for ElementwiseActivation {
    fn keeps(&self) -> Keeps {
        Keeps {
            derivative: true,
            ..Keeps::default()
        }
    }

    fn forward(&self, _: &[R], _: usize, input: &[R], output: &mut [R]) {
        output.copy_from_slice(input);
        self.0.apply(output);
    }

    fn forward_keeping(&self, input: &mut [R], output: &mut [R], second: Option<&mut [R]>) {
        match second {
            Some(second) => self.0.apply_with_derivatives(input, output, second),
            None => self.0.apply_with_derivative(input, output),
        }
    }

    fn jvp(&self, at: Point<'_, R>, along: Direction<'_, R>, out: &mut [R]) {
        match along.input {
            Some(tangent) => multiply(out, false, at.derivative, tangent),
            None => no_tangent(false, out),
        }
    }

    fn vjp_input(&self, at: Point<'_, R>, cotangent: &[R], accumulate: bool, out: &mut [R]) {
        multiply(out, accumulate, at.derivative, cotangent);
    }

    fn vjp_input_tangent(
        &self,
        at: Point<'_, R>,
        along: Direction<'_, R>,
        cotangent: Cotangent<'_, R>,
        accumulate: bool,
        out: &mut [R],
    ) {
        multiply(out, accumulate, at.derivative, cotangent.tangent);
        if let Some(tangent) = along.input {
            simd(
                #[inline(always)]
                || {
                    let factors = at.second.iter().zip(tangent).zip(cotangent.value);
                    for (out, ((&second, &tangent), &cotangent)) in out.iter_mut().zip(factors) {
                        *out += second * tangent * cotangent;
                    }
                },
            );
        }
    }
}

/// out ← a·b elementwise, or added to what is there.
fn multiply<R: Real>(out: &mut [R], accumulate: bool, a: &[R], b: &[R]) {
    simd(
        #[inline(always)]
        || {
            let products = a.iter().zip(b).map(|(&a, &b)| a * b);
            if accumulate {
                for (out, product) in out.iter_mut().zip(products) {
                    *out += product;
                }
            } else {
                for (out, product) in out.iter_mut().zip(products) {
                    *out = product;
                }
            }
        },
    );
}

/// k ← κ, and ntk ← ntk·κ̇ unless it is empty, for variances `first` and `second`. All of one length.
pub(in crate::network) fn map_covariances(
    function: Activation,
    k: &mut [f64],
    ntk: &mut [f64],
    first: &[f64],
    second: &[f64],
) {
    // closures, not functions, and always inlined: what is not is compiled for the smallest instruction set
    macro_rules! each {
        ($moments:expr) => {
            each(
                k,
                ntk,
                first,
                second,
                #[inline(always)]
                |k, q, r| $moments(k, q, r),
            )
        };
    }
    match function {
        Activation::Identity => {}
        Activation::Relu => each!(relu),
        Activation::LeakyRelu(a) => each(
            k,
            ntk,
            first,
            second,
            #[inline(always)]
            |k, q, r| leaky_relu(k, q, r, a),
        ),
        Activation::Erf => each!(erf),
        Activation::Gelu => each!(gelu),
        Activation::Sin => each!(sin),
        Activation::Tanh => each!(tanh_moments::moments),
    }
}

#[inline(always)]
fn each(
    k: &mut [f64],
    ntk: &mut [f64],
    first: &[f64],
    second: &[f64],
    moments: impl Fn(f64, f64, f64) -> (f64, f64),
) {
    simd(
        #[inline(always)]
        || {
            let variances = first.iter().zip(second);
            if ntk.is_empty() {
                for (k, (&q, &r)) in k.iter_mut().zip(variances) {
                    *k = moments(*k, q, r).0;
                }
            } else {
                for ((k, ntk), (&q, &r)) in k.iter_mut().zip(ntk).zip(variances) {
                    let (value, slope) = moments(*k, q, r);
                    *k = value;
                    *ntk *= slope;
                }
            }
        },
    );
}

// Each of these returns (κ, κ̇) for covariance k and variances q, r; what is not used is not computed once inlined.

#[inline(always)]
fn relu(k: f64, q: f64, r: f64) -> (f64, f64) {
    leaky_relu(k, q, r, 0.0)
}

#[inline(always)]
fn leaky_relu(k: f64, q: f64, r: f64, a: f64) -> (f64, f64) {
    let d = difference_of_products(q, r, k, k).max(0.0).sqrt();
    let bend = (1.0 - a) * (1.0 - a) / TAU;
    let slope = 0.5 * (1.0 + a * a) - bend * upper_angle(d, k);
    (bend * d + slope * k, slope)
}

#[inline(always)]
fn erf(k: f64, q: f64, r: f64) -> (f64, f64) {
    let twice = 2.0 * k;
    let (q, r) = (2.0 * q + 1.0, 2.0 * r + 1.0);
    let e = difference_of_products(q, r, twice, twice).max(0.0).sqrt();
    (2.0 / PI * right_angle(twice, e), 4.0 / (PI * e))
}

#[inline(always)]
fn gelu(k: f64, q: f64, r: f64) -> (f64, f64) {
    let p = (1.0 + q) * (1.0 + r);
    let square = difference_of_products(1.0 + q, 1.0 + r, k, k).max(0.0);
    let g = square.sqrt();
    let angle = right_angle(k, g);
    let scale = 1.0 / (p * g);
    let value = ((k * k + q * r * square) * scale + k * angle) / TAU + 0.25 * k;
    let slope = (k * (3.0 + q + r + k * k / square) * scale + angle) / TAU + 0.25;
    (value, slope)
}

#[inline(always)]
fn sin(k: f64, q: f64, r: f64) -> (f64, f64) {
    // |k| is at most the mean of the variances: nothing overflows
    let a = k.abs();
    let top = (a - 0.5 * (q + r)).exp();
    let gap = (-2.0 * a).exp_m1();
    ((-0.5 * top * gap).copysign(k), 0.5 * top * (2.0 + gap))
}
