//! Other inputs than the test rows: is the network less sure of them?

use reprior::metrics::detection::Detection;

use super::{Item, Section, missing, table};
use crate::chart::{Axis, Chart, Mark};
use crate::{Predictions, RunPage};
use reprior_run::words::number;

const BINS: usize = 25;

/// Left out without other predictions.
pub(super) fn section(run: &RunPage) -> Option<Section> {
    if run.others.is_empty() {
        return None;
    }
    let Ok(Predictions::Classification { probabilities, .. }) = &run.predictions else {
        return Some(of(vec![missing(
            "Confidence of other inputs",
            "the run predicts no classes for test rows to compare with",
        )]));
    };
    let classes = run.outputs.len().max(1);
    let own: Vec<f64> = probabilities
        .chunks_exact(classes)
        .map(|row| row.iter().copied().fold(f64::NAN, f64::max))
        .collect();
    let mut marks = vec![bars("test rows", &own)];
    let mut rows = Vec::new();
    for others in &run.others {
        marks.push(bars(&others.name, &others.confidences));
        let mut row = vec![others.name.clone(), others.confidences.len().to_string()];
        let mean = others.confidences.iter().sum::<f64>() / others.confidences.len() as f64;
        row.push(number(mean));
        match Detection::new(&own, &others.confidences) {
            Ok(found) => row.extend([found.auroc, found.auprc, found.fpr95].map(number)),
            Err(_) => row.extend(["-", "-", "-"].map(str::to_owned)),
        }
        rows.push(row);
    }
    let minibatch = run.summary.minibatch.as_ref();
    let is_mixed = minibatch.is_some_and(|own| own.metrics_in_closed_form.is_some());
    let differ = match is_mixed {
        true => {
            " The test rows are predicted by the recorded draws, other inputs in closed form, as `predict` does: small differences may be of that."
        }
        false => "",
    };
    let title = "Told from the test rows by their confidence (AUROC 0.5: not at all; 1: always)";
    let columns = [
        "inputs",
        "rows",
        "mean confidence",
        "AUROC",
        "average precision",
        "FPR95",
    ];
    Some(of(vec![
        Item::Chart(Chart {
            title: "Confidence of the test rows and of other inputs".to_owned(),
            guide: format!(
                "Inputs unlike the training data should move to the left, where the network is unsure. Shares of each set's rows.{differ}"
            ),
            x: Axis::new("confidence").within(0.0, 1.0),
            y: Axis::new("share of rows"),
            marks,
        }),
        table(title, &columns, rows),
    ]))
}

fn of(items: Vec<Item>) -> Section {
    Section::new("Inputs unlike the training data", "", items)
}

fn bars(name: &str, confidences: &[f64]) -> Mark {
    let mut heights = vec![0.0; BINS];
    let finite = confidences.iter().filter(|value| value.is_finite());
    for value in finite {
        let bin = (value * BINS as f64).floor().clamp(0.0, BINS as f64 - 1.0) as usize;
        heights[bin] += 1.0 / confidences.len() as f64;
    }
    Mark::Bars {
        name: name.to_owned(),
        edges: (0..=BINS).map(|bin| bin as f64 / BINS as f64).collect(),
        heights,
    }
}
