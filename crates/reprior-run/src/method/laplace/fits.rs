//! What a run of a Laplace approximation keeps besides draws: predictions in closed form, and how the fit went.

use reprior::laplace;
use reprior_io::run::{DrawStore, Files, RunFolder, Values};

use super::closed_form::FitPredictor;
use super::kept::save;
use crate::failure::Failure;
use crate::method::minibatch::RecordedChains;
use crate::problem::Problem;
use crate::stored::Stored;
use crate::summary::{LaplaceFitSummary, LeftOutSummary};

/// The group with the linearised network's predictions in closed form.
pub const CLOSED_FORM: &str = "predictions_closed_form";
/// The group with the weights that the network was linearised at.
pub const MODES: &str = "modes";
/// The file that says how the fits went.
const FILE: &str = "laplace.json";

/// Writes the fits, and predictions in closed form for the test rows.
///
/// # Errors
/// A fit that fails, or a disk that cannot be written to.
pub fn finish<R: Stored>(
    problem: &Problem,
    is_linearised: bool,
    chains: &mut RecordedChains<R>,
    folder: &RunFolder,
    store: &DrawStore,
) -> Result<(), Failure> {
    let (mut means, mut variances) = (Vec::new(), Vec::new());
    let (mut modes, mut fits) = (Vec::<R>::new(), Vec::new());
    let mut predictor = FitPredictor::<R>::new(problem)?;
    let numbers = problem.settings.chain_numbers();
    for ((index, number), (chain, recorder)) in numbers.into_iter().enumerate().zip(chains) {
        let statistics = chain.updates().state().statistics.clone();
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
                let inputs = recorder.test_inputs().unwrap_or_default();
                predictor.set_statistics(&statistics);
                let to = [&mut means, &mut variances];
                predictor.predict(fitted, number as u64, inputs, to)?;
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
        let kind = problem.kind();
        write(CLOSED_FORM, kind.variable(), Values::F64(&means))?;
    }
    if !variances.is_empty() {
        write(CLOSED_FORM, "variance", Values::F64(&variances))?;
    }
    write_fits(&fits, folder)
}

/// Writes what there is to say of the fit of each chain.
///
/// # Errors
/// A disk that refuses.
pub fn write_fits(fits: &[LaplaceFitSummary], folder: &RunFolder) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(fits).map_err(Failure::run)?;
    folder.write_text(FILE, &text).map_err(Failure::run)
}

/// The fits of a run; none where there is no file.
pub fn read(files: &Files) -> Vec<LaplaceFitSummary> {
    let text = files.read_text(FILE).ok().flatten().unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn fit<R: Stored>(
    around: &mut laplace::fit::LaplaceFit<R>,
    mode: &[R],
) -> Result<Option<LaplaceFitSummary>, Failure> {
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
    Ok(Some(LaplaceFitSummary {
        log_likelihood: laplace.log_likelihood(),
        log_marginal_likelihood: laplace.log_marginal_likelihood(),
        log_determinant_ratio: laplace.log_determinant_ratio(),
        nats_to_mode,
        nats_climbed: ascent.rise,
        climb_gradients: ascent.evaluations,
        left_out: laplace.left_out().map(|left| LeftOutSummary {
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
