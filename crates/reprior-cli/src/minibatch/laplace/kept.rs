//! A chain's Laplace approximation in the run folder, and predictions for new inputs with it.

use std::path::Path;

use reprior::laplace::{Array, Arrays, KeptFit, Laplace, SubsetChoice};
use reprior::stochastic::{Layout, Parameters};
use reprior_io::run::{RunFolder, Tensor, laplace};

use super::{LaplaceSettings, Predictor};
use crate::error::Failure;
use crate::minibatch::predict::noise;
use crate::minibatch::run::network;
use crate::names::{Precision, StructureName};
use crate::predictive::Block;
use crate::problem::Problem;
use crate::stored::Stored;

/// What names of tensors begin with: those in the precision of the weights, and those in double precision.
const PREFIXES: [&str; 2] = ["weights.", "double."];

/// Writes a chain's approximation.
///
/// # Errors
/// A disk that cannot be written to.
pub fn save<R: Stored>(folder: &RunFolder, chain: u64, fitted: &Laplace<R>) -> Result<(), Failure> {
    let (about, arrays) = fitted.keep();
    let document = serde_json::to_value(about).map_err(Failure::run)?;
    let named = arrays.iter().map(|(name, array)| match array {
        Array::Weights(own) => (PREFIXES[0].to_owned() + name, [own.len()], R::values(own)),
        Array::Double(own) => (PREFIXES[1].to_owned() + name, [own.len()], f64::values(own)),
    });
    let named: Vec<_> = named.collect();
    let tensors = named.iter().map(|(name, shape, values)| Tensor {
        name,
        shape,
        values: *values,
    });
    let tensors: Vec<_> = tensors.collect();
    laplace::save(folder, chain, &document, &tensors).map_err(Failure::run)
}

/// Reads a chain's approximation.
///
/// # Errors
/// A file that is not there, is damaged or is of another network.
fn load<R: Stored>(run: &Path, layout: &Layout, chain: u64) -> Result<Laplace<R>, Failure> {
    let wrong = |reason: String| {
        Failure::request(format!(
            "the Laplace approximation of chain {chain}, which predictions are made with, cannot be used: {reason}. Make it again with `reprior sample --config {} --out NEW`",
            run.join("config.toml").display()
        ))
    };
    let path = laplace::path(run, chain);
    let file = laplace::load(run, chain).map_err(|error| wrong(error.to_string()))?;
    let file = file.ok_or_else(|| {
        wrong(format!(
            "`{}` is not there (the run was interrupted before its end, then `reprior resume {}` writes it; or an earlier version made it)",
            path.display(),
            run.display()
        ))
    })?;
    let about: KeptFit = serde_json::from_value(file.document().clone())
        .map_err(|error| wrong(format!("`{}`: {error}", path.display())))?;
    let mut arrays = Arrays::default();
    for (name, shape) in file.tensors() {
        let read = |error: reprior_io::run::RunError| wrong(error.to_string());
        if let Some(own) = name.strip_prefix(PREFIXES[0]) {
            let values = R::tensor(&file, name, shape).map_err(read)?;
            arrays.weights.insert(own.to_owned(), values);
        } else if let Some(own) = name.strip_prefix(PREFIXES[1]) {
            let values = file.f64(name, shape).map_err(read)?;
            arrays.double.insert(own.to_owned(), values);
        }
    }
    Laplace::load(layout, about, arrays)
        .map_err(|error| wrong(format!("`{}`: {error}", path.display())))
}

/// What a part of new inputs (row-major) gives: a component for each chain, and squared noise scales.
pub type Predict = Box<dyn FnMut(&[f64]) -> Result<(Block, Vec<f64>), Failure>>;

/// Predictions in closed form of all chains of a run, mixed; none of runs whose predictions have none.
///
/// # Errors
/// An approximation that cannot be read.
pub fn closed_form(problem: &Problem, run: &Path) -> Result<Option<Predict>, Failure> {
    let settings = &problem.settings;
    let method = settings.sampler.method.minibatch();
    if !method.is_some_and(|method| settings.laplace.is_linearised(method)) {
        return Ok(None);
    }
    match settings.sampler.precision {
        Precision::Auto | Precision::F32 => closed_form_in::<f32>(problem, run),
        Precision::F64 => closed_form_in::<f64>(problem, run),
    }
}

fn closed_form_in<R: Stored>(problem: &Problem, run: &Path) -> Result<Option<Predict>, Failure> {
    let Some(mut predictor) = Predictor::<R>::new(problem)? else {
        return Ok(None);
    };
    let layout = Layout::new(&network(problem)?);
    let chains = problem.settings.schedule().chains;
    let fits = (0..chains).map(|chain| load::<R>(run, &layout, chain as u64));
    let fits: Vec<_> = fits.collect::<Result<_, _>>()?;
    let (kind, columns) = (predictor.kind(), problem.description.columns);
    let outputs = problem.description.output_names.len();
    let noise = noise(problem, &problem.settings.model, kind.spread(outputs)).repeat(chains);
    Ok(Some(Box::new(move |inputs| {
        let inputs: Vec<R> = inputs.iter().map(|&x| R::from_f64(x)).collect();
        let mut block = Block {
            kind,
            rows: inputs.len() / columns,
            outputs,
            mean: Vec::new(),
            variance: Vec::new(),
        };
        for (chain, fit) in fits.iter().enumerate() {
            let to = [&mut block.mean, &mut block.variance];
            predictor.predict(fit, chain as u64, &inputs, to)?;
        }
        Ok((block, noise.clone()))
    })))
}

impl LaplaceSettings {
    /// The most bytes of a chain's approximation in the run folder, of a network of such layers with numbers of `real` bytes, for
    /// so many rows of the curvature and outputs.
    pub fn kept_bytes(&self, layout: &Layout, real: usize, [rows, outputs]: [usize; 2]) -> u64 {
        let size = layout.len();
        let last = layout.layers.len().saturating_sub(1);
        let subset = self.subset_of_weights.map_or(SubsetChoice::All, |s| s.0);
        let (random, layers) = match subset {
            SubsetChoice::All => (size, &layout.layers[..]),
            SubsetChoice::LastLayer => (layout.layers[last].range.len(), &layout.layers[last..]),
            SubsetChoice::Last(n)
            | SubsetChoice::LargestMagnitude(n)
            | SubsetChoice::LargestVariance(n) => (n.min(size), &layout.layers[..]),
        };
        let pairs = |count: usize| count * (random * real + 8);
        let curvature = match self.hessian_structure.unwrap_or_default() {
            StructureName::Diag => 8 * random,
            StructureName::Full => pairs(random.min(rows * outputs)),
            StructureName::LowRank => pairs(self.rank.unwrap_or(100).min(random)),
            StructureName::Kron | StructureName::KronSeparate => {
                let factors = |layer: &Parameters| {
                    let [a, b] = [layer.rows, layer.units];
                    // what has no factors keeps its diagonal
                    ((a * a + b * b) * real + 8 * (a + b)).max(8 * layer.range.len())
                };
                layers.iter().map(factors).sum()
            }
        };
        // the weights, precisions, places and what says so
        (curvature + size * real + 8 * random + 12 * random * usize::from(random < size) + 4096)
            as u64
    }
}
