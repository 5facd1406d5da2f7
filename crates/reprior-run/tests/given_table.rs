//! Tables in memory: encoded as files are, kept with their run, predicted from; all rows that train and are watched.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reprior_io::data::{Given, GivenColumn, GivenValues};
use reprior_io::run::RunFolder;
use reprior_run::{
    Failure, NewRun, Options, PredictionRequest, Predictor, Settings, Summary, prepare,
    prepare_given, sample, summarise,
};

use crate::common::Silent;

const ROWS: usize = 40;

fn columns() -> Vec<GivenColumn> {
    let column = |name: &str, values| GivenColumn {
        name: name.to_owned(),
        values,
    };
    let x = |row: usize| (row as f64 * 0.7).sin();
    let size = (0..ROWS).map(|row| match row {
        3 => f64::NAN,
        _ => x(row),
    });
    let kinds = (0..ROWS).map(|row| (row != 5).then(|| ["a", "b, c", "d"][row % 3].to_owned()));
    let new = (0..ROWS).map(|row| Some(row % 2 == 0));
    let price = (0..ROWS).map(|row| 100.0 + 10.0 * x(row) + (row % 3) as f64);
    vec![
        column("size", GivenValues::Numbers(size.collect())),
        column("kind", GivenValues::Texts(kinds.collect())),
        column("new", GivenValues::Booleans(new.collect())),
        column("price", GivenValues::Numbers(price.collect())),
    ]
}

fn table() -> Given {
    Given::table(&columns()).unwrap()
}

fn settings(flags: &str) -> Settings {
    crate::common::settings(&format!(
        "--network fcn:6 --chains 2 --warmup 20 --draws 10 {flags}"
    ))
}

fn with_options<T>(make: impl FnOnce(&Options<'_>) -> T) -> T {
    let stop = AtomicBool::new(false);
    make(&Options {
        threads: Some(1),
        checkpoint_every: Duration::from_secs(10),
        stop: &stop,
        watcher: &Silent,
        more: None,
        is_part: false,
    })
}

fn made(flags: &str) -> (RunFolder, Summary) {
    let problem = prepare_given(settings(flags), &table()).unwrap();
    let new = NewRun::new(problem, None).unwrap();
    let (folder, summary) = with_options(|options| new.sample(options));
    (folder, summary.unwrap())
}

/// Means and standard deviations for the rows of the table without its targets.
fn predicted(predictor: &Predictor, rows: std::ops::Range<usize>) -> Vec<[f64; 2]> {
    let part: Vec<GivenColumn> = columns()[..3]
        .iter()
        .map(|column| GivenColumn {
            name: column.name.clone(),
            values: match &column.values {
                GivenValues::Numbers(all) => GivenValues::Numbers(all[rows.clone()].to_vec()),
                GivenValues::Booleans(all) => GivenValues::Booleans(all[rows.clone()].to_vec()),
                GivenValues::Texts(all) => GivenValues::Texts(all[rows.clone()].to_vec()),
            },
        })
        .collect();
    let table = Given::table(&part).unwrap();
    let inputs = predictor.description().given_inputs(&table).unwrap();
    let mut all = Vec::new();
    let request = PredictionRequest::default();
    let found = predictor.predict(&inputs.values, None, request, |block| {
        (0..block.len()).try_for_each(|row| {
            all.push(block.moments(row, 0)?);
            Ok(())
        })
    });
    found.unwrap();
    all
}

#[test]
fn a_table_in_memory_is_the_same_as_its_file() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("prices.csv");
    std::fs::write(&path, table().bytes().as_slice()).unwrap();
    let flags = format!("--data {} --target price", path.display());
    let folder = place.path().join("run");
    let of_file = with_options(|options| sample(settings(&flags), &folder, false, options));
    let (run, summary) = made("--target price");
    assert_eq!(summary.metrics, of_file.unwrap().metrics);
    let kept = run.files().read("table.csv").unwrap().unwrap();
    assert_eq!(&kept, table().bytes());
    let predictor = Predictor::of(run.files()).unwrap();
    let expected = predicted(&Predictor::of(&folder).unwrap(), 0..ROWS);
    assert_eq!(predicted(&predictor, 0..ROWS), expected);
    // saved, it predicts from its own copy of the table
    let saved = place.path().join("saved");
    run.save_to(&saved).unwrap();
    let again = predicted(&Predictor::of(&saved).unwrap(), 0..ROWS);
    assert_eq!(again, expected);
}

