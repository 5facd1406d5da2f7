//! Minibatch methods: Langevin dynamics, and what they are compared with; and the training of Laplace approximations.

mod check;
mod plan;
mod predict;
mod record;
mod resolve;
mod run;
mod schema;
mod score;
mod summary;

pub use check::check;
pub use plan::{CurvatureCost, plan};
pub use predict::{BesidePositions, DrawsPredictor};
pub use resolve::{Resolved, complete, resolve};
pub use run::{AfterTraining, RecordedChains, TrainedChain, network, sample};
pub use summary::{static_metrics, summarise};

use super::{MethodFamily, Plan, Predict, RunContext};
use crate::failure::Failure;
use crate::problem::Problem;
use crate::read::Recorded;
use crate::settings::{MinibatchMethod, Precision, Settings};
use crate::summary::Summary;

/// One of the methods whose draws are positions, or made of them.
pub struct Minibatches(pub MinibatchMethod);

impl MethodFamily for Minibatches {
    fn check(&self, settings: &Settings) -> Result<(), Failure> {
        let likelihood = settings.model.likelihood();
        settings.laplace.check_flags(self.0, likelihood)?;
        check(settings, self.0)
    }

    fn complete(&self, problem: &mut Problem) -> Result<(), Failure> {
        complete(problem, self.0, |_, _| 0).map(|_| ())
    }

    fn plan(&self, problem: &Problem) -> Result<Plan, Failure> {
        let resolved = resolve(problem, self.0)?;
        let groups = schema::of_mean(problem).into_iter().collect();
        let curvature = CurvatureCost {
            groups,
            ..CurvatureCost::default()
        };
        plan(problem, &resolved, curvature)
    }

    fn sample(
        &self,
        problem: &mut Problem,
        plan: &Plan,
        place: &RunContext<'_>,
    ) -> Result<(), Failure> {
        let (resolved, after) = (resolve(problem, self.0)?, run::PredictOfMeans);
        match problem.settings.sampler.precision {
            Precision::Auto | Precision::F32 => {
                sample::<f32>(problem, &resolved, plan, place, &after)
            }
            Precision::F64 => sample::<f64>(problem, &resolved, plan, place, &after),
        }
    }

    fn summarise(&self, run: &Recorded) -> Result<(Summary, Vec<String>), Failure> {
        let (mut summary, minibatch) = summarise(run, self.0)?;
        let warnings = summary::warnings(&summary, &minibatch, &run.settings, self.0);
        summary.minibatch = Some(minibatch);
        Ok((summary, warnings))
    }

    fn predictor<'a>(
        &self,
        problem: &'a Problem,
        run: &'a Recorded,
    ) -> Result<Box<dyn Predict + 'a>, Failure> {
        Ok(match problem.settings.sampler.precision {
            Precision::Auto | Precision::F32 => Box::new(DrawsPredictor::<f32> {
                problem,
                run,
                modes: Vec::new(),
                every: 1,
            }),
            Precision::F64 => Box::new(DrawsPredictor::<f64> {
                problem,
                run,
                modes: Vec::new(),
                every: 1,
            }),
        })
    }
}
