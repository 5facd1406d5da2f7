//! The Fisher information H of one row's outputs, H = E[−∂² log p(y | f)/∂f²] over y ~ p(y | f): the H of the generalised
//! Gauss-Newton matrix Σ JᵀHJ (Schraudolph 2002; Martens 2020, section 9.2). A likelihood says what it is; what curvatures are
//! made of follows: a square root S with H = S·Sᵀ, products, the matrix and its diagonal.
//!
//! | form | H | column c of S |
//! |---|---|---|
//! | diagonal | diag(h) | √h_c·e_c |
//! | softmax | diag(p) − p·pᵀ | √p_c·(e_c − p) |
//! | root | S·Sᵀ | as it was given |

use crate::compute::{Real, add_scaled};

/// H at the outputs of one row. It can be set again and again without new memory.
#[derive(Debug, Clone, Default)]
pub struct Curvature {
    form: CurvatureForm,
    /// h; e^{f − max f}; or S, column-major.
    values: Vec<f64>,
    /// Σ e^{f − max f}.
    total: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum CurvatureForm {
    #[default]
    Diagonal,
    Softmax,
    Root,
}

impl Curvature {
    /// H = diag(h).
    pub fn set_diagonal(&mut self, entries: impl IntoIterator<Item = f64>) {
        self.form = CurvatureForm::Diagonal;
        self.values.clear();
        self.values.extend(entries);
    }

    /// H = diag(p) − p·pᵀ with p = softmax(`logits`).
    pub fn set_softmax(&mut self, logits: &[f64]) {
        self.form = CurvatureForm::Softmax;
        self.values.clear();
        self.values.extend_from_slice(logits);
        self.total = exponentials(&mut self.values);
    }

    /// H = S·Sᵀ with a square S, column-major.
    pub fn set_root(&mut self, root: impl IntoIterator<Item = f64>) {
        self.form = CurvatureForm::Root;
        self.values.clear();
        self.values.extend(root);
    }

    /// `out` ← column c of S.
    pub fn factor<R: Real>(&self, c: usize, out: &mut [R]) {
        match self.form {
            CurvatureForm::Diagonal => {
                out.fill(R::ZERO);
                out[c] = R::from_f64(self.values[c].sqrt());
            }
            CurvatureForm::Softmax => {
                let root = (self.values[c] / self.total).sqrt();
                for (out, exponential) in out.iter_mut().zip(&self.values) {
                    *out = R::from_f64(-root * exponential / self.total);
                }
                out[c] += R::from_f64(root);
            }
            CurvatureForm::Root => {
                let column = self.values[c * out.len()..].iter();
                for (out, &value) in out.iter_mut().zip(column) {
                    *out = R::from_f64(value);
                }
            }
        }
    }

    /// `tangent` ← H·`tangent`.
    pub fn multiply<R: Real>(&self, tangent: &mut [R]) {
        match self.form {
            CurvatureForm::Diagonal => {
                for (value, &h) in tangent.iter_mut().zip(&self.values) {
                    *value *= R::from_f64(h);
                }
            }
            CurvatureForm::Softmax => {
                let p = |exponential: &f64| exponential / self.total;
                let pairs = self.values.iter().zip(&*tangent);
                let mean: f64 = pairs.map(|(e, value)| p(e) * value.to_f64()).sum();
                for (e, value) in self.values.iter().zip(tangent) {
                    *value = R::from_f64(p(e) * (value.to_f64() - mean));
                }
            }
            CurvatureForm::Root => {
                let mut product = vec![0.0; tangent.len()];
                for column in self.values.chunks_exact(tangent.len()) {
                    let pairs = column.iter().zip(&*tangent);
                    let along: f64 = pairs.map(|(s, value)| s * value.to_f64()).sum();
                    add_scaled(&mut product, along, column);
                }
                for (value, product) in tangent.iter_mut().zip(product) {
                    *value = R::from_f64(product);
                }
            }
        }
    }

