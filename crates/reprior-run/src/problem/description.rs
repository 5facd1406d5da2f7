//! `data.json`: what the data of a run were, enough to read new inputs and to give predictions in the data's own units.

use std::path::Path;

use reprior::model::dataset::{Dataset, InputKind, Targets};
use reprior::model::standardisation::{InputScaling, Standardisation};
use reprior_io::data::{
    ExpectedInputs, ExpectedTargets, Given, Inputs, TableEncoding, given_inputs,
    load_encoded_inputs,
};
use reprior_io::run::{Files, RunFolder};
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, name_of};

/// No data in memory have more rows, and what is counted of so many is far from the largest number.
const MOST_ROWS: usize = 1 << 40;

/// The file of a run that says what its data were.
pub(crate) const DATA: &str = "data.json";

/// What `data.json` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataDescription {
    /// Table or image.
    pub kind: InputKind,
    /// Values per record.
    pub columns: usize,
    /// Names of the input columns; empty for images.
    pub column_names: Vec<String>,
    /// Columns of a CSV file that were predicted; empty for other sources.
    pub target_columns: Vec<String>,
    /// Whether the targets are classes.
    pub is_classification: bool,
    /// Names of outputs or classes.
    pub output_names: Vec<String>,
    /// Training rows.
    pub train_rows: usize,
    /// Test rows.
    pub test_rows: usize,
    /// Means and scales of inputs and targets.
    pub standardisation: Standardisation,
    /// What the columns of a CSV file became; none of other sources, and of runs that took numbers only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<TableEncoding>,
    /// Least and greatest training value of every input column of a table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_ranges: Vec<[f64; 2]>,
    /// What a user should know of the data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Hash of all records, so that a run does not go on with other data.
    pub fingerprint: String,
}

impl DataDescription {
    /// That of the run in a folder, if it has been written.
    ///
    /// # Errors
    /// A damaged file.
    pub fn of(run: &Path) -> Result<Option<Self>, Failure> {
        Self::read(&Files::from(run))
    }

    /// That of a run, if it has been written.
    ///
    /// # Errors
    /// A damaged file.
    pub(crate) fn read(files: &Files) -> Result<Option<Self>, Failure> {
        let text = files.read_text(DATA).map_err(Failure::request)?;
        let parse = |text: String| {
            serde_json::from_str(&text).map_err(|error| {
                let path = name_of(files);
                Failure::request(format!("`{path}/{DATA}` is damaged: {error}"))
            })
        };
        text.map(parse).transpose()
    }

