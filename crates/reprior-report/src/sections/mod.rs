//! The parts of a run's report, each a heading with charts, tables and reasons for what is left out.

mod adaptation;
mod classes;
mod effort;
mod images;
mod inputs;
mod mixing;
mod others;
mod regression;
mod traces;

use reprior_io::run::DrawReader;

use crate::chart::{Chart, Mark};
use crate::read::{self, Components, Series};
use crate::{Predictions, ReportError, RunPage};

/// A part of a run's report.
pub(crate) struct Section {
    pub title: &'static str,
    /// What it is about, in a sentence or two.
    pub introduction: String,
    pub items: Vec<Item>,
}

impl Section {
    fn new(title: &'static str, introduction: impl Into<String>, items: Vec<Item>) -> Self {
        Self {
            title,
            introduction: introduction.into(),
            items,
        }
    }
}

/// One thing in a section.
pub(crate) enum Item {
    Chart(Chart),
    /// Column names and rows.
    Table {
        title: String,
        columns: Vec<String>,
        rows: Vec<Vec<String>>,
    },
    Pictures {
        title: String,
        guide: String,
        pictures: Vec<Picture>,
    },
    /// What is left out, and why.
    Missing {
        what: &'static str,
        why: String,
    },
    /// Text as it is in a file.
    Verbatim {
        title: String,
        text: String,
    },
}

/// A small image with what is said of it.
pub(crate) struct Picture {
    /// As a `data:` address.
    pub address: String,
    pub width: usize,
    pub height: usize,
    pub lines: Vec<String>,
}

pub(crate) fn missing(what: &'static str, why: impl Into<String>) -> Item {
    Item::Missing {
        what,
        why: why.into(),
    }
}

/// Everything that a run's folder has to show.
///
/// # Errors
/// A folder that cannot be read.
pub(crate) fn of(run: &RunPage) -> Result<Vec<Section>, ReportError> {
    let reader = DrawReader::open(&run.folder)?;
    let drawn = Drawn::read(run, &reader)?;
    let mut sections = vec![predictions(run)];
    sections.extend(inputs::section(run));
    sections.extend(others::section(run));
    if run.nature.has_chains() && !run.has_particles() {
        sections.push(traces::section(run, &drawn));
        sections.push(mixing::section(run, &drawn));
    } else {
        sections.push(without_chains(run));
    }
    sections.push(adaptation::section(run, &reader)?);
    sections.push(effort::section(run));
    sections.push(effort::provenance(run, &reader));
    Ok(sections)
}

/// The variables whose course is shown.
pub(crate) struct Drawn {
    /// The log-density, or the loss of minibatch methods.
    pub density: Option<Series>,
    /// A learned noise scale.
    pub noise: Option<Series>,
    /// Or why there are none.
    pub components: Result<Components, String>,
}

impl Drawn {
    fn read(run: &RunPage, reader: &DrawReader) -> Result<Self, ReportError> {
        let (draws, chains) = (run.summary.draws, &run.summary.chain_numbers);
        if !run.nature.has_chains() || draws == 0 {
            return Ok(Self {
                density: None,
                noise: None,
                components: Err("there are no draws".to_owned()),
            });
        }
        let lp = read::scalar(reader, ["sample_stats", "lp"], "log-density", draws, chains)?;
        let density = match lp {
            Some(lp) => Some(lp),
            None => {
                let place = ["sample_stats", "train_nll"];
                read::scalar(reader, place, "loss of minibatches", draws, chains)?
            }
        };
        Ok(Self {
            density,
            noise: read::scalar(
                reader,
                ["posterior", "noise"],
                "learned noise",
                draws,
                chains,
            )?,
            components: read::components(reader, draws, chains)?,
        })
    }

    /// Those whose mixing is looked at: of the components, the first.
    pub fn leading(&self) -> impl Iterator<Item = &Series> {
        let first = self
            .components
            .iter()
            .flat_map(|found| found.series.first());
        self.density.iter().chain(&self.noise).chain(first)
    }
}

fn predictions(run: &RunPage) -> Section {
    let (introduction, items) = match &run.predictions {
        Err(why) => (String::new(), vec![missing("Predictions", why.as_str())]),
        Ok(Predictions::Regression {
            rows,
            mean,
            lower,
            upper,
            truth,
        }) => regression::items(run, *rows, [mean, lower, upper, truth]),
        Ok(Predictions::Classification {
            probabilities,
            labels,
        }) => classes::items(run, probabilities, labels),
    };
    Section::new("What it predicts", introduction, items)
}

fn without_chains(run: &RunPage) -> Section {
    let method = &run.summary.method;
    let why = match run.nature {
        reprior_run::Nature::ClosedForm => format!("{method} is a closed form and draws nothing"),
        _ => format!("the draws of {method} are no chain's: one does not follow from another"),
    };
    let what = "Traces, ranks, autocorrelations and principal components";
    Section::new("The chains", "", vec![missing(what, why)])
}

fn table(title: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Item {
    Item::Table {
        title: title.to_owned(),
        columns: columns.iter().map(|&name| name.to_owned()).collect(),
        rows,
    }
}

/// A line for each chain's course, thinned.
fn chain_lines(series: &Series) -> Vec<Mark> {
    let traces = series.traces().into_iter().enumerate();
    traces
        .map(|(chain, points)| Mark::line(series.name_of(chain), points))
        .collect()
}
