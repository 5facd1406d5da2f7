//! What minibatch methods are told: checked, completed, and made into the library's settings.

use reprior::chain::{Collection, MinibatchPlan, Schedule as Lengths};
use reprior::compute::Real;
use reprior::model::Noise;
use reprior::model::likelihood::LikelihoodName;
use reprior::network::Architecture;
use reprior::stochastic::preconditioner::{
    Decay, Diagonal, Full, Identity, Kfac, Preconditioner, QuasiDiagonal, Regularisation, RmsProp,
};
use reprior::stochastic::{Averaging, Dynamics, Labels, LangevinSettings, Layout, Prior, StepSize};
use serde::{Deserialize, Serialize};

use super::arguments::MinibatchArguments;
use super::written::{PriorChoice, Schedule, WrittenDecay};
use crate::error::Failure;
use crate::method::MinibatchMethod;
use crate::names::{
    AveragingName, EpsilonAt, LabelsName, Optimiser, Parametrisation, Precision,
    PreconditionerName, Switch,
};
use crate::schema::Keeping;
use crate::settings::Settings;

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
}

impl MinibatchSettings {
    /// Replaces what the flags give.
    ///
    /// # Errors
    /// A wrong request: an unknown name.
    pub fn apply(&mut self, flags: &MinibatchArguments) -> Result<(), Failure> {
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
        replace(&mut self.batch, &flags.batch);
        replace(&mut self.epochs, &flags.epochs);
        replace(&mut self.validation, &flags.validation);
        replace(&mut self.schedule, &flags.schedule);
        parse(&mut self.parametrisation, &flags.parametrisation)?;
        replace(&mut self.prior, &flags.prior);
        if flags.prior.is_some() {
            self.weight_decay = None;
        }
        replace(&mut self.weight_decay, &flags.weight_decay);
        parse(&mut self.preconditioner, &flags.preconditioner)?;
        replace(&mut self.epsilon, &flags.epsilon);
        parse(&mut self.epsilon_at, &flags.epsilon_at)?;
        replace(&mut self.decay, &flags.decay);
        parse(&mut self.labels, &flags.labels)?;
        replace(&mut self.friction, &flags.friction);
        replace(&mut self.temperature, &flags.temperature);
        parse(&mut self.averaging, &flags.averaging)?;
        parse(&mut self.optimiser, &flags.optimiser)?;
        replace(&mut self.momentum, &flags.momentum);
        replace(&mut self.dropout_rate, &flags.dropout_rate);
        parse(&mut self.dropout_at_test, &flags.dropout_at_test)?;
        replace(&mut self.swag_rank, &flags.swag_rank);
        replace(&mut self.swag_updates, &flags.swag_updates);
        Ok(())
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
        ];
        all.into_iter()
            .filter(|(_, is_given)| *is_given)
            .map(|(flag, _)| flag)
    }

    /// Whether nothing is given.
    pub fn is_empty(&self) -> bool {
        self.given().next().is_none()
    }

    fn optimiser(&self, method: MinibatchMethod) -> Optimiser {
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

    fn friction(&self) -> f64 {
        self.friction.unwrap_or(0.1)
    }

    fn momentum(&self) -> f64 {
        self.momentum.unwrap_or(0.9)
    }

    fn dropout_rate(&self) -> f64 {
        self.dropout_rate.unwrap_or(0.5)
    }

    fn schedule(&self, method: MinibatchMethod) -> Schedule {
        self.schedule.unwrap_or(match method {
            MinibatchMethod::Map | MinibatchMethod::Dropout | MinibatchMethod::Ensemble => {
                Schedule::Cosine
            }
            _ => Schedule::Fixed(StepSize::Constant),
        })
    }

    fn regularisation(&self) -> Regularisation {
        let default = Regularisation::default();
        Regularisation {
            epsilon: self.epsilon.unwrap_or(default.epsilon),
            inside: self.epsilon_at.unwrap_or_default() == EpsilonAt::Average,
        }
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
            PreconditionerName::RmsProp => Box::new(RmsProp { regularisation }),
            PreconditionerName::Diagonal => Box::new(Diagonal { regularisation }),
            PreconditionerName::QuasiDiagonal => Box::new(QuasiDiagonal { regularisation }),
            PreconditionerName::Full => Box::new(Full { regularisation }),
            PreconditionerName::Kfac => Box::new(Kfac {
                regularisation,
                ..Kfac::default()
            }),
        }
    }

    /// How the position moves.
    fn dynamics(&self, method: MinibatchMethod) -> Dynamics {
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

/// Refuses what does not go together, before any work.
///
/// # Errors
/// A wrong request.
pub fn check(settings: &Settings, method: MinibatchMethod) -> Result<(), Failure> {
    let (own, sampler) = (&settings.minibatch, &settings.sampler);
    let refuse = |text: String| Err(Failure::Request(text));
    let of_chains = [
        ("--coordinates", sampler.coordinates.is_some()),
        ("--target-acceptance", sampler.target_acceptance.is_some()),
        ("--damping", sampler.damping.is_some()),
        ("--trajectory", sampler.trajectory.is_some()),
        ("--arrival", sampler.arrival.is_some()),
        ("--no-metropolis", sampler.metropolis == Some(false)),
        ("--determinant", sampler.determinant.is_some()),
    ];
    if let Some((flag, _)) = of_chains.iter().find(|(_, is_given)| *is_given) {
        return refuse(format!(
            "{flag} is of methods that use all data at once, not of {method}: leave it out"
        ));
    }
    if settings.model.learns_noise() {
        return refuse(format!(
            "--method {method} needs a known noise: give a number with --noise"
        ));
    }
    let is_descent = !method.is_sampler();
    let has_momentum = is_descent && own.optimiser(method) == Optimiser::Sgd;
    let has_friction = matches!(method, MinibatchMethod::Sghmc | MinibatchMethod::Sgnht);
    let has_preconditioner = own.preconditioner() != PreconditionerName::Identity;
    for (flag, is_given, has_it, whose) in [
        (
            "--optimiser",
            own.optimiser.is_some(),
            is_descent,
            "map, dropout, swag and ensemble",
        ),
        (
            "--momentum",
            own.momentum.is_some(),
            has_momentum,
            "--optimiser sgd",
        ),
        (
            "--friction",
            own.friction.is_some(),
            has_friction,
            "sghmc and sgnht",
        ),
        (
            "--temperature",
            own.temperature.is_some(),
            !is_descent,
            "sgld, sghmc and sgnht",
        ),
        (
            "--dropout-rate",
            own.dropout_rate.is_some(),
            method == MinibatchMethod::Dropout,
            "dropout",
        ),
        (
            "--dropout-at-test",
            own.dropout_at_test.is_some(),
            method == MinibatchMethod::Dropout,
            "dropout",
        ),
        (
            "--swag-rank",
            own.swag_rank.is_some(),
            method == MinibatchMethod::Swag,
            "swag",
        ),
        (
            "--swag-updates",
            own.swag_updates.is_some(),
            method == MinibatchMethod::Swag,
            "swag",
        ),
        (
            "--epsilon",
            own.epsilon.is_some(),
            has_preconditioner,
            "preconditioners other than identity",
        ),
        (
            "--epsilon-at",
            own.epsilon_at.is_some(),
            has_preconditioner,
            "preconditioners other than identity",
        ),
        (
            "--decay",
            own.decay.is_some(),
            has_preconditioner,
            "preconditioners other than identity",
        ),
        (
            "--labels",
            own.labels.is_some(),
            has_preconditioner,
            "preconditioners other than identity",
        ),
    ] {
        if is_given && !has_it {
            return refuse(format!("{flag} is of {whose}: leave it out"));
        }
    }
    if own.prior.is_some() && own.weight_decay.is_some() {
        return refuse(
            "--prior and --weight-decay are two names of one thing: give one".to_owned(),
        );
    }
    if own.preconditioner() == PreconditionerName::Kfac
        && own.epsilon_at == Some(EpsilonAt::Average)
    {
        return refuse(
            "the epsilon of kfac is added at inversion: leave --epsilon-at out".to_owned(),
        );
    }
    if own.epochs.is_some() && settings.run.thin.is_some() {
        return refuse(
            "--epochs and --thin both say how long the run is: give one (--draws N --thin K takes N·K updates after warm-up)"
                .to_owned(),
        );
    }
    for (flag, value) in [
        ("--batch", own.batch.map(|value| value as u64)),
        ("--epochs", own.epochs),
        ("--chains", settings.run.chains.map(|value| value as u64)),
        ("--draws", settings.run.draws),
        ("--thin", settings.run.thin),
        ("--keep", settings.record.keep),
        ("--swag-updates", own.swag_updates),
    ] {
        if value == Some(0) {
            return refuse(format!("{flag} is 0: it must be at least 1"));
        }
    }
    let positive = |value: f64| value.is_finite() && value > 0.0;
    let part = |value: f64| (0.0..1.0).contains(&value);
    for (flag, value, is_allowed, range) in [
        (
            "--weight-decay",
            own.weight_decay,
            own.weight_decay.is_none_or(positive),
            "positive and finite",
        ),
        (
            "--step-size",
            sampler.step_size,
            sampler.step_size.is_none_or(positive),
            "positive and finite",
        ),
        (
            "--epsilon",
            own.epsilon,
            own.epsilon.is_none_or(positive),
            "positive and finite",
        ),
        (
            "--momentum",
            own.momentum,
            own.momentum.is_none_or(part),
            "in [0, 1)",
        ),
        (
            "--dropout-rate",
            own.dropout_rate,
            own.dropout_rate.is_none_or(part),
            "in [0, 1)",
        ),
    ] {
        if let (Some(value), false) = (value, is_allowed) {
            return refuse(format!("{flag} is {value}: it must be {range}"));
        }
    }
    Ok(())
}

/// Everything that a run's chains share, with every default in place.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub method: MinibatchMethod,
    pub batch: usize,
    pub validation: usize,
    pub plan: MinibatchPlan,
    pub settings: LangevinSettings,
    /// Updates of an epoch, and epochs that will be complete.
    pub updates_per_epoch: u64,
    pub epochs: u64,
}

