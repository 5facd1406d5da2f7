//! Runs of every family of methods, on disks that fail at each call.

use reprior_run::{Failure, resume, sample, sample_or_resume};

use super::common::{NEVER, Silent, options, settings};
use super::disk::Disk;
use super::ordeal::Ordeal;

const DATA: &str = "--data friedman --train 12 --test 4 --network fcn:3 --projections 2";

/// Samples with a fault at each call, and goes on: by `resume`, or by the same command again.
fn endure(method: &str, flags: &str) {
    let settings = settings(&format!("{DATA} --method {method} {flags}"));
    let options = options(&NEVER, &Silent);
    let act = |disk: &Disk| -> Result<(), Failure> {
        sample(settings.clone(), &disk.path("run"), false, &options).map(drop)
    };
    let mend = |disk: &Disk, at: usize| -> Result<(), Failure> {
        let run = disk.path("run");
        match (run.join("config.toml").exists(), at % 2) {
            (true, 0) => resume(&run, &options),
            (false, 0) => sample(settings.clone(), &run, false, &options),
            _ => sample_or_resume(settings.clone(), &run, &options),
        }
        .map(drop)
    };
    let ordeal = Ordeal {
        name: method,
        prepare: &|_| {},
        act: &act,
        mend: &mend,
        run: "run",
    };
    ordeal.endure();
}

#[test]
fn chains_on_all_data_endure() {
    endure("hmc-infinite", "--warmup 1 --draws 3 --chains 2");
}

#[test]
fn chains_with_whole_weights_endure() {
    endure(
        "pcn",
        "--warmup 2 --draws 2 --thin 1 --chains 2 --keep-weights 2",
    );
}

#[test]
fn chains_with_trees_endure() {
    endure("nuts", "--warmup 2 --draws 3 --chains 1");
}

#[test]
fn microcanonical_chains_endure() {
    endure("mclmc", "--warmup 3 --draws 2 --chains 2");
}

#[test]
fn chains_with_replicas_endure() {
    endure(
        "mams",
        "--warmup 2 --draws 3 --chains 1 --replicas 2 --coordinates standard",
    );
}

#[test]
fn particles_endure() {
    endure("smc", "--chains 2 --draws 4");
}

#[test]
fn minibatches_endure() {
    endure("sgld", "--epochs 4 --batch 6 --draws 2 --chains 2");
}

#[test]
fn averaged_minibatches_endure() {
    endure("swag", "--epochs 4 --batch 6 --draws 2 --chains 1");
}

#[test]
fn ensembles_endure() {
    endure("ensemble", "--epochs 3 --batch 6 --chains 2");
}

#[test]
fn networks_with_dropout_endure() {
    endure("dropout", "--epochs 3 --batch 6 --draws 2 --chains 1");
}

#[test]
fn laplace_approximations_endure() {
    endure(
        "laplace",
        "--epochs 3 --batch 6 --draws 2 --hessian-structure kron --pred-type glm",
    );
}

#[test]
fn laplace_diffusions_endure() {
    endure(
        "laplace-diffusion",
        "--epochs 3 --batch 6 --draws 2 --rank 3 --diffusion-steps 2",
    );
}

#[test]
fn infinitely_wide_networks_endure() {
    endure("nngp", "");
}
