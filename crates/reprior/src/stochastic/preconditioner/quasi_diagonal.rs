//! The quasi-diagonal natural gradient (Ollivier 2015; Marceau-Caron & Ollivier 2017, Algorithm 4): of each unit's Fisher
//! matrix M the diagonal and the row of the bias are kept, which makes updates invariant under affine changes of a unit's inputs
//! one at a time.
//!
//! With index 0 for the bias, C = AAᵀ with A_00 = M_00^{−1/2}, A_ii = s_i^{−1/2}, s_i = M_ii − M_0i²/M_00,
//! A_0i = −A_00²·A_ii·M_0i and zeros elsewhere (the printed A_ii has a misprint). So
//! * C·g: g_i ← (g_i − g_0·M_0i/M_00)/s_i, then g_0 ← g_0/M_00 − Σ_i (M_0i/M_00)·g_i,
//! * A·ξ: ξ_i ← ξ_i/√s_i, then ξ_0 ← ξ_0/√M_00 − Σ_i (M_0i/M_00)·ξ_i.
//!
//! But for rounding s_i is at least ε (1 as long as the first state lasts, if that is less); this is taken where it is below, for
//! gradient and noise alike. A unit without a bias has the diagonal alone.

use super::{Batch, Block, Preconditioner, Regularisation, Scope, average};
use crate::compute::{Real, dot_in_lanes, simd};
use crate::network::GradientStatistics;

/// Part of the bound below which an s_i counts as corrected: an input that is always zero has s_i = ε up to rounding.
const COUNTED: f64 = 0.99;

/// The quasi-diagonal natural gradient. A block's state is its diagonal, and after it M_0i.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct QuasiDiagonal {
    /// ε.
    pub regularisation: Regularisation,
}

impl<R: Real> Preconditioner<R> for QuasiDiagonal {
    fn scope(&self) -> Scope {
        Scope::Unit
    }

    fn check(&self) -> Result<(), String> {
        self.regularisation.check()
    }

    fn statistics(&self) -> GradientStatistics {
        GradientStatistics::SquaresAndCross
    }

    fn state_len(&self, block: Block) -> usize {
        let weights = block.rows - usize::from(block.has_bias);
        block.rows + if block.has_bias { weights } else { 0 }
    }

    fn initialise(&self, block: Block, state: &mut [R]) {
        let (diagonal, cross) = state.split_at_mut(block.rows);
        diagonal.fill(R::ONE);
        cross.fill(R::ZERO);
    }

    fn update(
        &self,
        block: Block,
        batch: Batch<'_, R>,
        rate: f64,
        state: &mut [R],
    ) -> Result<u64, String> {
        let [inside, _] = self.regularisation.parts();
        let (diagonal, cross) = state.split_at_mut(block.rows);
        simd(
            #[inline(always)]
            || {
                average(diagonal, batch.squares.iter().copied(), rate, inside);
                average(cross, batch.cross.iter().copied(), rate, R::ZERO);
            },
        );
        Ok(0)
    }

    fn transform(&self, block: Block, state: &[R], gradient: &mut [R], noise: &mut [R]) -> u64 {
        let [_, at_inversion] = self.regularisation.parts::<R>();
        let least = R::from_f64(self.regularisation.epsilon.min(1.0));
        let counted = R::from_f64(COUNTED * self.regularisation.epsilon.min(1.0));
        let (diagonal, cross) = state.split_at(block.rows);
        if !block.has_bias {
            return diagonal_alone(diagonal, [at_inversion, least, counted], gradient, noise);
        }
        let (weights, bias) = diagonal.split_at(cross.len());
        let inverse = R::ONE / (bias[0] + at_inversion);
        let (gradient, gradient_0) = gradient.split_at_mut(cross.len());
        let (noise, noise_0) = noise.split_at_mut(cross.len().min(noise.len()));
        let g_0 = gradient_0[0] * inverse;
        let (own, own_noise) = (&mut *gradient, &mut *noise);
        // numbers of its own: the compiler takes what it reaches by reference for something that the loop may change
        let clamps = simd(
            #[inline(always)]
            move || {
                let mut clamps = 0_u32;
                for ((g, &m), &m_0) in own.iter_mut().zip(weights).zip(cross) {
                    let s = m + at_inversion - m_0 * m_0 * inverse;
                    clamps += u32::from(s < counted);
                    let s = if s < least { least } else { s };
                    *g = (*g - g_0 * m_0) / s;
                }
                for ((xi, &m), &m_0) in own_noise.iter_mut().zip(weights).zip(cross) {
                    let s = m + at_inversion - m_0 * m_0 * inverse;
                    let s = if s < least { least } else { s };
                    *xi = *xi / s.sqrt();
                }
                clamps
            },
        );
        gradient_0[0] = g_0 - dot_in_lanes(cross, gradient) * inverse;
        if let Some(xi) = noise_0.first_mut() {
            *xi = *xi * inverse.sqrt() - dot_in_lanes(cross, noise) * inverse;
        }
        u64::from(clamps)
    }
}

