//! A chain's Laplace approximation in the run folder, and predictions for new inputs with it.

use reprior::laplace::Laplace;
use reprior::laplace::structure::{KeptArray, KeptArrays, KeptFit};
use reprior::laplace::subset::SubsetChoice;
use reprior::network::parameters::{ParameterLayout, ParameterMatrix};
use reprior_io::run::{Files, Number, RunError, RunFolder, Tensor, laplace};

use super::closed_form::{FitPredictor, rows_together};
use crate::failure::{Failure, name_of};
use crate::method::minibatch::{self, network};
use crate::method::{Predict, Predictions};
use crate::predictive::PredictiveDraws;
use crate::problem::Problem;
use crate::settings::{LaplaceSettings, StructureName};
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
        KeptArray::Weights(own) => (PREFIXES[0].to_owned() + name, [own.len()], R::values(own)),
        KeptArray::Double(own) => (PREFIXES[1].to_owned() + name, [own.len()], f64::values(own)),
    });
    let named: Vec<_> = named.collect();
    let tensors = named.iter().map(|(name, shape, values)| Tensor {
        name,
        shape,
        values: *values,
    });
    let tensors: Vec<_> = tensors.collect();
    laplace::save(folder.files(), chain, &document, &tensors).map_err(Failure::run)
}

/// Reads a chain's approximation.
///
/// # Errors
/// A file that is not there, is damaged or is of another network.
fn load<R: Stored>(
    files: &Files,
    layout: &ParameterLayout,
    chain: u64,
) -> Result<Laplace<R>, Failure> {
    let wrong = |reason: String| {
        Failure::request(format!(
            "the Laplace approximation of chain {chain}, which predictions are made with, cannot be used: {reason}. Make it again with `reprior sample --config {}/config.toml --out NEW`",
            name_of(files)
        ))
    };
    let path = format!("{}/{}", name_of(files), laplace::name(chain));
    let file = laplace::load(files, chain).map_err(|error| wrong(error.to_string()))?;
    let file = file.ok_or_else(|| {
        wrong(format!(
            "`{}` is not there (the run was interrupted before its end, then `reprior resume {}` writes it; or an earlier version made it)",
            path,
            name_of(files)
        ))
    })?;
    let about: KeptFit = file
        .document_as()
        .map_err(|error| wrong(error.to_string()))?;
    let mut arrays = KeptArrays::default();
    for (name, shape) in file.tensors() {
        let read = |error: RunError| wrong(error.to_string());
        if let Some(own) = name.strip_prefix(PREFIXES[0]) {
            let values = R::tensor(&file, name, shape).map_err(read)?;
            arrays.weights.insert(own.to_owned(), values);
        } else if let Some(own) = name.strip_prefix(PREFIXES[1]) {
            let values = file.f64(name, shape).map_err(read)?;
            arrays.double.insert(own.to_owned(), values);
        }
    }
    Laplace::load(layout, about, arrays).map_err(|error| wrong(format!("`{}`: {error}", path)))
}

/// Predicts in closed form of the linearised networks of all chains, mixed.
pub struct ClosedForm<'a, R> {
    predictor: FitPredictor<R>,
    fits: Vec<Laplace<R>>,
    /// Statistics of batch normalisation and σ: those of a chain are the same for all of its draws.
    beside: minibatch::BesidePositions,
    problem: &'a Problem,
    /// What draws predict, whose spread scores of uncertainty are of.
    draws: minibatch::DrawsPredictor<'a, R>,
}

impl<'a, R: Stored + Number> ClosedForm<'a, R> {
    /// Of a run; none where its predictions have no closed form, and `draws` predict.
    ///
    /// # Errors
    /// An approximation that cannot be read.
    pub fn of(
        problem: &'a Problem,
        draws: minibatch::DrawsPredictor<'a, R>,
    ) -> Result<Box<dyn Predict + 'a>, Failure> {
        let Some(predictor) = FitPredictor::<R>::new(problem)? else {
            return Ok(Box::new(draws));
        };
        let layout = ParameterLayout::new(&network(problem)?);
        let chains = problem.settings.schedule().chains as u64;
        let files = &draws.run.files;
        let fits = (0..chains).map(|chain| load::<R>(files, &layout, chain));
        Ok(Box::new(Self {
            predictor,
            fits: fits.collect::<Result<_, _>>()?,
            beside: minibatch::BesidePositions::read(draws.run, problem)?,
            problem,
            draws,
        }))
    }
}

impl<R: Stored + Number> Predict for ClosedForm<'_, R> {
    fn predict(&mut self, inputs: &[f64]) -> Result<Predictions, Failure> {
        let (kind, description) = (self.predictor.kind(), &self.problem.description);
        let outputs = description.output_names.len();
        let real: Vec<R> = inputs.iter().map(|&x| R::from_f64(x)).collect();
        let mut block = PredictiveDraws {
            kind,
            rows: inputs.len() / description.columns,
            outputs,
            mean: Vec::new(),
            variance: Vec::new(),
        };
        let (spread, mut noise) = (kind.spread(outputs), Vec::new());
        let numbers = self.problem.settings.chain_numbers().into_iter();
        for ((chain, number), fit) in (0..).zip(numbers).zip(&self.fits) {
            self.predictor
                .set_statistics(self.beside.statistics(chain, 0));
            noise.extend(self.beside.noise_variances(chain, 0, spread));
            let to = [&mut block.mean, &mut block.variance];
            self.predictor.predict(fit, number as u64, &real, to)?;
        }
        Ok(Predictions {
            block,
            noise,
            clamped: 0,
        })
    }

    fn by_draws(&mut self, inputs: &[f64]) -> Result<Option<Predictions>, Failure> {
        self.draws.predict(inputs).map(Some)
    }

    fn use_every(&mut self, every: u64) {
        self.draws.use_every(every);
    }

    fn rows_together(&self) -> usize {
        rows_together(self.problem.architecture.outputs)
    }
}

impl LaplaceSettings {
    /// The most bytes of a chain's approximation in the run folder, of a network of such layers with numbers of `real` bytes, for
    /// so many rows of the curvature and outputs.
    pub fn kept_bytes(
        &self,
        layout: &ParameterLayout,
        real: usize,
        [rows, outputs]: [usize; 2],
    ) -> u64 {
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
                let factors = |layer: &ParameterMatrix| {
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
