//! The course of the chains: traces, and the plane of the first two principal components.

use super::{Drawn, Item, Section, chain_lines, missing};
use crate::RunPage;
use crate::chart::{Axis, Chart, Mark};
use crate::read::{Components, MOST_DRAWS, MOST_TRACED, Series};

/// Draws of a chain in the plane of components.
const IN_PLANE: usize = 200;

pub(super) fn section(run: &RunPage, drawn: &Drawn) -> Section {
    let mut items = Vec::new();
    if run.summary.draws == 0 {
        items.push(missing("Traces", "there are no draws yet"));
    }
    items.extend(drawn.density.as_ref().map(|series| {
        let guide =
            "Good chains look alike and go nowhere: no trend, and no chain that keeps to itself.";
        trace(series, guide)
    }));
    items.extend(drawn.noise.as_ref().map(|series| {
        let guide = "The scale of the observation noise (of the first output): chains should agree on its level and its spread.";
        trace(series, guide)
    }));
    match &drawn.components {
        Ok(components) => {
            for (series, share) in components.series.iter().zip(&components.shares) {
                let guide = format!(
                    "The direction in which the weights vary the {} ({:.0} % of the variance of their random projections): where chains \
                     get stuck, it shows here first.",
                    if series.name.starts_with("first") {
                        "most"
                    } else {
                        "second most"
                    },
                    100.0 * share
                );
                items.push(trace(series, &guide));
            }
            items.extend(plane(components));
        }
        Err(why) if run.summary.draws > 0 => {
            items.push(missing("Principal components", why.clone()));
        }
        Err(_) => {}
    }
    let introduction = "Each draw of the log-density and of the weights' main directions, in the order in which they were drawn.";
    Section::new("Where the chains went", introduction, items)
}

fn trace(series: &Series, guide: &str) -> Item {
    let mut guide = guide.to_owned();
    if series.draws() as u64 > MOST_TRACED {
        guide += &format!(
            " Of {} draws, every {}th is shown.",
            series.draws(),
            (series.draws() as u64).div_ceil(MOST_TRACED)
        );
    }
    if series.start > 0 {
        guide += &format!(" The last {MOST_DRAWS} draws.");
    }
    Item::Chart(Chart {
        title: format!("Trace of the {}", series.name),
        guide,
        x: Axis::new("draw"),
        y: Axis::new(series.name.as_str()),
        marks: chain_lines(series),
    })
}

fn plane(components: &Components) -> Option<Item> {
    let [first, second] = components.series.as_slice() else {
        return None;
    };
    let every = first.draws().div_ceil(IN_PLANE).max(1);
    let chains = first.of_chains().zip(second.of_chains()).enumerate();
    let marks = chains.map(|(chain, (x, y))| Mark::Points {
        name: first.name_of(chain),
        points: x
            .iter()
            .copied()
            .zip(y.iter().copied())
            .step_by(every)
            .collect(),
    });
    Some(Item::Chart(Chart {
        title: "Draws in the plane of the first two principal components".to_owned(),
        guide: "Clouds of different chains should lie on one another; apart, they are different modes or chains that have not arrived."
            .to_owned(),
        x: Axis::new(first.name.as_str()),
        y: Axis::new(second.name.as_str()),
        marks: marks.collect(),
    }))
}
