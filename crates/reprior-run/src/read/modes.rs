//! Chains that disagree, as what they are then: an ensemble of modes rather than draws of one posterior.
//!
//! Where chains stay in different places for as long as anybody waits, R-hat says no more than that. What helps then is to look at each by itself: whether it
//! has settled where it is (R-hat of its two halves, its own effective draws), how far apart the chains are (the part of the predictions' variance that is
//! between their means, their log posteriors), and what each predicts alone. Stacking (`stacking`) says what they are worth together.
//!
//! Hidden units that change places or signs are no modes: all of this is of predictions, and of the log posterior, which they leave alone.
//!
//! Cost: the predictions are read a second time, once for each chain.

use reprior::diagnostics::{Draws, Estimator, Spread};
use serde::Serialize;

use super::diagnostics::Ess;
use super::recorded::Recorded;
use super::transitions::mean_and_sd;
use crate::failure::Failure;
use crate::predictive::{Gatherer, Metrics};
use crate::settings::Nature;
use crate::summary::Summary;
use crate::words::number;

/// Draws of a chain below which its halves say nothing.
const FEWEST_DRAWS: usize = 8;

/// What there is to say of chains that disagree about predictions.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EnsembleOfModes {
    /// Part of the predictions about which the chains disagree.
    pub apart: f64,
    /// Median over predictions and chains of the R-hat of a chain's two halves, each split once more; NaN where chains are too short.
    pub rhat_within: f64,
    /// Minimum over predictions of the chains' own effective draws, added up.
    pub ess_within: f64,
    /// Mean over predictions of the part of their variance over draws that is between the means of chains, in [0, 1].
    pub between: f64,
    /// Chain by chain.
    pub chains: Vec<Mode>,
}

/// One of the chains.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Mode {
    /// Mean of the log posterior density of the chain's position, up to the constant that all chains share; null for minibatch methods.
    pub log_posterior: Option<f64>,
    /// Its standard deviation.
    pub log_posterior_sd: Option<f64>,
    /// Negative log-likelihood of a test row under this chain alone; null without test rows.
    pub nll: Option<f64>,
}

/// R-hat within chains up to which they have settled, each where it is: the bar of Gelman & Rubin (1992).
const SETTLED: f64 = 1.2;

impl EnsembleOfModes {
    /// Whether chains disagree about most predictions.
    pub fn are_apart(&self) -> bool {
        self.apart >= 0.5
    }

    /// Whether each chain has settled where it is, by most of its predictions.
    pub fn have_settled(&self) -> bool {
        self.rhat_within <= SETTLED
    }

    /// What was found, in a sentence without its capital and its full stop.
    pub fn title(&self) -> String {
        let [rhat, ess, between] = [self.rhat_within, self.ess_within, self.between].map(number);
        let what = match (self.are_apart(), self.have_settled()) {
            (true, true) => "the chains are an ensemble of modes",
            (true, false) => "the chains are in different places, and have not settled there",
            (false, _) => "the chains disagree about some predictions",
        };
        format!(
            "{what}: within them R-hat of predictions is {rhat} in the median, with {ess} effective draws at least; \
             {between} of the predictions' variance is between chains"
        )
    }

    /// Rows of a table of the chains, the header first: with the weights that stacking gives them, and in the last row all together.
    pub fn rows(&self, summary: &Summary) -> Vec<Vec<String>> {
        let loo = summary.loo.as_ref();
        let stacking = loo.and_then(|loo| loo.stacking.as_ref());
        let header = [
            "chain",
            "log posterior",
            "its sd",
            "negative log-likelihood",
            "weight",
            "by stacking",
        ];
        let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        let weight = 1.0 / self.chains.len() as f64;
        let mut rows = vec![header.map(String::from).to_vec()];
        for (chain, mode) in self.chains.iter().enumerate() {
            let stacked = stacking.and_then(|found| found.weights.get(chain).copied());
            let values = [
                mode.log_posterior,
                mode.log_posterior_sd,
                mode.nll,
                Some(weight),
                stacked,
            ];
            rows.push(
                std::iter::once(summary.chain_number(chain).to_string())
                    .chain(values.map(shown))
                    .collect(),
            );
        }
        let values = [
            None,
            None,
            summary.metrics.as_ref().map(Metrics::nll),
            Some(1.0),
            stacking.map(|_| 1.0),
        ];
        rows.push(
            std::iter::once("together".to_owned())
                .chain(values.map(shown))
                .collect(),
        );
        rows
    }
}

/// Of one prediction: R-hat within each chain; effective draws within chains, and the part of the variance between.
fn of_variable(estimator: &mut Estimator, draws: Draws<'_>) -> (Vec<f64>, [f64; 2]) {
    let even = draws.length() / 2 * 2;
    let within = draws.iter().map(|chain| {
        let halves = (even >= FEWEST_DRAWS).then(|| Draws::new(&chain[..even], 2).ok());
        let halves = halves.flatten();
        halves.map_or(f64::NAN, |halves| estimator.rhat_rank(halves))
    });
    let rhats = within.collect();
    let count = draws.length() as f64;
    let [mut means, mut variances] = [Vec::new(), Vec::new()];
    for chain in draws.iter() {
        let mean = chain.iter().sum::<f64>() / count;
        means.push(mean);
        variances.push(chain.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count);
    }
    let chains = means.len() as f64;
    let mean = means.iter().sum::<f64>() / chains;
    let between = means.iter().map(|own| (own - mean).powi(2)).sum::<f64>() / chains;
    let within = variances.iter().sum::<f64>() / chains;
    let ess = estimator.summary(draws).ess_within;
    (rhats, [ess, between / (between + within)])
}

