//! `reprior predict`: predictions for new inputs from a run's kept positions.

use std::sync::Arc;

use reprior::compute::{Purpose, Stream};
use reprior::metrics::Mixture;
use reprior::model::{InputKind, InputValues};
use reprior::posterior::{Coordinates, NetworkPosterior, Projection, Recorder};
use reprior_io::data::load_inputs;
use reprior_io::run::{DrawReader, Number, Selection, atomic};

use crate::arguments::PredictArguments;
use crate::closed_form::ClosedForm;
use crate::detection::Detector;
use crate::error::Failure;
use crate::minibatch;
use crate::names::Precision;
use crate::predictive::{Block, Gatherer, Kind};
use crate::problem::{DataDescription, Problem};
use crate::recorded::{lacks_positions, open_draws};
use crate::schema::{POSITION, POSITIONS};
use crate::stored::Stored;
use crate::summary::{complete_draws, open_run};
use crate::table::{bytes_to_stdout, number, to_stderr};

/// Rows that are predicted together.
const BLOCK_ROWS: usize = 1000;

/// Runs the command.
///
/// # Errors
/// A wrong request: not a run, no draws yet, inputs of another kind.
pub fn command(arguments: &PredictArguments) -> Result<(), Failure> {
    let (settings, description) = open_run(&arguments.run)?;
    let reader = open_draws(&arguments.run, &settings, &description)?;
    let draws = complete_draws(&reader);
    if let Some(lacking) = lacks_positions(&reader, draws, &arguments.run) {
        return Err(Failure::Request(lacking));
    }
    let inputs =
        load_inputs(&arguments.data, &description.expected_inputs()).map_err(Failure::request)?;
    let problem = Problem::load(settings)?;
    if problem.description.fingerprint != description.fingerprint {
        return Err(Failure::request(format!(
            "the data at `{}` are not those that `{}` was made with; predictions need them",
            problem.settings.data.source,
            arguments.run.display()
        )));
    }
    let turned = arguments
        .rotate
        .map(|degrees| rotated(&inputs.values, description.kind, degrees));
    let turned = turned.transpose()?;
    let values = problem.arranged(turned.as_ref().unwrap_or(&inputs.values));
    let kind = Kind::new(&problem.settings.model, description.is_classification);
    if arguments.no_noise && kind == Kind::Probabilities {
        return Err(Failure::request(format!(
            "--no-noise has no meaning for class probabilities under the {} likelihood: leave it out",
            problem.settings.model.likelihood
        )));
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(header(&description))
        .map_err(Failure::run)?;
    let mut gatherer = Gatherer::default();
    let detector = arguments.detect;
    let detector = detector.map(|score| Detector::new(score, &problem.settings, &description));
    let mut detector = detector.transpose()?;
    let covariance = problem.settings.sampler.method.covariance();
    let closed_form = covariance.map(|covariance| ClosedForm::new(&problem, covariance));
    let closed_form = closed_form.transpose()?;
    let mut laplace = minibatch::closed_form(&problem, &arguments.run)?;
    let block_rows = match &laplace {
        Some(_) => minibatch::rows_together(problem.architecture.outputs),
        None => BLOCK_ROWS,
    };
    let of_draws = |inputs: &[f64]| match problem.settings.sampler.precision {
        Precision::Auto | Precision::F32 => minibatch::predict::<f32>(&problem, &reader, inputs),
        Precision::F64 => minibatch::predict::<f64>(&problem, &reader, inputs),
    };
    for (index, part) in values.chunks(block_rows * description.columns).enumerate() {
        let (mut block, noise) = match (&closed_form, problem.settings.sampler.precision) {
            (Some(closed_form), _) => {
                let (block, noise, clamped) = closed_form.predict(part)?;
                if clamped > 0 {
                    to_stderr(&format!(
                        "warning: {clamped} predictive variances came out below 0 by rounding and were set to 0"
                    ));
                }
                (block, noise)
            }
            (None, _) if problem.minibatch.is_some() => match &mut laplace {
                Some(laplace) => laplace(part)?,
                None => of_draws(part)?,
            },
            (None, Precision::Auto | Precision::F32) => predict::<f32>(&problem, &reader, part)?,
            (None, Precision::F64) => predict::<f64>(&problem, &reader, part)?,
        };
        let function = block.variance.clone();
        block.add_noise(&noise);
        match (&mut detector, &laplace) {
            // compared with the draws for the run's own test rows
            (Some(detector), Some(_)) => detector.add(&of_draws(part)?.0)?,
            (Some(detector), None) => detector.add(&block)?,
            _ => {}
        }
        if let Some(truth) = &inputs.truth {
            gatherer.add(&block, truth, index * block_rows)?;
        }
        if arguments.no_noise {
            block.variance = function;
            block = block.without_noise();
        }
        write_rows(&mut writer, &block, &description)?;
    }
    let text = writer
        .into_inner()
        .map_err(|error| Failure::run(error.to_string()))?;
    match &arguments.out {
        Some(path) => atomic::write(path, &text).map_err(Failure::request)?,
        None => bytes_to_stdout(&text),
    }
    if let Some(detector) = detector {
        let found = detector.finish(&reader, &problem.settings, &description)?;
        to_stderr(&format!("`{}` {found}", arguments.data));
    }
    if let Some(path) = &arguments.reliability {
        let table = gatherer.reliability()?.ok_or_else(|| {
            Failure::request(format!(
                "--reliability compares classes with the truth, and `{}` has none: leave it out",
                arguments.data
            ))
        })?;
        atomic::write(path, table.as_bytes()).map_err(Failure::request)?;
    }
    match (&laplace, draws_in_use(&reader)) {
        (Some(_), _) => to_stderr(&format!(
            "predictions in closed form of the network linearised at the mode of {} chains",
            reader.chains()
        )),
        (None, Some(kept)) => to_stderr(&kept),
        _ => {}
    }
    if let Some(metrics) = gatherer.finish()? {
        let words: Vec<String> = metrics
            .named()
            .into_iter()
            .map(|(name, value)| format!("{name} {}", number(value)))
            .collect();
        to_stderr(&format!(
            "against the targets in `{}`: {}",
            arguments.data,
            words.join(", ")
        ));
    }
    Ok(())
}

/// Means and variances (without noise) in the target's own units, and squared noise scales, for every kept position.
fn predict<R: Stored + Number>(
    problem: &Problem,
    reader: &DrawReader,
    inputs: &[f64],
) -> Result<(Block, Vec<f64>), Failure> {
    let settings = &problem.settings;
    let model = Arc::new(problem.model::<R>(inputs)?);
    let is_classification = problem.description.is_classification;
    let kind = Kind::new(&settings.model, is_classification);
    // what is kept of a position, see `Recording`
    let coordinates = if model.likelihood.is_gaussian() {
        Coordinates::Marginal
    } else {
        Coordinates::Standard
    };
    let kept = NetworkPosterior::dimension(&model, coordinates);
    let space = settings.sampler.space.forced();
    let mut posterior = NetworkPosterior::new(Arc::clone(&model), coordinates, space);
    let mut recorder = Recorder::new(Arc::clone(&model), Projection::new(&model, 0, 0));
    let maps = problem.output_maps();
    let rows = inputs.len() / problem.description.columns;
    let mut block = Block {
        kind,
        rows,
        outputs: problem.description.output_names.len(),
        mean: Vec::new(),
        variance: Vec::new(),
    };
    let spread = kind.spread(maps.len());
    let mut noise = Vec::new();
    let mut failure = None;
    let mut add = |chain: u64, draw: u64, z: &[R]| {
        let mut stream = Stream::new(settings.run.seed, chain, Purpose::Prediction, draw);
        let record = match recorder.record(&mut posterior, z, &mut stream) {
            Ok(record) => record,
            Err(error) => {
                failure.get_or_insert(error);
                return;
            }
        };
        for row in 0..rows {
            let own = |values: &[f64], output: usize| values[output * rows + row];
            let of_row = (0..maps.len()).map(|output| own(&record.mean, output));
            kind.push_mean(&*model.likelihood, &maps, of_row, &mut block.mean);
            for (output, map) in maps.iter().enumerate().take(spread) {
                let variance = own(&record.variance, output);
                block.variance.push(map.scale.powi(2) * variance);
            }
        }
        for (scale, map) in record.noise.iter().zip(&maps).take(spread) {
            let has_scale = settings.model.likelihood.has_scale();
            noise.push(if has_scale {
                (map.scale * scale).powi(2)
            } else {
                0.0
            });
        }
    };
    if kept == 0 {
        // a linear model: the prediction is the closed form, whatever the draw
        add(0, 0, &[]);
    } else {
        reader
            .for_each_draw::<R>(POSITIONS, POSITION, &Selection::all(), &mut add)
            .map_err(Failure::request)?;
    }
    if let Some(error) = failure {
        return Err(Failure::run(error));
    }
    if block.mean.is_empty() {
        return Err(Failure::request(
            "the run has no draws yet: go on with `reprior resume`",
        ));
    }
    Ok((block, noise))
}

/// How many draws predictions are made of; nothing of a posterior in closed form.
fn draws_in_use(reader: &DrawReader) -> Option<String> {
    let group = reader.groups().find(|group| group.name == POSITIONS)?;
    let (of_each, chains) = (group.draws?, reader.chains());
    Some(format!(
        "predictions of {} draws, {of_each} of each of {chains} chains (`reprior sample` keeps more with --keep or --keep-mb)",
        of_each * chains
    ))
}

/// The fewest digits that are read back as the same number, with an exponent where there would be many zeros.
fn shortest(x: f64) -> String {
    // never -0
    let x = x + 0.0;
    if x != 0.0 && !(1e-5..1e16).contains(&x.abs()) {
        format!("{x:e}")
    } else {
        x.to_string()
    }
}

fn header(description: &DataDescription) -> Vec<String> {
    let names = &description.output_names;
    if description.is_classification {
        let probabilities = names.iter().map(|name| format!("p_{name}"));
        return probabilities
            .chain(["label", "confidence", "entropy"].map(String::from))
            .collect();
    }
    let fields = ["mean", "sd", "q05", "q50", "q95"];
    match names.as_slice() {
        [_] => fields.map(String::from).to_vec(),
        names => names
            .iter()
            .flat_map(|name| fields.map(|field| format!("{field}_{name}")))
            .collect(),
    }
}

fn write_rows(
    writer: &mut csv::Writer<Vec<u8>>,
    block: &Block,
    description: &DataDescription,
) -> Result<(), Failure> {
    let mut record: Vec<String> = Vec::new();
    if description.is_classification {
        for row in block.class_probabilities().chunks_exact(block.outputs) {
            record.clear();
            record.extend(row.iter().copied().map(shortest));
            let mut best = 0;
            for (class, p) in row.iter().enumerate() {
                if *p > row[best] {
                    best = class;
                }
            }
            let entropy: f64 = row.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum();
            record.push(description.output_names[best].clone());
            record.push(shortest(row[best]));
            record.push(shortest(entropy));
            writer.write_record(&record).map_err(Failure::run)?;
        }
        return Ok(());
    }
    for row in 0..block.rows {
        record.clear();
        for output in 0..block.outputs {
            let (means, variances) = block.components(row, output);
            let mixture = Mixture::new(block.family(), &means, &variances).map_err(Failure::run)?;
            record.push(shortest(mixture.mean()));
            record.push(shortest(mixture.variance().sqrt()));
            record.extend([0.05, 0.5, 0.95].map(|p| shortest(mixture.quantile(p))));
        }
        writer.write_record(&record).map_err(Failure::run)?;
    }
    Ok(())
}

/// Images turned by `degrees`.
///
/// # Errors
/// A wrong request: no images, or an angle that is not finite.
fn rotated(values: &InputValues, kind: InputKind, degrees: f64) -> Result<InputValues, Failure> {
    let InputKind::Image {
        height,
        width,
        channels,
    } = kind
    else {
        return Err(Failure::request(
            "--rotate is of images, and the data are a table: leave it out",
        ));
    };
    if !degrees.is_finite() {
        return Err(Failure::request(format!(
            "--rotate is {degrees}: it must be a number of degrees"
        )));
    }
    Ok(values.rotated([height, width, channels], degrees))
}
