//! Predictions for new inputs from the kept positions of a minibatch method.

use reprior_io::run::{DrawReader, Number, Selection};

use super::mode::MODES;
use crate::error::Failure;
use crate::model_settings::ModelSettings;
use crate::predictive::{Block, Kind};
use crate::problem::Problem;
use crate::schema::{POSITION, POSITIONS};
use crate::stored::Stored;

/// Squared noise scales of one draw, in the target's own units.
pub fn noise(problem: &Problem, settings: &ModelSettings, spread: usize) -> Vec<f64> {
    let maps = problem.output_maps();
    if !settings.likelihood.has_scale() {
        return vec![0.0; spread];
    }
    let scales = settings.noise().typical(maps.len());
    let own = scales.iter().zip(&maps);
    own.map(|(scale, map)| (map.scale * scale).powi(2))
        .take(spread)
        .collect()
}

/// Means and variances (zero: a draw determines the function) in the target's own units, and squared noise scales, for every
/// kept position.
///
/// # Errors
/// A run without draws, or that cannot be read.
pub fn predict<R: Stored + Number>(
    problem: &Problem,
    reader: &DrawReader,
    inputs: &[f64],
) -> Result<(Block, Vec<f64>), Failure> {
    let settings = &problem.settings.model;
    let kind = Kind::new(settings, problem.description.is_classification);
    let mut ensemble = problem.ensemble::<R>(inputs)?;
    let (likelihood, maps) = (problem.likelihood()?, problem.output_maps());
    let mut block = Block {
        kind,
        rows: inputs.len() / problem.description.columns,
        outputs: problem.description.output_names.len(),
        mean: Vec::new(),
        variance: Vec::new(),
    };
    let method = problem.settings.sampler.method.minibatch();
    let laplace = &problem.settings.laplace;
    let modes = if method.is_some_and(|method| laplace.is_linearised(method)) {
        let found = reader.read::<R>(MODES, "weights", &Selection::all());
        let found = found.map_err(|_| {
            Failure::request("the run has not ended yet: go on with `reprior resume`")
        })?;
        found.values
    } else {
        Vec::new()
    };
    let mut draws = 0;
    let add = |chain: u64, _: u64, position: &[R]| {
        draws += 1;
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
    let noise = noise(problem, settings, spread).repeat(draws);
    Ok((block, noise))
}
