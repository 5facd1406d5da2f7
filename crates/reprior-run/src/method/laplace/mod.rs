//! Laplace approximations and diffusions: a network is trained by minibatches, and draws are made around its mode.

mod check;
mod closed_form;
mod fits;
mod kept;
mod parts;
mod warnings;

pub(crate) use fits::{read as read_fits, write_fits};

use reprior::chain::minibatch::MinibatchChain;
use reprior::laplace::fit::LaplaceFit;
use reprior::network::parameters::ParameterLayout;
use reprior_io::run::{DataType, DrawStore, Group, Number, Selection, Variable};

use self::closed_form::has_closed_form;
use self::fits::{CLOSED_FORM, MODES};
use self::kept::ClosedForm;
use super::minibatch::{
    self, AfterTraining, CurvatureCost, DrawsPredictor, RecordedChains, Resolved, TrainedChain,
    complete, resolve, static_metrics, summarise,
};
use super::{MethodFamily, Plan, Predict, RunContext};
use crate::failure::Failure;
use crate::predictive::PredictionKind;
use crate::problem::Problem;
use crate::read::Recorded;
use crate::record::{group, outputs, variable};
use crate::settings::{MinibatchMethod, Precision, Settings};
use crate::stored::Stored;
use crate::summary::Summary;

/// The least and the most gradients of all rows between the end of training and the mode of a Laplace approximation.
const EVALUATIONS: [usize; 2] = [5, 300];

/// A Laplace approximation, or a diffusion.
pub struct Laplace(pub MinibatchMethod);

/// Gradients of all rows that the way from the end of a training of so many epochs to the mode may take: a quarter of the
/// training's work.
fn evaluations(epochs: u64) -> usize {
    let [least, most] = EVALUATIONS;
    usize::try_from(epochs / 4).map_or(most, |count| count.clamp(least, most))
}

/// Predictions of the linearised network in closed form, where there are any.
fn closed_form(problem: &Problem, chains: u64) -> Option<Vec<Variable>> {
    let test = problem.description.test_rows as u64;
    let kind = problem.kind();
    if test == 0 || !has_closed_form(problem) {
        return None;
    }
    let dims = [("mode_chain", chains), ("test_row", test), outputs(problem)];
    let text = "means in the target's own units, or logarithms of class probabilities, of the linearised network";
    let mut variables = vec![variable(kind.variable(), DataType::F64, &dims, text)];
    if kind != PredictionKind::Probabilities {
        let text = "variances of the function, without noise";
        variables.push(variable("variance", DataType::F64, &dims, text));
    }
    Some(variables)
}

impl Laplace {
    fn is_linearised(&self, settings: &Settings) -> bool {
        settings.laplace.is_linearised(self.0)
    }

    /// Groups of draws that others do not have.
    fn groups(&self, problem: &Problem, layout: &ParameterLayout) -> Vec<Group> {
        let settings = &problem.settings;
        if !self.is_linearised(settings) {
            return Vec::new();
        }
        let chains = settings.schedule().chains as u64;
        let dims = [("mode_chain", chains), ("coordinate", layout.len() as u64)];
        let text = "weights that the network was linearised at";
        let data_type = settings.sampler.precision.data_type();
        let weights = variable("weights", data_type, &dims, text);
        let mut groups = vec![group(settings, MODES, None, vec![weights])];
        let predictions = closed_form(problem, chains);
        groups.extend(predictions.map(|own| group(settings, CLOSED_FORM, None, own)));
        groups
    }

    fn predictor_in<'a, R: Stored + Number>(
        &self,
        problem: &'a Problem,
        run: &'a Recorded,
    ) -> Result<Box<dyn Predict + 'a>, Failure> {
        let mut modes = Vec::new();
        if self.is_linearised(&problem.settings) {
            let found = run.reader.read::<R>(MODES, "weights", &Selection::all());
            let found = found.map_err(|_| {
                Failure::request("the run has not ended yet: go on with `reprior resume`")
            })?;
            modes = found.values;
        }
        let draws = DrawsPredictor::<R> {
            problem,
            run,
            modes,
            every: 1,
        };
        match self.is_linearised(&problem.settings) {
            true => ClosedForm::of(problem, draws),
            false => Ok(Box::new(draws)),
        }
    }
}

