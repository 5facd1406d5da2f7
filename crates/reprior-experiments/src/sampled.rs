//! What papers read off chains: effective draws, R-hat, principal components.

use std::ops::Range;

use reprior::compute::kernels::{dot, symmetric_eigen};
use reprior::diagnostics::{Draws, Estimator, Spread, Truncation};

use crate::findings::{mean, mean_and_sd};
use crate::{Estimate, Value};

/// Effective draws that TFP's estimator finds in a chain that only drifts, however long it is: the mean over Brownian paths, which a
/// test measures.
pub const FLOOR: f64 = 5.0;
/// R-hat above which chains disagree.
pub const MOST_RHAT: f64 = 1.2;

/// Values of draws in several directions, each chain after chain.
pub type Series = Vec<Vec<f64>>;

/// What came of chains.
#[derive(Debug)]
pub struct Sampled {
    /// Chains.
    pub chains: usize,
    /// Mean acceptance rate after warm-up.
    pub acceptance: f64,
    /// The same of each chain.
    pub acceptances: Vec<f64>,
    /// Mean step size after warm-up; NaN without one.
    pub step_size: f64,
    /// Wall-clock time of all transitions after warm-up, recording included.
    pub seconds: f64,
    /// Transitions of all chains after warm-up.
    pub transitions: u64,
    /// Evaluations of the gradient after warm-up.
    pub n_gradients: u64,
    /// Evaluations of ℓ after warm-up.
    pub n_evaluations: u64,
    /// Per direction of all weights that the chain has (of reduced inputs: that the data touch).
    pub weights: Series,
    /// ‖θ‖² of these weights, as if of one direction.
    pub norms: Series,
    /// Per direction of the readout's weights θ.
    pub readout: Series,
    /// Per direction of the outputs f(x; θ), as papers have it.
    pub predictions: Series,
    /// Per direction of the outputs' means given the inner weights, which runs keep.
    pub means: Series,
}

impl Sampled {
    /// Draws of one chain.
    pub fn length(&self) -> usize {
        self.weights.first().map_or(0, Vec::len) / self.chains.max(1)
    }

    /// The first `length` draws of each chain in these directions, as chains of their own whose weights they are.
    #[must_use]
    pub fn first(&self, directions: &[Vec<f64>], length: usize) -> Self {
        let part = |values: &Vec<f64>| {
            let chains = values.chunks_exact(self.length().max(1));
            chains.flat_map(|chain| &chain[..length]).copied().collect()
        };
        Self {
            weights: directions.iter().map(part).collect(),
            norms: Vec::new(),
            readout: Vec::new(),
            predictions: Vec::new(),
            means: Vec::new(),
            acceptances: self.acceptances.clone(),
            ..*self
        }
    }

    /// The weights of all chains but one.
    #[must_use]
    pub fn without(&self, chain: usize) -> Self {
        let length = self.length().max(1);
        let rest = |values: &Vec<f64>| {
            let chains = values.chunks_exact(length).enumerate();
            let others = chains.filter(|(index, _)| *index != chain);
            others.flat_map(|(_, chain)| chain).copied().collect()
        };
        Self {
            chains: self.chains - 1,
            weights: self.weights.iter().map(rest).collect(),
            norms: Vec::new(),
            readout: Vec::new(),
            predictions: Vec::new(),
            means: Vec::new(),
            acceptances: self.acceptances.clone(),
            ..*self
        }
    }

    /// Effective draws per draw of every direction, chain by chain, as the papers have it: TFP's estimator of one chain. A chain that
    /// never moved is one draw.
    pub fn ess_per_draw(&self, directions: &[Vec<f64>]) -> Spread {
        let mut estimator = Estimator::new();
        let length = self.length().max(1);
        let one = |values: &Vec<f64>| {
            let chains = values.chunks_exact(length);
            let sum: f64 = chains
                .map(|chain| match chain.iter().all(|value| *value == chain[0]) {
                    true => 1.0,
                    false => estimator.ess_tfp(chain, Truncation::FirstNegative),
                })
                .sum();
            sum / values.len() as f64
        };
        Spread::of(directions.iter().map(one))
    }

