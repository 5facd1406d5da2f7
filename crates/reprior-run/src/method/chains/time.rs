//! What chains of a given length take on this machine: the density is timed by itself, and a transition takes so many of it.

use std::sync::Arc;
use std::time::Duration;

use reprior::compute::kernels::with_team;
use reprior::posterior::{EvaluationError, Posterior, Target};
use reprior::sampler::{Method, SamplerSettings, Start};

use super::bench_parts::{noise, shortest};
use super::plan::sizes;
use super::sampler_settings;
use super::timed::{FEWEST_DRAWS, FEWEST_WARMUP};
use crate::failure::Failure;
use crate::method::Plan;
use crate::problem::Problem;
use crate::settings::Precision;
use crate::stored::Stored;
use crate::words::{duration, number};

/// How long is measured.
const MEASURED: Duration = Duration::from_millis(300);
/// Operations of an evaluation, some ten seconds of a core, above which none is made to measure it.
const MOST_OPERATIONS: f64 = 1e12;
/// Points of an ellipse that are tried in a transition: the bracket halves, on average, with each.
const MOST_POINTS: f64 = 20.0;

/// Says what the transitions that were asked for take; where the time was asked for, only if the fewest that are made take longer; nothing
/// where memory is short.
///
/// # Errors
/// A wrong request; a density that cannot be evaluated at a draw of the prior.
pub fn say_time(
    plan: &mut Plan,
    problem: &Problem,
    method: Method,
    threads: usize,
) -> Result<(), Failure> {
    if !plan.fits() {
        return Ok(());
    }
    let minutes = problem.settings.run.minutes;
    let operations = sizes(problem, method).budget().gradient_operations;
    if operations > MOST_OPERATIONS {
        if minutes.is_none() {
            let why = format!(
                "not measured: a gradient is {} operations",
                number(operations)
            );
            plan.say("time", why);
        }
        return Ok(());
    }
    let schedule = problem.settings.schedule();
    let threads = threads.max(1);
    let side_by_side = threads.min(schedule.chains.max(1));
    // some have one more where they do not come out even
    let of_chain = threads / side_by_side;
    let measured = |with_gradient: bool| {
        let precision = problem.settings.sampler.precision;
        with_team(of_chain, || match precision {
            Precision::Auto | Precision::F32 => seconds::<f32>(problem, with_gradient),
            Precision::F64 => seconds::<f64>(problem, with_gradient),
        })
    };
    let what = match method.needs_gradients() {
        true => "gradient",
        false => "density",
    };
    let Some(seconds) = measured(method.needs_gradients())? else {
        if minutes.is_none() {
            plan.say(
                "time",
                "not measured: the density of a draw of the prior cannot be computed".to_owned(),
            );
        }
        return Ok(());
    };
    let rounds = schedule.chains.div_ceil(side_by_side) as f64;
    let sampler = sampler_settings(&problem.settings, method);
    let chains = 1.0 + sampler.replicas as f64;
    let [least, most] = evaluations(&sampler).map(|own| chains * own);
    let of_arrival = f64::from(sampler.max_steps_in_use());
    let arrival = sampler.arrival_transitions(schedule.warmup);
    let at_start = match sampler.start {
        Start::Mode(gradients) => gradients as f64,
        Start::Prior => 0.0,
    };
    // what comes before the method's own transitions takes gradients
    let of_gradient = match method.needs_gradients() || (arrival == 0 && at_start == 0.0) {
        true => seconds,
        false => measured(true)?.unwrap_or(seconds),
    };
    if let Some(minutes) = minutes {
        let fewest = schedule.warmup.min(FEWEST_WARMUP.max(2 * arrival))
            + schedule.thin * schedule.draws.min(FEWEST_DRAWS);
        let own = (fewest.saturating_sub(arrival)) as f64 * seconds * 0.5 * (least + most);
        let before = (0.5 * of_arrival * arrival as f64 + at_start) * of_gradient;
        let all = rounds * (own + before);
        if all > 60.0 * minutes {
            let said = format!("about {}, {fewest} of each chain", duration(all));
            plan.say("time of the fewest transitions", said);
        }
        return Ok(());
    }
    let transitions = schedule.transitions().saturating_sub(arrival) as f64;
    let before = [arrival as f64, of_arrival * arrival as f64 + at_start];
    let [shortest, longest] = [(least, before[0]), (most, before[1])]
        .map(|(own, before)| rounds * (own * transitions * seconds + before * of_gradient));
    let [from, to] = [shortest, longest].map(duration);
    let team = match of_chain {
        1 => String::new(),
        _ => format!(" on {of_chain} threads"),
    };
    let each = format!("{} ms a {what}{team}", number(1e3 * seconds));
    plan.say(
        "time, measured here",
        match most > least {
            true => {
                format!("{each}, {least} to {most} of them a transition: from {from} to {to}")
            }
            false if longest > shortest => {
                format!(
                    "{each}, {least} a transition after the first {arrival}: from {from} to {to}"
                )
            }
            false => format!("{each}, {least} a transition: {from}"),
        },
    );
    plan.note("seconds_per_evaluation", seconds);
    plan.note("seconds_least", shortest);
    plan.note("seconds_most", longest);
    Ok(())
}

/// Evaluations of a transition, at least and at most.
fn evaluations(sampler: &SamplerSettings) -> [f64; 2] {
    match sampler.method {
        Method::HmcInfinite | Method::Hmc | Method::Mams | Method::Nuts => {
            [1.0, f64::from(sampler.longest_trajectory())]
        }
        Method::Elliptical => [1.0, MOST_POINTS],
        Method::Pcn
        | Method::Pcnl
        | Method::Mala
        | Method::Langevin
        | Method::Mclmc
        | Method::Rwm => [1.0; 2],
    }
}

/// Of an evaluation of the density, and of one with its gradient if there is need of it, on the threads that a chain has; nothing where a draw of the prior
/// cannot be evaluated, which chains would get over.
fn seconds<R: Stored>(problem: &Problem, with_gradient: bool) -> Result<Option<f64>, Failure> {
    let model = Arc::new(problem.sampled_model::<R>(&[])?);
    let settings = problem.settings.posterior();
    let mut target = Posterior::new(model, settings).map_err(Failure::request)?;
    let position = noise::<R>(target.dim());
    let mut gradient = vec![R::ZERO; target.dim()];
    let mut failure = None;
    let seconds = shortest(MEASURED, || {
        let found = match with_gradient {
            true => target.log_ratio_and_gradient(&position, &mut gradient),
            false => target.log_ratio(&position),
        };
        failure = failure.take().or(found.err());
    });
    match failure {
        Some(EvaluationError::Recoverable(_)) => Ok(None),
        Some(error) => Err(Failure::run(error.to_string())),
        None => Ok(Some(seconds)),
    }
}
