//! Settings that runs of version 0.1 wrote are read, and written again byte for byte but for the instruction set, which they did not know.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reprior::compute::instructions;
use reprior_run::{Options, Settings, sample_in_memory};

use crate::common::Silent;

#[test]
fn the_configuration_of_earlier_runs_is_that_of_a_run_made_from_it() {
    let stop = AtomicBool::new(false);
    let options = Options {
        threads: Some(1),
        checkpoint_every: Duration::MAX,
        stop: &stop,
        watcher: &Silent,
        more: None,
        is_part: false,
    };
    let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/configs");
    let mut count = 0;
    for entry in configs.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let settings = Settings::from_file(&path).unwrap();
        let (run, _) = sample_in_memory(settings, &options).unwrap();
        let written = run.files().read_text("config.toml").unwrap();
        let own = format!("instructions = \"{}\"\n", instructions());
        let written = written.unwrap().replacen(&own, "", 1);
        let expected = std::fs::read_to_string(&path).unwrap();
        assert_eq!(written, expected, "{}", path.display());
        count += 1;
    }
    assert_eq!(count, 5);
}

/// Whatever the readout's variance is. A file that no run wrote leaves the variation open.
#[test]
fn the_noise_of_rows_of_earlier_runs_varies_as_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    let variation = |text: &str| {
        std::fs::write(&path, text).unwrap();
        Settings::from_file(&path).unwrap().model.noise_variation
    };
    let text = "[data]\nsource = \"friedman\"\n[model]\nlikelihood = \"student-t-heteroscedastic\"\nreadout-weight-variance = 9\n";
    assert_eq!(variation(text), None);
    let of_a_run = format!("{text}[run]\ninstructions = \"plain\"\n");
    assert_eq!(variation(&of_a_run), Some(1.0));
    let with_one = of_a_run.replace("[run]", "noise-variation = 0.25\n[run]");
    assert_eq!(variation(&with_one), Some(0.25));
    let of_one_noise = of_a_run.replace("student-t-heteroscedastic", "gaussian");
    assert_eq!(variation(&of_one_noise), None);
}
