use super::common::{check_visible, push, schema, tree, uninterrupted};
use reprior_io::run::{
    DataType, DrawReader, DrawStore, Draws, Group, Labels, RunFolder, Schema, Selection, Tensor,
    Values, Variable, checkpoint,
};
use serde_json::{Map, json};

#[test]
fn draws_come_back() {
    let temporary = tempfile::tempdir().unwrap();
    let run = temporary.path().join("a/b/run");
    uninterrupted(&run, &schema(2, 5, 230));
    assert_eq!(check_visible(&run), 230);

    let reader = DrawReader::open(&run).unwrap();
    let groups: Vec<_> = reader.groups().collect();
    assert_eq!(groups[0].name, "posterior");
    assert_eq!(groups[0].draws, Some(230));
    assert_eq!(groups[3].draws, None);
    assert_eq!(groups[0].attributes["inference_library"], "reprior");
    let variables = reader.variables("posterior").unwrap();
    assert_eq!(variables[0].name, "prediction");
    assert_eq!(
        variables[0].dims,
        [
            ("chain", 2),
            ("draw", 230),
            ("observation", 3),
            ("output", 2)
        ]
    );
    let labels = |group, dim| reader.labels(group, dim).unwrap();
    assert_eq!(
        labels("posterior", "output"),
        Labels::Text(vec!["height".into(), "Breite Ü".into()])
    );
    assert_eq!(
        labels("posterior", "observation"),
        Labels::Integers(vec![4, 7, 9])
    );
    assert_eq!(
        labels("warmup_sample_stats", "draw"),
        Labels::Integers(vec![0, 10, 20, 30, 40])
    );
    assert_eq!(labels("posterior", "chain"), Labels::Integers(vec![0, 1]));
}

#[test]
fn selections_agree_with_the_whole() {
    let temporary = tempfile::tempdir().unwrap();
    let run = temporary.path().join("run");
    uninterrupted(&run, &schema(3, 5, 230));
    let reader = DrawReader::open(&run).unwrap();
    let read = |selection: &Selection| {
        reader
            .read::<f64>("posterior", "prediction", selection)
            .unwrap()
    };
    let whole = read(&Selection::all());
    assert_eq!(whole.shape, [3, 230, 3, 2]);
    for (chains, draws, observations, outputs) in [
        (1..3, 95..205, 0..3, 0..2),
        (0..3, 0..230, 1..2, 0..2),
        (2..3, 99..101, 1..3, 1..2),
        (0..1, 5..5, 0..3, 0..2),
    ] {
        let part = read(&Selection {
            chains: Some(chains.clone()),
            draws: Some(draws.clone()),
            rest: vec![observations.clone(), outputs.clone()],
        });
        let mut expected = Vec::new();
        for chain in chains {
            for draw in draws.clone() {
                for observation in observations.clone() {
                    for output in outputs.clone() {
                        let index = ((chain * 230 + draw) * 3 + observation) * 2 + output;
                        expected.push(whole.values[index as usize]);
                    }
                }
            }
        }
        assert_eq!(part.values, expected);
        assert_eq!(part.shape.iter().product::<usize>(), part.values.len());
    }
    let outside = Selection {
        draws: Some(0..231),
        ..Selection::all()
    };
    let error = reader
        .read::<f32>("posterior", "norm", &outside)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "draws 0..231 were asked for, but there are 230"
    );
}

#[test]
fn arrays_without_draws_are_replaced_as_a_whole() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(&temporary.path().join("run"), false).unwrap();
    let store = DrawStore::create(&folder, &schema(1, 1, 1)).unwrap();
    let read = || {
        DrawReader::open(folder.files()).unwrap().read::<f64>(
            "observed_data",
            "y",
            &Selection::all(),
        )
    };
    let error = read().unwrap_err().to_string();
    assert!(
        error.ends_with("the run has not written \"y\" yet"),
        "{error}"
    );
    for scale in [1.0, 2.0] {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, f64::INFINITY].map(|value| value * scale);
        store
            .write_static("observed_data", "y", Values::F64(&values))
            .unwrap();
        let numbers = read().unwrap();
        assert_eq!(numbers.shape, [3, 2]);
        assert_eq!(numbers.values, values);
    }
    store
        .write_static("observed_data", "count", Values::U64(&[7]))
        .unwrap();
    let count = DrawReader::open(folder.files())
        .unwrap()
        .read::<f32>("observed_data", "count", &Selection::all())
        .unwrap();
    assert_eq!((count.shape, count.values), (vec![], vec![7.0]));
}

