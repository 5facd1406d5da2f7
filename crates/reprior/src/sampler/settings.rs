//! How to sample, checked before anything runs.

use thiserror::Error;

use super::adaptation::DualAveraging;
use super::energy_variance::EnergyVariance;
use super::kernels::{
    Elliptical, Hmc, HmcInfinite, Langevin, Mala, Mams, Mclmc, Nuts, Pcn, Pcnl, Rwm,
};
use super::trajectory::{MAX_STEPS, QUARTER_TURN, TrajectoryLength};
use super::tuning::{Adaptation, Aim};
use super::{Method, SMALLEST_STEP, Sampler};
use crate::compute::{OfPrecision, Real};

/// Where chains start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// Each at a draw from the prior, N(0, I).
    #[default]
    Prior,
    /// Each at the mode, max ℓ(z) − ½‖z‖², that is found from such a draw by L-BFGS with so many gradients at most, a quarter of them
    /// where minibatches go before (a network on 5,000 rows or more); where the search ended if it has not converged by then. Takes
    /// a target with gradients, whatever the method.
    Mode(usize),
}

/// How to sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplerSettings {
    /// The algorithm.
    pub method: Method,
    /// Fixed step size; searched for and adapted during warm-up if `None`. β in (0, 1] for `pcn` and `pcnl`, an angle h in
    /// (0, π/2] for `hmc-infinite`, h in (0, 1.9] for `mala`, `langevin`, `hmc`, `mams`, `mclmc` and `nuts`, a standard deviation in (0, 10]
    /// for `rwm`, none for `elliptical`; never below 1e-6.
    pub step_size: Option<f64>,
    /// Acceptance rate that adaptation aims at, in (0, 1); the method's default if `None`.
    pub target_acceptance: Option<f64>,
    /// Mean squared energy error of a step, per dimension, that adaptation of `mclmc` aims at, in (0, 1]; its default if `None`.
    pub energy_variance: Option<f64>,
    /// Part b in (0, 1] of the momentum that is refreshed at each transition of `langevin` or `hmc-infinite`; the method's
    /// default if `None`.
    pub damping: Option<f64>,
    /// Whether proposals may be rejected; `false` only for `langevin`.
    pub metropolis: bool,
    /// Mean length of a trajectory of `hmc-infinite` (an angle), `hmc` or `mams`, from 0.01 to 10; the method's default if `None`. For `mclmc` the
    /// time in which directions are forgotten, found in warm-up if `None`.
    pub trajectory: Option<f64>,
    /// Steps of a trajectory of `hmc-infinite`, `hmc` or `mams` at most, from 1 to 10,000, those of arrival among them; [`MAX_STEPS`] if `None`. `nuts`
    /// doubles its trajectories as often as these have room for, ten times at most and if `None`.
    pub max_steps: Option<u32>,
    /// How many of the first transitions of warm-up are made by `hmc-infinite`, with an adaptation of its own, before the
    /// method itself starts where they arrived; never more than the warm-up has. [`Method::default_arrival`] if `None`.
    pub arrival: Option<u64>,
    /// Where chains start, before arrival.
    pub start: Start,
    /// Copies of each chain at higher temperatures, with which it exchanges positions; up to [`MOST_REPLICAS`]. Only of exact methods; there is no
    /// arrival then.
    pub replicas: usize,
}

/// Replicas at most: more temperatures than any ladder needs that is affordable.
pub const MOST_REPLICAS: usize = 1000;

impl Default for SamplerSettings {
    fn default() -> Self {
        Self {
            method: Method::default(),
            step_size: None,
            target_acceptance: None,
            energy_variance: None,
            damping: None,
            metropolis: true,
            trajectory: None,
            max_steps: None,
            arrival: None,
            start: Start::Prior,
            replicas: 0,
        }
    }
}

/// Settings out of range, or of another method.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SettingsError {
    /// A number that the method does not take.
    #[error("{what} {value} is out of range for `{method}`: {allowed}")]
    OutOfRange {
        /// What it was given for.
        what: &'static str,
        /// What was given.
        value: f64,
        /// For which method.
        method: Method,
        /// What may be given.
        allowed: &'static str,
    },
    /// The target acceptance.
    #[error("target acceptance {0} is out of range: it must lie between 0 and 1, both excluded")]
    TargetAcceptance(f64),
    /// A method that is nothing without its Metropolis correction.
    #[error("`{0}` cannot go without the Metropolis correction: only langevin can")]
    Metropolis(Method),
    /// More replicas than there may be.
    #[error("{0} replicas are too many: there may be up to {MOST_REPLICAS}")]
    TooManyReplicas(usize),
    /// A sampler that does not leave its target invariant.
    #[error("replicas are of exact methods: `{0}` takes every step, without Metropolis correction")]
    UncorrectedReplicas(Method),
}

