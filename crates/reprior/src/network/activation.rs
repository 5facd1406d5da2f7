//! Activation functions, elementwise: forward, forward with the derivative (which is the vjp's factor), and with the second
//! derivative (which Hessian-vector products need).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::compute::{Real, simd};

/// An elementwise nonlinearity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Activation {
    /// x·Φ(x), with the exact normal distribution function (not the tanh approximation).
    Gelu,
    /// max(x, 0); the derivative at 0 is 0.
    Relu,
    /// The error function.
    Erf,
    /// The hyperbolic tangent.
    Tanh,
    /// x.
    Identity,
    /// x for x > 0, a·x otherwise.
    LeakyRelu(f64),
    /// sin x.
    Sin,
}

/// Names as the command line knows them.
pub const NAMES: &str = "gelu, relu, erf, tanh, identity, leaky_relu(a), sin";

impl Activation {
    /// values ← f(values).
    pub fn apply<R: Real>(self, values: &mut [R]) {
        self.visit(values, |x, f| *x = f.0);
    }

    /// out ← f(values), values ← f'(values).
    pub fn apply_with_derivative<R: Real>(self, values: &mut [R], out: &mut [R]) {
        self.visit_pairs(
            values,
            out,
            #[inline(always)]
            |x, y, f| (*y, *x) = f,
        );
    }

    /// derivative ← f'(values), values ← f(values).
    pub fn apply_in_place_with_derivative<R: Real>(self, values: &mut [R], derivative: &mut [R]) {
        self.visit_pairs(
            values,
            derivative,
            #[inline(always)]
            |x, y, f| (*x, *y) = f,
        );
    }

    /// out ← f(values), second ← f''(values), values ← f'(values). Where f' jumps, f'' is 0.
    pub fn apply_with_derivatives<R: Real>(
        self,
        values: &mut [R],
        out: &mut [R],
        second: &mut [R],
    ) {
        debug_assert_eq!(values.len(), out.len());
        debug_assert_eq!(values.len(), second.len());
        match self {
            Self::Gelu => triples(values, out, second, |x| (gelu(x), gelu_second(x))),
            Self::Relu => triples(values, out, second, |x| (relu(x), R::ZERO)),
            Self::Erf => triples(values, out, second, |x| {
                let (y, slope) = erf(x);
                ((y, slope), -(x + x) * slope)
            }),
            Self::Tanh => triples(values, out, second, |x| {
                let (y, slope) = tanh(x);
                ((y, slope), -(y + y) * slope)
            }),
            Self::Identity => triples(values, out, second, |x| ((x, R::ONE), R::ZERO)),
            Self::LeakyRelu(a) => {
                let a = R::from_f64(a);
                triples(values, out, second, |x| (leaky_relu(x, a), R::ZERO));
            }
            Self::Sin => triples(values, out, second, |x| {
                let (y, slope) = sin(x);
                ((y, slope), -y)
            }),
        }
    }

    fn visit<R: Real>(self, values: &mut [R], store: impl Fn(&mut R, (R, R)) + Copy) {
        match self {
            Self::Gelu => each(values, |x| store(x, gelu(*x))),
            Self::Relu => each(values, |x| store(x, relu(*x))),
            Self::Erf => each(values, |x| store(x, erf(*x))),
            Self::Tanh => each(values, |x| store(x, tanh(*x))),
            Self::Identity => {}
            Self::LeakyRelu(a) => {
                let a = R::from_f64(a);
                each(values, |x| store(x, leaky_relu(*x, a)));
            }
            Self::Sin => each(values, |x| store(x, sin(*x))),
        }
    }