    /// The mean over directions of effective draws per draw, with its standard error: that of one direction, as if all were one
    /// (Sokal 1997: with a window of five autocorrelation times 10/ESS is the relative variance). In doubt where the estimator has nothing
    /// to go by ([`FLOOR`]) or the chains disagree ([`MOST_RHAT`]).
    pub fn effective_draws(&self, directions: &[Vec<f64>]) -> Estimate {
        self.with_error(
            self.ess_per_draw(directions).mean,
            self.rhat(directions).mean,
        )
    }

    /// The least of all directions, which papers compare too, in the same way: the error is that of one direction that is not chosen, and
    /// the chains' disagreement that of the worst.
    pub fn least_effective_draws(&self, directions: &[Vec<f64>]) -> Estimate {
        self.with_error(self.ess_per_draw(directions).min, self.rhat(directions).max)
    }

    fn with_error(&self, value: f64, rhat: f64) -> Estimate {
        let length = self.length() as f64;
        let total = value * length * self.chains as f64;
        let estimate = Estimate::new(value, value * (10.0 / total).sqrt());
        let floor = FLOOR / length;
        if Self::is_floor(value, self.length()) {
            return estimate.doubted(format!(
                "{} effective draws per draw are less than three times what chains of {length} draws that hardly move come out at, {}",
                Value::from(value), Value::from(floor)
            ));
        }
        if rhat.is_nan() || rhat > MOST_RHAT {
            return estimate.doubted(format!("R-hat is {}, above {MOST_RHAT}", Value::from(rhat)));
        }
        estimate
    }

    /// Whether effective draws per draw of chains of `length` draws are too few to be told from none.
    pub fn is_floor(value: f64, length: usize) -> bool {
        value < 3.0 * FLOOR / length as f64
    }

    /// What effective draws are at most, where they are in doubt because they are at the estimator's floor: chains with more would have
    /// come out above it. Others as they are.
    pub fn at_most(estimate: &Estimate, length: usize) -> Estimate {
        if Self::is_floor(estimate.value, length) {
            return Estimate::exact(3.0 * FLOOR / length as f64);
        }
        estimate.clone()
    }

    /// Transitions of all chains in a second.
    pub fn steps_per_second(&self) -> f64 {
        self.transitions as f64 / self.seconds
    }

    /// Rank-normalised R-hat of every direction; of a single chain that of its halves, as if they were two.
    pub fn rhat(&self, directions: &[Vec<f64>]) -> Spread {
        if self.chains == 1 {
            let halves = Self {
                chains: 2,
                ..self.first(directions, self.length() / 2 * 2)
            };
            return halves.rhat(&halves.weights);
        }
        let mut estimator = Estimator::new();
        self.over(directions, 0..self.length(), |draws| {
            estimator.rhat_rank(draws)
        })
    }

    /// Hron's R̂² (their eq. 6) over the first `length` draws of every chain.
    pub fn rhat_squared(&self, directions: &[Vec<f64>], length: usize) -> Spread {
        self.over(directions, 0..length, |draws| draws.rhat_squared_hron())
    }

    /// Mean and standard deviation over the directions of the potential scale reduction (TFP's) of some draws of every chain, each with
    /// its error by the jackknife over chains of its logarithm (Efron & Stein 1981), which takes three.
    pub fn scale_reduction(&self, directions: &[Vec<f64>], draws: Range<usize>) -> [Estimate; 2] {
        let own = self.first(directions, draws.end);
        let spread = |sampled: &Self| -> [f64; 2] {
            let one = |values: &Vec<f64>| {
                let alone = std::slice::from_ref(values);
                let statistic = |draws: Draws<'_>| draws.potential_scale_reduction();
                sampled.over(alone, draws.clone(), statistic).mean
            };
            let all: Vec<f64> = sampled.weights.iter().map(one).collect();
            let (mean, sd) = mean_and_sd(&all);
            [mean, sd]
        };
        let all = spread(&own);
        let without: Vec<[f64; 2]> = (0..self.chains)
            .map(|chain| spread(&own.without(chain)))
            .collect();
        [0, 1].map(|at| {
            let left: Vec<f64> = without.iter().map(|one| one[at].ln()).collect();
            // the error of a mean of M, times M − 1
            let jackknife = Estimate::mean(&left);
            Estimate {
                value: all[at],
                error: all[at] * jackknife.error * (self.chains as f64 - 1.0),
                ..jackknife
            }
        })
    }

