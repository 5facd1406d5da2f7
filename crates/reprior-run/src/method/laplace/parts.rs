//! What the library's parts of a Laplace approximation or a diffusion are, and what they cost.

use reprior::laplace::diffusion::{Decomposition, Diffusion, DiffusionKind, Integrator};
use reprior::laplace::fit::LaplaceMethod;
use reprior::laplace::precision::{PrecisionChoice, prior_precisions};
use reprior::laplace::subset::SubsetChoice;
use reprior::laplace::{HessianStructure, Lanczos, PrecisionPer};
use reprior::network::parameters::ParameterLayout;
use reprior::stochastic::Prior;

use crate::failure::Failure;
use crate::method::plan::available_memory;
use crate::settings::{
    DiffusionName, EIGENVALUE_THRESHOLD, IntegratorName, LaplaceSettings, MinibatchMethod, Per,
    PriorPrecisionChoice, StructureName,
};

impl LaplaceSettings {
    /// With the least prior precision, 0 if that is found afterwards.
    fn lanczos(&self, least: f64) -> Lanczos {
        Lanczos {
            threshold: least * self.eigenvalue_threshold.unwrap_or(EIGENVALUE_THRESHOLD),
            ..Lanczos::of_rank(self.rank.unwrap_or(100))
        }
    }

    /// What draws are made of, for weights that were trained with `priors`.
    ///
    /// # Errors
    /// A wrong request: a prior that has no precision.
    pub(crate) fn draws(
        &self,
        method: MinibatchMethod,
        layout: &ParameterLayout,
        priors: &[Prior],
    ) -> Result<LaplaceMethod, Failure> {
        let choice = self.prior_precision.unwrap_or_default();
        // a number, or that of training; the others are found after training
        let given = match choice {
            PriorPrecisionChoice::Number(value) => Some(vec![value; layout.len()]),
            PriorPrecisionChoice::Prior => Some(prior_precisions(layout, priors).ok_or_else(|| {
                Failure::request(
                    "a normal-inverse-gamma prior has no precision of its own: give --prior-precision a number, or marglik",
                )
            })?),
            PriorPrecisionChoice::MarginalLikelihood(_) | PriorPrecisionChoice::Validation => None,
        };
        if method == MinibatchMethod::LaplaceDiffusion {
            let given = given.ok_or_else(|| {
                Failure::request("a diffusion has a prior precision from the start: give --prior-precision a number, or prior")
            })?;
            return self.diffusion(&given);
        }
        let structure = match self.hessian_structure.unwrap_or_default() {
            StructureName::Kron => HessianStructure::Kron,
            StructureName::Diag => HessianStructure::Diag,
            StructureName::Full => HessianStructure::Full(available_memory()),
            StructureName::KronSeparate => HessianStructure::KronSeparate,
            StructureName::LowRank => {
                let least = given.iter().flatten().copied().reduce(f64::min);
                HessianStructure::LowRank(self.lanczos(least.unwrap_or(0.0)))
            }
        };
        let precision = match (given, choice) {
            (Some(all), _) => {
                let mut layers = layout.layers.iter().map(|layer| &all[layer.range.clone()]);
                if self.hessian_structure.unwrap_or_default().is_kronecker()
                    && layers.any(|own| own.iter().any(|value| *value != own[0]))
                {
                    return Err(Failure::request(
                        "the prior of training has other precisions for biases than for weights, and Kronecker factors need one for each layer: give --prior-precision a number or marglik, train with --weight-decay or --parametrisation ntk, or use another --hessian-structure",
                    ));
                }
                PrecisionChoice::Given(all)
            }
            (None, PriorPrecisionChoice::MarginalLikelihood(per)) => {
                PrecisionChoice::MarginalLikelihood(match per {
                    Per::All => PrecisionPer::All,
                    Per::Layer => PrecisionPer::Layer,
                    Per::Parameter => PrecisionPer::Parameter,
                })
            }
            (None, _) => PrecisionChoice::Validation,
        };
        Ok(LaplaceMethod::Approximation {
            structure,
            subset: self.subset(),
            precision,
        })
    }