impl SamplerSettings {
    /// Checks ranges.
    ///
    /// # Errors
    /// [`SettingsError`] names the value and what is allowed.
    pub fn check(&self) -> Result<(), SettingsError> {
        let method = self.method;
        let profile = method.profile();
        let check = |what, value: Option<f64>, smallest: f64, largest: f64, allowed| match value {
            Some(value) if !(value >= smallest && value <= largest) => {
                Err(SettingsError::OutOfRange {
                    what,
                    value,
                    method,
                    allowed,
                })
            }
            _ => Ok(()),
        };
        let nothing = (f64::INFINITY, f64::NEG_INFINITY);
        let (smallest, largest, allowed) = match &profile.step_size {
            Some(step) => (SMALLEST_STEP, step.largest, step.allowed),
            None => (nothing.0, nothing.1, "it has no step size, leave it out"),
        };
        check("step size", self.step_size, smallest, largest, allowed)?;
        let (smallest, largest, allowed) = match profile.damping {
            Some(_) => (
                SMALLEST_DAMPING,
                1.0,
                "it must lie in (0, 1], and not below 1e-6",
            ),
            None => (nothing.0, nothing.1, "it has none, leave it out"),
        };
        check("damping", self.damping, smallest, largest, allowed)?;
        let takes_length = profile.trajectory.is_some() || profile.finds_length;
        let (smallest, largest, allowed) = match takes_length.then_some(()) {
            Some(()) => (0.01, 10.0, "it must lie between 0.01 and 10"),
            None => (nothing.0, nothing.1, "it has none, leave it out"),
        };
        check("trajectory", self.trajectory, smallest, largest, allowed)?;
        if let Some(longest) = self.trajectory {
            let allowed = "it must not be longer than the trajectory";
            check("step size", self.step_size, 0.0, longest, allowed)?;
        }
        let has_steps = profile.trajectory.is_some() || method == Method::Nuts;
        let (smallest, largest, allowed) = match has_steps.then_some(()) {
            Some(()) => (1.0, 1e4, "it must lie between 1 and 10000"),
            None => (nothing.0, nothing.1, "it has none, leave it out"),
        };
        let max_steps = self.max_steps.map(f64::from);
        check("max steps", max_steps, smallest, largest, allowed)?;
        if !self.metropolis && !profile.may_skip_metropolis {
            return Err(SettingsError::Metropolis(method));
        }
        if self.replicas > MOST_REPLICAS {
            return Err(SettingsError::TooManyReplicas(self.replicas));
        }
        if self.replicas > 0 && !self.is_exact() {
            return Err(SettingsError::UncorrectedReplicas(method));
        }
        let aim = profile.step_size.map(|step| step.aim);
        if let Some(Aim::EnergyVariance(_)) = aim {
            let allowed = "it adapts to an energy variance, leave it out";
            check(
                "target acceptance",
                self.target_acceptance,
                nothing.0,
                nothing.1,
                allowed,
            )?;
        }
        let (smallest, largest, allowed) = match aim {
            Some(Aim::EnergyVariance(_)) => (1e-12, 1.0, "it must lie between 1e-12 and 1"),
            _ => (
                nothing.0,
                nothing.1,
                "it does not adapt to one, leave it out",
            ),
        };
        check(
            "energy variance",
            self.energy_variance,
            smallest,
            largest,
            allowed,
        )?;
        match self.target_acceptance {
            Some(value) if !(value > 0.0 && value < 1.0) => {
                Err(SettingsError::TargetAcceptance(value))
            }
            _ => Ok(()),
        }
    }

    /// The sampler, at its fixed or initial step size.
    pub fn sampler<R: Real>(&self) -> Box<dyn Sampler<R>> {
        R::of_precision(NewSampler {
            settings: self,
            one_step: None,
        })
    }