    /// Has f and f' of each of `values` stored.
    #[inline(always)]
    fn visit_pairs<R: Real>(
        self,
        values: &mut [R],
        others: &mut [R],
        store: impl Fn(&mut R, &mut R, (R, R)) + Copy,
    ) {
        debug_assert_eq!(values.len(), others.len());
        match self {
            Self::Gelu => pairs(values, others, |x, y| store(x, y, gelu(*x))),
            Self::Relu => pairs(values, others, |x, y| store(x, y, relu(*x))),
            Self::Erf => pairs(values, others, |x, y| store(x, y, erf(*x))),
            Self::Tanh => pairs(values, others, |x, y| store(x, y, tanh(*x))),
            Self::Identity => pairs(values, others, |x, y| store(x, y, (*x, R::ONE))),
            Self::LeakyRelu(a) => {
                let a = R::from_f64(a);
                pairs(values, others, |x, y| store(x, y, leaky_relu(*x, a)));
            }
            Self::Sin => pairs(values, others, |x, y| store(x, y, sin(*x))),
        }
    }
}

#[inline(always)]
fn each<R: Real>(values: &mut [R], operation: impl Fn(&mut R)) {
    simd(
        #[inline(always)]
        || values.iter_mut().for_each(&operation),
    );
}

#[inline(always)]
fn pairs<R: Real>(values: &mut [R], others: &mut [R], operation: impl Fn(&mut R, &mut R)) {
    simd(
        #[inline(always)]
        || {
            for (x, y) in values.iter_mut().zip(others) {
                operation(x, y);
            }
        },
    );
}

#[inline(always)]
fn triples<R: Real>(
    values: &mut [R],
    out: &mut [R],
    second: &mut [R],
    f: impl Fn(R) -> ((R, R), R),
) {
    simd(
        #[inline(always)]
        || {
            for ((x, y), second) in values.iter_mut().zip(out).zip(second) {
                ((*y, *x), *second) = f(*x);
            }
        },
    );
}

// Each of these returns (f(x), f'(x)); what is not used is not computed once inlined.

#[inline(always)]
fn gelu<R: Real>(x: R) -> (R, R) {
    let (cdf, pdf) = x.normal_cdf_pdf();
    (x * cdf, cdf + x * pdf)
}

/// f''(x) = φ(x)·(2 − x²).
#[inline(always)]
fn gelu_second<R: Real>(x: R) -> R {
    let (_, pdf) = x.normal_cdf_pdf();
    pdf * (R::from_f64(2.0) - x * x)
}

#[inline(always)]
fn relu<R: Real>(x: R) -> (R, R) {
    leaky_relu(x, R::ZERO)
}

/// A NaN is neither positive nor not: it falls through `a·x` and stays NaN.
#[inline(always)]
fn leaky_relu<R: Real>(x: R, a: R) -> (R, R) {
    if x > R::ZERO { (x, R::ONE) } else { (a * x, a) }
}

/// erf(x) = 2Φ(√2 x) − 1, erf'(x) = 2√2 φ(√2 x).
#[inline(always)]
fn erf<R: Real>(x: R) -> (R, R) {
    let root = R::from_f64(std::f64::consts::SQRT_2);
    let two = R::from_f64(2.0);
    let (cdf, pdf) = (root * x).normal_cdf_pdf();
    (two * cdf - R::ONE, two * root * pdf)
}

#[inline(always)]
fn tanh<R: Real>(x: R) -> (R, R) {
    let y = Real::tanh(x);
    (y, (R::ONE - y) * (R::ONE + y))
}

#[inline(always)]
fn sin<R: Real>(x: R) -> (R, R) {
    Real::sin_cos(x)
}

impl fmt::Display for Activation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gelu => f.write_str("gelu"),
            Self::Relu => f.write_str("relu"),
            Self::Erf => f.write_str("erf"),
            Self::Tanh => f.write_str("tanh"),
            Self::Identity => f.write_str("identity"),
            Self::LeakyRelu(a) => write!(f, "leaky_relu({a})"),
            Self::Sin => f.write_str("sin"),
        }
    }
}

impl FromStr for Activation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let slope = |text: &str| {
            let inner = text.strip_prefix("leaky_relu(")?.strip_suffix(')')?;
            inner.trim().parse().ok().filter(|a: &f64| a.is_finite())
        };
        match text {
            "gelu" => Ok(Self::Gelu),
            "relu" => Ok(Self::Relu),
            "erf" => Ok(Self::Erf),
            "tanh" => Ok(Self::Tanh),
            "identity" => Ok(Self::Identity),
            "sin" => Ok(Self::Sin),
            _ => slope(text)
                .map(Self::LeakyRelu)
                .ok_or_else(|| format!("unknown activation `{text}`: use one of {NAMES}")),
        }
    }
}