impl Settings {
    /// The lengths, with every default in place, of a method on so many rows.
    ///
    /// # Errors
    /// A wrong request: lengths that cannot be.
    pub fn resolve_minibatch(
        &self,
        method: MinibatchMethod,
        rows: usize,
        layout: &Layout,
    ) -> Result<Resolved, Failure> {
        let own = &self.minibatch;
        let validation = own.validation.unwrap_or(0);
        let train = rows.saturating_sub(validation);
        if train < 2 {
            return Err(Failure::request(format!(
                "--validation {validation} leaves {train} of {rows} training rows: hold fewer out"
            )));
        }
        let batch = own.batch.unwrap_or(100).min(train);
        let updates_per_epoch = train.div_ceil(batch) as u64;
        let schedule = own.schedule(method);
        let lengths = self.minibatch_lengths(method, updates_per_epoch, schedule)?;
        lengths.check().map_err(Failure::request)?;
        let is_trajectory = match method {
            MinibatchMethod::Swag => false,
            MinibatchMethod::Dropout => own.dropout_at_test == Some(Switch::Off),
            _ => true,
        };
        let collection = match method {
            _ if is_trajectory => Collection::Trajectory,
            MinibatchMethod::Swag => {
                let last = own.swag_updates.unwrap_or(lengths.warmup.div_ceil(4));
                let every = updates_per_epoch.min((last / 2).max(1));
                if last > lengths.warmup || last < 2 {
                    return Err(Failure::request(format!(
                        "--swag-updates {last} must be at least 2, and at most the {} updates of the warm-up",
                        lengths.warmup
                    )));
                }
                Collection::Swag {
                    rank: own.swag_rank.unwrap_or(20),
                    from: lengths.warmup - last,
                    every,
                }
            }
            _ => Collection::Dropout {
                rate: own.dropout_rate(),
            },
        };
        let updates = if is_trajectory {
            let count = lengths.draws * lengths.thin;
            // that of the schedule `cosine` is its own length
            let fixed = schedule.of(lengths.transitions());
            lengths.warmup + fixed.updates_for(lengths.warmup, count)
        } else {
            lengths.warmup
        };
        let settings = LangevinSettings {
            step_size: self
                .sampler
                .step_size
                .unwrap_or_else(|| self.default_step_size(method)),
            schedule: schedule.of(updates),
            batch,
            dynamics: own.dynamics(method),
            decay: own.decay.map_or_else(Decay::default, |decay| decay.0),
            labels: match own.labels.unwrap_or_default() {
                LabelsName::Data => Labels::Data,
                LabelsName::Model => Labels::Model,
            },
            priors: self.priors(train, layout),
            seed: self.run.seed,
            chain: 0,
            temperature: if method.is_sampler() {
                own.temperature.unwrap_or(1.0)
            } else {
                0.0
            },
            dropout: match method {
                MinibatchMethod::Dropout => own.dropout_rate(),
                _ => 0.0,
            },
        };
        Ok(Resolved {
            method,
            batch,
            validation,
            plan: MinibatchPlan {
                schedule: lengths,
                collection,
            },
            settings,
            updates_per_epoch,
            epochs: updates / updates_per_epoch,
        })
    }

