//! What does not go together in the settings of a Laplace approximation.

use reprior::laplace::subset::SubsetChoice;
use reprior::model::likelihood::name::LikelihoodName;

use crate::failure::Failure;
use crate::settings::{
    LaplaceSettings, LinkName, MinibatchMethod, Per, PriorPrecisionChoice, StructureName,
    at_least_one,
};

/// Why a prior precision is not chosen by rows that are held out.
const VALIDATION: &str = "--prior-precision validation needs a gaussian, categorical or bernoulli likelihood: use marglik, or a number";

impl LaplaceSettings {
    /// Refuses what does not go together.
    ///
    /// # Errors
    /// A wrong request.
    pub(crate) fn check(
        &self,
        method: MinibatchMethod,
        likelihood: LikelihoodName,
        validation: usize,
    ) -> Result<(), Failure> {
        let is_diffusion = method == MinibatchMethod::LaplaceDiffusion;
        let structure = self.hessian_structure.unwrap_or_default();
        self.check_flags(method, likelihood)?;
        let subset = self.subset();
        let is_subnetwork = !matches!(subset, SubsetChoice::All | SubsetChoice::LastLayer);
        let is_low_rank = structure == StructureName::LowRank;
        let precision = self.prior_precision.unwrap_or_default();
        let is_validated = precision == PriorPrecisionChoice::Validation;
        let is_of_each_parameter =
            precision == PriorPrecisionChoice::MarginalLikelihood(Per::Parameter);
        let is_given = matches!(
            precision,
            PriorPrecisionChoice::Number(_) | PriorPrecisionChoice::Prior
        );
        let is_categorical = likelihood == LikelihoodName::Categorical;
        let link = self.link_approx;
        let impossible = [
            (
                is_subnetwork && (structure.is_kronecker() || is_low_rank),
                format!(
                    "--hessian-structure {structure} is not available for a subnetwork: use full or diag"
                ),
            ),
            (
                subset == SubsetChoice::LastLayer && is_low_rank,
                "--hessian-structure lowrank is not available for the last layer: use full".into(),
            ),
            (
                is_of_each_parameter && structure.is_kronecker(),
                "Kronecker factors need one prior precision for each layer: use --prior-precision marglik-layer, or another --hessian-structure".into(),
            ),
            (
                is_validated && validation == 0,
                "--prior-precision validation needs rows that are held out: give --validation N".into(),
            ),
            (
                is_diffusion && !is_given,
                format!("--prior-precision {precision} belongs to laplace: give a number, or prior"),
            ),
            (
                is_validated
                    && (likelihood.has_degrees_of_freedom() || likelihood.has_row_noise()),
                VALIDATION.into(),
            ),
            (
                link == Some(LinkName::Mc) && likelihood == LikelihoodName::Bernoulli,
                "--link-approx mc needs the categorical likelihood: use probit".into(),
            ),
            (
                link == Some(LinkName::Bridge) && !is_categorical,
                "--link-approx bridge needs the categorical likelihood: use probit".into(),
            ),
        ];
        if let Some((_, text)) = impossible.into_iter().find(|(is_so, _)| *is_so) {
            return Err(Failure::Request(text));
        }
        self.check_ranges()
    }

    /// Refuses what earlier versions took: their runs are read, and go on.
    ///
    /// # Errors
    /// A wrong request.
    pub(crate) fn check_new(&self, likelihood: LikelihoodName) -> Result<(), Failure> {
        let is_validated = self.prior_precision == Some(PriorPrecisionChoice::Validation);
        match is_validated && likelihood == LikelihoodName::Poisson {
            // held-out counts would be scored at their mean rate, as if nothing else were possible
            true => Err(Failure::request(VALIDATION)),
            false => Ok(()),
        }
    }

    /// Refuses numbers out of range.
    fn check_ranges(&self) -> Result<(), Failure> {
        let curvature_rows = self.curvature_rows.map(|value| value as u64);
        at_least_one(&[
            ("--rank", self.rank.map(|value| value as u64)),
            ("--curvature-rows", curvature_rows),
            ("--diffusion-steps", self.diffusion_steps),
        ])?;
        match self.eigenvalue_threshold {
            Some(part) if !(part >= 0.0 && part.is_finite()) => Err(Failure::Request(format!(
                "--eigenvalue-threshold is {part}: it must be zero or positive, and finite"
            ))),
            _ => Ok(()),
        }
    }
}
