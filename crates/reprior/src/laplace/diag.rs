//! The diagonal of the curvature, one number for each parameter: diag(g).

use super::LaplaceError;
use super::curvature::GaussNewton;
use super::last_layer::RowFeatures;
use super::structure::{
    KeptArray, KeptArrays, PredictionPoint, ReadoutStructure, Structure, finite, scale_by,
    scale_by_roots, variances,
};
use crate::compute::Real;

/// diag(g) with a prior.
#[derive(Debug, Clone)]
pub(super) struct Diagonal {
    /// g, not negative.
    curvature: Vec<f64>,
    /// Of the posterior.
    variances: Vec<f64>,
}

impl Diagonal {
    pub const NAME: &str = "diag";

    pub fn new(curvature: Vec<f64>) -> Result<Self, LaplaceError> {
        finite(&curvature)?;
        Ok(Self {
            curvature,
            variances: Vec::new(),
        })
    }

    /// Of the parameters `places`.
    pub fn fit<R: Real>(
        operator: &mut GaussNewton<'_, R>,
        places: &[usize],
    ) -> Result<Self, LaplaceError> {
        let diagonal = operator.diagonal();
        finite(&diagonal)?;
        Self::new(places.iter().map(|&at| diagonal[at]).collect())
    }

    pub fn load<R>(arrays: &mut KeptArrays<R>) -> Result<Self, LaplaceError> {
        Self::new(arrays.take("curvature")?)
    }
}

impl<R: Real> Structure<R> for Diagonal {
    fn size(&self) -> usize {
        self.curvature.len()
    }

    fn set_prior(&mut self, precisions: &[f64], scale: f64) -> Result<f64, LaplaceError> {
        let log_ratio;
        (self.variances, log_ratio) = variances(self.curvature.iter().copied(), precisions, scale);
        Ok(log_ratio)
    }

    fn draw(&self, noise: &mut [R]) {
        scale_by_roots(noise, &self.variances);
    }

    fn covariance_product(&self, vector: &mut [R]) {
        scale_by(vector, &self.variances);
    }

    fn variances(&self) -> Vec<f64> {
        self.variances.clone()
    }

    fn predict(&self, point: &mut PredictionPoint<'_, R>, has_covariances: bool) -> [Vec<f64>; 2] {
        let variances = point.by_layer(self.variances.iter().copied());
        let covariances = point.covariances(&variances, |_| None);
        point.prediction(covariances, has_covariances)
    }

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn arrays(&self) -> Vec<(String, KeptArray<'_, R>)> {
        vec![("curvature".to_owned(), KeptArray::Double(&self.curvature))]
    }
}

impl<R: Real> ReadoutStructure<R> for Diagonal {
    fn readout_covariances(&self, features: &RowFeatures, has_covariances: bool) -> Vec<f64> {
        features.independent(&self.variances, has_covariances)
    }
}
