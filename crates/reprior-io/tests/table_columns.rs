//! CSV tables as people have them: missing cells, text, dates, other separators, compressed; what becomes of each, and what is refused.

use std::sync::Arc;

use crate::common::{Files, csv, gzip, labels, message, real};
use reprior::model::dataset::InputKind;
use reprior_io::data::{
    Becomes, DataError, ExpectedInputs, ExpectedTargets, Inputs, Loaded, Missing, Request,
    TableEncoding, Task, load, load_encoded_inputs, load_with_notes,
};

/// Loads a table all of whose rows train, unless `change` says something else.
fn whole(text: &str, change: impl FnOnce(&mut Request)) -> Result<Loaded, DataError> {
    let mut request = Request {
        content: Some(Arc::new(text.as_bytes().to_vec())),
        test: Some(0),
        ..Request::new("-")
    };
    change(&mut request);
    load_with_notes(&request)
}

fn names(loaded: &Loaded) -> Vec<&str> {
    let names = &loaded.split.train.column_names;
    names.iter().map(String::as_str).collect()
}

fn inputs(loaded: &Loaded) -> Vec<f64> {
    loaded.split.train.inputs.to_reals()
}

fn has_note(loaded: &Loaded, parts: &[&str]) -> bool {
    let has_all = |note: &String| parts.iter().all(|part| note.contains(part));
    loaded.notes.iter().any(has_all)
}

/// Predicts for a table with what another was encoded by.
fn predict(loaded: &Loaded, text: &str) -> Result<Inputs, DataError> {
    let files = Files::new().with("new.csv", text);
    let train = &loaded.split.train;
    let expected = ExpectedInputs {
        kind: InputKind::Table,
        columns: train.columns,
        column_names: train.column_names.clone(),
        targets: Some(ExpectedTargets::Real {
            names: train.targets.names().to_vec(),
        }),
    };
    // as a run keeps it
    let written = serde_json::to_string(&loaded.encoding).unwrap();
    let encoding: Option<TableEncoding> = serde_json::from_str(&written).unwrap();
    assert_eq!(encoding, loaded.encoding);
    load_encoded_inputs(&files.path("new.csv"), &expected, encoding.as_ref())
}

const HOLES: &str = "a,b,y\n1,5,1\n2,,2\nNA,6,3\n9,7,4\n";

#[test]
fn missing_inputs_are_filled_and_marked() {
    let median = whole(HOLES, |_| {}).unwrap();
    assert_eq!(names(&median), ["a", "a missing", "b", "b missing"]);
    assert_eq!(
        inputs(&median),
        [
            1.0, 0.0, 5.0, 0.0, 2.0, 0.0, 6.0, 1.0, 2.0, 1.0, 6.0, 0.0, 9.0, 0.0, 7.0, 0.0
        ]
    );
    assert!(has_note(
        &median,
        &["missing cells", "median", "`a` 1, `b` 1"]
    ));
    let mean = whole(HOLES, |r| r.missing = Missing::Mean).unwrap();
    assert_eq!(inputs(&mean)[8..10], [4.0, 1.0]);
    let drop = whole(HOLES, |r| r.missing = Missing::Drop).unwrap();
    assert_eq!(
        (names(&drop), inputs(&drop)),
        (vec!["a", "b"], vec![1.0, 5.0, 9.0, 7.0])
    );
    assert!(has_note(&drop, &["2 of 4 rows", "drop"]));
    message(
        whole(HOLES, |r| r.missing = Missing::Error),
        &["`stdin`, line 3, column `b`", "the cell is empty"],
    );
    // what stands for a value is that of the training rows, and so is the indicator
    let split = whole("a,y\n1,1\n2,2\n3,3\n,4\n", |r| {
        (r.train, r.test) = (Some(3), Some(1))
    })
    .unwrap();
    assert_eq!(
        (names(&split), split.split.test.inputs.to_reals()),
        (vec!["a"], vec![2.0])
    );
    for word in [
        "", "NA", "NaN", "nan", "null", "NULL", "?", "N/A", "n/a", "<NA>", "#N/A",
    ] {
        let one = whole(&format!("a,b,y\n{word},1,1\n2,1,2\n4,1,3\n"), |_| {}).unwrap();
        assert_eq!(inputs(&one)[..2], [3.0, 1.0], "{word}");
    }
}