/// Of a unit without a bias.
fn diagonal_alone<R: Real>(
    diagonal: &[R],
    [at_inversion, least, counted]: [R; 3],
    gradient: &mut [R],
    noise: &mut [R],
) -> u64 {
    let mut clamps = 0;
    let mut s = |m: R| {
        let s = m + at_inversion;
        clamps += u64::from(s < counted);
        if s < least { least } else { s }
    };
    for (at, &m) in diagonal.iter().enumerate() {
        let s = s(m);
        gradient[at] = gradient[at] / s;
        if let Some(xi) = noise.get_mut(at) {
            *xi = *xi / s.sqrt();
        }
    }
    clamps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Purpose, Stream};

    /// AAᵀg by the closed form for g, the first row and diagonal of (AAᵀ)⁻¹, and AAᵀ = C from A's columns.
    #[test]
    fn noise_and_gradient_belong_to_the_same_matrix() {
        let (rows, weights) = (24, 23);
        let block = Block {
            rows,
            units: 1,
            has_bias: true,
        };
        let kind = QuasiDiagonal::default();
        let len = Preconditioner::<f64>::state_len(&kind, block);
        let mut state = vec![0.0; len];
        kind.initialise(block, &mut state);
        let mut stream = Stream::new(5, 0, Purpose::Initial, 0);
        for _ in 0..7 {
            // five rows' gradients
            let mut g = vec![0.0; 5 * rows];
            stream.fill_normal(&mut g);
            let mean = |f: &dyn Fn(&[f64], usize) -> f64| -> Vec<f64> {
                let of = |i| g.chunks_exact(rows).map(|row| f(row, i)).sum::<f64>() / 5.0;
                (0..rows).map(of).collect()
            };
            let squares = mean(&|row, i| row[i] * row[i]);
            let cross = mean(&|row, i| row[i] * row[weights]);
            let batch = Batch {
                gradient: &[],
                squares: &squares,
                cross: &cross,
                outer: &[],
                update: 0,
            };
            kind.update(block, batch, 0.3, &mut state).unwrap();
        }
        let column = |of_noise: bool, at: usize| {
            let mut unit = vec![0.0; rows];
            unit[at] = 1.0;
            let mut other = vec![0.0; rows];
            let corrected = if of_noise {
                kind.transform(block, &state, &mut other, &mut unit)
            } else {
                kind.transform(block, &state, &mut unit, &mut other)
            };
            assert_eq!(corrected, 0);
            unit
        };
        let (mut a, mut c) = (Vec::new(), Vec::new());
        for at in 0..rows {
            a.push(column(true, at));
            c.push(column(false, at));
        }
        for i in 0..rows {
            for j in 0..rows {
                let product: f64 = (0..rows).map(|k| a[k][i] * a[k][j]).sum();
                assert!((product - c[j][i]).abs() < 1e-12 * (1.0 + product.abs()));
            }
        }
        // C⁻¹ has M's diagonal and bias row: C·(row of M) is a unit vector there
        let (diagonal, cross) = state.split_at(rows);
        let m_row: Vec<f64> = cross.iter().copied().chain([diagonal[weights]]).collect();
        let mut first = m_row.clone();
        kind.transform(block, &state, &mut first, &mut []);
        for (i, value) in first.iter().enumerate() {
            let expected = f64::from(u8::from(i == weights));
            assert!((value - expected).abs() < 1e-12, "{i} {value}");
        }
        // and with B = A⁻¹, (BᵀB)_ii = M_ii: B_ii = √s_i, B_0i = M_0i/√M_00
        for i in 0..weights {
            let s = a[i][i].powi(-2);
            let b_0i = cross[i] / diagonal[weights].sqrt();
            assert!((s + b_0i * b_0i - diagonal[i]).abs() < 1e-12);
            // A_0i as in the papers' notation
            let a_0i = -a[i][i] * cross[i] / diagonal[weights];
            assert!((a[i][weights] - a_0i).abs() < 1e-12);
        }
    }

    #[test]
    fn what_rounding_spoils_is_clamped_and_counted() {
        let block = Block {
            rows: 2,
            units: 1,
            has_bias: true,
        };
        let kind = QuasiDiagonal::default();
        let (mut gradient, mut noise) = ([1.0, 0.0], [1.0, 0.0]);
        let corrected = kind.transform(block, &[1.0, 1.0, 1.0], &mut gradient, &mut noise);
        assert_eq!(corrected, 1);
        assert!(f64::abs(gradient[0] - 1e4) < 1e-9 && f64::abs(noise[0] - 1e2) < 1e-9);
    }

    #[test]
    fn without_a_bias_there_is_the_diagonal() {
        let block = Block {
            rows: 2,
            units: 1,
            has_bias: false,
        };
        let kind = QuasiDiagonal::default();
        let (mut gradient, mut noise) = ([1.0, 2.0], [1.0, 3.0]);
        kind.transform(block, &[4.0, 9.0], &mut gradient, &mut noise);
        let close = |a: [f64; 2], b: [f64; 2]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-15);
        assert!(close(gradient, [0.25, 2.0 / 9.0]) && close(noise, [0.5, 1.0]));
    }
}