impl TryFrom<String> for Activation {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Activation> for String {
    fn from(activation: Activation) -> Self {
        activation.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Activation; 7] = [
        Activation::Gelu,
        Activation::Relu,
        Activation::Erf,
        Activation::Tanh,
        Activation::Identity,
        Activation::LeakyRelu(0.1),
        Activation::Sin,
    ];

    #[test]
    fn derivatives_agree_with_central_differences() {
        for activation in ALL {
            let value = |x: f64| {
                let mut values = [x];
                activation.apply(&mut values);
                values[0]
            };
            for i in -60..60 {
                let x = f64::from(i) * 0.1 + 0.037;
                let (mut derivative, mut out) = ([x], [0.0]);
                activation.apply_with_derivative(&mut derivative, &mut out);
                let difference = (value(x + 1e-5) - value(x - 1e-5)) / 2e-5;
                assert!(
                    (derivative[0] - difference).abs() < 1e-8,
                    "{activation} at {x}"
                );
                assert_eq!(out[0], value(x));
                let (mut in_place, mut slope) = ([x], [0.0]);
                activation.apply_in_place_with_derivative(&mut in_place, &mut slope);
                assert_eq!([in_place, slope], [out, derivative]);
                let slope = |x: f64| {
                    let (mut derivative, mut out) = ([x], [0.0]);
                    activation.apply_with_derivative(&mut derivative, &mut out);
                    derivative[0]
                };
                let (mut first, mut out, mut second) = ([x], [0.0], [0.0]);
                activation.apply_with_derivatives(&mut first, &mut out, &mut second);
                assert_eq!([out[0], first[0]], [value(x), slope(x)]);
                let difference = (slope(x + 1e-5) - slope(x - 1e-5)) / 2e-5;
                assert!(
                    (second[0] - difference).abs() < 1e-8,
                    "{activation}'' at {x}"
                );
            }
        }
    }

    #[test]
    fn single_precision_agrees_with_double() {
        for activation in ALL {
            let mut single: Vec<f32> = (-500..500).map(|i| i as f32 * 0.02).collect();
            let mut double: Vec<f64> = single.iter().map(|&x| f64::from(x)).collect();
            let (mut out, mut exact) = (vec![0.0; single.len()], vec![0.0; single.len()]);
            activation.apply_with_derivative(&mut single, &mut out);
            activation.apply_with_derivative(&mut double, &mut exact);
            for i in 0..out.len() {
                let (x, y) = (f64::from(out[i]), exact[i]);
                assert!(
                    (x - y).abs() < 1e-6 * (1.0 + y.abs()),
                    "{activation}: {x} {y}"
                );
                assert!(
                    (f64::from(single[i]) - double[i]).abs() < 2e-6,
                    "{activation}'"
                );
            }
        }
    }

    #[test]
    fn known_values_and_nan() {
        let mut x = [1.0_f64];
        Activation::Gelu.apply(&mut x);
        assert!((x[0] - 0.841_344_746_068_542_9).abs() < 1e-15);
        let mut x = [0.5_f64];
        Activation::Erf.apply(&mut x);
        assert!((x[0] - 0.520_499_877_813_046_5).abs() < 1e-15);
        for activation in ALL {
            let mut x = [f32::NAN];
            activation.apply(&mut x);
            assert!(x[0].is_nan(), "{activation} hides a NaN");
        }
    }

    #[test]
    fn names_round_trip() {
        for activation in ALL {
            assert_eq!(activation.to_string().parse(), Ok(activation));
        }
        assert!(
            "swish"
                .parse::<Activation>()
                .unwrap_err()
                .contains("leaky_relu(a)")
        );
        assert!("leaky_relu(x)".parse::<Activation>().is_err());
    }
}
