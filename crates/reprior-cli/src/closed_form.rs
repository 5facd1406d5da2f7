//! `--method nngp` and `--method ntk`: the posterior of the network with infinitely wide layers, in closed form, as a run of one
//! chain with one draw, whose mean and standard deviation are the posterior's own.

use std::time::Instant;

use reprior::compute::{Matrix, matrix};
use reprior::gaussian_process::{Covariance, GaussianProcess};
use reprior::model::Noise;
use reprior::model::likelihood::LikelihoodName;
use reprior::network::infinite::{InfiniteNetwork, Kernels, Kinds};
use reprior_io::run::{DrawReader, DrawStore, RunFolder, Values, checkpoint};
use serde_json::json;

use crate::arguments::DrivingArguments;
use crate::budget::available_memory;
use crate::disk::Destination;
use crate::effective::predictions;
use crate::error::Failure;
use crate::predictive::{Block, Kind};
use crate::problem::{DataDescription, Problem};
use crate::schema::closed_form_schema;
use crate::settings::Settings;
use crate::summary::{Summary, write_summary};
use crate::table::{align, bytes, number, to_stderr, to_stdout};

/// Test rows whose kernels are computed at a time.
const BLOCK_ROWS: usize = 1000;

/// The posterior for one problem.
pub struct ClosedForm<'a> {
    problem: &'a Problem,
    network: InfiniteNetwork,
    covariance: Covariance,
    process: GaussianProcess,
    /// Standardised training inputs, row-major.
    inputs: Vec<f64>,
    threads: usize,
    start: Instant,
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
    let kernels = match covariance {
        Covariance::Nngp => 1.0,
        Covariance::Ntk => 2.0,
    };
    // and the matrix to be factorised with its factor, and a block of test rows
    8.0 * rows as f64 * ((kernels + 2.0) * rows as f64 + 3.0 * BLOCK_ROWS as f64)
}

/// Refuses settings that a closed form has no use for.
///
/// # Errors
/// A wrong request.
pub fn check(settings: &Settings) -> Result<(), Failure> {
    let method = settings.sampler.method;
    let likelihood = settings.model.likelihood;
    if likelihood != LikelihoodName::Gaussian {
        return Err(Failure::request(format!(
            "--method {method} is exact for the gaussian likelihood only, not for {likelihood}"
        )));
    }
    if settings.model.learns_noise() {
        return Err(Failure::request(format!(
            "--method {method} needs a known noise: give a number, or --noise auto"
        )));
    }
    if matches!(settings.model.noise(), Noise::Known(scales) if scales.len() > 1) {
        return Err(Failure::request(format!(
            "--method {method} has one noise for all outputs: give one number"
        )));
    }
    let (sampler, run) = (&settings.sampler, &settings.run);
    let given = [
        ("--step-size", sampler.step_size.is_some()),
        ("--target-acceptance", sampler.target_acceptance.is_some()),
        ("--damping", sampler.damping.is_some()),
        ("--trajectory", sampler.trajectory.is_some()),
        ("--arrival", sampler.arrival.is_some()),
        ("--coordinates", sampler.coordinates.is_some()),
        ("--chains", run.chains.is_some()),
        ("--warmup", run.warmup.is_some()),
        ("--draws", run.draws.is_some()),
        ("--thin", run.thin.is_some()),
    ];
    let given = given.iter().filter(|(_, is_given)| *is_given);
    let given = given.map(|(flag, _)| *flag);
    match given
        .chain(settings.minibatch.given())
        .chain(settings.laplace.given())
        .next()
    {
        Some(flag) => Err(Failure::request(format!(
            "{flag} is of methods with chains; {method} is a closed form: leave it out"
        ))),
        None => Ok(()),
    }
}

/// Refuses a problem whose kernels would not fit.
///
/// # Errors
/// A wrong request.
fn check_memory(covariance: Covariance, rows: usize) -> Result<(), Failure> {
    let (needed, available) = (bytes_needed(covariance, rows), available_memory());
    if needed > available as f64 {
        return Err(Failure::request(format!(
            "kernels of {rows} rows need {} of memory, {} are free: take fewer with --train",
            bytes(needed),
            bytes(available as f64)
        )));
    }
    Ok(())
}

