//! Kronecker factors of the curvature (Martens & Grosse 2015; Ritter, Botev & Barber 2018): A ⊗ B/n for each layer, with the
//! eigendecompositions Q_A Λ_A Q_Aᵀ and Q_B Λ_B Q_Bᵀ of its factors. With one prior precision for each layer G + P is diagonal in
//! the coordinates of Q_A ⊗ Q_B.

use super::LaplaceError;
use super::curvature::GaussNewton;
use super::last_layer::RowFeatures;
use super::structure::{
    DecompositionReport, KeptArray, KeptArrays, PredictionPoint, ReadoutStructure, Structure,
    double, finite, scale_by, scale_by_roots, variances,
};
use crate::compute::{Matrix, Real, matrix, matrix_mut, multiply, symmetric_eigen};
use crate::network::parameters::ParameterLayout;

/// Kronecker factors with a prior.
#[derive(Debug, Clone)]
pub(super) struct Kronecker<R> {
    layers: Vec<LayerCurvature<R>>,
    /// Of the posterior, layer after layer, in the coordinates of the factors where there are any.
    variances: Vec<Vec<f64>>,
}

/// One layer's curvature.
#[derive(Debug, Clone)]
enum LayerCurvature<R> {
    Factors(EigenFactors<R>),
    /// Of layers without factors (batch normalisation).
    Diagonal(Vec<f64>),
}

/// The eigenvalues and eigenvectors of A (rows × rows) and B/n (units × units).
#[derive(Debug, Clone)]
struct EigenFactors<R> {
    /// Of A, not negative.
    inputs: Vec<f64>,
    /// Of B/n, not negative.
    outputs: Vec<f64>,
    /// Q_A and Q_B, column-major.
    vectors: [Vec<R>; 2],
}

impl<R: Real> Kronecker<R> {
    pub const NAME: &str = "kron";

    /// Of all parameters; `is_separate`: each layer's biases a block of their own.
    pub fn fit(
        operator: &mut GaussNewton<'_, R>,
        layout: &ParameterLayout,
        is_separate: bool,
    ) -> Result<Self, LaplaceError> {
        let matrices = operator.kronecker();
        finite(&matrices)?;
        let scale = operator.scale / operator.inputs.nrows() as f64;
        let (mut rest, mut layers) = (&matrices[..], Vec::new());
        let mut diagonal = Vec::new();
        for layer in &layout.layers {
            let (a, after) = rest.split_at(layer.rows * layer.rows);
            let (b, after) = after.split_at(layer.units * layer.units);
            rest = after;
            if a.iter().all(|value| *value == 0.0) {
                // batch normalisation has no factors
                if diagonal.is_empty() {
                    diagonal = operator.diagonal();
                    finite(&diagonal)?;
                }
                layers.push(LayerCurvature::Diagonal(
                    diagonal[layer.range.clone()].to_vec(),
                ));
            } else {
                let is_separate = is_separate && layer.has_bias;
                layers.push(LayerCurvature::Factors(EigenFactors::new(
                    a,
                    b,
                    scale,
                    is_separate,
                )?));
            }
        }
        Ok(Self {
            layers,
            variances: Vec::new(),
        })
    }

    /// Of one layer with the sums A and B over the rows, of which B is multiplied by `scale`.
    pub fn of_layer(
        a: &[f64],
        b: &[f64],
        scale: f64,
        is_separate: bool,
    ) -> Result<Self, LaplaceError> {
        Ok(Self {
            layers: vec![LayerCurvature::Factors(EigenFactors::new(
                a,
                b,
                scale,
                is_separate,
            )?)],
            variances: Vec::new(),
        })
    }

    pub fn load(arrays: &mut KeptArrays<R>) -> Result<Self, LaplaceError> {
        let mut layers = Vec::new();
        for index in 0.. {
            let name = |part: &str| format!("layers.{index}.{part}");
            if let Some(values) = arrays.double.remove(&name("diagonal")) {
                layers.push(LayerCurvature::Diagonal(values));
            } else if arrays.double.contains_key(&name("inputs")) {
                let factors = EigenFactors {
                    inputs: arrays.take(&name("inputs"))?,
                    outputs: arrays.take(&name("outputs"))?,
                    vectors: [
                        arrays.take_weights(&name("input_vectors"))?,
                        arrays.take_weights(&name("output_vectors"))?,
                    ],
                };
                let [a, b] = factors.vectors.each_ref().map(Vec::len);
                if [a, b] != factors.sizes().map(|size| size * size) {
                    return Err(LaplaceError::Kept(format!(
                        "the eigenvectors of layer {index} are not as many as its eigenvalues"
                    )));
                }
                layers.push(LayerCurvature::Factors(factors));
            } else {
                break;
            }
        }
        Ok(Self {
            layers,
            variances: Vec::new(),
        })
    }

