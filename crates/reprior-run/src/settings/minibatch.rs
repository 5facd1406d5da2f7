//! What minibatch methods are told, and what the library's parts of it are.

use std::path::PathBuf;

use clap::Args;
use reprior::compute::Real;
use reprior::stochastic::average::Averaging;
use reprior::stochastic::preconditioner::elementwise::Elementwise;
use reprior::stochastic::preconditioner::full::Full;
use reprior::stochastic::preconditioner::identity::Identity;
use reprior::stochastic::preconditioner::kfac::Kfac;
use reprior::stochastic::preconditioner::quasi_diagonal::QuasiDiagonal;
use reprior::stochastic::preconditioner::{Preconditioner, Regularisation};
use reprior::stochastic::{Dynamics, Prior, StepSize};
use serde::{Deserialize, Serialize};

use super::expressions::{PriorChoice, StepSizeChoice, WrittenDecay};
use super::method::MinibatchMethod;
use super::names::{
    AveragingName, EpsilonAt, LabelsName, Optimiser, Parametrisation, PreconditionerName, Switch,
};

/// `[minibatch]`: what minibatch methods take besides the step size and the lengths of a run; what is absent has its default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, Args)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
#[command(
    next_help_heading = "Minibatch methods (sgld, sghmc, sgnht, map, dropout, swag, ensemble; training of laplace)"
)]
pub struct MinibatchSettings {
    /// Rows of a minibatch [default: 100]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// Passes over the data, warm-up included [default: 20, and at least 5,000 updates; 0, no training, for laplace and laplace-diffusion with
    /// --weights]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<u64>,
    /// Training rows, the last ones, that are held out; the progress shows their NLL [default: 0]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<usize>,
    /// Step sizes: constant (a sampler with a bias), polynomial(EXPONENT,UPDATES) (a sampler; 1/3 is best),
    /// cyclical(UPDATES,EXPLORING-PART) (a sampler of several modes), halving(UPDATES) or cosine (both end at one point: an
    /// ensemble or a mode, no sampler) [default: constant for samplers and swag, cosine for the others]
    #[arg(long, value_name = "HOW")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<StepSizeChoice>,
    /// ntk (weights N(0, 1) a priori, scales in the network) or standard (scales in the prior) [default: ntk]
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parametrisation: Option<Parametrisation>,
    /// network (as --weight-variance and its like say), gaussian(VARIANCE-OF-WEIGHTS,VARIANCE-OF-BIASES) for every layer, or
    /// normal-inverse-gamma(SHAPE,RATE,MEAN) [default: network]
    #[arg(long, value_name = "PRIOR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior: Option<PriorChoice>,
    /// In place of --prior: a Gaussian one of precision λ times the number of training rows
    #[arg(long, value_name = "LAMBDA")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_decay: Option<f64>,
    /// What shapes drift and noise: identity, rmsprop, diagonal, quasi-diagonal, full (small networks) or kfac [default:
    /// identity]
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preconditioner: Option<PreconditionerName>,
    /// ε of the preconditioner [default: 0.0001; for full and kfac the prior's precision over the training rows]
    #[arg(long, value_name = "EPS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// Where ε is added: average (to each minibatch's statistics) or inversion (to their averages, when they are inverted)
    /// [default: average; inversion for kfac]
    #[arg(long, value_name = "WHERE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon_at: Option<EpsilonAt>,
    /// Weight of new statistics in a preconditioner's averages: harmonic(FIRST) for 1/√(FIRST⁻² + t), or constant(RATE) [default:
    /// harmonic(1)]
    #[arg(long, value_name = "HOW")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay: Option<WrittenDecay>,
    /// Labels that a preconditioner's statistics are of: data, or model (drawn from it) [default: data; model for full and kfac]
    #[arg(long, value_name = "WHOSE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<LabelsName>,
    /// Part of the momentum that an update of sghmc and sgnht loses, in (0, 1] [default: 0.1]
    #[arg(long, value_name = "A")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub friction: Option<f64>,
    /// Of the noise of samplers; 1 is the posterior [default: 1]
    #[arg(long, value_name = "T")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The running mean of draws that is recorded: uniform, or forgetting (weights 1/√t, as Marceau-Caron & Ollivier) [default:
    /// uniform]
    #[arg(long, value_name = "HOW")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub averaging: Option<AveragingName>,
    /// What descends in map, dropout, swag, ensemble and laplace: adam, or sgd [default: sgd for swag, adam for the others]
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimiser: Option<Optimiser>,
    /// Of sgd, in [0, 1) [default: 0.9]
    #[arg(long, value_name = "M")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momentum: Option<f64>,
    /// Probability that dropout leaves a hidden unit out [default: 0.5]
    #[arg(long, value_name = "P")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropout_rate: Option<f64>,
    /// Whether draws of dropout leave units out as well (Monte-Carlo dropout): on, or off for one draw of the whole network
    /// [default: on]
    #[arg(long, value_name = "WHEN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropout_at_test: Option<Switch>,
    /// Differences that swag's covariance is made of [default: 20]
    #[arg(long, value_name = "K")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swag_rank: Option<usize>,
    /// Updates, the last ones of the warm-up, from which swag takes a position every epoch [default: a quarter of the warm-up]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swag_updates: Option<u64>,
    /// Begin every chain at these weights, the state_dict of an nn.Sequential or a residual network as a safetensors file, rather than at draws from
    /// the prior; statistics of batch normalisation come with them. The run keeps a copy
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<PathBuf>,
}

