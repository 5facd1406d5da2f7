//! `reprior report`: gathers what `reprior-report` makes a page of.

use std::path::{Path, PathBuf};

use reprior::metrics::Mixture;
use reprior::model::{InputKind, Targets};
use reprior_io::data::load;
use reprior_io::regular;
use reprior_io::run::atomic;
use reprior_report::{Images, Others, Predictions, Run, page};

use crate::arguments::ReportArguments;
use crate::effective::{for_each_block, read_truth};
use crate::error::Failure;
use crate::problem::{DataDescription, fingerprint};
use crate::recorded::open_draws;
use crate::settings::Settings;
use crate::summary::{open_run, summarise_run};
use crate::table::to_stdout;

/// Test rows of a regression whose predictive intervals are shown, at most.
const MOST_ROWS: usize = 500;

/// Runs the command.
///
/// # Errors
/// A wrong request: not a run, several runs without `--out`, other predictions that cannot be compared; a disk that refuses.
pub fn command(arguments: &ReportArguments) -> Result<(), Failure> {
    let path = match (&arguments.out, arguments.runs.as_slice()) {
        (Some(path), _) => path.clone(),
        (None, [run]) => run.join("report.html"),
        (None, _) => {
            return Err(Failure::request(
                "several runs make one page that is in none of their folders: say where with --out FILE",
            ));
        }
    };
    if !arguments.ood.is_empty() && arguments.runs.len() > 1 {
        return Err(Failure::request(
            "--ood compares with the test rows of one run: give one run",
        ));
    }
    let mut runs = Vec::new();
    for run in &arguments.runs {
        runs.push(gather(run, &arguments.ood)?);
    }
    let text = page(&runs).map_err(Failure::run)?;
    atomic::write(&path, text.as_bytes()).map_err(Failure::run)?;
    to_stdout(&format!("Report: {}", path.display()));
    Ok(())
}

fn gather(folder: &Path, ood: &[PathBuf]) -> Result<Run, Failure> {
    let (settings, description) = open_run(folder)?;
    let summary = summarise_run(folder)?;
    // read back as anyone reads `summary --json`
    let document = serde_json::to_value(&summary).map_err(Failure::run)?;
    let summary: reprior_report::Summary =
        serde_json::from_value(document).map_err(Failure::run)?;
    let config = folder.join("config.toml");
    let configuration = regular::read_text(&config).map_err(|error| {
        Failure::request(format!("`{}` cannot be read: {error}", config.display()))
    })?;
    let predictions = predictions(folder, &settings, &description, summary.draws)?;
    let others = ood.iter().map(|path| others(path, &description));
    Ok(Run {
        others: others.collect::<Result<_, _>>()?,
        images: images(&settings, &description),
        folder: folder.to_path_buf(),
        nature: settings.nature(),
        summary,
        data: description.in_words(),
        notes: description.notes(),
        configuration,
        outputs: description.output_names,
        predictions,
    })
}

/// Of the test rows; of real targets those of evenly spaced rows, if there are many.
fn predictions(
    folder: &Path,
    settings: &Settings,
    description: &DataDescription,
    draws: u64,
) -> Result<Option<Predictions>, Failure> {
    if draws == 0 || description.test_rows == 0 {
        return Ok(None);
    }
    let reader = open_draws(folder, settings, description)?;
    let (mut mean, mut lower, mut upper, mut shown) = (vec![], vec![], vec![], vec![]);
    let mut probabilities = Vec::new();
    let truth = read_truth(&reader, description)?;
    let every = description.test_rows.div_ceil(MOST_ROWS);
    for_each_block(&reader, settings, description, draws, |start, block, _| {
        let Targets::Real { values, .. } = &truth else {
            probabilities.extend(block.class_probabilities());
            return Ok(());
        };
        for row in (0..block.rows).filter(|row| (start + row).is_multiple_of(every)) {
            for output in 0..block.outputs {
                let (means, variances) = block.components(row, output);
                let mixture =
                    Mixture::new(block.family(), &means, &variances).map_err(Failure::run)?;
                mean.push(mixture.mean());
                lower.push(mixture.quantile(0.05));
                upper.push(mixture.quantile(0.95));
                shown.push(values[(start + row) * block.outputs + output]);
            }
        }
        Ok(())
    })?;
    // a run that was killed may have draws whose predictions are not on the disk yet
    if shown.is_empty() && probabilities.is_empty() {
        return Ok(None);
    }
    Ok(Some(match truth {
        Targets::Classes { labels, .. } => Predictions::Classification {
            probabilities,
            labels,
        },
        Targets::Real { .. } => Predictions::Regression {
            rows: description.test_rows,
            mean,
            lower,
            upper,
            truth: shown,
        },
    }))
}

/// The test images, if they are still where they were and the same.
fn images(settings: &Settings, description: &DataDescription) -> Result<Images, String> {
    let InputKind::Image {
        height,
        width,
        channels,
    } = description.kind
    else {
        return Err("the inputs are no images".to_owned());
    };
    let source = &settings.data.source;
    let split = load(&settings.request())
        .map_err(|error| format!("the data cannot be read any more: {error}"))?;
    let test = split
        .test
        .slice(0..split.test.rows.min(description.test_rows));
    if fingerprint(&[&split.train, &test]) != description.fingerprint {
        return Err(format!(
            "the data at {source} are no longer those of the run"
        ));
    }
    Ok(Images {
        height,
        width,
        channels,
        values: test.inputs,
    })
}

/// Confidences that `predict --out` wrote.
fn others(path: &Path, description: &DataDescription) -> Result<Others, Failure> {
    let name = path.display();
    if !description.is_classification {
        return Err(Failure::request(format!(
            "--ood {name}: the run predicts no classes, whose confidence is compared; leave it out"
        )));
    }
    let refuse = |error: csv::Error| Failure::request(format!("`{name}` cannot be read: {error}"));
    let file = regular::open(path).map_err(|error| refuse(error.into()))?;
    let mut reader = csv::Reader::from_reader(file);
    let headers = reader.headers().map_err(refuse)?;
    let column = headers.iter().position(|header| header == "confidence");
    let column = column.ok_or_else(|| {
        Failure::request(format!(
            "`{name}` has no column `confidence`: give what `reprior predict --out` wrote for this run"
        ))
    })?;
    let mut confidences = Vec::new();
    for (index, record) in reader.records().enumerate() {
        let record = record.map_err(refuse)?;
        let cell = record.get(column).unwrap_or_default();
        let value = cell.trim().parse::<f64>().ok();
        let value = value.filter(|value| (0.0..=1.0).contains(value));
        confidences.push(value.ok_or_else(|| {
            Failure::request(format!(
                "`{name}`, row {}: the confidence `{cell}` is no probability",
                index + 1
            ))
        })?);
    }
    if confidences.is_empty() {
        return Err(Failure::request(format!("`{name}` has no rows")));
    }
    let stem = path.file_stem().map(|stem| stem.to_string_lossy());
    Ok(Others {
        name: stem.map_or_else(|| name.to_string(), |stem| stem.into_owned()),
        confidences,
    })
}
