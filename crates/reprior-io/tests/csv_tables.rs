//! CSV tables: what is read, and what is refused with which words.

use crate::common::{Files, csv, labels, message, real};
use reprior::model::dataset::{InputKind, Targets};
use reprior_io::data::{Missing, Request, Task, load, load_with_notes};

const TABLE: &str = "a,b,y\n1,2,3\n4,5,6\n7,8,9\n10,11,12\n13,14,15\n";

#[test]
fn the_last_column_is_the_target_and_four_fifths_train() {
    let split = csv(TABLE, |_| {}).unwrap();
    assert_eq!(
        (split.train.rows, split.test.rows, split.train.columns),
        (4, 1, 2)
    );
    assert_eq!(
        split.train.inputs.to_reals(),
        [1.0, 2.0, 4.0, 5.0, 7.0, 8.0, 10.0, 11.0]
    );
    assert_eq!(real(&split.train), [3.0, 6.0, 9.0, 12.0]);
    assert_eq!(split.test.inputs.to_reals(), [13.0, 14.0]);
    assert_eq!(split.train.column_names, ["a", "b"]);
    assert_eq!(split.train.targets.names(), ["y"]);
    assert_eq!(split.train.kind, InputKind::Table);
}

#[test]
fn several_targets_in_the_order_asked_for() {
    let split = csv(TABLE, |r| r.target = Some(vec!["y".into(), "a".into()])).unwrap();
    assert_eq!(split.train.inputs.to_reals(), [2.0, 5.0, 8.0, 11.0]);
    assert_eq!(
        real(&split.train),
        [3.0, 1.0, 6.0, 4.0, 9.0, 7.0, 12.0, 10.0]
    );
    assert_eq!(split.train.targets.names(), ["y", "a"]);
}

#[test]
fn numbers_of_records() {
    let split = csv(TABLE, |r| (r.train, r.test) = (Some(2), Some(1))).unwrap();
    assert_eq!(
        (real(&split.train), real(&split.test)),
        (&[3.0, 6.0][..], &[9.0][..])
    );
    let split = csv(TABLE, |r| r.train = Some(2)).unwrap();
    assert_eq!(real(&split.test), [9.0, 12.0, 15.0]);
    let split = csv(TABLE, |r| r.test = Some(3)).unwrap();
    assert_eq!(
        (real(&split.train), real(&split.test)),
        (&[3.0, 6.0][..], &[9.0, 12.0, 15.0][..])
    );
    let split = csv(TABLE, |r| (r.train, r.test) = (Some(5), Some(0))).unwrap();
    assert_eq!((split.train.rows, split.test.rows), (5, 0));
    message(csv(TABLE, |r| r.train = Some(6)), &["has 5 records but 6"]);
    message(
        csv(TABLE, |r| (r.train, r.test) = (Some(3), Some(3))),
        &["2 records besides", "3 were asked"],
    );
    message(csv(TABLE, |r| r.test = Some(9)), &["has 5 records but 9"]);
    message(
        csv(TABLE, |r| r.test = Some(usize::MAX)),
        &["has 5 records"],
    );
    message(csv(TABLE, |r| r.train = Some(1)), &["at least 2"]);
    message(csv("a,y\n1,2\n", |_| {}), &["at least 2"]);
}

#[test]
fn shuffling_permutes_before_the_split() {
    let shuffle = |seed| csv(TABLE, |r| r.shuffle = Some(seed)).unwrap();
    let split = shuffle(1);
    assert_eq!(split, shuffle(1));
    assert_ne!(split, shuffle(2));
    let mut all = [real(&split.train), real(&split.test)].concat();
    all.sort_by(f64::total_cmp);
    assert_eq!(all, [3.0, 6.0, 9.0, 12.0, 15.0]);
    for (x, y) in split
        .train
        .inputs
        .to_reals()
        .chunks(2)
        .zip(real(&split.train))
    {
        assert_eq!((x[0] + 1.0, x[0] + 2.0), (x[1], *y));
    }
}

#[test]
fn quotes_line_ends_marks_spaces_and_blank_rows() {
    let text = "\u{feff}\"a, b\",c,\"y \"\"z\"\"\"\r\n\"1\", 2 ,3\r\n4,5,\"6\"\r\n\r\n , ,\r\n\r\n";
    let split = csv(text, |r| (r.train, r.test) = (Some(2), None)).unwrap();
    assert_eq!(split.train.column_names, ["a, b", "c"]);
    assert_eq!(split.train.targets.names(), ["y \"z\""]);
    assert_eq!(split.train.inputs.to_reals(), [1.0, 2.0, 4.0, 5.0]);
    assert_eq!(split.test.rows, 0);
}

#[test]
fn text_targets_are_classes() {
    let text = "x,kind\n1,dog\n2,cat\n3,dog\n4,eel\n5,cat\n";
    let split = csv(text, |_| {}).unwrap();
    assert_eq!(labels(&split.train), [1, 0, 1, 2]);
    assert_eq!(split.train.targets.names(), ["cat", "dog", "eel"]);
    assert_eq!(labels(&split.test), [0]);
    message(
        csv(text, |r| r.task = Task::Regression),
        &["line 2, column `kind`", "`dog`", "classification"],
    );
}

