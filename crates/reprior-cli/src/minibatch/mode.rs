//! What a run of a Laplace approximation keeps besides draws: predictions in closed form, and how the fit went.

use std::path::Path;

use reprior::laplace::LaplaceFit;
use reprior_io::regular;
use reprior_io::run::{DrawStore, RunFolder, Values};
use serde::{Deserialize, Serialize};

use super::laplace::{Predictor, save};
use super::run::Chains;
use crate::error::Failure;
use crate::predictive::Kind;
use crate::problem::Problem;
use crate::stored::Stored;

/// The group with the linearised network's predictions in closed form.
pub const CLOSED_FORM: &str = "predictions_closed_form";
/// The group with the weights that the network was linearised at.
pub const MODES: &str = "modes";
/// The file that says how the fits went.
const FILE: &str = "laplace.json";

/// One chain's fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// log p(y | ŵ) of the training rows.
    pub log_likelihood: f64,
    pub log_marginal_likelihood: f64,
    /// log det(I + P⁻¹G): how much the data say, in nats.
    pub log_determinant_ratio: f64,
    /// What the log-posterior of training can still rise by, as far as the curvature says: ½·gᵀ(G + P)⁻¹g in nats, half the
    /// square of Newton's decrement. Of weights that were given with the prior precision here.
    #[serde(default, deserialize_with = "number")]
    pub nats_to_mode: f64,
    /// What it rose by between the end of training and the weights here, and the gradients of all rows that this took.
    #[serde(default)]
    pub nats_climbed: f64,
    #[serde(default)]
    pub climb_gradients: usize,
    /// Weights that are random.
    pub parameters: usize,
    /// The smallest and the largest prior precision.
    pub prior_precision: [f64; 2],
    /// Of full and lowrank structures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eigenpairs: Option<usize>,
    /// Of lowrank: the eigenvalues that may be other than zero beyond those pairs, their sum, and the most nats that these would
    /// add to `log_determinant_ratio`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// Eigenpairs that were wanted and had not converged.
    #[serde(default)]
    pub unconverged: usize,
    /// Products with the curvature that the decomposition took.
    #[serde(default)]
    pub products: u64,
    /// Layers without Kronecker factors, whose diagonal was taken.
    #[serde(default)]
    pub diagonal_layers: usize,
}

/// What a curvature of low rank has not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    pub directions: usize,
    pub trace: f64,
    pub log_determinant: f64,
}

/// A number, or null where it is not finite.
fn number<'de, D: serde::Deserializer<'de>>(value: D) -> Result<f64, D::Error> {
    Option::<f64>::deserialize(value).map(|value| value.unwrap_or(f64::NAN))
}

/// Writes the fits, and predictions in closed form for the test rows.
///
/// # Errors
/// A fit that fails, or a disk that cannot be written to.
pub fn finish<R: Stored>(
    problem: &Problem,
    chains: &mut Chains<R>,
    folder: &RunFolder,
    store: &DrawStore,
) -> Result<(), Failure> {
    let settings = &problem.settings.laplace;
    let Some(method) = problem.settings.sampler.method.minibatch() else {
        return Ok(());
    };
    let is_linearised = settings.is_linearised(method);
    let mut predictor = Predictor::<R>::new(problem)?;
    let (mut means, mut variances) = (Vec::new(), Vec::new());
    let (mut modes, mut fits) = (Vec::<R>::new(), Vec::new());
    for (index, (chain, recording)) in chains.iter_mut().enumerate() {
        let found = chain.laplace().map_err(Failure::run)?;
        let Some((around, mode)) = found else {
            continue;
        };
        let Some(fit) = fit(around, &mode)? else {
            continue;
        };
        fits.push(fit);
        if is_linearised {
            let fitted = around.fit(&mode).map_err(Failure::run)?;
            if let (Some(predictor), Some(fitted)) = (&mut predictor, fitted) {
                save(folder, index as u64, fitted)?;
                let inputs = recording.test_inputs().unwrap_or_default();
                predictor.predict(fitted, index as u64, inputs, [&mut means, &mut variances])?;
            }
            modes.extend_from_slice(&mode);
        }
    }
    if fits.is_empty() {
        return Ok(());
    }
    let write = |group: &str, name: &str, values: Values<'_>| {
        store
            .write_static(group, name, values)
            .map_err(Failure::run)
    };
    if !modes.is_empty() {
        write(MODES, "weights", R::values(&modes))?;
    }
    if !means.is_empty() {
        let kind = Kind::new(
            &problem.settings.model,
            problem.description.is_classification,
        );
        write(CLOSED_FORM, kind.variable(), Values::F64(&means))?;
    }
    if !variances.is_empty() {
        write(CLOSED_FORM, "variance", Values::F64(&variances))?;
    }
    let text = serde_json::to_string_pretty(&fits).map_err(Failure::run)?;
    folder.write_text(FILE, &text).map_err(Failure::run)
}

/// The fits of a run; none where there is no file.
pub fn read(run: &Path) -> Vec<Fit> {
    let text = regular::read_text(&run.join(FILE)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn fit<R: Stored>(around: &mut LaplaceFit<R>, mode: &[R]) -> Result<Option<Fit>, Failure> {
    if around.fit(mode).map_err(Failure::run)?.is_none() {
        return Ok(None);
    }
    let (ascent, nats_to_mode) = (around.ascent(), around.nats_to_mode());
    let Some(laplace) = around.fit(mode).map_err(Failure::run)? else {
        return Ok(None);
    };
    let precisions = laplace.precisions().iter().copied();
    let range = [
        precisions.clone().fold(f64::INFINITY, f64::min),
        precisions.clone().fold(0.0, f64::max),
    ];
    let report = laplace.report();
    Ok(Some(Fit {
        log_likelihood: laplace.log_likelihood(),
        log_marginal_likelihood: laplace.log_marginal_likelihood(),
        log_determinant_ratio: laplace.log_determinant_ratio(),
        nats_to_mode,
        nats_climbed: ascent.rise,
        climb_gradients: ascent.evaluations,
        left_out: laplace.left_out().map(|left| LeftOut {
            directions: left.directions,
            trace: left.trace,
            log_determinant: left.log_determinant,
        }),
        parameters: laplace.precisions().len(),
        prior_precision: range,
        eigenpairs: report.eigenpairs,
        unconverged: report.unconverged,
        products: report.products,
        diagonal_layers: report.diagonal_layers,
    }))
}
