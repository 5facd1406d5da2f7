//! Laplace approximations and diffusions: flags, settings, and what the library's parts of them are.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use reprior::chain::{ModeDraws, PrecisionChoice, SubsetChoice, prior_precisions};
use reprior::laplace::{
    Decomposition, Diffusion, DiffusionKind, HessianStructure, Integrator, Lanczos, Link,
    OutputCurvature, PrecisionPer,
};
use reprior::model::likelihood::LikelihoodName;
use reprior::stochastic::{Layout, Prior};
use serde::{Deserialize, Serialize};

use super::written::written;
use crate::budget::available_memory;
use crate::error::Failure;
use crate::method::MinibatchMethod;
use crate::model_settings::ModelSettings;
use crate::names::{
    DiffusionName, IntegratorName, LinkName, PredictionType, StructureName, call, count,
};

/// Draws of the logits that the link `mc` takes for each input.
const LINK_DRAWS: usize = 1000;

/// What Laplace approximations and diffusions are told besides how the mode is trained.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Laplace approximations and diffusions (laplace, laplace-diffusion)")]
pub struct LaplaceArguments {
    /// Of laplace: kron (Kronecker factors of each layer), full, diag or lowrank (leading eigenpairs) [default: kron]
    #[arg(long, value_name = "NAME")]
    pub hessian_structure: Option<String>,
    /// Of laplace: the weights that are random: all, last-layer, or a subnetwork of N weights as last(N), largest-magnitude(N) or
    /// largest-variance(N) [default: all]
    #[arg(long, value_name = "WHICH")]
    pub subset_of_weights: Option<Subset>,
    /// Of the prior that the curvature is added to: a number, prior (that of training), marglik, marglik-layer or
    /// marglik-parameter (largest marginal likelihood), or validation (a grid; takes --validation rows) [default: prior]
    #[arg(long, value_name = "ALPHA", allow_negative_numbers = true)]
    pub prior_precision: Option<Precision>,
    /// Of laplace: glm (the linearised network) or nn (the network itself; needs a good fit far from the mode) [default: glm]
    #[arg(long, value_name = "NAME")]
    pub pred_type: Option<String>,
    /// Class probabilities of the linearised network in closed form: probit, bridge or mc (1,000 draws of the logits of each row)
    /// [default: probit]
    #[arg(long, value_name = "NAME")]
    pub link_approx: Option<String>,
    /// Eigenpairs of lowrank and laplace-diffusion; those that have not converged are left out [default: 100]
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub rank: Option<usize>,
    /// Eigenvalues below this part of the largest one count as none [default: 0.000001]
    #[arg(long, value_name = "PART", allow_negative_numbers = true)]
    pub eigenvalue_threshold: Option<f64>,
    /// Training rows, the first ones, that the curvature is of, standing for all [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub curvature_rows: Option<usize>,
    /// Of laplace-diffusion: non-kernel, kernel, alternating or full [default: non-kernel]
    #[arg(long, value_name = "KIND")]
    pub diffusion: Option<String>,
    /// T, the steps of a diffusion, each of size 1/T [default: 20]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub diffusion_steps: Option<u64>,
    /// Steps of a diffusion: euler (as published) or heun (twice the work; kernel diffusions then keep what was fitted) [default:
    /// euler]
    #[arg(long, value_name = "NAME")]
    pub integrator: Option<String>,
}

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

/// `--subset-of-weights`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Subset(pub SubsetChoice);
written!(Subset);

impl FromStr for Subset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |numbers: &[f64]| match numbers {
            [value] => count(*value)
                .filter(|n| *n > 0)
                .and_then(|n| usize::try_from(n).ok()),
            _ => None,
        };
        let choice = match call(text) {
            Some(("all", numbers)) if numbers.is_empty() => Some(SubsetChoice::All),
            Some(("last-layer", numbers)) if numbers.is_empty() => Some(SubsetChoice::LastLayer),
            Some(("last", numbers)) => number(&numbers).map(SubsetChoice::Last),
            Some(("largest-magnitude", numbers)) => {
                number(&numbers).map(SubsetChoice::LargestMagnitude)
            }
            Some(("largest-variance", numbers)) => {
                number(&numbers).map(SubsetChoice::LargestVariance)
            }
            _ => None,
        };
        choice.map(Self).ok_or_else(|| {
            format!(
                "unknown weights `{text}`: use all, last-layer, last(N), largest-magnitude(N) or largest-variance(N)"
            )
        })
    }
}

