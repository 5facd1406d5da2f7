//! What a run folder's draws hold: groups, variables, dimensions, in ArviZ's layout.

use reprior::network::Architecture;
use reprior_io::run::{DataType, Draws, Group, Labels, Schema, Variable};
use serde_json::{Map, Value, json};

use crate::keeping::{Keeping, Traces};
use crate::predictive::Kind;
use crate::problem::Problem;
use crate::settings::Settings;

/// Names of the groups beyond ArviZ's own.
pub const POSITIONS: &str = "positions";
pub const WEIGHTS: &str = "weights";
pub const MOMENTS: &str = "weight_moments";
/// The variable of learned noise scales, in the group `posterior`.
pub const NOISE: &str = "noise";
/// Predictions for the test rows.
pub const PREDICTIONS: &str = "predictions";
/// Some predictions at every draw, where [`PREDICTIONS`] has fewer.
pub const TRACES: &str = "prediction_traces";
/// The variable of kept positions, in the group [`POSITIONS`].
pub const POSITION: &str = "position";

/// One variable with a description.
pub fn variable(
    name: &str,
    data_type: DataType,
    dims: &[(&str, u64)],
    description: &str,
) -> Variable {
    let mut variable = Variable::new(name, data_type, dims);
    variable
        .attributes
        .insert("description".to_owned(), json!(description));
    variable
}

fn statistics() -> Vec<Variable> {
    let f = |name, text| variable(name, DataType::F64, &[], text);
    let i = |name, text| variable(name, DataType::I64, &[], text);
    vec![
        f(
            "lp",
            "logarithm of the posterior density of the position z in the chain's coordinates, up to a constant that is the same for all draws of all chains: log_ratio - |z|^2/2",
        ),
        f(
            "log_ratio",
            "logarithm of the density against the standard normal prior, up to the same constant",
        ),
        f(
            "acceptance_rate",
            "mean acceptance probability of the transitions since the previous record",
        ),
        f("energy_error", "energy error of the last transition"),
        f("step_size", "step size of the last transition"),
        variable(
            "diverging",
            DataType::Bool,
            &[],
            "whether any transition since the previous record diverged",
        ),
        i(
            "n_accepted",
            "accepted transitions since the previous record",
        ),
        i("n_steps", "steps of trajectories since the previous record"),
        i(
            "n_evaluations",
            "evaluations of the density without gradient since the previous record",
        ),
        i(
            "n_gradients",
            "evaluations of the density with gradient since the previous record",
        ),
        i(
            "n_jitter",
            "times since the previous record that a diagonal had to be raised for a factorisation",
        ),
    ]
}

/// The weights, and the biases if there are any, of a layer that has parameters.
pub struct LayerTensors {
    pub name: String,
    pub fan_out: usize,
    pub fan_in: usize,
    pub has_bias: bool,
}

/// The network's layers with parameters, named as in a torch `Sequential` (activations count as layers; within parallel
/// branches `layer.branch.layer`). Weights of a convolution have its window's pixels and channels in their columns.
pub fn tensors(architecture: &Architecture) -> Vec<LayerTensors> {
    if let Some(composition) = &architecture.composition {
        let mut all: Vec<LayerTensors> = composition
            .parameter_matrices()
            .into_iter()
            .map(|matrix| LayerTensors {
                fan_in: matrix.rows - usize::from(matrix.has_bias),
                fan_out: matrix.units,
                has_bias: matrix.has_bias,
                name: matrix.name,
            })
            .collect();
        all.push(LayerTensors {
            name: composition.layers.len().to_string(),
            fan_out: architecture.outputs,
            fan_in: architecture.features(),
            has_bias: true,
        });
        return all;
    }
    let widths: Vec<usize> = std::iter::once(architecture.inputs)
        .chain(architecture.hidden.iter().copied())
        .chain([architecture.outputs])
        .collect();
    let layers = widths.windows(2).enumerate();
    layers
        .map(|(layer, pair)| LayerTensors {
            name: (2 * layer).to_string(),
            fan_out: pair[1],
            fan_in: pair[0],
            has_bias: true,
        })
        .collect()
}

