//! Runs made by the library: in memory as in a folder, the same bytes; stopped and gone on with; predicted from.

use std::sync::atomic::AtomicBool;

use reprior_io::data::load_inputs;
use reprior_run::{
    Failure, MergeOptions, Options, PredictionRequest, Predictor, merge, resume_in, sample,
    sample_in_memory, summarise,
};

use crate::common::{Impatient, Silent, options, settings};

const METHODS: [&str; 6] = [
    "--network fcn:8 --warmup 20 --draws 10 --chains 2",
    "--network fcn:8 --method sgld --epochs 20 --batch 10 --draws 5 --chains 2",
    "--network fcn:8 --method laplace --epochs 20 --batch 10 --draws 5",
    "--network fcn:8 --method nngp",
    "--network fcn:8 --method mclmc --chains 2 --warmup 40 --draws 10",
    "--network fcn:8 --method smc --chains 2 --draws 24",
];

#[test]
fn a_run_in_memory_has_the_bytes_of_one_in_a_folder() {
    let place = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    for (index, flags) in METHODS.iter().enumerate() {
        let settings = settings(&format!("--data friedman --train 30 --test 12 {flags}"));
        let options = options(1, &stop, &Silent);
        let path = place.path().join(index.to_string());
        let on_disk = sample(settings.clone(), &path, false, &options).unwrap();
        let (run, mut in_memory) = sample_in_memory(settings, &options).unwrap();
        let disk = reprior_io::run::Files::from(path.as_path());
        let names = run.files().names().unwrap();
        assert_eq!(names, disk.names().unwrap(), "{flags}");
        for name in names {
            // these say how long it took
            if !["summary.json"].contains(&name.as_str()) && !name.starts_with("checkpoint") {
                let same = run.files().read(&name).unwrap() == disk.read(&name).unwrap();
                assert!(same, "{flags}: {name}");
            }
        }
        in_memory.seconds = on_disk.seconds;
        assert_eq!(in_memory.verdict, on_disk.verdict, "{flags}");
        assert_eq!(summarise(&path).unwrap().metrics, in_memory.metrics);
        // the same predictions
        let predict = |predictor: Predictor| {
            let expected = predictor.description().expected_inputs();
            let inputs = load_inputs("friedman", &expected).unwrap();
            let mut means = Vec::new();
            let found =
                predictor.predict(&inputs.values, None, PredictionRequest::default(), |rows| {
                    (0..rows.len()).try_for_each(|row| {
                        means.push(rows.output(row, 0)?);
                        Ok(())
                    })
                });
            found.unwrap();
            means
        };
        let means = predict(Predictor::of(run.files()).unwrap());
        assert!(
            means.len() > 12 && means.iter().all(|row| row.sd > 0.0),
            "{flags}"
        );
        assert_eq!(means, predict(Predictor::of(&path).unwrap()), "{flags}");
    }
}

#[test]
fn parts_that_are_not_summarised_are_merged_to_the_run_that_is() {
    let place = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let whole = options(1, &stop, &Silent);
    let part = Options {
        is_part: true,
        ..options(1, &stop, &Silent)
    };
    // chains, minibatches, and fits that are kept beside their draws
    for flags in &METHODS[..3] {
        let flags = flags.trim_end_matches(" --chains 2");
        let data = format!("--data friedman --train 30 --test 12 {flags} --chains");
        let parts: Vec<_> = (0..2)
            .map(|first| {
                let folder = place.path().join(format!("part-{first}"));
                let settings = settings(&format!("{data} 1 --first-chain {first}"));
                let said = sample(settings, &folder, true, &part).unwrap();
                assert_eq!(said.status, "complete");
                let text = std::fs::read_to_string(folder.join("summary.json")).unwrap();
                assert_eq!(text.trim(), r#"{"status": "complete"}"#);
                folder
            })
            .collect();
        let (one, merged) = (place.path().join("one"), place.path().join("merged"));
        let expected = sample(settings(&format!("{data} 2")), &one, true, &whole).unwrap();
        let merging = MergeOptions {
            overwrite: true,
            ..MergeOptions::default()
        };
        let found = merge(&parts, &merged, merging).unwrap();
        assert_eq!(found.metrics, expected.metrics, "{flags}");
        assert_eq!(found.verdict, expected.verdict, "{flags}");
        assert_eq!(summarise(&merged).unwrap().metrics, expected.metrics);
    }
}

#[test]
fn a_run_in_memory_that_was_stopped_goes_on_to_the_same_end() {
    let flags = format!("--data friedman --train 30 --test 12 {}", METHODS[0]);
    let never = AtomicBool::new(false);
    let (whole, _) = sample_in_memory(settings(&flags), &options(1, &never, &Silent)).unwrap();
    // begun by hand, as a run that is stopped gives no folder back
    let run = reprior_io::run::RunFolder::in_memory();
    let config = whole.files().read_text("config.toml").unwrap().unwrap();
    run.write_text("config.toml", &config).unwrap();
    let mut stops = 0;
    loop {
        let stop = AtomicBool::new(false);
        match resume_in(&run, &options(1, &stop, &Impatient(&stop))) {
            Ok(_) => break,
            Err(Failure::Stopped) => stops += 1,
            Err(other) => panic!("{other}"),
        }
        assert!(stops < 1000, "it does not get on");
    }
    assert!(stops > 0, "it was never stopped");
    for name in whole.files().names().unwrap() {
        if name.starts_with("draws.zarr") {
            let same = run.files().read(&name).unwrap() == whole.files().read(&name).unwrap();
            assert!(same, "{name}");
        }
    }
}
