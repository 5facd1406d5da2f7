//! What else writes to run folders, on disks that fail at each call: replacing a run, merging runs, copying one, keeping the data of a program.

use std::fs;
use std::path::PathBuf;

use reprior_io::data::{Given, GivenColumn, GivenValues};
use reprior_io::run::RunFolder;
use reprior_run::{
    Failure, MergeOptions, NewRun, Options, merge, prepare_given, resume, sample, sample_in_memory,
};

use super::common::{NEVER, Silent, options, settings};
use super::disk::Disk;
use super::ordeal::Ordeal;

const DATA: &str = "--data friedman --train 12 --test 4 --network fcn:3 --projections 2";

/// Goes on with a run whose settings are there, or does again what should have written them.
fn gone_on_with(
    disk: &Disk,
    options: &Options<'_>,
    act: &dyn Fn(&Disk) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let run = disk.path("run");
    match run.join("config.toml").exists() {
        true => resume(&run, options).map(drop),
        false => act(disk),
    }
}

/// Until the new settings are written the run that is replaced can be gone on with, or the new one be made.
#[test]
fn replacing_a_run_endures() {
    let options = options(&NEVER, &Silent);
    let [before, after] = [1, 2].map(|seed| {
        settings(&format!(
            "{DATA} --warmup 1 --draws 2 --chains 1 --seed {seed}"
        ))
    });
    let (earlier, _) = sample_in_memory(before, &options).unwrap();
    let prepare = |disk: &Disk| earlier.save_to(&disk.path("run")).unwrap();
    let act = |disk: &Disk| sample(after.clone(), &disk.path("run"), true, &options).map(drop);
    let mend = |disk: &Disk, at: usize| {
        let run = disk.path("run");
        let config = fs::read_to_string(run.join("config.toml")).unwrap_or_default();
        let is_new = config.contains("seed = 2");
        if !config.is_empty() && (is_new || at.is_multiple_of(2)) {
            resume(&run, &options)?;
        }
        match is_new {
            true => Ok(()),
            false => act(disk),
        }
    };
    Ordeal {
        name: "replacing",
        prepare: &prepare,
        act: &act,
        mend: &mend,
        run: "run",
    }
    .endure();
}

/// A merge that was interrupted is gone on with where its settings are there, and otherwise made again by the same command.
fn merging_endures(flags: &str, shares_files: bool) {
    let options = options(&NEVER, &Silent);
    let made = [0, 1].map(|first| {
        let flags = format!("{DATA} {flags} --chains 1 --first-chain {first}");
        sample_in_memory(settings(&flags), &options).unwrap().0
    });
    let parts = |disk: &Disk| -> Vec<PathBuf> { vec![disk.path("part-0"), disk.path("part-1")] };
    let prepare = |disk: &Disk| {
        for (made, part) in made.iter().zip(parts(disk)) {
            made.save_to(&part).unwrap();
        }
    };
    let merging = MergeOptions {
        shares_files,
        ..MergeOptions::default()
    };
    let act = |disk: &Disk| merge(&parts(disk), &disk.path("run"), merging).map(drop);
    let mend = |disk: &Disk, _: usize| gone_on_with(disk, &options, &act);
    Ordeal {
        name: &format!("merging {flags}"),
        prepare: &prepare,
        act: &act,
        mend: &mend,
        run: "run",
    }
    .endure();
}

#[test]
fn merging_chains_endures() {
    merging_endures("--warmup 2 --draws 3", true);
}

#[test]
fn merging_laplace_approximations_endures() {
    merging_endures(
        "--method laplace --epochs 2 --batch 6 --draws 2 --pred-type glm",
        false,
    );
}

/// Data that cannot be read again are kept before the settings are written.
#[test]
fn keeping_data_endures() {
    let options = options(&NEVER, &Silent);
    let numbers = |by: f64| {
        (0..16)
            .map(|row| (f64::from(row) * by).sin())
            .collect::<Vec<_>>()
    };
    let column = |name: &str, by| GivenColumn {
        name: name.to_owned(),
        values: GivenValues::Numbers(numbers(by)),
    };
    let table = Given::table(&[column("x", 0.7), column("y", 0.9)]).unwrap();
    let flags = "--target y --train 12 --test 4 --network fcn:3 --projections 2 --warmup 2 --draws 3 --chains 1";
    let act = |disk: &Disk| {
        let problem = prepare_given(settings(flags), &table)?;
        NewRun::new(problem, Some((&disk.path("run"), false)))?
            .sample(&options)
            .1
            .map(drop)
    };
    let mend = |disk: &Disk, _: usize| gone_on_with(disk, &options, &act);
    Ordeal {
        name: "keeping data",
        prepare: &|_| {},
        act: &act,
        mend: &mend,
        run: "run",
    }
    .endure();
}

/// A copy is whole or not there.
#[test]
fn copying_a_run_endures() {
    let options = options(&NEVER, &Silent);
    let (folder, _) = sample_in_memory(
        settings(&format!("{DATA} --warmup 2 --draws 3 --chains 1")),
        &options,
    )
    .unwrap();
    let save = |disk: &Disk| folder.save_to(&disk.path("run")).map_err(Failure::run);
    let mend = |disk: &Disk, _: usize| {
        let run = disk.path("run");
        if run.exists() {
            RunFolder::open(&run).map(drop).map_err(Failure::run)
        } else {
            save(disk)
        }
    };
    Ordeal {
        name: "copying",
        prepare: &|_| {},
        act: &save,
        mend: &mend,
        run: "run",
    }
    .endure();
}
