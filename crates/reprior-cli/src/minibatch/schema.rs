//! What the run folder of a minibatch method holds.

use reprior::stochastic::Layout;
use reprior_io::run::{DataType, Draws, Group, Schema, Variable};

use super::laplace::has_closed_form;
use super::mode::{CLOSED_FORM, MODES};
use super::resolve::Resolved;
use crate::keeping::Keeping;
use crate::names::Parametrisation;
use crate::predictive::Kind;
use crate::problem::Problem;
use crate::schema::{
    MOMENTS, POSITION, POSITIONS, WEIGHTS, attributes, outputs, predictions, targets, traces,
    variable, with_names,
};

/// The group with a record of every epoch, along the dimension `draw`.
pub const EPOCHS: &str = "epochs";
/// The group with predictions at the running mean of draws.
pub const OF_MEAN: &str = "predictions_of_mean";

/// Of the updates since the previous record.
fn tally() -> Vec<Variable> {
    let f = |name, text| variable(name, DataType::F64, &[], text);
    vec![
        f(
            "train_nll",
            "mean over updates of -log p of a minibatch's rows (targets standardised, every constant included), at the position before the update",
        ),
        f("step_size", "step size of the last update"),
        f(
            "configurational_temperature",
            "mean over updates of N <theta - prior mean, gradient> / D: 1 if positions are the posterior's",
        ),
        f(
            "kinetic_temperature",
            "mean over updates of the momentum's temperature, where there is one: 1 as the step size becomes small",
        ),
    ]
}

fn corrections() -> Variable {
    variable(
        "n_corrections",
        DataType::I64,
        &[],
        "numbers that the preconditioner had to correct, and factorisations that needed jitter",
    )
}

/// Predictions of the linearised network in closed form, where there are any.
fn closed_form(problem: &Problem, chains: u64) -> Option<Vec<Variable>> {
    let test = problem.description.test_rows as u64;
    let kind = Kind::new(
        &problem.settings.model,
        problem.description.is_classification,
    );
    if test == 0 || !has_closed_form(kind) {
        return None;
    }
    let dims = [("mode_chain", chains), ("test_row", test), outputs(problem)];
    let text = "means in the target's own units, or logarithms of class probabilities, of the linearised network";
    let mut variables = vec![variable(kind.variable(), DataType::F64, &dims, text)];
    if kind != Kind::Probabilities {
        let text = "variances of the function, without noise";
        variables.push(variable("variance", DataType::F64, &dims, text));
    }
    Some(variables)
}

/// The schema of a run.
pub fn schema(
    problem: &Problem,
    resolved: &Resolved,
    layout: &Layout,
    keeping: Keeping,
    data_type: DataType,
) -> Schema {
    let settings = &problem.settings;
    let lengths = resolved.plan.schedule;
    let chains = lengths.chains as u64;
    let parameters = layout.len() as u64;
    let projections = settings.record.projections as u64;
    let group = |name: &str, draws: Option<Draws>, variables: Vec<Variable>| Group {
        name: name.to_owned(),
        draws,
        variables,
        attributes: attributes(settings),
    };
    let mut posterior = vec![variable(
        "weight_mean_square",
        DataType::F64,
        &[("layer", layout.layers.len() as u64)],
        "mean square of each layer's weights and biases",
    )];
    if projections > 0 {
        posterior.push(variable(
            "projection",
            DataType::F64,
            &[("direction", projections)],
            "random projections of all weights",
        ));
    }
    let draws = Some(Draws::new(lengths.draws));
    let mut statistics = tally();
    statistics.push(corrections());
    let mut groups = vec![
        group("posterior", draws, posterior),
        group("sample_stats", draws, statistics),
    ];
    if resolved.epochs > 0 {
        let mut variables = tally();
        variables.push(variable(
            "validation_nll",
            DataType::F64,
            &[],
            "mean of -log p of the rows that are held out; NaN without any",
        ));
        variables.push(corrections());
        groups.push(group(EPOCHS, Some(Draws::new(resolved.epochs)), variables));
    }
    let text = [
        "prediction of this draw (logarithms of class probabilities, or in the target's own units)",
        "zero: a draw determines the function",
    ];
    let recorded = Draws {
        length: keeping.predictions(lengths.draws),
        spacing: keeping.predictions_every,
    };
    groups.extend(predictions(problem, recorded, text));
    groups.extend(traces(problem, lengths.draws));
    let spaced = |length: u64, spacing: u64| Some(Draws { length, spacing });
    let every = keeping.positions_every;
    groups.push(group(
        POSITIONS,
        spaced(keeping.positions(lengths.draws), every),
        vec![variable(
            POSITION,
            data_type,
            &[("coordinate", parameters)],
            "all weights, unit by unit and layer by layer, a unit's bias after its weights",
        )],
    ));
    if let Some(every) = keeping.weights_every {
        let text = match settings.minibatch.parametrisation() {
            Parametrisation::Ntk => "N(0, 1) a priori (NTK parametrisation)",
            Parametrisation::Standard => "in the standard parametrisation",
        };
        let mut variables = Vec::new();
        let last = layout.layers.len() - 1;
        let readout = problem.architecture.to_composition().layers.len();
        for (index, layer) in layout.layers.iter().enumerate() {
            let name = if index == last {
                readout.to_string()
            } else {
                layer.name.clone()
            };
            let (out, into) = (format!("{name}_out"), format!("{name}_in"));
            let dims = [
                (out.as_str(), layer.units as u64),
                (into.as_str(), layer.fan_in() as u64),
            ];
            let weights = format!("weights, {text}");
            variables.push(variable(
                &format!("{name}.weight"),
                data_type,
                &dims,
                &weights,
            ));
            if layer.has_bias {
                let biases = format!("biases, {text}");
                variables.push(variable(
                    &format!("{name}.bias"),
                    data_type,
                    &dims[..1],
                    &biases,
                ));
            }
        }
        let draws = spaced(lengths.draws.div_ceil(every), every);
        groups.push(group(WEIGHTS, draws, variables));
    }
    groups.extend(targets(problem));
    let of_chains =
        [("mean", "running mean"), ("variance", "running variance")].map(|(name, text)| {
            let dims = [("moment_chain", chains), ("parameter", parameters)];
            variable(name, DataType::F32, &dims, text)
        });
    groups.push(group(MOMENTS, None, of_chains.to_vec()));
    let is_linearised = settings.laplace.is_linearised(resolved.method);
    if is_linearised {
        let dims = [("mode_chain", chains), ("coordinate", parameters)];
        let text = "weights that the network was linearised at";
        let weights = variable("weights", data_type, &dims, text);
        groups.push(group(MODES, None, vec![weights]));
    }
    if resolved.method.is_around_mode() {
        groups.extend(
            closed_form(problem, chains)
                .filter(|_| is_linearised)
                .map(|own| group(CLOSED_FORM, None, own)),
        );
    } else if problem.description.test_rows > 0 {
        let test = problem.description.test_rows as u64;
        let dims = [("mean_chain", chains), ("test_row", test), outputs(problem)];
        let text = "prediction of the running mean of this chain's draws";
        let kind = Kind::new(&settings.model, problem.description.is_classification);
        groups.push(group(
            OF_MEAN,
            None,
            vec![variable(kind.variable(), DataType::F64, &dims, text)],
        ));
    }
    with_names(problem, chains, groups)
}
