//! The gradient of log |det dR/dφ|, of exactly the function that the determinant's kind computes.
//!
//! Its derivative is a sum of forms ⟨p, d²R\[q, ·\]⟩ of fixed p and q: d log |det M| = Σ_k ⟨p_k, dM·e_k⟩ with the rows p_k of M⁻¹, and
//! d(zᵀEᵏz) = Σ_{a+b=k−1} ⟨(Eᵀ)ᵃz, dE·Eᵇz⟩. For fixed p, ⟨p, d²R\[q, ·\]⟩ is the derivative along q of the product dRᵀp, which is
//! exact; third derivatives of the network come in here alone. **They are taken as central differences** of that product, with
//! steps of 10⁻⁵ along q/‖q‖ in double precision: the gradient is good to about nine digits. (A chain's law does not depend on that: a proposal by
//! any function of the position is corrected for exactly.)
//!
//! Cost: two linearisations and products dRᵀp for each of D coordinates (exact), or of P·M pairs (series); P·⌈M/2⌉ pairs of
//! Hessian products for the Hessians alone.

use super::EvaluationError;
use super::determinant::TraceSeries;
use super::differential::add_outer;
use super::linearisation::Linearisation;
use crate::compute::{add_scaled, dot, inverse, norm_squared};

/// Steps of central differences, along unit vectors.
const STEP: f64 = 1e-5;

/// A linearisation at shifted weights, and work space.
pub(super) struct DeterminantGradient {
    shifted: Linearisation,
    moved: Vec<f64>,
    product: Vec<f64>,
    /// Of what depends on φ by S⁻¹ and log det S: the cotangent of J, and Qᵀ(its factor left of J)Q of the rest.
    cotangent: Vec<f64>,
    square: Vec<f64>,
}

impl DeterminantGradient {
    /// With work of its own.
    pub fn new(shifted: Linearisation) -> Self {
        let dim = shifted.dim();
        Self {
            shifted,
            moved: vec![0.0; dim],
            product: vec![0.0; dim],
            cotangent: Vec::new(),
            square: Vec::new(),
        }
    }

    /// `gradient` ← `gradient` + that of log |det M| for the matrix M = dR at `phi`.
    pub fn add_exact(
        &mut self,
        phi: &[f64],
        jacobian: &[f64],
        gradient: &mut [f64],
    ) -> Result<(), EvaluationError> {
        let dim = phi.len();
        let inverse = inverse(jacobian, dim);
        let (mut p, mut q) = (vec![0.0; dim], vec![0.0; dim]);
        for k in 0..dim {
            let row = inverse[k..].iter().step_by(dim);
            p.iter_mut().zip(row).for_each(|(to, from)| *to = *from);
            q[k] = 1.0;
            self.add_second_derivative(phi, &p, &q, gradient)?;
            q[k] = 0.0;
        }
        Ok(())
    }

    /// `gradient` ← `gradient` + ⟨p, d²R[q, ·]⟩.
    fn add_second_derivative(
        &mut self,
        phi: &[f64],
        p: &[f64],
        q: &[f64],
        gradient: &mut [f64],
    ) -> Result<(), EvaluationError> {
        let norm = norm_squared(q).sqrt();
        if norm == 0.0 {
            return Ok(());
        }
        for step in [STEP, -STEP] {
            self.move_along(phi, q, step / norm);
            self.shifted.set(&self.moved)?;
            self.shifted.pull_back(p, &mut self.product);
            add_scaled(gradient, 0.5 * norm / step, &self.product);
        }
        Ok(())
    }

    fn move_along(&mut self, phi: &[f64], q: &[f64], step: f64) {
        self.moved.copy_from_slice(phi);
        add_scaled(&mut self.moved, step, q);
    }

