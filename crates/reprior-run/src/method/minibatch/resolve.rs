//! Settings of a minibatch method with every default in place, made into the library's.

use reprior::chain::Schedule as Lengths;
use reprior::chain::minibatch::{Collection, MinibatchPlan};
use reprior::model::Noise;
use reprior::network::parameters::ParameterLayout;
use reprior::stochastic::preconditioner::Decay;
use reprior::stochastic::{CurvatureLabels, Dynamics, Prior, StochasticGradientSettings};

use crate::failure::Failure;
use crate::problem::Problem;
use crate::record::Load;
use crate::settings::{
    LabelsName, MinibatchMethod, Optimiser, Parametrisation, Precision, PreconditionerName,
    PriorChoice, Settings, StepSizeChoice, Switch, WrittenDecay,
};

/// More updates are a slip of the finger.
const MOST_UPDATES: u64 = 1 << 50;

/// Everything that a run's chains share, with every default in place.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub method: MinibatchMethod,
    pub batch: usize,
    pub validation: usize,
    /// Rows that are not held out.
    pub train: usize,
    pub plan: MinibatchPlan,
    pub settings: StochasticGradientSettings,
    /// Updates of each chain.
    pub updates: u64,
    /// Updates of an epoch, and epochs that will be complete.
    pub updates_per_epoch: u64,
    pub epochs: u64,
}

