//! The map T: φ_out → θ_out at any regulariser λ and pseudo-targets Ỹ (p × C matrices), with log|det| and its pull-back.
//!
//! Each output may have a λ of its own; those that follow one another with the same λ are a `RidgeGroup` and share a factorisation. All
//! share the Gram matrix, and the last product of the pull-back. For one group, of C outputs:
//!
//! θ = μ + Aφ with AAᵀ = λ(λI + ΨᵀΨ)⁻¹ and μ = (λI + ΨᵀΨ)⁻¹ΨᵀỸ: what the posterior of the readout would be if Ỹ had
//! been seen with noise of variance λ (Hron et al. 2022, Section 3.2 with λ in place of σ² everywhere, √λ included). T
//! tends to the identity as λ → ∞. Three roots A:
//! * [`Feature`](Space::Feature): A = √λ C⁻ᵀ with λI + ΨᵀΨ = CCᵀ; np² + p³/3 operations,
//! * [`Data`](Space::Data): A = I − ΨᵀL⁻ᵀ(L + √λI)⁻¹Ψ with λI + ΨΨᵀ = LLᵀ (Andrews 1968); n²p + n³/3 operations,
//! * [`DataSymmetric`](Space::DataSymmetric): the symmetric A = I − ΨᵀQΛ^{-1/2}(√λI + Λ^{1/2})⁻¹QᵀΨ with
//!   λI + ΨΨᵀ = QΛQᵀ (their Appendix B); n²p + 9n³ operations.
//!
//! The pull-back costs at most one and a half times what the map does, where the space is the cheaper one.

mod data;
mod feature;

use super::ridge::RidgeGroup;
use super::{EvaluationError, Space};
use crate::compute::{Matrix, MatrixMut, Real, for_each_column, matrix, mirror_lower, multiply};
use crate::model::Model;

use data::DataMap;
use feature::FeatureSpaceMap;

/// T for one model, with what the last evaluation left.
pub struct Repriorisation<R>(RepriorisationForm<R>);

enum RepriorisationForm<R> {
    Feature(Box<FeatureSpaceMap<R>>),
    Data(Box<DataMap<R>>),
}

/// A sum of products of few columns, Σ left·rightᵀ, to be added to the cotangent of Ψ in one pass.
struct Terms<R> {
    /// n × C matrices, one after the other.
    left: Vec<R>,
    /// p × C matrices, one after the other.
    right: Vec<R>,
}

impl<R: Real> Terms<R> {
    /// Room for one term of the caller's and those of T's pull-back.
    fn new(sizes: &MapSizes, own: usize) -> Self {
        let count = sizes.outputs * (1 + own);
        Self {
            left: vec![R::ZERO; sizes.rows * count],
            right: vec![R::ZERO; sizes.p * count],
        }
    }

    /// Both factors of one term.
    fn term(&mut self, index: usize, sizes: &MapSizes) -> (&mut [R], &mut [R]) {
        let (n, p) = (sizes.rows * sizes.outputs, sizes.p * sizes.outputs);
        (
            &mut self.left[index * n..(index + 1) * n],
            &mut self.right[index * p..(index + 1) * p],
        )
    }

    /// Adds α times the sum, without the constant column, to `out` (n × d_L).
    fn add_to(&self, out: MatrixMut<'_, R>, sizes: &MapSizes) {
        let (n, p) = (sizes.rows, sizes.p);
        let left = matrix(&self.left, n, self.left.len() / n);
        let right = matrix(&self.right, p, self.right.len() / p);
        let right = right.subrows(0, p - 1).transpose();
        multiply(out, true, sizes.factor, left, right);
    }
}

/// Sizes and constants of T.
#[derive(Debug, Clone, Copy)]
struct MapSizes {
    rows: usize,
    p: usize,
    outputs: usize,
    /// α of Ψ = α·h̃.
    factor: f64,
}

/// Groups of outputs that follow one another and have the same λ, with a factorisation of the given size each.
fn groups(lambdas: &[f64], size: usize) -> impl Iterator<Item = RidgeGroup> {
    RidgeGroup::neighbours(lambdas).map(move |(outputs, lambda)| RidgeGroup {
        ridge: lambda,
        root: lambda.sqrt(),
        ..RidgeGroup::new(outputs, size)
    })
}