    /// Adds H (C × C) to `sum`.
    pub fn add_matrix(&self, sum: &mut [f64]) {
        let count = sum.len().isqrt();
        match self.form {
            CurvatureForm::Diagonal => {
                for (c, own) in self.values.iter().enumerate() {
                    sum[c * (count + 1)] += own;
                }
            }
            CurvatureForm::Softmax => {
                let p: Vec<f64> = self.values.iter().map(|e| e / self.total).collect();
                for (c, column) in sum.chunks_exact_mut(count).enumerate() {
                    add_scaled(column, -p[c], &p);
                    column[c] += p[c];
                }
            }
            CurvatureForm::Root => {
                for factor in self.values.chunks_exact(count) {
                    for (column, own) in sum.chunks_exact_mut(count).zip(factor) {
                        add_scaled(column, *own, factor);
                    }
                }
            }
        }
    }

    /// Adds the diagonal of H to `sum`.
    pub fn add_diagonal(&self, sum: &mut [f64]) {
        match self.form {
            CurvatureForm::Diagonal => add_scaled(sum, 1.0, &self.values),
            CurvatureForm::Softmax => {
                for (sum, e) in sum.iter_mut().zip(&self.values) {
                    let p = e / self.total;
                    *sum += p * (1.0 - p);
                }
            }
            CurvatureForm::Root => {
                for factor in self.values.chunks_exact(sum.len()) {
                    for (sum, own) in sum.iter_mut().zip(factor) {
                        *sum += own * own;
                    }
                }
            }
        }
    }
}

/// `values` ← e^{f − max f}, whose sum is given back: softmax(f) is one over the other.
pub(super) fn exponentials(values: &mut [f64]) -> f64 {
    let peak = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    values.iter_mut().for_each(|f| *f = (*f - peak).exp());
    values.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::likelihood::{
        Bernoulli, Categorical, Gaussian, Likelihood, Poisson, StudentT,
    };

    /// S·Sᵀ, products, the sum of matrices and of diagonals are one H in every form; that of classes is diag(p) − p·pᵀ.
    #[test]
    fn all_parts_are_of_one_matrix() {
        let (outputs, scales) = ([0.3, -1.2, 2.0], [0.5, 1.0, 2.0]);
        let counts = Poisson::new(vec![1.0, 2.0, 0.1]).unwrap();
        let student = StudentT::new(4.0).unwrap();
        let likelihoods: [&dyn Likelihood; 5] =
            [&Gaussian, &student, &Categorical, &Bernoulli, &counts];
        let mut all: Vec<Curvature> = likelihoods
            .iter()
            .map(|likelihood| {
                let mut own = Curvature::default();
                assert!(likelihood.curvature(&outputs, &scales, &mut own));
                own
            })
            .collect();
        let mut own = Curvature::default();
        own.set_root([1.0, 0.5, 0.0, -0.3, 2.0, 0.1, 0.0, 0.7, 0.2]);
        all.push(own);
        for curvature in &all {
            let (mut matrix, mut sum) = ([0.0_f64; 9], [0.0_f64; 9]);
            for c in 0..3 {
                matrix[4 * c] = 1.0;
                curvature.multiply(&mut matrix[3 * c..3 * c + 3]);
                let mut factor = [0.0; 3];
                curvature.factor(c, &mut factor);
                for at in 0..9 {
                    sum[at] += factor[at / 3] * factor[at % 3];
                }
            }
            let (mut added, mut diagonal) = ([0.0; 9], [0.0; 3]);
            curvature.add_matrix(&mut added);
            curvature.add_diagonal(&mut diagonal);
            for at in 0..9 {
                assert!((sum[at] - matrix[at]).abs() < 1e-14, "{curvature:?}");
                assert!((added[at] - matrix[at]).abs() < 1e-14, "{curvature:?}");
            }
            for c in 0..3 {
                assert!((diagonal[c] - matrix[4 * c]).abs() < 1e-14, "{curvature:?}");
            }
        }
        let mut softmax = [0.0; 9];
        all[2].add_matrix(&mut softmax);
        let total: f64 = outputs.iter().map(|f| f.exp()).sum();
        let p = outputs.map(|f| f.exp() / total);
        assert!((softmax[1] + p[0] * p[1]).abs() < 1e-15);
        assert!((softmax[4] - p[1] * (1.0 - p[1])).abs() < 1e-15);
    }
}
