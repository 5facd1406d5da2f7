//! Laplace approximations and diffusions: flags, settings, and what the library's parts of them are.

mod arguments;
mod check;
mod closed_form;
mod draws;
mod kept;
mod written;

use std::str::FromStr;

use reprior::laplace::{Link, SubsetChoice};
use reprior::model::likelihood::LikelihoodName;
use serde::{Deserialize, Serialize};

pub use arguments::LaplaceArguments;
pub use closed_form::{Predictor, has_closed_form, rows_together};
pub use kept::{closed_form, save};
use written::{Precision, Subset};

use crate::error::Failure;
use crate::method::MinibatchMethod;
use crate::names::{DiffusionName, IntegratorName, LinkName, PredictionType, StructureName};

/// Draws of the logits that the link `mc` takes for each input.
const LINK_DRAWS: usize = 1000;

/// Part of the prior precision: eigenvalues below it change variances by less than 1 %.
const EIGENVALUE_THRESHOLD: f64 = 0.01;

/// As `[laplace]` in `config.toml`; what is absent has its default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct LaplaceSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hessian_structure: Option<StructureName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subset_of_weights: Option<Subset>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior_precision: Option<Precision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pred_type: Option<PredictionType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_approx: Option<LinkName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eigenvalue_threshold: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curvature_rows: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diffusion: Option<DiffusionName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diffusion_steps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integrator: Option<IntegratorName>,
}

impl LaplaceSettings {
    /// Replaces what the flags give.
    ///
    /// # Errors
    /// A wrong request: an unknown name.
    pub fn apply(&mut self, flags: &LaplaceArguments) -> Result<(), Failure> {
        fn parse<T: FromStr<Err = Failure>>(
            field: &mut Option<T>,
            flag: &Option<String>,
        ) -> Result<(), Failure> {
            if let Some(text) = flag {
                *field = Some(text.parse()?);
            }
            Ok(())
        }
        let before = self.clone();
        parse(&mut self.hessian_structure, &flags.hessian_structure)?;
        self.subset_of_weights = flags.subset_of_weights.or(self.subset_of_weights);
        self.prior_precision = flags.prior_precision.or(self.prior_precision);
        parse(&mut self.pred_type, &flags.pred_type)?;
        // what a file says that hangs on others
        if self.hessian_structure != before.hessian_structure {
            (self.rank, self.eigenvalue_threshold) = (None, None);
        }
        if self.pred_type != before.pred_type {
            self.link_approx = None;
        }
        parse(&mut self.link_approx, &flags.link_approx)?;
        self.rank = flags.rank.or(self.rank);
        self.eigenvalue_threshold = flags.eigenvalue_threshold.or(self.eigenvalue_threshold);
        self.curvature_rows = flags.curvature_rows.or(self.curvature_rows);
        parse(&mut self.diffusion, &flags.diffusion)?;
        self.diffusion_steps = flags.diffusion_steps.or(self.diffusion_steps);
        parse(&mut self.integrator, &flags.integrator)?;
        Ok(())
    }

    /// The flags of what is given.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("--hessian-structure", self.hessian_structure.is_some()),
            ("--subset-of-weights", self.subset_of_weights.is_some()),
            ("--prior-precision", self.prior_precision.is_some()),
            ("--pred-type", self.pred_type.is_some()),
            ("--link-approx", self.link_approx.is_some()),
            ("--rank", self.rank.is_some()),
            (
                "--eigenvalue-threshold",
                self.eigenvalue_threshold.is_some(),
            ),
            ("--curvature-rows", self.curvature_rows.is_some()),
            ("--diffusion", self.diffusion.is_some()),
            ("--diffusion-steps", self.diffusion_steps.is_some()),
            ("--integrator", self.integrator.is_some()),
        ];
        let given = all.into_iter().filter(|(_, is_given)| *is_given);
        given.map(|(flag, _)| flag)
    }

    /// Whether nothing is given.
    pub fn is_empty(&self) -> bool {
        self.given().next().is_none()
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
                .get_or_insert(Subset(SubsetChoice::All));
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
