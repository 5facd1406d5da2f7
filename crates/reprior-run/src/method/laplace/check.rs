//! What does not go together in the settings of a Laplace approximation.

use reprior::laplace::subset::SubsetChoice;
use reprior::model::likelihood::name::LikelihoodName;

use crate::failure::Failure;
use crate::settings::{
    LaplaceSettings, LinkName, MinibatchMethod, Per, PriorPrecisionChoice, StructureName,
};

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
        let refuse = |text: String| Err(Failure::Request(text));
        let is_diffusion = method == MinibatchMethod::LaplaceDiffusion;
        let structure = self.hessian_structure.unwrap_or_default();
        self.check_flags(method, likelihood)?;
        let subset = self
            .subset_of_weights
            .map_or(SubsetChoice::All, |subset| subset.0);
        let is_part = !matches!(subset, SubsetChoice::All | SubsetChoice::LastLayer);
        if is_part && (structure.is_kronecker() || structure == StructureName::LowRank) {
            return refuse(format!(
                "--hessian-structure {structure} is not available for a subnetwork: use full or diag"
            ));
        }
        if subset == SubsetChoice::LastLayer && structure == StructureName::LowRank {
            return refuse(
                "--hessian-structure lowrank is not available for the last layer: use full"
                    .to_owned(),
            );
        }
        let precision = self.prior_precision.unwrap_or_default();
        if precision == PriorPrecisionChoice::MarginalLikelihood(Per::Parameter)
            && structure.is_kronecker()
        {
            return refuse(
                "Kronecker factors need one prior precision for each layer: use --prior-precision marglik-layer, or another --hessian-structure".to_owned(),
            );
        }
        if precision == PriorPrecisionChoice::Validation && validation == 0 {
            return refuse(
                "--prior-precision validation needs rows that are held out: give --validation N"
                    .to_owned(),
            );
        }
        if is_diffusion
            && !matches!(
                precision,
                PriorPrecisionChoice::Number(_) | PriorPrecisionChoice::Prior
            )
        {
            return refuse(format!(
                "--prior-precision {precision} is of laplace: give a number, or prior"
            ));
        }
        if precision == PriorPrecisionChoice::Validation && likelihood == LikelihoodName::StudentT {
            return refuse(
                "--prior-precision validation is of gaussian, categorical and bernoulli likelihoods: use marglik, or a number"
                    .to_owned(),
            );
        }
        if self.link_approx == Some(LinkName::Mc) && likelihood == LikelihoodName::Bernoulli {
            return refuse(
                "--link-approx mc is of the categorical likelihood: use probit".to_owned(),
            );
        }
        if self.link_approx == Some(LinkName::Bridge) && likelihood != LikelihoodName::Categorical {
            return refuse(
                "--link-approx bridge is of the categorical likelihood: use probit".to_owned(),
            );
        }
        for (flag, value) in [
            ("--rank", self.rank.map(|value| value as u64)),
            (
                "--curvature-rows",
                self.curvature_rows.map(|value| value as u64),
            ),
            ("--diffusion-steps", self.diffusion_steps),
        ] {
            if value == Some(0) {
                return refuse(format!("{flag} is 0: it must be at least 1"));
            }
        }
        if let Some(part) = self.eigenvalue_threshold
            && !(part >= 0.0 && part.is_finite())
        {
            return refuse(format!(
                "--eigenvalue-threshold is {part}: it must be zero or positive, and finite"
            ));
        }
        Ok(())
    }
}
