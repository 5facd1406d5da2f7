//! The draws of a run, opened once they are known to be laid out as the run's settings and data lead to.
//!
//! A damaged description of draws may claim any shape. What reads draws relies on shapes: here they are compared with the schema
//! that follows from `config.toml` and `data.json` alone, before anything is read.

use reprior::model::dataset::{Split, Targets};
use reprior_io::data::load;
use reprior_io::run::{DrawReader, Files, Schema, Selection};

use super::stacking::ChainWeights;
use crate::failure::{Failure, name_of};
use crate::predictive::{PredictionKind, PredictiveDraws};
use crate::problem::{DataDescription, content};
use crate::record::{Keeping, LOG_LIKELIHOOD, NOISE, POSITIONS, PREDICTIONS, SPREAD, TRACES};
use crate::settings::Settings;

/// Numbers of a block of predictions that is read at a time.
const BLOCK_NUMBERS: usize = 8 << 20;

/// A run's draws with what they are of.
pub struct Recorded {
    /// Where it is.
    pub files: Files,
    /// With every default written out.
    pub settings: Settings,
    /// What the data were.
    pub description: DataDescription,
    pub(crate) reader: DrawReader,
    /// What draws predict.
    pub(crate) kind: PredictionKind,
    /// Complete draws of each chain that can be read.
    pub(crate) draws: u64,
    pub(super) weights: ChainWeights,
}

/// The first draws of every chain.
pub(crate) fn first(draws: u64) -> Selection {
    Selection {
        draws: Some(0..draws),
        ..Selection::all()
    }
}

/// Draws that every group has: after a kill, one group may be some draws ahead of another.
fn complete_draws(reader: &DrawReader) -> u64 {
    let every_draw = [
        "posterior",
        "sample_stats",
        PREDICTIONS,
        TRACES,
        LOG_LIKELIHOOD,
    ];
    let planned = reader.groups().find(|group| group.name == "sample_stats");
    let planned = planned.and_then(|group| group.planned);
    // predictions may be of fewer draws
    let groups = reader
        .groups()
        .filter(|group| every_draw.contains(&group.name) && group.planned == planned);
    groups.filter_map(|group| group.draws).min().unwrap_or(0)
}

impl Recorded {
    /// Opens the draws of a run, which must be as `schema` says.
    ///
    /// # Errors
    /// A wrong request: no draws, draws of another run, or damaged ones.
    pub(crate) fn open(
        files: &Files,
        settings: Settings,
        description: DataDescription,
        schema: &Schema,
    ) -> Result<Self, Failure> {
        let reader = DrawReader::open(files).map_err(Failure::request)?;
        reader.check(schema).map_err(Failure::request)?;
        Ok(Self {
            files: files.clone(),
            kind: PredictionKind::new(&settings.model, description.is_classification),
            draws: complete_draws(&reader),
            settings,
            description,
            reader,
            weights: ChainWeights::default(),
        })
    }

    /// Number of chains.
    pub(crate) fn chains(&self) -> usize {
        self.reader.chains() as usize
    }

    /// Whether the rows in place of test rows train as well.
    pub fn tests_nothing(&self) -> bool {
        self.settings.data.watch.is_some()
    }

    /// Outputs, or classes.
    pub(crate) fn outputs(&self) -> usize {
        self.description.output_names.len()
    }

    /// The values of a variable at the complete draws.
    ///
    /// # Errors
    /// A run that cannot be read.
    pub(crate) fn read(&self, group: &str, name: &str) -> Result<Vec<f64>, Failure> {
        if self.draws == 0 {
            return Ok(Vec::new());
        }
        self.read_selected(group, name, &first(self.draws))
    }

    /// The values of a variable.
    ///
    /// # Errors
    /// A run that cannot be read.
    pub(crate) fn read_selected(
        &self,
        group: &str,
        name: &str,
        selection: &Selection,
    ) -> Result<Vec<f64>, Failure> {
        let read = self.reader.read::<f64>(group, name, selection);
        read.map(|all| all.values).map_err(Failure::request)
    }

    /// Positions of each chain that are kept.
    pub(crate) fn kept_positions(&self) -> u64 {
        let mut groups = self.reader.groups();
        let found = groups.find(|group| group.name == POSITIONS);
        found.and_then(|group| group.draws).unwrap_or(0)
    }

    /// What there is to say of draws without any of the positions that predictions for new inputs are made from.
    pub(crate) fn lacks_positions(&self) -> Option<String> {
        let mut groups = self.reader.groups().filter(|group| group.name == POSITIONS);
        let is_empty = groups.next()?.draws == Some(0);
        (is_empty && self.draws > 0).then(|| {
            format!(
                "{} draws of each chain are on disk, but none of the kept positions that predictions for new inputs are made from: go on with `reprior resume {}`",
                self.draws,
                name_of(&self.files)
            )
        })
    }

    /// The draws whose predictions for all test rows can be read.
    pub(crate) fn spacing(&self) -> Spacing {
        // not from the numbers of draws: a run that ended early keeps the spacing of more
        let every = Keeping::new(&self.settings).predictions_every;
        let group = self.reader.groups().find(|group| group.name == PREDICTIONS);
        let visible = group.and_then(|group| group.draws).unwrap_or(0);
        Spacing {
            draws: visible.min(self.draws.div_ceil(every)),
            every,
        }
    }

