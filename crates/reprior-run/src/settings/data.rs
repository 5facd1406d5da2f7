//! Settings of the data.

use clap::Args;
use reprior::model::standardisation::PixelScaling;
use reprior_io::data::{Request, Task};
use serde::{Deserialize, Serialize};

use super::names::{TaskName, name};

/// `[data]`: which records there are, and what is made of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, Args)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
#[command(next_help_heading = "Data")]
pub struct DataSettings {
    /// Data: a built-in (friedman, two-moons, strokes), a .csv file with a header, a .npz file (x_train, y_train,
    /// x_test, y_test), or a folder of IDX files or CIFAR-10/100 binary batches
    #[arg(long = "data", id = "data", value_name = "SRC")]
    pub source: String,
    /// Target column of a CSV file, or several with commas [default: the last column]
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Vec<String>>,
    /// What the target is: auto, regression or classification (auto: text and image labels are classes) [default: auto]
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
    /// Shuffle the records with this seed before taking the first ones, balanced over classes
    #[arg(long, value_name = "SEED")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shuffle: Option<u64>,
    /// How pixels are scaled: standardised (to mean 0 and standard deviation 1 over all of them) or unit (divided by 255)
    /// [default: standardised]
    #[arg(long, value_name = "HOW", value_parser = name::<PixelScaling>)]
    pub pixels: PixelScaling,
}

impl DataSettings {
    /// Which records to load.
    pub fn request(&self) -> Request {
        Request {
            source: self.source.clone(),
            target: self.target.clone(),
            task: match self.task {
                TaskName::Auto => Task::Auto,
                TaskName::Regression => Task::Regression,
                TaskName::Classification => Task::Classification,
            },
            train: self.train,
            test: self.test,
            shuffle: self.shuffle,
        }
    }
}
