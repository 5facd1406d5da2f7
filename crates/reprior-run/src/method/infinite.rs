//! `--method nngp` and `--method ntk`: the posterior of the network with infinitely wide layers, in closed form, as a run of one
//! chain with one draw, whose mean and standard deviation are the posterior's own.

use std::time::Instant;

use reprior::compute::kernels::with_team;
use reprior::compute::{Matrix, matrix};
use reprior::gaussian_process::GaussianProcess;
use reprior::gaussian_process::evidence::Covariance;
use reprior::model::Noise;
use reprior::model::likelihood::name::LikelihoodName;
use reprior::network::infinite::{InfiniteNetwork, Kernels, Kinds};
use reprior_io::run::{Draws, Schema, Values, checkpoint};
use serde_json::json;

use super::{MethodFamily, Plan, Predict, Predictions, RunContext};
use crate::failure::{Failure, name_of};
use crate::predictive::PredictiveDraws;
use crate::problem::Problem;
use crate::read::{ExactLeaveOneOut, LEAVE_ONE_OUT, Rates, Recorded};
use crate::record::{self, PREDICTIONS, group, log_unit, predictions, targets, with_names};
use crate::settings::{Precision, Settings, given};
use crate::summary::Summary;
use crate::words::number;

record::statistics!(
    /// Of the factorisation, and of the predictions for the test rows.
    ClosedFormStatistics {
        log_marginal_likelihood: f64 = "logarithm of the density of the standardised training targets, in nats",
        n_jitter: i64 = "times that the diagonal had to be raised for the factorisation",
        n_clamped: i64 = "predictive variances that rounding made negative, set to 0",
    }
);

/// Bytes of the checkpoint, which says only how long it took.
const CHECKPOINT: u64 = 1024;

/// Test rows whose kernels are computed at a time.
const BLOCK_ROWS: usize = 1000;

/// The posterior of infinitely wide layers by one of their kernels.
pub struct Infinite(pub Covariance);

/// The posterior for one problem.
struct InfinitePosterior<'a> {
    problem: &'a Problem,
    network: InfiniteNetwork,
    covariance: Covariance,
    process: GaussianProcess,
    /// Standardised training inputs, row-major.
    inputs: Vec<f64>,
    threads: usize,
}

/// One of the kernels.
fn of(kernels: Kernels, covariance: Covariance) -> Vec<f64> {
    match covariance {
        Covariance::Nngp => kernels.nngp,
        Covariance::Ntk => kernels.ntk,
    }
}

fn kinds(covariance: Covariance) -> Kinds {
    match covariance {
        Covariance::Nngp => Kinds::Nngp,
        Covariance::Ntk => Kinds::NngpAndNtk,
    }
}

/// Bytes of the kernels and factors of `rows` training rows.
fn bytes_needed(covariance: Covariance, rows: usize) -> f64 {
    let blocks = match covariance {
        Covariance::Nngp => 1.0,
        Covariance::Ntk => 2.0,
    };
    // the kernel and its factor, or both kernels; and a block of test rows
    8.0 * rows as f64 * (2.0 * rows as f64 + 3.0 * blocks * BLOCK_ROWS as f64)
}

fn schema(problem: &Problem) -> Schema {
    let settings = &problem.settings;
    let statistics = ClosedFormStatistics::variables();
    let mut groups = vec![group(
        settings,
        "sample_stats",
        Some(Draws::new(1)),
        statistics,
    )];
    let text = [
        "posterior mean of the function, in the target's own units",
        "posterior standard deviation of the function, without observation noise",
    ];
    groups.extend(predictions(problem, Draws::new(1), text));
    groups.extend(targets(problem));
    with_names(problem, 1, groups)
}

impl<'a> InfinitePosterior<'a> {
    /// Kernels and factorisation.
    ///
    /// # Errors
    /// A wrong request: a network without an infinitely wide limit.
    fn new(problem: &'a Problem, covariance: Covariance) -> Result<Self, Failure> {
        let rows = problem.description.train_rows;
        let network = network(problem)?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let inputs = problem.arranged(&problem.train.inputs);
        let kernels = network
            .kernels(problem.rows_of(&inputs), kinds(covariance), threads)
            .map_err(Failure::run)?;
        let noise = problem.settings.model.noise().typical(1)[0];
        let kernel = of(kernels, covariance);
        let targets = &problem.targets;
        let factorise = || GaussianProcess::new(&kernel, rows, targets, noise);
        let process = with_team(threads, factorise).map_err(Failure::run)?;
        Ok(Self {
            problem,
            network,
            covariance,
            process,
            inputs,
            threads,
        })
    }

    /// Leave-one-out cross-validation in closed form.
    fn leave_one_out(&self) -> ExactLeaveOneOut {
        let unit = log_unit(&self.problem.output_maps());
        let found = with_team(self.threads, || self.process.leave_one_out());
        let [log_densities, in_sample] =
            found.map(|all| all.into_iter().map(|density| density - unit).collect());
        ExactLeaveOneOut {
            log_densities,
            in_sample,
        }
    }
}

