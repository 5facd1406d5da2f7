//! The family of `--method smc`: settings, sizes and summary are those of chains of the method that moves particles, one chain a replicate.

use super::annealed::{KERNEL, annealing_settings, sample};
use super::{Chains, check, predict, sampler_settings, summary};
use crate::failure::Failure;
use crate::method::{MethodFamily, Plan, Predict, RunContext};
use crate::problem::Problem;
use crate::read::Recorded;
use crate::settings::{Auto, Precision, Settings, StartName};
use crate::summary::Summary;
use crate::words::bytes;

/// Annealed particles.
pub struct Particles;

impl MethodFamily for Particles {
    fn check(&self, settings: &Settings) -> Result<(), Failure> {
        check::check(settings, KERNEL)?;
        let refuse = |flag: &str| {
            Err(Failure::request(format!(
                "{flag} belongs to chains, not to smc, whose particles come from the prior over temperatures: leave it out"
            )))
        };
        if settings.run.warmup.is_some_and(|warmup| warmup > 0) {
            return refuse("--warmup");
        }
        if settings.sampler.arrival.is_some_and(|arrival| arrival > 0) {
            return refuse("--arrival");
        }
        if settings
            .sampler
            .replicas
            .is_some_and(|replicas| replicas > 0)
        {
            return refuse("--replicas");
        }
        if settings.sampler.start == Auto::Chosen(StartName::Mode) {
            return refuse("--start mode");
        }
        annealing_settings(settings)
            .check()
            .map_err(Failure::request)
    }

    fn write_defaults(&self, settings: &mut Settings) {
        let schedule = settings.schedule();
        settings.run.chains = Some(schedule.chains);
        settings.run.warmup = Some(0);
        settings.run.draws = Some(schedule.draws);
        settings.run.thin = Some(schedule.thin);
        let in_use = sampler_settings(settings, KERNEL);
        let sampler = &mut settings.sampler;
        if sampler.step_size.is_none() && sampler.target_acceptance.is_none() {
            sampler.target_acceptance = KERNEL.default_target_acceptance();
        }
        sampler.damping = in_use.damping_in_use();
        sampler.trajectory = in_use.trajectory_in_use();
        sampler.arrival = Some(0);
        sampler.start = StartName::Prior.into();
        if settings.model.scale_prior().is_some() {
            settings.sampler.input_reduction = reprior::model::InputReduction::Off;
        }
    }

    fn complete(&self, problem: &mut Problem) -> Result<(), Failure> {
        Chains(KERNEL).complete(problem)
    }

    fn plan(&self, problem: &Problem) -> Result<Plan, Failure> {
        let mut plan = Chains(KERNEL).plan(problem)?;
        let sizes = super::plan::sizes(problem, KERNEL);
        let schedule = problem.settings.schedule();
        // position, gradient and momentum of each particle
        let particle = (3 * sizes.dimension() * sizes.precision.bytes()) as u64;
        let all = particle
            .saturating_mul(schedule.draws)
            .saturating_mul(schedule.chains as u64);
        plan.memory_bytes = plan.memory_bytes.saturating_add(all);
        plan.note("memory_bytes", plan.memory_bytes);
        plan.say("memory, particles besides", bytes(all as f64));
        plan.note("memory_bytes_of_particles", all);
        Ok(plan)
    }

    fn sample(
        &self,
        problem: &mut Problem,
        plan: &Plan,
        place: &RunContext<'_>,
    ) -> Result<(), Failure> {
        match problem.settings.sampler.precision {
            Precision::Auto | Precision::F32 => sample::<f32>(problem, plan, place),
            Precision::F64 => sample::<f64>(problem, plan, place),
        }
    }

    fn summarise(&self, run: &Recorded) -> Result<(Summary, Vec<String>), Failure> {
        summary::summarise(run, KERNEL)
    }

    fn predictor<'a>(
        &self,
        problem: &'a Problem,
        run: &'a Recorded,
    ) -> Result<Box<dyn Predict + 'a>, Failure> {
        Ok(Box::new(predict::ChainPredictor::new(problem, run)))
    }
}