#[test]
fn numbers_can_be_classes() {
    let text = "x,k\n1,10\n2,9\n3,9\n4,-1\n5,10\n";
    let split = csv(text, |r| r.task = Task::Classification).unwrap();
    assert_eq!(
        split.train.targets,
        Targets::Classes {
            labels: vec![2, 1, 1, 0],
            names: ["-1", "9", "10"].map(String::from).to_vec()
        }
    );
    assert_eq!(
        real(&csv(text, |_| {}).unwrap().train),
        [10.0, 9.0, 9.0, -1.0]
    );
    message(
        csv("x,k,l\n1,2,3\n4,5,6\n", |r| {
            (r.task, r.target) = (Task::Classification, Some(vec!["k".into(), "l".into()]))
        }),
        &["one target"],
    );
}

#[test]
fn whole_numbers_of_too_many_digits_stay_apart_or_are_noted() {
    let text = "id,y\n9007199254740992,9007199254740992\n9007199254740993,9007199254740993\n\
        9007199254740992,9007199254740992\n";
    let files = Files::new().with("table.csv", text);
    let load = |task| {
        let request = Request {
            task,
            test: Some(0),
            ..Request::new(files.path("table.csv"))
        };
        load_with_notes(&request).unwrap()
    };
    let classes = load(Task::Classification);
    assert_eq!(labels(&classes.split.train), [0, 1, 0]);
    let is_note = |note: &String| note.contains("beyond 2^53") && note.contains("`id`");
    assert!(classes.notes.iter().any(is_note), "{:?}", classes.notes);
    let exact = csv(text.replace("740993", "740994"), |r| {
        (r.task, r.test) = (Task::Classification, Some(0))
    });
    assert_eq!(
        exact.unwrap().train.targets.names(),
        ["9007199254740992", "9007199254740994"]
    );
}

#[test]
fn one_bad_number_in_a_target_is_no_class() {
    message(
        csv("x,y\n1,2\n2,oops\n3,4\n", |_| {}),
        &[
            "line 3, column `y`",
            "`oops` is not a number",
            "classification",
        ],
    );
    message(
        csv("x,y\n1,a\n2,\n3,b\n", |r| {
            (r.task, r.missing) = (Task::Classification, Missing::Error)
        }),
        &["line 3, column `y`", "empty"],
    );
}

#[test]
fn texts_that_are_rather_numbers_are_no_classes() {
    let table = |rows: usize, target: &dyn Fn(usize) -> String| {
        (0..rows).fold("x,y\n".to_owned(), |text, n| {
            text + &format!("{n},{}\n", target(n))
        })
    };
    let as_classes = |r: &mut Request| r.task = Task::Classification;
    let thousands = table(3, &|n| format!("\"25{n},000\""));
    message(
        csv(&thousands, |_| {}),
        &["line 2, column `y`", "`250,000`", "thousands"],
    );
    assert!(csv(&thousands, as_classes).is_ok());
    for target in [
        &(|n| format!("${n}10")) as &dyn Fn(usize) -> String,
        &|n| format!("\"1.{},50\"", 200 + n),
        &|n| format!("{n} m"),
    ] {
        let text = table(20, target);
        message(
            csv(&text, |_| {}),
            &[
                "line 2, column `y`",
                "20 of the target's 20 values are distinct",
                "currency",
                "--task classification",
            ],
        );
        assert!(csv(&text, as_classes).is_ok());
        message(csv(&text, |r| r.task = Task::Regression), &["not a number"]);
    }
    // few rows, or levels that come again
    assert!(csv(table(19, &|n| format!("c{n}")), |_| {}).is_ok());
    assert!(csv(table(40, &|n| format!("c{}", n / 2)), |_| {}).is_ok());
}

#[test]
fn more_than_a_thousand_classes_are_refused() {
    let text = (0..1001).fold("x,y\n".to_string(), |text, n| text + &format!("{n},c{n}\n"));
    message(csv(&text, |_| {}), &["1001 distinct", "`y`", "1000"]);
}

#[test]
fn shuffled_tables_keep_the_proportions_of_classes() {
    let text = (0..100).fold("x,y\n".to_string(), |text, n| {
        text + &format!("{n},{}\n", if n < 90 { "common" } else { "rare" })
    });
    let split = csv(&text, |r| r.shuffle = Some(4)).unwrap();
    let rare = |data| labels(data).iter().filter(|&&label| label == 1).count();
    assert_eq!((rare(&split.train), rare(&split.test)), (8, 2));
}

