//! The two precisions that networks run in.

use std::fmt::Debug;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

use faer::linalg::matmul::matmul;
use faer::{Accum, Par};

use super::compiled::OfPrecision;
use super::{Matrix, MatrixMut, scalar};

/// `f32` or `f64`: the precision of weights and features. Factorisations and log-densities are always `f64`.
pub trait Real:
    super::lanes::Lanes
    + super::compiled::CompiledKernels
    + super::transpose::Transpose
    + Copy
    + Default
    + PartialOrd
    + Debug
    + Send
    + Sync
    + Sum
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + 'static
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Bytes of one number.
    const BYTES: usize;
    /// Name as in Rust and numpy-like tools: `f32` or `f64`.
    const NAME: &'static str;

    /// Nearest number of this precision.
    fn from_f64(value: f64) -> Self;
    /// The same number in double precision.
    fn to_f64(self) -> f64;
    /// Distribution function and density of the standard normal, (Φ(x), φ(x)).
    fn normal_cdf_pdf(self) -> (Self, Self);
    /// Square root.
    fn sqrt(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Sine and cosine.
    fn sin_cos(self) -> (Self, Self);
    /// Overwrites `values` with independent standard normals made from `bits`, consuming them in order;
    /// see [`Stream::fill_normal`](super::Stream::fill_normal).
    fn normals_from_bits(bits: &[u32], values: &mut [Self]);
    /// out ← scale·a·b, added to what is there if `accumulate`.
    fn multiply(
        out: MatrixMut<'_, Self>,
        accumulate: bool,
        scale: f64,
        a: Matrix<'_, Self>,
        b: Matrix<'_, Self>,
    );
    /// What is made for either precision in this crate alone.
    #[doc(hidden)]
    fn of_precision<O: OfPrecision>(what: O) -> O::Of<Self>;
    /// How many 32-bit words [`normals_from_bits`](Self::normals_from_bits) takes for one number.
    const WORDS_PER_NORMAL: usize;
}

impl Real for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const BYTES: usize = 4;
    const NAME: &'static str = "f32";
    const WORDS_PER_NORMAL: usize = 1;

    #[inline(always)]
    fn of_precision<O: OfPrecision>(what: O) -> O::Of<Self> {
        what.single()
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn normal_cdf_pdf(self) -> (Self, Self) {
        scalar::normal_cdf_pdf(self)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self::sqrt(self)
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        scalar::tanh(self)
    }
    #[inline(always)]
    fn sin_cos(self) -> (Self, Self) {
        Self::sin_cos(self)
    }
    #[inline]
    fn normals_from_bits(bits: &[u32], values: &mut [Self]) {
        super::normal::f32_from_bits(bits, values);
    }
    fn multiply(
        out: MatrixMut<'_, Self>,
        accumulate: bool,
        scale: f64,
        a: Matrix<'_, Self>,
        b: Matrix<'_, Self>,
    ) {
        matmul(out, accumulation(accumulate), a, b, scale as f32, Par::Seq);
    }
}

impl Real for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const BYTES: usize = 8;
    const NAME: &'static str = "f64";
    const WORDS_PER_NORMAL: usize = 2;

    #[inline(always)]
    fn of_precision<O: OfPrecision>(what: O) -> O::Of<Self> {
        what.double()
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn normal_cdf_pdf(self) -> (Self, Self) {
        let cdf = 0.5 * libm::erfc(-self * std::f64::consts::FRAC_1_SQRT_2);
        let pdf = (-0.5 * self * self).exp() * 0.398_942_280_401_432_7;
        (cdf, pdf)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self::sqrt(self)
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        Self::tanh(self)
    }
    #[inline(always)]
    fn sin_cos(self) -> (Self, Self) {
        Self::sin_cos(self)
    }
    #[inline]
    fn normals_from_bits(bits: &[u32], values: &mut [Self]) {
        super::normal::f64_from_bits(bits, values);
    }
    fn multiply(
        out: MatrixMut<'_, Self>,
        accumulate: bool,
        scale: f64,
        a: Matrix<'_, Self>,
        b: Matrix<'_, Self>,
    ) {
        matmul(out, accumulation(accumulate), a, b, scale, Par::Seq);
    }
}

fn accumulation(accumulate: bool) -> Accum {
    if accumulate {
        Accum::Add
    } else {
        Accum::Replace
    }
}
