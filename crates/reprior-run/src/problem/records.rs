//! The records that settings name, read and looked over, before anything is decided by them.

use std::path::Path;
use std::sync::Arc;

use reprior::model::dataset::{InputKind, Split, Targets};
use reprior::model::likelihood::name::LikelihoodName;
use reprior_io::data::{
    BUILT_INS, GIVEN, GIVEN_ARRAYS, Given, Loaded, STDIN, TableEncoding, Task, load_with_notes,
};
use reprior_io::run::Files;

use super::table::content;
use crate::failure::Failure;
use crate::settings::{Auto, Settings, TaskName};

/// Test images recorded unless told otherwise.
const DEFAULT_TEST_IMAGES: usize = 1000;
/// The largest target: squares of larger ones overflow.
const MOST_TARGET: f64 = 1e150;
/// The largest target is no smaller than this: squares of far smaller ones have no digits.
const LEAST_TARGET: f64 = 1e-90;

/// Rows from which on a target of zeros and ones is one of two classes.
const ENOUGH_ROWS: usize = 20;

/// What was read.
pub(crate) struct Records {
    /// Training and test rows in their own units.
    pub split: Split,
    /// Columns of a CSV file that are predicted.
    pub(super) target_columns: Vec<String>,
    /// What the columns of a table became.
    pub(super) encoding: Option<TableEncoding>,
    /// What to know of them.
    pub(super) notes: Vec<String>,
    /// The run that the settings were read from, if they were.
    pub(super) run: Option<Files>,
    /// What standard input or a program gave, if one did: it cannot be read again.
    pub(super) content: Option<Arc<Vec<u8>>>,
}

impl Records {
    /// Reads them, and writes their source, columns and numbers into the settings. A `run` that the settings were read from has
    /// what standard input or a program gave.
    ///
    /// # Errors
    /// A wrong request: data that cannot be used.
    pub(crate) fn load(
        settings: &mut Settings,
        run: Option<&Files>,
        given: Option<&Given>,
    ) -> Result<Self, Failure> {
        if !BUILT_INS.contains(&settings.data.source.as_str())
            && ![STDIN, GIVEN, GIVEN_ARRAYS].contains(&settings.data.source.as_str())
            && let Some(path) = full_path(&settings.data.source)
        {
            settings.data.source = path;
        }
        let order_note = settings.data.resolve(settings.run.seed)?;
        let mut request = settings.data.request();
        let content = match given {
            Some(given) => Some(Arc::clone(given.bytes())),
            None => content(&request.source, run)?,
        };
        request.content.clone_from(&content);
        let mut loaded = load_with_notes(&request).map_err(Failure::request)?;
        let of_classes = matches!(
            settings.model.likelihood,
            Auto::Chosen(LikelihoodName::Bernoulli | LikelihoodName::Categorical)
        );
        let is_open = settings.data.task == TaskName::Auto
            && settings.model.noise.is_none()
            && (of_classes || settings.model.likelihood == Auto::Open);
        // a likelihood of classes says so of fewer rows too
        let enough = if of_classes { 1 } else { ENOUGH_ROWS };
        let mut task_note = None;
        if is_open && run.is_none() && is_zero_or_one(&loaded.split, enough) {
            settings.data.task = TaskName::Classification;
            request.task = Task::Classification;
            loaded = load_with_notes(&request).map_err(Failure::request)?;
            task_note = (!of_classes).then(|| {
                "the target is 0 or 1, which are taken for two classes: for a number say --task regression"
                    .to_owned()
            });
        }
        let Loaded {
            split,
            target_columns,
            encoding,
            mut notes,
        } = loaded;
        notes.extend(order_note);
        notes.extend(task_note);
        let Split { train, mut test } = split;
        check_targets(&settings.data.source, [&train.targets, &test.targets])?;
        if settings.data.test.is_none() && matches!(test.kind, InputKind::Image { .. }) {
            test = test.slice(0..test.rows.min(DEFAULT_TEST_IMAGES));
        }
        match settings.data.watch {
            Some(_) => notes.push(format!(
                "all rows train; {} of them are watched in place of test rows, and nothing is tested",
                test.rows
            )),
            None => {
                settings.data.train = Some(train.rows);
                settings.data.test = Some(test.rows);
            }
        }
        if !target_columns.is_empty() {
            settings.data.target = Some(target_columns.clone());
        }
        Ok(Self {
            split: Split { train, test },
            target_columns,
            encoding,
            notes,
            run: run.cloned(),
            content,
        })
    }
}

