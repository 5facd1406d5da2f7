//! The folder of a run of a density of one's own: what is asked for in `config.toml`, draws in `draws.zarr`, the chains' states in `checkpoint/`.
//!
//! It is laid out as every run's, so that ArviZ opens it, and a chain that was stopped or killed goes on from its checkpoint to the draws that it
//! would have made.

use std::path::Path;
use std::time::Instant;

use reprior::chain::Statistics;
use reprior::chain::snapshot::Snapshot;
use reprior::sampler::State;
use reprior_io::run::{
    DataType, DrawReader, DrawStore, DrawWriter, Draws, Files, Group, Labels, RunError, RunFolder,
    Schema, Selection, Values, Variable, checkpoint,
};
use reprior_run::{Failure, restore_chain, save_chain};

const CONFIG: &str = "config.toml";
const POSTERIOR: &str = "posterior";
const STATISTICS: &str = "sample_stats";

/// What a run of a density is: as its folder says it, line by line.
#[derive(Clone)]
pub struct DensityPlan {
    /// The text of `config.toml`.
    pub config: String,
    /// Names of the dimensions.
    pub names: Vec<String>,
    /// Chains.
    pub chains: usize,
    /// Draws of each.
    pub draws: u64,
}

impl DensityPlan {
    fn schema(&self) -> Schema {
        let draws = Some(Draws::new(self.draws));
        let group = |name: &str, variables| Group {
            name: name.to_owned(),
            draws,
            variables,
            attributes: serde_json::Map::new(),
        };
        let number = |name: &str, data_type| Variable::new(name, data_type, &[]);
        let dimensions = self.names.len() as u64;
        let position = Variable::new("z", DataType::F64, &[("dimension", dimensions)]);
        Schema {
            chains: self.chains as u64,
            groups: vec![
                group(POSTERIOR, vec![position]),
                group(
                    STATISTICS,
                    vec![
                        number("lp", DataType::F64),
                        number("acceptance_rate", DataType::F64),
                        number("step_size", DataType::F64),
                        number("diverging", DataType::Bool),
                        number("n_gradients", DataType::I64),
                    ],
                ),
            ],
            coordinates: [("dimension".to_owned(), Labels::Text(self.names.clone()))].into(),
        }
    }
}

/// A run's folder, with its writers.
pub struct DensityFolder {
    folder: RunFolder,
    store: DrawStore,
}

/// Where a chain goes on.
pub struct Begun {
    /// Writes its draws.
    pub record: Record,
    /// Its state, where it has one.
    pub snapshot: Option<Snapshot<f64>>,
}

impl DensityFolder {
    /// A new folder, or one to go on with where `or_resume` says so and there is one.
    ///
    /// # Errors
    /// A folder that is taken, or has a run of other settings; a disk that refuses.
    pub fn open(
        path: &Path,
        plan: &DensityPlan,
        overwrite: bool,
        or_resume: bool,
    ) -> Result<Self, Failure> {
        let schema = plan.schema();
        if or_resume && path.join(CONFIG).is_file() {
            let folder = RunFolder::open(path).map_err(Failure::request)?;
            let text = folder.files().read_text(CONFIG).map_err(Failure::request)?;
            if let Some(other) = first_difference(&text.unwrap_or_default(), &plan.config) {
                return Err(Failure::Request(format!(
                    "`{}` has a run of other settings: there {other}; choose another out, or give the same settings",
                    path.display()
                )));
            }
            let store = DrawStore::open(&folder).map_err(Failure::request)?;
            return Ok(Self { folder, store });
        }
        let folder = RunFolder::create(path, overwrite).map_err(Failure::request)?;
        let store = DrawStore::create(&folder, &schema).map_err(Failure::run)?;
        folder
            .write_text(CONFIG, &plan.config)
            .map_err(Failure::run)?;
        Ok(Self { folder, store })
    }

    /// Where a chain begins or goes on.
    ///
    /// # Errors
    /// A damaged checkpoint.
    pub fn begin(&self, chain: usize, dimension: usize) -> Result<Begun, Failure> {
        let number = chain as u64;
        let found = checkpoint::load(self.folder.files(), number).map_err(Failure::request)?;
        let (writer, snapshot) = match &found {
            Some(found) => (
                self.store.writer_at(number, found.cursor()),
                Some(restore_chain(found, dimension).map_err(Failure::request)?),
            ),
            None => (self.store.writer(number), None),
        };
        let writer = writer.map_err(Failure::run)?;
        Ok(Begun {
            record: Record {
                writer,
                began: Instant::now(),
            },
            snapshot,
        })
    }
}

/// The first line of `found` that is not so in `wanted`.
fn first_difference(found: &str, wanted: &str) -> Option<String> {
    let mut lines = found.lines().zip(wanted.lines());
    let other = lines.find(|(found, wanted)| found != wanted);
    other.map(|(found, wanted)| format!("it is `{found}`, and here `{wanted}`"))
}

/// What writes the draws of a chain.
pub struct Record {
    writer: DrawWriter,
    began: Instant,
}

impl Record {
    /// A draw.
    ///
    /// # Errors
    /// A disk that refuses.
    pub fn draw(
        &mut self,
        state: &State<f64>,
        statistics: &Statistics,
        log_density: f64,
    ) -> Result<(), RunError> {
        self.writer
            .push(POSTERIOR, &[Values::F64(&state.position)])?;
        let reals = [
            log_density,
            statistics.acceptance_rate(),
            statistics.step_size.unwrap_or(f64::NAN),
        ];
        let gradients = i64::try_from(statistics.n_gradients).unwrap_or(i64::MAX);
        self.writer.push(
            STATISTICS,
            &[
                Values::F64(&reals[..1]),
                Values::F64(&reals[1..2]),
                Values::F64(&reals[2..]),
                Values::Bool(&[statistics.divergences > 0]),
                Values::I64(&[gradients]),
            ],
        )
    }

    /// Its state.
    ///
    /// # Errors
    /// A disk that refuses.
    pub fn checkpoint(&mut self, snapshot: &Snapshot<f64>) -> Result<(), RunError> {
        save_chain(
            &mut self.writer,
            snapshot,
            self.began.elapsed().as_secs_f64(),
        )
    }
}

/// The draws that every chain of a folder has, and all of them: chains x draws x dimensions.
///
/// # Errors
/// A folder without draws, or with damaged ones.
pub fn read(path: &Path) -> Result<(usize, Vec<f64>), Failure> {
    let reader = DrawReader::open(path).map_err(Failure::request)?;
    let found = reader.read::<f64>(POSTERIOR, "z", &Selection::all());
    let found = found.map_err(Failure::request)?;
    Ok((found.shape.get(1).copied().unwrap_or(0), found.values))
}

/// What the chains of a folder have done after warm-up, as far as their checkpoints say.
///
/// # Errors
/// A folder that is no run of a density; damaged checkpoints.
pub fn statistics(
    path: &Path,
    chains: usize,
    dimension: usize,
) -> Result<Vec<Statistics>, Failure> {
    let files = Files::from(path);
    (0..chains)
        .map(|chain| {
            let found = checkpoint::load(&files, chain as u64).map_err(Failure::request)?;
            let snapshot = found.map(|found| restore_chain(&found, dimension));
            let snapshot = snapshot.transpose().map_err(Failure::request)?;
            Ok(snapshot.map_or_else(Statistics::default, |own| own.sampling))
        })
        .collect()
}
