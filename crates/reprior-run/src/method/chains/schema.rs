//! What chains on all data record.

use reprior::network::Composition;
use reprior::network::parameters::ParameterLayout;
use reprior_io::run::{Draws, Schema};

use super::sizes::ProblemSizes;
use crate::problem::Problem;
use crate::record::{self, LayerTensors, SchemaContents, group};

record::statistics!(
    /// Of the transitions since the previous record.
    Transitions {
        lp: f64 = "logarithm of the posterior density of the position z in the chain's coordinates, up to a constant that is the same for all draws of all chains: log_ratio - |z|^2/2",
        log_ratio: f64 = "logarithm of the density against the standard normal prior, up to the same constant",
        acceptance_rate: f64 = "mean acceptance probability of the transitions since the previous record",
        energy_error: f64 = "energy error of the last transition",
        step_size: f64 = "step size of the last transition",
        diverging: bool = "whether any transition since the previous record diverged",
        n_accepted: i64 = "accepted transitions since the previous record",
        n_steps: i64 = "steps of trajectories since the previous record",
        n_evaluations: i64 = "evaluations of the density without gradient since the previous record",
        n_gradients: i64 = "evaluations of the density with gradient since the previous record",
        n_jitter: i64 = "times since the previous record that a diagonal had to be raised for a factorisation",
    }
);

record::statistics!(
    /// Of one draw.
    OfDraw {
        n_clamped: i64 = "predictive variances of this draw that rounding made negative, set to 0",
    }
);

/// The network's layers with parameters.
pub fn tensors(network: &Composition) -> Vec<LayerTensors> {
    record::tensors(&ParameterLayout::new(network), network.layers.len())
}

/// What weights are, in all and one by one, and what they are times their learned scales.
const PLAIN: [&str; 4] = [
    "mean square of each layer's weights and biases (1 a priori)",
    "random projections of all weights, unit variance a priori on average over directions",
    "weights, N(0, 1) a priori (NTK parametrisation)",
    "biases, N(0, 1) a priori",
];
const SCALED: [&str; 4] = [
    "mean square of each layer's weights and biases, times their learned scales",
    "random projections of all weights, times their learned scales",
    "weights times their learned scales, N(0, 1) a priori before (NTK parametrisation)",
    "biases, N(0, 1) a priori",
];

/// The schema of a problem's run.
pub fn schema(problem: &Problem, sizes: &ProblemSizes) -> Schema {
    let settings = &problem.settings;
    let schedule = settings.schedule();
    let mut phases = Vec::new();
    if schedule.warmup_records() > 0 {
        let draws = Draws::new(schedule.warmup_records());
        let variables = Transitions::variables();
        phases.push(group(settings, WARMUP, Some(draws), variables));
    }
    let prediction = settings.model.likelihood().predicts();
    let [mean_square, projection, weights, biases] = match settings.model.scale_prior() {
        None => PLAIN,
        Some(_) => SCALED,
    };
    let spread = "standard deviation of the function given this draw's inner weights, without observation noise";
    let contents = SchemaContents {
        tensors: &tensors(&problem.architecture),
        position: sizes.kept_numbers() as u64,
        beside_position: Vec::new(),
        parameters: sizes.all_parameters() as u64,
        texts: [
            mean_square,
            projection,
            "weights below the readout in the chain's coordinates (times their learned scales, if these are learned), coordinates of learned noise scales, and the readout's weights where the likelihood is not gaussian",
            weights,
            biases,
        ],
        predictions: [prediction, spread],
        log_likelihood: match sizes.is_gaussian {
            true => {
                "log p(y_i | other rows, inner weights, noise), the readout integrated out, outputs together, in the target's own units"
            }
            false => "log p(y_i | weights), outputs together, in the target's own units",
        },
        posterior: [
            record::learned_noise(problem),
            record::learned_scales(problem),
        ]
        .concat(),
        statistics: [Transitions::variables(), OfDraw::variables()].concat(),
        phases,
        last: Vec::new(),
    };
    record::schema(problem, contents)
}

/// The group of the warm-up's statistics.
pub const WARMUP: &str = "warmup_sample_stats";
