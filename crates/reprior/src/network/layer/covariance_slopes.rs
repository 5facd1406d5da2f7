//! How an activation's covariance κ(k, q, r) = E[f(u)f(v)] moves with the covariance k and the variances q and r of (u, v).
//!
//! ∂κ/∂k is κ̇ ([`activation`](super::activation)); ∂κ/∂q = ½E[f''(u)f(v)], ∂κ/∂r the same with q and r exchanged. By differentiation of
//! the closed forms there, with d, e, p and g as there:
//!
//! | f | ∂κ/∂q |
//! |---|---|
//! | relu, leaky | (1 − a)²·d/4πq: Euler's theorem, as κ is homogeneous, 2q·∂κ/∂q + k·κ̇ = κ |
//! | erf | −4k/(πe(1 + 2q)) |
//! | gelu, Q = 1 + q, R = 1 + r, A = (k² + qrg²)/(pg) | \[(rg² + qrR)/(pg) − A(1/Q + R/2g²) − k²/(2gQ)\]/2π |
//! | sin | −κ/2 |
//! | tanh | a sum of error functions |
//!
//! Where u = v, dκ/dq in all is κ̇ + ∂κ/∂q + ∂κ/∂r.

use std::f64::consts::{PI, TAU};

use super::tanh_moments;
use crate::compute::{difference_of_products, right_angle, simd, upper_angle};
use crate::network::Activation;

/// For covariances `k` of units with variances `first` each with one of variance `second`: ∂κ/∂k, ∂κ/∂first and ∂κ/∂second. All
/// of one length.
pub(in crate::network) fn covariance_slopes(
    function: Activation,
    k: &[f64],
    first: &[f64],
    second: f64,
    [by_k, by_first, by_second]: [&mut [f64]; 3],
) {
    macro_rules! each {
        ($slopes:expr $(, $slope:expr)?) => {
            simd(
                #[inline(always)]
                || {
                    let given = k.iter().zip(first);
                    let wanted = by_k.iter_mut().zip(by_first).zip(by_second);
                    for ((&k, &q), ((by_k, by_first), by_second)) in given.zip(wanted) {
                        [*by_k, *by_first, *by_second] = $slopes(k, q, second $(, $slope)?);
                    }
                },
            )
        };
    }
    match function {
        Activation::Identity => {
            by_k.fill(1.0);
            by_first.fill(0.0);
            by_second.fill(0.0);
        }
        Activation::Relu => each!(leaky_relu, 0.0),
        Activation::LeakyRelu(a) => each!(leaky_relu, a),
        Activation::Erf => each!(erf),
        Activation::Gelu => each!(gelu),
        Activation::Sin => each!(sin),
        Activation::Tanh => each!(tanh_moments::slopes),
    }
}

#[inline(always)]
fn leaky_relu(k: f64, q: f64, r: f64, a: f64) -> [f64; 3] {
    let d = difference_of_products(q, r, k, k).max(0.0).sqrt();
    let bend = (1.0 - a) * (1.0 - a) / TAU;
    let slope = 0.5 * (1.0 + a * a) - bend * upper_angle(d, k);
    // of inputs that are zero κ is 0 whatever their covariance
    let by = |variance: f64| {
        if variance > 0.0 {
            0.5 * bend * d / variance
        } else {
            0.0
        }
    };
    [slope, by(q), by(r)]
}

#[inline(always)]
fn erf(k: f64, q: f64, r: f64) -> [f64; 3] {
    let twice = 2.0 * k;
    let (q, r) = (2.0 * q + 1.0, 2.0 * r + 1.0);
    let e = difference_of_products(q, r, twice, twice).max(0.0).sqrt();
    let common = 4.0 / (PI * e);
    [common, -common * k / q, -common * k / r]
}

#[inline(always)]
fn gelu(k: f64, q: f64, r: f64) -> [f64; 3] {
    let (up, right) = (1.0 + q, 1.0 + r);
    let square = difference_of_products(up, right, k, k).max(0.0);
    let g = square.sqrt();
    let scale = 1.0 / (up * right * g);
    let by_k = (k * (3.0 + q + r + k * k / square) * scale + right_angle(k, g)) / TAU + 0.25;
    let whole = (k * k + q * r * square) * scale;
    let by = |q: f64, r: f64| {
        let (up, right) = (1.0 + q, 1.0 + r);
        let inner = (r * square + q * r * right) * scale;
        let outer = whole * (1.0 / up + 0.5 * right / square);
        (inner - outer - 0.5 * k * k / (g * up)) / TAU
    };
    [by_k, by(q, r), by(r, q)]
}

#[inline(always)]
fn sin(k: f64, q: f64, r: f64) -> [f64; 3] {
    let a = k.abs();
    let top = (a - 0.5 * (q + r)).exp();
    let gap = (-2.0 * a).exp_m1();
    let value = (-0.5 * top * gap).copysign(k);
    [0.5 * top * (2.0 + gap), -0.5 * value, -0.5 * value]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::layer::activation::map_covariances;

    const ALL: [Activation; 7] = [
        Activation::Identity,
        Activation::Relu,
        Activation::LeakyRelu(0.2),
        Activation::Erf,
        Activation::Gelu,
        Activation::Sin,
        Activation::Tanh,
    ];

    fn value(function: Activation, k: f64, q: f64, r: f64) -> f64 {
        let mut value = [k];
        map_covariances(function, &mut value, &mut [], &[q], &[r]);
        value[0]
    }

    /// Central differences of the closed forms; of one and the same unit along its variance.
    #[test]
    fn slopes_are_those_of_the_covariances() {
        let step = 1e-5;
        for function in ALL {
            for (k, q, r) in [
                (0.3, 0.7, 1.9),
                (-1.1, 1.4, 1.2),
                (0.0, 0.2, 3.0),
                (2.0, 4.0, 1.3),
            ] {
                let (mut a, mut b, mut c) = ([0.0], [0.0], [0.0]);
                covariance_slopes(function, &[k], &[q], r, [&mut a, &mut b, &mut c]);
                let difference = |by: [f64; 3]| {
                    let at = |s: f64| value(function, k + s * by[0], q + s * by[1], r + s * by[2]);
                    (at(step) - at(-step)) / (2.0 * step)
                };
                let expected = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].map(difference);
                for (slope, expected) in [a[0], b[0], c[0]].into_iter().zip(expected) {
                    assert!(
                        (slope - expected).abs() < 1e-8,
                        "{function:?} {k} {q} {r}: {slope} {expected}"
                    );
                }
            }
            for q in [0.4, 2.5] {
                let (mut a, mut b, mut c) = ([0.0], [0.0], [0.0]);
                covariance_slopes(function, &[q], &[q], q, [&mut a, &mut b, &mut c]);
                let at = |q: f64| value(function, q, q, q);
                let expected = (at(q + step) - at(q - step)) / (2.0 * step);
                assert!(
                    (a[0] + b[0] + c[0] - expected).abs() < 1e-8,
                    "{function:?} {q}: {a:?} {b:?} {c:?} {expected}"
                );
            }
        }
    }
}