    /// Principal components of the weights by the first half of every chain, one value for every draw. Of the draws that choose it the first
    /// component is the direction in which chains happen to differ most; the second half can be judged.
    pub fn principal_components(&self, count: usize) -> Vec<Vec<f64>> {
        let half = self.first(&self.weights, self.length() / 2);
        principal_components(&self.weights, &half.weights, count)
    }

    /// A statistic of some draws of every chain, counted from its first, over the directions.
    pub fn over(
        &self,
        directions: &[Vec<f64>],
        draws: Range<usize>,
        mut statistic: impl FnMut(Draws<'_>) -> f64,
    ) -> Spread {
        let one = |values: &Vec<f64>| {
            let chains = values.chunks_exact(self.length().max(1));
            let some: Vec<f64> = chains
                .flat_map(|chain| &chain[draws.clone()])
                .copied()
                .collect();
            match Draws::new(&some, self.chains) {
                Ok(draws) => statistic(draws),
                Err(_) => f64::NAN,
            }
        };
        Spread::of(directions.iter().map(one))
    }
}

/// The first `count` principal components of what was watched in several directions: one value a draw each, by the covariance of some of the
/// draws.
fn principal_components(directions: &[Vec<f64>], some: &[Vec<f64>], count: usize) -> Vec<Vec<f64>> {
    let centred = |directions: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let of = |values: &Vec<f64>| {
            let mean = mean(values);
            values.iter().map(|value| value - mean).collect()
        };
        directions.iter().map(of).collect()
    };
    let (directions, some) = (centred(directions), centred(some));
    let (k, n) = (some.len(), some.first().map_or(0, Vec::len));
    let mut covariance = vec![0.0; k * k];
    for i in 0..k {
        for j in 0..k {
            covariance[i * k + j] = dot(&some[i], &some[j]) / n as f64;
        }
    }
    // of finite numbers; what is not finite has no components
    let (_, vectors) =
        symmetric_eigen(&covariance, k).unwrap_or((Vec::new(), vec![f64::NAN; k * k]));
    let component = |rank: usize| {
        let mut out = vec![0.0; directions.first().map_or(0, Vec::len)];
        for (values, weight) in directions
            .iter()
            .zip(&vectors[(k - 1 - rank) * k..(k - rank) * k])
        {
            for (out, value) in out.iter_mut().zip(values) {
                *out += weight * value;
            }
        }
        out
    };
    (0..count.min(k)).map(component).collect()
}

#[cfg(test)]
mod tests {
    use reprior::compute::{Purpose, Stream};

    use super::*;
    use crate::{Judgement, Verdict};

    fn sampled(weights: Series, chains: usize) -> Sampled {
        Sampled {
            chains,
            acceptance: 1.0,
            acceptances: vec![1.0; chains],
            step_size: 1.0,
            seconds: 1.0,
            transitions: 1,
            n_gradients: 0,
            n_evaluations: 0,
            weights,
            norms: Vec::new(),
            readout: Vec::new(),
            predictions: Vec::new(),
            means: Vec::new(),
        }
    }

    /// Autoregressive chains, ρ = 1 for Brownian paths, with the memory of all directions.
    fn chains(rho: f64, length: usize, directions: u64) -> Series {
        let direction = |index| {
            let mut values = Vec::new();
            for chain in 0..2 {
                let mut stream = Stream::new(3, chain, Purpose::Simulation, index);
                let mut x = if rho < 1.0 { stream.normal() } else { 0.0 };
                for _ in 0..length {
                    values.push(x);
                    let noise = if rho < 1.0 {
                        (1.0 - rho * rho).sqrt()
                    } else {
                        1.0
                    };
                    x = rho * x + noise * stream.normal();
                }
            }
            values
        };
        (0..directions).map(direction).collect()
    }

    #[test]
    fn brownian_paths_have_the_effective_draws_of_the_floor() {
        for length in [40, 400, 4000] {
            let series = chains(1.0, length, 200);
            let drifting = sampled(series, 2);
            let ess = drifting.ess_per_draw(&drifting.weights).mean * length as f64;
            assert!((0.8..1.2).contains(&(ess / FLOOR)), "{length}: {ess}");
            assert!(drifting.effective_draws(&drifting.weights).doubt.is_some());
        }
    }