/// Bytes of the checkpoint, which says only how long it took.
const CHECKPOINT: u64 = 1024;

/// Refuses a run that the disk has no room for.
///
/// # Errors
/// A wrong request.
pub fn check_disk(problem: &Problem, place: Destination<'_>) -> Result<(), Failure> {
    place.check(&closed_form_schema(problem), CHECKPOINT)
}

/// `reprior plan` for a closed form: its memory, and the operations of the factorisation.
///
/// # Errors
/// None yet: whatever it takes is printed.
pub fn plan(problem: &Problem, covariance: Covariance, is_json: bool) -> Result<(), Failure> {
    let rows = problem.description.train_rows;
    let (needed, available) = (bytes_needed(covariance, rows), available_memory());
    let operations = (rows as f64).powi(3) / 3.0;
    if is_json {
        let document = json!({
            "memory_bytes": needed as u64,
            "memory_bytes_available": available,
            "fits": needed <= available as f64,
            "operations_of_factorisation": operations,
        });
        to_stdout(&document.to_string());
        return Ok(());
    }
    to_stdout(&problem.description.in_words());
    problem
        .notes()
        .for_each(|note| to_stdout(&format!("note: {note}")));
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let memory = [needed, available as f64].map(bytes);
    to_stdout(&align(&[
        row("training rows", rows.to_string()),
        row(
            "operations of the factorisation",
            format!("{} million", number(operations / 1e6)),
        ),
        row("memory", format!("{} of {} free", memory[0], memory[1])),
    ]));
    Ok(())
}

impl<'a> ClosedForm<'a> {
    /// Kernels and factorisation.
    ///
    /// # Errors
    /// A wrong request: a network without an infinitely wide limit, too many rows.
    pub fn new(problem: &'a Problem, covariance: Covariance) -> Result<Self, Failure> {
        let start = Instant::now();
        let rows = problem.description.train_rows;
        check_memory(covariance, rows)?;
        let method = problem.settings.sampler.method;
        let network = InfiniteNetwork::new(&problem.architecture)
            .map_err(|error| Failure::request(format!("--method {method}: {error}")))?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let inputs = problem.arranged(&problem.train.inputs);
        let kernels = network
            .kernels(problem.rows_of(&inputs), kinds(covariance), threads)
            .map_err(Failure::run)?;
        let noise = problem.settings.model.noise().typical(1)[0];
        let kernel = of(kernels, covariance);
        let process =
            GaussianProcess::new(&kernel, rows, &problem.targets, noise).map_err(Failure::run)?;
        Ok(Self {
            problem,
            network,
            covariance,
            process,
            inputs,
            threads,
            start,
        })
    }

    /// Predictions for standardised inputs, without noise, as one draw in the target's own units; the squared noise;
    /// and how many variances came out below 0 by rounding and were set to 0.
    ///
    /// # Errors
    /// Inputs that are not finite.
    pub fn predict(&self, inputs: &[f64]) -> Result<(Block, Vec<f64>, u64), Failure> {
        let mut clamped = 0;
        let problem = self.problem;
        let (covariance, maps) = (self.covariance, problem.output_maps());
        let kind = Kind::new(
            &problem.settings.model,
            problem.description.is_classification,
        );
        let mut block = Block {
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
        let squares = squares.map(|map| (map.scale * noise).powi(2)).collect();
        Ok((block, squares, clamped))
    }
}

impl Problem {
    /// Row-major inputs as a matrix with a row for each.
    fn rows_of<'a>(&self, inputs: &'a [f64]) -> Matrix<'a, f64> {
        let columns = self.architecture.inputs();
        matrix(inputs, columns, inputs.len() / columns).transpose()
    }
}

