//! Predictions of real targets beside the truth.

use super::{Item, missing};
use crate::RunPage;
use crate::chart::{Axis, Chart, Mark};

/// Outputs that are shown.
const MOST_OUTPUTS: usize = 6;
/// Of the intervals.
const LEVEL: f64 = 0.9;

/// `[mean, lower, upper, truth]`, rows × outputs.
pub(super) fn items(
    run: &RunPage,
    all: usize,
    [mean, lower, upper, truth]: [&Vec<f64>; 4],
) -> (String, Vec<Item>) {
    let outputs = run.outputs.len().max(1);
    let rows = truth.len() / outputs;
    let which = match rows < all {
        true => format!("{rows} of {all} test rows, evenly chosen,"),
        false => "Test rows".to_owned(),
    };
    let mut items = Vec::new();
    for (output, name) in run.outputs.iter().enumerate().take(MOST_OUTPUTS) {
        let at = |values: &[f64], row: usize| values[row * outputs + output];
        let mut order: Vec<usize> = (0..rows).collect();
        order.sort_by(|a, b| at(mean, *a).total_cmp(&at(mean, *b)));
        let place: Vec<f64> = (1..=rows).map(|place| place as f64).collect();
        let pick = |values: &[f64]| {
            order
                .iter()
                .map(|row| at(values, *row))
                .collect::<Vec<f64>>()
        };
        let (low, high, middle, seen) = (pick(lower), pick(upper), pick(mean), pick(truth));
        let is_inside = |index: usize| low[index] <= seen[index] && seen[index] <= high[index];
        let choose = |inside: bool| -> Vec<(f64, f64)> {
            let chosen = (0..rows).filter(|index| is_inside(*index) == inside);
            chosen.map(|index| (place[index], seen[index])).collect()
        };
        let (inside, outside) = (choose(true), choose(false));
        let share = inside.len() as f64 / rows.max(1) as f64;
        let mut marks = vec![Mark::Band {
            name: "90 % interval".to_owned(),
            x: place.clone(),
            lower: low.clone(),
            upper: high.clone(),
        }];
        marks.push(Mark::Points {
            name: "truth, inside".to_owned(),
            points: inside,
        });
        marks.push(Mark::Points {
            name: "truth, outside".to_owned(),
            points: outside,
        });
        marks.push(Mark::reference(
            "predicted mean",
            place.iter().copied().zip(middle).collect(),
        ));
        items.push(Item::Chart(Chart {
            title: format!("Predictions of {name} and the truth"),
            guide: format!(
                "{which} in the order of the predicted mean. {:.1} % of these true values lie in their intervals; about {:.0} % should.",
                100.0 * share,
                100.0 * LEVEL
            ),
            x: Axis::new("test row, sorted"),
            y: Axis::new(name.as_str()),
            marks,
        }));
    }
    if run.outputs.len() > MOST_OUTPUTS {
        let why = format!(
            "the first {MOST_OUTPUTS} of {} are shown",
            run.outputs.len()
        );
        items.push(missing("The other outputs", why));
    }
    let introduction = "The predictive distribution of every test row, observation noise included, beside what was observed there.";
    (introduction.to_owned(), items)
}