    /// Numbers of chains, updates and draws.
    fn minibatch_lengths(
        &self,
        method: MinibatchMethod,
        updates_per_epoch: u64,
        schedule: Schedule,
    ) -> Result<Lengths, Failure> {
        let (own, run) = (&self.minibatch, &self.run);
        let (chains, draws) = match method {
            MinibatchMethod::Ensemble => (5, 1),
            MinibatchMethod::Map => (1, 1),
            MinibatchMethod::Swag => (1, 30),
            MinibatchMethod::Dropout if own.dropout_at_test == Some(Switch::Off) => (1, 1),
            MinibatchMethod::Dropout => (1, 100),
            _ => (4, 100),
        };
        let (chains, draws) = (run.chains.unwrap_or(chains), run.draws.unwrap_or(draws));
        let made = |warmup, thin| Lengths {
            chains,
            warmup,
            draws,
            thin,
            seed: run.seed,
        };
        if let Some(thin) = run.thin {
            let warmup = run.warmup.unwrap_or(draws.saturating_mul(thin));
            return Ok(made(warmup, thin));
        }
        let least = 5000_u64.div_ceil(updates_per_epoch);
        let epochs = own.epochs.unwrap_or(least.max(20));
        let updates = epochs.saturating_mul(updates_per_epoch);
        let too_many = |left: u64| {
            Err(Failure::request(format!(
                "{draws} draws do not fit in the {left} updates after warm-up ({updates} in all): raise --epochs, or lower --draws or --warmup"
            )))
        };
        if !method.is_sampler() {
            let after = match method {
                MinibatchMethod::Swag => 0,
                MinibatchMethod::Dropout if own.dropout_at_test != Some(Switch::Off) => 0,
                _ => draws,
            };
            if after > updates {
                return too_many(updates);
            }
            return Ok(made(run.warmup.unwrap_or(updates - after), 1));
        }
        let warmup = run.warmup.unwrap_or(updates / 2);
        let left = updates.saturating_sub(warmup);
        let steps = schedule.of(updates);
        let sampling = match steps {
            StepSize::Cyclical { exploration, .. } if exploration > 0.0 => {
                (warmup..updates).filter(|&t| steps.is_sampling(t)).count() as u64
            }
            _ => left,
        };
        let thin = sampling / draws.max(1);
        if thin == 0 {
            return too_many(sampling);
        }
        // what is left over is warm-up, unless a cycle would be shifted
        let spare = if sampling == left {
            left - draws * thin
        } else {
            0
        };
        Ok(made(warmup + spare, thin))
    }