/// The network with its limit.
///
/// # Errors
/// A wrong request: a network without one.
fn network(problem: &Problem) -> Result<InfiniteNetwork, Failure> {
    let method = problem.settings.sampler.method();
    InfiniteNetwork::new(&problem.architecture)
        .map_err(|error| Failure::request(format!("--method {method}: {error}")))
}

impl Predict for InfinitePosterior<'_> {
    fn covariance(&mut self, inputs: &[f64]) -> Result<Option<Vec<f64>>, Failure> {
        let one = self.covariance_of(inputs)?;
        let maps = self.problem.output_maps();
        let of_output = |scale: f64| one.iter().map(move |x| scale * scale * x);
        Ok(Some(
            maps.iter().flat_map(|map| of_output(map.scale)).collect(),
        ))
    }

    fn predict(&mut self, inputs: &[f64]) -> Result<Predictions, Failure> {
        let mut clamped = 0;
        let problem = self.problem;
        let (covariance, maps) = (self.covariance, problem.output_maps());
        let kind = problem.kind();
        let mut block = PredictiveDraws {
            kind,
            rows: inputs.len() / problem.architecture.inputs(),
            outputs: maps.len(),
            mean: Vec::new(),
            variance: Vec::new(),
        };
        let spread = kind.spread(maps.len());
        let train = problem.rows_of(&self.inputs);
        for part in inputs.chunks(BLOCK_ROWS * problem.architecture.inputs()) {
            let test = problem.rows_of(part);
            let kinds = kinds(covariance);
            let cross = self.network.cross_kernels(train, test, kinds, self.threads);
            let prior = self.network.diagonals(test, kinds, self.threads);
            let cross = of(cross.map_err(Failure::request)?, covariance);
            let prior = of(prior.map_err(Failure::request)?, covariance);
            let means = self.process.mean(&cross).map_err(Failure::run)?;
            let variances = self
                .process
                .variance(&cross, &prior)
                .map_err(Failure::run)?;
            let rows = test.nrows();
            clamped += variances.clamped;
            for (row, variance) in variances.values.iter().enumerate() {
                let own = maps.iter().enumerate();
                block
                    .mean
                    .extend(own.map(|(output, map)| map.restore(means[output * rows + row])));
                let scales = maps.iter().take(spread);
                block
                    .variance
                    .extend(scales.map(|map| map.scale.powi(2) * variance));
            }
        }
        let noise = self.process.noise();
        let squares = maps.iter().take(spread);
        Ok(Predictions {
            block,
            noise: squares.map(|map| (map.scale * noise).powi(2)).collect(),
            clamped,
        })
    }
}

impl InfinitePosterior<'_> {
    /// Posterior covariance of the function between these inputs, in standardised units, the same for every output. rows² numbers.
    fn covariance_of(&self, inputs: &[f64]) -> Result<Vec<f64>, Failure> {
        let problem = self.problem;
        let (train, test) = (problem.rows_of(&self.inputs), problem.rows_of(inputs));
        let kinds = kinds(self.covariance);
        let cross = self.network.cross_kernels(train, test, kinds, self.threads);
        let prior = self.network.kernels(test, kinds, self.threads);
        let cross = of(cross.map_err(Failure::request)?, self.covariance);
        let prior = of(prior.map_err(Failure::request)?, self.covariance);
        let found = self.process.covariance(&cross, &prior);
        found.map_err(Failure::run)
    }
}

impl Problem {
    /// Row-major inputs as a matrix with a row for each.
    fn rows_of<'a>(&self, inputs: &'a [f64]) -> Matrix<'a, f64> {
        let columns = self.architecture.inputs();
        matrix(inputs, columns, inputs.len() / columns).transpose()
    }
}

impl MethodFamily for Infinite {
    fn check(&self, settings: &Settings) -> Result<(), Failure> {
        let (method, likelihood) = (settings.sampler.method(), settings.model.likelihood());
        let refuse = |text: String| Err(Failure::Request(text));
        if likelihood != LikelihoodName::Gaussian {
            return refuse(format!(
                "--method {method} is exact for the gaussian likelihood only, not for {likelihood}"
            ));
        }
        if settings.model.learns_noise() {
            return refuse(format!(
                "--method {method} needs a known noise: give a number, or --noise auto"
            ));
        }
        if matches!(settings.model.noise(), Noise::Known(scales) if scales.len() > 1) {
            return refuse(format!(
                "--method {method} has one noise for all outputs: give one number"
            ));
        }
        let all = [
            given(&settings.sampler),
            given(&settings.run),
            given(&settings.minibatch),
            given(&settings.laplace),
        ];
        let own = [
            "--method",
            "--precision",
            "--seed",
            "--input-reduction",
            "--space",
        ];
        let others = all.iter().flatten();
        match others
            .into_iter()
            .find(|flag| !own.contains(&flag.as_str()))
        {
            Some(flag) => refuse(format!(
                "{flag} belongs to methods with chains; {method} is a closed form: leave it out"
            )),
            None => Ok(()),
        }
    }

