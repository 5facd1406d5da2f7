//! Samplers' names, and what each can be told.

use std::f64::consts::FRAC_PI_2;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::trajectory::QUARTER_TURN;
use super::tuning::Aim;
use super::{hmc, hmc_infinite, isokinetic, langevin, mala, mclmc, nuts, rwm};

/// A sampler's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Hamiltonian Monte Carlo that rotates instead of drifting; needs gradients.
    #[default]
    HmcInfinite,
    /// Hamiltonian Monte Carlo with the leapfrog; needs gradients.
    Hmc,
    /// The No-U-Turn sampler; needs gradients.
    Nuts,
    /// Preconditioned Crank-Nicolson.
    Pcn,
    /// Preconditioned Crank-Nicolson Langevin; needs gradients.
    Pcnl,
    /// Metropolis-adjusted Langevin; needs gradients.
    Mala,
    /// Underdamped Langevin, one leapfrog step at a time; needs gradients.
    Langevin,
    /// Elliptical slice sampling.
    Elliptical,
    /// Random-walk Metropolis.
    Rwm,
    /// Metropolis-adjusted microcanonical sampler; needs gradients.
    Mams,
    /// Microcanonical Langevin, uncorrected; needs gradients.
    Mclmc,
}

/// What a method is and can be told.
pub(super) struct Profile {
    pub name: &'static str,
    pub needs_gradients: bool,
    /// Absent for methods without a step size.
    pub step_size: Option<StepSizeRange>,
    /// The default of `damping`; absent for methods without.
    pub damping: Option<f64>,
    /// The default of `trajectory`; absent for methods without.
    pub trajectory: Option<f64>,
    /// Whether warm-up finds a length, unless `trajectory` says one.
    pub finds_length: bool,
    /// Whether the Metropolis correction can be left out.
    pub may_skip_metropolis: bool,
}

/// Step sizes of a method.
pub(super) struct StepSizeRange {
    /// Where the search that precedes adaptation begins, and without warm-up what is used.
    pub initial: f64,
    pub largest: f64,
    /// Both of these in words.
    pub allowed: &'static str,
    /// What adaptation aims at.
    pub aim: Aim,
}

const LEAPFROG: &str =
    "the step must lie between 1e-6 and 1.9 (from 2 on the prior itself is unstable)";
const LENGTH: &str = "the step must lie between 1e-6 and 1.9";
const BETA: &str = "β must lie in (0, 1], and not below 1e-6";

impl Method {
    /// Transitions of warm-up, draws of each chain, and transitions from one draw to the next, unless told otherwise.
    pub fn default_lengths(self) -> [u64; 3] {
        match self {
            Self::HmcInfinite => [200, 250, 2],
            Self::Hmc | Self::Mams => [200, 250, 1],
            Self::Nuts => [300, 250, 1],
            Self::Elliptical => [1000, 500, 10],
            Self::Pcnl | Self::Mala | Self::Langevin | Self::Mclmc => [2000, 1000, 10],
            Self::Pcn | Self::Rwm => [5000, 1000, 25],
        }
    }

    /// Every method.
    pub const ALL: [Self; 11] = [
        Self::HmcInfinite,
        Self::Hmc,
        Self::Nuts,
        Self::Pcn,
        Self::Pcnl,
        Self::Mala,
        Self::Langevin,
        Self::Elliptical,
        Self::Rwm,
        Self::Mams,
        Self::Mclmc,
    ];

    /// Every name, for messages.
    pub const NAMES: &'static str =
        "hmc-infinite, hmc, nuts, pcn, pcnl, mala, langevin, elliptical, rwm, mams, mclmc";

