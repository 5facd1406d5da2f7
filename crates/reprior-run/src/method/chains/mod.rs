//! Chains on all data.

pub mod annealed;
pub mod bench;
mod bench_parts;
mod budget;
mod check;
mod checkpoint;
mod ladder;
mod pace;
mod particles;
mod plan;
mod predict;
mod record;
mod run;
mod schema;
mod sizes;
mod start;
mod summary;
mod tangent;
mod time;
mod timed;
mod warnings;

use reprior::chain::Schedule;
use reprior::model::InputReduction;
use reprior::model::likelihood::name::LikelihoodName;
use reprior::network::Composition;
use reprior::posterior::Coordinates;
use reprior::sampler::{Method, SamplerSettings, Start};

pub use self::checkpoint::{restore_chain, save_chain};
pub use self::particles::Particles;
use self::sizes::ProblemSizes;
use self::start::GivenStart;
pub use self::start::is_run;
use self::timed::{FEWEST_WARMUP, most_draws};
use super::{MethodFamily, Plan, Predict, RunContext, keeps_states};
use crate::failure::Failure;
use crate::problem::Problem;
use crate::read::Recorded;
use crate::record::Load;
use crate::settings::{Auto, MINUTES_UNTIL, Precision, RunSettings, Settings, StartName, Until};
use crate::summary::Summary;

/// Chains of one method.
pub struct Chains(pub Method);

/// Minutes of a run of which no length is given.
const DEFAULT_MINUTES: f64 = 1.0;
/// How many times the usual draws it makes at most: what is kept of them is spread over so many, and it may end with the usual ones.
const MORE_DRAWS: u64 = 4;
/// Transitions of warm-up at most where time is given.
const MOST_WARMUP: u64 = 5000;

/// Gradients of the search for a mode, at most: three layers of 32 on 1,202 rows converge in 300 to 700.
const MODE_GRADIENTS: usize = 1000;

/// Of a gradient: where it takes more, trajectories are shorter, so that a minute has room for `TRANSITIONS_A_MINUTE` of each of four
/// chains on two threads that make 4·10¹⁰ operations a second each. By operations, not by the clock: a run is the same on every machine. A
/// gradient of layers of 32 takes 1.3 to 2.5 times as long as that, and counting it so was tried: trajectories of 50 in place of 100 steps, for
/// the same time, had a test NLL of 2.66 in place of 2.62 on power_plant, and of 64 in place of 128 -1.405 in place of -1.425 on kin8nm.
const OPERATIONS_A_MINUTE: f64 = 60.0 * 4e10 * 2.0 / 4.0;
const TRANSITIONS_A_MINUTE: f64 = 84.0;
/// However long gradients take, trajectories have so many steps.
const FEWEST_STEPS: f64 = 8.0;

/// Steps of a trajectory at most where gradients of so many operations have so many minutes; none where the `usual` number fits.
fn fitting_steps(operations: f64, minutes: f64, usual: u32) -> Option<u32> {
    let steps = minutes * OPERATIONS_A_MINUTE / (TRANSITIONS_A_MINUTE * operations);
    (steps < f64::from(usual)).then(|| steps.max(FEWEST_STEPS) as u32)
}

/// Gradients of the search for a mode at most: half of what the fewest transitions of warm-up take, where trajectories are short.
fn mode_gradients(max_steps: Option<u32>) -> usize {
    max_steps.map_or(MODE_GRADIENTS, |steps| {
        MODE_GRADIENTS.min(FEWEST_WARMUP as usize * steps as usize / 2)
    })
}