    /// The jackknife's error is about what repeating everything shows.
    #[test]
    fn scale_reductions_have_errors() {
        let (mut values, mut errors) = (Vec::new(), Vec::new());
        for repeat in 0..60 {
            let direction = |index| {
                let mut values = Vec::new();
                for chain in 0..6 {
                    let mut stream = Stream::new(repeat, chain, Purpose::Simulation, index);
                    let mut x = stream.normal();
                    for _ in 0..200 {
                        values.push(x);
                        x = 0.95 * x + (1.0 - 0.95_f64 * 0.95).sqrt() * stream.normal();
                    }
                }
                values
            };
            let sampled = sampled((0..10).map(direction).collect(), 6);
            let [mean, _] = sampled.scale_reduction(&sampled.weights, 0..200);
            assert_eq!(mean.degrees, 5.0);
            values.push(mean.value);
            errors.push(mean.error);
        }
        let ratio = mean(&errors) / mean_and_sd(&values).1;
        assert!((0.7..1.5).contains(&ratio), "{ratio}");
        assert!(
            mean(&values) > 1.02 && mean(&values) < 1.3,
            "{}",
            mean(&values)
        );
    }

    /// Chains whose R-hat is 1.2 in every direction, with a memory of 17 of their 200 draws: the first component by draws that are not
    /// judged is refuted about as seldom as it should be, that of all draws is not.
    #[test]
    fn components_are_not_chosen_by_the_draws_that_are_judged() {
        let (chains, length, rho) = (6, 200, 0.8975_f64);
        let noise = (1.0 - rho * rho).sqrt();
        let (mut refuted, trials) = ([0, 0], 300);
        for trial in 0..trials {
            let direction = |index| {
                let mut values = Vec::new();
                for chain in 0..chains {
                    let mut stream = Stream::new(trial, chain, Purpose::Simulation, index);
                    let mut x = stream.normal();
                    for _ in 0..length {
                        values.push(x);
                        x = rho * x + noise * stream.normal();
                    }
                }
                values
            };
            let own = sampled((0..20).map(direction).collect(), chains as usize);
            let chosen = [
                own.principal_components(1),
                principal_components(&own.weights, &own.weights, 1),
            ];
            for (count, components) in refuted.iter_mut().zip(&chosen) {
                let [rhat, _] = own.scale_reduction(components, length / 2..length);
                let judged = Judgement::is_shrunk_below(&rhat, MOST_RHAT, 0.5 * length as f64);
                *count += u64::from(judged.verdict() == Verdict::DoesNotHold);
            }
        }
        // 1 %, and a little for what chains remember of their first half
        assert!(50 * refuted[0] < 2 * trials, "{refuted:?}");
        assert!(refuted[1] > 5 * refuted[0].max(1), "{refuted:?}");
    }

    #[test]
    fn a_single_chain_is_judged_by_its_halves() {
        let mixing = sampled(chains(0.5, 2000, 5), 1);
        assert!(mixing.rhat(&mixing.weights).max < 1.05);
        let first = |directions: Series| directions.into_iter().map(|mut one| one.split_off(2000));
        let drifting = sampled(first(chains(1.0, 2000, 5)).collect(), 1);
        assert!(drifting.rhat(&drifting.weights).mean > MOST_RHAT);
    }

    #[test]
    fn effective_draws_of_autoregressive_chains_are_known() {
        let rho: f64 = 0.8;
        let known = (1.0 - rho) / (1.0 + rho);
        let mixing = sampled(chains(rho, 2000, 50), 2);
        let found = mixing.effective_draws(&mixing.weights);
        assert!(found.doubt.is_none(), "{found:?}");
        assert!((found.value - known).abs() < 2.0 * found.error, "{found}");
        // one direction varies about as much as is said
        let single: Vec<f64> = (mixing.weights.iter())
            .map(|one| mixing.ess_per_draw(std::slice::from_ref(one)).mean)
            .collect();
        let (mean, sd) = mean_and_sd(&single);
        let said = mixing.effective_draws(&mixing.weights[..1]).error / mean;
        assert!(
            (0.4..2.0).contains(&(said * mean / sd)),
            "{said} {mean} {sd}"
        );
    }
}
