//! Flags of minibatch methods.

use std::path::PathBuf;

use clap::Args;

use super::written::{PriorChoice, Schedule, WrittenDecay};

/// What minibatch methods are told besides `--step-size` and the lengths of a run.
#[derive(Debug, Clone, Default, Args)]
#[command(
    next_help_heading = "Minibatch methods (sgld, sghmc, sgnht, map, dropout, swag, ensemble; training of laplace)"
)]
pub struct MinibatchArguments {
    /// Rows of a minibatch [default: 100]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub batch: Option<usize>,
    /// Passes over the data, warm-up included; 0 for laplace with --weights trains no more [default: 20, and at least 5,000 updates]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub epochs: Option<u64>,
    /// Training rows, the last ones, that are held out; the progress shows their NLL [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub validation: Option<usize>,
    /// Step sizes: constant (a sampler with a bias), polynomial(EXPONENT,UPDATES) (a sampler; 1/3 is best),
    /// cyclical(UPDATES,EXPLORING-PART) (a sampler of several modes), halving(UPDATES) or cosine (both end at one point: an
    /// ensemble or a mode, no sampler) [default: constant for samplers and swag, cosine for the others]
    #[arg(long, value_name = "HOW")]
    pub schedule: Option<Schedule>,
    /// ntk (weights N(0, 1) a priori, scales in the network) or standard (scales in the prior) [default: ntk]
    #[arg(long, value_name = "NAME")]
    pub parametrisation: Option<String>,
    /// network (as --weight-variance and its like say), gaussian(VARIANCE-OF-WEIGHTS,VARIANCE-OF-BIASES) for every layer, or
    /// normal-inverse-gamma(SHAPE,RATE,MEAN) [default: network]
    #[arg(long, value_name = "PRIOR")]
    pub prior: Option<PriorChoice>,
    /// In place of --prior: a Gaussian one of precision λ times the number of training rows
    #[arg(long, value_name = "LAMBDA", allow_negative_numbers = true)]
    pub weight_decay: Option<f64>,
    /// What shapes drift and noise: identity, rmsprop, diagonal, quasi-diagonal, full (small networks) or kfac [default:
    /// identity]
    #[arg(long, value_name = "NAME")]
    pub preconditioner: Option<String>,
    /// ε of the preconditioner [default: 0.0001; for full and kfac the prior's precision over the training rows]
    #[arg(long, value_name = "EPS", allow_negative_numbers = true)]
    pub epsilon: Option<f64>,
    /// Where ε is added: average (to each minibatch's statistics) or inversion (to their averages, when they are inverted)
    /// [default: average; inversion for kfac]
    #[arg(long, value_name = "WHERE")]
    pub epsilon_at: Option<String>,
    /// Weight of new statistics in a preconditioner's averages: harmonic(FIRST) for 1/√(FIRST⁻² + t), or constant(RATE) [default:
    /// harmonic(1)]
    #[arg(long, value_name = "HOW")]
    pub decay: Option<WrittenDecay>,
    /// Labels that a preconditioner's statistics are of: data, or model (drawn from it) [default: data; model for full and kfac]
    #[arg(long, value_name = "WHOSE")]
    pub labels: Option<String>,
    /// Part of the momentum that an update of sghmc and sgnht loses, in (0, 1] [default: 0.1]
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    pub friction: Option<f64>,
    /// Of the noise of samplers; 1 is the posterior [default: 1]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub temperature: Option<f64>,
    /// The running mean of draws that is recorded: uniform, or forgetting (weights 1/√t, as Marceau-Caron & Ollivier) [default:
    /// uniform]
    #[arg(long, value_name = "HOW")]
    pub averaging: Option<String>,
    /// What descends in map, dropout, swag, ensemble and laplace: adam, or sgd [default: sgd for swag, adam for the others]
    #[arg(long, value_name = "NAME")]
    pub optimiser: Option<String>,
    /// Of sgd, in [0, 1) [default: 0.9]
    #[arg(long, value_name = "M", allow_negative_numbers = true)]
    pub momentum: Option<f64>,
    /// Probability that dropout leaves a hidden unit out [default: 0.5]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub dropout_rate: Option<f64>,
    /// Whether draws of dropout leave units out as well (Monte-Carlo dropout): on, or off for one draw of the whole network
    /// [default: on]
    #[arg(long, value_name = "WHEN")]
    pub dropout_at_test: Option<String>,
    /// Differences that swag's covariance is made of [default: 20]
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub swag_rank: Option<usize>,
    /// Updates, the last ones of the warm-up, from which swag takes a position every epoch [default: a quarter of the warm-up]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub swag_updates: Option<u64>,
    /// Begin every chain at these weights, the state_dict of an nn.Sequential as a safetensors file, rather than at draws from
    /// the prior; statistics of batch normalisation come with them. The run keeps a copy
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
}
