//! What the columns of a table do to the predictions: which matter, and how.

use reprior_run::words::number;
use reprior_run::{Dependence, InputEffects, Rise};

use super::{Item, Section, missing, table};
use crate::RunPage;
use crate::chart::{Axis, Chart, Mark};

/// Columns in the chart of importance.
const MOST_COLUMNS: usize = 20;

/// Nothing of images.
pub(super) fn section(run: &RunPage) -> Option<Section> {
    let items = match run.effects.as_ref()? {
        Ok(effects) => items(run, effects),
        Err(why) => {
            let what = "Which columns matter, and how predictions depend on them";
            let hint =
                "predictions for altered rows need the data and kept positions (`sample --keep N`)";
            vec![missing(
                what,
                format!("{}; {hint}", why.trim_end_matches('.')),
            )]
        }
    };
    let introduction = "How much worse the predictions become without a column, and how they change with it. Both are of the predictions, not of the world: a column \
                        that goes together with others shares its part with them, and nothing here says what causes what.";
    Some(Section::new("What the inputs do", introduction, items))
}

fn items(run: &RunPage, effects: &InputEffects) -> Vec<Item> {
    let mut items = Vec::new();
    if effects.importance.is_empty() {
        let why = "it needs at least ten test rows: give some with `--test`";
        items.push(missing("Which columns matter", why));
    } else {
        items.extend(importance(effects));
    }
    let draws = draws(effects);
    for one in &effects.dependence {
        items.push(dependence(run, one, effects.train_rows, &draws));
    }
    items
}

fn draws(effects: &InputEffects) -> String {
    match effects.draws {
        1 => "one draw or a closed form".to_owned(),
        count => format!("{count} draws, evenly chosen"),
    }
}

/// The chart, and all numbers.
fn importance(effects: &InputEffects) -> [Item; 2] {
    let shown = effects.importance.len().min(MOST_COLUMNS);
    let all = &effects.importance[..shown];
    let names = all.iter().map(|own| own.column.clone()).collect();
    let interval = |(place, own): (usize, &Rise)| {
        let error = own.standard_error;
        (place as f64, own.value - error, own.value + error)
    };
    let rises = || all.iter().map(|own| &own.nll).enumerate();
    let which = match shown < effects.importance.len() {
        true => format!(
            " The first {shown} of {} columns.",
            effects.importance.len()
        ),
        false => String::new(),
    };
    let row = match effects.are_watched {
        true => "watched row, which trains as well,",
        false => "test row",
    };
    let chart = Chart {
        title: "Which columns matter".to_owned(),
        guide: format!(
            "How much more a {row} costs, in nats, when the column is taken from another one: 0 for a column that is not used. Bars: one standard error, over \
             rows. {} rows, each with {} other rows' values, {}.{which}",
            effects.test_rows,
            effects.shifts,
            draws(effects)
        ),
        x: Axis::new("column").of(names),
        y: Axis::new("rise of the negative log-likelihood"),
        marks: vec![
            Mark::reference("not used", vec![(0.0, 0.0), (shown as f64 - 1.0, 0.0)]),
            Mark::Intervals {
                name: "one standard error".to_owned(),
                intervals: rises().map(interval).collect(),
                is_thick: false,
            },
            Mark::Points {
                name: "rise".to_owned(),
                points: rises()
                    .map(|(place, own)| (place as f64, own.value))
                    .collect(),
            },
        ],
    };
    let with_error =
        |rise: &Rise| format!("{} ± {}", number(rise.value), number(rise.standard_error));
    let is_classes = effects.importance.iter().any(|own| own.accuracy.is_some());
    let second = match is_classes {
        true => "fall of the accuracy",
        false => "rise of the rmse",
    };
    let rows = effects.importance.iter().map(|own| {
        let other = own.accuracy.as_ref().or(own.rmse.as_ref());
        vec![
            own.column.clone(),
            with_error(&own.nll),
            other.map_or_else(|| "-".to_owned(), with_error),
        ]
    });
    let columns = ["column", "rise of the negative log-likelihood", second];
    let title = "What predictions lose with each column";
    [Item::Chart(chart), table(title, &columns, rows.collect())]
}

fn dependence(run: &RunPage, one: &Dependence, rows: usize, draws: &str) -> Item {
    let is_classes = matches!(
        run.predictions,
        Ok(crate::Predictions::Classification { .. })
    );
    let what = match is_classes {
        true => format!("probability of {}", one.output),
        false => one.output.clone(),
    };
    let middle: Vec<(f64, f64)> = pairs(&one.places, &one.mean);
    let quantile = |which: usize| one.quantiles.iter().map(move |all| all[which]);
    let mut marks = Vec::new();
    let (reading, x) = if let Some(levels) = &one.levels {
        for (name, [low, high], is_thick) in [
            ("90 % of draws", [0, 3], false),
            ("50 % of draws", [1, 2], true),
        ] {
            let ends = quantile(low).zip(quantile(high));
            let places = one.places.iter().zip(ends);
            marks.push(Mark::Intervals {
                name: name.to_owned(),
                intervals: places.map(|(at, (low, high))| (*at, low, high)).collect(),
                is_thick,
            });
        }
        marks.push(Mark::Points {
            name: "mean".to_owned(),
            points: middle,
        });
        let reading = "Bars: 90 % and 50 % of the draws.";
        (reading, Axis::new(one.column.as_str()).of(levels.clone()))
    } else {
        for (name, [low, high]) in [("90 % of draws", [0, 3]), ("50 % of draws", [1, 2])] {
            marks.push(Mark::Band {
                name: name.to_owned(),
                x: one.places.clone(),
                lower: quantile(low).collect(),
                upper: quantile(high).collect(),
            });
        }
        marks.push(Mark::line("mean", middle));
        marks.push(Mark::Rug {
            name: "training rows".to_owned(),
            x: within(&one.training_values, &one.places),
        });
        let reading = "Bands: 90 % and 50 % of the draws. Ticks: training values; where there are few, the network extrapolates.";
        (reading, Axis::new(one.column.as_str()))
    };
    Item::Chart(Chart {
        title: format!("{what} by {}", one.column),
        guide: format!(
            "Mean prediction for {rows} training rows if all had this {}, the rest as it is; {draws}. {reading}",
            one.column
        ),
        x,
        y: Axis::new(what),
        marks,
    })
}

fn pairs(x: &[f64], y: &[f64]) -> Vec<(f64, f64)> {
    x.iter().copied().zip(y.iter().copied()).collect()
}

/// The values that the axis shows.
fn within(values: &[f64], places: &[f64]) -> Vec<f64> {
    let (low, high) = (places.first(), places.last());
    let is_shown = |value: &&f64| {
        low.is_none_or(|low| low <= *value) && high.is_none_or(|high| *value <= high)
    };
    values.iter().filter(is_shown).copied().collect()
}
