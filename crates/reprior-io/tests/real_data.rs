//! Published data sets, where the folder `shared/data` next to the workspace holds them; skipped elsewhere.

use crate::common::{labels, real, shared_data};
use reprior::model::dataset::{InputKind, Split};
use reprior_io::data::{ExpectedInputs, ExpectedTargets, Request, load, load_inputs};

/// Loads a set, or says that it is not there.
fn set(name: &str, change: impl FnOnce(&mut Request)) -> Option<Split> {
    let Some(path) = shared_data(name) else {
        skip(name);
        return None;
    };
    let mut request = Request::new(path);
    change(&mut request);
    Some(load(&request).unwrap())
}

#[allow(
    clippy::print_stderr,
    reason = "a test that does nothing should say so"
)]
fn skip(name: &str) {
    eprintln!("skipped: shared/data/{name} is not there");
}

#[test]
fn mnist() {
    let Some(split) = set("mnist", |r| (r.train, r.test) = (Some(1000), Some(10))) else {
        return;
    };
    assert_eq!(
        split.train.kind,
        InputKind::Image {
            height: 28,
            width: 28,
            channels: 1
        }
    );
    assert_eq!(labels(&split.train)[..10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
    assert_eq!(labels(&split.test), [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]);
    assert_eq!(
        split.train.targets.names(),
        ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]
    );
    // The first training image's first inked row.
    assert_eq!(
        split.train.inputs.to_reals()[152..157],
        [3.0, 18.0, 18.0, 18.0, 126.0]
    );
    let Some(split) = set("mnist", |_| {}) else {
        return;
    };
    assert_eq!((split.train.rows, split.test.rows), (60_000, 10_000));
    let Some(split) = set("mnist", |r| {
        (r.train, r.test, r.shuffle) = (Some(100), Some(0), Some(1))
    }) else {
        return;
    };
    assert!((0..10).all(|class| {
        labels(&split.train)
            .iter()
            .filter(|&&label| label == class)
            .count()
            == 10
    }));
}

#[test]
fn fashion_mnist() {
    let Some(split) = set("fashion-mnist", |_| {}) else {
        return;
    };
    assert_eq!((split.train.rows, split.test.rows), (8226, 4443));
    assert_eq!(labels(&split.train)[..4], [9, 0, 0, 3]);
}

#[test]
fn sets_without_training_images() {
    for name in ["kmnist", "notmnist"] {
        let Some(path) = shared_data(name) else {
            skip(name);
            continue;
        };
        let message = load(&Request::new(&path)).unwrap_err().to_string();
        assert!(
            message.contains("no training images") && message.contains("train-images-idx3-ubyte"),
            "{message}"
        );
        let kind = InputKind::Image {
            height: 28,
            width: 28,
            channels: 1,
        };
        let inputs = load_inputs(
            &path,
            &ExpectedInputs {
                kind,
                columns: 784,
                column_names: Vec::new(),
                targets: None,
            },
        )
        .unwrap();
        assert_eq!((inputs.rows, inputs.values.len()), (10_000, 7_840_000));
    }
}

#[test]
fn cifar() {
    let Some(split) = set("cifar10", |_| {}) else {
        return;
    };
    assert_eq!(
        (split.train.rows, split.test.rows, split.train.columns),
        (2000, 1017, 3072)
    );
    assert_eq!(split.train.targets.names()[..2], ["airplane", "automobile"]);
    assert!((0..10).all(|class| {
        labels(&split.train)
            .iter()
            .filter(|&&label| label == class)
            .count()
            == 200
    }));
    let Some(path) = shared_data("cifar100") else {
        return skip("cifar100");
    };
    let targets = Some(ExpectedTargets::Classes {
        column: None,
        names: split.train.targets.names().to_vec(),
    });
    let expected = ExpectedInputs {
        kind: split.train.kind,
        columns: 3072,
        column_names: Vec::new(),
        targets,
    };
    let inputs = load_inputs(&path, &expected).unwrap();
    assert_eq!((inputs.rows, inputs.truth), (916, None));
}

#[test]
fn uci() {
    let sets = [
        ("concrete", 1030, 8),
        ("energy", 768, 8),
        ("kin8nm", 8192, 8),
        ("power_plant", 9568, 4),
        ("wine_red", 1599, 11),
    ];
    for (name, rows, columns) in sets {
        let Some(split) = set(&format!("uci/{name}.csv"), |_| {}) else {
            continue;
        };
        assert_eq!(
            (split.train.rows + split.test.rows, split.train.columns),
            (rows, columns),
            "{name}"
        );
        assert_eq!(split.train.rows, rows * 4 / 5);
    }
    let Some(split) = set("uci/concrete.csv", |_| {}) else {
        return;
    };
    assert_eq!(
        (real(&split.train)[0], split.train.inputs.get(0)),
        (79.99, 540.0)
    );
    assert_eq!(split.train.targets.names(), ["strength"]);
    let Some(split) = set("uci/naval.csv", |r| {
        r.target = Some(vec!["compressor_decay".to_string()])
    }) else {
        return;
    };
    assert_eq!(
        (
            split.train.rows + split.test.rows,
            split.train.targets.names()[0].as_str()
        ),
        (11_934, "compressor_decay")
    );
}
