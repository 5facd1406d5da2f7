//! What a run of a minibatch method takes: memory, disk, operations.

use reprior::chain::minibatch::Collection;
use reprior::network::Composition;
use reprior::network::layer::{Branch, Layer, Shape};
use reprior::network::parameters::ParameterLayout;
use reprior::stochastic::Dynamics;
use reprior::stochastic::preconditioner::{Block, Preconditioner, Scope};
use reprior_io::run::Group;

use super::resolve::Resolved;
use super::run::network;
use super::schema::schema;
use crate::failure::Failure;
use crate::method::Plan;
use crate::problem::Problem;
use crate::record::scored_rows;
use crate::words::{bytes, number};

/// What a method takes beyond its training.
#[derive(Default)]
pub struct CurvatureCost {
    /// Of each chain's memory.
    pub bytes: u64,
    /// Products with the curvature at most, and what they are counted for.
    pub products: u64,
    pub per: &'static str,
    /// Groups of draws.
    pub groups: Vec<Group>,
    /// Bytes that each chain keeps of it in the run folder.
    pub kept: u64,
}

/// Numbers that a preconditioner keeps, and how its state is split.
fn preconditioner_numbers(
    preconditioner: &dyn Preconditioner<f32>,
    layout: &ParameterLayout,
) -> usize {
    let block = |rows, units, has_bias| Block {
        rows,
        units,
        has_bias,
    };
    let layers = layout.layers.iter();
    match preconditioner.scope() {
        Scope::Unit => layers
            .map(|layer| {
                layer.units * preconditioner.state_len(block(layer.rows, 1, layer.has_bias))
            })
            .sum(),
        Scope::Layer => layers
            .map(|layer| preconditioner.state_len(block(layer.rows, layer.units, layer.has_bias)))
            .sum(),
        Scope::All => preconditioner.state_len(block(layout.len(), 1, false)),
    }
}

/// Numbers that one row takes on its way through a network, the branches of parallel layers included.
fn activations(network: &Composition) -> usize {
    let shapes = network.shapes().unwrap_or_default();
    let in_branches = |(layer, &input): (&Layer, &Shape)| match layer {
        Layer::Parallel(layer) => {
            let of = |branch: &Branch| {
                activations(&Composition {
                    input,
                    layers: branch.layers.clone(),
                    outputs: 0,
                    readout_scale: network.readout_scale,
                })
            };
            layer.branches.iter().map(of).sum()
        }
        _ => 0,
    };
    let inner: usize = network.layers.iter().zip(&shapes).map(in_branches).sum();
    shapes.iter().map(|shape| shape.features()).sum::<usize>() + inner + network.outputs
}

/// The plan of a problem.
///
/// # Errors
/// A run so large that its size cannot be counted.
pub fn plan(
    problem: &Problem,
    resolved: &Resolved,
    curvature: CurvatureCost,
) -> Result<Plan, Failure> {
    let settings = &problem.settings;
    let network = network(problem)?;
    let layout = ParameterLayout::new(&network);
    let real = settings.sampler.precision.bytes();
    let parameters = layout.len();
    let schema = schema(problem, resolved, &layout, curvature.groups);
    let writers = schema.bytes_in_memory().map_err(Failure::request)?;
    let description = &problem.description;
    let rows = description.train_rows + description.test_rows;
    let raw = problem.train.inputs.bytes() + problem.test.inputs.bytes();
    let shared = (raw + rows * description.columns * real + 16 * rows * network.outputs) as u64;
    let momenta = match resolved.settings.dynamics {
        Dynamics::Langevin => 0,
        Dynamics::Hamiltonian { .. } | Dynamics::NoseHoover { .. } => 1,
        Dynamics::Adam { .. } => 2,
    };
    let preconditioner = settings.minibatch.make_preconditioner::<f32>();
    let kept = preconditioner_numbers(&*preconditioner, &layout);
    let swag = match resolved.plan.collection {
        Collection::Swag { rank, from, every } => {
            let positions = (resolved.plan.schedule.warmup - from) / every.max(1);
            rank.min(usize::try_from(positions).unwrap_or(usize::MAX)) + 3
        }
        _ => 0,
    };
    // position, gradient and a draw; moments in double precision; a batch's outputs, derivatives, cotangents, squares
    let chain = parameters * (real * (4 + momenta + swag) + 16)
        + kept * real
        + resolved.batch * activations(&network) * 5 * real
        + description.test_rows * network.outputs * (real + 16)
        + scored_rows(settings, description).len() * (description.columns + network.outputs) * real;
    let chain = (chain as u64)
        .saturating_add(writers)
        .saturating_add(curvature.bytes);
    let chains = resolved.plan.schedule.chains as u64;
    let checkpoint = (parameters * (real * (3 + momenta + swag) + 16) + kept * real) as u64;
    let forward = network.operations()
        + 2.0 * (network.outputs * layout.layers.last().map_or(0, |layer| layer.rows)) as f64;
    let operations = 3.0 * forward * resolved.batch as f64;
    let memory = shared.saturating_add(chain.saturating_mul(chains));
    let mut plan = Plan::new(schema, [memory, checkpoint], |_| {
        if curvature.bytes > memory / 2 {
            "; take another --hessian-structure (kron, diag), fewer --subset-of-weights, a smaller --rank, or fewer --curvature-rows"
        } else {
            "; take fewer rows (--train), fewer --chains, or a smaller network"
        }
        .to_owned()
    });
    let updates = resolved.updates.saturating_mul(chains);
    plan.say("parameters of the network", parameters);
    let million = format!("{} million", number(operations / 1e6));
    plan.say("operations of an update's loss and gradient", million);
    plan.say("updates of an epoch", resolved.updates_per_epoch);
    plan.say("epochs of each chain", resolved.epochs);
    plan.say("updates of all chains", updates);
    plan.say("memory, shared", bytes(shared as f64));
    plan.say("memory, each chain", bytes(chain as f64));
    plan.say_memory("memory, in all");
    plan.kept_bytes = curvature.kept;
    plan.say_disk(problem)?;
    if !curvature.per.is_empty() {
        plan.say("memory of the curvature", bytes(curvature.bytes as f64));
        let text = format!("{}{}", curvature.products, curvature.per);
        plan.say("products with the curvature, at most", text.trim_end());
    }
    plan.note("memory_bytes_per_chain", chain);
    plan.note("parameters", parameters);
    plan.note("curvature_bytes", curvature.bytes);
    plan.note("curvature_products_at_most", curvature.products);
    plan.note("operations_per_update", operations);
    plan.note("updates_per_epoch", resolved.updates_per_epoch);
    plan.note("epochs", resolved.epochs);
    plan.note("transitions", updates);
    Ok(plan)
}
