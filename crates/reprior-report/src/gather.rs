//! What a page says of a run folder: its summary, predictions for the test rows, the test images.

use std::path::{Path, PathBuf};

use reprior::model::dataset::{InputKind, Targets};
use reprior_io::regular;
use reprior_run::{DataDescription, Failure, InputEffects, Predictor, Recorded};

use crate::{Images, Others, Predictions, RunPage};

/// Test rows of a regression whose predictive intervals are shown, at most.
const MOST_ROWS: usize = 500;

impl RunPage {
    /// The run in a folder, with the confidences of other inputs that `predict --out` wrote. `progress` is told of rows that were predicted out of how many
    /// to see what the columns of a table do, and may stop it.
    ///
    /// # Errors
    /// A wrong request: not a run; other predictions that cannot be compared. What `progress` says.
    pub fn of(
        folder: &Path,
        others: &[PathBuf],
        progress: &mut dyn FnMut(u64, u64) -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        let recorded = Recorded::of(folder)?;
        let summary = recorded.summarise()?;
        let (settings, description) = (&recorded.settings, &recorded.description);
        let config = folder.join("config.toml");
        let configuration = regular::read_text(&config).map_err(|error| {
            Failure::request(format!("`{}` cannot be read: {error}", config.display()))
        })?;
        let others = others.iter().map(|path| of_others(path, description));
        Ok(Self {
            others: others.collect::<Result<_, _>>()?,
            images: images(&recorded),
            pit: recorded.pit()?,
            effects: effects(&recorded, progress)?,
            folder: folder.to_path_buf(),
            is_in_memory: false,
            nature: settings.sampler.method().nature(),
            data: description.in_words(),
            notes: description.notes(),
            configuration,
            outputs: description.output_names.clone(),
            predictions: predictions(&recorded, summary.draws)?,
            left_out: recorded.leave_one_out()?,
            training_targets: recorded.training_targets()?,
            summary,
        })
    }
}

/// Of the test rows; of real targets those of evenly spaced rows, if there are many.
fn predictions(run: &Recorded, draws: u64) -> Result<Result<Predictions, String>, Failure> {
    let Some(truth) = run.test_targets()? else {
        return Ok(Err(match draws {
            0 => "there are no draws yet".to_owned(),
            _ => "no rows test them: give some with `--test`".to_owned(),
        }));
    };
    let (mut mean, mut lower, mut upper, mut shown) = (vec![], vec![], vec![], vec![]);
    let mut probabilities = Vec::new();
    let every = run.description.test_rows.div_ceil(MOST_ROWS);
    let outputs = run.description.output_names.len();
    run.for_each_prediction(|start, rows| {
        let Targets::Real { values, .. } = &truth else {
            probabilities.extend(rows.probabilities());
            return Ok(());
        };
        for row in (0..rows.len()).filter(|row| (start + row).is_multiple_of(every)) {
            for output in 0..outputs {
                let found = rows.output(row, output)?;
                mean.push(found.mean);
                lower.push(found.quantiles[0]);
                upper.push(found.quantiles[2]);
                shown.push(values[(start + row) * outputs + output]);
            }
        }
        Ok(())
    })?;
    // a run that was killed may have draws whose predictions are not on the disk yet
    if shown.is_empty() && probabilities.is_empty() {
        return Ok(Err(
            "those of its draws are not on the disk yet: go on with `reprior resume`".to_owned(),
        ));
    }
    Ok(Ok(match truth {
        Targets::Classes { labels, .. } => Predictions::Classification {
            probabilities,
            labels,
        },
        Targets::Real { .. } => Predictions::Regression {
            rows: run.description.test_rows,
            mean,
            lower,
            upper,
            truth: shown,
        },
    }))
}

/// What the columns of a table do; nothing of images.
fn effects(
    run: &Recorded,
    progress: &mut dyn FnMut(u64, u64) -> Result<(), Failure>,
) -> Result<Option<Result<InputEffects, String>>, Failure> {
    if run.description.kind != InputKind::Table {
        return Ok(None);
    }
    let found = Predictor::of(run.files.clone());
    let found = found.and_then(|predictor| predictor.input_effects(progress));
    match found {
        Ok(effects) => Ok(Some(Ok(effects))),
        Err(Failure::Stopped) => Err(Failure::Stopped),
        // the rest of the page needs neither the data nor kept positions
        Err(failure) => Ok(Some(Err(failure.to_string()))),
    }
}

/// The test images, if they are still where they were and the same.
fn images(run: &Recorded) -> Result<Images, String> {
    let description = &run.description;
    let InputKind::Image {
        height,
        width,
        channels,
    } = description.kind
    else {
        return Err("the inputs are no images".to_owned());
    };
    let split = run
        .split()
        .map_err(|error| format!("the data cannot be read any more: {error}"))?;
    let test = split
        .test
        .slice(0..split.test.rows.min(description.test_rows));
    if !description.is_of(&split.train, &test) {
        return Err(format!(
            "the data at {} are no longer those of the run",
            run.settings.data.source
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
fn of_others(path: &Path, description: &DataDescription) -> Result<Others, Failure> {
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