    fn complete(&self, problem: &mut Problem) -> Result<(), Failure> {
        if problem.settings.sampler.precision == Precision::Auto {
            problem.settings.sampler.precision = Precision::F32;
        }
        Ok(())
    }

    fn plan(&self, problem: &Problem) -> Result<Plan, Failure> {
        let rows = problem.description.train_rows;
        network(problem)?;
        let memory = bytes_needed(self.0, rows) as u64;
        let mut plan = Plan::new(schema(problem), [memory, CHECKPOINT], |_| {
            format!(": the kernels of {rows} rows are too large; take fewer with --train")
        });
        let operations = (rows as f64).powi(3) / 3.0;
        plan.say("training rows", rows);
        let million = format!("{} million", number(operations / 1e6));
        plan.say("operations of the factorisation", million);
        plan.say_memory("memory");
        plan.note("operations_of_factorisation", operations);
        Ok(plan)
    }

    fn sample(
        &self,
        problem: &mut Problem,
        plan: &Plan,
        place: &RunContext<'_>,
    ) -> Result<(), Failure> {
        let start = Instant::now();
        let store = place.open(problem, &plan.schema)?;
        let mut posterior = InfinitePosterior::new(problem, self.0)?;
        let left_out = posterior.leave_one_out();
        let text = serde_json::to_string(&left_out).map_err(Failure::run)?;
        place
            .folder
            .write_text(LEAVE_ONE_OUT, &text)
            .map_err(Failure::run)?;
        let mut writer = store.writer(0).map_err(Failure::run)?;
        let mut statistics = ClosedFormStatistics {
            log_marginal_likelihood: posterior.process.log_marginal_likelihood(),
            n_jitter: i64::from(posterior.process.jitter()),
            n_clamped: 0,
        };
        if problem.description.test_rows > 0 {
            let found = posterior.predict(&problem.arranged(&problem.test.inputs))?;
            statistics.n_clamped = record::count(found.clamped);
            let block = found.block;
            let sd: Vec<f64> = block.variance.iter().map(|v| v.sqrt()).collect();
            let narrow = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<_>>();
            let (mean_f32, sd_f32) = (narrow(&block.mean), narrow(&sd));
            let values = if problem.description.is_classification {
                [Values::F32(&mean_f32), Values::F32(&sd_f32)]
            } else {
                [Values::F64(&block.mean), Values::F64(&sd)]
            };
            writer.push(PREDICTIONS, &values).map_err(Failure::run)?;
        }
        writer
            .push("sample_stats", &statistics.values())
            .map_err(Failure::run)?;
        let seconds = start.elapsed().as_secs_f64();
        writer
            .checkpoint(&json!({ "seconds": seconds }), &[])
            .map_err(Failure::run)
    }

    fn summarise(&self, run: &Recorded) -> Result<(Summary, Vec<String>), Failure> {
        let one = |name| {
            let values = run.read("sample_stats", name)?;
            Ok(values.first().copied())
        };
        let Some(evidence) = one("log_marginal_likelihood")? else {
            return Err(Failure::request(format!(
                "`{0}` was stopped before its end: go on with `reprior resume {0}`",
                name_of(&run.files)
            )));
        };
        let checkpoint = checkpoint::load(&run.files, 0).map_err(Failure::request)?;
        let seconds = checkpoint.and_then(|checkpoint| checkpoint.document()["seconds"].as_f64());
        let found = run.predictions(&Rates::UNIT)?;
        let [jitter, clamped] = [one("n_jitter")?, one("n_clamped")?].map(|x| x.unwrap_or(0.0));
        let summary = Summary {
            coordinates: "function".to_owned(),
            seconds: seconds.unwrap_or(f64::NAN),
            log_marginal_likelihood: Some(evidence),
            metrics: found.metrics,
            metrics_by_target: found.metrics_by_target,
            metrics_draws: 1,
            fit: found.fit,
            n_jitter: jitter as u64,
            n_clamped: clamped as u64,
            ..Summary::new(&run.settings, 1)
        };
        let mut warnings = Vec::new();
        if clamped > 0.0 {
            warnings.push(format!(
                "{clamped} predictive variances came out below 0 by rounding and were set to 0: raise --noise"
            ));
        }
        if jitter > 0.0 {
            warnings.push(format!(
                "the kernel is nearly singular: its diagonal was raised {jitter} times before it could be factorised; raise --noise"
            ));
        }
        Ok((summary, warnings))
    }

    fn predictor<'a>(
        &self,
        problem: &'a Problem,
        _run: &'a Recorded,
    ) -> Result<Box<dyn Predict + 'a>, Failure> {
        Ok(Box::new(InfinitePosterior::new(problem, self.0)?))
    }
}
