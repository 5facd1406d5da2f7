//! What chains on all data take.

use reprior::sampler::Method;

use super::schema::schema;
use super::sizes::ProblemSizes;
use crate::failure::Failure;
use crate::method::{Plan, keeps_states};
use crate::problem::Problem;
use crate::settings::Settings;
use crate::words::{bytes, duration, number};

/// Training rows whose squares can still be counted in bytes, many times over. All of them are looked at in each transition.
const MOST_ROWS: usize = 1 << 28;

/// Memory in all, with so many bytes of buffers for the draws of each chain.
fn with_writers(sizes: &ProblemSizes, writers: u64) -> u64 {
    let writers = writers.saturating_mul(sizes.chains as u64);
    sizes.budget().memory_bytes.saturating_add(writers)
}

/// ProblemSizes of a problem's chains.
pub fn sizes(problem: &Problem, method: Method) -> ProblemSizes {
    let description = &problem.description;
    let rows = [description.train_rows, description.test_rows];
    ProblemSizes {
        scale_coordinates: problem.learned_scales().map_or(0, |scales| scales.count()),
        ..ProblemSizes::new(
            &problem.settings,
            method,
            problem.architecture.clone(),
            rows,
        )
    }
}

/// Bytes of a chain's checkpoint.
pub fn checkpoint_bytes(sizes: &ProblemSizes) -> u64 {
    let inner = sizes.inner_parameters();
    let of_scales = sizes.noise_coordinates + sizes.scale_coordinates;
    let parameters = inner + of_scales + sizes.architecture.readout_parameters();
    let real = sizes.precision.bytes() as u64;
    let replicas = (sizes.replica_numbers() as u64).saturating_mul(real);
    replicas.saturating_add(parameters as u64 * (2 * real + 16))
}

/// The plan of a problem.
///
/// # Errors
/// A run so large that its size cannot be counted.
pub fn plan(problem: &Problem, method: Method) -> Result<Plan, Failure> {
    let settings = &problem.settings;
    let sizes = sizes(problem, method);
    if sizes.rows > MOST_ROWS {
        return Err(Failure::request(format!(
            "chains on all data look at every row in each transition, and {} training rows are too many for them: give --method sgld, or a method that trains",
            sizes.rows
        )));
    }
    let schema = schema(problem, &sizes);
    let budget = sizes.budget();
    let writers = schema.bytes_in_memory().map_err(Failure::request)?;
    let chain_bytes = budget.chain_bytes.saturating_add(writers);
    let checkpoint = checkpoint_bytes(&sizes);
    let memory = with_writers(&sizes, writers);
    let mut plan = Plan::new(schema, [memory, checkpoint], |available| {
        way_out(&sizes, settings, writers, available)
    });
    if keeps_states(settings, plan.schema.chains, checkpoint) {
        (plan.checkpoint_bytes, plan.kept_bytes) = (0, checkpoint);
    }
    let schedule = settings.schedule();
    let transitions = schedule.transitions() * schedule.chains as u64;
    let million = |operations: f64| format!("{} million", number(operations / 1e6));
    let reduced = if sizes.is_reduced() {
        format!(
            " (first layer reduced from {} to {} inputs)",
            problem.description.columns + 1,
            sizes.first_rows
        )
    } else {
        String::new()
    };
    plan.say("parameters of the network", budget.parameters);
    plan.say(
        "coordinates of a chain",
        format!("{}{reduced}", budget.dimension),
    );
    match sizes.determinant {
        Some(determinant) => plan.say("determinant", determinant.description()),
        None => plan.say("readout solved for in", format!("{} space", sizes.space)),
    }
    plan.say(
        "operations for the log-density",
        million(budget.value_operations),
    );
    if sizes.determinant.is_none() {
        plan.say("with its gradient", million(budget.gradient_operations));
    }
    match settings.run.minutes {
        Some(minutes) => {
            plan.say(
                "time",
                format!("about {}, or less", duration(60.0 * minutes)),
            );
            plan.say(
                "transitions of all chains",
                format!("{transitions}, or as many as there is time for"),
            );
            plan.note("minutes", minutes);
        }
        None => plan.say("transitions of all chains", transitions),
    }
    plan.say("memory, shared", bytes(budget.shared_bytes as f64));
    plan.say("memory, each chain", bytes(chain_bytes as f64));
    plan.say_memory("memory, in all");
    plan.say_disk(problem)?;
    plan.note("memory_bytes_per_chain", chain_bytes);
    plan.note("parameters", budget.parameters);
    plan.note("dimension", budget.dimension);
    plan.note("space", sizes.space.to_string());
    plan.note("operations_per_value", budget.value_operations);
    plan.note("operations_per_gradient", budget.gradient_operations);
    plan.note("transitions", transitions);
    Ok(plan)
}

/// What would fit into `available` bytes.
fn way_out(sizes: &ProblemSizes, settings: &Settings, writers: u64, available: u64) -> String {
    let fits = |sizes: &ProblemSizes| with_writers(sizes, writers) <= available;
    let chains = largest(sizes.chains, |chains| {
        fits(&ProblemSizes {
            chains,
            ..sizes.clone()
        })
    });
    let rows = largest(sizes.rows, |rows| fits(&sizes.with_rows(settings, rows)));
    let width = sizes
        .architecture
        .hidden_widths()
        .into_iter()
        .max()
        .unwrap_or(0);
    let width = largest(width, |width| fits(&sizes.with_width(settings, width)));
    let mut ways = Vec::new();
    if let Some(chains) = chains {
        ways.push(format!("--chains {chains}"));
    }
    let with_replicas = |replicas| {
        fits(&ProblemSizes {
            replicas,
            ..sizes.clone()
        })
    };
    if let Some(replicas) = largest(sizes.replicas, with_replicas) {
        ways.push(format!("--replicas {replicas}"));
    }
    if let Some(rows) = rows {
        ways.push(format!("--train {rows}"));
    }
    if let Some(width) = width {
        ways.push(format!("hidden layers of width {width}"));
    }
    if ways.is_empty() {
        return "; take a smaller network or record less (--test, --projections, --keep-weights)"
            .to_owned();
    }
    format!("; it would fit with {}", ways.join(", or with "))
}

/// The largest value from 1 up to `limit` that fits, if fitting is monotone.
fn largest(limit: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
    if limit == 0 || !fits(1) {
        return None;
    }
    let (mut low, mut high) = (1, limit);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Some(low)
}