/// The library's settings of the method.
pub fn sampler_settings(settings: &Settings, method: Method) -> SamplerSettings {
    let sampler = &settings.sampler;
    SamplerSettings {
        method,
        step_size: sampler.step_size,
        target_acceptance: sampler.target_acceptance,
        energy_variance: sampler.energy_variance,
        damping: sampler.damping,
        metropolis: sampler.metropolis.unwrap_or(true),
        trajectory: sampler.trajectory,
        max_steps: sampler.max_steps,
        // prior draws of tangent coordinates are near the posterior, and their gradients dear
        arrival: match settings.coordinates() {
            Coordinates::Tangent => sampler.arrival.or(Some(0)),
            _ => sampler.arrival,
        },
        start: match &sampler.start {
            Auto::Chosen(StartName::Mode) => Start::Mode(mode_gradients(sampler.max_steps)),
            _ => Start::Prior,
        },
        replicas: sampler.replicas.unwrap_or(0),
    }
}

/// Operations of a gradient of the default method over all of so many rows.
pub(super) fn gradient_operations(
    settings: &Settings,
    architecture: &Composition,
    rows: usize,
) -> f64 {
    let (method, architecture) = (Method::default(), architecture.clone());
    let sizes = ProblemSizes::new(settings, method, architecture, [rows, 0]);
    sizes.budget().gradient_operations
}

/// Writes the limit of time out, and when to end before it, where lengths are open; and lengths that it alone bounds, where it is given.
fn write_time(run: &mut RunSettings, usual: Schedule) {
    let is_given = run.minutes.is_some() || run.until.is_some();
    let is_open = [run.warmup, run.draws, run.thin] == [None; 3];
    if is_given {
        run.minutes.get_or_insert(MINUTES_UNTIL);
        run.warmup.get_or_insert(MOST_WARMUP);
        run.draws.get_or_insert(most_draws(run.until.is_some()));
    } else if is_open {
        run.minutes = Some(DEFAULT_MINUTES);
        run.until = Some(Until::agreement(usual.chains));
        run.draws = Some(MORE_DRAWS * usual.draws);
    }
}

impl MethodFamily for Chains {
    fn check(&self, settings: &Settings) -> Result<(), Failure> {
        check::check(settings, self.0)
    }

    fn write_defaults(&self, settings: &mut Settings) {
        let usual = settings.schedule();
        write_time(&mut settings.run, usual);
        let schedule = settings.schedule();
        settings.run.chains = Some(schedule.chains);
        settings.run.warmup = Some(schedule.warmup);
        settings.run.draws = Some(schedule.draws);
        settings.run.thin = Some(schedule.thin);
        let sampler = &mut settings.sampler;
        if sampler.step_size.is_none() && sampler.target_acceptance.is_none() {
            sampler.target_acceptance = self.0.default_target_acceptance();
        }
        if sampler.step_size.is_none() && sampler.energy_variance.is_none() {
            sampler.energy_variance = self.0.default_energy_variance();
        }
        let in_use = sampler_settings(settings, self.0);
        let learns_scales = settings.model.scale_prior().is_some();
        let sampler = &mut settings.sampler;
        if learns_scales {
            sampler.input_reduction = InputReduction::Off;
        }
        sampler.damping = in_use.damping_in_use();
        sampler.trajectory = in_use.trajectory_in_use();
        sampler.arrival = Some(in_use.arrival_transitions(schedule.warmup));
        if self.0.may_skip_metropolis() {
            sampler.metropolis.get_or_insert(true);
        }
    }

    fn complete(&self, problem: &mut Problem) -> Result<(), Failure> {
        // the likelihood may be the data's choice, and the coordinates go with it
        problem.settings.sampler.coordinates = Some(problem.settings.coordinates());
        problem.choose_precision();
        let sizes = plan::sizes(problem, self.0);
        if problem.run.is_none()
            && let Some(start) = GivenStart::of(problem)?
        {
            // a wrong one is refused before any work
            start.check(sizes.dimension())?;
        }
        let settings = &mut problem.settings;
        let has_steps = matches!(
            self.0,
            Method::HmcInfinite | Method::Hmc | Method::Mams | Method::Nuts
        );
        if let Some(minutes) = settings.run.minutes
            && has_steps
            && settings.sampler.max_steps.is_none()
        {
            let chains = 1.0 + sizes.replicas as f64;
            let operations = chains * sizes.budget().gradient_operations;
            let usual = sampler_settings(settings, self.0).longest_trajectory();
            settings.sampler.max_steps = fitting_steps(operations, minutes, usual);
        }
        if settings.coordinates() == Coordinates::Tangent {
            settings.sampler.determinant = Some(settings.determinant(sizes.dimension()));
        }
        let numbers = [sizes.kept_numbers(), sizes.all_parameters()];
        let state = plan::checkpoint_bytes(&sizes);
        let chains = sizes.chains as u64;
        let state = match keeps_states(&problem.settings, chains, state) {
            true => state,
            false => 0,
        };
        let load = Load {
            is_marginal: problem.settings.model.likelihood() == LikelihoodName::Gaussian,
            ..Load::of(problem, numbers, state)
        };
        load.resolve(&mut problem.settings);
        Ok(())
    }

