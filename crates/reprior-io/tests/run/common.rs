//! A small run whose draws are a function of chain and draw, so that any reader can check them.

use reprior_io::run::{
    DataType, DrawReader, DrawStore, DrawWriter, Draws, Files, Group, Labels, RunFolder, Schema,
    Selection, Values, Variable,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

pub fn attributes() -> Map<String, Value> {
    Map::from_iter([
        ("inference_library".into(), json!("reprior")),
        ("inference_library_version".into(), json!("0.1.0")),
        ("reprior_settings".into(), json!("{\"seed\": 1}")),
    ])
}

/// Two sampled groups with chunks of at most 100 draws, and one without draws.
pub fn schema(chains: u64, warmup: u64, draws: u64) -> Schema {
    let sampled = |name: &str, draws, variables| Group {
        name: name.into(),
        draws: Some(draws),
        variables,
        attributes: attributes(),
    };
    Schema {
        chains,
        groups: vec![
            sampled(
                "posterior",
                Draws::new(draws),
                vec![
                    Variable::new(
                        "prediction",
                        DataType::F32,
                        &[("observation", 3), ("output", 2)],
                    ),
                    Variable::new("norm", DataType::F64, &[]),
                ],
            ),
            sampled(
                "sample_stats",
                Draws::new(draws),
                vec![
                    Variable::new("lp", DataType::F64, &[]),
                    Variable::new("diverging", DataType::Bool, &[]),
                    Variable::new("n_steps", DataType::I64, &[]),
                    Variable::new("n_evaluations", DataType::U32, &[]),
                ],
            ),
            sampled(
                "warmup_sample_stats",
                Draws {
                    length: warmup,
                    spacing: 10,
                },
                vec![Variable::new("step_size", DataType::F64, &[])],
            ),
            Group {
                name: "observed_data".into(),
                draws: None,
                variables: vec![
                    Variable::new("y", DataType::F64, &[("observation", 3), ("output", 2)]),
                    Variable::new("count", DataType::U64, &[]),
                ],
                attributes: attributes(),
            },
        ],
        coordinates: BTreeMap::from([
            (
                "output".into(),
                Labels::Text(vec!["height".into(), "Breite Ü".into()]),
            ),
            ("observation".into(), Labels::Integers(vec![4, 7, 9])),
        ]),
    }
}

pub fn number(chain: u64, draw: u64, element: u64) -> f64 {
    (chain * 1_000_000 + draw * 10 + element) as f64 / 8.0
}

/// Pushes the draw that follows.
pub fn push(writer: &mut DrawWriter, group: &str) {
    let (chain, draw) = (writer.chain(), writer.cursor().draws(group));
    let at = |element| number(chain, draw, element);
    match group {
        "posterior" => {
            let prediction: Vec<f32> = (0..6).map(|element| at(element) as f32).collect();
            writer.push(group, &[Values::F32(&prediction), Values::F64(&[at(0)])])
        }
        "sample_stats" => writer.push(
            group,
            &[
                Values::F64(&[at(1)]),
                Values::Bool(&[draw % 3 == 0]),
                Values::I64(&[-(draw as i64)]),
                Values::U32(&[draw as u32]),
            ],
        ),
        _ => writer.push(group, &[Values::F64(&[at(2)])]),
    }
    .unwrap();
}

/// Checks every draw that a reader is shown, and gives back the number of draws of the posterior.
pub fn check_visible(run: impl Into<Files>) -> u64 {
    let reader = DrawReader::open(run).unwrap();
    let mut shown = 0;
    let check = |group: &str, variable: &str, expected: &dyn Fn(u64, u64) -> Vec<f64>| {
        let mut count = 0;
        reader
            .for_each_draw(
                group,
                variable,
                &Selection::all(),
                |chain, draw, values: &[f64]| {
                    assert_eq!(
                        values,
                        expected(chain, draw),
                        "{group}/{variable} {chain} {draw}"
                    );
                    count += 1;
                },
            )
            .unwrap();
        count
    };
    shown += check("posterior", "prediction", &|chain, draw| {
        (0..6)
            .map(|element| f64::from(number(chain, draw, element) as f32))
            .collect()
    });
    check("posterior", "norm", &|chain, draw| {
        vec![number(chain, draw, 0)]
    });
    check("sample_stats", "lp", &|chain, draw| {
        vec![number(chain, draw, 1)]
    });
    check("sample_stats", "diverging", &|_, draw| {
        vec![f64::from(u8::from(draw % 3 == 0))]
    });
    check("sample_stats", "n_steps", &|_, draw| vec![-(draw as f64)]);
    check("sample_stats", "n_evaluations", &|_, draw| {
        vec![draw as f64]
    });
    check("warmup_sample_stats", "step_size", &|chain, draw| {
        vec![number(chain, draw, 2)]
    });
    shown / reader.chains()
}

/// Every file of a run that is no lock, by its name, with its bytes.
pub fn bytes(files: &Files) -> BTreeMap<String, Vec<u8>> {
    let names = files.names().unwrap().into_iter();
    names
        .map(|name| (name.clone(), files.read(&name).unwrap().unwrap().to_vec()))
        .collect()
}

/// Every file below `folder`, by its path, with its bytes.
pub fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    collect(folder, folder, &mut files);
    files
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_string_lossy()
                .into_owned();
            files.insert(name, fs::read(&path).unwrap());
        }
    }
}

pub const SAMPLED: [&str; 3] = ["warmup_sample_stats", "posterior", "sample_stats"];

/// Writes the whole run in one go, and gives back the files of its store.
pub fn uninterrupted(run: &Path, schema: &Schema) -> BTreeMap<String, Vec<u8>> {
    write_whole(&RunFolder::create(run, false).unwrap(), schema);
    tree(&run.join("draws.zarr"))
}

/// Writes all draws of a new run in one go.
pub fn write_whole(folder: &RunFolder, schema: &Schema) {
    let store = DrawStore::create(folder, schema).unwrap();
    for chain in 0..schema.chains {
        let mut writer = store.writer(chain).unwrap();
        for group in &schema.groups {
            for _ in 0..group.draws.map_or(0, |draws| draws.length) {
                push(&mut writer, &group.name);
            }
        }
        writer.flush().unwrap();
    }
}
