//! What a structure of the curvature has to offer to be the precision G + P of a posterior, with prior precisions P (diagonal). One
//! structure, one file:
//!
//! | structure | G | memory |
//! |---|---|---|
//! | `Diagonal` | diag(g) | D |
//! | `Kronecker` | A ⊗ B/n for each layer, as Q_A Λ_A Q_Aᵀ ⊗ Q_B Λ_B Q_Bᵀ | rows² + units² a layer |
//! | `LowRank`, and `full` with all that is not zero | UΛUᵀ | D·k |
//! | `LastLayer` | of the readout alone, in one of these | theirs |

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use super::diag::Diagonal;
use super::kron::Kronecker;
use super::last_layer::RowFeatures;
use super::low_rank::{LeftOutCurvature, LowRank};
use super::{LaplaceError, Subset};
use crate::compute::{Matrix, MatrixMut, Real, matrix};
use crate::network::parameters::ParameterLayout;
use crate::network::{Executor, MatrixGaussian};

/// A curvature with a prior: the precision of a Gaussian around weights.
pub(super) trait Structure<R: Real>: Debug + Send + Sync {
    /// Random parameters D.
    fn size(&self) -> usize;

    /// Makes the precision G·`scale` + P, for the precisions P of all random parameters, and gives log det(I + P^(−1)·G·`scale`).
    fn set_prior(&mut self, precisions: &[f64], scale: f64) -> Result<f64, LaplaceError>;

    /// `noise` ← (G + P)^(−1/2)·noise: of standard normal numbers a draw of the Gaussian around zero.
    fn draw(&self, noise: &mut [R]);

    /// `vector` ← (G + P)^(−1)·vector.
    fn covariance_product(&self, vector: &mut [R]);

    /// The diagonal of (G + P)^(−1).
    fn variances(&self) -> Vec<f64>;

    /// The outputs of the linearised network (n × C, row after row) and their covariances J(G + P)^(−1)Jᵀ (C × C for each
    /// input), or the variances alone (n × C).
    fn predict(&self, point: &mut PredictionPoint<'_, R>, has_covariances: bool) -> [Vec<f64>; 2];

    /// What of the curvature is not here; none but of low rank.
    fn left_out(&self, _precisions: &[f64], _scale: f64) -> Option<LeftOutCurvature> {
        None
    }

    /// How the decomposition went.
    fn report(&self) -> DecompositionReport {
        DecompositionReport::default()
    }

    /// Its name, by which [`load`] knows it again.
    fn name(&self) -> &'static str;

    /// The numbers that it is made of again.
    fn arrays(&self) -> Vec<(String, KeptArray<'_, R>)>;
}

/// A structure that the readout's curvature may have.
pub(super) trait ReadoutStructure<R: Real>: Structure<R> {
    /// (I ⊗ ψᵀ)(G + P)^(−1)(I ⊗ ψ) of each row of features (C × C each), or its diagonal.
    fn readout_covariances(&self, features: &RowFeatures, has_covariances: bool) -> Vec<f64>;
}

/// How a decomposition of the curvature went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecompositionReport {
    /// Of full and low rank.
    pub eigenpairs: Option<usize>,
    /// Eigenpairs that were wanted and had not converged.
    pub unconverged: usize,
    /// Products with the curvature that it took.
    pub products: u64,
    /// Layers without Kronecker factors, whose diagonal was taken.
    pub diagonal_layers: usize,
}

/// What a fit that is kept says of itself, besides its [`KeptArrays`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptFit {
    pub(super) structure: String,
    pub(super) subset: Subset,
}

/// A view of numbers that are kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KeptArray<'a, R> {
    /// In the precision of the weights.
    Weights(&'a [R]),
    /// In double precision.
    Double(&'a [f64]),
}

/// Numbers that were kept, by name.
#[derive(Debug, Clone, Default)]
pub struct KeptArrays<R> {
    /// In the precision of the weights.
    pub weights: BTreeMap<String, Vec<R>>,
    /// In double precision.
    pub double: BTreeMap<String, Vec<f64>>,
}

impl<R> KeptArrays<R> {
    pub(super) fn take_weights(&mut self, name: &str) -> Result<Vec<R>, LaplaceError> {
        let found = self.weights.remove(name);
        found.ok_or_else(|| LaplaceError::Kept(format!("it has no `{name}`")))
    }

    pub(super) fn take(&mut self, name: &str) -> Result<Vec<f64>, LaplaceError> {
        let found = self.double.remove(name);
        found.ok_or_else(|| LaplaceError::Kept(format!("it has no `{name}`")))
    }
}

/// The structure of so many parameters with a name that is made of `arrays`.
pub(super) fn load<R: Real>(
    name: &str,
    size: usize,
    arrays: &mut KeptArrays<R>,
) -> Result<Box<dyn ReadoutStructure<R>>, LaplaceError> {
    let found: Box<dyn ReadoutStructure<R>> = match name {
        Diagonal::NAME => Box::new(Diagonal::load(arrays)?),
        Kronecker::<R>::NAME => Box::new(Kronecker::load(arrays)?),
        LowRank::<R>::NAME => Box::new(LowRank::load(size, arrays)?),
        other => {
            return Err(LaplaceError::Kept(format!(
                "its structure `{other}` is unknown"
            )));
        }
    };
    match found.size() {
        own if own == size => Ok(found),
        own => Err(LaplaceError::Kept(format!(
            "it is of {own} parameters, not of {size}"
        ))),
    }
}

/// Where a network is linearised, and for which inputs.
#[derive(Debug)]
pub(super) struct PredictionPoint<'a, R> {
    pub executor: &'a mut Executor<R>,
    pub layout: &'a ParameterLayout,
    pub weights: &'a [R],
    /// Which of them are random.
    pub subset: &'a Subset,
    /// n × d₀.
    pub inputs: Matrix<'a, R>,
}