/// Computes, writes the run's draws and its summary.
///
/// # Errors
/// A network without an infinitely wide limit; a disk that refuses.
pub fn run(
    posterior: &ClosedForm<'_>,
    folder: &RunFolder,
    driving: &DrivingArguments,
) -> Result<(), Failure> {
    let problem = posterior.problem;
    let description = serde_json::to_string_pretty(&problem.description).map_err(Failure::run)?;
    if !driving.quiet {
        problem
            .notes()
            .for_each(|note| to_stderr(&format!("note: {note}")));
    }
    folder
        .write_text("data.json", &description)
        .map_err(Failure::run)?;
    if !folder.path().join("draws.zarr").join("zarr.json").exists() {
        DrawStore::create(folder, &closed_form_schema(problem)).map_err(Failure::run)?;
    }
    let store = DrawStore::open(folder).map_err(Failure::run)?;
    problem.write_targets(&store)?;
    let mut writer = store.writer(0).map_err(Failure::run)?;
    let evidence = [posterior.process.log_marginal_likelihood()];
    let jitter = [i64::from(posterior.process.jitter())];
    let mut clamped = [0];
    if problem.description.test_rows > 0 {
        let (block, _, count) = posterior.predict(&problem.arranged(&problem.test.inputs))?;
        clamped = [i64::try_from(count).unwrap_or(i64::MAX)];
        let sd: Vec<f64> = block
            .variance
            .iter()
            .map(|variance| variance.sqrt())
            .collect();
        let narrow = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<_>>();
        let (mean_f32, sd_f32) = (narrow(&block.mean), narrow(&sd));
        let values = if problem.description.is_classification {
            [Values::F32(&mean_f32), Values::F32(&sd_f32)]
        } else {
            [Values::F64(&block.mean), Values::F64(&sd)]
        };
        writer.push("predictions", &values).map_err(Failure::run)?;
    }
    let statistics = [
        Values::F64(&evidence),
        Values::I64(&jitter),
        Values::I64(&clamped),
    ];
    writer
        .push("sample_stats", &statistics)
        .map_err(Failure::run)?;
    let seconds = posterior.start.elapsed().as_secs_f64();
    writer
        .checkpoint(&json!({ "seconds": seconds }), &[])
        .map_err(Failure::run)?;
    write_summary(folder, driving.json)
}

/// The summary of a run in closed form.
///
/// # Errors
/// A run folder that cannot be read.
pub fn summarise(
    reader: &DrawReader,
    folder: &std::path::Path,
    settings: &Settings,
    description: &DataDescription,
) -> Result<Summary, Failure> {
    let one = |name| {
        let read = reader.read::<f64>("sample_stats", name, &reprior_io::run::Selection::all());
        let values = read.map_err(Failure::request)?.values;
        Ok(values.first().copied())
    };
    let Some(evidence) = one("log_marginal_likelihood")? else {
        return Err(Failure::request(format!(
            "`{0}` was stopped before its end: go on with `reprior resume {0}`",
            folder.display()
        )));
    };
    let jitter = one("n_jitter")?.unwrap_or(0.0);
    let checkpoint = checkpoint::load(folder, 0).map_err(Failure::request)?;
    let seconds = checkpoint.and_then(|checkpoint| checkpoint.document()["seconds"].as_f64());
    let rates = crate::effective::Rates {
        draws: 1.0,
        steps: 1.0,
        gradients: 0.0,
        evaluations: 1.0,
        seconds: 1.0,
    };
    let found = predictions(reader, settings, description, 1, &rates)?;
    let mut summary = Summary::bare(settings, seconds.unwrap_or(f64::NAN));
    summary.coordinates = "function".to_owned();
    summary.log_marginal_likelihood = Some(evidence);
    summary.metrics = found.metrics;
    summary.fit = found.fit;
    let mut warnings = Vec::new();
    summary.n_jitter = jitter as u64;
    let clamped = one("n_clamped")?.unwrap_or(0.0);
    summary.n_clamped = clamped as u64;
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
    summary.conclude(settings, warnings);
    Ok(summary)
}
