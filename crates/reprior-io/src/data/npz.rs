//! Archives of arrays in NumPy's `.npz` format.
//!
//! `x_train`, `y_train` and optionally `x_test`, `y_test`; or `x` and `y`, which are split as one table.
//! Inputs: records × columns is a table with columns named `x0`, `x1`, ...; records × rows × columns are grey images; records × rows × columns × channels are
//! images, reordered to planes. (Records × channels × rows × columns is recognised by a second axis of at most 4 and a last axis above 4.)
//! Targets: integers on one axis are classes, unless regression is asked for; real numbers are real, unless classification is asked for; on two axes,
//! records × outputs, they are several real outputs.

use std::path::Path;

use reprior::model::dataset::{Dataset, InputKind, Split, Targets};

use super::npy::NpyArray;
use super::npz_archive::{Archive, Records};
use super::split;
use super::targets;
use super::{DataError, Request, Task};

/// Loads and splits an archive.
pub(super) fn load(path: &Path, request: &Request) -> Result<Split, DataError> {
    let content = request.content.as_ref().map(|bytes| bytes.as_slice());
    let mut archive = Archive::open(path, content)?;
    if !archive.has("x_train") && archive.has("x") {
        let y = archive.array("y", None)?;
        let targets = targets(path, "y", &[&y], request.task)?.remove(0);
        // in their order in the file, the rows that are asked for come first
        let limit = match (request.train, request.test, request.shuffle) {
            (Some(train), Some(test), None) => train.checked_add(test),
            _ => None,
        };
        let limit = limit.filter(|&limit| limit < y.shape[0]);
        let table = set(&mut archive, "x", &y, targets, limit)?;
        return split::split_table(&table, request, table.rows * 4 / 5);
    }
    let mut labelled = vec![archive.array("y_train", None)?];
    if archive.has("x_test") {
        labelled.push(archive.array("y_test", None)?);
        if labelled[0].shape[1..] != labelled[1].shape[1..] {
            let problem = "arrays `y_train` and `y_test` differ beyond their first axis; save both with the same outputs";
            return Err(DataError::malformed(path, problem));
        }
    }
    let mut targets = targets(
        path,
        "y_train",
        &labelled.iter().collect::<Vec<_>>(),
        request.task,
    )?;
    let test_targets = (targets.len() > 1).then(|| targets.remove(1));
    let train_rows = split::wanted(
        &request.source,
        "training records",
        labelled[0].shape[0],
        request.train,
    )?;
    split::at_least_two(&request.source, train_rows)?;
    let test_rows = labelled.get(1).map_or(0, |y| y.shape[0]);
    let test_rows = split::wanted(&request.source, "test records", test_rows, request.test)?;

    let limit = |rows| request.shuffle.is_none().then_some(rows);
    let train = set(
        &mut archive,
        "x_train",
        &labelled[0],
        targets.remove(0),
        limit(train_rows),
    )?;
    let test = match test_targets {
        Some(targets) => set(
            &mut archive,
            "x_test",
            &labelled[1],
            targets,
            limit(test_rows),
        )?,
        None => train.slice(0..0),
    };
    if (train.kind, train.columns) != (test.kind, test.columns) {
        let problem = "arrays `x_train` and `x_test` differ beyond their first axis; save both with the same columns";
        return Err(DataError::malformed(path, problem));
    }
    Ok(Split {
        train: split::first(train, train_rows, request.shuffle, split::TRAIN_STREAM),
        test: split::first(test, test_rows, request.shuffle, split::TEST_STREAM),
    })
}

/// One set; `targets` are those of all its records, of which the first `limit` may be read.
fn set(
    archive: &mut Archive,
    name: &str,
    y: &NpyArray,
    mut targets: Targets,
    limit: Option<usize>,
) -> Result<Dataset, DataError> {
    let path = archive.path;
    let Records {
        values: mut inputs,
        rows,
        records,
        columns,
        kind,
    } = archive.inputs(name, limit)?;
    if records != y.shape[0] {
        let problem = format!(
            "array `{name}` has {records} records but its targets have {}; save as many of each",
            y.shape[0]
        );
        return Err(DataError::malformed(path, problem));
    }
    let rows = limit.map_or(rows, |limit| limit.min(rows));
    inputs.truncate(rows * columns);
    match &mut targets {
        Targets::Real { values, names } => values.truncate(rows * names.len()),
        Targets::Classes { labels, .. } => labels.truncate(rows),
    }
    let column_names = match kind {
        InputKind::Table => (0..columns).map(|column| format!("x{column}")).collect(),
        InputKind::Image { .. } => Vec::new(),
    };
    Ok(Dataset {
        inputs: inputs.into(),
        rows,
        columns,
        column_names,
        kind,
        targets,
    })
}

/// The targets of one or two sets, with the same names in both.
fn targets(
    path: &Path,
    name: &str,
    arrays: &[&NpyArray],
    task: Task,
) -> Result<Vec<Targets>, DataError> {
    let axes = arrays[0].shape.len();
    let outputs = if axes == 1 { 1 } else { arrays[0].shape[1] };
    if axes > 2 || outputs == 0 {
        let problem = format!(
            "array `{name}` has shape {:?}; targets need records, or records × outputs",
            arrays[0].shape
        );
        return Err(DataError::malformed(path, problem));
    }
    let is_class = match task {
        Task::Auto => arrays.iter().all(|array| array.is_integer) && axes == 1,
        Task::Classification => true,
        Task::Regression => false,
    };
    if !is_class {
        let names: Vec<String> = match axes {
            1 => vec!["y".to_string()],
            _ => (0..outputs).map(|output| format!("y{output}")).collect(),
        };
        let real = |array: &&NpyArray| Targets::Real {
            values: array.values.clone(),
            names: names.clone(),
        };
        return Ok(arrays.iter().map(real).collect());
    }
    if outputs != 1 {
        let problem = format!(
            "array `{name}` has {outputs} outputs; classification takes one label per record"
        );
        return Err(DataError::malformed(path, problem));
    }
    let numbers: Vec<f64> = arrays
        .iter()
        .flat_map(|array| array.values.iter().copied())
        .collect();
    let written: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    let (mut labels, names) = targets::classes_of_numbers(&numbers, &written)
        .map_err(|classes| DataError::too_many_classes(path, name, classes))?;
    let rest = labels.split_off(arrays[0].values.len());
    let mut sets = vec![Targets::Classes {
        labels,
        names: names.clone(),
    }];
    if arrays.len() > 1 {
        sets.push(Targets::Classes {
            labels: rest,
            names,
        });
    }
    Ok(sets)
}

/// The targets of a set for predictions, if it has any, and their number of records.
pub(super) fn truth(
    archive: &mut Archive,
    name: &str,
    task: Task,
) -> Result<Option<(Targets, usize)>, DataError> {
    if !archive.has(name) {
        return Ok(None);
    }
    let array = archive.array(name, None)?;
    Ok(targets(archive.path, name, &[&array], task)?
        .pop()
        .map(|targets| (targets, array.records)))
}