    /// Calls `use_it` with each layer's part of `values`, its variances and its factors, if it has any.
    fn for_each_layer(
        &self,
        mut values: &mut [R],
        use_it: impl Fn(&mut [R], &[f64], Option<&EigenFactors<R>>),
    ) {
        for (variances, layer) in self.variances.iter().zip(&self.layers) {
            let (own, after) = values.split_at_mut(variances.len());
            values = after;
            use_it(own, variances, layer.factors());
        }
    }
}

impl<R: Real> Structure<R> for Kronecker<R> {
    fn size(&self) -> usize {
        self.layers.iter().map(LayerCurvature::size).sum()
    }

    fn set_prior(&mut self, precisions: &[f64], scale: f64) -> Result<f64, LaplaceError> {
        let (mut all, mut total, mut rest) = (Vec::new(), 0.0, precisions);
        for layer in &self.layers {
            let (own, after) = rest.split_at(layer.size());
            let (variances, ratio) = match layer {
                LayerCurvature::Diagonal(g) => variances(g.iter().copied(), own, scale),
                LayerCurvature::Factors(factors) => {
                    if own.iter().any(|precision| *precision != own[0]) {
                        return Err(LaplaceError::PrecisionWithinLayer);
                    }
                    variances(factors.values(), own, scale)
                }
            };
            rest = after;
            total += ratio;
            all.push(variances);
        }
        self.variances = all;
        Ok(total)
    }

    fn draw(&self, noise: &mut [R]) {
        self.for_each_layer(noise, |own, variances, factors| {
            scale_by_roots(own, variances);
            if let Some(factors) = factors {
                factors.rotate_back(own);
            }
        });
    }

    fn covariance_product(&self, vector: &mut [R]) {
        self.for_each_layer(vector, |own, variances, factors| {
            let Some(factors) = factors else {
                return scale_by(own, variances);
            };
            factors.rotate(own);
            scale_by(own, variances);
            factors.rotate_back(own);
        });
    }

    fn variances(&self) -> Vec<f64> {
        let pairs = self.variances.iter().zip(&self.layers);
        let own = pairs.flat_map(|(variances, layer)| match layer {
            LayerCurvature::Diagonal(_) => variances.clone(),
            LayerCurvature::Factors(factors) => factors.variances(variances),
        });
        own.collect()
    }

    fn predict(&self, point: &mut PredictionPoint<'_, R>, has_covariances: bool) -> [Vec<f64>; 2] {
        let real = |own: &Vec<f64>| own.iter().map(|&v| R::from_f64(v)).collect();
        let variances: Vec<Vec<R>> = self.variances.iter().map(real).collect();
        let covariances = point.covariances(&variances, |layer| {
            let factors = self.layers[layer].factors()?;
            Some(factors.vectors.each_ref().map(Vec::as_slice))
        });
        point.prediction(covariances, has_covariances)
    }

    fn report(&self) -> DecompositionReport {
        let layers = self.layers.iter();
        DecompositionReport {
            diagonal_layers: layers.filter(|layer| layer.factors().is_none()).count(),
            ..DecompositionReport::default()
        }
    }

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn arrays(&self) -> Vec<(String, KeptArray<'_, R>)> {
        let mut all = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let mut add = |part: &str, array| all.push((format!("layers.{index}.{part}"), array));
            match layer {
                LayerCurvature::Diagonal(values) => add("diagonal", KeptArray::Double(values)),
                LayerCurvature::Factors(factors) => {
                    let [a, b] = &factors.vectors;
                    add("inputs", KeptArray::Double(&factors.inputs));
                    add("outputs", KeptArray::Double(&factors.outputs));
                    add("input_vectors", KeptArray::Weights(a));
                    add("output_vectors", KeptArray::Weights(b));
                }
            }
        }
        all
    }
}

impl<R: Real> ReadoutStructure<R> for Kronecker<R> {
    /// Σ_k w_k b_k b_kᵀ of each row, with the eigenvectors b of B and w = Σ_i v_ik (Q_Aᵀψ)_i² of the variances v.
    fn readout_covariances(&self, features: &RowFeatures, has_covariances: bool) -> Vec<f64> {
        let (rows, outputs) = (features.rows, features.outputs);
        let mut spread = vec![0.0; rows * features.width(has_covariances)];
        for (layer, variances) in self.layers.iter().zip(&self.variances) {
            let (along, b) = match layer {
                LayerCurvature::Factors(factors) => {
                    let [a, b] = factors.vectors.each_ref().map(|vectors| double(vectors));
                    (features.rotated(&a).quadratic(variances), b)
                }
                LayerCurvature::Diagonal(_) => {
                    return features.independent(variances, has_covariances);
                }
            };
            add_rotated(&along, &b, [rows, outputs], has_covariances, &mut spread);
        }
        spread
    }
}