#[test]
fn columns_that_are_left_out_cost_no_rows() {
    let mut text = "name,day,rare,a,y\n".to_owned();
    for row in 0..46 {
        // an identifier, days of no certain order, and levels of two rows each, all with holes
        let (name, day, rare) = match row % 23 {
            0 => (String::new(), "", String::new()),
            _ => (format!("n{row}"), "01/02/2024", format!("r{}", row / 2)),
        };
        text += &format!("{name},{day},{rare},{row},{row}\n");
    }
    for missing in [Missing::Drop, Missing::Error] {
        let loaded = whole(&text, |r| r.missing = missing).unwrap();
        assert_eq!((names(&loaded), inputs(&loaded).len()), (vec!["a"], 46));
    }
    let holes = text.replace(",7,7\n", ",,7\n");
    let dropped = whole(&holes, |r| r.missing = Missing::Drop).unwrap();
    assert_eq!(inputs(&dropped).len(), 45);
    message(
        whole(&holes, |r| r.missing = Missing::Error),
        &["line 9, column `a`", "empty"],
    );
}

#[test]
fn rows_without_a_target_are_left_out() {
    let text = "a,y\n1,1\n2,\n3,3\n4,nan\n5,5\n";
    let loaded = whole(text, |_| {}).unwrap();
    assert_eq!(real(&loaded.split.train), [1.0, 3.0, 5.0]);
    assert!(has_note(&loaded, &["2 of 5 rows", "target `y`"]));
    message(
        whole(text, |r| r.missing = Missing::Error),
        &["line 3, column `y`", "empty"],
    );
    let classes = whole("a,y\n1,u\n2,\n3,v\n", |r| r.missing = Missing::Drop).unwrap();
    assert_eq!(labels(&classes.split.train), [0, 1]);
    message(
        whole("a,y\n1,\n2,?\n", |_| {}),
        &["no row", "`y`", "--target"],
    );
}

#[test]
fn columns_without_values_are_named() {
    for missing in [Missing::Median, Missing::Drop, Missing::Error] {
        message(
            whole("a,b,y\n1,,1\n2,NA,2\n3,?,3\n", |r| r.missing = missing),
            &["`b` has no value in any row", "--ignore b"],
        );
    }
    message(
        whole("a,b,y\n1,,1\n2,,2\n3,7,3\n", |r| {
            (r.train, r.test) = (Some(2), Some(1))
        }),
        &["`b` has no value in the training rows", "--ignore b"],
    );
    message(
        whole("a,b,y\n1,,1\n,2,2\n,3,3\n", |r| r.missing = Missing::Drop),
        &[
            "0 of 3 rows have all inputs",
            "`a` is missing in 2",
            "--missing median",
        ],
    );
}