    fn plan(&self, problem: &Problem) -> Result<Plan, Failure> {
        plan::plan(problem, self.0)
    }

    fn say_time(&self, plan: &mut Plan, problem: &Problem, threads: usize) -> Result<(), Failure> {
        time::say_time(plan, problem, self.0, threads)
    }

    fn sample(
        &self,
        problem: &mut Problem,
        plan: &Plan,
        place: &RunContext<'_>,
    ) -> Result<(), Failure> {
        match problem.settings.sampler.precision {
            Precision::Auto | Precision::F32 => run::sample::<f32>(problem, self.0, plan, place),
            Precision::F64 => run::sample::<f64>(problem, self.0, plan, place),
        }
    }

    fn summarise(&self, run: &Recorded) -> Result<(Summary, Vec<String>), Failure> {
        summary::summarise(run, self.0)
    }

    fn predictor<'a>(
        &self,
        problem: &'a Problem,
        run: &'a Recorded,
    ) -> Result<Box<dyn Predict + 'a>, Failure> {
        Ok(Box::new(predict::ChainPredictor::new(problem, run)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reprior::sampler::MAX_STEPS;

    /// The default network on 4,400, 7,700 and 16,512 rows, and the most that is not left to minibatches.
    #[test]
    fn trajectories_are_as_long_as_the_time_allows() {
        let fitting = |operations, minutes| fitting_steps(operations, minutes, MAX_STEPS);
        assert_eq!(fitting(1e8, 1.0), None);
        assert_eq!(fitting(1.8e8, 1.0), Some(79));
        assert_eq!(fitting(5e8, 1.0), Some(28));
        assert_eq!(fitting(5e8, 10.0), None);
        assert_eq!(fitting(1e10, 1.0), Some(8));
        // trees are longer
        assert_eq!(fitting_steps(1e8, 1.0, 1023), Some(142));
        assert_eq!(mode_gradients(None), 1000);
        assert_eq!(mode_gradients(Some(128)), 1000);
        assert_eq!(mode_gradients(Some(28)), 224);
        assert_eq!(mode_gradients(Some(8)), 64);
    }

    #[test]
    fn what_is_left_open_of_a_run_against_the_clock_has_bounds() {
        let usual = Settings::default().schedule();
        let written = |minutes, until: Option<&str>, draws| {
            let until = until.map(|text| text.parse().unwrap());
            let mut run = RunSettings {
                minutes,
                until,
                draws,
                ..RunSettings::default()
            };
            write_time(&mut run, usual);
            (run.minutes, run.warmup, run.draws)
        };
        assert_eq!(
            written(Some(3.0), None, None),
            (Some(3.0), Some(5000), Some(5000))
        );
        // what goes on until its draws say enough ends for want of time, not of room
        assert_eq!(
            written(None, Some("rhat<1.01"), None),
            (Some(10.0), Some(5000), Some(20_000))
        );
        assert_eq!(
            written(Some(3.0), Some("ess>400"), Some(7)),
            (Some(3.0), Some(5000), Some(7))
        );
        // of no given length: the usual warm-up, and four times the usual draws
        assert_eq!(
            written(None, None, None),
            (Some(1.0), None, Some(4 * usual.draws))
        );
        assert_eq!(written(None, None, Some(7)), (None, None, Some(7)));
    }
}