    /// Writes it into a run.
    ///
    /// # Errors
    /// A disk that refuses.
    pub(crate) fn write(&self, folder: &RunFolder) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).map_err(Failure::run)?;
        folder.write_text(DATA, &text).map_err(Failure::run)
    }

    /// Whether another run has the same data, encoded alike. Notes hang on how they were asked for.
    pub(crate) fn is_same_data(&self, other: &Self) -> bool {
        let [own, other] = [self, other].map(|all| Self {
            notes: Vec::new(),
            ..all.clone()
        });
        own == other
    }

    /// What new inputs must look like.
    pub fn expected_inputs(&self) -> ExpectedInputs {
        let names = self.output_names.clone();
        let targets = if self.is_classification {
            ExpectedTargets::Classes {
                column: self.target_columns.first().cloned(),
                names,
            }
        } else {
            ExpectedTargets::Real { names }
        };
        ExpectedInputs {
            kind: self.kind,
            columns: self.columns,
            column_names: self.column_names.clone(),
            targets: Some(targets),
        }
    }

    /// Inputs to predict for, encoded as the training rows were; with what a user should know of them.
    ///
    /// # Errors
    /// A wrong request: inputs that are not those the run takes.
    pub fn read_inputs(&self, source: &str) -> Result<Inputs, Failure> {
        let expected = self.expected_inputs();
        let inputs = load_encoded_inputs(source, &expected, self.encoding.as_ref());
        let mut inputs = inputs.map_err(Failure::request)?;
        inputs.notes.extend(self.extrapolation(&inputs.values));
        Ok(inputs)
    }

    /// The same of data in memory.
    ///
    /// # Errors
    /// As [`read_inputs`](Self::read_inputs).
    pub fn given_inputs(&self, given: &Given) -> Result<Inputs, Failure> {
        let inputs = given_inputs(given, &self.expected_inputs(), self.encoding.as_ref());
        let mut inputs = inputs.map_err(Failure::request)?;
        inputs.notes.extend(self.extrapolation(&inputs.values));
        Ok(inputs)
    }

    /// Refuses a description that contradicts itself.
    ///
    /// # Errors
    /// A wrong request: `data.json` is damaged.
    pub(crate) fn check(&self, files: &Files) -> Result<(), Failure> {
        let standardisation = &self.standardisation;
        let (inputs, columns) = match (&standardisation.inputs, self.kind) {
            (InputScaling::Columns(maps), InputKind::Table) => (maps.len(), self.columns),
            (
                InputScaling::Pixels(_),
                InputKind::Image {
                    height,
                    width,
                    channels,
                },
            ) => {
                let pixels = height
                    .checked_mul(width)
                    .and_then(|all| all.checked_mul(channels));
                (pixels.unwrap_or(0), self.columns)
            }
            _ => (0, 1),
        };
        let outputs = self.output_names.len();
        let rows = [self.train_rows, self.test_rows];
        let is_sound = inputs == columns
            && rows.iter().all(|&rows| rows <= MOST_ROWS)
            && columns > 0
            && outputs > 0
            && (self.column_names.is_empty() || self.column_names.len() == columns)
            && (self.input_ranges.is_empty() || self.input_ranges.len() == columns)
            && self.encoding.as_ref().is_none_or(|encoding| {
                encoding.is_sound() && encoding.input_names() == self.column_names
            })
            && standardisation.targets.len() == outputs
            && standardisation
                .constant_columns
                .iter()
                .all(|&column| column < columns)
            && standardisation
                .constant_targets
                .iter()
                .all(|&output| output < outputs);
        if is_sound {
            return Ok(());
        }
        Err(Failure::request(format!(
            "`{}/{DATA}` is damaged: the numbers of rows, columns, outputs and scales in it contradict each other, or are none that data have",
            name_of(files)
        )))
    }

    /// Whether these are the data: numbers and all.
    pub fn is_of(&self, train: &Dataset, test: &Dataset) -> bool {
        fingerprint(&[train, test]) == self.fingerprint
    }

    /// One line on what the data are.
    pub fn in_words(&self) -> String {
        let targets = match (self.is_classification, self.output_names.as_slice()) {
            (true, names) => format!("{} classes", names.len()),
            (false, [one]) => format!("target {one}"),
            (false, names) => format!("{} targets", names.len()),
        };
        let inputs = match self.kind {
            InputKind::Table => match &self.encoding {
                Some(encoding) if encoding.used().count() != self.columns => {
                    format!(
                        "{} columns as {} inputs",
                        encoding.used().count(),
                        self.columns
                    )
                }
                _ => format!("{} columns", self.columns),
            },
            InputKind::Image {
                height,
                width,
                channels,
            } => format!("images {height} x {width} x {channels}"),
        };
        format!(
            "{} training rows, {} test rows, {inputs}, {targets}",
            self.train_rows, self.test_rows
        )
    }

    /// Says no more what there is to know of the data.
    pub fn leave_notes_out(&mut self) {
        self.notes.clear();
        self.standardisation.constant_columns.clear();
        self.standardisation.constant_targets.clear();
    }

    /// What a user should know: of the table, and of columns that do not vary.
    pub fn notes(&self) -> Vec<String> {
        let names = |columns: &[usize], all: &[String]| {
            let known = columns.iter().filter_map(|&column| all.get(column));
            known
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let standardisation = &self.standardisation;
        let mut notes = self.notes.clone();
        if !standardisation.constant_columns.is_empty() {
            let list = names(&standardisation.constant_columns, &self.column_names);
            notes.push(format!(
                "input columns that do not vary over the training rows, and count as 0: {list}"
            ));
        }
        if !standardisation.constant_targets.is_empty() {
            let list = names(&standardisation.constant_targets, &self.output_names);
            notes.push(format!(
                "targets that do not vary over the training rows: {list}"
            ));
        }
        notes
    }
}

/// FNV-1a over every number of the records.
pub(super) fn fingerprint(sets: &[&Dataset]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |word: u64| {
        hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        hash ^= hash >> 29;
    };
    for set in sets {
        add(set.rows as u64);
        set.inputs.iter().for_each(|x| add(x.to_bits()));
        match &set.targets {
            Targets::Real { values, .. } => values.iter().for_each(|y| add(y.to_bits())),
            Targets::Classes { labels, .. } => {
                labels.iter().for_each(|&label| add(u64::from(label)))
            }
        }
    }
    format!("{hash:016x}")
}
