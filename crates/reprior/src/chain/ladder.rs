//! Copies of a chain at higher temperatures, which exchange positions with it: parallel tempering (Geyer 1991), with exchanges in turns and a
//! ladder of equal rates of refusal (Syed, Bouchard-Côté, Deligiannidis & Doucet 2022).
//!
//! Rung k = 0 … m has π_k(z) ∝ N(z; 0, I)·exp β_k ℓ(z), 1 = β_0 > β_1 > … > β_m > β_{m+1} = 0. The chain is rung 0, its *replicas* are the others; rung m + 1
//! is the prior, of which every position is a new draw. After each transition of all, rungs k and k + 1 exchange positions, for all k that are
//! even after an even number of transitions and odd after an odd one, with probability
//!
//! > min(1, exp((β_k − β_{k+1})(ℓ(z_{k+1}) − ℓ(z_k)))),
//!
//! which leaves Π π_k invariant. What is known at a position goes with it: βℓ and its gradient, times the ratio of temperatures. Momenta, which do
//! not depend on positions, stay.
//!
//! During warm-up, after 16, 32, 64 … transitions, the β_k are put where refusals are equally frequent, if their rates add up along β as they did
//! since the last time. The sum of the rates of refusal, Λ, hardly depends on m once there are enough replicas. With about 2Λ a position from the prior gets to the chain
//! in every 2 + 4Λ transitions, at best, and with many more in every 2 + 2Λ. The log evidence is the sum over k of the log mean of
//! exp((β_k − β_{k+1})ℓ) at rung k + 1.
//!
//! Cost: that of m more chains, and half an evaluation of ℓ, a transition; m positions and gradients.

use super::start::start_at_prior;
use super::{Schedule, StartError};
use crate::compute::{LogSum, Purpose, Real, Stream};
use crate::posterior::{Target, Tempered};
use crate::sampler::kernels::Adaptation;
use crate::sampler::{Sampler, SamplerSettings, State};

/// The smallest β of a ladder before it is adapted.
const SMALLEST_BETA: f64 = 1e-4;
/// Rates of refusal below are taken for this one, so that temperatures differ.
const LEAST_REFUSED: f64 = 1e-3;

/// The samplers of replicas, one each.
pub(super) type Samplers<R> = Vec<Box<dyn Sampler<R>>>;

/// A copy of a chain at a higher temperature.
#[derive(Debug, Clone, PartialEq)]
pub struct Replica<R> {
    /// β, below 1.
    pub beta: f64,
    /// Where it is, with βℓ and its gradient.
    pub state: State<R>,
    /// Step size in use; absent for methods without one.
    pub step_size: Option<f64>,
    /// The adaptation, while there is one.
    pub adaptation: Option<Adaptation>,
    /// Whether its position has come from the prior since it was the chain's.
    pub is_fresh: bool,
}

/// What became of the exchanges between a rung and the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exchanges {
    /// How many were tried.
    pub tried: u64,
    /// The sum of the probabilities that they are refused.
    pub refused: f64,
    /// The logarithm of the sum of exp((β_k − β_{k+1})ℓ(z_{k+1})) over them; −∞ of none.
    pub log_weights: f64,
}

impl Default for Exchanges {
    fn default() -> Self {
        Self {
            tried: 0,
            refused: 0.0,
            log_weights: f64::NEG_INFINITY,
        }
    }
}

impl Exchanges {
    /// Takes one in, between βs that differ by `delta`, with ℓ at the hotter rung; the logarithm of the ratio of acceptance is `log_acceptance`.
    pub(super) fn add(&mut self, log_acceptance: f64, delta: f64, log_ratio: f64) {
        self.tried += 1;
        self.refused += 1.0 - log_acceptance.min(0.0).exp();
        self.log_weights = LogSum::of([self.log_weights, delta * log_ratio]);
    }

    /// The rate of refusal; 1 where none was tried.
    pub fn refusal(&self) -> f64 {
        match self.tried {
            0 => 1.0,
            tried => self.refused / tried as f64,
        }
    }
}

