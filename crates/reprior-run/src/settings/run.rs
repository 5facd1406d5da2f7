//! How long a run is, and what of it is kept.

use clap::Args;
use serde::{Deserialize, Serialize};

use super::until::Until;

/// Chains of one run at most.
pub(crate) const MOST_CHAINS: usize = reprior_io::run::MOST_CHAINS as usize;

/// `[run]`: numbers of chains, transitions and draws; what is absent is the method's default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, Args)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
#[command(next_help_heading = "Length")]
pub struct RunSettings {
    /// Independent chains [default: 4; 1 for map, dropout, swag, laplace and laplace-diffusion, 5 for ensemble]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chains: Option<usize>,
    /// Number of the first chain: chain K of a seed is the same chain whichever run it is in, so that runs of other chains can be put
    /// together by `merge` [default: 0]
    #[arg(long, value_name = "K")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_chain: Option<usize>,
    /// Numbers of the chains, where they do not follow one another: of a run that others were put together to, of which some are missing.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain_numbers: Option<Vec<usize>>,
    /// Transitions of each chain before its first draw [default: 200 for hmc-infinite, hmc and mams, 300 for nuts, 1000 for elliptical, 2000
    /// for pcnl, mala, langevin and mclmc, 5000 for pcn and rwm; half of the updates of sgld, sghmc and sgnht, all those before the
    /// draws of map, dropout, swag and ensemble]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<u64>,
    /// Draws of each chain [default: 250 for hmc-infinite, hmc, mams and nuts, 500 for elliptical, 200 for smc, 1000 for
    /// the others, up to four times as many where chains do not agree with these and there is time; 100 for
    /// sgld, sghmc, sgnht and dropout, 30 for swag and laplace, 20 for laplace-diffusion, 1 for map and ensemble]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draws: Option<u64>,
    /// Transitions from one draw to the next [default: 2 for hmc-infinite and smc, 1 for hmc, mams and nuts, 25 for pcn and
    /// rwm, 10 for the others; with minibatches what --epochs leaves]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thin: Option<u64>,
    /// Minutes that chains on all data may take: warm-up has a third of them, draws the rest, as many as there is time for, --warmup and
    /// --draws at most; their numbers are then written into config.toml, which gives the same draws again [default: none if --warmup,
    /// --draws or --thin is given; otherwise 1, with the usual warm-up at most and at most four times as many draws as usual, and the end is when
    /// the chains agree]
    #[arg(long, value_name = "M")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
    /// End chains on all data as soon as the predictions for the test rows (the noise of rows too, where they have their own; the weights, where there
    /// are no test rows) are so: rhat<1.01, ess>400 or both, as "rhat<1.01,ess>400"; or
    /// when the time of --minutes is up [default of --minutes with it: 10]
    #[arg(long, value_name = "BOUNDS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// Seed of every random number; the same seed gives the same draws on any number of threads [default: 0]
    #[arg(long, value_name = "N")]
    pub seed: u64,
    /// Instruction set that kernels ran with, which rounds sums in its own way: `avx512`, `avx2`, `neon` or `plain`. Written by the run.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// `[record]`: what of each draw is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Args)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
#[command(next_help_heading = "Recording")]
pub struct RecordSettings {
    /// Random projections of all weights that are recorded [default: 100]
    #[arg(long, value_name = "N")]
    pub projections: usize,
    /// Megabytes that the run folder may take: positions and predictions of evenly spaced draws are kept as far as they fit; in a
    /// folder of the default size at least 16 positions in all (32 where the readout is sampled) and predictions of 100 draws
    /// [default: 20]
    #[arg(long, value_name = "MB")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_mb: Option<u64>,
    /// Positions of each chain that are kept for `predict`, evenly spaced [default: at most 100, as --keep-mb has room]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<u64>,
    /// Draws of each chain whose predictions for all test rows are recorded, evenly spaced; metrics are of these [default: all, as
    /// --keep-mb has room]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_predictions: Option<u64>,
    /// Training rows whose log-likelihood is recorded at every draw, for leave-one-out cross-validation: all, or a random choice of them; 0
    /// for none [default: as half of --keep-mb has room, with minibatches at most 1000]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_log_likelihood: Option<u64>,
    /// Whole weight vectors of each chain that are kept, evenly spread over its draws; beyond --keep-mb [default: 0]
    #[arg(long, value_name = "N")]
    pub keep_weights: u64,
    /// How often draws were kept before the number of draws was changed.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<SettledKeeping>,
}

/// How often draws are kept in a run whose number of draws was changed after there were some.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SettledKeeping {
    /// Every how many draws a position is kept.
    pub positions_every: u64,
    /// Every how many draws the predictions for all test rows are recorded.
    pub predictions_every: u64,
    /// Every how many draws whole weights are kept, if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights_every: Option<u64>,
    /// Predictions that are recorded at every draw, if not all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traces: Option<u64>,
}

impl Default for RecordSettings {
    fn default() -> Self {
        Self {
            projections: 100,
            keep_mb: None,
            keep: None,
            keep_predictions: None,
            keep_log_likelihood: None,
            keep_weights: 0,
            settled: None,
        }
    }
}

impl RecordSettings {
    /// Leaves open how many of everything are kept.
    pub(crate) fn forget_numbers(&mut self) {
        (self.keep, self.keep_predictions, self.keep_log_likelihood) = (None, None, None);
        self.settled = None;
    }
}