#[test]
fn text_becomes_levels() {
    let text = "colour,y\nred,1\nblue,2\nred,3\n,4\n";
    let loaded = whole(text, |_| {}).unwrap();
    assert_eq!(
        names(&loaded),
        ["colour: blue", "colour: red", "colour missing"]
    );
    assert_eq!(
        inputs(&loaded),
        [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    );
    assert!(has_note(&loaded, &["0/1 inputs", "`colour` (2)"]));
    let new = predict(&loaded, "note,colour\nx,pink\nx,blue\nx,\nx,pink\n").unwrap();
    assert_eq!(
        new.values.to_reals(),
        [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    );
    assert!(
        new.notes
            .iter()
            .any(|note| note.contains("2 row(s)") && note.contains("`pink`")),
        "{:?}",
        new.notes
    );
    // without a missing cell in the training rows a missing one is the commonest level
    let loaded = whole("colour,y\nred,1\nblue,2\nred,3\n", |_| {}).unwrap();
    assert_eq!(
        predict(&loaded, "colour\nNA\n").unwrap().values.to_reals(),
        [0.0, 1.0]
    );
    message(
        predict(&loaded, "color\nred\n"),
        &["new.csv", "lacks the input columns `colour`"],
    );
}

#[test]
fn rare_levels_are_others_and_identifiers_are_left_out() {
    let mut text = "city,name,y\n".to_owned();
    for row in 0..200 {
        // 25 cities of four rows, and 100 rows of one
        let city = if row < 100 { row / 4 } else { 99 };
        text += &format!("c{city},n{row},{row}\n");
    }
    let loaded = whole(&text, |_| {}).unwrap();
    assert_eq!(names(&loaded).len(), 21);
    assert_eq!(*names(&loaded).last().unwrap(), "city: other");
    assert!(has_note(&loaded, &["`city` (20 and other)"]));
    assert!(has_note(
        &loaded,
        &["left out", "`name`", "nearly every row"]
    ));
    let new = predict(&loaded, "city\nnowhere\nc99\n")
        .unwrap()
        .values
        .to_reals();
    assert_eq!(
        (new[20], new[41], new[21..].iter().sum::<f64>()),
        (1.0, 0.0, 1.0)
    );
    message(
        whole(&text, |r| r.ignore = vec!["city".into()]),
        &["no input is left", "`name`"],
    );
    let kept = whole(&text, |r| r.categorical = vec!["city".into()]).unwrap();
    assert_eq!(names(&kept).len(), 21);
}

#[test]
fn numbers_can_be_levels() {
    let loaded = whole("zip,y\n01,1\n10,2\n01,3\n", |r| {
        r.categorical = vec!["zip".into()]
    })
    .unwrap();
    assert_eq!(names(&loaded), ["zip: 01", "zip: 10"]);
    let ask = |name: &str| whole("zip,y\n01,1\n10,2\n", |r| r.categorical = vec![name.into()]);
    message(ask("zap"), &["no column `zap` (is `zip` meant?)"]);
    message(ask("y"), &["--categorical `y`", "inputs only"]);
}

#[test]
fn levels_that_are_numbers_are_found_however_they_are_written() {
    let of = |cells: [&str; 3]| {
        let text = format!("zip,y\n{},1\n{},2\n{},3\n", cells[0], cells[1], cells[2]);
        whole(&text, |r| r.categorical = vec!["zip".into()]).unwrap()
    };
    let values = |loaded: &Loaded, text: &str| predict(loaded, text).unwrap().values.to_reals();
    let points = of(["1.0", "2.0", ""]);
    assert_eq!(names(&points), ["zip: 1.0", "zip: 2.0", "zip missing"]);
    assert_eq!(
        values(&points, "zip\n1\n2.0\n3\n"),
        [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    );
    let whole_numbers = of(["1", "2", "x"]);
    assert_eq!(
        values(&whole_numbers, "zip\n2.0\nx\n"),
        [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    );
    // two levels of one number differ by what is written
    let both = of(["01", "1", "2"]);
    assert_eq!(
        values(&both, "zip\n1\n01\n1.0\n"),
        [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    );
}

#[test]
fn yes_and_no_are_one_and_zero() {
    let loaded = whole("a,b,y\ntrue,Yes,1\nFALSE,no,2\nTrue,no,3\n,no,4\n", |_| {}).unwrap();
    assert_eq!(names(&loaded), ["a", "a missing", "b"]);
    assert_eq!(
        inputs(&loaded),
        [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0]
    );
    assert_eq!(
        predict(&loaded, "b,a\n1,false\n")
            .unwrap()
            .values
            .to_reals(),
        [0.0, 0.0, 1.0]
    );
    message(
        predict(&loaded, "b,a\nmaybe,false\n"),
        &["line 2, column `b`", "`maybe`", "yes and no"],
    );
}

#[test]
fn dates_become_days_and_seasons() {
    for days in [
        ["2024-01-31", "2024-02-01", "2025-01-31"],
        ["31.01.2024", "01.02.2024", "31.01.2025"],
        ["01/31/2024", "02/01/2024", "01/31/2025"],
        ["31/01/2024", "01/02/2024", "31/01/2025"],
    ] {
        let text = format!("d,y\n{},1\n{},2\n{},3\n", days[0], days[1], days[2]);
        let loaded = whole(&text, |_| {}).unwrap();
        assert_eq!(names(&loaded), ["d days", "d year sine", "d year cosine"]);
        let values = inputs(&loaded);
        assert_eq!(
            [values[0], values[3], values[6]],
            [0.0, 1.0, 366.0],
            "{text}"
        );
        assert!(
            (values[1] - values[7]).abs() < 0.02 && values[1] > 0.4,
            "{values:?}"
        );
        let new = predict(&loaded, &format!("d\n{}\n2024-01-30\n", days[1])).unwrap();
        assert_eq!([new.values.get(0), new.values.get(3)], [1.0, -1.0]);
        message(
            predict(&loaded, "d\nsoon\n"),
            &["line 2, column `d`", "`soon` is not a date"],
        );
    }
    let timed = whole(
        "d,y\n2024-01-31T06:00,1\n2024-01-31 18:00:00,2\n2024-02-01 06:00,3\n,4\n",
        |_| {},
    )
    .unwrap();
    assert_eq!(
        names(&timed),
        [
            "d days",
            "d year sine",
            "d year cosine",
            "d day sine",
            "d day cosine",
            "d missing"
        ]
    );
    let values = inputs(&timed);
    assert_eq!((values[0], values[6], values[12]), (0.25, 0.75, 1.25));
    assert!((values[3] - 1.0).abs() < 1e-6 && (values[9] + 1.0).abs() < 1e-6);
    assert_eq!(
        (values[18], values[23]),
        (0.75, 1.0),
        "the middle date stands for a missing one"
    );
    // 1 February or 2 January
    let unclear = whole("d,a,y\n01/02/2024,1,1\n03/02/2024,2,2\n", |_| {}).unwrap();
    assert_eq!(names(&unclear), ["a"]);
    assert!(has_note(&unclear, &["left out", "`d`", "2024-01-31"]));
    message(
        whole("d,y\n2024-01-31,1\n2024-02-30,2\n2024-03-01,3\n", |_| {}),
        &[
            "line 3, column `d`",
            "`2024-02-30` is not a date",
            "2 of the column's 3",
        ],
    );
}

#[test]
fn columns_are_left_out_by_name() {
    let loaded = whole("a,b,y,z\n1,x,3,4\n5,6,7,8\n", |r| {
        r.ignore = vec!["b".into(), "z".into()]
    })
    .unwrap();
    assert_eq!(
        (names(&loaded), real(&loaded.split.train)),
        (vec!["a"], &[3.0, 7.0][..])
    );
    let ask = |ignore: &[&str], target: Option<&str>| {
        whole("Age,b,y\n1,2,3\n4,5,6\n", |r| {
            r.ignore = ignore.iter().map(ToString::to_string).collect();
            r.target = target.map(|name| vec![name.to_owned()]);
        })
    };
    message(ask(&["age"], None), &["no column `age` (is `Age` meant?)"]);
    message(ask(&["bb"], None), &["no column `bb` (is `b` meant?)"]);
    message(
        ask(&["y"], Some("y")),
        &["`y` is both a --target and", "--ignore"],
    );
    message(ask(&["Age", "b"], None), &["left out by --ignore"]);
    let npz = Request {
        ignore: vec!["a".into()],
        ..Request::new("friedman")
    };
    message(load(&npz), &["friedman", "--ignore"]);
}

#[test]
fn nameless_columns_are_left_out() {
    let loaded = whole(",a,y,\n0,5,1,\n1,6,2,\n", |_| {}).unwrap();
    assert_eq!(
        (names(&loaded), real(&loaded.split.train)),
        (vec!["a"], &[1.0, 2.0][..])
    );
    assert!(has_note(&loaded, &["2 column(s) without a name"]));
}

#[test]
fn other_separators_and_decimal_commas() {
    let text = "\u{feff}a;b;text;y\r\n1,5;2;one;3,25\r\n-2;\"3\";\"a; b\";4\r\n";
    let loaded = whole(text, |_| {}).unwrap();
    assert_eq!(names(&loaded), ["a", "b", "text: a; b", "text: one"]);
    assert_eq!(inputs(&loaded)[..2], [1.5, 2.0]);
    assert_eq!(real(&loaded.split.train), [3.25, 4.0]);
    assert!(has_note(&loaded, &["decimal commas", "`a`"]));
    // new rows may be written in the other way
    let new = predict(&loaded, "b,text,a\n7,one,0.5\n").unwrap();
    assert_eq!(new.values.to_reals(), [0.5, 7.0, 0.0, 1.0]);
    let new = predict(&loaded, "b;text;a;y\n7;one;0,5;1,5\n").unwrap();
    assert_eq!(new.values.to_reals(), [0.5, 7.0, 0.0, 1.0]);
    assert!(new.truth.is_some());
    let tabs = whole("a\tb\ty\n1\t\t3\n4\t5\t6\n7\t8\t9\n", |_| {}).unwrap();
    assert_eq!(names(&tabs), ["a", "b", "b missing"]);
    message(
        whole("a,y\n\"1,234\",1\n\"5,678\",2\n", |_| {}),
        &["line 2, column `a`", "`1,234`", "thousands"],
    );
    message(
        whole("a;y\n1,5;1\n2.5;2\n3,5;3\n", |_| {}),
        &[
            "line 2, column `a`",
            "`1,5` has a decimal comma",
            "in one way",
        ],
    );
}

#[test]
fn compressed_and_tab_separated_files() {
    let text = "a\ty\n1\t2\n3\t4\n5\t6\n";
    let packed = gzip(text.as_bytes());
    let files = Files::new()
        .with("t.tsv", text)
        .with("t.tsv.gz", &packed)
        .with("T.CSV.GZ", gzip(b"a,y\n1,2\n3,4\n5,6\n"))
        .with("cut.csv.gz", &packed[..packed.len() - 10])
        .with("other.gz", &packed)
        .with("empty.csv.gz", gzip(b""));
    for name in ["t.tsv", "t.tsv.gz", "T.CSV.GZ"] {
        let split = load(&Request::new(files.path(name))).unwrap();
        assert_eq!(real(&split.train), [2.0, 4.0], "{name}");
    }
    message(
        load(&Request::new(files.path("cut.csv.gz"))),
        &["cut.csv.gz", "truncated"],
    );
    message(
        load(&Request::new(files.path("other.gz"))),
        &["a .gz file", ".csv.gz"],
    );
    message(
        load(&Request::new(files.path("empty.csv.gz"))),
        &["no header"],
    );
}

#[test]
fn missing_cells_of_new_rows_are_filled() {
    let loaded = whole("a,b,y\n1,u,1\n2,v,2\n9,v,3\n", |_| {}).unwrap();
    let new = predict(&loaded, "b,a,y\n,5,1\nu,NA,\n").unwrap();
    assert_eq!(new.values.to_reals(), [5.0, 0.0, 1.0, 2.0, 1.0, 0.0]);
    assert_eq!(new.truth, None);
    for part in [
        "`a`: 1 missing",
        "`b`: 1 missing",
        "1 of 2 rows have no target",
    ] {
        assert!(
            new.notes.iter().any(|note| note.contains(part)),
            "{part}: {:?}",
            new.notes
        );
    }
    let strict = whole("a,b,y\n1,u,1\n2,v,2\n9,v,3\n", |r| {
        r.missing = Missing::Error
    })
    .unwrap();
    message(
        predict(&strict, "b,a\n,5\n"),
        &["line 2, column `b`", "empty"],
    );
    message(
        predict(&strict, "b,a\nu,\n"),
        &["line 2, column `a`", "empty"],
    );
    message(
        predict(&loaded, "b,a\nu,x\n"),
        &["line 2, column `a`", "`x` is not a number"],
    );
}

#[test]
fn new_rows_without_any_value_are_rows() {
    let loaded = whole("a,b,y\n1,5,1\n2,6,2\n9,7,3\n", |_| {}).unwrap();
    let new = predict(&loaded, "a,b\n,\n1,5\n\"\",NA\n9,7\n , \n,\n").unwrap();
    assert_eq!(
        new.values.to_reals(),
        [2.0, 6.0, 1.0, 5.0, 2.0, 6.0, 9.0, 7.0, 2.0, 6.0, 2.0, 6.0]
    );
    assert!(new.notes.iter().any(|note| note.contains("`a`: 4 missing")));
    // where there is one column, a blank line is such a row
    let single = whole("a,y\n1,1\n2,2\n9,3\n", |_| {}).unwrap();
    for (text, expected) in [
        ("a\n1\n\n9\n", &[1.0, 2.0, 9.0][..]),
        ("a\r\n1\r\n\r\n9\r\n", &[1.0, 2.0, 9.0]),
        ("a\n1\n\"\"\n\n \n9", &[1.0, 2.0, 2.0, 2.0, 9.0]),
        ("a\n\n1\n", &[2.0, 1.0]),
        ("a\r\n\r\n1\r\n\r\n", &[2.0, 1.0, 2.0]),
        ("\n\na\n1\n\n", &[1.0, 2.0]),
        ("a\n1\n", &[1.0]),
        ("a\r\n1", &[1.0]),
    ] {
        let new = predict(&single, text).unwrap();
        assert_eq!(new.values.to_reals(), expected, "{text:?}");
    }
    let strict = whole("a,y\n1,1\n2,2\n9,3\n", |r| r.missing = Missing::Error).unwrap();
    for text in ["a\n1\n\n9\n", "a\r\n1\r\n\r\n", "a\n1\n\"\"\n"] {
        message(predict(&strict, text), &["line 3, column `a`", "empty"]);
    }
}

#[test]
fn misspelt_numbers_do_not_make_a_column_text() {
    message(
        whole("a,y\n1,1\n2,2\n3x,3\n4,4\n", |_| {}),
        &[
            "line 4, column `a`",
            "`3x` is not a number; 3 of the column's 4",
            "--categorical a",
        ],
    );
    message(
        whole("a,y\n1,1\n1e300,2\n1e999,3\n", |_| {}),
        &["line 4", "not finite"],
    );
    let huge = whole("a,y\n1,1\n1e300,2\n,3\n", |_| {}).unwrap();
    assert!(inputs(&huge).iter().all(|x| x.is_finite()));
}

#[test]
fn the_default_target_and_the_shuffle_are_as_before() {
    let text: String = (0..40).fold("a,y\n".to_owned(), |text, n| {
        text + &format!("{n},{}\n", n % 2)
    });
    let split = csv(&text, |r| {
        (r.shuffle, r.task) = (Some(3), Task::Classification)
    })
    .unwrap();
    let ones = labels(&split.test)
        .iter()
        .filter(|&&label| label == 1)
        .count();
    assert_eq!((split.test.rows, ones), (8, 4));
    let Some(Becomes::Number { fill }) = whole(&text, |_| {})
        .unwrap()
        .encoding
        .map(|e| e.columns[0].becomes.clone())
    else {
        panic!("a number is due")
    };
    assert_eq!(fill, Some(19.5));
}
