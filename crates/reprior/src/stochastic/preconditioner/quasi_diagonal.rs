//! The quasi-diagonal natural gradient (Ollivier 2015; Marceau-Caron & Ollivier 2017, Algorithm 4): of each unit's Fisher
//! matrix M the diagonal and the row of the bias are kept, which makes updates invariant under affine changes of a unit's inputs
//! one at a time.
//!
//! With index 0 for the bias, C = AAᵀ with A_00 = M_00^{−1/2}, A_ii = s_i^{−1/2}, s_i = M_ii − M_0i²/M_00,
//! A_0i = −A_00²·A_ii·M_0i and zeros elsewhere (the printed A_ii has a misprint). So
//! * C·g: g_i ← (g_i − g_0·M_0i/M_00)/s_i, then g_0 ← g_0/M_00 − Σ_i (M_0i/M_00)·g_i,
//! * A·ξ: ξ_i ← ξ_i/√s_i, then ξ_0 ← ξ_0/√M_00 − Σ_i (M_0i/M_00)·ξ_i.
//!
//! The s_i are positive but for rounding; [`LEAST`] is taken where they are below, for gradient and noise alike. A unit without
//! a bias has the diagonal alone.

use super::{Batch, Block, Preconditioner, Regularisation, Scope, Statistics, average};
use crate::compute::{NotPositiveDefinite, Real, simd};

/// The least s_i.
pub const LEAST: f64 = 1e-12;

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

    fn statistics(&self) -> Statistics {
        Statistics::SquaresAndCross
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
    ) -> Result<u64, NotPositiveDefinite> {
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
        let least = R::from_f64(LEAST);
        let (diagonal, cross) = state.split_at(block.rows);
        let (weights, bias) = diagonal.split_at(block.rows - usize::from(block.has_bias));
        let bias = bias.first().map_or(R::ONE, |&m| m + at_inversion);
        let inverse = R::ONE / bias;
        let (gradient, gradient_0) = gradient.split_at_mut(weights.len());
        let (noise, noise_0) = noise.split_at_mut(weights.len().min(noise.len()));
        let g_0 = gradient_0.first().map_or(R::ZERO, |&g| g * inverse);
        let mut corrected = 0;
        simd(
            #[inline(always)]
            || {
                // sums in lanes, so that they are made by the vector
                const LANES: usize = 16;
                let (mut sums, mut noise_sums) = ([R::ZERO; LANES], [R::ZERO; LANES]);
                let mut clamps = [R::ZERO; LANES];
                for start in (0..weights.len()).step_by(LANES) {
                    let count = LANES.min(weights.len() - start);
                    let own = start..start + count;
                    let mut m_0 = [R::ZERO; LANES];
                    if let Some(cross) = cross.get(own.clone()) {
                        m_0[..count].copy_from_slice(cross);
                    }
                    let mut root = [R::ONE; LANES];
                    for ((root, &m), (&m_0, clamps)) in root
                        .iter_mut()
                        .zip(&weights[own.clone()])
                        .zip(m_0.iter().zip(&mut clamps))
                    {
                        let s = m + at_inversion - m_0 * m_0 * inverse;
                        let is_low = s < least;
                        *clamps += if is_low { R::ONE } else { R::ZERO };
                        let s = if is_low { least } else { s };
                        *root = R::ONE / s.sqrt();
                    }
                    for ((g, &root), (&m_0, sum)) in gradient[own.clone()]
                        .iter_mut()
                        .zip(&root)
                        .zip(m_0.iter().zip(&mut sums))
                    {
                        *g = (*g - g_0 * m_0) * root * root;
                        *sum += m_0 * *g;
                    }
                    if let Some(noise) = noise.get_mut(own) {
                        for ((xi, &root), (&m_0, sum)) in noise
                            .iter_mut()
                            .zip(&root)
                            .zip(m_0.iter().zip(&mut noise_sums))
                        {
                            *xi *= root;
                            *sum += m_0 * *xi;
                        }
                    }
                }
                let total = |sums: [R; LANES]| sums.into_iter().sum::<R>();
                for g in gradient_0 {
                    *g = g_0 - total(sums) * inverse;
                }
                for xi in noise_0 {
                    *xi = *xi * inverse.sqrt() - total(noise_sums) * inverse;
                }
                corrected = total(clamps).to_f64() as u64;
            },
        );
        corrected
    }
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
        assert!(
            (gradient[0] - 1.0 / LEAST).abs() < 1e-3 && (noise[0] - LEAST.powf(-0.5)).abs() < 1e-6
        );
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