    fn new_sampler<R: Real>(&self) -> Box<dyn Sampler<R>> {
        let profile = self.method.profile();
        let initial = profile.step_size.map_or(0.0, |step| step.initial);
        let step_size = self.step_size.unwrap_or(initial);
        let damping = self.damping_in_use().unwrap_or(1.0);
        let trajectory = TrajectoryLength {
            mean: self.trajectory_in_use().unwrap_or(0.0),
            max_steps: self.max_steps_in_use(),
        };
        match self.method {
            Method::HmcInfinite => Box::new(HmcInfinite::new(step_size, trajectory, damping)),
            Method::Hmc => Box::new(Hmc::new(step_size, trajectory)),
            Method::Mams => Box::new(Mams::new(step_size, trajectory)),
            Method::Mclmc => Box::new(Mclmc::new(step_size, self.trajectory)),
            Method::Nuts => Box::new(Nuts::new(step_size, self.max_steps)),
            Method::Pcn => Box::new(Pcn::new(step_size)),
            Method::Pcnl => Box::new(Pcnl::new(step_size)),
            Method::Mala => Box::new(Mala::new(step_size)),
            Method::Langevin => Box::new(Langevin::new(step_size, damping, self.metropolis)),
            Method::Elliptical => Box::new(Elliptical::new()),
            Method::Rwm => Box::new(Rwm::new(step_size)),
        }
    }

    /// Of a step size that adapts: what it begins with, ends at and aims at.
    pub(super) fn adapted_steps(&self) -> Option<AdaptedSteps> {
        let profile = self.method.profile();
        let step = profile.step_size.filter(|_| self.step_size.is_none())?;
        let longest = self.trajectory_in_use().unwrap_or(f64::INFINITY);
        Some(AdaptedSteps {
            initial: step.initial.min(longest),
            smallest: SMALLEST_STEP,
            largest: step.largest.min(longest),
            aim: match step.aim {
                Aim::Acceptance(rate) => Aim::Acceptance(self.target_acceptance.unwrap_or(rate)),
                Aim::EnergyVariance(variance) => {
                    Aim::EnergyVariance(self.energy_variance.unwrap_or(variance))
                }
            },
        })
    }

    /// The adaptation of the step size, unless that is fixed or there is none.
    pub fn adaptation(&self) -> Option<Adaptation> {
        self.adaptation_from(self.adapted_steps()?.initial)
    }

    /// The same, from a step size that was [found](Self::search).
    pub fn adaptation_from(&self, step_size: f64) -> Option<Adaptation> {
        let AdaptedSteps { largest, aim, .. } = self.adapted_steps()?;
        Some(match aim {
            Aim::Acceptance(rate) => {
                Adaptation::Acceptance(DualAveraging::new(step_size, largest, rate))
            }
            Aim::EnergyVariance(variance) => {
                let finds_length = self.trajectory.is_none();
                let adaptation = EnergyVariance::new(step_size, largest, variance, finds_length);
                Adaptation::EnergyVariance(adaptation)
            }
        })
    }

    /// The damping given, or the method's default; `None` for methods without.
    pub fn damping_in_use(&self) -> Option<f64> {
        self.damping.or(self.method.profile().damping)
    }

    /// Whether the method leaves its target invariant: nothing is taken without the Metropolis correction.
    pub fn is_exact(&self) -> bool {
        self.metropolis && self.method.is_exact()
    }

    /// The acceptance rate that a step size adapts to; none where it is fixed, or there is none.
    pub fn target_acceptance_in_use(&self) -> Option<f64> {
        match self.adapted_steps()?.aim {
            Aim::Acceptance(rate) => Some(rate),
            Aim::EnergyVariance(_) => None,
        }
    }

    /// The energy variance given, or the method's default; `None` for methods without.
    pub fn energy_variance_in_use(&self) -> Option<f64> {
        self.energy_variance
            .or(self.method.default_energy_variance())
    }

    /// The mean length of trajectories given, or the method's default, at least one fixed step; `None` for methods without, and where warm-up
    /// finds it.
    pub fn trajectory_in_use(&self) -> Option<f64> {
        let profile = self.method.profile();
        if profile.finds_length {
            return self.trajectory;
        }
        let default = profile.trajectory?;
        Some(
            self.trajectory
                .unwrap_or(default.max(self.step_size.unwrap_or(0.0))),
        )
    }

