//! What a run folder's draws hold: groups, variables, dimensions, in ArviZ's layout.

use reprior::network::parameters::ParameterLayout;
use reprior_io::run::{DataType, Draws, Group, Labels, Schema, Variable};
use serde_json::{Map, Value, json};

use super::groups::{
    MOMENTS, NOISE, POSITION, POSITIONS, PREDICTIONS, SPREAD, TARGET, TRACES, WEIGHT_SCALE, WEIGHTS,
};
use super::keeping::{Keeping, Traces};
use super::scored::{self, CHOSEN};
use crate::problem::Problem;
use crate::settings::Settings;

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

/// The weights, and the biases if there are any, of a layer that has parameters.
pub struct LayerTensors {
    /// As in a torch `Sequential` (activations count as layers; within parallel branches `layer.branch.layer`).
    pub name: String,
    pub fan_out: usize,
    /// Of a convolution the pixels and channels of its window.
    pub fan_in: usize,
    pub has_bias: bool,
}

/// The layers with parameters of a network with so many layers below its readout.
pub fn tensors(layout: &ParameterLayout, below_readout: usize) -> Vec<LayerTensors> {
    let last = layout.layers.len() - 1;
    let layers = layout.layers.iter().enumerate();
    layers
        .map(|(index, layer)| LayerTensors {
            name: match index == last {
                true => below_readout.to_string(),
                false => layer.name.clone(),
            },
            fan_out: layer.units,
            fan_in: layer.fan_in(),
            has_bias: layer.has_bias,
        })
        .collect()
}