/// Adds up what the pull-backs of several groups leave: the sum of all is where the last one's is.
fn add_group(sum: &mut Vec<f64>, own: &mut Vec<f64>, index: usize, count: usize) {
    if index > 0 {
        own.iter_mut()
            .zip(sum.iter())
            .for_each(|(own, sum)| *own += sum);
    }
    if index + 1 < count {
        sum.clone_from(own);
    }
}

impl<R: Real> Repriorisation<R> {
    /// T with the given pseudo-targets (column-major n × C) and the λ of each output.
    pub fn new(model: &Model<R>, space: Space, lambdas: &[f64], pseudo_targets: Vec<f64>) -> Self {
        let architecture = &model.architecture;
        let sizes = MapSizes {
            rows: model.rows(),
            p: architecture.readout_rows(),
            outputs: architecture.outputs,
            factor: architecture
                .readout_scale
                .factor(architecture.readout_rows() - 1),
        };
        Self(match space {
            Space::Feature => {
                let map = FeatureSpaceMap::new(sizes, lambdas, &pseudo_targets);
                RepriorisationForm::Feature(Box::new(map))
            }
            Space::Data | Space::DataSymmetric => {
                let is_symmetric = space == Space::DataSymmetric;
                let map = DataMap::new(sizes, lambdas, pseudo_targets, is_symmetric);
                RepriorisationForm::Data(Box::new(map))
            }
        })
    }

    /// Writes θ_out (column-major p × C); returns log|det ∂θ_out/∂φ_out|.
    ///
    /// # Errors
    /// Recoverable, if the kernel matrix cannot be factorised.
    pub fn map(
        &mut self,
        features: Matrix<'_, R>,
        phi: &[R],
        theta: &mut [R],
    ) -> Result<f64, EvaluationError> {
        match &mut self.0 {
            RepriorisationForm::Feature(map) => map.map(features, phi, theta),
            RepriorisationForm::Data(map) => map.map(features, phi, theta),
        }
    }

    /// Where the caller's own term of the cotangent of Ψ is to be written before [`pull_back`](Self::pull_back): n × C
    /// and p × C matrices.
    pub fn own_term(&mut self) -> (&mut [R], &mut [R]) {
        match &mut self.0 {
            RepriorisationForm::Feature(map) => map.terms.term(0, &map.sizes),
            RepriorisationForm::Data(map) => map.terms.term(0, &map.sizes),
        }
    }

    /// After [`map`](Self::map) at the same point: writes to `out` (n × d_L) the cotangent of the features through T,
    /// for a function of θ with cotangent `theta_cotangent` plus log|det|, and that of the caller's
    /// [term](Self::own_term); writes the cotangent of φ.
    pub fn pull_back(
        &mut self,
        out: MatrixMut<'_, R>,
        features: Matrix<'_, R>,
        phi: &[R],
        theta_cotangent: &[f64],
        phi_cotangent: &mut [R],
    ) {
        match &mut self.0 {
            RepriorisationForm::Feature(map) => {
                map.pull_back(out, features, theta_cotangent, phi, phi_cotangent);
            }
            RepriorisationForm::Data(map) => {
                map.pull_back(out, features, theta_cotangent, phi, phi_cotangent)
            }
        }
    }

    /// How often a factorisation needed its diagonal raised.
    pub fn jitter_count(&self) -> u64 {
        match &self.0 {
            RepriorisationForm::Feature(map) => map.jitter_count,
            RepriorisationForm::Data(map) => map.jitter_count,
        }
    }
}

/// `values` (column-major, size × columns) row by row into `out`, at column `start` of rows of `width` numbers, scaled.
fn by_rows(out: &mut [f64], width: usize, start: usize, values: &[f64], size: usize, scale: f64) {
    for (column, values) in values.chunks_exact(size).enumerate() {
        for (row, value) in values.iter().enumerate() {
            out[row * width + start + column] = scale * value;
        }
    }
}

/// The symmetric matrix with the given lower half, in the network's precision.
fn narrow_symmetric<R: Real>(out: &mut [R], lower: &[f64], size: usize) {
    for_each_column(out, size, |column, out| {
        let lower = &lower[column * size..];
        for (out, value) in out.iter_mut().zip(lower).skip(column) {
            *out = R::from_f64(*value);
        }
    });
    mirror_lower(out, size);
}

/// `values` in the network's precision.
fn narrow<R: Real>(out: &mut [R], values: &[f64]) {
    for (narrow, value) in out.iter_mut().zip(values) {
        *narrow = R::from_f64(*value);
    }
}
