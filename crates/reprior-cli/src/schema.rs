//! What a run folder's draws hold: groups, variables, dimensions, in ArviZ's layout.

use reprior::model::likelihood::LikelihoodName;
use reprior::network::Architecture;
use reprior_io::run::{DataType, Draws, Group, Labels, Schema, Variable};
use serde_json::{Map, Value, json};

use crate::predictive::Kind;
use crate::problem::Problem;
use crate::settings::Settings;

/// Names of the groups beyond ArviZ's own.
pub const POSITIONS: &str = "positions";
pub const WEIGHTS: &str = "weights";
pub const MOMENTS: &str = "weight_moments";
/// The variable of learned noise scales, in the group `posterior`.
pub const NOISE: &str = "noise";
/// The variable of kept positions, in the group [`POSITIONS`].
pub const POSITION: &str = "position";

/// Bytes that kept positions may take unless their number is given.
const POSITION_BUDGET: u64 = 256 << 20;
const MOST_POSITIONS: u64 = 100;

/// How often whole positions and whole weights are kept, in draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping {
    /// Every how many draws a position is kept.
    pub positions_every: u64,
    /// Every how many draws whole weights are kept, if they are.
    pub weights_every: Option<u64>,
}

impl Keeping {
    /// The spacing that keeps what the settings ask for, or what fits.
    pub fn new(settings: &Settings, numbers: usize, bytes: usize) -> Self {
        let schedule = settings.schedule();
        let size = (numbers * bytes * schedule.chains).max(1) as u64;
        let fitting = (POSITION_BUDGET / size).clamp(1, MOST_POSITIONS);
        let every = |count: u64| schedule.draws.div_ceil(count.clamp(1, schedule.draws));
        Self {
            positions_every: every(settings.record.keep.unwrap_or(fitting)),
            weights_every: (settings.record.keep_weights > 0)
                .then(|| every(settings.record.keep_weights)),
        }
    }

    /// How many positions of each chain of `draws` draws are kept.
    pub fn positions(self, draws: u64) -> u64 {
        draws.div_ceil(self.positions_every)
    }
}

/// One variable with a description.
fn variable(name: &str, data_type: DataType, dims: &[(&str, u64)], description: &str) -> Variable {
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
            "logarithm of the posterior density up to a constant: log_ratio - |z|^2/2",
        ),
        f(
            "log_ratio",
            "logarithm of the density against the standard normal prior",
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
pub fn schema(
    problem: &Problem,
    inner: usize,
    kept: usize,
    bytes: usize,
    data_type: DataType,
) -> Schema {
    let (settings, description) = (&problem.settings, &problem.description);
    let architecture = &problem.architecture;
    let schedule = settings.schedule();
    let keeping = Keeping::new(settings, kept, bytes);
    let (train, test) = (description.train_rows as u64, description.test_rows as u64);
    // classes, or real outputs: a network for two classes may have one output
    let outputs = description.output_names.len() as u64;
    let kind = Kind::new(&settings.model, description.is_classification);
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
    if test > 0 {
        let spread: &[(&str, u64)] = if description.is_classification {
            &[("test_row", test)]
        } else {
            &[("test_row", test), (output_dimension, outputs)]
        };
        // classes are coded near 0 and 1; real targets may sit on a large offset that single precision would eat
        let number = if description.is_classification {
            DataType::F32
        } else {
            DataType::F64
        };
        let text = match settings.model.likelihood {
            LikelihoodName::Gaussian => {
                "mean of the function given this draw's inner weights, in the target's own units"
            }
            LikelihoodName::StudentT => "function of this draw, in the target's own units",
            LikelihoodName::Categorical | LikelihoodName::Bernoulli => {
                "class probabilities of this draw"
            }
            LikelihoodName::Poisson => "mean count of this draw",
        };
        let dims = [("test_row", test), (output_dimension, outputs)];
        let mut predictions = vec![variable("mean", number, &dims, text)];
        if kind.has_function_variance() {
            let text = "standard deviation of the function given this draw's inner weights, without observation noise";
            predictions.push(variable("sd", number, spread, text));
        }
        groups.push(group(
            "predictions",
            Some(Draws::new(schedule.draws)),
            predictions,
        ));
    }
    let positions = keeping.positions(schedule.draws);
    let spaced = |length: u64, spacing: u64| Draws { length, spacing };
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
    let target = if description.is_classification {
        |name: &str, rows: u64, dim: &str, _: &str, _: u64| {
            variable(name, DataType::I64, &[(dim, rows)], "index of the class")
        }
    } else {
        |name: &str, rows: u64, dim: &str, outputs: &str, count: u64| {
            variable(
                name,
                DataType::F64,
                &[(dim, rows), (outputs, count)],
                "target in its own units",
            )
        }
    };
    groups.push(group(
        "observed_data",
        None,
        vec![target("y", train, "train_row", output_dimension, outputs)],
    ));
    if test > 0 {
        let truth = target("y", test, "test_row", output_dimension, outputs);
        groups.push(group("predictions_constant_data", None, vec![truth]));
    }
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
    let mut coordinates = std::collections::BTreeMap::new();
    let names = Labels::Text(description.output_names.clone());
    coordinates.insert(output_dimension.to_owned(), names);
    Schema {
        chains: schedule.chains as u64,
        groups,
        coordinates,
    }
}

/// Attributes of every group; nothing that differs between two runs of the same settings.
fn attributes(settings: &Settings) -> Map<String, Value> {
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
