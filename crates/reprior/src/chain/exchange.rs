//! The transitions of a chain's replicas, and the exchanges of positions among them and with the chain ([`Ladder`] has the formulas).

use super::ladder::{Ladder, Moment, Samplers, scale};
use crate::compute::{Purpose, Real};
use crate::posterior::{EvaluationError, Target, Tempered};
use crate::sampler::{Fatal, Info, SamplerSettings, State, evaluate, metropolis};

/// Transitions before the ladder is adapted for the first time.
const FIRST_ROUND: u64 = 16;

impl<R: Real> Ladder<R> {
    /// One transition of each replica, exchanges with the `chain`'s state among them, and what warm-up changes. The evaluations that it took.
    pub(super) fn advance<T: Target<Real = R>>(
        &mut self,
        moment: Moment,
        chain: &mut State<R>,
        target: &mut Tempered<T>,
        settings: &SamplerSettings,
        samplers: &mut Samplers<R>,
    ) -> Result<Info, Fatal> {
        let mut work = Info::default();
        let mut count = |evaluations: u32, gradients: u32| {
            work.n_evaluations += evaluations;
            work.n_gradients += gradients;
        };
        let transition = moment.transition;
        let (before, is_last) = (transition - 1, transition == moment.warmup);
        // after a warm-up that ends here nothing changes, be it planned so or not
        if before >= FIRST_ROUND && before.is_power_of_two() && transition <= moment.warmup {
            self.respace(settings);
        }
        for (at, (replica, sampler)) in self.replicas.iter_mut().zip(&mut *samplers).enumerate() {
            target.set_beta(replica.beta);
            let rung = at + 1;
            if transition == 1 && replica.adaptation.is_some() {
                let stream = || moment.stream(Purpose::StepSize, rung);
                if let Some(found) = settings.search(target, &replica.state, stream)? {
                    sampler.set_step_size(found.step_size);
                    replica.adaptation = settings.adaptation_from(found.step_size);
                    count(found.n_evaluations, found.n_gradients);
                }
            }
            let mut stream = moment.stream(Purpose::Exchange, rung);
            let info = sampler.step(target, &mut replica.state, &mut stream)?;
            count(info.n_evaluations, info.n_gradients);
            if let Some(adaptation) = &mut replica.adaptation {
                let next = adaptation.update(&info, &replica.state);
                sampler.set_step_size(if is_last { adaptation.average() } else { next });
            }
            replica.step_size = sampler.step_size();
        }
        let [evaluations, gradients] = self.exchange(moment, chain, target, samplers)?;
        count(evaluations, gradients);
        target.set_beta(1.0);
        if is_last {
            self.end_warmup(samplers);
        }
        Ok(work)
    }

    /// Exchanges of every second pair of rungs. The evaluations and gradients that they took.
    fn exchange<T: Target<Real = R>>(
        &mut self,
        moment: Moment,
        chain: &mut State<R>,
        target: &mut Tempered<T>,
        samplers: &mut Samplers<R>,
    ) -> Result<[u32; 2], Fatal> {
        let last = self.replicas.len();
        let mut stream = moment.stream(Purpose::Exchange, 0);
        for pair in (usize::from(!moment.transition.is_multiple_of(2))..last).step_by(2) {
            let (colder, hotter) = self.replicas.split_at_mut(pair);
            let hotter = &mut hotter[0];
            let (state, beta) = match colder.last_mut() {
                Some(replica) => (&mut replica.state, replica.beta),
                None => (&mut *chain, 1.0),
            };
            let delta = beta - hotter.beta;
            let log_ratio = hotter.state.log_ratio / hotter.beta;
            let log_acceptance = delta * (log_ratio - state.log_ratio / beta);
            self.exchanges[pair].add(log_acceptance, delta, log_ratio);
            if !metropolis(log_acceptance, &mut stream).1 {
                continue;
            }
            exchange(state, beta, &mut hotter.state, hotter.beta);
            match colder.last_mut() {
                Some(replica) => std::mem::swap(&mut replica.is_fresh, &mut hotter.is_fresh),
                None => self.arrivals += u64::from(std::mem::take(&mut hotter.is_fresh)),
            }
        }
        if last % 2 != (moment.transition % 2) as usize {
            return Ok([0, 0]);
        }
        let (Some(replica), Some(sampler)) = (self.replicas.last_mut(), samplers.last_mut()) else {
            return Ok([0, 0]);
        };
        let mut position = vec![R::ZERO; chain.position.len()];
        moment
            .stream(Purpose::Exchange, last + 1)
            .fill_normal(&mut position);
        target.set_beta(1.0);
        let log_ratio = evaluate(target.log_ratio(&position))?;
        let log_acceptance = replica.beta * log_ratio - replica.state.log_ratio;
        self.exchanges[last].add(log_acceptance, replica.beta, log_ratio);
        if !metropolis(log_acceptance, &mut stream).1 {
            return Ok([1, 0]);
        }
        target.set_beta(replica.beta);
        match sampler.init(target, position) {
            Ok(state) => {
                let momentum = std::mem::take(&mut replica.state.momentum);
                replica.state = State { momentum, ..state };
                replica.is_fresh = true;
            }
            // its gradient is not finite: a place that cannot be
            Err(EvaluationError::Recoverable(_)) => {}
            Err(EvaluationError::Fatal(message)) => return Err(Fatal(message)),
        }
        Ok(match replica.state.gradient.is_empty() {
            true => [2, 0],
            false => [1, 1],
        })
    }
}

/// Exchanges positions, and what is known at them, between states at two temperatures.
pub(super) fn exchange<R: Real>(
    colder: &mut State<R>,
    beta: f64,
    hotter: &mut State<R>,
    hotter_beta: f64,
) {
    std::mem::swap(&mut colder.position, &mut hotter.position);
    std::mem::swap(&mut colder.gradient, &mut hotter.gradient);
    std::mem::swap(&mut colder.log_ratio, &mut hotter.log_ratio);
    scale(colder, beta / hotter_beta);
    scale(hotter, hotter_beta / beta);
}
