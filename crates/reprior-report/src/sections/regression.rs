//! Predictions of real targets beside what was observed, and whether they are calibrated.

use reprior::model::likelihood::name::LikelihoodName;
use reprior_run::PitHistogram;

use super::{Item, missing};
use crate::RunPage;
use crate::chart::{Axis, Chart, Mark};

/// Outputs that are shown.
const MOST_OUTPUTS: usize = 6;
/// Of the intervals.
const LEVEL: f64 = 0.9;

/// `[mean, lower, upper, truth]`, rows × outputs.
pub(super) fn items(run: &RunPage, all: usize, values: [&Vec<f64>; 4]) -> (String, Vec<Item>) {
    let outputs = run.outputs.len().max(1);
    let mut items = Vec::new();
    for (output, name) in run.outputs.iter().enumerate().take(MOST_OUTPUTS) {
        let own = values.map(|values| {
            let own = values.iter().skip(output).step_by(outputs);
            own.copied().collect::<Vec<f64>>()
        });
        items.push(against(run, name, all, &own));
        if let Some(found) = run.pit.iter().find(|found| &found.output == name) {
            items.push(pit(found));
        }
    }
    if run.outputs.len() > MOST_OUTPUTS {
        let why = format!(
            "the first {MOST_OUTPUTS} of {} are shown",
            run.outputs.len()
        );
        items.push(missing("The other outputs", why));
    }
    if run.pit.is_empty() {
        let why = "it needs at least 20 test rows: give more with `--test`";
        items.push(missing("The calibration histogram", why));
    }
    let introduction = "The predictive distribution of every test row, observation noise included, beside what was observed there.";
    (introduction.to_owned(), items)
}

/// Predicted against observed, with intervals.
fn against(
    run: &RunPage,
    name: &str,
    all: usize,
    [mean, lower, upper, truth]: &[Vec<f64>; 4],
) -> Item {
    let rows = truth.len();
    let which = match rows < all {
        true => format!("{rows} of {all} test rows, evenly chosen,"),
        false => "Test rows,".to_owned(),
    };
    let is_inside = |row: usize| lower[row] <= truth[row] && truth[row] <= upper[row];
    let count = (0..rows).filter(|row| is_inside(*row)).count();
    let share = count as f64 / rows.max(1) as f64;
    let error = (share * (1.0 - share) / rows.max(1) as f64).sqrt();
    // of counts both ends belong to the interval, which holds more than it would have to
    let at_least = match run.summary.likelihood == LikelihoodName::Poisson.to_string() {
        true => "at least",
        false => "about",
    };
    let mut marks = Vec::new();
    let everything = [mean, lower, upper, truth].into_iter().flatten();
    let finite = everything.copied().filter(|value| value.is_finite());
    let range = finite.fold(None, |range: Option<(f64, f64)>, value| {
        let (low, high) = range.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    });
    let mut axes = [
        Axis::new(format!("{name}, observed")),
        Axis::new(format!("{name}, predicted")),
    ];
    if let Some((low, high)) = range {
        let margin = 0.03 * (high - low);
        let (low, high) = (low - margin, high + margin);
        axes = axes.map(|axis| axis.within(low, high));
        let diagonal = vec![(low, low), (high, high)];
        marks.push(Mark::reference("predicted as observed", diagonal));
    }
    for (inside, name) in [(true, "observed inside"), (false, "observed outside")] {
        let chosen = || (0..rows).filter(|row| is_inside(*row) == inside);
        marks.push(Mark::Intervals {
            // the points are in the legend
            name: String::new(),
            intervals: chosen()
                .map(|row| (truth[row], lower[row], upper[row]))
                .collect(),
            is_thick: false,
        });
        marks.push(Mark::Points {
            name: name.to_owned(),
            points: chosen().map(|row| (truth[row], mean[row])).collect(),
        });
    }
    let [x, y] = axes;
    Item::Chart(Chart {
        title: format!("{name}: predicted against observed"),
        guide: format!(
            "{which} at what was observed: the predicted mean, and its 90 % interval as a bar. A bar that does not reach the dashed line missed. {:.1} ± {:.1} % of \
             these intervals hold what was observed; {at_least} {:.0} % should.",
            100.0 * share,
            100.0 * error,
            100.0 * LEVEL
        ),
        x,
        y,
        marks,
    })
}

fn pit(found: &PitHistogram) -> Item {
    let bins = found.counts.len();
    let edges: Vec<f64> = (0..=bins).map(|bin| bin as f64 / bins as f64).collect();
    let outside = match found.outside() {
        0 => "all bars are inside".to_owned(),
        1 => "1 bar is outside".to_owned(),
        count => format!("{count} bars are outside"),
    };
    Item::Chart(Chart {
        title: format!("{}: calibration", found.output),
        guide: format!(
            "The probability that was predicted of a value below the observed one, for {} test rows. Flat if the predictions are calibrated; high ends: too sure; a hump: \
             not sure enough; a slope: too high or too low. Bars of calibrated predictions all end in the band with a probability of 99 %; here {outside}.",
            found.rows
        ),
        x: Axis::new("predicted probability of less than observed").within(0.0, 1.0),
        y: Axis::new("test rows"),
        marks: vec![
            Mark::Bars {
                name: "test rows".to_owned(),
                edges,
                heights: found.counts.clone(),
            },
            Mark::Band {
                name: "band of calibrated ones".to_owned(),
                x: vec![0.0, 1.0],
                lower: vec![found.band[0]; 2],
                upper: vec![found.band[1]; 2],
            },
            Mark::reference("flat", line(found.rows as f64 / bins as f64)),
        ],
    })
}

/// All along the axis.
fn line(height: f64) -> Vec<(f64, f64)> {
    vec![(0.0, height), (1.0, height)]
}