    /// The prior of each layer of `layout`, that of the network in the NTK parametrisation, with so many training rows.
    fn priors(&self, rows: usize, layout: &Layout) -> Vec<Prior> {
        let own = &self.minibatch;
        if let Some(decay) = own.weight_decay {
            let variance = 1.0 / (decay * rows as f64);
            return vec![Prior::Gaussian {
                weights: variance,
                biases: variance,
            }];
        }
        match (own.prior, own.parametrisation()) {
            (Some(PriorChoice::Same(prior)), _) => vec![prior],
            (_, Parametrisation::Ntk) => vec![Prior::default()],
            (_, Parametrisation::Standard) => {
                let of_layer = |[weight, bias]: [f64; 2]| Prior::Gaussian {
                    weights: weight.powi(2),
                    // of a layer without biases none is used
                    biases: if bias > 0.0 { bias.powi(2) } else { 1.0 },
                };
                let layers = layout.layers.iter();
                layers.map(|layer| of_layer(layer.factors)).collect()
            }
        }
    }

    /// A step size that suits most problems, by what it is a step of.
    fn default_step_size(&self, method: MinibatchMethod) -> f64 {
        let own = &self.minibatch;
        let is_standard = own.parametrisation() == Parametrisation::Standard;
        let dynamics = own.dynamics(method);
        if let Dynamics::Adam { .. } = dynamics {
            return if is_standard { 0.001 } else { 0.005 };
        }
        // over the curvature of −log p in the outputs: a quarter for classes, 1/σ²
        let scale = match self.model.likelihood {
            LikelihoodName::Gaussian | LikelihoodName::StudentT => match self.model.noise() {
                Noise::Known(scales) => {
                    0.3 * scales.iter().fold(1.0, |least: f64, s| least.min(s * s))
                }
                Noise::Learned(prior) => 0.3 * prior.median.powi(2),
            },
            LikelihoodName::Poisson => 0.1,
            LikelihoodName::Categorical | LikelihoodName::Bernoulli => 1.0,
        };
        // weights of the standard parametrisation are smaller by about √width, steps of a gradient by its square
        let step = match own.preconditioner() {
            PreconditionerName::Identity if is_standard => 0.01 * scale,
            PreconditionerName::Identity => scale,
            PreconditionerName::RmsProp if is_standard => 0.001,
            PreconditionerName::RmsProp => 0.02,
            PreconditionerName::Kfac => 0.005,
            PreconditionerName::Diagonal
            | PreconditionerName::QuasiDiagonal
            | PreconditionerName::Full => 0.0005,
        };
        match dynamics {
            Dynamics::Hamiltonian { friction } | Dynamics::NoseHoover { friction } => {
                friction * step
            }
            _ => step,
        }
    }