/// What the runs of one family of methods record, beyond what all record.
pub struct SchemaContents<'a> {
    pub tensors: &'a [LayerTensors],
    /// Numbers of a kept position; none are kept where there are none.
    pub position: u64,
    /// What else is kept of a draw with its position.
    pub beside_position: Vec<Variable>,
    /// Numbers whose moments are kept.
    pub parameters: u64,
    /// Descriptions of mean squares, projections, positions, weights, biases.
    pub texts: [&'a str; 5],
    /// Descriptions of predictions, and of their standard deviations.
    pub predictions: [&'a str; 2],
    /// Description of log-likelihoods of training rows.
    pub log_likelihood: &'a str,
    /// Variables of a draw besides mean squares and projections.
    pub posterior: Vec<Variable>,
    pub statistics: Vec<Variable>,
    /// Groups after the statistics, and at the end.
    pub phases: Vec<Group>,
    pub last: Vec<Group>,
}

/// The schema of a run with draws.
pub fn schema(problem: &Problem, contents: SchemaContents<'_>) -> Schema {
    let settings = &problem.settings;
    let (schedule, keeping) = (settings.schedule(), Keeping::new(settings));
    let (chains, data_type) = (
        schedule.chains as u64,
        settings.sampler.precision.data_type(),
    );
    let draws = Some(Draws::new(schedule.draws));
    let spaced = |length: u64, spacing: u64| Draws { length, spacing };
    let group = |name: &str, draws, variables| group(settings, name, draws, variables);
    let [mean_square, projection, position, weights, biases] = contents.texts;
    let layers = contents.tensors.len() as u64;
    let mut posterior = vec![variable(
        "weight_mean_square",
        DataType::F64,
        &[("layer", layers)],
        mean_square,
    )];
    let projections = settings.record.projections as u64;
    if projections > 0 {
        let dims = [("direction", projections)];
        posterior.push(variable("projection", DataType::F64, &dims, projection));
    }
    posterior.extend(contents.posterior);
    let mut groups = vec![
        group("posterior", draws, posterior),
        group("sample_stats", draws, contents.statistics),
    ];
    groups.extend(contents.phases);
    let recorded = spaced(
        keeping.predictions(schedule.draws),
        keeping.predictions_every,
    );
    groups.extend(predictions(problem, recorded, contents.predictions));
    groups.extend(traces(problem, schedule.draws));
    groups.extend(scored::log_likelihoods(problem, contents.log_likelihood));
    if contents.position > 0 {
        let dims = [("coordinate", contents.position)];
        let kept = spaced(keeping.positions(schedule.draws), keeping.positions_every);
        let mut variables = vec![variable(POSITION, data_type, &dims, position)];
        variables.extend(contents.beside_position);
        groups.push(group(POSITIONS, Some(kept), variables));
    }
    if let Some(every) = keeping.weights_every {
        let mut variables = Vec::new();
        for layer in contents.tensors {
            let name = &layer.name;
            let (out, into) = (format!("{name}_out"), format!("{name}_in"));
            let dims = [
                (out.as_str(), layer.fan_out as u64),
                (into.as_str(), layer.fan_in as u64),
            ];
            let own = format!("{name}.weight");
            variables.push(variable(&own, data_type, &dims, weights));
            if layer.has_bias {
                let own = format!("{name}.bias");
                variables.push(variable(&own, data_type, &dims[..1], biases));
            }
        }
        let kept = spaced(schedule.draws.div_ceil(every), every);
        groups.push(group(WEIGHTS, Some(kept), variables));
    }
    groups.extend(targets(problem));
    let moments =
        [("mean", "running mean"), ("variance", "running variance")].map(|(name, text)| {
            let dims = [("moment_chain", chains), ("parameter", contents.parameters)];
            variable(name, DataType::F32, &dims, text)
        });
    groups.push(group(MOMENTS, None, moments.to_vec()));
    groups.extend(contents.last);
    with_names(problem, chains, groups)
}

/// A group with the attributes of all.
pub fn group(
    settings: &Settings,
    name: &str,
    draws: Option<Draws>,
    variables: Vec<Variable>,
) -> Group {
    Group {
        name: name.to_owned(),
        draws,
        variables,
        attributes: attributes(settings),
    }
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

/// The variable of a learned σ, where it is.
pub fn learned_noise(problem: &Problem) -> Vec<Variable> {
    let text = "scale of the observation noise of each output, in the target's own units";
    let own = variable(NOISE, DataType::F64, &[outputs(problem)], text);
    let is_learned = problem.settings.model.learns_noise();
    is_learned.then_some(own).into_iter().collect()
}

/// The variable of learned scales of weights, where they are.
pub fn learned_scales(problem: &Problem) -> Vec<Variable> {
    let text = "learned scale of the weights of each input, or of each layer, in units of the prior that the flags give";
    let count = problem.scale_names().len() as u64;
    let own = variable(WEIGHT_SCALE, DataType::F64, &[(SCALED, count)], text);
    (count > 0).then_some(own).into_iter().collect()
}

/// The dimension of learned scales of weights.
const SCALED: &str = "scaled";

pub fn with_names(problem: &Problem, chains: u64, groups: Vec<Group>) -> Schema {
    let mut coordinates = std::collections::BTreeMap::new();
    if groups.iter().any(|group| group.name == TRACES)
        && let Some(traces) = traces_of(problem)
    {
        let positions = traces.positions().map(|position| position as i64);
        coordinates.insert(TRACED.to_owned(), Labels::Integers(positions.collect()));
    }
    if let Some(rows) = scored::labels(problem) {
        coordinates.insert(CHOSEN.to_owned(), rows);
    }
    let scaled = problem.scale_names();
    if !scaled.is_empty() {
        coordinates.insert(SCALED.to_owned(), Labels::Text(scaled));
    }
    let numbers = problem.settings.chain_numbers();
    if (0..chains)
        .zip(&numbers)
        .any(|(place, &number)| place != number as u64)
    {
        let numbers = numbers.iter().map(|&number| number as i64);
        coordinates.insert("chain".to_owned(), Labels::Integers(numbers.collect()));
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
    let kind = problem.kind();
    let number = number(problem);
    let dims = [("test_row", test), outputs(problem)];
    let spread = if description.is_classification {
        &dims[..1]
    } else {
        &dims
    };
    let mut variables = vec![variable(kind.variable(), number, &dims, mean)];
    if kind.has_variance() {
        let sd = match kind.has_row_noise() {
            true => {
                "scale of the noise of this row, of which the likelihood makes the standard deviation (of gaussian ones it is that)"
            }
            false => sd,
        };
        variables.push(variable(SPREAD, number, spread, sd));
    }
    Some(group(
        &problem.settings,
        PREDICTIONS,
        Some(draws),
        variables,
    ))
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
fn traces(problem: &Problem, draws: u64) -> Option<Group> {
    let traces = traces_of(problem)?;
    let kind = problem.kind();
    let text = "the variable of this name of the group `predictions` at every draw, for some rows and outputs: the label is the row times the number of outputs, plus the output";
    let dims = [(TRACED, traces.count())];
    let mut variables = vec![variable(kind.variable(), number(problem), &dims, text)];
    if kind.has_row_noise() {
        variables.push(variable(SPREAD, number(problem), &dims, text));
    }
    Some(group(
        &problem.settings,
        TRACES,
        Some(Draws::new(draws)),
        variables,
    ))
}

/// Training targets, and test targets if there are any.
pub fn targets(problem: &Problem) -> Vec<Group> {
    let description = &problem.description;
    let target = |name: &str, rows: usize, dim: &str| {
        let row = (dim, rows as u64);
        let variable = if description.is_classification {
            variable(TARGET, DataType::I64, &[row], "index of the class")
        } else {
            let dims = [row, outputs(problem)];
            variable(TARGET, DataType::F64, &dims, "target in its own units")
        };
        group(&problem.settings, name, None, vec![variable])
    };
    let mut groups = vec![target("observed_data", description.train_rows, "train_row")];
    if description.test_rows > 0 {
        let name = "predictions_constant_data";
        groups.push(target(name, description.test_rows, "test_row"));
    }
    groups
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
