//! What minibatch methods are told, and what the library's parts of it are.

use std::path::PathBuf;

use reprior::compute::Real;
use reprior::stochastic::preconditioner::{
    Elementwise, Full, Identity, Kfac, Preconditioner, QuasiDiagonal, Regularisation,
};
use reprior::stochastic::{Averaging, Dynamics, Prior, StepSize};
use serde::{Deserialize, Serialize};

use super::arguments::MinibatchArguments;
use super::written::{PriorChoice, Schedule, WrittenDecay};
use crate::error::Failure;
use crate::method::MinibatchMethod;
use crate::names::{
    AveragingName, EpsilonAt, LabelsName, Optimiser, Parametrisation, PreconditionerName, Switch,
};

/// As `[minibatch]` in `config.toml`; what is absent has its default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct MinibatchSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// Of a run whose lengths are not given in updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parametrisation: Option<Parametrisation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior: Option<PriorChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_decay: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preconditioner: Option<PreconditionerName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon_at: Option<EpsilonAt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay: Option<WrittenDecay>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<LabelsName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub friction: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub averaging: Option<AveragingName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimiser: Option<Optimiser>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momentum: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropout_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropout_at_test: Option<Switch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swag_rank: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swag_updates: Option<u64>,
    /// In a file relative to its own folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<PathBuf>,
}

impl MinibatchSettings {
    /// Replaces what the flags give, and forgets what a file says that hangs on it. Returns whether a step size in a file is of
    /// something else now.
    ///
    /// # Errors
    /// A wrong request: an unknown name.
    pub fn apply(&mut self, flags: &MinibatchArguments) -> Result<bool, Failure> {
        fn replace<T: Clone>(field: &mut Option<T>, flag: &Option<T>) {
            if flag.is_some() {
                field.clone_from(flag);
            }
        }
        fn parse<T: std::str::FromStr<Err = Failure>>(
            field: &mut Option<T>,
            flag: &Option<String>,
        ) -> Result<(), Failure> {
            if let Some(text) = flag {
                *field = Some(text.parse()?);
            }
            Ok(())
        }
        let before = self.clone();
        replace(&mut self.batch, &flags.batch);
        replace(&mut self.epochs, &flags.epochs);
        replace(&mut self.validation, &flags.validation);
        replace(&mut self.schedule, &flags.schedule);
        parse(&mut self.parametrisation, &flags.parametrisation)?;
        replace(&mut self.prior, &flags.prior);
        if flags.prior.is_some() {
            self.weight_decay = None;
        }
        if flags.weight_decay.is_some() && flags.prior.is_none() {
            self.prior = None;
        }
        replace(&mut self.weight_decay, &flags.weight_decay);
        parse(&mut self.preconditioner, &flags.preconditioner)?;
        let has_other_preconditioner = self.preconditioner() != before.preconditioner();
        if has_other_preconditioner {
            (self.epsilon, self.epsilon_at) = (None, None);
            (self.decay, self.labels) = (None, None);
        }
        replace(&mut self.epsilon, &flags.epsilon);
        parse(&mut self.epsilon_at, &flags.epsilon_at)?;
        replace(&mut self.decay, &flags.decay);
        parse(&mut self.labels, &flags.labels)?;
        replace(&mut self.friction, &flags.friction);
        replace(&mut self.temperature, &flags.temperature);
        parse(&mut self.averaging, &flags.averaging)?;
        parse(&mut self.optimiser, &flags.optimiser)?;
        let has_other_optimiser = self.optimiser != before.optimiser;
        if has_other_optimiser {
            self.momentum = None;
        }
        replace(&mut self.momentum, &flags.momentum);
        replace(&mut self.dropout_rate, &flags.dropout_rate);
        parse(&mut self.dropout_at_test, &flags.dropout_at_test)?;
        replace(&mut self.swag_rank, &flags.swag_rank);
        if flags.epochs.is_some() {
            self.swag_updates = None;
        }
        replace(&mut self.swag_updates, &flags.swag_updates);
        replace(&mut self.weights, &flags.weights);
        Ok(has_other_preconditioner
            || has_other_optimiser
            || self.parametrisation() != before.parametrisation())
    }

    /// The flags of what is given.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("--batch", self.batch.is_some()),
            ("--epochs", self.epochs.is_some()),
            ("--validation", self.validation.is_some()),
            ("--schedule", self.schedule.is_some()),
            ("--parametrisation", self.parametrisation.is_some()),
            ("--prior", self.prior.is_some()),
            ("--weight-decay", self.weight_decay.is_some()),
            ("--preconditioner", self.preconditioner.is_some()),
            ("--epsilon", self.epsilon.is_some()),
            ("--epsilon-at", self.epsilon_at.is_some()),
            ("--decay", self.decay.is_some()),
            ("--labels", self.labels.is_some()),
            ("--friction", self.friction.is_some()),
            ("--temperature", self.temperature.is_some()),
            ("--averaging", self.averaging.is_some()),
            ("--optimiser", self.optimiser.is_some()),
            ("--momentum", self.momentum.is_some()),
            ("--dropout-rate", self.dropout_rate.is_some()),
            ("--dropout-at-test", self.dropout_at_test.is_some()),
            ("--swag-rank", self.swag_rank.is_some()),
            ("--swag-updates", self.swag_updates.is_some()),
            ("--weights", self.weights.is_some()),
        ];
        all.into_iter()
            .filter(|(_, is_given)| *is_given)
            .map(|(flag, _)| flag)
    }

    /// Whether nothing is given.
    pub fn is_empty(&self) -> bool {
        self.given().next().is_none()
    }

    pub(super) fn optimiser(&self, method: MinibatchMethod) -> Optimiser {
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

    pub(super) fn friction(&self) -> f64 {
        self.friction.unwrap_or(0.1)
    }

    pub(super) fn momentum(&self) -> f64 {
        self.momentum.unwrap_or(0.9)
    }

    pub(super) fn dropout_rate(&self) -> f64 {
        self.dropout_rate.unwrap_or(0.5)
    }

    pub(super) fn schedule(&self, method: MinibatchMethod) -> Schedule {
        self.schedule.unwrap_or(match method {
            _ if method.is_sampler() || method == MinibatchMethod::Swag => {
                Schedule::Fixed(StepSize::Constant)
            }
            _ => Schedule::Cosine,
        })
    }

    pub(super) fn regularisation(&self) -> Regularisation {
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
    pub(super) fn labels(&self) -> LabelsName {
        self.labels.unwrap_or(match self.has_matrices() {
            true => LabelsName::Model,
            false => LabelsName::Data,
        })
    }

    /// ε unless it is given, with the priors of so many rows: of matrices the prior's part of the curvature of the mean loss.
    pub(super) fn default_epsilon(&self, priors: &[Prior], rows: usize) -> f64 {
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
    pub(super) fn dynamics(&self, method: MinibatchMethod) -> Dynamics {
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
