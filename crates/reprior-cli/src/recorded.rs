//! The draws of a run folder, opened once they are known to be laid out as the run's settings and data lead to.
//!
//! A damaged description of draws may claim any shape. What reads draws relies on shapes: here they are compared with the schema
//! that follows from `config.toml` and `data.json` alone, before anything is read.

use std::path::Path;

use reprior::model::{Dataset, Targets};
use reprior_io::run::{DrawReader, Schema};

use crate::error::Failure;
use crate::minibatch;
use crate::plan::Plan;
use crate::problem::{DataDescription, Problem};
use crate::schema::{POSITIONS, closed_form_schema};
use crate::settings::Settings;

/// Opens the draws of the run in the folder `run`.
///
/// # Errors
/// A wrong request: no draws, draws of another run, or damaged ones.
pub fn open_draws(
    run: &Path,
    settings: &Settings,
    description: &DataDescription,
) -> Result<DrawReader, Failure> {
    description.check(run)?;
    let reader = DrawReader::open(run).map_err(Failure::request)?;
    let schema = schema_of(settings, description)?;
    reader.check(&schema).map_err(Failure::request)?;
    Ok(reader)
}

/// The schema of a run with such settings, every default of them in place, on such data.
fn schema_of(settings: &Settings, description: &DataDescription) -> Result<Schema, Failure> {
    settings.check()?;
    let problem = Problem::without_records(settings.clone(), description.clone())?;
    if problem.settings.sampler.method.covariance().is_some() {
        return Ok(closed_form_schema(&problem));
    }
    Ok(match &problem.minibatch {
        Some(resolved) => minibatch::Plan::new(&problem, resolved)?.schema,
        None => Plan::new(&problem)?.schema,
    })
}

impl Problem {
    /// The problem of a run as its folder describes it: with the sizes and names of the data, without any records.
    ///
    /// # Errors
    /// A wrong request: settings that do not fit the description.
    fn without_records(
        mut settings: Settings,
        description: DataDescription,
    ) -> Result<Self, Failure> {
        let names = description.output_names.clone();
        let targets = match description.is_classification {
            true => Targets::Classes {
                labels: Vec::new(),
                names,
            },
            false => Targets::Real {
                values: Vec::new(),
                names,
            },
        };
        let none = Dataset {
            inputs: Vec::new().into(),
            rows: 0,
            columns: description.columns,
            column_names: description.column_names.clone(),
            kind: description.kind,
            targets,
        };
        settings.resolve();
        let architecture = settings.model.architecture(
            description.kind,
            description.columns,
            settings.model.likelihood.outputs(&none.targets),
            settings.sampler.input_reduction,
        )?;
        let minibatch = minibatch::resolve(&mut settings, &architecture, description.train_rows)?;
        Ok(Self {
            settings,
            description,
            architecture,
            train: none.clone(),
            test: none,
            choice: None,
            minibatch,
            targets: Vec::new(),
            weights: None,
        })
    }
}

/// What `summary` and `predict` say of a run that has draws, but none of the positions among them that are kept.
pub fn lacks_positions(reader: &DrawReader, draws: u64, run: &Path) -> Option<String> {
    let mut groups = reader.groups().filter(|group| group.name == POSITIONS);
    let is_empty = groups.next()?.draws == Some(0);
    (is_empty && draws > 0).then(|| {
        format!(
            "{draws} draws of each chain are on disk, but none of the kept positions that predictions for new inputs are made from: go on with `reprior resume {}`",
            run.display()
        )
    })
}
