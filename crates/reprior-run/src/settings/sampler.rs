//! Settings of the method that makes the draws: those of chains on all data, and what all methods have.

use clap::Args;
use reprior::model::InputReduction;
use reprior::posterior::{Coordinates, Regulariser, TangentDeterminant};
use serde::{Deserialize, Serialize};

use super::StartName;
use super::auto::Auto;
use super::method::MethodName;
use super::names::{Precision, SpaceChoice, name};

/// `[sampler]`: the method, and what chains on all data take; what is absent is the method's default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, Args)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
#[command(next_help_heading = "Sampler")]
pub struct SamplingSettings {
    /// The sampler: hmc-infinite, hmc, nuts, pcn, pcnl, mala, langevin, elliptical, rwm, mams, or mclmc (uncorrected: biased, and says by how much
    /// its energy is off); smc (particles annealed from the prior, with the log evidence); with minibatches sgld, sghmc or sgnht,
    /// and to compare with them map, dropout, swag or ensemble; around a trained mode laplace (a Gaussian) or
    /// laplace-diffusion; or the posterior of infinitely wide layers in closed form: nngp, or ntk [default: auto: hmc-infinite, or sgld
    /// where gradients over all rows would take hours]
    #[arg(long, value_name = "NAME")]
    pub method: Auto<MethodName>,
    /// marginal (readout integrated out; gaussian likelihood only), repriorised, standard, or tangent (all weights repriorised;
    /// gaussian likelihood, known noise) [default: marginal for the gaussian likelihood, repriorised for the others]
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coordinates: Option<Coordinates>,
    /// The determinant of tangent coordinates: exact, or series(TERMS,PROBES), an approximation that wide networks need, or with a
    /// regulariser hessian(TERMS,PROBES), that of Hron et al. (eq. 13) [default: exact up to 200 parameters, series(4,16) beyond]
    #[arg(long, value_name = "HOW")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub determinant: Option<TangentDeterminant>,
    /// Where the readout is solved for: auto (the cheaper), feature, data, or data-symmetric (the symmetric root of Hron
    /// et al. in repriorised coordinates: the same law, slower) [default: auto]
    #[arg(long, value_name = "SPACE")]
    pub space: SpaceChoice,
    /// λ of the map T of repriorised coordinates: matched (σ², or the variances of the likelihood's own approximation, one for each
    /// output), a positive number, or a multiple of n times those such as 1n; of tangent ones a number, for the map of Hron et al. (eq. 10). It changes
    /// coordinates, not the posterior [default: matched]
    #[arg(long, value_name = "LAMBDA")]
    pub regulariser: Regulariser,
    /// Reduce the first layer's inputs to what the training data can tell apart (exact): auto, on or off [default: auto]
    #[arg(long, value_name = "WHEN", value_parser = name::<InputReduction>)]
    pub input_reduction: InputReduction,
    /// Fixed step size: β in (0, 1] for pcn and pcnl, an angle up to π/2 for hmc-infinite, up to 1.9 for hmc, nuts, mala,
    /// mams, mclmc and langevin, up to 10 for rwm; with minibatches η, of the mean loss [default: adapted in warm-up; with minibatches a
    /// guess from likelihood, preconditioner and parametrisation]
    #[arg(long, value_name = "STEP")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_size: Option<f64>,
    /// Acceptance rate that adaptation aims at [default: 0.8 for hmc-infinite, hmc and nuts, 0.9 for mams, 0.3 for pcn, 0.574 for pcnl and
    /// mala, 0.97 for langevin, 0.234 for rwm]
    #[arg(long, value_name = "RATE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_acceptance: Option<f64>,
    /// Mean squared energy error of a step of mclmc, per coordinate, that adaptation aims at, up to 1: the smaller, the less biased are the draws
    /// and the more they depend on each other [default: 5e-4]
    #[arg(long, value_name = "V")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_variance: Option<f64>,
    /// Part of the momentum in (0, 1] that each transition of langevin or hmc-infinite refreshes [default: 0.03 for
    /// langevin, 0.5 for hmc-infinite]
    #[arg(long, value_name = "B")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damping: Option<f64>,
    /// Take every step of langevin: the law is then right only as far as the acceptance rate is near 1
    #[arg(
        long = "no-metropolis",
        id = "no_metropolis",
        num_args = 0,
        default_missing_value = "false"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metropolis: Option<bool>,
    /// Mean length of a trajectory of hmc-infinite, hmc or mams, from 0.01 to 10; of mclmc the time in which directions are forgotten
    /// [default: 0.8 for hmc-infinite, π/2 for hmc and mams; for mclmc the posterior's width, found in warm-up]
    #[arg(long, value_name = "LENGTH")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trajectory: Option<f64>,
    /// Steps, and so gradients, of a trajectory of hmc-infinite, hmc, mams or nuts at most, up to 10000; nuts doubles as often as they have room for, ten times at most
    /// [default: 128, of nuts 1023; where the time that there is (--minutes, or the usual minute) has no room for 84 such trajectories of each chain, as many as fit, 8 or more]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// Transitions of warm-up that hmc-infinite makes before the method itself starts from there; 0 for none [default:
    /// 30, at most half of the warm-up; 0 for hmc-infinite, with --replicas and in tangent coordinates]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrival: Option<u64>,
    /// Replicas of each chain at higher temperatures, up to 1000, with which it exchanges positions, down from draws of the prior (parallel tempering):
    /// chains of small networks then get from mode to mode, and estimate the log evidence. Each replica costs as much as a chain; about twice the
    /// barrier that `summary` names are enough. Not for mclmc and --no-metropolis [default: 0]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<usize>,
    /// Where each chain starts: at a draw of the `prior`; at the `mode` that L-BFGS finds from there, in 1000 gradients at most (8 times --max-steps
    /// where that is below 125; as many once more where targets turn out far more exact than a learned noise was taken for; from 5000 rows on after minibatches, in a quarter of them), as chains on
    /// rough posteriors (narrow networks, many rows) need a shorter warm-up so; where the chains of an earlier run ended, of the same
    /// network in the same coordinates, whose folder is given; or at a network that was trained elsewhere, as --weights reads it: a .safetensors
    /// file, or a folder with one for each chain [default: auto: mode for tables with more rows than the narrowest layer has units, prior for others]
    #[arg(long, value_name = "WHERE")]
    #[serde(skip_serializing_if = "is_usual")]
    pub start: Auto<StartName>,
    /// Precision of the network, f32 or f64 (factorisations are always f64) [default: f64 for chains where the noise is
    /// less than a hundredth of the function's prior standard deviation, f32 elsewhere]
    #[arg(long, value_name = "TYPE")]
    pub precision: Precision,
}

/// Configurations do not say that chains start at draws of the prior, as all of version 0.1 did.
fn is_usual(start: &Auto<StartName>) -> bool {
    matches!(start, Auto::Open | Auto::Chosen(StartName::Prior))
}

impl SamplingSettings {
    /// Takes what a configuration that is written out leaves unsaid: it has coordinates, which nobody has to give.
    pub(super) fn read_start(&mut self) {
        if self.start.is_open() && self.coordinates.is_some() && !self.method.is_open() {
            self.start = StartName::Prior.into();
        }
    }

    /// The method; where it is left to the data, and they are not there, the default one.
    pub fn method(&self) -> MethodName {
        self.method.get().unwrap_or_default()
    }
}