/// Adds B·diag(w)·Bᵀ of each row's w, or its diagonal.
fn add_rotated(
    along: &[f64],
    b: &[f64],
    [rows, outputs]: [usize; 2],
    has_covariances: bool,
    spread: &mut [f64],
) {
    if !has_covariances {
        let squares: Vec<f64> = b.iter().map(|b| b * b).collect();
        let squares = matrix(&squares, outputs, outputs);
        let own = matrix(along, rows, outputs).transpose();
        let out = matrix_mut(spread, outputs, rows);
        return multiply(out, true, 1.0, squares, own);
    }
    let mut scaled = vec![0.0; outputs * outputs];
    for (row, spread) in spread.chunks_exact_mut(outputs * outputs).enumerate() {
        let columns = scaled
            .chunks_exact_mut(outputs)
            .zip(b.chunks_exact(outputs));
        for (j, (to, from)) in columns.enumerate() {
            let weight = along[j * rows + row];
            for (to, from) in to.iter_mut().zip(from) {
                *to = weight * from;
            }
        }
        let out = matrix_mut(spread, outputs, outputs);
        let own = matrix(b, outputs, outputs).transpose();
        multiply(out, true, 1.0, matrix(&scaled, outputs, outputs), own);
    }
}

impl<R: Real> LayerCurvature<R> {
    /// Parameters.
    fn size(&self) -> usize {
        match self {
            Self::Diagonal(values) => values.len(),
            Self::Factors(factors) => factors.inputs.len() * factors.outputs.len(),
        }
    }

    fn factors(&self) -> Option<&EigenFactors<R>> {
        match self {
            Self::Diagonal(_) => None,
            Self::Factors(factors) => Some(factors),
        }
    }
}

impl<R: Real> EigenFactors<R> {
    /// From A and B, and what B is multiplied by. With `is_separate` the products of the bias, the last of the inputs, with the
    /// others are taken out of A: its block is then A_bb·B/n. Eigenvalues below zero are rounding.
    fn new(a: &[f64], b: &[f64], scale: f64, is_separate: bool) -> Result<Self, LaplaceError> {
        let decompose = |values: &[f64], scale: f64| {
            let size = values.len().isqrt();
            finite(values)?;
            let (values, vectors) = symmetric_eigen(values, size)?;
            let values = values.iter().map(|value| (scale * value).max(0.0));
            let vectors = vectors.iter().map(|&value| R::from_f64(value));
            Ok::<_, LaplaceError>((values.collect::<Vec<_>>(), vectors.collect::<Vec<_>>()))
        };
        let mut a = a.to_vec();
        if is_separate {
            let rows = a.len().isqrt();
            let last = rows.saturating_sub(1);
            for other in 0..last {
                a[last * rows + other] = 0.0;
                a[other * rows + last] = 0.0;
            }
        }
        let (inputs, first) = decompose(&a, 1.0)?;
        let (outputs, second) = decompose(b, scale)?;
        Ok(Self {
            inputs,
            outputs,
            vectors: [first, second],
        })
    }

    /// Rows and units.
    fn sizes(&self) -> [usize; 2] {
        [self.inputs.len(), self.outputs.len()]
    }

    /// λ_i·μ_j, column-major rows × units.
    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let column = |&output: &f64| self.inputs.iter().map(move |input| input * output);
        self.outputs.iter().flat_map(column)
    }

    /// `values` (rows × units) ← Q_A·values·Q_Bᵀ.
    fn rotate_back(&self, values: &mut [R]) {
        let ([rows, units], [a, b]) = (self.sizes(), &self.vectors);
        let right = matrix(b, units, units).transpose();
        multiply_both(values, matrix(a, rows, rows), right);
    }

    /// `values` (rows × units) ← Q_Aᵀ·values·Q_B.
    fn rotate(&self, values: &mut [R]) {
        let ([rows, units], [a, b]) = (self.sizes(), &self.vectors);
        let left = matrix(a, rows, rows).transpose();
        multiply_both(values, left, matrix(b, units, units));
    }

    /// The diagonal of Q·diag(variances)·Qᵀ for the layer's rotation Q: the same product with the squares of its entries.
    fn variances(&self, variances: &[f64]) -> Vec<f64> {
        let [rows, units] = self.sizes();
        let squares = |at: usize| -> Vec<f64> {
            let values = self.vectors[at].iter();
            values.map(|value| value.to_f64().powi(2)).collect()
        };
        let (a, b, mut out) = (squares(0), squares(1), variances.to_vec());
        let right = matrix(&b, units, units).transpose();
        multiply_both(&mut out, matrix(&a, rows, rows), right);
        out
    }
}

/// `values` (rows × units) ← left·values·right.
fn multiply_both<R: Real>(values: &mut [R], left: Matrix<'_, R>, right: Matrix<'_, R>) {
    let [rows, units] = [left.nrows(), right.nrows()];
    let mut half = vec![R::ZERO; values.len()];
    let out = matrix_mut(&mut half, rows, units);
    multiply(out, false, 1.0, left, matrix(values, rows, units));
    let out = matrix_mut(values, rows, units);
    multiply(out, false, 1.0, matrix(&half, rows, units), right);
}
