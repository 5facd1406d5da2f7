//! The draws of several runs in one: chain after chain, chunk by chunk, as one run would have written them.
//!
//! Runs must be laid out alike, but for their numbers of chains. A chunk holds draws of one chain, so that chunks are copied as they are, and none of it is
//! in memory but one chunk of each variable. What has no draws is the same in all runs, or has one part for each chain: then its first dimension
//! is called so (`moment_chain`).
//!
//! The draws are put together in `RUN/next`, and take their place once the caller has written its settings: a merge that is killed before is made again, as a
//! run that had not begun, and one that is killed after it is finished by whoever goes on with the run.

use super::checkpoint::{self, CHECKPOINT, Checkpoint};
use super::laplace::{self, LAPLACE};
use super::layout::{Array, DRAWS, StoreLayout};
use super::relay::{NEXT, NextLayout};
use super::schema::Schema;
use super::shared::read_root;
use super::store::DrawStore;
use super::{Files, RunError, RunFolder};

/// Where a chain is: in which run, and at which place there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainOf {
    /// Which of the runs.
    pub run: usize,
    /// Its place among that run's chains.
    pub chain: u64,
}

/// How the name of a dimension ends that has one element for each chain.
const BY_CHAIN: &str = "_chain";

/// Makes the draws of a run out of those of `runs`: its chains, in order, are `chains`, and `schema` is the new run's. They are there once the settings
/// are written and what this gives back has [taken over](NextLayout::take_over). Checkpoints and Laplace approximations come along. With `shares_files` chunks are second names of the runs' files where the disk can, and take neither time nor room; otherwise
/// they are copied.
///
/// # Errors
/// [`RunError::Request`] for runs that are laid out otherwise, that differ in what they have in common, or whose chains have not begun;
/// [`RunError::Damaged`]; [`RunError::Io`].
pub fn merge(
    folder: &RunFolder,
    schema: &Schema,
    runs: &[Files],
    chains: &[ChainOf],
    shares_files: bool,
) -> Result<NextLayout, RunError> {
    let files = folder.files();
    let next = files.within(NEXT);
    if chains.len() as u64 != schema.chains {
        return Err(RunError::request(format!(
            "{} chains were given for {}",
            chains.len(),
            schema.chains
        )));
    }
    for run in runs {
        check_layout(run, schema)?;
    }
    files.remove(NEXT)?;
    let store = DrawStore::create_in(&next, schema)?;
    let layout = StoreLayout::from_schema(schema)?;
    let merging = Merging {
        files: &next,
        runs,
        chains,
        shares_files,
    };
    for group in &layout.groups {
        for array in &group.variables {
            match group.draws {
                Some(draws) => merging.copy_draws(&group.name, array, draws)?,
                None => merging.copy_whole(&group.name, array)?,
            }
        }
    }
    next.sync(DRAWS)?;
    files.create_folder(CHECKPOINT)?;
    for (number, chain) in (0..).zip(chains) {
        let checkpoint = merging.checkpoint(*chain)?;
        checkpoint.write_as(files, &checkpoint::name(number), number)?;
        if let Some(fit) = laplace::load(&runs[chain.run], chain.chain)? {
            files.create_folder(LAPLACE)?;
            fit.write_as(files, &laplace::name(number), number)?;
        }
        // shows its draws
        store.writer_at(number, checkpoint.cursor())?;
    }
    Ok(NextLayout::of(next))
}

/// Refuses a run that is laid out otherwise than `schema` says, but for its number of chains.
fn check_layout(run: &Files, schema: &Schema) -> Result<(), RunError> {
    let (found, _) = read_root(run)?;
    let mut own = schema.clone();
    own.chains = found.chains;
    own.coordinates.remove("chain");
    let dims = own.groups.iter_mut().flat_map(|group| &mut group.variables);
    for (dim, length) in dims.flat_map(|variable| &mut variable.dims) {
        if dim.ends_with(BY_CHAIN) {
            *length = found.chains;
        }
    }
    let mut expected = StoreLayout::from_schema(&own)?;
    // they say which settings a run had
    for (group, other) in expected.groups.iter_mut().zip(&found.groups) {
        group.attributes.clone_from(&other.attributes);
    }
    match expected == found {
        true => Ok(()),
        false => Err(RunError::request(format!(
            "the draws in {} are laid out otherwise: they have other numbers of draws, or record other things",
            run.place(DRAWS).display()
        ))),
    }
}

struct Merging<'a> {
    files: &'a Files,
    runs: &'a [Files],
    chains: &'a [ChainOf],
    shares_files: bool,
}

impl Merging<'_> {
    fn checkpoint(&self, chain: ChainOf) -> Result<Checkpoint, RunError> {
        let run = &self.runs[chain.run];
        checkpoint::load(run, chain.chain)?.ok_or_else(|| {
            let place = run.place(&checkpoint::name(chain.chain));
            RunError::request(format!(
                "there is no {}: that chain has not begun",
                place.display()
            ))
        })
    }

    /// The chunks of a sampled variable.
    fn copy_draws(&self, group: &str, array: &Array, draws: u64) -> Result<(), RunError> {
        for (number, chain) in (0..).zip(self.chains) {
            for chunk in 0..draws.div_ceil(array.chunk_shape[1]) {
                let source = array.chunk(group, chain.chain, chunk);
                let target = array.chunk(group, number, chunk);
                let run = &self.runs[chain.run];
                match self.shares_files {
                    true => self.files.share_file(&target, run, &source)?,
                    false => self.files.copy_file(&target, run, &source)?,
                }
            }
        }
        Ok(())
    }

    /// A variable without draws, as far as it is written.
    fn copy_whole(&self, group: &str, array: &Array) -> Result<(), RunError> {
        let name = array.chunk(group, 0, 0);
        if array
            .dims
            .first()
            .is_some_and(|dim| dim.ends_with(BY_CHAIN))
        {
            return self.concatenate(&name, array);
        }
        let mut first = None;
        for run in self.runs {
            let Some(bytes) = run.read(&name)? else {
                continue;
            };
            if first.get_or_insert_with(|| bytes.clone()) != &bytes {
                return Err(RunError::request(format!(
                    "{} is not what the other runs have there",
                    run.place(&name).display()
                )));
            }
        }
        match first {
            Some(bytes) => self.files.write(&name, &bytes),
            None => Ok(()),
        }
    }

    /// The parts of all chains, one after another, if all are written.
    fn concatenate(&self, name: &str, array: &Array) -> Result<(), RunError> {
        let of_chain = array.chunk_bytes().unwrap_or(u64::MAX) / array.shape[0].max(1);
        let of_chain = usize::try_from(of_chain).unwrap_or(usize::MAX);
        let found = self.runs.iter().map(|run| run.read(name));
        let found = found.collect::<Result<Vec<_>, _>>()?;
        let mut all = Vec::new();
        for chain in self.chains {
            let Some(bytes) = &found[chain.run] else {
                return Ok(());
            };
            let start = (chain.chain as usize).saturating_mul(of_chain);
            let part = bytes.get(start..start.saturating_add(of_chain));
            all.extend_from_slice(part.ok_or_else(|| {
                RunError::damaged(&self.runs[chain.run].place(name), "is cut off".to_owned())
            })?);
        }
        self.files.write(name, &all)
    }
}