impl AfterTraining for Laplace {
    fn prepare<R: Stored>(
        &self,
        chain: MinibatchChain<R>,
        trained: TrainedChain<'_, R>,
    ) -> Result<MinibatchChain<R>, Failure> {
        let (settings, resolved) = (&trained.problem.settings, trained.resolved);
        let priors = &resolved.settings.priors;
        let draws = settings.laplace.draws(self.0, trained.layout, priors)?;
        let around = LaplaceFit::new(
            draws,
            trained.network,
            trained.data.clone(),
            trained.held_out.cloned(),
            settings.laplace.curvature_rows.unwrap_or(usize::MAX),
            [resolved.settings.seed, trained.chain],
            trained.threads,
        );
        let around = around.map_err(Failure::request)?;
        Ok(chain.with_laplace(match resolved.updates {
            // weights that were given stay where they are
            0 => around,
            _ => around.with_training(priors.clone(), evaluations(resolved.epochs)),
        }))
    }

    fn finish<R: Stored>(
        &self,
        problem: &Problem,
        chains: &mut RecordedChains<R>,
        place: &RunContext<'_>,
        store: &DrawStore,
    ) -> Result<(), Failure> {
        let is_linearised = self.is_linearised(&problem.settings);
        fits::finish(problem, is_linearised, chains, place.folder, store)
    }
}

impl MethodFamily for Laplace {
    fn check(&self, settings: &Settings) -> Result<(), Failure> {
        minibatch::check(settings, self.0)?;
        let validation = settings.minibatch.validation.unwrap_or(0);
        let likelihood = settings.model.likelihood();
        settings.laplace.check(self.0, likelihood, validation)
    }

    fn complete(&self, problem: &mut Problem) -> Result<(), Failure> {
        let resolved: Resolved = complete(problem, self.0, |problem, layout| {
            match self.is_linearised(&problem.settings) {
                true => problem.settings.sampler.precision.bytes() * layout.len(),
                false => 0,
            }
        })?;
        let settings = &mut problem.settings;
        let (likelihood, rows) = (settings.model.likelihood(), resolved.train);
        settings.laplace.write_out(self.0, likelihood, rows);
        // a wrong request is refused before any training
        let layout = ParameterLayout::new(&problem.architecture);
        let priors = &resolved.settings.priors;
        let draws = problem.settings.laplace.draws(self.0, &layout, priors);
        draws.map(|_| ())
    }

    fn plan(&self, problem: &Problem) -> Result<Plan, Failure> {
        let settings = &problem.settings;
        let resolved = resolve(problem, self.0)?;
        let network = minibatch::network(problem)?;
        let layout = ParameterLayout::new(&network);
        let rows = settings.laplace.curvature_rows;
        let sizes = [
            rows.map_or(resolved.train, |rows| rows.min(resolved.train)),
            network.outputs,
        ];
        let real = settings.sampler.precision.bytes();
        let (bytes, products) = settings.laplace.cost(self.0, &layout, real, sizes);
        let curvature = CurvatureCost {
            bytes,
            products,
            per: match self.0 {
                MinibatchMethod::LaplaceDiffusion => " a draw",
                _ => " ",
            },
            groups: self.groups(problem, &layout),
            kept: match self.is_linearised(settings) && has_closed_form(problem) {
                true => settings.laplace.kept_bytes(&layout, real, sizes),
                false => 0,
            },
        };
        minibatch::plan(problem, &resolved, curvature)
    }

    fn sample(
        &self,
        problem: &mut Problem,
        plan: &Plan,
        place: &RunContext<'_>,
    ) -> Result<(), Failure> {
        let resolved = resolve(problem, self.0)?;
        match problem.settings.sampler.precision {
            Precision::Auto | Precision::F32 => {
                minibatch::sample::<f32>(problem, &resolved, plan, place, self)
            }
            Precision::F64 => minibatch::sample::<f64>(problem, &resolved, plan, place, self),
        }
    }

    fn summarise(&self, run: &Recorded) -> Result<(Summary, Vec<String>), Failure> {
        let (mut summary, mut minibatch) = summarise(run, self.0)?;
        if run.draws == run.settings.schedule().draws && self.is_linearised(&run.settings) {
            minibatch.metrics_in_closed_form = static_metrics(run, CLOSED_FORM)?;
        }
        minibatch.laplace = fits::read(&run.files);
        let evidences = minibatch.laplace.iter();
        let evidences = evidences.map(|fit| fit.log_marginal_likelihood);
        summary.log_marginal_likelihood = evidences.reduce(f64::max);
        let warnings = warnings::warnings(&summary, &minibatch, &run.settings, self.0);
        summary.minibatch = Some(minibatch);
        Ok((summary, warnings))
    }

    fn predictor<'a>(
        &self,
        problem: &'a Problem,
        run: &'a Recorded,
    ) -> Result<Box<dyn Predict + 'a>, Failure> {
        match problem.settings.sampler.precision {
            Precision::Auto | Precision::F32 => self.predictor_in::<f32>(problem, run),
            Precision::F64 => self.predictor_in::<f64>(problem, run),
        }
    }
}
