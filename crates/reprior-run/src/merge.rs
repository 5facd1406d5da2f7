//! Runs of other chains of one posterior, put together: the run that all of these chains would have been.
//!
//! A chain is the same whichever run it is in ([`RunSettings::first_chain`](crate::RunSettings)), so that the merged run has the bytes of one that
//! was made of its `config.toml` in one piece.

use std::path::{Path, PathBuf};

use reprior_io::run::{ChainOf, Files, RunFolder, WEIGHTS, checkpoint};

use crate::check::checked;
use crate::difference::{Ignored, difference};
use crate::failure::{Failure, name_of};
use crate::method::{read_fits, write_fits};
use crate::problem::{DATA, DataDescription, Problem, kept_as};
use crate::record::Destination;
use crate::run::{SUMMARY, is_within, refuse_run_in, write_summary};
use crate::settings::{CONFIG, Nature, Settings};
use crate::summary::{LaplaceFitSummary, Summary};

/// What a merge may do that it would refuse otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MergeOptions {
    /// Replace an earlier run at the place of the merged one.
    pub overwrite: bool,
    /// Leave out chains that no run has.
    pub allow_gaps: bool,
    /// Take chains that several runs have from the first of them.
    pub allow_overlaps: bool,
    /// Draws may be second names of the runs' own files, where the disk can: for runs that are removed afterwards.
    pub shares_files: bool,
}

/// A run that is merged; it is locked meanwhile.
struct Part {
    folder: RunFolder,
    settings: Settings,
    description: DataDescription,
}

/// Puts the chains of complete runs of the same settings and data together into a run in the folder `out`. Draws are copied chunk by chunk: memory does not grow
/// with them.
///
/// # Errors
/// A wrong request: runs of other settings or data, not complete, with chains in common or missing, `out` among them. A disk that refuses.
pub fn merge(runs: &[PathBuf], out: &Path, options: MergeOptions) -> Result<Summary, Failure> {
    refuse_run_in(out, options.overwrite)?;
    if let Some(run) = runs
        .iter()
        .find(|run| is_within(run, out) || is_within(out, run))
    {
        return Err(Failure::request(format!(
            "--out {} is where the run `{}` is: choose another place",
            out.display(),
            run.display()
        )));
    }
    let places: Vec<_> = runs.iter().map(|run| run.canonicalize().ok()).collect();
    for (at, place) in places.iter().enumerate() {
        if place.is_some() && places[..at].contains(place) {
            return Err(Failure::request(format!(
                "`{}` is named twice: name it once",
                runs[at].display()
            )));
        }
    }
    let parts = runs.iter().map(|run| Part::open(run));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let Some(first) = parts.first() else {
        return Err(Failure::request(
            "there is nothing to merge: name two runs or more",
        ));
    };
    parts.iter().try_for_each(|part| part.check_same(first))?;
    let (numbers, chains) = chains_of(&parts, options)?;
    let mut settings = first.settings.clone();
    let lowest = numbers.first().copied().unwrap_or(0);
    let is_gapless = (lowest..)
        .zip(&numbers)
        .all(|(expected, &number)| expected == number);
    settings.run.chains = Some(numbers.len());
    settings.run.first_chain = (is_gapless && lowest > 0).then_some(lowest);
    settings.run.chain_numbers = (!is_gapless).then_some(numbers);
    let own = |part: &Part| part.settings.run.instructions.clone();
    settings.run.instructions =
        own(first).filter(|one| parts.iter().all(|part| own(part).as_ref() == Some(one)));
    let config = settings.to_toml()?;
    let family = checked(&mut settings)?;
    let problem = Problem::without_records(settings, first.description.clone())?;
    let plan = family.plan(&problem)?;
    plan.check_disk(Destination::New {
        out,
        overwrite: options.overwrite,
    })?;
    let folder = RunFolder::create(out, options.overwrite).map_err(Failure::request)?;
    let files: Vec<Files> = parts
        .iter()
        .map(|part| part.folder.files().clone())
        .collect();
    let draws =
        reprior_io::run::merge(&folder, &plan.schema, &files, &chains, options.shares_files)
            .map_err(Failure::run)?;
    if !plan.keeps_states(&problem.settings) {
        for chain in 0..plan.schema.chains {
            checkpoint::finish(folder.files(), chain).map_err(Failure::run)?;
        }
    }
    copy_beside(&folder, first, &files, &chains)?;
    folder.write_text(CONFIG, &config).map_err(Failure::run)?;
    draws.take_over(&folder).map_err(Failure::run)?;
    write_summary(&folder)
}

