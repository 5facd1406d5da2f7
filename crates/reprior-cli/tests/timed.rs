//! Runs against the clock: --minutes, --until, and more time for a run that has ended.

use crate::common::{Place, SMALL, assert_same};
use serde_json::Value;

/// A small regression without lengths.
const OPEN: &str =
    "--data friedman --train 40 --test 20 --network fcn:16 --readout-weight-variance 1 --chains 2";

fn number(config: &str, key: &str) -> u64 {
    let line = config.lines().find_map(|line| line.strip_prefix(key));
    line.unwrap().trim_start_matches(" = ").parse().unwrap()
}

#[test]
fn a_run_against_the_clock_has_the_draws_of_its_own_lengths() {
    let place = Place::new();
    // more rows than elsewhere: a quick machine is done with 5,000 transitions of a few before its time is up
    let open = OPEN.replace("--train 40", "--train 400");
    let run = place.succeed(&format!("sample {open} --minutes 0.03 --out run"));
    let config = place.read("run/config.toml");
    let (warmup, draws) = (number(&config, "warmup"), number(&config, "draws"));
    assert!(!config.contains("minutes"), "{config}");
    assert!(
        (20..5000).contains(&warmup) && (10..5000).contains(&draws),
        "{config}"
    );
    assert!(
        run.stderr
            .contains(&format!("room for {warmup} transitions of warm-up and")),
        "{run:?}"
    );
    let summary = place.summary("run");
    assert_eq!(summary["status"], "complete");
    assert_eq!(summary["draws"], draws);
    place.succeed("sample --config run/config.toml --out again");
    assert_eq!(place.read("again/config.toml"), config);
    assert_same(
        &place.tree("again/draws.zarr"),
        &place.tree("run/draws.zarr"),
    );
}

#[test]
fn lengths_that_are_given_bound_those_that_time_gives() {
    let place = Place::new();
    let config = |arguments: &str| {
        place.succeed(&format!("sample {OPEN} {arguments} --out run --overwrite"));
        place.read("run/config.toml")
    };
    let small = config("--minutes 5 --warmup 30 --draws 12");
    assert_eq!(
        (number(&small, "warmup"), number(&small, "draws")),
        (30, 12)
    );
    // however little time there is; trajectories are short then
    let least = config("--minutes 0.00001");
    assert_eq!(
        (number(&least, "warmup"), number(&least, "draws")),
        (16, 10)
    );
    assert_eq!(number(&least, "max-steps"), 8);
    let given = config("--minutes 0.00001 --max-steps 3");
    assert_eq!(number(&given, "max-steps"), 3);
    let plan = place.succeed(&format!("plan {OPEN} --minutes 3"));
    assert!(plan.stdout.contains("about 3 min"), "{plan:?}");
    let longer = "time of the fewest transitions";
    assert!(!plan.stdout.contains(longer), "{plan:?}");
    let plan = place.succeed(&format!("plan {OPEN} --minutes 0.00001"));
    assert!(plan.stdout.contains(longer), "{plan:?}");
}

#[test]
fn more_time_is_more_draws_of_the_same_chains() {
    let place = Place::new();
    place.succeed(&format!("sample {SMALL} --keep 10 --out run"));
    assert_eq!(place.summary("run")["can_go_on"], true);
    place.succeed("resume run --minutes 0.02");
    let config = place.read("run/config.toml");
    let draws = number(&config, "draws");
    assert!(
        draws >= 40 && config.contains("positions-every = 3"),
        "{config}"
    );
    assert_eq!(place.summary("run")["draws"], draws);
    place.succeed("predict run --data friedman --out predictions.csv");
    place.succeed("sample --config run/config.toml --out again");
    assert_same(
        &place.tree("again/draws.zarr"),
        &place.tree("run/draws.zarr"),
    );
    // and more of those
    place.succeed("resume run --minutes 0.01");
    assert!(number(&place.read("run/config.toml"), "draws") > draws);
    // draws may end before the time
    let few = "--warmup 20 --draws 12 --until rhat<1.0000001 --minutes 5";
    let run = place.succeed(&format!("sample {OPEN} {few} --out few"));
    let said = "after 12 draws of each chain, which are all that were to be made";
    assert!(run.stderr.contains(said), "{run:?}");
}

#[test]
fn without_lengths_a_run_goes_on_until_its_chains_agree() {
    let place = Place::new();
    let agree = |run: &str| {
        let found = &place.summary(run)["ess"]["prediction"];
        let [rhat, bulk, tail] =
            ["rhat_max", "min", "tail_min"].map(|key| found[key].as_f64().unwrap());
        rhat < 1.01 && bulk.min(tail) > 200.0
    };
    // lengths are lengths
    let given = place.succeed(&format!("sample {OPEN} --draws 250 --out given"));
    assert!(!given.stderr.contains("reached"), "{given:?}");
    // the same chains go on if those draws did not agree, which hangs on how a processor rounds
    let run = place.succeed(&format!("sample {OPEN} --out run"));
    let config = place.read("run/config.toml");
    let draws = number(&config, "draws");
    assert!([250, 375, 562, 843, 1000].contains(&draws), "{config}");
    assert_eq!(draws == 250, agree("given"));
    assert_eq!(number(&config, "warmup"), 200);
    assert!(
        !config.contains("max-steps") && !config.contains("until"),
        "{config}"
    );
    assert_eq!(
        run.stderr.contains("rhat<1.01,ess>200 is reached"),
        agree("run"),
        "{run:?}"
    );
    assert!(agree("run") || draws == 1000, "{run:?}");
    // one chain has nothing to agree with
    let alone = OPEN.replace("--chains 2", "--chains 1");
    let run = place.succeed(&format!("sample {alone} --out alone"));
    assert!(run.stderr.contains("ess>100 is reached"), "{run:?}");
}

