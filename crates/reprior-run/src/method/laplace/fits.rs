//! What a run of a Laplace approximation keeps besides draws: predictions in closed form, and how the fit went.

use reprior::chain::AroundMode;
use reprior::laplace::{LayerCurvature, Structure};
use reprior::metrics::Family;
use reprior_io::run::{DrawStore, Files, RunFolder, Values};

use crate::failure::Failure;
use crate::method::minibatch::{Chains, MinibatchRecorder};
use crate::predictive::Kind;
use crate::problem::Problem;
use crate::stored::Stored;
use crate::summary::{LaplaceFit, LeftOut};

/// The group with the linearised network's predictions in closed form.
pub const CLOSED_FORM: &str = "predictions_closed_form";
/// The group with the weights that the network was linearised at.
pub const MODES: &str = "modes";
/// Numbers of covariances that are held at a time.
const COVARIANCES: usize = 1 << 23;
/// The file that says how the fits went.
const FILE: &str = "laplace.json";

/// Whether predictions of such targets have a closed form.
pub fn has_closed_form(kind: Kind) -> bool {
    matches!(kind, Kind::Probabilities | Kind::Real(Family::Gaussian))
}

/// Writes the fits, and predictions in closed form for the test rows.
///
/// # Errors
/// A fit that fails, or a disk that cannot be written to.
pub fn finish<R: Stored>(
    problem: &Problem,
    is_linearised: bool,
    chains: &mut Chains<R>,
    folder: &RunFolder,
    store: &DrawStore,
) -> Result<(), Failure> {
    let (mut means, mut variances) = (Vec::new(), Vec::new());
    let (mut modes, mut fits) = (Vec::<R>::new(), Vec::new());
    for (chain, recorder) in chains.iter_mut() {
        let found = chain.around_mode().map_err(Failure::run)?;
        let Some((around, mode)) = found else {
            continue;
        };
        let Some(fit) = fit(around, &mode)? else {
            continue;
        };
        fits.push(fit);
        if is_linearised {
            predict(problem, around, &mode, recorder, &mut means, &mut variances)?;
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
    let text = serde_json::to_string_pretty(&fits).map_err(Failure::run)?;
    folder.write_text(FILE, &text).map_err(Failure::run)
}

/// The fits of a run; none where there is no file.
pub fn read(files: &Files) -> Vec<LaplaceFit> {
    let text = files.read_text(FILE).ok().flatten().unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn fit<R: Stored>(around: &mut AroundMode<R>, mode: &[R]) -> Result<Option<LaplaceFit>, Failure> {
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
    let (eigenpairs, unconverged, products) = match laplace.structure() {
        Structure::Spectral(found) => (Some(found.values.len()), found.unconverged, found.products),
        _ => (None, 0, 0),
    };
    let is_diagonal = |layer: &&LayerCurvature<R>| matches!(layer, LayerCurvature::Diagonal(_));
    Ok(Some(LaplaceFit {
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
        eigenpairs,
        unconverged,
        products,
        diagonal_layers: match laplace.structure() {
            Structure::Kronecker(layers) => layers.iter().filter(is_diagonal).count(),
            _ => 0,
        },
    }))
}

/// Appends one chain's predictions in closed form, in the target's own units.
fn predict<R: Stored>(
    problem: &Problem,
    around: &mut AroundMode<R>,
    mode: &[R],
    recorder: &MinibatchRecorder<R>,
    means: &mut Vec<f64>,
    variances: &mut Vec<f64>,
) -> Result<(), Failure> {
    let kind = problem.kind();
    let Some(inputs) = recorder.test_inputs().filter(|_| has_closed_form(kind)) else {
        return Ok(());
    };
    let (columns, outputs) = (
        problem.description.columns,
        problem.architecture.outputs.max(1),
    );
    // covariances of some rows at a time
    let rows = (COVARIANCES / (outputs * outputs)).clamp(1, 1024);
    for part in inputs.chunks(rows * columns) {
        predict_some(problem, around, mode, part, means, variances)?;
    }
    Ok(())
}

/// The same for some rows.
fn predict_some<R: Stored>(
    problem: &Problem,
    around: &mut AroundMode<R>,
    mode: &[R],
    inputs: &[R],
    means: &mut Vec<f64>,
    variances: &mut Vec<f64>,
) -> Result<(), Failure> {
    let kind = problem.kind();
    let Some(found) = around.linearised(mode, inputs).map_err(Failure::run)? else {
        return Ok(());
    };
    let count = found.outputs;
    if kind == Kind::Probabilities {
        let link = problem.settings.laplace.link();
        let all = around.log_probabilities(&found, link);
        means.extend(all.map_err(Failure::run)?);
        return Ok(());
    }
    let maps = problem.output_maps();
    for (f, map) in found.means.iter().zip(maps.iter().cycle()) {
        means.push(map.restore(*f));
    }
    for covariance in found.covariances.chunks_exact(count * count) {
        let own = covariance.iter().step_by(count + 1).zip(&maps);
        variances.extend(own.map(|(variance, map)| variance * map.scale * map.scale));
    }
    Ok(())
}