/// The replicas of a chain, and how they exchange positions.
#[derive(Debug, Clone, PartialEq)]
pub struct Ladder<R> {
    /// From the coldest, which is next to the chain, to the hottest.
    pub replicas: Vec<Replica<R>>,
    /// Between the chain and the first replica, the first and the second, …, the last and the prior: since the ladder was last changed, and after
    /// warm-up of all its transitions.
    pub exchanges: Vec<Exchanges>,
    /// How often the chain has got a position that came from the prior, after warm-up.
    pub arrivals: u64,
}

/// Which transition of which chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub seed: u64,
    pub chain: usize,
    pub transition: u64,
    pub warmup: u64,
}

impl Moment {
    pub fn new(chain: usize, schedule: Schedule, transition: u64) -> Self {
        Self {
            seed: schedule.seed,
            chain,
            transition,
            warmup: schedule.warmup,
        }
    }

    /// The random numbers of a rung.
    pub fn stream(&self, purpose: Purpose, rung: usize) -> Stream {
        // transitions do not come near 2⁴⁸
        let index = (rung as u64) << 48 | self.transition;
        Stream::new(self.seed, self.chain as u64, purpose, index)
    }
}

impl<R: Real> Ladder<R> {
    /// Replicas at draws from the prior, with their samplers; β falls geometrically.
    pub(super) fn start<T: Target<Real = R>>(
        moment: Moment,
        settings: &SamplerSettings,
        target: &mut Tempered<T>,
    ) -> Result<(Self, Samplers<R>), StartError> {
        let count = settings.replicas;
        let mut samplers: Samplers<R> = (0..count).map(|_| settings.sampler()).collect();
        let mut replicas = Vec::with_capacity(count);
        for (at, sampler) in samplers.iter_mut().enumerate() {
            let beta = SMALLEST_BETA.powf((at + 1) as f64 / count as f64);
            target.set_beta(beta);
            let stream = |attempt| {
                let of_attempt = Moment {
                    transition: attempt,
                    ..moment
                };
                of_attempt.stream(Purpose::Initial, at + 1)
            };
            replicas.push(Replica {
                beta,
                state: start_at_prior(moment.chain, stream, &mut **sampler, target)?,
                step_size: sampler.step_size(),
                adaptation: settings.adaptation().filter(|_| moment.warmup > 0),
                is_fresh: true,
            });
        }
        target.set_beta(1.0);
        let ladder = Self {
            replicas,
            exchanges: vec![Exchanges::default(); count + 1],
            arrivals: 0,
        };
        Ok((ladder, samplers))
    }

    /// Samplers as replicas have them, to go on with.
    pub(super) fn samplers(&self, settings: &SamplerSettings) -> Samplers<R> {
        let of = |replica: &Replica<R>| {
            let mut sampler = settings.sampler();
            if let Some(step_size) = replica.step_size {
                sampler.set_step_size(step_size);
            }
            sampler
        };
        self.replicas.iter().map(of).collect()
    }

    /// Puts the temperatures where refusals are equally frequent, if their rates add up along β, in log β between
    /// replicas, as they did since the last time.
    pub(super) fn respace(&mut self, settings: &SamplerSettings) {
        let betas: Vec<f64> = self.replicas.iter().map(|replica| replica.beta).collect();
        let rates = self.exchanges.iter().map(Exchanges::refusal);
        let spaced = spaced(&betas, &rates.collect::<Vec<_>>());
        for (replica, beta) in self.replicas.iter_mut().zip(spaced) {
            scale(&mut replica.state, beta / replica.beta);
            replica.beta = beta;
            if let Some(adaptation) = &replica.adaptation {
                replica.adaptation = settings.adaptation_from(adaptation.average());
            }
        }
        self.exchanges.fill(Exchanges::default());
    }

    /// Step sizes and temperatures stay as they are; exchanges are counted from now on.
    pub(super) fn end_warmup(&mut self, samplers: &mut Samplers<R>) {
        for (replica, sampler) in self.replicas.iter_mut().zip(samplers) {
            if let Some(adaptation) = replica.adaptation.take() {
                sampler.set_step_size(adaptation.average());
                replica.step_size = sampler.step_size();
            }
        }
        self.exchanges.fill(Exchanges::default());
        self.arrivals = 0;
    }

