//! How the method found its way: step sizes of the warm-up, losses by epoch, temperatures.

use reprior_io::run::{DrawReader, Selection};

use super::{Item, Section, chain_lines, missing};
use crate::chart::{Axis, Chart, Mark};
use crate::read::{self, Series};
use reprior_run::Nature;

use crate::{ReportError, RunPage};

pub(super) fn section(run: &RunPage, reader: &DrawReader) -> Result<Section, ReportError> {
    let mut items = Vec::new();
    match run.nature {
        Nature::Chains => warmup(run, reader, &mut items)?,
        Nature::ApproximateChains | Nature::Draws => {
            epochs(reader, &mut items)?;
            if run.nature == Nature::ApproximateChains {
                temperature(run, reader, &mut items)?;
            }
        }
        Nature::ClosedForm => items.push(missing(
            "Adaptation and training",
            "a closed form has neither",
        )),
    }
    Ok(Section::new("How it got there", "", items))
}

fn warmup(run: &RunPage, reader: &DrawReader, items: &mut Vec<Item>) -> Result<(), ReportError> {
    const GROUP: &str = "warmup_sample_stats";
    let draws = read::draws(reader, GROUP);
    let chains = &run.summary.chain_numbers;
    let step = read::scalar(reader, [GROUP, "step_size"], "step size", draws, chains)?;
    match step.filter(Series::is_anywhere_finite) {
        Some(series) => items.push(Item::Chart(Chart {
            title: "Step size during warm-up".to_owned(),
            guide: "It is tried, corrected and settles; afterwards it is fixed. Chains should end near one another.".to_owned(),
            x: Axis::new("record of the warm-up"),
            y: Axis::new("step size").logarithmic(),
            marks: chain_lines(&series),
        })),
        None => items.push(missing(
            "Step size during warm-up",
            "none was recorded: no warm-up, or a method without a step size",
        )),
    }
    let place = [GROUP, "acceptance_rate"];
    if let Some(series) = read::scalar(reader, place, "acceptance rate", draws, chains)? {
        items.push(Item::Chart(Chart {
            title: "Acceptance during warm-up".to_owned(),
            guide:
                "Mean acceptance probability since the previous record, on its way to the target."
                    .to_owned(),
            x: Axis::new("record of the warm-up"),
            y: Axis::new("acceptance rate").within(0.0, 1.0),
            marks: chain_lines(&series),
        }));
    }
    Ok(())
}

/// Means over chains of one number per epoch; those that are not finite count for nothing.
fn by_epoch(reader: &DrawReader, name: &str, epochs: u64) -> Result<Vec<(f64, f64)>, ReportError> {
    if epochs == 0 || !read::has(reader, "epochs", name) {
        return Ok(Vec::new());
    }
    let every = epochs.div_ceil(read::MOST_TRACED).max(1);
    let mut sums: Vec<(f64, f64)> = Vec::new();
    reader.for_each_draw::<f64>("epochs", name, &Selection::all(), |_, epoch, values| {
        if epoch % every == 0
            && let Some(value) = values.first().filter(|value| value.is_finite())
        {
            let at = (epoch / every) as usize;
            sums.resize(sums.len().max(at + 1), (0.0, 0.0));
            sums[at].0 += value;
            sums[at].1 += 1.0;
        }
    })?;
    let points = sums.into_iter().enumerate();
    Ok(points
        .map(|(at, (sum, count))| ((at as u64 * every + 1) as f64, sum / count))
        .filter(|point| point.1.is_finite())
        .collect())
}

fn epochs(reader: &DrawReader, items: &mut Vec<Item>) -> Result<(), ReportError> {
    let epochs = read::draws(reader, "epochs");
    let train = by_epoch(reader, "train_nll", epochs)?;
    let validation = by_epoch(reader, "validation_nll", epochs)?;
    if train.is_empty() {
        items.push(missing("Loss by epoch", "no epoch was recorded"));
        return Ok(());
    }
    let mut marks = vec![Mark::line("training", train)];
    let guide = match validation.is_empty() {
        true => {
            "Mean of −log p of the minibatches of each epoch, over chains: it should flatten. No rows were held out (`--validation`)."
        }
        false => {
            "Mean of −log p by epoch, over chains. Training should flatten; validation that rises again says that the network overfits."
        }
    };
    if !validation.is_empty() {
        marks.push(Mark::line("validation", validation));
    }
    items.push(Item::Chart(Chart {
        title: "Negative log-likelihood by epoch".to_owned(),
        guide: guide.to_owned(),
        x: Axis::new("epoch"),
        y: Axis::new("negative log-likelihood"),
        marks,
    }));
    let steps = by_epoch(reader, "step_size", epochs)?;
    if !steps.is_empty() {
        items.push(Item::Chart(Chart {
            title: "Step size by epoch".to_owned(),
            guide: "The schedule, at the last update of each epoch.".to_owned(),
            x: Axis::new("epoch"),
            y: Axis::new("step size").logarithmic(),
            marks: vec![Mark::line("step size", steps)],
        }));
    }
    Ok(())
}

fn temperature(
    run: &RunPage,
    reader: &DrawReader,
    items: &mut Vec<Item>,
) -> Result<(), ReportError> {
    let place = ["sample_stats", "configurational_temperature"];
    let found = read::scalar(
        reader,
        place,
        "configurational temperature",
        run.summary.draws,
        &run.summary.chain_numbers,
    )?;
    let Some(series) = found.filter(Series::is_anywhere_finite) else {
        return Ok(());
    };
    let mut marks = chain_lines(&series);
    let end = (series.start as usize + series.draws()) as f64;
    let start = series.start as f64 + 1.0;
    marks.push(Mark::reference("posterior", vec![(start, 1.0), (end, 1.0)]));
    items.push(Item::Chart(Chart {
        title: "Configurational temperature".to_owned(),
        guide: "1 where the chain is at the posterior, on average; above: the steps are too large, or it has not arrived.".to_owned(),
        x: Axis::new("draw"),
        y: Axis::new("temperature"),
        marks,
    }));
    Ok(())
}
