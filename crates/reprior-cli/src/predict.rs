//! `reprior predict`: predictions for new inputs as CSV.

use std::path::Path;

use reprior_io::run::atomic;
use reprior_run::words::{align, number};
use reprior_run::{
    DataDescription, Failure, PredictedRows, PredictionReport, PredictionRequest, Predictor,
    rotated, target_rows,
};

use crate::arguments::PredictArguments;
use crate::table::{bytes_to_stdout, to_stderr};

/// Ends of the names of files that are no CSV.
const OTHER_FORMATS: [&str; 9] = [
    "gz", "zst", "bz2", "xz", "zip", "parquet", "arrow", "feather", "xlsx",
];

/// Runs the command.
///
/// # Errors
/// A wrong request: not a run, no draws yet, inputs of another kind.
pub fn command(arguments: &PredictArguments) -> Result<(), Failure> {
    for (flag, path) in [
        ("--out", &arguments.out),
        ("--reliability", &arguments.reliability),
    ] {
        if let Some(path) = path {
            check_output(flag, path, &arguments.data)?;
        }
    }
    let predictor = Predictor::of(&arguments.run)?;
    let description = predictor.description();
    let inputs = description.read_inputs(&arguments.data)?;
    for note in &inputs.notes {
        to_stderr(&format!("note: {note}"));
    }
    let rotated = arguments
        .rotate
        .map(|degrees| rotated(&inputs.values, description.kind, degrees));
    let rotated = rotated.transpose()?;
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(header(description))
        .map_err(Failure::run)?;
    let request = PredictionRequest {
        without_noise: arguments.no_noise,
        detect: arguments.detect,
    };
    let values = rotated.as_ref().unwrap_or(&inputs.values);
    let found = predictor.predict(values, inputs.truth.as_ref(), request, |rows| {
        write_rows(&mut writer, rows, description)
    })?;
    let text = writer
        .into_inner()
        .map_err(|error| Failure::run(error.to_string()))?;
    match &arguments.out {
        Some(path) => atomic::write(path, &text).map_err(Failure::request)?,
        None => bytes_to_stdout(&text),
    }
    say(arguments, &predictor, found)
}

/// Refuses to write over the inputs, and names that promise another format than CSV.
fn check_output(flag: &str, path: &Path, data: &str) -> Result<(), Failure> {
    let same = path
        .canonicalize()
        .ok()
        .zip(Path::new(data).canonicalize().ok());
    if same.is_some_and(|(out, data)| out == data) {
        return Err(Failure::request(format!(
            "{flag} is `{}`, which has the inputs: give another name",
            path.display()
        )));
    }
    let extension = path.extension().and_then(|extension| extension.to_str());
    let extension = extension.unwrap_or("").to_ascii_lowercase();
    if OTHER_FORMATS.contains(&extension.as_str()) {
        return Err(Failure::request(format!(
            "{flag} is `{}`, and what is written is CSV as plain text: give a name that ends with .csv",
            path.display()
        )));
    }
    Ok(())
}

/// Says what was found over all rows, and writes the reliability table.
fn say(
    arguments: &PredictArguments,
    predictor: &Predictor,
    found: PredictionReport,
) -> Result<(), Failure> {
    let data = &arguments.data;
    if found.clamped > 0 {
        to_stderr(&format!(
            "warning: {} predictive variances came out below 0 by rounding and were set to 0",
            found.clamped
        ));
    }
    if let Some(told) = found.told {
        let detection = told.detection;
        to_stderr(&format!(
            "`{data}` told from the {} test rows of the run: AUROC {}, average precision {}, FPR95 {}",
            told.test_rows,
            number(detection.auroc),
            number(detection.auprc),
            number(detection.fpr95)
        ));
    }
    if let Some(path) = &arguments.reliability {
        let table = found.reliability.ok_or_else(|| {
            Failure::request(format!(
                "--reliability compares classes with the truth, and `{data}` does not have one that the run knows for every row: leave it out"
            ))
        })?;
        atomic::write(path, table.as_bytes()).map_err(Failure::request)?;
    }
    if let Some([draws, of_each]) = predictor.draws() {
        let more = "(`reprior sample` keeps more with --keep or --keep-mb)";
        to_stderr(
            &match (found.components as u64 == draws, predictor.weighs_chains()?) {
                (true, _) => format!(
                    "predictions of {draws} draws, {of_each} of each of {} chains {more}",
                    draws / of_each.max(1)
                ),
                (false, true) => format!(
                    "predictions of {} of {draws} draws, of chains weighted by what they say of rows that are left out {more}",
                    found.components
                ),
                (false, false) => "predictions in closed form, without draws".to_owned(),
            },
        );
    }
    if let Some(metrics) = found.metrics {
        let named = metrics.named().into_iter();
        let words: Vec<String> = named
            .map(|(name, value)| format!("{name} {}", number(value)))
            .collect();
        to_stderr(&format!(
            "against the targets in `{data}`: {}",
            words.join(", ")
        ));
    }
    if !found.metrics_by_target.is_empty() {
        to_stderr(&align(&target_rows(&found.metrics_by_target, number)));
    }
    Ok(())
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
    rows: &PredictedRows,
    description: &DataDescription,
) -> Result<(), Failure> {
    let outputs = description.output_names.len();
    let mut record: Vec<String> = Vec::new();
    if description.is_classification {
        for row in rows.probabilities().chunks_exact(outputs) {
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
    for row in 0..rows.len() {
        record.clear();
        for output in 0..outputs {
            let found = rows.output(row, output)?;
            record.extend([found.mean, found.sd].map(shortest));
            record.extend(found.quantiles.map(shortest));
        }
        writer.write_record(&record).map_err(Failure::run)?;
    }
    Ok(())
}
