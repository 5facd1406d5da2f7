//! All claims of results that were kept, in one table: paper, claim, published, ours, verdict.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Failure, Finding, Outcome, experiments};

/// The file of an experiment's findings, beside its tables and figures.
pub const FINDINGS: &str = "findings.json";

/// What is kept of an outcome: its findings, and what they are of.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kept {
    experiment: String,
    paper: String,
    figure: String,
    size: String,
    data: String,
    seconds: f64,
    #[serde(default)]
    as_published: bool,
    pub(crate) findings: Vec<Finding>,
}

impl Kept {
    /// Of an outcome.
    pub fn new(outcome: &Outcome) -> Self {
        Self {
            experiment: outcome.about.name.to_owned(),
            paper: outcome.about.paper.to_string(),
            figure: outcome.about.figure.to_owned(),
            size: outcome.size.to_string(),
            data: outcome.data.clone(),
            seconds: outcome.seconds,
            as_published: outcome.as_published,
            findings: outcome.findings.clone(),
        }
    }

    /// As its file has it.
    pub fn text(&self) -> String {
        format!("{:#}\n", serde_json::to_value(self).unwrap_or_default())
    }

    pub(crate) fn read(path: &Path) -> Result<Option<Self>, Failure> {
        if !path.is_file() {
            return Ok(None);
        }
        let text = fs::read_to_string(path).map_err(Failure::io(path))?;
        let kept = serde_json::from_str(&text);
        kept.map(Some).map_err(|error| {
            Failure::Request(format!(
                "{} is no list of findings: {error}",
                path.display()
            ))
        })
    }

    /// The command that makes it again.
    fn command(&self) -> String {
        let size = match self.size.as_str() {
            "default" => String::new(),
            size => format!(" --{size}"),
        };
        let data = if self.data == "none" {
            ""
        } else {
            " --data DIR"
        };
        let published = if self.as_published {
            " --as-published"
        } else {
            ""
        };
        format!(
            "reprior reproduce {}{size}{data}{published}",
            self.experiment
        )
    }
}

/// The table, in Markdown, of the findings in `folder`'s folders, in the order of the papers.
///
/// # Errors
/// A folder or file that cannot be read; a folder without any findings.
pub fn ledger(folder: &Path) -> Result<String, Failure> {
    let mut text =
        String::from("| paper | claim | published | ours | verdict |\n|---|---|---|---|---|\n");
    let mut commands = String::new();
    let mut count = 0;
    for experiment in experiments() {
        let name = experiment.about().name;
        let Some(kept) = Kept::read(&folder.join(name).join(FINDINGS))? else {
            continue;
        };
        count += 1;
        commands.push_str(&format!(
            "* [{name}]({name}): `{}`, {}\n",
            kept.command(),
            duration(kept.seconds)
        ));
        for finding in &kept.findings {
            let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
            let verdict = match &finding.because {
                Some(because) => format!("{}: {because}", finding.verdict),
                None => finding.verdict.to_string(),
            };
            text.push_str(&format!(
                "| [{}, {}]({name}) | {} | {} | {} | {} |\n",
                kept.paper,
                kept.figure,
                cell(&finding.claim),
                cell(finding.published.as_deref().unwrap_or("")),
                cell(&finding.measured),
                cell(&verdict)
            ));
        }
    }
    if count == 0 {
        return Err(Failure::Request(format!(
            "no folder of {} has a {FINDINGS}: give the folder in which results lie, such as results",
            folder.display()
        )));
    }
    Ok(format!("{text}\n## Commands\n\n{commands}"))
}

fn duration(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        ..7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