impl<R: Real> PredictionPoint<'_, R> {
    /// The outputs with these covariances, of which the variances alone may be wanted.
    pub fn prediction(&mut self, covariances: Vec<f64>, has_covariances: bool) -> [Vec<f64>; 2] {
        let (rows, outputs) = (self.inputs.nrows(), self.executor.outputs_count());
        let mut f = vec![R::ZERO; rows * outputs];
        let out = MatrixMut::from_row_major_slice_mut(&mut f, rows, outputs);
        self.executor.outputs(self.weights, self.inputs, out);
        let f = double(&f);
        if has_covariances {
            return [f, covariances];
        }
        let own = covariances.chunks_exact(outputs * outputs);
        let variances = own.flat_map(|own| own.iter().step_by(outputs + 1)).copied();
        [f, variances.collect()]
    }

    /// JΣJᵀ (C × C for each input) for parameters that are independent from layer to layer, with these variances in each layer,
    /// in the coordinates of its rotations where there are any.
    pub fn covariances<'b>(
        &mut self,
        variances: &'b [Vec<R>],
        rotations: impl Fn(usize) -> Option<[&'b [R]; 2]>,
    ) -> Vec<f64> {
        let (rows, outputs) = (self.inputs.nrows(), self.executor.outputs_count());
        let spreads = variances.iter().enumerate();
        let spreads = spreads.map(|(layer, variances)| MatrixGaussian {
            rotations: rotations(layer),
            variances,
        });
        let spreads: Vec<_> = spreads.collect();
        let size = outputs * outputs;
        let mut covariances = vec![R::ZERO; rows * size];
        let out = MatrixMut::from_row_major_slice_mut(&mut covariances, rows, size);
        self.executor
            .covariances(self.weights, self.inputs, &spreads, out);
        double(&covariances)
    }

    /// A number for each random parameter as one for each parameter of each layer, zero where it is not random; a layer with the
    /// same number everywhere has one.
    pub fn by_layer(&self, values: impl Iterator<Item = f64>) -> Vec<Vec<R>> {
        let values: Vec<R> = values.map(R::from_f64).collect();
        let mut all = vec![R::ZERO; self.weights.len()];
        let readout = self.executor.readout_parameters();
        self.subset.add(&values, &mut all, readout);
        let layers = self.layout.layers.iter();
        let own = layers.map(|layer| {
            let own = &all[layer.range.clone()];
            match own.iter().all(|value| *value == own[0]) {
                true => own[..1].to_vec(),
                false => own.to_vec(),
            }
        });
        own.collect()
    }

    /// J times `count` directions of the random parameters, for each input count × C numbers.
    pub fn jvps(&mut self, directions: impl Iterator<Item = Vec<R>>, count: usize) -> Vec<R> {
        let (rows, size) = (self.inputs.nrows(), self.weights.len());
        let (outputs, readout) = (
            self.executor.outputs_count(),
            self.executor.readout_parameters(),
        );
        let mut all = vec![R::ZERO; size * count];
        for (all, own) in all.chunks_exact_mut(size).zip(directions) {
            self.subset.add(&own, all, readout);
        }
        let mut along = vec![R::ZERO; rows * outputs * count];
        let out = MatrixMut::from_row_major_slice_mut(&mut along, rows, outputs * count);
        let directions = matrix(&all, size, count);
        self.executor
            .jvps(self.weights, self.inputs, directions, out);
        along
    }
}

/// The variances 1/(scale·g + p) and Σ log(1 + scale·g/p), of eigenvalues g and precisions p.
pub(super) fn variances(
    values: impl Iterator<Item = f64>,
    precisions: &[f64],
    scale: f64,
) -> (Vec<f64>, f64) {
    let mut log_ratio = 0.0;
    let pairs = values.zip(precisions).map(|(value, precision)| {
        log_ratio += (scale * value / precision).ln_1p();
        1.0 / (scale * value + precision)
    });
    let variances: Vec<f64> = pairs.collect();
    (variances, log_ratio)
}

pub(super) fn double<R: Real>(values: &[R]) -> Vec<f64> {
    values.iter().map(|value| value.to_f64()).collect()
}

pub(super) fn finite(values: &[f64]) -> Result<(), LaplaceError> {
    match crate::compute::all_finite(values) {
        true => Ok(()),
        false => Err(LaplaceError::NotFinite),
    }
}

pub(super) fn scale_by<R: Real>(values: &mut [R], scales: &[f64]) {
    for (value, &scale) in values.iter_mut().zip(scales) {
        *value *= R::from_f64(scale);
    }
}

pub(super) fn scale_by_roots<R: Real>(values: &mut [R], variances: &[f64]) {
    for (value, &variance) in values.iter_mut().zip(variances) {
        *value *= R::from_f64(variance.sqrt());
    }
}
