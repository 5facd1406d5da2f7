//! Elementwise nonlinearities as layers; the functions themselves are in [`Activation`](crate::network::Activation).
//!
//! f' takes the place of the input where nobody else wants it; the vjp multiplies by it. The tangent of the vjp is
//! f'·δ̇ + f''·ḣ·δ.

use crate::compute::{Real, simd};
use crate::network::Activation;
use crate::network::operation::{Cotangent, Direction, Keeps, Operation, Point, no_tangent};

/// An activation as an operation.
#[derive(Debug)]
pub(crate) struct Elementwise(pub Activation);

impl<R: Real> Operation<R> for Elementwise {
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