impl Part {
    fn open(run: &Path) -> Result<Self, Failure> {
        let folder = RunFolder::open(run).map_err(Failure::request)?;
        let files = folder.files();
        let settings = Settings::of_run(files)?;
        if settings.sampler.method().nature() == Nature::ClosedForm {
            return Err(Failure::request(format!(
                "`{}` is of {}, which has no chains: there is nothing to merge",
                name_of(files),
                settings.sampler.method()
            )));
        }
        let unfinished = || {
            Failure::request(format!(
                "`{0}` has not come to its end: go on with `reprior resume {0}` first",
                name_of(files)
            ))
        };
        let description = DataDescription::read(files)?.ok_or_else(unfinished)?;
        if !files.contains(SUMMARY) {
            return Err(unfinished());
        }
        let schedule = settings.schedule();
        for chain in 0..schedule.chains as u64 {
            let found = checkpoint::load(files, chain).map_err(Failure::request)?;
            let draws = found.map_or(0, |found| found.cursor().draws("posterior"));
            if draws != schedule.draws {
                return Err(unfinished());
            }
        }
        Ok(Self {
            settings,
            description,
            folder,
        })
    }

    /// Refuses a run of other settings or other data than the first.
    fn check_same(&self, first: &Self) -> Result<(), Failure> {
        let names = [self, first].map(|part| name_of(part.folder.files()).to_string());
        let refuse = |why: String| {
            Err(Failure::request(format!(
                "`{}` and `{}` cannot be merged: {why}",
                names[0], names[1]
            )))
        };
        if let Some(found) = difference(&self.settings, &first.settings, Ignored::Chains)? {
            return refuse(format!("the first one's {found}"));
        }
        match self.description.is_same_data(&first.description) {
            true => Ok(()),
            false => refuse("they were made with other data".to_owned()),
        }
    }
}

/// The numbers of all chains in order, and where each is.
fn chains_of(parts: &[Part], options: MergeOptions) -> Result<(Vec<usize>, Vec<ChainOf>), Failure> {
    let mut all: Vec<(usize, ChainOf)> = Vec::new();
    for (run, part) in parts.iter().enumerate() {
        let numbers = part.settings.chain_numbers();
        all.extend(
            (0..)
                .zip(numbers)
                .map(|(chain, number)| (number, ChainOf { run, chain })),
        );
    }
    // of a number that several have the first stays first
    all.sort_by_key(|&(number, _)| number);
    let name = |chain: ChainOf| name_of(parts[chain.run].folder.files()).to_string();
    let twice = all.windows(2).find(|pair| pair[0].0 == pair[1].0);
    if let (Some(pair), false) = (twice, options.allow_overlaps) {
        let (one, other) = (name(pair[0].1), name(pair[1].1));
        return Err(Failure::request(format!(
            "`{one}` and `{other}` both have chain {}, which of one seed is the same chain twice: leave one of them out, or take it from the first by --allow-overlaps",
            pair[0].0
        )));
    }
    all.dedup_by_key(|&mut (number, _)| number);
    let gap = all.windows(2).find(|pair| pair[0].0 + 1 != pair[1].0);
    if let (Some(pair), false) = (gap, options.allow_gaps) {
        return Err(Failure::request(format!(
            "no run has chain {}, and `{}` goes on with chain {}: name the run that has it, or leave it out by --allow-gaps",
            pair[0].0 + 1,
            name(pair[1].1),
            pair[1].0
        )));
    }
    Ok(all.into_iter().unzip())
}

/// What a run has beside draws and states: what its data were, weights and tables that it keeps, fits.
fn copy_beside(
    folder: &RunFolder,
    first: &Part,
    files: &[Files],
    chains: &[ChainOf],
) -> Result<(), Failure> {
    let own = first.folder.files();
    let kept = kept_as(&first.settings.data.source);
    for name in [Some(DATA), Some(WEIGHTS), kept].into_iter().flatten() {
        if let Some(bytes) = own.read(name).map_err(Failure::request)? {
            folder.files().write(name, &bytes).map_err(Failure::run)?;
        }
    }
    let fits: Vec<Vec<LaplaceFitSummary>> = files.iter().map(read_fits).collect();
    let own = chains
        .iter()
        .map(|chain| fits[chain.run].get(chain.chain as usize).cloned());
    match own.collect::<Option<Vec<_>>>() {
        Some(own) => write_fits(&own, folder),
        None => Ok(()),
    }
}