    /// The recorded predictions for the test rows, noise included, block by block: the first row, the block, and every recorded draw's
    /// [`noise_variances`](Self::noise_variances).
    ///
    /// # Errors
    /// A run folder that cannot be read; what `each` says.
    pub(crate) fn for_each_block(
        &self,
        mut each: impl FnMut(usize, &PredictiveDraws, &[f64]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (rows, outputs, kind) = (self.description.test_rows, self.outputs(), self.kind);
        let recorded = self.spacing();
        let total = self.chains() * recorded.draws as usize;
        if total == 0 {
            return Ok(());
        }
        let block_rows = (BLOCK_NUMBERS / (total * outputs).max(1)).clamp(1, rows.max(1));
        let noise = self.noise_variances(self.draws)?;
        let noise = recorded.pick(&noise, self.draws, kind.spread(outputs));
        for start in (0..rows).step_by(block_rows) {
            let end = (start + block_rows).min(rows);
            let selection = Selection {
                rest: std::iter::once(start as u64..end as u64).collect(),
                ..first(recorded.draws)
            };
            let mean = self.read_selected(PREDICTIONS, kind.variable(), &selection)?;
            let variance = if kind.has_variance() {
                let sd = self.read_selected(PREDICTIONS, SPREAD, &selection)?;
                sd.into_iter().map(|sd| sd * sd).collect()
            } else {
                vec![0.0; total * (end - start) * kind.spread(outputs)]
            };
            let mut block = PredictiveDraws {
                kind,
                rows: end - start,
                outputs,
                mean,
                variance,
            };
            block.add_noise(&noise);
            each(start, &block, &noise)?;
        }
        Ok(())
    }

    /// As [`for_each_block`](Self::for_each_block), of the draws that predict.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn for_each_predicting(
        &self,
        mut each: impl FnMut(usize, &PredictiveDraws, &[f64]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let predicting = self.predicting(self.spacing().draws as usize)?;
        self.for_each_block(|start, block, noise| match &predicting {
            None => each(start, block, noise),
            Some(draws) => {
                let (block, noise) = block.of_draws(draws, noise);
                each(start, &block, &noise)
            }
        })
    }

    /// Squared noise scales of the first draws in the units that predictions are stored in (draws of all chains × one for classes,
    /// one per output for real targets); empty where there are none.
    ///
    /// # Errors
    /// A run folder that cannot be read.
    pub(crate) fn noise_variances(&self, draws: u64) -> Result<Vec<f64>, Failure> {
        let total = self.chains() * draws as usize;
        let maps = &self.description.standardisation.targets;
        let spread = self.kind.spread(maps.len());
        // rows that have noise of their own have it in their recorded spread
        let has_scale = self.settings.model.likelihood().has_scale();
        if spread == 0 || !has_scale || self.kind.has_row_noise() {
            return Ok(vec![0.0; total * spread]);
        }
        let squares = |scales: &[f64]| scales.iter().map(|s| s * s).collect::<Vec<f64>>();
        let model = &self.settings.model;
        if model.learns_noise() {
            let scales = self.read_selected("posterior", NOISE, &first(draws))?;
            // one per output was recorded; the outputs of a classification share theirs
            let kept = scales.chunks(maps.len());
            return Ok(kept.flat_map(|all| squares(&all[..spread])).collect());
        }
        let scales = model.noise().typical(maps.len());
        let own: Vec<f64> = scales
            .iter()
            .zip(maps)
            .map(|(s, map)| s * map.scale)
            .collect();
        let own = squares(&own[..spread]);
        Ok(own.iter().copied().cycle().take(total * spread).collect())
    }

    /// The test targets.
    ///
    /// # Errors
    /// A run folder that cannot be read.
    pub(crate) fn truth(&self) -> Result<Targets, Failure> {
        self.targets("predictions_constant_data")
    }

    /// The training and test rows in their own units, read again from where they were, or from the copy that the run keeps of what cannot be
    /// read again.
    ///
    /// # Errors
    /// Data that are gone.
    pub fn split(&self) -> Result<Split, Failure> {
        let mut request = self.settings.data.request();
        request.content = content(&request.source, Some(&self.files))?;
        load(&request).map_err(Failure::request)
    }

    /// The targets in a group.
    ///
    /// # Errors
    /// A run folder that cannot be read.
    pub(crate) fn targets(&self, group: &str) -> Result<Targets, Failure> {
        let names = self.description.output_names.clone();
        let values = self.read_selected(group, "y", &Selection::all())?;
        Ok(match self.description.is_classification {
            true => Targets::Classes {
                labels: values.into_iter().map(|label| label as u32).collect(),
                names,
            },
            false => Targets::Real { values, names },
        })
    }
}

/// Draws of each chain whose predictions for all test rows can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spacing {
    pub draws: u64,
    /// Every how many draws they are.
    every: u64,
}

impl Spacing {
    /// Of numbers of every draw, chain after chain, so many each, those of the recorded draws.
    fn pick(self, all: &[f64], draws: u64, of_each: usize) -> Vec<f64> {
        let of_chain = draws as usize * of_each;
        if of_chain == 0 {
            return Vec::new();
        }
        let of_draw = |chain: &'_ [f64], index: u64| {
            let start = (index * self.every) as usize * of_each;
            chain[start..start + of_each].to_vec()
        };
        all.chunks_exact(of_chain)
            .flat_map(|chain| (0..self.draws).flat_map(move |index| of_draw(chain, index)))
            .collect()
    }
}