    /// Steps of a trajectory at most: those given, or [`MAX_STEPS`].
    pub fn max_steps_in_use(&self) -> u32 {
        self.max_steps.unwrap_or(MAX_STEPS)
    }

    /// Steps of the longest trajectory of the method itself: those that are given, or a default of its own; of `nuts` a power of two less one.
    pub fn longest_trajectory(&self) -> u32 {
        match self.method {
            Method::Nuts => super::nuts::most_steps(self.max_steps),
            _ => self.max_steps_in_use(),
        }
    }

    /// The mean length of trajectories of so small a step that as many as are taken at most do not
    /// reach the length asked for; `None` where they do, or where there are no trajectories.
    pub fn shortened_trajectory(&self, step_size: f64) -> Option<f64> {
        let longest = f64::from(self.max_steps_in_use()) * step_size;
        self.trajectory_in_use()
            .filter(|length| longest < *length && self.method != Method::Mclmc)
            .map(|_| longest)
    }

    /// Whether the method keeps a momentum from one transition to the next.
    pub fn keeps_momentum(&self) -> bool {
        match self.method {
            Method::Langevin | Method::Mclmc => true,
            Method::HmcInfinite => self.damping_in_use().is_some_and(|damping| damping < 1.0),
            _ => false,
        }
    }

    /// How many transitions of a warm-up of `warmup` are made by [`arrival_settings`](Self::arrival_settings).
    pub fn arrival_transitions(&self, warmup: u64) -> u64 {
        if self.replicas > 0 {
            // they bring positions, and take those of their own method
            return 0;
        }
        let default = self.method.default_arrival(warmup);
        self.arrival.unwrap_or(default).min(warmup)
    }

    /// How the transitions of arrival are made: by long trajectories, each with a momentum of its own.
    pub fn arrival_settings(&self) -> Self {
        Self {
            method: Method::HmcInfinite,
            trajectory: Some(QUARTER_TURN),
            max_steps: self.max_steps,
            damping: Some(1.0),
            arrival: Some(0),
            ..Self::default()
        }
    }
}

/// Of a step size that adapts.
#[derive(Debug, Clone, Copy)]
pub(super) struct AdaptedSteps {
    /// Where the search for its beginning starts.
    pub initial: f64,
    pub smallest: f64,
    pub largest: f64,
    pub aim: Aim,
}

/// The smallest damping: below it, single precision would not notice any.
const SMALLEST_DAMPING: f64 = 1e-6;

/// The sampler of these settings, or the one of which each transition is one step of so much.
pub(super) struct NewSampler<'a> {
    pub settings: &'a SamplerSettings,
    pub one_step: Option<f64>,
}

impl NewSampler<'_> {
    fn sampler<R: Real>(self) -> Box<dyn Sampler<R>> {
        match self.one_step {
            Some(step_size) => self.settings.new_one_step(step_size),
            None => self.settings.new_sampler(),
        }
    }
}