    /// Λ, the sum of the rates of refusal.
    pub fn barrier(&self) -> f64 {
        self.exchanges.iter().map(Exchanges::refusal).sum()
    }

    /// The log evidence, in nats; `None` before all rungs have tried an exchange.
    pub fn log_evidence(&self) -> Option<f64> {
        let of = |exchanges: &Exchanges| {
            (exchanges.tried > 0).then(|| exchanges.log_weights - (exchanges.tried as f64).ln())
        };
        self.exchanges.iter().map(of).sum()
    }
}

/// The state at a β that is so many times larger.
pub(super) fn scale<R: Real>(state: &mut State<R>, times: f64) {
    state.log_ratio *= times;
    let times = R::from_f64(times);
    state.gradient.iter_mut().for_each(|g| *g *= times);
}

/// βs between 1 and 0, as many as `betas`, with equal shares of the `rates` between each two, of which there is one more.
fn spaced(betas: &[f64], rates: &[f64]) -> Vec<f64> {
    let rates: Vec<f64> = rates.iter().map(|rate| rate.max(LEAST_REFUSED)).collect();
    let share = rates.iter().sum::<f64>() / rates.len() as f64;
    let (mut pair, mut passed) = (0, 0.0);
    let of = |number: usize| {
        let aim = share * number as f64;
        while pair + 1 < rates.len() && passed + rates[pair] < aim {
            passed += rates[pair];
            pair += 1;
        }
        let part = ((aim - passed) / rates[pair]).clamp(0.0, 1.0);
        let colder = if pair == 0 { 1.0 } else { betas[pair - 1] };
        match betas.get(pair) {
            Some(hotter) => colder * (hotter / colder).powf(part),
            None => colder * (1.0 - part),
        }
    };
    (1..rates.len()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rates_leave_temperatures_as_they_are() {
        let betas = [0.5, 0.2, 0.01];
        for (found, beta) in spaced(&betas, &[0.3; 4]).into_iter().zip(betas) {
            assert!((found / beta - 1.0).abs() < 1e-12, "{found} {beta}");
        }
    }

    /// Where refusals are frequent there are more temperatures afterwards; they fall, and stay between 1 and 0.
    #[test]
    fn temperatures_go_where_exchanges_are_refused() {
        let cold = spaced(&[0.5, 0.1], &[1.0, 0.0, 0.0]);
        assert!(cold.iter().all(|&beta| beta > 0.5), "{cold:?}");
        let hot = spaced(&[0.5, 0.1], &[0.0, 0.0, 1.0]);
        assert!(hot.iter().all(|&beta| beta < 0.1), "{hot:?}");
        // a quarter of all refusals each: half-way in the first pair, at its end, half-way in the second, in log β
        let some = spaced(&[0.25, 0.01, 0.001], &[0.5, 0.5, 0.0, 0.0]);
        for (found, expected) in some.iter().zip([0.5, 0.25, 0.05]) {
            assert!((found / expected - 1.0).abs() < 0.02, "{some:?}");
        }
        for rates in [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1e-9, 1.0]] {
            let [first, second] = spaced(&[1e-3, 1e-9], &rates)[..] else {
                panic!("two temperatures");
            };
            assert!(
                1.0 > first && first > second && second > 0.0,
                "{first} {second}"
            );
        }
    }

    #[test]
    fn what_is_known_at_a_position_goes_with_it() {
        let state = |position: f64, beta: f64| State {
            position: vec![position],
            log_ratio: -beta * position * position,
            gradient: vec![-2.0 * beta * position],
            momentum: vec![beta],
        };
        let (mut cold, mut hot) = (state(0.5, 1.0), state(2.0, 0.25));
        super::super::exchange::exchange(&mut cold, 1.0, &mut hot, 0.25);
        // momenta stay where they are
        assert_eq!((cold, hot), (state(2.0, 1.0), state(0.5, 0.25)));
    }
}
