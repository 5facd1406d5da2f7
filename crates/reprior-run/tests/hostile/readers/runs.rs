//! Runs: folders that somebody gave, read as every command reads them.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reprior_io::data::{Given, GivenColumn, GivenValues};
use reprior_io::run::{DrawReader, RunFolder, Selection};
use reprior_run::{
    NewRun, Options, PredictionRequest, Predictor, Settings, Watcher, prepare, prepare_given,
    resume_in, summarise,
};

use super::calmly;
use super::edits::{Named, apply};

struct Silent;
impl Watcher for Silent {}

fn options(stop: &AtomicBool) -> Options<'_> {
    Options {
        threads: Some(1),
        checkpoint_every: Duration::MAX,
        stop,
        watcher: &Silent,
        more: None,
        is_part: false,
    }
}

/// One run of every family of methods; with data that the program makes, and one with a table of its own.
pub const CONFIGS: [&str; 5] = [
    include_str!("../../configs/hmc-infinite.toml"),
    include_str!("../../configs/sgld.toml"),
    include_str!("../../configs/laplace.toml"),
    include_str!("../../configs/nngp.toml"),
    include_str!("../../configs/pcn.toml"),
];

/// The files of sound runs.
pub fn sound() -> &'static [Named] {
    static SOUND: OnceLock<Vec<Named>> = OnceLock::new();
    SOUND.get_or_init(|| {
        let configs = CONFIGS.map(|text| toml::from_str::<Settings>(text).unwrap());
        let mut own = configs[0].clone();
        own.data.source.clear();
        (own.data.train, own.data.test) = (None, None);
        let problems = configs
            .into_iter()
            .map(|settings| prepare(settings).unwrap());
        let problems = problems.chain([prepare_given(own, &table()).unwrap()]);
        let files = problems.map(|problem| {
            let stop = AtomicBool::new(false);
            let (folder, summary) = NewRun::new(problem, None).unwrap().sample(&options(&stop));
            summary.unwrap();
            let files = folder.files();
            let read = |name: String| {
                let bytes = files.read(&name).unwrap().unwrap();
                (name, bytes.to_vec())
            };
            files.names().unwrap().into_iter().map(read).collect()
        });
        files.collect()
    })
}

/// Twenty rows with everything that cells may be.
fn table() -> Given {
    let column = |name: &str, values| GivenColumn {
        name: name.to_owned(),
        values,
    };
    let x = |row: usize| (row as f64 * 0.7).sin();
    let size = (0..20).map(|row| if row == 3 { f64::NAN } else { x(row) });
    let kinds = (0..20).map(|row| (row != 5).then(|| ["a", "b, c", "d"][row % 3].to_owned()));
    let sold = (0..20).map(|row| Some(format!("2024-02-{:02}", 1 + row)));
    let new = (0..20).map(|row| Some(row % 2 == 0));
    let price = (0..20).map(|row| 100.0 + 10.0 * x(row) + (row % 3) as f64);
    Given::table(&[
        column("size", GivenValues::Numbers(size.collect())),
        column("kind", GivenValues::Texts(kinds.collect())),
        column("sold", GivenValues::Texts(sold.collect())),
        column("new", GivenValues::Booleans(new.collect())),
        column("price", GivenValues::Numbers(price.collect())),
    ])
    .unwrap()
}

/// A byte that chooses a sound run, and a script of what is edited in it.
pub fn run(bytes: &[u8]) {
    let Some((&which, script)) = bytes.split_first() else {
        return;
    };
    let sound = sound();
    let mut files = sound[usize::from(which) % sound.len()].clone();
    apply(&mut files, script);
    let run = RunFolder::in_memory();
    for (name, bytes) in &files {
        run.files().write(name, bytes).unwrap();
    }
    draws(&run);
    if summarise(run.files()).is_ok() {
        predict(&run);
    }
    // goes on as far as it can be stopped
    let stop = AtomicBool::new(true);
    let _ = resume_in(&run, &options(&stop));
}

/// Everything that the draws say they have.
fn draws(run: &RunFolder) {
    let Some(reader) = calmly(DrawReader::open(run.files())) else {
        return;
    };
    let all = Selection::all();
    let groups: Vec<String> = reader.groups().map(|group| group.name.to_owned()).collect();
    for group in groups {
        for variable in calmly(reader.variables(&group)).unwrap_or_default() {
            let name = variable.name;
            let mut numbers = 0;
            let each = |_, _, draw: &[f64]| numbers += draw.len();
            let passed = reader.for_each_draw::<f64>(&group, name, &all, each);
            let read = reader.read::<f64>(&group, name, &all);
            match (calmly(read), calmly(passed)) {
                (Some(read), Some(())) => assert_eq!(read.values.len(), numbers),
                (None, None) => {}
                (read, passed) => panic!("{group}/{name}: {read:?} {passed:?}"),
            }
            for (dim, _) in &variable.dims {
                calmly(reader.labels(&group, dim));
            }
        }
    }
}

fn predict(run: &RunFolder) {
    let Ok(predictor) = Predictor::of(run.files()) else {
        return;
    };
    let rows = predictor.description().columns.saturating_mul(2);
    if rows > 1000 {
        return;
    }
    let inputs: Vec<f64> = (0..rows).map(|place| (place as f64).sin()).collect();
    let request = PredictionRequest::default();
    let _ = predictor.predict(&inputs.into(), None, request, |rows| {
        if rows.probabilities().is_empty() && !rows.is_empty() {
            rows.output(0, 0)?;
        }
        Ok(())
    });
}
