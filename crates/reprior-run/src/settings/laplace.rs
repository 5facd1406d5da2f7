//! Settings of Laplace approximations and diffusions.

use clap::Args;
use reprior::laplace::Link;
use reprior::laplace::subset::SubsetChoice;
use reprior::model::likelihood::name::LikelihoodName;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

use super::flags::given;
use super::laplace_expressions::{PriorPrecisionChoice, WrittenSubset};
use super::method::MinibatchMethod;
use super::names::{DiffusionName, IntegratorName, LinkName, PredictionType, StructureName};
use super::rules::{SettingRule, refuse_others};

/// Draws of the logits that the link `mc` takes for each input.
const LINK_DRAWS: usize = 1000;

/// Part of the prior precision: eigenvalues below it change variances by less than 1 %.
pub(crate) const EIGENVALUE_THRESHOLD: f64 = 0.01;

/// `[laplace]`: what Laplace approximations and diffusions take besides how the mode is trained; what is absent has its default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, Args)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
#[command(next_help_heading = "Laplace approximations and diffusions (laplace, laplace-diffusion)")]
pub struct LaplaceSettings {
    /// Of laplace: kron (Kronecker factors of each layer, with the bias as one more input), kron-separate (biases as blocks of
    /// their own, as laplace-torch has them: other numbers, mostly further from full), full, diag or lowrank (leading eigenpairs)
    /// [default: kron]
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hessian_structure: Option<StructureName>,
    /// Of laplace: the weights that are random: all, last-layer, or a subnetwork of N weights as last(N), largest-magnitude(N) or
    /// largest-variance(N) [default: all]
    #[arg(long, value_name = "WHICH")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subset_of_weights: Option<WrittenSubset>,
    /// Of the prior that the curvature is added to: a number, prior (that of training), marglik, marglik-layer or
    /// marglik-parameter (largest marginal likelihood), or validation (a grid; takes --validation rows) [default: prior]
    #[arg(long, value_name = "ALPHA")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior_precision: Option<PriorPrecisionChoice>,
    /// Of laplace: glm (the linearised network) or nn (the network itself; needs a good fit far from the mode) [default: glm]
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pred_type: Option<PredictionType>,
    /// Class probabilities of the linearised network in closed form: probit, bridge or mc (1,000 draws of the logits of each row)
    /// [default: probit]
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_approx: Option<LinkName>,
    /// Eigenpairs of lowrank and laplace-diffusion; those that have not converged are left out, and the summary says how much
    /// is [default: 100]
    #[arg(long, value_name = "K")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    /// Eigenvalues below this part of the prior precision count as none; of lowrank with a prior precision that is looked for
    /// none does [default: 0.01]
    #[arg(long, value_name = "PART")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eigenvalue_threshold: Option<f64>,
    /// Training rows, the first ones, that the curvature is of, standing for all [default: all]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curvature_rows: Option<usize>,
    /// Of laplace-diffusion: non-kernel, kernel, alternating or full [default: non-kernel]
    #[arg(long, value_name = "KIND")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diffusion: Option<DiffusionName>,
    /// T, the steps of a diffusion, each of size 1/T [default: 20]
    #[arg(long, value_name = "T")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diffusion_steps: Option<u64>,
    /// Steps of a diffusion: euler (as published) or heun (twice the work; kernel diffusions then keep what was fitted) [default:
    /// euler]
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integrator: Option<IntegratorName>,
}

impl LaplaceSettings {
    /// Whether nothing is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses flags that do not go with a method or with other flags.
    ///
    /// # Errors
    /// A wrong request.
    pub(crate) fn check_flags(
        &self,
        method: MinibatchMethod,
        likelihood: LikelihoodName,
    ) -> Result<(), Failure> {
        let is_laplace = method == MinibatchMethod::Laplace;
        let is_diffusion = method == MinibatchMethod::LaplaceDiffusion;
        let structure = self.hessian_structure.unwrap_or_default();
        let has_rank = is_diffusion || (is_laplace && structure == StructureName::LowRank);
        let is_linearised = is_laplace && self.pred_type.unwrap_or_default() == PredictionType::Glm;
        let has_classes = likelihood.family(1.0).is_none();
        let rule = |flags, is_taken, whose| SettingRule {
            flags,
            is_taken,
            whose,
        };
        let rules = [
            rule(
                &["--hessian-structure", "--subset-of-weights", "--pred-type"],
                is_laplace,
                "laplace",
            ),
            rule(
                &["--link-approx"],
                is_linearised && has_classes,
                "laplace with --pred-type glm, and of classes",
            ),
            rule(
                &["--rank", "--eigenvalue-threshold"],
                has_rank,
                "laplace-diffusion and --hessian-structure lowrank",
            ),
            rule(
                &["--diffusion", "--diffusion-steps", "--integrator"],
                is_diffusion,
                "laplace-diffusion",
            ),
            rule(
                &["--prior-precision", "--curvature-rows"],
                is_laplace || is_diffusion,
                "laplace and laplace-diffusion",
            ),
        ];
        refuse_others(&given(self), &rules)
    }

    /// Writes every default out, for a method on so many training rows.
    pub fn write_out(&mut self, method: MinibatchMethod, likelihood: LikelihoodName, rows: usize) {
        self.prior_precision.get_or_insert_default();
        self.curvature_rows = self.curvature_rows.map(|own| own.min(rows));
        let mut has_rank = method == MinibatchMethod::LaplaceDiffusion;
        if has_rank {
            self.diffusion.get_or_insert_default();
            self.diffusion_steps.get_or_insert(20);
            self.integrator.get_or_insert_default();
        } else {
            let structure = *self.hessian_structure.get_or_insert_default();
            self.subset_of_weights
                .get_or_insert(WrittenSubset(SubsetChoice::All));
            let has_classes = likelihood.family(1.0).is_none();
            if *self.pred_type.get_or_insert_default() == PredictionType::Glm && has_classes {
                self.link_approx.get_or_insert_default();
            }
            has_rank = structure == StructureName::LowRank;
        }
        if has_rank {
            self.rank.get_or_insert(100);
            self.eigenvalue_threshold
                .get_or_insert(EIGENVALUE_THRESHOLD);
        }
    }

    /// Whether predictions are of the linearised network.
    pub fn is_linearised(&self, method: MinibatchMethod) -> bool {
        method == MinibatchMethod::Laplace
            && self.pred_type.unwrap_or_default() == PredictionType::Glm
    }

    /// The link of classes.
    pub fn link(&self) -> Link {
        match self.link_approx.unwrap_or_default() {
            LinkName::Probit => Link::Probit,
            LinkName::Bridge => Link::Bridge,
            LinkName::Mc => Link::Mc(LINK_DRAWS),
        }
    }
}