impl MinibatchSettings {
    /// Whether nothing is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn optimiser(&self, method: MinibatchMethod) -> Optimiser {
        self.optimiser.unwrap_or(match method {
            MinibatchMethod::Swag => Optimiser::Sgd,
            _ => Optimiser::Adam,
        })
    }

    /// The preconditioner, identity unless given.
    pub fn preconditioner(&self) -> PreconditionerName {
        self.preconditioner.unwrap_or_default()
    }

    /// The parametrisation, NTK unless given.
    pub fn parametrisation(&self) -> Parametrisation {
        self.parametrisation.unwrap_or_default()
    }

    pub(crate) fn friction(&self) -> f64 {
        self.friction.unwrap_or(0.1)
    }

    pub(crate) fn momentum(&self) -> f64 {
        self.momentum.unwrap_or(0.9)
    }

    pub(crate) fn dropout_rate(&self) -> f64 {
        self.dropout_rate.unwrap_or(0.5)
    }

    pub(crate) fn schedule(&self, method: MinibatchMethod) -> StepSizeChoice {
        self.schedule.unwrap_or(match method {
            _ if method.is_sampler() || method == MinibatchMethod::Swag => {
                StepSizeChoice::Fixed(StepSize::Constant)
            }
            _ => StepSizeChoice::Cosine,
        })
    }

    pub(crate) fn regularisation(&self) -> Regularisation {
        let default = Regularisation::default();
        Regularisation {
            epsilon: self.epsilon.unwrap_or(default.epsilon),
            inside: self.epsilon_at.unwrap_or_default() == EpsilonAt::Average,
        }
    }

    /// Whether C is to be the inverse of the whole curvature, or nearly: of the model's own labels, with the prior's part for ε.
    fn has_matrices(&self) -> bool {
        matches!(
            self.preconditioner(),
            PreconditionerName::Full | PreconditionerName::Kfac
        )
    }

    /// Whose labels statistics are of. Those of the data make a Fisher matrix that is too large by the misfit, and too small
    /// where the network fits too well: updates are then too short, or too long.
    pub(crate) fn labels(&self) -> LabelsName {
        self.labels.unwrap_or(match self.has_matrices() {
            true => LabelsName::Model,
            false => LabelsName::Data,
        })
    }

    /// ε unless it is given, with the priors of so many rows: of matrices the prior's part of the curvature of the mean loss.
    pub(crate) fn default_epsilon(&self, priors: &[Prior], rows: usize) -> f64 {
        if !self.has_matrices() {
            return Regularisation::default().epsilon;
        }
        let least = |prior: &Prior| match *prior {
            Prior::Gaussian { weights, biases } => (1.0 / weights).min(1.0 / biases),
            Prior::NormalInverseGamma { .. } => 1.0,
        };
        let precision = priors.iter().map(least).fold(f64::INFINITY, f64::min);
        precision / rows as f64
    }

    /// The running mean of draws.
    pub fn averaging(&self) -> Averaging {
        match self.averaging.unwrap_or_default() {
            AveragingName::Uniform => Averaging::Uniform,
            AveragingName::Forgetting => Averaging::Forgetting,
        }
    }

    /// The library's preconditioner.
    pub fn make_preconditioner<R: Real>(&self) -> Box<dyn Preconditioner<R>> {
        let regularisation = self.regularisation();
        match self.preconditioner() {
            PreconditionerName::Identity => Box::new(Identity),
            PreconditionerName::RmsProp => Box::new(Elementwise::rms_prop(regularisation)),
            PreconditionerName::Diagonal => Box::new(Elementwise::diagonal(regularisation)),
            PreconditionerName::QuasiDiagonal => Box::new(QuasiDiagonal { regularisation }),
            PreconditionerName::Full => Box::new(Full {
                regularisation,
                shrinkage: true,
            }),
            PreconditionerName::Kfac => Box::new(Kfac {
                regularisation,
                shrinkage: true,
                ..Kfac::default()
            }),
        }
    }

    /// How the position moves.
    pub(crate) fn dynamics(&self, method: MinibatchMethod) -> Dynamics {
        match method {
            MinibatchMethod::Sgld => Dynamics::Langevin,
            MinibatchMethod::Sghmc => Dynamics::Hamiltonian {
                friction: self.friction(),
            },
            MinibatchMethod::Sgnht => Dynamics::NoseHoover {
                friction: self.friction(),
            },
            _ => match (self.optimiser(method), self.momentum()) {
                (Optimiser::Adam, _) => Dynamics::ADAM,
                (Optimiser::Sgd, 0.0) => Dynamics::Langevin,
                (Optimiser::Sgd, momentum) => Dynamics::Hamiltonian {
                    friction: 1.0 - momentum,
                },
            },
        }
    }
}
