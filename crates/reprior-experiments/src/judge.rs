//! Results that were kept, judged anew: the claims of today's rules on numbers that were measured before.

use std::fs;
use std::path::Path;

use crate::ledger::{FINDINGS, Kept};
use crate::{Experiment, Failure, Figure, Finding, Table, experiments, find};

/// What the rules say of the results in an experiment's folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The experiment.
    pub name: &'static str,
    /// What is kept there.
    pub before: Vec<Finding>,
    /// What the rules say now; nothing where a table that they need was not kept.
    pub now: Option<Vec<Finding>>,
    /// The tables that are kept.
    pub tables: Vec<Table>,
}

/// Judges the tables in `folder`'s folders, in the order of the papers.
///
/// # Errors
/// A folder or file that cannot be read; a folder without any findings.
pub fn judge(folder: &Path) -> Result<Vec<Judged>, Failure> {
    let mut all = Vec::new();
    for experiment in experiments() {
        let name = experiment.about().name;
        let own = folder.join(name);
        let Some(kept) = Kept::read(&own.join(FINDINGS))? else {
            continue;
        };
        let tables = tables(&own)?;
        let is_kept = |name: &&str| tables.iter().any(|table| table.name == **name);
        let is_whole = experiment.judged_tables().iter().all(is_kept);
        all.push(Judged {
            name,
            before: kept.findings,
            now: is_whole.then(|| experiment.findings(&tables)),
            tables,
        });
    }
    if all.is_empty() {
        return Err(Failure::Request(format!(
            "no folder of {} has a {FINDINGS}: give the folder in which results lie, such as results",
            folder.display()
        )));
    }
    Ok(all)
}

/// Writes what the rules say now, if they can say it, in place of what is kept, and draws the pictures anew that are there and whose tables are.
///
/// # Errors
/// A file that cannot be read or written.
pub fn keep(folder: &Path, judged: &Judged) -> Result<(), Failure> {
    redraw(&folder.join(judged.name), judged.name)?;
    let path = folder.join(judged.name).join(FINDINGS);
    let (Some(mut kept), Some(now)) = (Kept::read(&path)?, &judged.now) else {
        return Ok(());
    };
    kept.findings.clone_from(now);
    fs::write(&path, kept.text()).map_err(Failure::io(&path))
}

/// The pictures of an experiment that lie in its folder, from the tables there.
fn redraw(own: &Path, name: &str) -> Result<(), Failure> {
    let tables = tables(own)?;
    let figures = find(name).map_or_else(Vec::new, Experiment::figures);
    let is_kept = |figure: &Figure| tables.iter().any(|table| table.name == figure.table);
    for figure in figures.iter().filter(|figure| is_kept(figure)) {
        figure.rewrite(&tables, own)?;
    }
    Ok(())
}

/// The tables of a folder, from their CSV files.
fn tables(folder: &Path) -> Result<Vec<Table>, Failure> {
    let entries = fs::read_dir(folder).map_err(Failure::io(folder))?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()).map_err(Failure::io(folder)))
        .collect::<Result<Vec<_>, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "csv"));
    paths.sort();
    let read = |path: &Path| {
        let text = fs::read_to_string(path).map_err(Failure::io(path))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Table::of_csv(&name, &text)
            .map_err(|error| Failure::Request(format!("{} is no table: {error}", path.display())))
    };
    paths.iter().map(|path| read(path)).collect()
}
