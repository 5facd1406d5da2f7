//! What minibatch methods record.

use reprior::network::parameters::ParameterLayout;
use reprior_io::run::{DataType, Draws, Group, Schema, Variable};

use super::resolve::Resolved;
use crate::problem::Problem;
use crate::record::{self, BATCH_NORM, LayerTensors, SchemaContents, group, outputs, variable};
use crate::settings::Parametrisation;

/// The group with a record of every epoch, along the dimension `draw`.
pub const EPOCHS: &str = "epochs";
/// The group with predictions at the running mean of draws.
pub const OF_MEAN: &str = "predictions_of_mean";

record::statistics!(
    /// Of the updates since the previous record.
    OfUpdates {
        train_nll: f64 = "mean over updates of -log p of a minibatch's rows (targets standardised, every constant included), at the position before the update",
        step_size: f64 = "step size of the last update",
        configurational_temperature: f64 = "mean over updates of N <theta - prior mean, gradient> / D: 1 if positions are the posterior's",
        kinetic_temperature: f64 = "mean over updates of the momentum's temperature, where there is one: 1 as the step size becomes small",
    }
);

record::statistics!(
    /// Of the rows that are held out.
    Validation {
        validation_nll: f64 = "mean of -log p of the rows that are held out; NaN without any",
    }
);

record::statistics!(
    /// Of the updates since the previous record.
    Corrections {
        n_corrections: i64 = "numbers that the preconditioner had to correct, and factorisations that needed jitter",
    }
);

/// The network's layers with parameters.
pub fn tensors(problem: &Problem, layout: &ParameterLayout) -> Vec<LayerTensors> {
    record::tensors(layout, problem.architecture.layers.len())
}

/// The group of predictions at the running means of draws, if there are test rows.
pub fn of_mean(problem: &Problem) -> Option<Group> {
    let test = problem.description.test_rows as u64;
    let chains = problem.settings.schedule().chains as u64;
    let dims = [("mean_chain", chains), ("test_row", test), outputs(problem)];
    let text = "prediction of the running mean of this chain's draws";
    let variables = vec![variable(
        problem.kind().variable(),
        DataType::F64,
        &dims,
        text,
    )];
    (test > 0).then(|| group(&problem.settings, OF_MEAN, None, variables))
}

/// Means and variances of batch normalisation, where they are trained.
fn batch_norm(problem: &Problem, resolved: &Resolved) -> Vec<Variable> {
    let count = match resolved.trains_statistics() {
        true => problem.architecture.statistics().len() as u64,
        false => 0,
    };
    let text = "of each batch normalisation, in the order of the network, the means of all channels and then their variances";
    let dims = [("statistic", count)];
    let own = variable(BATCH_NORM, DataType::F64, &dims, text);
    (count > 0).then_some(own).into_iter().collect()
}

/// The schema of a run; groups of the method's own come last.
pub fn schema(
    problem: &Problem,
    resolved: &Resolved,
    layout: &ParameterLayout,
    last: Vec<Group>,
) -> Schema {
    let settings = &problem.settings;
    let mut phases = Vec::new();
    if resolved.epochs > 0 {
        let all = [
            OfUpdates::variables(),
            Validation::variables(),
            Corrections::variables(),
        ];
        let draws = Some(Draws::new(resolved.epochs));
        phases.push(group(settings, EPOCHS, draws, all.concat()));
    }
    let [weights, biases] = match settings.minibatch.parametrisation() {
        Parametrisation::Ntk => [
            "weights, N(0, 1) a priori (NTK parametrisation)",
            "biases, N(0, 1) a priori (NTK parametrisation)",
        ],
        Parametrisation::Standard => [
            "weights, in the standard parametrisation",
            "biases, in the standard parametrisation",
        ],
    };
    let parameters = layout.len() as u64;
    let contents = SchemaContents {
        tensors: &tensors(problem, layout),
        position: parameters,
        beside_position: [
            batch_norm(problem, resolved),
            record::learned_noise(problem),
        ]
        .concat(),
        parameters,
        texts: [
            "mean square of each layer's weights and biases",
            "random projections of all weights",
            "all weights, unit by unit and layer by layer, a unit's bias after its weights",
            weights,
            biases,
        ],
        predictions: [
            "prediction of this draw (logarithms of class probabilities, or in the target's own units)",
            "zero: a draw determines the function",
        ],
        log_likelihood: "log p(y_i | weights), outputs together, in the target's own units",
        posterior: record::learned_noise(problem),
        statistics: [OfUpdates::variables(), Corrections::variables()].concat(),
        phases,
        last,
    };
    record::schema(problem, contents)
}