#[test]
fn a_run_ends_when_its_draws_say_enough() {
    let place = Place::new();
    let run = place.succeed(&format!("sample {OPEN} --until rhat<1.5,ess>30 --out run"));
    assert!(
        run.stderr
            .contains("rhat<1.5,ess>30 is reached: R-hat is 1."),
        "{run:?}"
    );
    let draws = number(&place.read("run/config.toml"), "draws");
    assert!(draws < 5000, "{draws}");
    let summary = place.summary("run");
    assert!(summary["ess"]["prediction"]["min"].as_f64().unwrap() > 30.0);
    let run = place.run("resume run --until rhat<1.0000001 --minutes 0.02");
    assert!(
        run.stderr.contains("is not reached, and the time is up"),
        "{run:?}"
    );
    assert!(number(&place.read("run/config.toml"), "draws") > draws);
}

#[test]
fn a_run_against_the_clock_that_is_killed_goes_on() {
    let place = Place::new();
    let arguments = format!("sample {OPEN} --minutes 0.1 --checkpoint-seconds 0.02 --out run");
    for milliseconds in [300, 900, 2500, 4000] {
        let running = match place.path("run/config.toml").exists() {
            true => place.start("resume run --checkpoint-seconds 0.02"),
            false => place.start(&arguments),
        };
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        running.signal("-KILL");
        running.wait();
    }
    place.succeed("resume run");
    let config = place.read("run/config.toml");
    assert_eq!(place.summary("run")["status"], "complete");
    place.succeed("sample --config run/config.toml --out again");
    assert_same(
        &place.tree("again/draws.zarr"),
        &place.tree("run/draws.zarr"),
    );
    assert!(!config.contains("minutes"), "{config}");
}

#[test]
fn what_cannot_be_kept_to_is_refused() {
    let place = Place::new();
    let refused = |arguments: &str, words: &str| {
        let run = place.run(arguments);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains(words), "{run:?}");
    };
    refused(
        &format!("sample {OPEN} --minutes 0"),
        "--minutes 0 is out of range",
    );
    refused(
        &format!("sample {OPEN} --minutes nan"),
        "--minutes NaN is out of range",
    );
    refused(
        &format!("sample {OPEN} --method sgld --minutes 1"),
        "--minutes belongs to chains on all data, not to sgld",
    );
    refused(
        &format!("sample {OPEN} --method nngp --until ess>9"),
        "--until belongs to chains on all data, not to nngp",
    );
    refused(
        &format!("sample {OPEN} --until soon"),
        "give rhat<1.01, ess>400 or both",
    );
    // states of chains that take too much are not kept
    let large = "--data strokes --train 30 --test 40 --network fcn:128 --warmup 4 --draws 10 --chains 2 --keep-mb 1";
    place.succeed(&format!("sample {large} --out large"));
    refused(
        "resume large --minutes 1",
        "states of its chains were not kept",
    );
    assert_eq!(place.summary("large")["can_go_on"], false);
}

#[test]
fn plans_say_the_time_of_a_length() {
    let place = Place::new();
    let plan = |flags: &str| {
        let run = format!("plan --data friedman --train 50 --network fcn:8 {flags} --json");
        place.succeed(&run).json()
    };
    let range = |plan: &Value| ["seconds_least", "seconds_most"].map(|key| plan[key].as_f64());
    let length = "--warmup 100 --draws 150 --thin 1 --chains 3";
    let pcn = format!("--method pcn {length} --threads 1");
    let [Some(least), Some(most)] = range(&plan(&format!("{pcn} --arrival 0"))) else {
        panic!("no time");
    };
    assert!(least > 0.0 && least == most);
    // thirty trajectories to get to the posterior
    let [Some(least), Some(most)] = range(&plan(&pcn)) else {
        panic!("no time");
    };
    assert!(least < most);
    let plan_of_hmc = plan(&format!("{length} --threads 2 --start prior"));
    let [Some(least), Some(most)] = range(&plan_of_hmc) else {
        panic!("no time");
    };
    // two rounds of 250 transitions
    let each = plan_of_hmc["seconds_per_evaluation"].as_f64().unwrap();
    assert!((least / (500.0 * each) - 1.0).abs() < 1e-12);
    assert!((most / least - 128.0).abs() < 1e-9);
    let from_modes = plan(&format!("{length} --threads 2 --start mode"));
    let each = from_modes["seconds_per_evaluation"].as_f64().unwrap();
    let most = from_modes["seconds_most"].as_f64().unwrap();
    let gradients = 2.0 * (250.0 * 128.0 + 1000.0);
    assert!((most / (gradients * each) - 1.0).abs() < 1e-12);
    assert_eq!(range(&plan("")), [None, None]);
    let said = place.succeed(&format!("plan --data friedman --network fcn:8 {length}"));
    assert!(
        said.stdout.contains("1 to 128 of them a transition: from"),
        "{said:?}"
    );
    let alone = "--warmup 100 --draws 150 --chains 1 --threads 2";
    let said = place.succeed(&format!("plan --data friedman --network fcn:8 {alone}"));
    assert!(said.stdout.contains(" on 2 threads, "), "{said:?}");
}