    /// A diffusion with the prior precisions of all weights, which must be one number.
    fn diffusion(&self, precisions: &[f64]) -> Result<LaplaceMethod, Failure> {
        let precision = precisions.first().copied().unwrap_or(1.0);
        if precisions.iter().any(|value| *value != precision) {
            return Err(Failure::request(
                "a diffusion has one prior precision for all weights: give --prior-precision a number, or train with --parametrisation ntk or --weight-decay",
            ));
        }
        Ok(LaplaceMethod::Diffusion(Diffusion {
            kind: match self.diffusion.unwrap_or_default() {
                DiffusionName::NonKernel => DiffusionKind::NonKernel,
                DiffusionName::Kernel => DiffusionKind::Kernel,
                DiffusionName::Alternating => DiffusionKind::Alternating,
                DiffusionName::Full => DiffusionKind::Full,
            },
            steps: self.diffusion_steps.unwrap_or(20),
            precision,
            integrator: match self.integrator.unwrap_or_default() {
                IntegratorName::Euler => Integrator::Euler,
                IntegratorName::Heun => Integrator::Heun,
            },
            decomposition: Decomposition::Lanczos(self.lanczos(precision)),
        }))
    }

    /// The weights that are random.
    pub(crate) fn subset(&self) -> SubsetChoice {
        self.subset_of_weights
            .map_or(SubsetChoice::All, |subset| subset.0)
    }

    /// About the most bytes that fitting and drawing take, of a network of such layers with numbers of `real` bytes, for so many
    /// rows of the curvature and outputs; and the products with the curvature that a decomposition takes at most.
    pub(crate) fn cost(
        &self,
        method: MinibatchMethod,
        layout: &ParameterLayout,
        real: usize,
        [rows, outputs]: [usize; 2],
    ) -> (u64, u64) {
        let size = layout.len() as u64;
        let most = (self.lanczos(0.0).most as u64).min(size);
        let real = real as u64;
        let subset = self.subset();
        let last = layout.layers.last().map_or(0, |layer| layer.range.len()) as u64;
        let random = match subset {
            SubsetChoice::All => size,
            SubsetChoice::LastLayer => last,
            SubsetChoice::Last(n)
            | SubsetChoice::LargestMagnitude(n)
            | SubsetChoice::LargestVariance(n) => (n as u64).min(size),
        };
        let lanczos = most * size * real * 2 + 16 * most * most + 16 * 16 * size * real;
        if method == MinibatchMethod::LaplaceDiffusion {
            // and the eigenpairs at the mode, where all paths begin
            let at_mode = self.lanczos(0.0).rank as u64 * size * real;
            return (lanczos + at_mode, most * self.diffusion_steps.unwrap_or(20));
        }
        let factors = |layers: &[reprior::network::parameters::ParameterMatrix]| -> u64 {
            let numbers = layers
                .iter()
                .map(|layer| layer.rows.pow(2) + layer.units.pow(2));
            numbers.sum::<usize>() as u64 * (real * 17 + 32)
        };
        match self.hessian_structure.unwrap_or_default() {
            StructureName::LowRank => (lanczos, most),
            StructureName::Diag => (size * (16 * real + 32), 0),
            StructureName::Kron | StructureName::KronSeparate
                if subset == SubsetChoice::LastLayer =>
            {
                (
                    factors(&layout.layers[layout.layers.len().saturating_sub(1)..]),
                    0,
                )
            }
            StructureName::Kron | StructureName::KronSeparate => {
                (factors(&layout.layers) + size * 24, 0)
            }
            StructureName::Full => {
                let jacobian = (rows * outputs) as u64;
                if subset == SubsetChoice::All && jacobian < size {
                    (jacobian * (size * 2 * real + 24 * jacobian), 0)
                } else {
                    (24 * random * random, 0)
                }
            }
        }
    }
}