/// The path of a source that is there from wherever a run is resumed. A link keeps its name, whose ending says what the file is.
fn full_path(source: &str) -> Option<String> {
    let source = Path::new(source);
    let path = std::path::absolute(source).ok()?;
    source.exists().then(|| path.to_string_lossy().into_owned())
}

/// Whether a single target is 0 in some rows and 1 in all others, of which there are enough to tell.
fn is_zero_or_one(split: &Split, enough: usize) -> bool {
    let sets = [&split.train.targets, &split.test.targets];
    let mut counts = [0; 2];
    for targets in sets {
        let Targets::Real { values, names } = targets else {
            return false;
        };
        if names.len() != 1 || values.iter().any(|&value| value != 0.0 && value != 1.0) {
            return false;
        }
        let ones = values.iter().filter(|&&value| value == 1.0).count();
        counts = [counts[0] + values.len() - ones, counts[1] + ones];
    }
    counts.iter().all(|&count| count > 0) && counts[0] + counts[1] >= enough
}

/// Refuses targets that nothing can be learned from, or that are too large or too small to be computed with.
fn check_targets(source: &str, sets: [&Targets; 2]) -> Result<(), Failure> {
    if let Targets::Classes { names, .. } = sets[0]
        && let [only] = names.as_slice()
    {
        return Err(Failure::request(format!(
            "the target of `{source}` has a single class, `{only}`: there is nothing to tell apart; choose another --target, or give records of the other classes as well"
        )));
    }
    for targets in sets {
        let Targets::Real { values, names } = targets else {
            continue;
        };
        let too_large = values.iter().position(|value| value.abs() > MOST_TARGET);
        if let Some(at) = too_large {
            return Err(Failure::request(format!(
                "target `{}` of `{source}` has the value {:e}, and targets beyond {MOST_TARGET:e} cannot be computed with: give the column in a larger unit, or correct the value",
                names[at % names.len()],
                values[at]
            )));
        }
        for (output, name) in names.iter().enumerate() {
            let own = values.iter().skip(output).step_by(names.len());
            let largest = own.fold(0.0, |most: f64, value| most.max(value.abs()));
            if largest > 0.0 && largest < LEAST_TARGET {
                return Err(Failure::request(format!(
                    "target `{name}` of `{source}` is {largest:e} at most, and targets that are all below {LEAST_TARGET:e} cannot be computed with: give the column in a smaller unit"
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use reprior::model::dataset::Dataset;

    #[test]
    fn zeros_and_ones_are_classes_where_there_are_enough() {
        let split = |values: Vec<f64>, names: usize| {
            let rows = values.len() / names;
            let train = Dataset {
                inputs: vec![0.0; rows].into(),
                rows,
                columns: 1,
                column_names: vec!["x".to_owned()],
                kind: InputKind::Table,
                targets: Targets::Real {
                    values,
                    names: vec!["y".to_owned(); names],
                },
            };
            Split {
                test: train.slice(0..0),
                train,
            }
        };
        let of = |rows: usize, names| {
            let values = (0..rows * names).map(|at| f64::from(u8::from(at % 3 == 0)));
            split(values.collect(), names)
        };
        assert!(is_zero_or_one(&of(20, 1), ENOUGH_ROWS));
        assert!(
            !is_zero_or_one(&of(19, 1), ENOUGH_ROWS) && !is_zero_or_one(&of(20, 2), ENOUGH_ROWS)
        );
        assert!(!is_zero_or_one(&split(vec![0.0; 30], 1), ENOUGH_ROWS));
        let mut three = vec![0.0; 30];
        (three[1], three[2]) = (1.0, 2.0);
        assert!(!is_zero_or_one(&split(three, 1), ENOUGH_ROWS));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_keeps_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let (blob, link) = (folder.path().join("blob"), folder.path().join("houses.csv"));
        std::fs::write(&blob, "a,y\n1,2\n").unwrap();
        std::os::unix::fs::symlink(&blob, &link).unwrap();
        let path = |source: &Path| full_path(&source.to_string_lossy());
        assert_eq!(path(&link), Some(link.to_string_lossy().into_owned()));
        assert_eq!(path(&folder.path().join("none.csv")), None);
        // where tests run, this package's folder
        let here = full_path("Cargo.toml").unwrap();
        assert!(Path::new(&here).is_absolute() && here.ends_with("Cargo.toml"));
    }
}