/// The schema of a problem's run; `inner` parameters, numbers of a kept position and the data type are those of the chain's
/// coordinates.
pub fn schema(problem: &Problem, inner: usize, kept: usize, data_type: DataType) -> Schema {
    let (settings, description) = (&problem.settings, &problem.description);
    let architecture = &problem.architecture;
    let schedule = settings.schedule();
    let keeping = Keeping::new(settings);
    // classes, or real outputs: a network for two classes may have one output
    let outputs = description.output_names.len() as u64;
    let layers = tensors(architecture).len() as u64;
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
        &[("layer", layers)],
        "mean square of each layer's weights and biases (1 a priori)",
    )];
    if projections > 0 {
        posterior.push(variable(
            "projection",
            DataType::F64,
            &[("direction", projections)],
            "random projections of all weights, unit variance a priori on average over directions",
        ));
    }
    let output_dimension = if description.is_classification {
        "class"
    } else {
        "output"
    };
    if settings.model.learns_noise() {
        posterior.push(variable(
            NOISE,
            DataType::F64,
            &[(output_dimension, outputs)],
            "scale of the observation noise of each output, in the target's own units",
        ));
    }
    let mut groups = vec![group(
        "posterior",
        Some(Draws::new(schedule.draws)),
        posterior,
    )];
    let mut sample_statistics = statistics();
    sample_statistics.push(variable(
        "n_clamped",
        DataType::I64,
        &[],
        "predictive variances of this draw that rounding made negative, set to 0",
    ));
    groups.push(group(
        "sample_stats",
        Some(Draws::new(schedule.draws)),
        sample_statistics,
    ));
    if schedule.warmup_records() > 0 {
        let draws = Draws::new(schedule.warmup_records());
        groups.push(group("warmup_sample_stats", Some(draws), statistics()));
    }
    let text = settings.model.likelihood.predicts();
    let spread = "standard deviation of the function given this draw's inner weights, without observation noise";
    let spaced = |length: u64, spacing: u64| Draws { length, spacing };
    let recorded = spaced(
        keeping.predictions(schedule.draws),
        keeping.predictions_every,
    );
    groups.extend(predictions(problem, recorded, [text, spread]));
    groups.extend(traces(problem, schedule.draws));
    let positions = keeping.positions(schedule.draws);
    if kept > 0 {
        let positions = Some(spaced(positions, keeping.positions_every));
        let position = variable(
            POSITION,
            data_type,
            &[("coordinate", kept as u64)],
            "weights below the readout in the chain's coordinates, coordinates of learned noise scales, and the readout's weights where the likelihood is not gaussian",
        );
        groups.push(group(POSITIONS, positions, vec![position]));
    }
    if let Some(every) = keeping.weights_every {
        let mut variables = Vec::new();
        for layer in tensors(architecture) {
            let LayerTensors {
                name,
                fan_out,
                fan_in,
                has_bias,
            } = layer;
            let (out, into) = (format!("{name}_out"), format!("{name}_in"));
            let dims = [
                (out.as_str(), fan_out as u64),
                (into.as_str(), fan_in as u64),
            ];
            let text = "weights, N(0, 1) a priori (NTK parametrisation)";
            variables.push(variable(&format!("{name}.weight"), data_type, &dims, text));
            if has_bias {
                let text = "biases, N(0, 1) a priori";
                let name = format!("{name}.bias");
                variables.push(variable(&name, data_type, &dims[..1], text));
            }
        }
        groups.push(group(
            WEIGHTS,
            Some(spaced(schedule.draws.div_ceil(every), every)),
            variables,
        ));
    }
    groups.extend(targets(problem));
    let parameters = (inner + architecture.readout_parameters()) as u64;
    let moments =
        [("mean", "running mean"), ("variance", "running variance")].map(|(name, text)| {
            let dims = [
                ("moment_chain", schedule.chains as u64),
                ("parameter", parameters),
            ];
            variable(name, DataType::F32, &dims, text)
        });
    groups.push(group(MOMENTS, None, moments.to_vec()));
    with_names(problem, schedule.chains as u64, groups)
}

/// The schema of a run in closed form.
pub fn closed_form_schema(problem: &Problem) -> Schema {
    let statistics = vec![
        variable(
            "log_marginal_likelihood",
            DataType::F64,
            &[],
            "logarithm of the density of the standardised training targets, in nats",
        ),
        variable(
            "n_jitter",
            DataType::I64,
            &[],
            "times that the diagonal had to be raised for the factorisation",
        ),
        variable(
            "n_clamped",
            DataType::I64,
            &[],
            "predictive variances that rounding made negative, set to 0",
        ),
    ];
    let mut groups = vec![Group {
        name: "sample_stats".to_owned(),
        draws: Some(Draws::new(1)),
        variables: statistics,
        attributes: attributes(&problem.settings),
    }];
    let text = [
        "posterior mean of the function, in the target's own units",
        "posterior standard deviation of the function, without observation noise",
    ];
    groups.extend(predictions(problem, Draws::new(1), text));
    groups.extend(targets(problem));
    with_names(problem, 1, groups)
}