    pub(super) fn profile(self) -> Profile {
        let step = |initial, largest, allowed, target_acceptance| {
            Some(StepSizeRange {
                initial,
                largest,
                allowed,
                aim: Aim::Acceptance(target_acceptance),
            })
        };
        let plain = |name, needs_gradients, step_size| Profile {
            name,
            needs_gradients,
            step_size,
            damping: None,
            trajectory: None,
            finds_length: false,
            may_skip_metropolis: false,
        };
        match self {
            Self::HmcInfinite => {
                let allowed = "the angle must lie in (0, π/2], and not below 1e-6";
                Profile {
                    damping: Some(hmc_infinite::DAMPING),
                    trajectory: Some(hmc_infinite::ANGLE),
                    ..plain("hmc-infinite", true, step(0.1, FRAC_PI_2, allowed, 0.8))
                }
            }
            Self::Hmc => Profile {
                trajectory: Some(QUARTER_TURN),
                ..plain("hmc", true, step(0.1, hmc::LARGEST, LEAPFROG, 0.8))
            },
            Self::Mams => Profile {
                trajectory: Some(QUARTER_TURN),
                ..plain("mams", true, step(0.1, isokinetic::LARGEST, LENGTH, 0.9))
            },
            Self::Mclmc => Profile {
                finds_length: true,
                ..plain(
                    "mclmc",
                    true,
                    Some(StepSizeRange {
                        initial: 0.1,
                        largest: isokinetic::LARGEST,
                        allowed: LENGTH,
                        aim: Aim::EnergyVariance(mclmc::ENERGY_VARIANCE),
                    }),
                )
            },
            Self::Nuts => plain("nuts", true, step(0.1, nuts::LARGEST, LEAPFROG, 0.8)),
            Self::Pcn => plain("pcn", false, step(0.1, 1.0, BETA, 0.3)),
            Self::Pcnl => plain("pcnl", true, step(0.1, 1.0, BETA, 0.574)),
            Self::Mala => plain("mala", true, step(0.1, mala::LARGEST, LEAPFROG, 0.574)),
            Self::Langevin => Profile {
                damping: Some(langevin::DAMPING),
                may_skip_metropolis: true,
                ..plain(
                    "langevin",
                    true,
                    step(0.1, langevin::LARGEST, LEAPFROG, 0.97),
                )
            },
            Self::Elliptical => plain("elliptical", false, None),
            Self::Rwm => {
                let allowed = "the step must lie in (0, 10], and not below 1e-6";
                plain("rwm", false, step(0.1, rwm::LARGEST, allowed, 0.234))
            }
        }
    }

    /// Whether ∇ℓ is needed.
    pub fn needs_gradients(self) -> bool {
        self.profile().needs_gradients
    }

    /// Acceptance rate that adaptation aims at unless told otherwise; `None` for methods that aim at none.
    pub fn default_target_acceptance(self) -> Option<f64> {
        match self.profile().step_size?.aim {
            Aim::Acceptance(rate) => Some(rate),
            Aim::EnergyVariance(_) => None,
        }
    }

    /// Mean squared energy error per dimension that adaptation aims at unless told otherwise; `None` for methods that aim at none.
    pub fn default_energy_variance(self) -> Option<f64> {
        match self.profile().step_size?.aim {
            Aim::EnergyVariance(variance) => Some(variance),
            Aim::Acceptance(_) => None,
        }
    }

    /// Whether it leaves the posterior invariant, unless the Metropolis correction is left out: all do but `mclmc`.
    pub fn is_exact(self) -> bool {
        self != Self::Mclmc
    }

    /// Whether the Metropolis correction can be left out.
    pub fn may_skip_metropolis(self) -> bool {
        self.profile().may_skip_metropolis
    }

    /// Transitions by `hmc-infinite` before the method itself starts, unless told otherwise, in a warm-up of `warmup`.
    pub fn default_arrival(self, warmup: u64) -> u64 {
        match self {
            Self::HmcInfinite => 0,
            _ => ARRIVAL.min(warmup / 2),
        }
    }
}

/// Trajectories of `hmc-infinite` from a prior draw to where the posterior is, twice what was measured: on 256 images of
/// CIFAR-10 with a layer of 1024 ℓ has settled after one in `marginal` coordinates and after 15 in `standard` ones (from
/// −137,600 to 4,600, the first three of them spent on finding the step size).
const ARRIVAL: u64 = 30;

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.profile().name)
    }
}

impl FromStr for Method {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|m| m.profile().name == text);
        found.ok_or_else(|| format!("unknown method `{text}`: use one of {}", Self::NAMES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_complete_and_read_back() {
        assert_eq!(Method::ALL.map(|m| m.to_string()).join(", "), Method::NAMES);
        for method in Method::ALL {
            assert_eq!(method.to_string().parse(), Ok(method));
            let stored = serde_json::to_string(&method).unwrap();
            assert_eq!(stored, format!("\"{method}\""));
        }
        assert!("nut".parse::<Method>().unwrap_err().contains("rwm"));
    }
}
