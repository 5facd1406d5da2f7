//! Chains that begin where those of an earlier run ended, in the same coordinates of the same network.
//!
//! The states are those of its checkpoints, so that nothing is rounded or mapped. Chain k begins at the state of chain k of that run, and at those again from
//! the first on where it has fewer. Noise, method, rows and seed may be others, and the prior where no coordinate hangs on it: a start is no part of what is
//! sampled.

use std::path::Path;

use reprior::posterior::Coordinates;
use reprior_io::run::{Checkpoint, RunFolder, checkpoint};

use crate::failure::Failure;
use crate::problem::{DataDescription, Problem};
use crate::settings::{MethodName, Precision, Settings};
use crate::stored::Stored;

/// The chains of an earlier run.
pub struct EarlierRun {
    folder: String,
    checkpoints: Vec<Checkpoint>,
    precision: Precision,
}

impl EarlierRun {
    /// The run in a folder, for the chains of a problem.
    ///
    /// # Errors
    /// A wrong request: one whose chains are of another kind, or whose states were not kept.
    pub fn open(folder: &str, problem: &Problem) -> Result<Self, Failure> {
        let refuse = |why: String| Err(Failure::request(format!("--start {folder}: {why}")));
        let run = RunFolder::open(Path::new(folder)).map_err(Failure::request)?;
        let files = run.files();
        let other = Settings::of_run(files)?;
        let own = &problem.settings;
        if !matches!(other.sampler.method(), MethodName::Chain(_)) {
            return refuse(format!(
                "it is a run of {}, which has no chains on all data: give one that has",
                other.sampler.method()
            ));
        }
        let differs = [
            (
                "coordinates",
                other.coordinates().to_string(),
                own.coordinates().to_string(),
            ),
            (
                "network",
                other.model.network.clone(),
                own.model.network.clone(),
            ),
            (
                "likelihood",
                other.model.likelihood().to_string(),
                own.model.likelihood().to_string(),
            ),
        ]
        .into_iter()
        .find(|(_, other, own)| other != own);
        if let Some((what, other, own)) = differs {
            return refuse(format!(
                "it was made with --{what} {other}, not {own}: give the same, or another start"
            ));
        }
        let description = DataDescription::read(files)?;
        let is_same = description
            .as_ref()
            .is_some_and(|other| other.fingerprint == problem.description.fingerprint);
        let reduces = |settings: &Settings, rows: usize| {
            let reduction = settings.sampler.input_reduction;
            reduction.reduces(&problem.architecture, rows)
        };
        let are_reduced = reduces(own, problem.description.train_rows)
            || description.is_none_or(|other_data| reduces(&other, other_data.train_rows));
        if are_reduced && !is_same {
            return refuse(
                "its data are others, by which inputs were reduced: make both runs with --input-reduction off, or give another start".to_owned(),
            );
        }
        if let Some(flag) = differing_coordinates(&other, own, are_reduced) {
            return refuse(format!(
                "it was made with another {flag}, by which its coordinates are of other functions: give the same, or another start"
            ));
        }
        let mut checkpoints = Vec::new();
        for chain in 0..other.schedule().chains as u64 {
            let found = checkpoint::load(files, chain).map_err(Failure::request)?;
            checkpoints.extend(found.filter(|found| !found.is_finished()));
        }
        if checkpoints.is_empty() {
            return refuse(
                "the states of its chains were not kept, as they are large: raise its --keep-mb, or give another start".to_owned(),
            );
        }
        Ok(Self {
            folder: folder.to_owned(),
            checkpoints,
            precision: other.sampler.precision,
        })
    }

    /// Refuses states of another dimension.
    ///
    /// # Errors
    /// A wrong request.
    pub fn check(&self, dimension: usize) -> Result<(), Failure> {
        let of = |checkpoint: &Checkpoint| {
            let mut tensors = checkpoint.tensors();
            let position = tensors.find(|(name, _)| *name == "position");
            position.map_or(0, |(_, shape)| shape.iter().product())
        };
        match self
            .checkpoints
            .iter()
            .map(of)
            .find(|&found| found != dimension)
        {
            None => Ok(()),
            Some(found) => Err(Failure::request(format!(
                "--start {}: its chains have {found} coordinates, and {dimension} here: give the same network, noise and scales, or another start",
                self.folder
            ))),
        }
    }

    /// Where a chain with so many coordinates begins.
    ///
    /// # Errors
    /// A state of another dimension; a damaged checkpoint.
    pub fn position<R: Stored>(&self, chain: usize, dimension: usize) -> Result<Vec<R>, Failure> {
        self.check(dimension)?;
        let checkpoint = &self.checkpoints[chain % self.checkpoints.len()];
        let shape = [dimension];
        let read = match self.precision {
            Precision::F64 => checkpoint
                .f64("position", &shape)
                .map(|all| all.into_iter().map(R::from_f64).collect()),
            _ => checkpoint.f32("position", &shape).map(|all| {
                let wide = all.into_iter().map(f64::from);
                wide.map(R::from_f64).collect()
            }),
        };
        read.map_err(Failure::request)
    }
}

/// The flag by which the same numbers are coordinates of other functions: of reduced inputs what they are reduced by, of repriorised coordinates what the
/// readout is solved with.
fn differing_coordinates(
    other: &Settings,
    own: &Settings,
    are_reduced: bool,
) -> Option<&'static str> {
    let (before, now) = (&other.model, &own.model);
    let first = |scales: &[f64]| scales.first().copied();
    let of_inputs = [
        (
            "--standardise",
            other.data.standardise != own.data.standardise,
        ),
        ("--pixels", other.data.pixels != own.data.pixels),
        ("--scales", before.input_scales != now.input_scales),
        (
            "--weight-variance",
            first(&before.weight_variance) != first(&now.weight_variance),
        ),
        (
            "--bias-variance",
            first(&before.bias_variance) != first(&now.bias_variance),
        ),
    ];
    let of_readout = [
        (
            "--regulariser",
            other.sampler.regulariser != own.sampler.regulariser,
        ),
        ("--space", other.sampler.space != own.sampler.space),
    ];
    let is_repriorised = own.coordinates() == Coordinates::Repriorised;
    let of_inputs = of_inputs.into_iter().filter(|_| are_reduced);
    let of_readout = of_readout.into_iter().filter(|_| is_repriorised);
    let mut all = of_inputs.chain(of_readout);
    all.find(|&(_, differs)| differs).map(|(flag, _)| flag)
}