    /// Writes every default out.
    pub fn write_out(&mut self, resolved: &Resolved) {
        let lengths = resolved.plan.schedule;
        self.run.chains = Some(lengths.chains);
        self.run.warmup = Some(lengths.warmup);
        self.run.draws = Some(lengths.draws);
        self.run.thin = Some(lengths.thin);
        self.sampler.step_size = Some(resolved.settings.step_size);
        let method = resolved.method;
        let own = &mut self.minibatch;
        own.epochs = None;
        own.batch = Some(resolved.batch);
        own.validation = Some(resolved.validation);
        own.schedule = Some(own.schedule(method));
        own.parametrisation = Some(own.parametrisation());
        if own.weight_decay.is_none() {
            own.prior.get_or_insert(PriorChoice::Network);
        }
        own.preconditioner = Some(own.preconditioner());
        own.averaging.get_or_insert_default();
        if own.preconditioner() != PreconditionerName::Identity {
            let regularisation = own.regularisation();
            own.epsilon = Some(regularisation.epsilon);
            if own.preconditioner() != PreconditionerName::Kfac {
                own.epsilon_at.get_or_insert_default();
            }
            own.decay.get_or_insert(WrittenDecay(Decay::default()));
            own.labels.get_or_insert_default();
        }
        match method {
            MinibatchMethod::Sgld => {}
            MinibatchMethod::Sghmc | MinibatchMethod::Sgnht => own.friction = Some(own.friction()),
            _ => {
                own.optimiser = Some(own.optimiser(method));
                if own.optimiser == Some(Optimiser::Sgd) {
                    own.momentum = Some(own.momentum());
                }
            }
        }
        if method.is_sampler() {
            own.temperature.get_or_insert(1.0);
        }
        if method == MinibatchMethod::Dropout {
            own.dropout_rate = Some(own.dropout_rate());
            own.dropout_at_test.get_or_insert_default();
        }
        if let Collection::Swag { rank, from, .. } = resolved.plan.collection {
            own.swag_rank = Some(rank);
            own.swag_updates = Some(lengths.warmup - from);
        }
    }
}

/// Completes the settings of a minibatch method on so many training rows; none of other methods.
///
/// # Errors
/// A wrong request.
pub fn resolve(
    settings: &mut Settings,
    architecture: &Architecture,
    rows: usize,
) -> Result<Option<Resolved>, Failure> {
    let Some(method) = settings.sampler.method.minibatch() else {
        return Ok(None);
    };
    if method == MinibatchMethod::Dropout {
        if architecture.composition.is_some() {
            return Err(Failure::request(
                "dropout is for fully connected networks: use --network fcn:WIDTH, or another --method",
            ));
        }
        let preconditioner = settings.minibatch.preconditioner();
        if matches!(
            preconditioner,
            PreconditionerName::Full | PreconditionerName::Kfac
        ) {
            return Err(Failure::request(format!(
                "dropout has no preconditioner {preconditioner}: use another one"
            )));
        }
    }
    let layout = Layout::new(&architecture.to_composition());
    let resolved = settings.resolve_minibatch(method, rows, &layout)?;
    let own = &settings.minibatch;
    let (checked, bytes) = match settings.sampler.precision {
        Precision::F32 => (
            resolved
                .settings
                .check(&*own.make_preconditioner::<f32>(), &layout),
            4,
        ),
        Precision::F64 => (
            resolved
                .settings
                .check(&*own.make_preconditioner::<f64>(), &layout),
            8,
        ),
    };
    checked.map_err(Failure::request)?;
    settings.write_out(&resolved);
    let keeping = Keeping::new(settings, layout.len(), bytes);
    settings.record.keep = Some(keeping.positions(resolved.plan.schedule.draws));
    Ok(Some(resolved))
}