impl Recorded {
    /// The chains one by one, given the draws of some predictions, chain after chain, and what they come to.
    ///
    /// # Errors
    /// A run that cannot be read.
    pub(super) fn modes(&self, traces: &[Vec<f64>], ess: &Ess) -> Result<EnsembleOfModes, Failure> {
        let (chains, draws) = (self.chains(), self.draws as usize);
        let read = |variable: usize, out: &mut [f64]| out.copy_from_slice(&traces[variable]);
        let found = Estimator::map_variables(traces.len(), chains, draws, read, of_variable)
            .map_err(Failure::run)?;
        let of = |at: usize| Spread::of(found.iter().map(|(_, all)| all[at]));
        let mut rhats: Vec<f64> = found.iter().flat_map(|(own, _)| own.clone()).collect();
        rhats.sort_by(f64::total_cmp);
        let densities = self.log_posteriors()?;
        let nll = self.nll_of_chains()?;
        let mode = |chain: usize| Mode {
            log_posterior: densities.get(chain).map(|(mean, _)| *mean),
            log_posterior_sd: densities.get(chain).map(|(_, sd)| *sd),
            nll: nll.get(chain).copied(),
        };
        Ok(EnsembleOfModes {
            apart: ess.disagreeing as f64 / ess.variables as f64,
            rhat_within: rhats.get(rhats.len() / 2).copied().unwrap_or(f64::NAN),
            ess_within: of(0).min,
            between: of(1).mean,
            chains: (0..chains).map(mode).collect(),
        })
    }

    /// Mean and standard deviation of each chain's log posterior; empty where it is not recorded.
    fn log_posteriors(&self) -> Result<Vec<(f64, f64)>, Failure> {
        if self.settings.sampler.method().nature() != Nature::Chains {
            return Ok(Vec::new());
        }
        let all = self.read("sample_stats", "lp")?;
        Ok(all.chunks(self.draws as usize).map(mean_and_sd).collect())
    }

    /// Negative log-likelihood of the test rows under each chain alone; nothing of rows that train.
    fn nll_of_chains(&self) -> Result<Vec<f64>, Failure> {
        if self.tests_nothing() {
            return Ok(Vec::new());
        }
        let truth = self.truth()?;
        let recorded = self.spacing().draws as usize;
        let mut gatherers: Vec<Gatherer> =
            (0..self.chains()).map(|_| Gatherer::default()).collect();
        self.for_each_block(|start, block, noise| {
            for (chain, gatherer) in gatherers.iter_mut().enumerate() {
                let own: Vec<usize> = (chain * recorded..(chain + 1) * recorded).collect();
                let (alone, _) = block.of_draws(&own, noise);
                gatherer.add(&alone, &truth, start)?;
            }
            Ok(())
        })?;
        let nll = gatherers.into_iter().map(|gatherer| {
            let metrics = gatherer.finish()?;
            Ok(metrics.as_ref().map_or(f64::NAN, Metrics::nll))
        });
        nll.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws of four chains, each about a centre of its own, with a drift.
    fn chains(centres: [f64; 4], drift: f64) -> Vec<f64> {
        let noise = |at: usize| (at as f64 * 0.618_033_988_75).fract() - 0.5;
        let of = |(chain, centre): (usize, f64)| {
            (0..200).map(move |draw| {
                centre + noise(7 * draw + 1000 * chain) + drift * draw as f64 / 200.0
            })
        };
        centres.into_iter().enumerate().flat_map(of).collect()
    }

    #[test]
    fn chains_that_have_settled_apart_are_told_from_those_on_their_way() {
        let of = |centres, drift| {
            let values = chains(centres, drift);
            let draws = Draws::new(&values, 4).unwrap();
            let (rhats, [ess, between]) = of_variable(&mut Estimator::new(), draws);
            [rhats.into_iter().fold(0.0, f64::max), ess, between]
        };
        let together = of([0.0; 4], 0.0);
        assert!(together[0] < 1.02 && together[2] < 0.01, "{together:?}");
        // variances: within 1/12, between 5/4
        let apart = of([0.0, 1.0, 2.0, 3.0], 0.0);
        let expected = 1.25 / (1.25 + 1.0 / 12.0);
        assert!(apart[0] < 1.02, "{apart:?}");
        assert!((apart[2] - expected).abs() < 0.002, "{apart:?} {expected}");
        let moving = of([0.0; 4], 2.0);
        assert!(moving[0] > 1.5, "{moving:?}");
        assert!(apart[1] > 4.0 * 100.0, "{apart:?}");
    }

    #[test]
    fn too_few_draws_say_nothing_of_halves() {
        let values = [0.0, 1.0, 0.5, 0.2, 0.3, 0.9, 2.0, 2.1];
        let found = of_variable(&mut Estimator::new(), Draws::new(&values, 2).unwrap());
        assert!(found.0.iter().all(|rhat| rhat.is_nan()), "{found:?}");
        let some = EnsembleOfModes {
            apart: 0.25,
            rhat_within: 1.01,
            ..EnsembleOfModes::default()
        };
        assert!(
            some.title()
                .starts_with("the chains disagree about some predictions")
        );
        let unknown = EnsembleOfModes {
            rhat_within: f64::NAN,
            ..EnsembleOfModes::default()
        };
        assert!(!unknown.have_settled());
    }
}