impl Resolved {
    /// Whether batch normalisation takes the statistics of minibatches and keeps running averages of them: in training to a mode.
    /// Samplers, and weights that are not trained, keep the network's own.
    pub fn trains_statistics(&self) -> bool {
        !self.method.is_sampler() && self.updates > 0
    }
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
        layout: &ParameterLayout,
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
        let collection = self.collection(method, &lengths, updates_per_epoch)?;
        let updates = if collection == Collection::Trajectory {
            let count = lengths.draws * lengths.thin;
            // that of the schedule `cosine` is its own length
            let fixed = schedule.of(lengths.transitions());
            let after = fixed.updates_for(lengths.warmup, count);
            lengths.warmup.saturating_add(after)
        } else {
            lengths.warmup
        };
        if updates > MOST_UPDATES {
            return Err(Failure::request(format!(
                "the run has {updates} updates, more than {MOST_UPDATES}: take fewer --epochs, --draws or shorter cycles"
            )));
        }
        let is_dropout = method == MinibatchMethod::Dropout;
        let settings = StochasticGradientSettings {
            step_size: self
                .sampler
                .step_size
                .unwrap_or_else(|| self.default_step_size(method)),
            schedule: schedule.of(updates),
            batch,
            dynamics: own.dynamics(method),
            decay: own.decay.map_or_else(Decay::default, |decay| decay.0),
            labels: match own.labels() {
                LabelsName::Data => CurvatureLabels::Data,
                LabelsName::Model => CurvatureLabels::Model,
            },
            priors: self.priors(train, layout),
            seed: self.run.seed,
            chain: 0,
            temperature: match method.is_sampler() {
                true => own.temperature.unwrap_or(1.0),
                false => 0.0,
            },
            dropout: if is_dropout { own.dropout_rate() } else { 0.0 },
        };
        Ok(Resolved {
            method,
            batch,
            validation,
            train,
            plan: MinibatchPlan {
                schedule: lengths,
                collection,
            },
            settings,
            updates,
            updates_per_epoch,
            epochs: updates / updates_per_epoch,
        })
    }

    /// What draws are made of.
    fn collection(
        &self,
        method: MinibatchMethod,
        lengths: &Lengths,
        updates_per_epoch: u64,
    ) -> Result<Collection, Failure> {
        let own = &self.minibatch;
        if self.is_trajectory(method) {
            return Ok(Collection::Trajectory);
        }
        let may_be_trained = method.is_around_mode() && own.weights.is_some();
        if (lengths.warmup == 0 && !may_be_trained) || lengths.thin != 1 {
            return Err(Failure::request(format!(
                "draws of {method} are made after its updates, which --warmup or --epochs count: leave --thin out, and give at least 1 update"
            )));
        }
        Ok(match method {
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
            _ if method.is_around_mode() => Collection::Laplace,
            _ => Collection::Dropout {
                rate: own.dropout_rate(),
            },
        })
    }

    /// Whether draws are positions, rather than made of them after the last update.
    fn is_trajectory(&self, method: MinibatchMethod) -> bool {
        match method {
            MinibatchMethod::Swag
            | MinibatchMethod::Laplace
            | MinibatchMethod::LaplaceDiffusion => false,
            MinibatchMethod::Dropout => self.minibatch.dropout_at_test == Some(Switch::Off),
            _ => true,
        }
    }

    /// Numbers of chains, updates and draws.
    fn minibatch_lengths(
        &self,
        method: MinibatchMethod,
        updates_per_epoch: u64,
        schedule: StepSizeChoice,
    ) -> Result<Lengths, Failure> {
        let (own, run) = (&self.minibatch, &self.run);
        let (chains, draws) = match method {
            MinibatchMethod::Ensemble => (5, 1),
            MinibatchMethod::Map => (1, 1),
            MinibatchMethod::Swag | MinibatchMethod::Laplace => (1, 30),
            MinibatchMethod::LaplaceDiffusion => (1, 20),
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
        if let Some(thin) = run.thin
            && (method.is_sampler() || run.warmup.is_some())
        {
            let warmup = run.warmup.unwrap_or(draws.saturating_mul(thin));
            return Ok(made(warmup, thin));
        }
        let least = 5000_u64.div_ceil(updates_per_epoch);
        // weights that a Laplace approximation is given are trained
        let trained = method.is_around_mode() && own.weights.is_some();
        let usual = if trained { 0 } else { least.max(20) };
        let epochs = own.epochs.unwrap_or(usual);
        let updates = epochs.saturating_mul(updates_per_epoch);
        let too_many = |left: u64| {
            Err(Failure::request(format!(
                "{draws} draws do not fit in the {left} updates after warm-up ({updates} in all): raise --epochs, or lower --draws or --warmup"
            )))
        };
        if !method.is_sampler() {
            let thin = run.thin.unwrap_or(1);
            let after = if self.is_trajectory(method) {
                draws.saturating_mul(thin)
            } else {
                0
            };
            if after > updates {
                return too_many(updates);
            }
            return Ok(made(run.warmup.unwrap_or(updates - after), thin));
        }
        let warmup = run.warmup.unwrap_or(updates / 2);
        let left = updates.saturating_sub(warmup);
        let steps = schedule.of(updates);
        let before = steps.sampling_updates(warmup.min(updates));
        let sampling = steps.sampling_updates(updates) - before;
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
    fn priors(&self, rows: usize, layout: &ParameterLayout) -> Vec<Prior> {
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
        let likelihood = self.model.likelihood();
        let scale = match likelihood.family(self.model.degrees_of_freedom()) {
            Some(_) if likelihood.has_scale() => match self.model.noise() {
                Noise::Known(scales) => {
                    0.3 * scales.iter().fold(1.0, |least: f64, s| least.min(s * s))
                }
                Noise::Learned(prior) => 0.3 * prior.median.powi(2),
            },
            Some(_) => 0.1,
            None => 1.0,
        };
        // weights of the standard parametrisation are smaller by about √width, steps of a gradient by its square
        let step = match own.preconditioner() {
            PreconditionerName::Identity if is_standard => 0.01 * scale,
            PreconditionerName::Identity => scale,
            PreconditionerName::RmsProp if is_standard => 0.001,
            PreconditionerName::RmsProp => 0.02,
            // parts of the posterior: C is about N times its covariance
            PreconditionerName::Kfac | PreconditionerName::Full => 0.05,
            PreconditionerName::Diagonal | PreconditionerName::QuasiDiagonal => 0.0005,
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
            let priors = &resolved.settings.priors;
            let epsilon = own.default_epsilon(priors, resolved.train);
            own.epsilon.get_or_insert(epsilon);
            if own.preconditioner() != PreconditionerName::Kfac {
                own.epsilon_at.get_or_insert_default();
            }
            own.decay.get_or_insert(WrittenDecay(Decay::default()));
            if own.preconditioner() != PreconditionerName::RmsProp {
                own.labels = Some(own.labels());
            }
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

/// The settings of a problem's run with every default in place.
///
/// # Errors
/// A wrong request.
pub fn resolve(problem: &Problem, method: MinibatchMethod) -> Result<Resolved, Failure> {
    let (settings, architecture) = (&problem.settings, &problem.architecture);
    let own = &settings.minibatch;
    if method == MinibatchMethod::Dropout {
        if architecture.as_fully_connected().is_none() {
            return Err(Failure::request(
                "dropout is for fully connected networks: use --network fcn:WIDTH, or another --method",
            ));
        }
        let preconditioner = own.preconditioner();
        if matches!(
            preconditioner,
            PreconditionerName::Full | PreconditionerName::Kfac
        ) {
            return Err(Failure::request(format!(
                "dropout has no preconditioner {preconditioner}: use another one"
            )));
        }
    }
    let layout = ParameterLayout::new(architecture);
    let resolved = settings.resolve_minibatch(method, problem.description.train_rows, &layout)?;
    let checked = match settings.sampler.precision {
        Precision::Auto | Precision::F32 => resolved
            .settings
            .check(&*own.make_preconditioner::<f32>(), &layout),
        Precision::F64 => resolved
            .settings
            .check(&*own.make_preconditioner::<f64>(), &layout),
    };
    checked.map_err(Failure::request)?;
    Ok(resolved)
}

/// Completes the settings of a problem, and reads the weights that chains begin at; `of_each_chain` are the bytes that each chain keeps
/// beyond its draws.
///
/// # Errors
/// A wrong request.
pub fn complete(
    problem: &mut Problem,
    method: MinibatchMethod,
    of_each_chain: impl FnOnce(&Problem, &ParameterLayout) -> usize,
) -> Result<Resolved, Failure> {
    if problem.settings.sampler.precision == Precision::Auto {
        problem.settings.sampler.precision = Precision::F32;
    }
    problem.read_weights()?;
    let resolved = resolve(problem, method)?;
    if method.is_sampler() && !problem.architecture.statistics().is_empty() {
        problem.choices.push(format!(
            "batch normalisation keeps its statistics, those of the network's description or of --weights: {method} would have no posterior with those of minibatches"
        ));
    }
    problem.settings.write_out(&resolved);
    let layout = ParameterLayout::new(&problem.architecture);
    let more = of_each_chain(problem, &layout) as u64;
    let statistics = match resolved.trains_statistics() {
        true => {
            problem.architecture.statistics().len() * 8 / problem.settings.sampler.precision.bytes()
        }
        false => 0,
    };
    let load = Load::of(problem, [layout.len() + statistics, layout.len()], more);
    load.resolve(&mut problem.settings);
    Ok(resolved)
}
