//! The scripts in `examples/clusters`, as schedulers run them: a shell loop, the tasks of an array, the pods of an indexed job.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::Place;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// A folder with the examples, and the program on the path.
fn place() -> Place {
    let place = Place::new();
    for name in ["pendulum.csv", "clusters/loop.sh", "clusters/slurm.sh"] {
        let bytes = fs::read(Path::new(EXAMPLES).join(name)).unwrap();
        place.write(&format!("examples/{name}"), bytes);
    }
    place
}

fn shell(place: &Place, arguments: &[&str], variable: (&str, &str)) {
    let program = assert_cmd::cargo::cargo_bin!("reprior");
    let paths = env::var_os("PATH").unwrap_or_default();
    let paths =
        std::iter::once(program.parent().unwrap().to_path_buf()).chain(env::split_paths(&paths));
    let ended = Command::new("bash")
        .args(arguments)
        .current_dir(place.path(""))
        .env("PATH", env::join_paths(paths).unwrap())
        .env(variable.0, variable.1)
        .output()
        .unwrap();
    assert!(ended.status.success(), "{arguments:?}: {ended:?}");
}

fn chains(place: &Place, run: &str) -> u64 {
    place.summary(run)["chains"].as_u64().unwrap()
}

#[test]
fn a_shell_loop_makes_chains_and_goes_on_with_them() {
    let place = place();
    shell(&place, &["examples/clusters/loop.sh"], ("X", ""));
    assert_eq!(chains(&place, "runs/pendulum-loop"), 4);
    // once more, after one chain was lost: nothing is left to do but that one
    let before = place.tree("runs/loop/chain-1");
    fs::remove_dir_all(place.path("runs/loop/chain-2")).unwrap();
    fs::remove_dir_all(place.path("runs/pendulum-loop")).unwrap();
    shell(&place, &["examples/clusters/loop.sh"], ("X", ""));
    assert_eq!(chains(&place, "runs/pendulum-loop"), 4);
    let draws = |tree: &crate::common::Tree| {
        let own = tree
            .iter()
            .filter(|(path, _)| path.starts_with("draws.zarr"));
        own.map(|(path, bytes)| (path.clone(), bytes.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(draws(&before), draws(&place.tree("runs/loop/chain-1")));
}

#[test]
fn the_tasks_of_an_array_are_chains() {
    let place = place();
    for task in ["0", "1", "2", "1"] {
        let script = ["examples/clusters/slurm.sh"];
        shell(&place, &script, ("SLURM_ARRAY_TASK_ID", task));
    }
    shell(
        &place,
        &[
            "-c",
            "reprior merge runs/slurm/chain-* --out runs/pendulum-slurm",
        ],
        ("X", ""),
    );
    assert_eq!(chains(&place, "runs/pendulum-slurm"), 3);
}

#[test]
fn the_pods_of_an_indexed_job_are_chains() {
    let place = place();
    let job = fs::read_to_string(Path::new(EXAMPLES).join("clusters/kubernetes.yaml")).unwrap();
    // the folded text of the container's argument
    let lines = job
        .lines()
        .skip_while(|line| !line.contains("- >-"))
        .skip(1);
    let lines = lines.take_while(|line| line.starts_with("              "));
    let command: Vec<&str> = lines.map(str::trim).collect();
    let command = command.join(" ");
    assert!(command.contains("$JOB_COMPLETION_INDEX"), "{command}");
    let command = command
        .replace("/data/", "examples/")
        .replace("/runs/", "runs/");
    for index in ["0", "1"] {
        shell(&place, &["-c", &command], ("JOB_COMPLETION_INDEX", index));
    }
    place.succeed("merge runs/kubernetes/chain-0 runs/kubernetes/chain-1 --out all");
    assert_eq!(chains(&place, "all"), 2);
}
