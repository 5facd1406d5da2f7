//! Predictions for new inputs from the kept positions of a minibatch method.

use std::collections::BTreeMap;

use reprior_io::run::{Number, Selection};

use crate::failure::Failure;
use crate::method::{Predict, Predictions};
use crate::predictive::PredictiveDraws;
use crate::problem::Problem;
use crate::read::Recorded;
use crate::record::{BATCH_NORM, POSITION, POSITIONS};
use crate::settings::ModelSettings;
use crate::stored::Stored;

/// Predicts from kept positions, by the network itself, or linearised at the given weights of each chain.
pub struct DrawsPredictor<'a, R> {
    pub problem: &'a Problem,
    pub run: &'a Recorded,
    /// Where the networks of all chains are linearised; empty where they are not.
    pub modes: Vec<R>,
    /// Every how many kept positions of a chain are used.
    pub every: u64,
}

/// Squared noise scales of one draw, in the target's own units.
pub fn noise(problem: &Problem, settings: &ModelSettings, spread: usize) -> Vec<f64> {
    let maps = problem.output_maps();
    if !settings.likelihood().has_scale() {
        return vec![0.0; spread];
    }
    let scales = settings.noise().typical(maps.len());
    let own = scales.iter().zip(&maps);
    own.map(|(scale, map)| (map.scale * scale).powi(2))
        .take(spread)
        .collect()
}

/// Means and variances of batch normalisation of each chain and kept position; none where they are not trained.
///
/// # Errors
/// A run that cannot be read.
pub fn statistics(run: &Recorded) -> Result<BTreeMap<[u64; 2], Vec<f64>>, Failure> {
    let mut all = BTreeMap::new();
    let variables = run.reader.variables(POSITIONS).map_err(Failure::request)?;
    if variables.iter().any(|variable| variable.name == BATCH_NORM) {
        let add = |chain: u64, draw: u64, own: &[f64]| {
            all.insert([chain, draw], own.to_vec());
        };
        let read = run
            .reader
            .for_each_draw::<f64>(POSITIONS, BATCH_NORM, &Selection::all(), add);
        read.map_err(Failure::request)?;
    }
    Ok(all)
}

impl<R: Stored + Number> Predict for DrawsPredictor<'_, R> {
    /// Variances are zero: a draw determines the function.
    fn predict(&mut self, inputs: &[f64]) -> Result<Predictions, Failure> {
        let problem = self.problem;
        let (kind, maps) = (problem.kind(), problem.output_maps());
        let mut ensemble = problem.ensemble::<R>(inputs)?;
        let likelihood = problem.likelihood()?;
        let mut block = PredictiveDraws {
            kind,
            rows: inputs.len() / problem.description.columns,
            outputs: problem.description.output_names.len(),
            mean: Vec::new(),
            variance: Vec::new(),
        };
        let mut draws = 0;
        let modes = &self.modes;
        let statistics = statistics(self.run)?;
        let predicting = self.run.predicting_positions(self.every)?;
        let add = |chain: u64, draw: u64, position: &[R]| {
            if !predicting.has(chain, draw) {
                return;
            }
            draws += 1;
            if let Some(own) = statistics.get(&[chain, draw]) {
                ensemble.set_statistics(own);
            }
            let mode = modes
                .chunks_exact(position.len().max(1))
                .nth(chain as usize);
            let outputs = match mode {
                Some(mode) => ensemble.linearised(mode, position),
                None => ensemble.outputs(position),
            };
            for row in outputs.chunks_exact(maps.len()) {
                let outputs = row.iter().map(|f| f.to_f64());
                kind.push_mean(&*likelihood, &maps, outputs, &mut block.mean);
            }
        };
        let reader = &self.run.reader;
        reader
            .for_each_draw::<R>(POSITIONS, POSITION, &Selection::all(), add)
            .map_err(Failure::request)?;
        if draws == 0 {
            return Err(Failure::request(
                "the run has no draws yet: go on with `reprior resume`",
            ));
        }
        let spread = kind.spread(maps.len());
        block.variance = vec![0.0; draws * block.rows * spread];
        let noise = noise(problem, &problem.settings.model, spread).repeat(draws);
        Ok(Predictions {
            block,
            noise,
            clamped: 0,
        })
    }

    fn use_every(&mut self, every: u64) {
        self.every = every;
    }
}