/// The dimension of outputs or classes, and its length.
pub fn outputs(problem: &Problem) -> (&'static str, u64) {
    let description = &problem.description;
    let name = if description.is_classification {
        "class"
    } else {
        "output"
    };
    (name, description.output_names.len() as u64)
}

pub fn with_names(problem: &Problem, chains: u64, groups: Vec<Group>) -> Schema {
    let mut coordinates = std::collections::BTreeMap::new();
    if groups.iter().any(|group| group.name == TRACES)
        && let Some(traces) = traces_of(problem)
    {
        let positions = traces.positions().map(|position| position as i64);
        coordinates.insert(TRACED.to_owned(), Labels::Integers(positions.collect()));
    }
    let names = Labels::Text(problem.description.output_names.clone());
    coordinates.insert(outputs(problem).0.to_owned(), names);
    Schema {
        chains,
        groups,
        coordinates,
    }
}

/// Means, and standard deviations where there are any, at the test inputs, if there are any; with these descriptions.
pub fn predictions(problem: &Problem, draws: Draws, [mean, sd]: [&str; 2]) -> Option<Group> {
    let description = &problem.description;
    let test = description.test_rows as u64;
    if test == 0 {
        return None;
    }
    let kind = Kind::new(&problem.settings.model, description.is_classification);
    let number = number(problem);
    let dims = [("test_row", test), outputs(problem)];
    let spread = if description.is_classification {
        &dims[..1]
    } else {
        &dims
    };
    let mut variables = vec![variable(kind.variable(), number, &dims, mean)];
    if kind.has_function_variance() {
        variables.push(variable("sd", number, spread, sd));
    }
    Some(Group {
        name: PREDICTIONS.to_owned(),
        draws: Some(draws),
        variables,
        attributes: attributes(&problem.settings),
    })
}

/// The type of recorded predictions: classes are coded near 0 and 1; real targets may sit on a large offset that single
/// precision would eat.
fn number(problem: &Problem) -> DataType {
    if problem.description.is_classification {
        DataType::F32
    } else {
        DataType::F64
    }
}

/// The dimension of traced predictions.
const TRACED: &str = "traced";

/// Which predictions are recorded at every draw, where not all are.
pub fn traces_of(problem: &Problem) -> Option<Traces> {
    let description = &problem.description;
    let outputs = description.output_names.len();
    Traces::new(&problem.settings, description.test_rows, outputs)
}

/// Their group.
pub fn traces(problem: &Problem, draws: u64) -> Option<Group> {
    let traces = traces_of(problem)?;
    let kind = Kind::new(
        &problem.settings.model,
        problem.description.is_classification,
    );
    let text = "the variable of this name of the group `predictions` at every draw, for some rows and outputs: the label is the row times the number of outputs, plus the output";
    Some(Group {
        name: TRACES.to_owned(),
        draws: Some(Draws::new(draws)),
        variables: vec![variable(
            kind.variable(),
            number(problem),
            &[(TRACED, traces.count())],
            text,
        )],
        attributes: attributes(&problem.settings),
    })
}

/// Training targets, and test targets if there are any.
pub fn targets(problem: &Problem) -> Vec<Group> {
    let description = &problem.description;
    let target = |group: &str, rows: usize, dim: &str| {
        let row = (dim, rows as u64);
        let variable = if description.is_classification {
            variable("y", DataType::I64, &[row], "index of the class")
        } else {
            let dims = [row, outputs(problem)];
            variable("y", DataType::F64, &dims, "target in its own units")
        };
        Group {
            name: group.to_owned(),
            draws: None,
            variables: vec![variable],
            attributes: attributes(&problem.settings),
        }
    };
    let mut groups = vec![target("observed_data", description.train_rows, "train_row")];
    if description.test_rows > 0 {
        let group = "predictions_constant_data";
        groups.push(target(group, description.test_rows, "test_row"));
    }
    groups
}

/// Attributes of every group; nothing that differs between two runs of the same settings.
pub fn attributes(settings: &Settings) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("inference_library".to_owned(), json!("reprior"));
    map.insert(
        "inference_library_version".to_owned(),
        json!(env!("CARGO_PKG_VERSION")),
    );
    let settings = serde_json::to_string(settings).unwrap_or_default();
    map.insert("inference_library_settings".to_owned(), json!(settings));
    map
}
