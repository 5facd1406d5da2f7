//! Settings of the data.

use clap::Args;
use reprior::model::standardisation::PixelScaling;
use reprior_io::data::{Missing, Request, Task, is_csv};
use serde::{Deserialize, Serialize};

use super::names::{Switch, TaskName, name};
use crate::failure::Failure;

/// `[data]`: which records there are, and what is made of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, Args)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
#[command(next_help_heading = "Data")]
pub struct DataSettings {
    /// Data: a built-in (friedman, two-moons, strokes), a .csv or .tsv file with a header (.gz too; - for standard input), a
    /// .parquet, .arrow or .feather file, a .npz file (x_train, y_train, x_test, y_test), or a folder of IDX files or CIFAR-10/100 binary batches
    #[arg(long = "data", id = "data", value_name = "SRC")]
    pub source: String,
    /// Target column of a CSV file, or several with commas [default: the last column]
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Vec<String>>,
    /// Columns of a CSV file to leave out, with commas or repeated
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Input columns of a CSV file whose values are levels even where they look like numbers, with commas or repeated
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categorical: Vec<String>,
    /// Missing input cells of a CSV file: median or mean (of the training rows, with a further input that says where), drop
    /// (the row is left out) or error [default: median]
    #[arg(long, value_name = "HOW", value_parser = name::<Missing>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<Missing>,
    /// What the target is: auto, regression or classification (auto: text and image labels are classes; so are zeros and ones of 20 rows or more, unless --noise or a --likelihood of numbers is given) [default: auto]
    #[arg(long, value_name = "TASK")]
    pub task: TaskName,
    /// Train on the first N records [default: four fifths of a table, all training images]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub train: Option<usize>,
    /// Test on the first N test records, in a table those that follow the training rows [default: the rest of a table,
    /// at most 1000 test images]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<usize>,
    /// Shuffle the records with this seed before taking the first ones, balanced over classes [default: --seed for CSV files
    /// without --train; other records stay in their order]
    #[arg(long, value_name = "SEED")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shuffle: Option<u64>,
    /// Take the rows of a CSV file in their order: the first ones train
    #[arg(
        long = "no-shuffle",
        id = "no_shuffle",
        num_args = 0,
        default_missing_value = "true",
        conflicts_with = "shuffle"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_shuffle: Option<bool>,
    /// Train on all records of a table, and watch the predictions of N of them, evenly spaced, so that it can be told whether chains agree;
    /// nothing is tested [default: four fifths train, the others test]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<usize>,
    /// How pixels are scaled: standardised (to mean 0 and standard deviation 1 over all of them) or unit (divided by 255)
    /// [default: standardised]
    #[arg(long, value_name = "HOW", value_parser = name::<PixelScaling>)]
    pub pixels: PixelScaling,
    /// Scale inputs and real targets to mean 0 and standard deviation 1: on, or off to take them as they are, as a network takes them that was
    /// trained elsewhere on its own units [default: on]
    #[arg(long, value_name = "WHEN")]
    #[serde(skip_serializing_if = "is_on")]
    pub standardise: Switch,
}

/// Configurations do not say that data are standardised, as those of all earlier runs were.
fn is_on(switch: &Switch) -> bool {
    *switch == Switch::On
}

impl DataSettings {
    /// Which records to load.
    pub fn request(&self) -> Request {
        Request {
            source: self.source.clone(),
            content: None,
            target: self.target.clone(),
            ignore: self.ignore.clone(),
            categorical: self.categorical.clone(),
            missing: self.missing.unwrap_or_default(),
            task: match self.task {
                TaskName::Auto => Task::Auto,
                TaskName::Regression => Task::Regression,
                TaskName::Classification => Task::Classification,
            },
            train: self.train,
            test: self.test,
            shuffle: self.shuffle,
            watch: self.watch,
        }
    }

    /// Writes out which order the rows are taken in: shuffled by `seed` where the program splits a table, as they are where the user
    /// says how many of the first rows train. What a user should know of it.
    ///
    /// # Errors
    /// A wrong request: contradictions, and what is of CSV files alone.
    pub(crate) fn resolve(&mut self, seed: u64) -> Result<Option<String>, Failure> {
        if let Some(count) = self.watch {
            let others = [self.train, self.test].into_iter().flatten();
            if others.count() > 0 || self.shuffle.is_some() {
                return Err(Failure::request(
                    "--watch trains on all records: leave --train, --test and --shuffle out, or leave --watch out",
                ));
            }
            if count == 0 {
                return Err(Failure::request(
                    "--watch is 0: at least one record is watched",
                ));
            }
            if is_csv(&self.source).map_err(Failure::request)? {
                self.missing = Some(self.missing.unwrap_or_default());
            }
            return Ok(None);
        }
        let is_shuffled = self.no_shuffle != Some(true);
        if self.shuffle.is_some() && !is_shuffled {
            return Err(Failure::request(
                "--shuffle and --no-shuffle contradict each other: give one",
            ));
        }
        if !is_csv(&self.source).map_err(Failure::request)? {
            return match self.missing {
                Some(_) => Err(Failure::request(
                    "--missing is for tables in .csv files: leave it out",
                )),
                None => Ok(None),
            };
        }
        self.missing = Some(self.missing.unwrap_or_default());
        if self.shuffle.is_some() || self.no_shuffle.is_some() && !is_shuffled {
            return Ok(None);
        }
        if self.train.is_none() || self.no_shuffle == Some(false) {
            self.shuffle = Some(seed);
            self.no_shuffle = None;
            return Ok(None);
        }
        self.no_shuffle = Some(true);
        Ok(Some(
            "--train takes the first rows of the file, unshuffled: with --shuffle SEED they are taken at random".to_owned(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written out of these.
    fn resolved(source: &str, change: impl Fn(&mut DataSettings)) -> (DataSettings, bool) {
        let mut settings = DataSettings {
            source: source.to_owned(),
            ..DataSettings::default()
        };
        change(&mut settings);
        let note = settings.resolve(7).unwrap();
        (settings, note.is_some())
    }

    #[test]
    fn tables_that_the_program_splits_are_shuffled() {
        let (table, _) = resolved("-", |_| {});
        assert_eq!((table.shuffle, table.no_shuffle), (Some(7), None));
        assert_eq!(table.missing, Some(Missing::Median));
        let (own, is_noted) = resolved("-", |s| s.train = Some(3));
        assert_eq!(
            (own.shuffle, own.no_shuffle, is_noted),
            (None, Some(true), true)
        );
        let (again, is_noted) = resolved("-", |s| *s = own.clone());
        assert!(again == own && !is_noted);
        let (chosen, _) = resolved("-", |s| (s.train, s.shuffle) = (Some(3), Some(1)));
        assert_eq!((chosen.shuffle, chosen.no_shuffle), (Some(1), None));
        let (other, _) = resolved("friedman", |_| {});
        assert_eq!((other.shuffle, other.missing), (None, None));
        let mut both = chosen;
        both.no_shuffle = Some(true);
        assert!(both.resolve(0).is_err());
    }
}
