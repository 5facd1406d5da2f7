//! Tables: CSV as people have it, compressed, in columns, in memory.

use std::fs;
use std::sync::Arc;

use reprior::model::dataset::Targets;
use reprior_io::data::{
    ExpectedInputs, ExpectedTargets, GIVEN, Missing, Request, STDIN, Task, load_encoded_inputs,
    load_with_notes, look,
};

use super::{calmly, in_scratch};

/// What stands in tables.
pub const WORDS: &[&str] = &[
    ",",
    ";",
    "\t",
    "\"",
    "\"\"",
    "\r\n",
    "\n",
    "NA",
    "nan",
    "null",
    "-",
    "1,5",
    "1.000,5",
    "1e308",
    "-0",
    "true",
    "no",
    "2024-01-31",
    "31.01.2024",
    "01/31/2024 2:30 PM",
    "T14:30:05.5Z",
    "\u{feff}",
    "9007199254740993",
    "inf",
    "0x10",
    " ",
    "y",
    "k",
    "id",
];

/// A CSV file behind a byte that chooses what is asked of it.
pub fn csv(bytes: &[u8]) {
    let Some((&choice, content)) = bytes.split_first() else {
        return;
    };
    let mut request = of(STDIN, content);
    let has = |bit: u8| choice >> bit & 1 == 1;
    request.target = has(0).then(|| vec!["y".to_owned()]);
    if has(1) {
        request.categorical.push("k".to_owned());
    }
    if has(2) {
        request.ignore.push("id".to_owned());
    }
    request.missing = [
        Missing::Median,
        Missing::Mean,
        Missing::Drop,
        Missing::Error,
    ][usize::from(choice >> 3 & 3)];
    // a byte that is a letter leaves both open
    (request.task, request.shuffle) = match choice >> 5 {
        0 => (Task::Regression, None),
        1 => (Task::Classification, Some(1)),
        2 => (Task::Auto, Some(2)),
        _ => (Task::Auto, None),
    };
    request.watch = (choice >> 5 == 4).then_some(2);
    table(&request);
}

/// A file as it is: what it is is seen by its first bytes.
pub fn file(content: &[u8]) {
    table(&of(STDIN, content));
}

/// A table in memory, as a run keeps it.
pub fn given(content: &[u8]) {
    table(&of(GIVEN, content));
}

fn of(source: &str, content: &[u8]) -> Request {
    Request {
        content: Some(Arc::new(content.to_vec())),
        ..Request::new(source)
    }
}

/// Loads it, and then as inputs of the model that it would make.
fn table(request: &Request) {
    let Some(loaded) = calmly(load_with_notes(request)) else {
        return;
    };
    let train = &loaded.split.train;
    let is_real = matches!(train.targets, Targets::Real { .. });
    look(&loaded.split, is_real);
    let targets = match &train.targets {
        Targets::Real { names, .. } => ExpectedTargets::Real {
            names: names.clone(),
        },
        Targets::Classes { names, .. } => ExpectedTargets::Classes {
            column: loaded.target_columns.first().cloned(),
            names: names.clone(),
        },
    };
    let expected = ExpectedInputs {
        kind: train.kind,
        columns: train.columns,
        column_names: train.column_names.clone(),
        targets: Some(targets),
    };
    let Some(content) = request.content.as_deref() else {
        return;
    };
    in_scratch(|folder| {
        let path = folder.join("inputs.csv");
        fs::write(&path, content).unwrap();
        let source = path.to_string_lossy();
        calmly(load_encoded_inputs(
            &source,
            &expected,
            loaded.encoding.as_ref(),
        ));
    });
}