#[test]
fn in_double_precision_a_row_does_not_hang_on_its_batch() {
    let (run, _) = made("--target price --watch 10");
    let predictor = Predictor::of(run.files()).unwrap().in_double_precision();
    let whole = predicted(&predictor, 0..ROWS);
    for (row, together) in whole.iter().enumerate() {
        let [one] = predicted(&predictor, row..row + 1)[..] else {
            panic!("one row was asked for")
        };
        for at in 0..2 {
            assert!((one[at] - together[at]).abs() < 1e-9 * together[at].abs());
        }
    }
}

#[test]
fn rows_that_train_are_watched_and_test_nothing() {
    let (run, summary) = made("--target price --watch 10");
    assert!(summary.metrics.is_none() && summary.fit.is_none());
    assert!(summary.ess.prediction.is_some());
    assert_eq!(summary.loo.as_ref().unwrap().rows, ROWS);
    let description = reprior_run::Recorded::of(run.files()).unwrap().description;
    assert_eq!((description.train_rows, description.test_rows), (ROWS, 10));
    let recorded = reprior_run::Recorded::of(run.files()).unwrap();
    assert!(recorded.test_targets().unwrap().is_none() && recorded.pit().unwrap().is_empty());
    // and again from what is written
    assert_eq!(summarise(run.files()).unwrap().metrics, None);
    Predictor::of(run.files()).unwrap();
}

#[test]
fn functions_of_draws_have_the_moments_that_are_predicted() {
    let (run, _) = made("--target price --watch 10 --method hmc-infinite");
    let predictor = Predictor::of(run.files()).unwrap();
    let part = Given::table(&columns()[..3]).unwrap();
    let inputs = predictor.description().given_inputs(&part).unwrap();
    let joint = predictor.joint(&inputs.values).unwrap();
    assert_eq!((joint.rows, joint.outputs), (ROWS, 1));
    assert!(joint.covariance.is_none());
    let moments = predicted(&predictor, 0..ROWS);
    for (row, [mean, sd]) in moments.iter().enumerate() {
        let functions = (0..joint.draws).map(|draw| joint.functions[draw * ROWS + row]);
        let average = functions.sum::<f64>() / joint.draws as f64;
        // the readout of each of 20 draws is drawn
        assert!((average - mean).abs() < 6.0 * sd / (joint.draws as f64).sqrt());
        assert!(joint.noise[row] > 0.0 && joint.noise[row] < sd * sd * 4.0);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |flags: &str| match prepare_given(settings(flags), &table()) {
        Err(Failure::Request(text)) => text,
        _ => panic!("{flags} is refused"),
    };
    assert!(refused("--data a.csv").contains("give one of them"));
    assert!(refused("--watch 5 --train 3").contains("--watch trains on all records"));
    assert!(refused("--watch 0").contains("--watch is 0"));
    assert!(refused("--target cost").contains("no column `cost`"));
    let mut from_nothing = settings("");
    "(in memory)".clone_into(&mut from_nothing.data.source);
    let from_nothing = prepare(from_nothing);
    assert!(matches!(from_nothing, Err(Failure::Request(text)) if text.contains("`table.csv`")));
    let classes = prepare(settings("--data two-moons --watch 5"));
    assert!(matches!(classes, Err(Failure::Request(text)) if text.contains("--watch")));
}
