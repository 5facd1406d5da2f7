//! Predictions for new inputs from the kept positions of a minibatch method.

use std::collections::BTreeMap;

use reprior_io::run::{Number, Selection};

use crate::failure::Failure;
use crate::method::{Predict, Predictions};
use crate::predictive::{PredictionKind, PredictiveDraws};
use crate::problem::Problem;
use crate::read::Recorded;
use crate::record::{BATCH_NORM, NOISE, POSITION, POSITIONS};
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

/// What kept positions have beside them, of each chain and draw.
pub struct BesidePositions {
    /// Means and variances of batch normalisation; none where they are not trained.
    statistics: BTreeMap<[u64; 2], Vec<f64>>,
    /// σ of every output in the target's own units, where it is learned.
    noise: BTreeMap<[u64; 2], Vec<f64>>,
    /// The same where it is known; zeros where there is none.
    known: Vec<f64>,
    /// Of the targets' standardisation.
    scales: Vec<f64>,
    /// Whether rows have noise of their own, of which that is a factor.
    is_of_rows: bool,
}

impl BesidePositions {
    /// Of a run.
    ///
    /// # Errors
    /// A run that cannot be read.
    pub fn read(run: &Recorded, problem: &Problem) -> Result<Self, Failure> {
        let (model, maps) = (&problem.settings.model, problem.output_maps());
        let likelihood = model.likelihood();
        let known = match likelihood.has_scale() {
            true => model.noise().typical(maps.len()),
            false => vec![0.0; maps.len()],
        };
        let known = known.iter().zip(&maps).map(|(s, map)| s * map.scale);
        Ok(Self {
            statistics: variable(run, BATCH_NORM)?,
            noise: variable(run, NOISE)?,
            is_of_rows: likelihood.has_row_noise(),
            known: known.collect(),
            scales: maps.iter().map(|map| map.scale).collect(),
        })
    }

    /// Of one position.
    pub fn statistics(&self, chain: u64, draw: u64) -> &[f64] {
        let own = self.statistics.get(&[chain, draw]);
        own.map_or(&[], Vec::as_slice)
    }

    /// Squares of the first so many σ of one position; zeros where rows have their own.
    pub fn noise_variances(
        &self,
        chain: u64,
        draw: u64,
        count: usize,
    ) -> impl Iterator<Item = f64> {
        let own = self.noise.get(&[chain, draw]).unwrap_or(&self.known);
        let factor = if self.is_of_rows { 0.0 } else { 1.0 };
        own.iter().take(count).map(move |s| factor * s * s)
    }

    /// σ of one position in units of the standardised targets.
    fn standardised_noise(&self, chain: u64, draw: u64) -> Vec<f64> {
        let own = self.noise.get(&[chain, draw]).unwrap_or(&self.known);
        own.iter()
            .zip(&self.scales)
            .map(|(s, map)| s / map)
            .collect()
    }
}

/// A variable of the group of positions; nothing where there is none.
fn variable(run: &Recorded, name: &str) -> Result<BTreeMap<[u64; 2], Vec<f64>>, Failure> {
    let mut all = BTreeMap::new();
    let variables = run.reader.variables(POSITIONS).map_err(Failure::request)?;
    if variables.iter().any(|variable| variable.name == name) {
        let add = |chain: u64, draw: u64, own: &[f64]| {
            all.insert([chain, draw], own.to_vec());
        };
        let read = run
            .reader
            .for_each_draw::<f64>(POSITIONS, name, &Selection::all(), add);
        read.map_err(Failure::request)?;
    }
    Ok(all)
}

impl<R: Stored + Number> Predict for DrawsPredictor<'_, R> {
    /// Variances are those of the noise where rows have their own, otherwise zero: a draw determines the function.
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
        let spread = kind.spread(maps.len());
        let (mut draws, mut noise) = (0, Vec::new());
        let modes = &self.modes;
        let beside = BesidePositions::read(self.run, problem)?;
        let predicting = self.run.predicting_positions(self.every)?;
        let add = |chain: u64, draw: u64, position: &[R]| {
            if !predicting.has(chain, draw) {
                return;
            }
            draws += 1;
            ensemble.set_statistics(beside.statistics(chain, draw));
            noise.extend(beside.noise_variances(chain, draw, spread));
            let scales = beside.standardised_noise(chain, draw);
            let mode = modes
                .chunks_exact(position.len().max(1))
                .nth(chain as usize);
            let outputs = match mode {
                Some(mode) => ensemble.linearised(mode, position),
                None => ensemble.outputs(position),
            };
            for row in outputs.chunks_exact(problem.architecture.outputs) {
                let outputs: Vec<f64> = row.iter().map(|f| f.to_f64()).collect();
                let of_row = [&outputs[..], &scales];
                PredictionKind::push_row_noise(&*likelihood, &maps, of_row, &mut block.variance);
                kind.push_mean(&*likelihood, &maps, outputs.into_iter(), &mut block.mean);
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
        for sigma in &mut block.variance {
            *sigma *= *sigma;
        }
        // otherwise a draw determines the function
        block.variance.resize(draws * block.rows * spread, 0.0);
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