    /// `gradient` ← `gradient` + that of the series at the φ of `at`.
    pub fn add_series(
        &mut self,
        at: &mut Linearisation,
        series: &mut TraceSeries,
        gradient: &mut [f64],
    ) -> Result<(), EvaluationError> {
        let (size, dim) = (at.size, at.dim());
        let (phi, scale) = (at.phi.clone(), 1.0 / series.count() as f64);
        self.cotangent.clear();
        self.cotangent.resize(size * dim, 0.0);
        self.square.clear();
        self.square.resize(size * size, 0.0);
        // d log det S = 2·elasticity·⟨K⁻¹J, dJ⟩
        for i in 0..size {
            self.square[i * (size + 1)] = 2.0 * at.elasticity_of_root() / at.eigenvalues[i];
        }
        let terms = series.powers.len() - 1;
        let mut left = vec![vec![0.0; dim]; terms];
        let (mut p, mut image) = (vec![0.0; dim], vec![0.0; dim]);
        for index in 0..series.count() {
            series.set_powers(at, index);
            left[0].copy_from_slice(&series.powers[0]);
            for a in 1..terms {
                let (below, above) = left.split_at_mut(a);
                p.copy_from_slice(&below[a - 1]);
                at.divide_by_root(&mut p);
                at.pull_back(&p, &mut above[0]);
                add_scaled(&mut above[0], -1.0, &below[a - 1]);
            }
            for b in 0..terms {
                p.fill(0.0);
                for (a, left) in left[..terms - b].iter().enumerate() {
                    let coefficient = TraceSeries::coefficient(a + b + 1);
                    add_scaled(&mut p, scale * coefficient, left);
                }
                // dR·Eᵇz = S(Eᵇ⁺¹z + Eᵇz)
                image.copy_from_slice(&series.powers[b + 1]);
                add_scaled(&mut image, 1.0, &series.powers[b]);
                at.multiply_by_root(&mut image);
                self.add_form_of_inverse_root(at, &p, &image);
                at.divide_by_root(&mut p);
                self.add_second_derivative(&phi, &p, &series.powers[b], gradient)?;
            }
        }
        let mut rest = vec![0.0; size * dim];
        at.rotated_times_jacobian(&self.square, 1.0, &mut rest);
        add_scaled(&mut self.cotangent, 1.0, &rest);
        at.contract(&self.cotangent, gradient);
        Ok(())
    }

    /// Adds the cotangents of aᵀS⁻¹m, S⁻¹ = I + JᵀGJ: of J GJm·aᵀ + GJa·mᵀ and, through G, (X + Xᵀ)J with
    /// QᵀXQ = Δ∘(Qᵀ Ja·(Jm)ᵀQ).
    fn add_form_of_inverse_root(&mut self, at: &mut Linearisation, a: &[f64], m: &[f64]) {
        let size = at.size;
        let rotated = [a, m].map(|u| {
            at.rotate_product(u);
            at.rotated.clone()
        });
        for (own, other) in [(&rotated[1], a), (&rotated[0], m)] {
            let scaled = own.iter().zip(&at.inverse_root).map(|(x, g)| x * g);
            at.rotated = scaled.collect();
            add_outer(&mut self.cotangent, at.rotate_back(), other);
        }
        let [a, m] = rotated;
        for j in 0..size {
            for i in 0..size {
                self.square[j * size + i] +=
                    at.inverse_root_difference(i, j) * (a[i] * m[j] + a[j] * m[i]);
            }
        }
    }

    /// `gradient` ← `gradient` + that of the series of log det(I + H), H = Σ v_i H_i, at the φ of `at`.
    ///
    /// H is symmetric: pairs (a, b) and (b, a) are the same. For fixed p and q, d⟨p, Hq⟩ is the derivative along q of
    /// Σ v_i H_i·p with v held fixed, and ⟨w, dv⟩ with w_i = ⟨p, H_i q⟩, the derivative along q of Jp.
    pub fn add_series_of_hessians(
        &mut self,
        at: &mut Linearisation,
        series: &mut TraceSeries,
        gradient: &mut [f64],
    ) {
        let (phi, v) = (at.phi.clone(), at.v.clone());
        let scale = 1.0 / series.count() as f64;
        let terms = series.powers.len() - 1;
        let mut p = vec![0.0; phi.len()];
        self.shifted.small.fill(0.0);
        for index in 0..series.count() {
            series.set_powers(at, index);
            for b in 0..terms.div_ceil(2) {
                p.fill(0.0);
                for a in b..terms - b {
                    let twice = if a == b { 1.0 } else { 2.0 };
                    let coefficient = TraceSeries::coefficient(a + b + 1);
                    add_scaled(&mut p, scale * twice * coefficient, &series.powers[a]);
                }
                let q = &series.powers[b];
                let norm = dot(q, q).sqrt();
                if norm == 0.0 {
                    continue;
                }
                for step in [STEP, -STEP] {
                    self.move_along(&phi, q, step / norm);
                    let shifted = &mut self.shifted;
                    shifted.hessian_product_at(&self.moved, &v, &p);
                    let weight = 0.5 * norm / step;
                    add_scaled(gradient, weight, &shifted.product);
                    shifted.add_jacobian_product_at(&self.moved, &p, weight);
                }
            }
        }
        at.pull_back_of_residuals(&self.shifted.small, &mut self.product);
        add_scaled(gradient, 1.0, &self.product);
    }
}