impl fmt::Display for Subset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            SubsetChoice::All => f.write_str("all"),
            SubsetChoice::LastLayer => f.write_str("last-layer"),
            SubsetChoice::Last(count) => write!(f, "last({count})"),
            SubsetChoice::LargestMagnitude(count) => write!(f, "largest-magnitude({count})"),
            SubsetChoice::LargestVariance(count) => write!(f, "largest-variance({count})"),
        }
    }
}

/// `--prior-precision`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Precision {
    /// That of training.
    #[default]
    Prior,
    /// The same for all weights.
    Number(f64),
    /// The largest marginal likelihood.
    MarginalLikelihood(Per),
    /// The best of a grid.
    Validation,
}
written!(Precision);

/// What precisions may differ between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    All,
    Layer,
    Parameter,
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "prior" => Self::Prior,
            "marglik" => Self::MarginalLikelihood(Per::All),
            "marglik-layer" => Self::MarginalLikelihood(Per::Layer),
            "marglik-parameter" => Self::MarginalLikelihood(Per::Parameter),
            "validation" => Self::Validation,
            _ => match text.parse::<f64>() {
                Ok(value) if value.is_finite() && value > 0.0 => Self::Number(value),
                _ => {
                    return Err(format!(
                        "unknown prior precision `{text}`: use a positive number, prior, marglik, marglik-layer, marglik-parameter or validation"
                    ));
                }
            },
        })
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prior => f.write_str("prior"),
            Self::Number(value) => write!(f, "{value}"),
            Self::MarginalLikelihood(Per::All) => f.write_str("marglik"),
            Self::MarginalLikelihood(Per::Layer) => f.write_str("marglik-layer"),
            Self::MarginalLikelihood(Per::Parameter) => f.write_str("marglik-parameter"),
            Self::Validation => f.write_str("validation"),
        }
    }
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
        parse(&mut self.hessian_structure, &flags.hessian_structure)?;
        self.subset_of_weights = flags.subset_of_weights.or(self.subset_of_weights);
        self.prior_precision = flags.prior_precision.or(self.prior_precision);
        parse(&mut self.pred_type, &flags.pred_type)?;
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

    /// Refuses what does not go together.
    ///
    /// # Errors
    /// A wrong request.
    pub fn check(
        &self,
        method: MinibatchMethod,
        likelihood: LikelihoodName,
        validation: usize,
    ) -> Result<(), Failure> {
        let refuse = |text: String| Err(Failure::Request(text));
        let is_laplace = method == MinibatchMethod::Laplace;
        let is_diffusion = method == MinibatchMethod::LaplaceDiffusion;
        let structure = self.hessian_structure.unwrap_or_default();
        let has_rank = is_diffusion || (is_laplace && structure == StructureName::LowRank);
        let is_linearised = is_laplace && self.pred_type.unwrap_or_default() == PredictionType::Glm;
        let has_classes = matches!(
            likelihood,
            LikelihoodName::Categorical | LikelihoodName::Bernoulli
        );
        for (flag, has_it, whose) in [
            ("--hessian-structure", is_laplace, "laplace"),
            ("--subset-of-weights", is_laplace, "laplace"),
            ("--pred-type", is_laplace, "laplace"),
            (
                "--link-approx",
                is_linearised && has_classes,
                "laplace with --pred-type glm, and of classes",
            ),
            (
                "--rank",
                has_rank,
                "laplace-diffusion and --hessian-structure lowrank",
            ),
            (
                "--eigenvalue-threshold",
                has_rank,
                "laplace-diffusion and --hessian-structure lowrank",
            ),
            ("--diffusion", is_diffusion, "laplace-diffusion"),
            ("--diffusion-steps", is_diffusion, "laplace-diffusion"),
            ("--integrator", is_diffusion, "laplace-diffusion"),
            (
                "--prior-precision",
                is_laplace || is_diffusion,
                "laplace and laplace-diffusion",
            ),
            (
                "--curvature-rows",
                is_laplace || is_diffusion,
                "laplace and laplace-diffusion",
            ),
        ] {
            if !has_it && self.given().any(|given| given == flag) {
                return refuse(format!("{flag} is of {whose}: leave it out"));
            }
        }
        let subset = self
            .subset_of_weights
            .map_or(SubsetChoice::All, |subset| subset.0);
        let is_part = !matches!(subset, SubsetChoice::All | SubsetChoice::LastLayer);
        if is_part && matches!(structure, StructureName::Kron | StructureName::LowRank) {
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
        if precision == Precision::MarginalLikelihood(Per::Parameter)
            && structure == StructureName::Kron
        {
            return refuse(
                "Kronecker factors need one prior precision for each layer: use --prior-precision marglik-layer, or another --hessian-structure".to_owned(),
            );
        }
        if precision == Precision::Validation && validation == 0 {
            return refuse(
                "--prior-precision validation needs rows that are held out: give --validation N"
                    .to_owned(),
            );
        }
        if is_diffusion && !matches!(precision, Precision::Number(_) | Precision::Prior) {
            return refuse(format!(
                "--prior-precision {precision} is of laplace: give a number, or prior"
            ));
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
            && !(0.0..1.0).contains(&part)
        {
            return refuse(format!(
                "--eigenvalue-threshold is {part}: it must be in [0, 1)"
            ));
        }
        Ok(())
    }

    /// Writes every default out, for a method on so many training rows.
    pub fn write_out(&mut self, method: MinibatchMethod, likelihood: LikelihoodName, rows: usize) {
        self.prior_precision.get_or_insert_default();
        self.curvature_rows = Some(self.curvature_rows.unwrap_or(rows).min(rows));
        let mut has_rank = method == MinibatchMethod::LaplaceDiffusion;
        if has_rank {
            self.diffusion.get_or_insert_default();
            self.diffusion_steps.get_or_insert(20);
            self.integrator.get_or_insert_default();
        } else {
            let structure = *self.hessian_structure.get_or_insert_default();
            self.subset_of_weights
                .get_or_insert(Subset(SubsetChoice::All));
            let has_classes = matches!(
                likelihood,
                LikelihoodName::Categorical | LikelihoodName::Bernoulli
            );
            if *self.pred_type.get_or_insert_default() == PredictionType::Glm && has_classes {
                self.link_approx.get_or_insert_default();
            }
            has_rank = structure == StructureName::LowRank;
        }
        if has_rank {
            self.rank.get_or_insert(100);
            self.eigenvalue_threshold.get_or_insert(1e-6);
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

    fn lanczos(&self) -> Lanczos {
        Lanczos {
            threshold: self.eigenvalue_threshold.unwrap_or(1e-6),
            ..Lanczos::of_rank(self.rank.unwrap_or(100))
        }
    }

    /// What draws are made of, for weights that were trained with `priors`.
    ///
    /// # Errors
    /// A wrong request: a prior that has no precision.
    pub fn draws(
        &self,
        method: MinibatchMethod,
        layout: &Layout,
        priors: &[Prior],
    ) -> Result<ModeDraws, Failure> {
        let given = |value: Precision| {
            match value {
            Precision::Number(value) => Ok(vec![value; layout.len()]),
            _ => prior_precisions(layout, priors).ok_or_else(|| {
                Failure::request(
                    "a normal-inverse-gamma prior has no precision of its own: give --prior-precision a number, or marglik",
                )
            }),
        }
        };
        let precision = self.prior_precision.unwrap_or_default();
        if method == MinibatchMethod::LaplaceDiffusion {
            let all = given(precision)?;
            let first = all.first().copied().unwrap_or(1.0);
            if all.iter().any(|value| *value != first) {
                return Err(Failure::request(
                    "a diffusion has one prior precision for all weights: give --prior-precision a number, or train with --parametrisation ntk or --weight-decay",
                ));
            }
            return Ok(ModeDraws::Diffusion(Diffusion {
                kind: match self.diffusion.unwrap_or_default() {
                    DiffusionName::NonKernel => DiffusionKind::NonKernel,
                    DiffusionName::Kernel => DiffusionKind::Kernel,
                    DiffusionName::Alternating => DiffusionKind::Alternating,
                    DiffusionName::Full => DiffusionKind::Full,
                },
                steps: self.diffusion_steps.unwrap_or(20),
                precision: first,
                integrator: match self.integrator.unwrap_or_default() {
                    IntegratorName::Euler => Integrator::Euler,
                    IntegratorName::Heun => Integrator::Heun,
                },
                decomposition: Decomposition::Lanczos(self.lanczos()),
            }));
        }
        Ok(ModeDraws::Laplace {
            structure: match self.hessian_structure.unwrap_or_default() {
                StructureName::Kron => HessianStructure::Kron,
                StructureName::Diag => HessianStructure::Diag,
                StructureName::Full => HessianStructure::Full(available_memory()),
                StructureName::LowRank => HessianStructure::LowRank(self.lanczos()),
            },
            subset: self
                .subset_of_weights
                .map_or(SubsetChoice::All, |subset| subset.0),
            precision: match precision {
                Precision::MarginalLikelihood(per) => {
                    PrecisionChoice::MarginalLikelihood(match per {
                        Per::All => PrecisionPer::All,
                        Per::Layer => PrecisionPer::Layer,
                        Per::Parameter => PrecisionPer::Parameter,
                    })
                }
                Precision::Validation => PrecisionChoice::Validation,
                other => PrecisionChoice::Given(given(other)?),
            },
        })
    }

    /// About the most bytes that fitting and drawing take, of a network of such layers with numbers of `real` bytes, for so many
    /// rows of the curvature and outputs; and the products with the curvature that a decomposition takes at most.
    pub fn cost(
        &self,
        method: MinibatchMethod,
        layout: &Layout,
        real: usize,
        [rows, outputs]: [usize; 2],
    ) -> (u64, u64) {
        let (size, most) = (layout.len() as u64, self.lanczos().most as u64);
        let real = real as u64;
        let subset = self
            .subset_of_weights
            .map_or(SubsetChoice::All, |subset| subset.0);
        let last = layout.layers.last().map_or(0, |layer| layer.range.len()) as u64;
        let random = match subset {
            SubsetChoice::All => size,
            SubsetChoice::LastLayer => last,
            SubsetChoice::Last(n)
            | SubsetChoice::LargestMagnitude(n)
            | SubsetChoice::LargestVariance(n) => (n as u64).min(size),
        };
        let lanczos = most.min(size) * size * real * 2 + 16 * most * most + 16 * 16 * size * real;
        if method == MinibatchMethod::LaplaceDiffusion {
            return (lanczos, most * self.diffusion_steps.unwrap_or(20));
        }
        let factors = |layers: &[reprior::stochastic::Parameters]| -> u64 {
            let numbers = layers
                .iter()
                .map(|layer| layer.rows.pow(2) + layer.units.pow(2));
            numbers.sum::<usize>() as u64 * (real * 17 + 32)
        };
        match self.hessian_structure.unwrap_or_default() {
            StructureName::LowRank => (lanczos, most),
            StructureName::Diag => (size * (16 * real + 32), 0),
            StructureName::Kron if subset == SubsetChoice::LastLayer => (
                factors(&layout.layers[layout.layers.len().saturating_sub(1)..]),
                0,
            ),
            StructureName::Kron => (factors(&layout.layers) + size * 24, 0),
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

/// How −log p curves in the outputs.
///
/// # Errors
/// A wrong request: a likelihood without one.
pub fn output_curvature(
    settings: &ModelSettings,
    scales: &[f64],
) -> Result<OutputCurvature, Failure> {
    Ok(match settings.likelihood {
        LikelihoodName::Gaussian => OutputCurvature::gaussian(scales),
        LikelihoodName::StudentT => {
            // its Fisher information
            let nu = settings.degrees_of_freedom();
            let factor = (nu + 1.0) / (nu + 3.0);
            OutputCurvature::Constant(scales.iter().map(|s| factor / (s * s)).collect())
        }
        LikelihoodName::Categorical => OutputCurvature::Categorical,
        LikelihoodName::Bernoulli => OutputCurvature::Bernoulli,
        LikelihoodName::Poisson => {
            return Err(Failure::request(
                "Laplace approximations are for gaussian, student-t, categorical and bernoulli likelihoods",
            ));
        }
    })
}
