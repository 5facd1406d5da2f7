//! Inputs to predict for.

use crate::common::{Files, archive, cifar_record, f8, idx_images, idx_labels, message, npy};
use reprior::model::dataset::{InputKind, Targets};
use reprior_io::data::{DataError, ExpectedInputs, ExpectedTargets, Inputs, load_inputs};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_string()).collect()
}

fn table(targets: Option<ExpectedTargets>) -> ExpectedInputs {
    ExpectedInputs {
        kind: InputKind::Table,
        columns: 2,
        column_names: names(&["a", "b"]),
        targets,
    }
}

fn real(output: &[&str]) -> Option<ExpectedTargets> {
    Some(ExpectedTargets::Real {
        names: names(output),
    })
}

fn classes(column: Option<&str>, known: &[&str]) -> Option<ExpectedTargets> {
    Some(ExpectedTargets::Classes {
        column: column.map(String::from),
        names: names(known),
    })
}

fn csv(text: &str, expected: &ExpectedInputs) -> Result<Inputs, DataError> {
    let files = Files::new().with("new.csv", text);
    load_inputs(&files.path("new.csv"), expected)
}

#[test]
fn columns_of_a_table_are_found_by_name() {
    let inputs = csv("note,b,a\nhello,2,1\n,4,3\n", &table(real(&["y"]))).unwrap();
    assert_eq!(
        (inputs.values.to_reals(), inputs.rows, inputs.truth),
        (vec![1.0, 2.0, 3.0, 4.0], 2, None)
    );
    message(
        csv("b,c\n1,2\n", &table(None)),
        &["new.csv", "lacks the input columns `a`"],
    );
    message(csv("a,b\n", &table(None)), &["no rows"]);
    message(csv("a,b\n1,x\n", &table(None)), &["line 2, column `b`"]);
    let one = csv(
        "a\n5\n",
        &ExpectedInputs {
            kind: InputKind::Table,
            columns: 1,
            column_names: names(&["a"]),
            targets: None,
        },
    );
    assert_eq!(one.unwrap().values.to_reals(), [5.0]);
}

#[test]
fn the_truth_of_a_table() {
    let inputs = csv("z,b,a,y\n7,2,1,3\n8,4,3,5\n", &table(real(&["y", "z"]))).unwrap();
    assert_eq!(
        inputs.truth,
        Some(Targets::Real {
            values: vec![3.0, 7.0, 5.0, 8.0],
            names: names(&["y", "z"])
        })
    );
    assert_eq!(
        csv("a,b,y\n1,2,\n3,4,\n", &table(real(&["y"])))
            .unwrap()
            .truth,
        None
    );
    message(
        csv("a,b,y\n1,2,3\n3,4,\n", &table(real(&["y"]))),
        &["line 3, column `y`"],
    );
    let expected = table(classes(Some("kind"), &["cat", "dog"]));
    let inputs = csv("a,b,kind\n1,2,dog\n3,4,cat\n", &expected).unwrap();
    assert_eq!(
        inputs.truth,
        Some(Targets::Classes {
            labels: vec![1, 0],
            names: names(&["cat", "dog"])
        })
    );
    message(
        csv("a,b,kind\n1,2,dog\n3,4,eel\n", &expected),
        &["`eel`", "leave them out"],
    );
    let numbers = table(classes(Some("kind"), &["1.0", "2.0"]));
    assert!(
        matches!(csv("a,b,kind\n1,2,2\n", &numbers).unwrap().truth, Some(Targets::Classes { labels, .. }) if labels == [1])
    );
}

#[test]
fn classes_of_many_digits_are_not_their_neighbours() {
    let known = ["9007199254740992", "9007199254740993"];
    let text = "a,b,kind\n1,2,9007199254740993\n3,4,9007199254740992\n";
    let inputs = csv(text, &table(classes(Some("kind"), &known))).unwrap();
    assert!(matches!(inputs.truth, Some(Targets::Classes { labels, .. }) if labels == [1, 0]));
    message(
        csv(text, &table(classes(Some("kind"), &known[..1]))),
        &["`9007199254740993`"],
    );
}

