//! How well the chains mix: ranks, autocorrelations, effective draws as they grow.

use reprior::diagnostics::{Draws, Estimator};

use super::{Drawn, Item, Section, missing};
use crate::RunPage;
use crate::chart::{Axis, Chart, Mark};
use crate::read::{MOST_DRAWS, Series};

/// Bins of rank plots, at most.
const BINS: usize = 20;
/// Draws of a chain that a bin should have, and that rank plots need at least.
const PER_BIN: usize = 5;
const FEWEST: usize = 20;
/// Lags that are shown, at most.
const LAGS: usize = 100;
/// Points of the growth of effective draws.
const STAGES: usize = 10;

pub(super) fn section(run: &RunPage, drawn: &Drawn) -> Section {
    let mut items = Vec::new();
    let chains = run.summary.chains;
    let draws = run.summary.draws as usize;
    let too_few = format!("{draws} draws a chain are too few: {FEWEST} are needed");
    if chains < 2 {
        items.push(missing(
            "Rank plots",
            "they compare chains, and there is one",
        ));
    } else if draws < FEWEST {
        items.push(missing("Rank plots", too_few.as_str()));
    } else {
        items.extend(drawn.leading().map(ranks));
    }
    if draws < FEWEST {
        let what = "Autocorrelations and the growth of effective draws";
        items.push(missing(what, too_few));
    } else {
        let mut estimator = Estimator::new();
        let leading = drawn.leading();
        items.extend(leading.map(|series| autocorrelations(series, &mut estimator)));
        items.extend(growth(run, drawn, &mut estimator));
    }
    let introduction = "Whether chains of different starts drew from one distribution, and how much one draw says that the one before did not.";
    Section::new("How well they mixed", introduction, items)
}

/// What is said where not all draws were looked at.
fn part(series: &Series) -> String {
    match series.start {
        0 => String::new(),
        _ => format!(" Of the last {MOST_DRAWS} draws of each chain."),
    }
}

fn ranks(series: &Series) -> Item {
    let (chains, draws) = (series.chains.len(), series.draws());
    let total = chains * draws;
    let mut order: Vec<usize> = (0..total).collect();
    order.sort_by(|a, b| series.values[*a].total_cmp(&series.values[*b]));
    let bins = (draws / PER_BIN).clamp(2, BINS);
    let mut counts = vec![vec![0.0; bins]; chains];
    for (rank, at) in order.into_iter().enumerate() {
        counts[at / draws][rank * bins / total] += 1.0;
    }
    let edges: Vec<f64> = (0..=bins)
        .map(|bin| (bin * total) as f64 / bins as f64)
        .collect();
    let expected = draws as f64 / bins as f64;
    let most = counts
        .iter()
        .flatten()
        .fold(expected, |most: f64, count| most.max(*count));
    let bars = counts
        .into_iter()
        .enumerate()
        .map(|(chain, heights)| Mark::Bars {
            name: series.name_of(chain),
            edges: edges.clone(),
            heights,
        });
    let reference = Mark::reference("expected", vec![(0.0, expected), (total as f64, expected)]);
    Item::Chart(Chart {
        title: format!("Ranks of the {}", series.name),
        guide: format!(
            "All draws are ranked together; each chain's ranks should be spread evenly, along the dashed line. A slope or a hump: that \
             chain was elsewhere.{}",
            part(series)
        ),
        x: Axis::new("rank among the draws of all chains"),
        y: Axis::new("draws").within(0.0, 1.1 * most),
        marks: bars.chain([reference]).collect(),
    })
}

fn autocorrelations(series: &Series, estimator: &mut Estimator) -> Item {
    let lags = LAGS.min(series.draws() / 2);
    let lines = series.of_chains().enumerate().map(|(chain, values)| {
        let found = estimator.autocorrelation(values, lags);
        let points = found.into_iter().enumerate();
        Mark::line(
            series.name_of(chain),
            points.map(|(lag, value)| (lag as f64, value)).collect(),
        )
    });
    let mut marks: Vec<Mark> = lines.collect();
    // two standard errors of the autocorrelations of independent draws
    let chance = 2.0 / (series.draws() as f64).sqrt();
    marks.extend(
        [("by chance", chance), ("", -chance)].map(|(name, height)| {
            Mark::reference(name, vec![(0.0, height), (lags as f64, height)])
        }),
    );
    Item::Chart(Chart {
        title: format!("Autocorrelation of the {}", series.name),
        guide: format!(
            "How much a draw resembles the one so many draws before it: the sooner it falls between the dashed lines, where \
             independent draws stay, the more each draw counts.{}",
            part(series)
        ),
        x: Axis::new("lag in draws"),
        y: Axis::new("autocorrelation"),
        marks,
    })
}

fn growth(run: &RunPage, drawn: &Drawn, estimator: &mut Estimator) -> Option<Item> {
    let mut marks = Vec::new();
    let mut longest = 0;
    for series in drawn.leading() {
        let draws = series.draws();
        longest = longest.max(draws * series.chains.len());
        let mut points = Vec::new();
        for stage in 1..=STAGES {
            let length = draws * stage / STAGES;
            let values: Vec<f64> = series
                .of_chains()
                .flat_map(|chain| chain[..length].iter().copied())
                .collect();
            if let Ok(first) = Draws::new(&values, series.chains.len()) {
                let ess = estimator.ess_bulk(first);
                points.push(((length * series.chains.len()) as f64, ess));
            }
        }
        marks.push(Mark::marked_line(series.name.clone(), points, Vec::new()));
    }
    let first = drawn.leading().next()?;
    marks.push(Mark::reference(
        "independent draws",
        vec![(0.0, 0.0), (longest as f64, longest as f64)],
    ));
    let steps = match run.summary.thin {
        0 | 1 => String::new(),
        thin => format!(" A draw is {thin} transitions."),
    };
    Some(Item::Chart(Chart {
        title: "Effective draws as the run grew".to_owned(),
        guide: format!(
            "Bulk effective sample size of the first draws: it should grow in proportion. Where it flattens, chains have found something \
             new or stick.{steps}{}",
            part(first)
        ),
        x: Axis::new("draws of all chains"),
        y: Axis::new("effective draws"),
        marks,
    }))
}