impl OfPrecision for NewSampler<'_> {
    type Of<R: Real> = Box<dyn Sampler<R>>;

    fn single(self) -> Box<dyn Sampler<f32>> {
        self.sampler()
    }
    fn double(self) -> Box<dyn Sampler<f64>> {
        self.sampler()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::FRAC_PI_2;

    fn with(method: Method) -> SamplerSettings {
        SamplerSettings {
            method,
            ..SamplerSettings::default()
        }
    }

    fn with_step(method: Method, step_size: f64) -> SamplerSettings {
        SamplerSettings {
            step_size: Some(step_size),
            ..with(method)
        }
    }

    #[test]
    fn out_of_range_settings_are_refused() {
        assert!(with_step(Method::Pcn, 1.0).check().is_ok());
        for method in [Method::Pcn, Method::Pcnl] {
            for bad in [0.0, -0.1, 1e-7, 1.01, f64::NAN, f64::INFINITY] {
                let message = with_step(method, bad).check().unwrap_err().to_string();
                assert!(message.contains("(0, 1]"), "{message}");
                assert!(message.contains(&format!("`{method}`")), "{message}");
            }
        }
        for (method, bad) in [
            (Method::HmcInfinite, 1.6),
            (Method::HmcInfinite, 9e-7),
            (Method::Hmc, 2.0),
            (Method::Mala, 2.0),
            (Method::Langevin, 0.0),
            (Method::Rwm, 11.0),
            (Method::Elliptical, 0.1),
        ] {
            assert!(with_step(method, bad).check().is_err(), "{method} {bad}");
        }
        let settings = SamplerSettings {
            target_acceptance: Some(1.0),
            ..Default::default()
        };
        assert!(settings.check().is_err());
    }

    #[test]
    fn what_a_method_does_not_have_is_refused() {
        for method in Method::ALL {
            let damped = SamplerSettings {
                damping: Some(0.5),
                ..with(method)
            };
            let with_damping = matches!(method, Method::Langevin | Method::HmcInfinite);
            assert_eq!(damped.check().is_ok(), with_damping, "{method}");
            let long = SamplerSettings {
                trajectory: Some(1.0),
                ..with(method)
            };
            let with_trajectory = matches!(
                method,
                Method::Hmc | Method::HmcInfinite | Method::Mams | Method::Mclmc
            );
            assert_eq!(long.check().is_ok(), with_trajectory, "{method}");
            let of_few_steps = |max_steps| SamplerSettings {
                max_steps: Some(max_steps),
                ..with(method)
            };
            let with_steps = with_trajectory && method != Method::Mclmc || method == Method::Nuts;
            assert_eq!(of_few_steps(8).check().is_ok(), with_steps, "{method}");
            assert!(of_few_steps(0).check().is_err() && of_few_steps(10_001).check().is_err());
            let varying = SamplerSettings {
                energy_variance: Some(1e-3),
                ..with(method)
            };
            assert_eq!(varying.check().is_ok(), method == Method::Mclmc);
            let accepting = SamplerSettings {
                target_acceptance: Some(0.5),
                ..with(method)
            };
            assert_eq!(accepting.check().is_ok(), method != Method::Mclmc);
            let uncorrected = SamplerSettings {
                metropolis: false,
                ..with(method)
            };
            assert_eq!(uncorrected.check().is_ok(), method == Method::Langevin);
        }
        for bad in [0.0, -1.0, 1.01, f64::NAN] {
            let damped = SamplerSettings {
                damping: Some(bad),
                ..with(Method::Langevin)
            };
            let message = damped.check().unwrap_err().to_string();
            assert!(message.contains("damping") && message.contains("(0, 1]"));
        }
        for bad in [0.0, 11.0, f64::NAN] {
            let long = SamplerSettings {
                trajectory: Some(bad),
                ..with(Method::Hmc)
            };
            assert!(long.check().is_err());
        }
        let longer_step = SamplerSettings {
            trajectory: Some(0.3),
            ..with_step(Method::HmcInfinite, 0.4)
        };
        assert!(longer_step.check().is_err());
    }

    #[test]
    fn a_step_size_that_is_not_refused_is_used() {
        for (method, step_sizes) in [
            (Method::Pcn, [1e-6, 1.0]),
            (Method::Pcnl, [1e-6, 1.0]),
            (Method::HmcInfinite, [1e-6, FRAC_PI_2]),
            (Method::Hmc, [1e-6, 1.57]),
            (Method::Mams, [1e-6, 1.57]),
            (Method::Mclmc, [1e-6, 1.9]),
            (Method::Mala, [1e-6, 1.9]),
            (Method::Langevin, [1e-6, 1.9]),
            (Method::Rwm, [1e-6, 10.0]),
        ] {
            for step_size in step_sizes {
                let settings = with_step(method, step_size);
                assert!(settings.check().is_ok());
                let mut sampler = settings.sampler::<f32>();
                assert_eq!(sampler.step_size(), Some(step_size));
                sampler.set_step_size(step_size);
                assert_eq!(sampler.step_size(), Some(step_size));
            }
        }
    }

    #[test]
    fn adaptation_starts_at_the_step_that_the_sampler_has() {
        for method in Method::ALL {
            let trajectory = with(method).trajectory_in_use().map(|_| 0.05);
            let settings = SamplerSettings {
                trajectory,
                ..with(method)
            };
            let step = settings.sampler::<f64>().step_size();
            let adapted = settings.adaptation().map(|adaptation| adaptation.average());
            assert_eq!(step.is_some(), adapted.is_some());
            if let (Some(step), Some(adapted)) = (step, adapted) {
                assert!((step / adapted - 1.0).abs() < 1e-12, "{method} {step}");
            }
        }
    }
}