#[test]
fn unusable_cells_name_line_and_column() {
    message(
        csv("age,b,y\n1,2,3\nred,5,6\n", |_| {}),
        &[
            "table.csv`, line 3, column `age`",
            "`red` is not a number",
            "1 of the column's 2 values are",
            "--ignore age",
            "--categorical age",
        ],
    );
    message(
        csv("age,b,y\n1,,3\n4,5,6\n", |r| r.missing = Missing::Error),
        &["line 2, column `b`", "empty"],
    );
    message(
        csv("age,b,y\n1,NA,3\n4,5,6\n", |r| r.missing = Missing::Error),
        &["line 2, column `b`", "`NA` is a missing value"],
    );
    message(
        csv("age,b,y\n1,NaN,3\n4,5,6\n", |r| r.missing = Missing::Error),
        &["line 2, column `b`", "missing"],
    );
    message(
        csv("age,b,y\n1,2,3\n4,-inf,6\n", |_| {}),
        &["line 3, column `b`", "not finite"],
    );
    message(
        csv("age,b,y\n1,2,3\n4,1e999,6\n", |_| {}),
        &["line 3, column `b`", "not finite"],
    );
    message(
        csv("age,b,y\n1,2,3\n4,5,inf\n", |_| {}),
        &["line 3, column `y`", "not finite"],
    );
    message(
        csv("age,b,y\n1,2,3\n\n4,5\n7,8,9\n", |_| {}),
        &["line 4", "2 cells", "3"],
    );
    message(
        csv("age,b,y\n1,2,3\n4,5,6,7\n", |_| {}),
        &["line 3", "4 cells"],
    );
    message(
        csv("age,b,y\r\n1,2,3\r\n4,x,6\r\n", |_| {}),
        &["line 3, column `b`"],
    );
    message(
        csv("\"age\nin years\",b,y\n1,2,3\nx,x,6\n", |_| {}),
        &["line 4, column `age\\nin years`"],
    );
    message(
        csv("age,b,y\n1,2,3\n,,\n4,5,6\n", |_| {}),
        &["line 3", "row is empty"],
    );
}

#[test]
fn unusable_headers() {
    message(csv("", |_| {}), &["table.csv`", "no header"]);
    message(csv("\n\n", |_| {}), &["no header"]);
    message(csv("a,y\n", |_| {}), &["no rows"]);
    message(
        csv("1,2\n3,4\n", |_| {}),
        &["line 1 holds numbers only", "header"],
    );
    message(
        csv("a y\n3 4\n", |_| {}),
        &["single column `a y`", "commas, semicolons or tabs"],
    );
    message(csv(",,\n0,3,4\n", |_| {}), &["header"]);
    message(
        csv("a,a,y\n0,3,4\n", |_| {}),
        &["two columns are named `a`"],
    );
    message(csv(b"a,\xff\n0,3\n", |_| {}), &["line 1 is not UTF-8"]);
    message(csv(b"a,y\n0,3\n1,\xe9\n", |_| {}), &["line 3 is not UTF-8"]);
}

#[test]
fn unknown_columns_name_the_nearest() {
    let ask = |name: &str| {
        csv("age,height,weight\n1,2,3\n4,5,6\n", |r| {
            r.target = Some(vec![name.to_string()])
        })
    };
    message(
        ask("wieght"),
        &[
            "no column `wieght` (is `weight` meant?)",
            "columns are `age`, `height`, `weight`",
        ],
    );
    message(ask("AGE"), &["no column `AGE` (is `age` meant?)"]);
    message(
        ask("price"),
        &["no column `price`; its columns are `age`, "],
    );
    message(
        csv(TABLE, |r| r.target = Some(Vec::new())),
        &["list of targets is empty"],
    );
    message(
        csv(TABLE, |r| r.target = Some(vec!["a".into(), "a".into()])),
        &["`a` is named twice"],
    );
    message(
        csv(TABLE, |r| {
            r.target = Some(["a", "b", "y"].map(String::from).to_vec())
        }),
        &["every column is a target"],
    );
}

#[test]
fn constant_columns_are_allowed() {
    assert!(csv("a,b,y\n1,2,3\n1,2,3\n1,2,3\n", |_| {}).is_ok());
}

#[test]
fn target_columns_are_reported() {
    let files = Files::new().with("table.csv", TABLE);
    let columns = |source: String| {
        load_with_notes(&Request::new(source))
            .unwrap()
            .target_columns
    };
    assert_eq!(columns(files.path("table.csv")), ["y"]);
    assert!(columns("strokes".to_owned()).is_empty());
}

#[test]
fn sources_that_are_not_there_or_not_understood() {
    message(
        load(&Request::new("no/such.csv")),
        &[
            "`no/such.csv` does not exist",
            "friedman, two-moons, strokes",
        ],
    );
    let files = Files::new().with("data.xlsx", "x").with("data", "x");
    message(
        load(&Request::new(files.path("data.xlsx"))),
        &["a .xlsx file", ".csv"],
    );
    message(
        load(&Request::new(files.path("data"))),
        &["without extension"],
    );
    message(
        load(&Request::new(files.folder())),
        &[
            "folder without files of a known name",
            "train-images-idx3-ubyte",
            "data_batch_1.bin",
        ],
    );
    message(
        load(&Request {
            target: Some(vec!["y".into()]),
            ..Request::new("friedman")
        }),
        &["only for a .csv"],
    );
    message(
        load(&Request {
            task: Task::Classification,
            ..Request::new("friedman")
        }),
        &["regression"],
    );
    message(
        load(&Request {
            task: Task::Regression,
            ..Request::new("two-moons")
        }),
        &["classification"],
    );
}