#[test]
fn arrays() {
    let x = npy("<f8", false, "(2, 2)", &f8(&[1.0, 2.0, 3.0, 4.0]));
    let y = npy("|u1", false, "(2,)", &[9, 4]);
    let read = |arrays: &[(&str, Vec<u8>)], expected: &ExpectedInputs| {
        load_inputs(&archive(arrays).path("data.npz"), expected)
    };
    let expected = table(classes(None, &["4", "9"]));
    let inputs = read(&[("x", x.clone()), ("y", y.clone())], &expected).unwrap();
    assert_eq!(
        (inputs.values.to_reals(), inputs.rows),
        (vec![1.0, 2.0, 3.0, 4.0], 2)
    );
    assert_eq!(
        inputs.truth,
        Some(Targets::Classes {
            labels: vec![1, 0],
            names: names(&["4", "9"])
        })
    );
    assert_eq!(
        read(&[("x_test", x.clone())], &expected).unwrap().truth,
        None
    );
    message(
        read(
            &[("x_test", x.clone()), ("y_test", y)],
            &table(classes(None, &["4", "5"])),
        ),
        &["`9`"],
    );
    message(
        read(
            &[("x", x.clone()), ("y", npy("|u1", false, "(1,)", &[9]))],
            &expected,
        ),
        &["2 records", "1"],
    );
    message(
        read(&[("z", x)], &expected),
        &["no array `x`", "`z`", "(to predict for: x)"],
    );
    message(
        read(&[("x", npy("<f8", false, "(0, 2)", &[]))], &expected),
        &["no records"],
    );
    message(
        read(
            &[("x", npy("<f8", false, "(1, 3)", &f8(&[0.0; 3])))],
            &expected,
        ),
        &["table of 3 columns", "2 columns"],
    );
}

#[test]
fn folders_and_built_ins() {
    let image = |height, width, channels, targets| ExpectedInputs {
        kind: InputKind::Image {
            height,
            width,
            channels,
        },
        columns: height * width * channels,
        column_names: Vec::new(),
        targets,
    };
    let files = Files::new()
        .with("t10k-images-idx3-ubyte", idx_images(2, 1, 2, &[1, 2, 3, 4]))
        .with("t10k-labels-idx1-ubyte", idx_labels(2, &[3, 1]));
    let inputs = load_inputs(
        &files.folder(),
        &image(1, 2, 1, classes(None, &["0", "1", "2", "3"])),
    )
    .unwrap();
    assert_eq!(inputs.values.to_reals(), [1.0, 2.0, 3.0, 4.0]);
    assert!(matches!(inputs.truth, Some(Targets::Classes { labels, .. }) if labels == [3, 1]));
    assert_eq!(
        load_inputs(&files.folder(), &image(1, 2, 1, classes(None, &["cat"])))
            .unwrap()
            .truth,
        None
    );
    message(
        load_inputs(&files.folder(), &image(2, 2, 1, None)),
        &["images of 1 x 2", "2 x 2"],
    );
    message(
        load_inputs(&files.folder(), &table(None)),
        &["a table of 2 columns"],
    );
    let files = Files::new().with("test.bin", cifar_record(&[1, 2], 0));
    assert_eq!(
        load_inputs(&files.folder(), &image(32, 32, 3, None))
            .unwrap()
            .rows,
        1
    );
    let files = Files::new().with("train.bin", cifar_record(&[1, 2], 0));
    message(
        load_inputs(&files.folder(), &image(32, 32, 3, None)),
        &["no test images", "test.bin"],
    );
    let inputs = load_inputs("strokes", &image(16, 16, 1, None)).unwrap();
    assert_eq!((inputs.rows, inputs.truth), (1000, None));
    let files = Files::new().with("new.csv", "a\n1\n");
    message(
        load_inputs(&files.path("new.csv"), &image(2, 2, 1, None)),
        &["takes images"],
    );
    message(load_inputs("nowhere", &table(None)), &["does not exist"]);
}
