//! Predictions of classes: calibration, confusion, the images that the network is least sure of.

use reprior::metrics::ClassPredictions;

use super::{Item, images, missing};
use crate::RunPage;
use crate::chart::{Axis, Chart, Mark};
use crate::run::most_probable;

/// Bins of reliability diagrams, as in `summary`.
const BINS: usize = 15;
/// Classes that a confusion matrix can have and still be read.
const MOST_CLASSES: usize = 25;

pub(super) fn items(run: &RunPage, probabilities: &[f64], labels: &[u32]) -> (String, Vec<Item>) {
    let classes = run.outputs.len();
    let predictions = match ClassPredictions::new(probabilities, labels, classes) {
        Ok(predictions) => predictions,
        Err(error) => {
            let why = format!("the predictions are no probabilities: {error}");
            let items = vec![missing("Reliability and confusion", why)];
            return (String::new(), items);
        }
    };
    let mut items = vec![reliability(&predictions), confidence(&predictions)];
    if classes > MOST_CLASSES {
        let why =
            format!("{classes} classes are too many to be read in one (up to {MOST_CLASSES} are)");
        items.push(missing("The confusion matrix", why));
    } else {
        items.push(confusion(run, probabilities, labels));
    }
    // of a table nobody misses them
    if run.images.is_ok() || run.effects.is_none() {
        items.push(images::most_uncertain(run, probabilities, labels));
    }
    let introduction =
        "The predictive probabilities of every test row, the mean over draws, beside its class.";
    (introduction.to_owned(), items)
}

fn reliability(predictions: &ClassPredictions<'_>) -> Item {
    let table = predictions.reliability(BINS);
    let filled = table.iter().filter(|bin| bin.count > 0);
    let points: Vec<(f64, f64)> = filled
        .clone()
        .map(|bin| (bin.confidence, bin.accuracy))
        .collect();
    // of a share of so many rows
    let errors = filled.map(|bin| (bin.accuracy * (1.0 - bin.accuracy) / bin.count as f64).sqrt());
    Item::Chart(Chart {
        title: "Reliability".to_owned(),
        guide: "Of what is predicted with a confidence of 0.8, 80 % should be right: points on the dashed line. Below it the network is too \
                sure of itself, above it not sure enough. Bars: one standard error."
            .to_owned(),
        x: Axis::new("confidence").within(0.0, 1.0),
        y: Axis::new("accuracy").within(0.0, 1.0),
        marks: vec![
            Mark::reference("calibrated", vec![(0.0, 0.0), (1.0, 1.0)]),
            Mark::marked_line("this run", points, errors.collect()),
        ],
    })
}

fn confidence(predictions: &ClassPredictions<'_>) -> Item {
    let table = predictions.reliability(BINS);
    Item::Chart(Chart {
        title: "Confidence".to_owned(),
        guide: "How sure the network is of the test rows: probability of the most probable class."
            .to_owned(),
        x: Axis::new("confidence").within(0.0, 1.0),
        y: Axis::new("test rows"),
        marks: vec![Mark::Bars {
            name: String::new(),
            edges: (0..=BINS).map(|bin| bin as f64 / BINS as f64).collect(),
            heights: table.iter().map(|bin| bin.count as f64).collect(),
        }],
    })
}

fn confusion(run: &RunPage, probabilities: &[f64], labels: &[u32]) -> Item {
    let classes = run.outputs.len();
    let mut counts = vec![vec![0.0; classes]; classes];
    for (row, label) in probabilities.chunks_exact(classes).zip(labels) {
        if let Some(of_class) = counts.get_mut(*label as usize) {
            of_class[most_probable(row)] += 1.0;
        }
    }
    for row in &mut counts {
        let total: f64 = row.iter().sum();
        row.iter_mut().for_each(|count| *count /= total);
    }
    Item::Chart(Chart {
        title: "Confusion".to_owned(),
        guide: "Rows are true classes, columns what was predicted; each number is a share of its row. Off the diagonal are the mistakes. A \
                row without a test row of that class is empty."
            .to_owned(),
        x: Axis::new("predicted class"),
        y: Axis::new("true class"),
        marks: vec![Mark::Heatmap {
            rows: run.outputs.clone(),
            columns: run.outputs.clone(),
            values: counts,
        }],
    })
}