#[test]
fn checkpoints_come_back_bit_for_bit() {
    let temporary = tempfile::tempdir().unwrap();
    let run = temporary.path().join("run");
    let folder = RunFolder::create(&run, false).unwrap();
    let store = DrawStore::create(&folder, &schema(2, 5, 20)).unwrap();
    let mut writer = store.writer(1).unwrap();
    push(&mut writer, "posterior");
    let wild = [
        f64::NAN,
        -0.0,
        f64::NEG_INFINITY,
        f64::MIN_POSITIVE / 3.0,
        0.1,
    ];
    let numbers = [0.1_f64, 1.0 / 3.0, 5e-324, f64::MAX, -0.0];
    let document = json!({"numbers": numbers, "step": u64::MAX, "text": "\"\n\u{1F600}"});
    let tensors = [
        Tensor {
            name: "position",
            shape: &[5],
            values: Values::F64(&wild),
        },
        Tensor {
            name: "counter",
            shape: &[],
            values: Values::U64(&[u64::MAX]),
        },
        Tensor {
            name: "weights",
            shape: &[2, 1],
            values: Values::F32(&[f32::NAN, 2.0]),
        },
        Tensor {
            name: "empty",
            shape: &[0, 3],
            values: Values::F32(&[]),
        },
    ];
    assert!(checkpoint::load(&run, 1).unwrap().is_none());
    writer.checkpoint(&document, &tensors).unwrap();
    assert!(checkpoint::load(&run, 0).unwrap().is_none());

    let stored = checkpoint::load(&run, 1).unwrap().unwrap();
    assert_eq!(stored.cursor(), &writer.cursor());
    assert_eq!(stored.cursor().draws("posterior"), 1);
    assert_eq!(stored.document(), &document);
    for (index, number) in numbers.iter().enumerate() {
        let back = stored.document()["numbers"][index].as_f64().unwrap();
        assert_eq!(back.to_bits(), number.to_bits());
    }
    let bits = |values: &[f64]| {
        values
            .iter()
            .map(|value| value.to_bits())
            .collect::<Vec<_>>()
    };
    assert_eq!(bits(&stored.f64("position", &[5]).unwrap()), bits(&wild));
    assert_eq!(stored.u64("counter", &[]).unwrap(), [u64::MAX]);
    assert_eq!(stored.f32("weights", &[2, 1]).unwrap()[1], 2.0);
    assert_eq!(stored.f32("empty", &[0, 3]).unwrap(), [0.0_f32; 0]);
    let names: Vec<_> = stored.tensors().map(|(name, _)| name).collect();
    assert_eq!(names, ["counter", "empty", "position", "weights"]);

    // The same state gives the same file.
    let bytes = tree(&run.join("checkpoint"));
    writer.checkpoint(&document, &tensors).unwrap();
    assert_eq!(tree(&run.join("checkpoint")), bytes);
}

#[test]
fn chunks_are_at_most_four_mebibytes_or_one_draw() {
    let schema = |elements, draws| Schema {
        chains: 1,
        groups: vec![Group {
            name: "posterior".into(),
            draws: Some(Draws::new(draws)),
            variables: vec![Variable::new(
                "weights",
                DataType::F32,
                &[("weight", elements)],
            )],
            attributes: Map::new(),
        }],
        coordinates: [].into(),
    };
    let memory = |elements, draws| schema(elements, draws).bytes_in_memory().unwrap();
    assert_eq!(memory(10, 1000), 100 * 40);
    assert_eq!(memory(10, 7), 7 * 40);
    assert_eq!(memory(1 << 18, 1000), 4 << 20);
    assert_eq!(memory(3 << 20, 1000), 12 << 20);
    // two chunks of three draws rather than one of four and one padded to four
    assert_eq!(memory(1 << 18, 5), 3 << 20);

    let temporary = tempfile::tempdir().unwrap();
    let run = temporary.path().join("run");
    let schema = schema(300_000, 8);
    let folder = RunFolder::create(&run, false).unwrap();
    let mut writer = DrawStore::create(&folder, &schema)
        .unwrap()
        .writer(0)
        .unwrap();
    let mut weights = vec![0.0_f32; 300_000];
    for draw in 0..8 {
        weights.fill(draw as f32);
        writer.push("posterior", &[Values::F32(&weights)]).unwrap();
    }
    writer.flush().unwrap();
    let files = tree(&run.join("draws.zarr"));
    let chunks: Vec<_> = files
        .keys()
        .filter(|name| name.contains("weights/c"))
        .collect();
    assert_eq!(chunks.len(), 3, "{chunks:?}");
    let on_disk: usize = files.values().map(Vec::len).sum();
    let estimate = schema.bytes_on_disk().unwrap() as f64;
    assert!(
        (estimate / on_disk as f64 - 1.0).abs() < 0.01,
        "{estimate} {on_disk}"
    );
    let last = Selection {
        rest: std::iter::once(299_999..300_000).collect(),
        ..Selection::all()
    };
    let numbers = DrawReader::open(&run)
        .unwrap()
        .read::<f64>("posterior", "weights", &last);
    assert_eq!(
        numbers.unwrap().values,
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    );
}

#[test]
fn chains_write_from_their_own_threads() {
    let temporary = tempfile::tempdir().unwrap();
    let reference = uninterrupted(&temporary.path().join("reference"), &schema(4, 5, 130));
    let run = temporary.path().join("run");
    let folder = RunFolder::create(&run, false).unwrap();
    let store = DrawStore::create(&folder, &schema(4, 5, 130)).unwrap();
    std::thread::scope(|scope| {
        for chain in 0..4 {
            let mut writer = store.writer(chain).unwrap();
            scope.spawn(move || {
                for _ in 0..5 {
                    push(&mut writer, "warmup_sample_stats");
                }
                for draw in 0..130 {
                    push(&mut writer, "posterior");
                    push(&mut writer, "sample_stats");
                    if draw % (7 + chain) == 0 {
                        writer.flush().unwrap();
                    }
                }
                writer.flush().unwrap();
            });
        }
        for _ in 0..20 {
            check_visible(&run);
        }
    });
    assert_eq!(check_visible(&run), 130);
    assert!(tree(&run.join("draws.zarr")) == reference);
}
