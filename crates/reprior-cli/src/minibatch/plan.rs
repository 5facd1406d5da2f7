//! What a run of a minibatch method takes: memory, disk, operations.

use reprior::chain::Collection;
use reprior::network::Composition;
use reprior::stochastic::preconditioner::{Block, Preconditioner, Scope};
use reprior::stochastic::{Dynamics, Layout};
use reprior_io::run::{DataType, Schema};
use serde_json::json;

use super::resolve::Resolved;
use super::run::network;
use super::schema::schema;
use crate::budget::available_memory;
use crate::disk::Destination;
use crate::error::Failure;
use crate::keeping::Keeping;
use crate::method::MinibatchMethod;
use crate::names::Precision;
use crate::plan::{kept, kept_rows};
use crate::problem::Problem;
use crate::table::{align, bytes, number, to_stdout};

/// What a run takes.
pub struct Plan {
    pub resolved: Resolved,
    pub schema: Schema,
    pub keeping: Keeping,
    parameters: usize,
    /// Of each chain's memory what a Laplace approximation takes.
    curvature_bytes: u64,
    /// Products with the curvature that it makes at most.
    products: u64,
    shared_bytes: u64,
    chain_bytes: u64,
    memory_bytes: u64,
    disk_bytes: u64,
    /// Of each chain's checkpoint.
    checkpoint_bytes: u64,
    /// Of the finished run folder.
    folder_bytes: u64,
    /// Of one update.
    operations: f64,
}

/// Numbers that a preconditioner keeps, and how its state is split.
fn preconditioner_numbers(preconditioner: &dyn Preconditioner<f32>, layout: &Layout) -> usize {
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

/// Numbers that one row takes on its way through a network.
fn activations(network: &Composition) -> usize {
    let shapes = network.shapes().unwrap_or_default();
    shapes.iter().map(|shape| shape.features()).sum::<usize>() + network.outputs
}

impl Plan {
    /// The plan of a problem.
    ///
    /// # Errors
    /// A run so large that its size cannot be counted.
    pub fn new(problem: &Problem, resolved: &Resolved) -> Result<Self, Failure> {
        let settings = &problem.settings;
        let network = network(problem)?;
        let layout = Layout::new(&network);
        let (real, data_type) = match settings.sampler.precision {
            Precision::Auto | Precision::F32 => (4_usize, DataType::F32),
            Precision::F64 => (8, DataType::F64),
        };
        let parameters = layout.len();
        let keeping = Keeping::new(settings);
        let schema = schema(problem, resolved, &layout, keeping, data_type);
        let writers = schema.bytes_in_memory().map_err(Failure::request)?;
        let disk = schema.bytes_on_disk().map_err(Failure::request)?;
        let description = &problem.description;
        let rows = description.train_rows + description.test_rows;
        let raw = problem.train.inputs.bytes() + problem.test.inputs.bytes();
        let targets = 16 * rows * network.outputs;
        let shared = raw + rows * description.columns * real + targets;
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
            + description.test_rows * network.outputs * (real + 16);
        let (around, products) = if resolved.method.is_around_mode() {
            let sizes = [
                settings.laplace.curvature_rows.unwrap_or(rows),
                network.outputs,
            ];
            let laplace = &settings.laplace;
            laplace.cost(resolved.method, &layout, real, sizes)
        } else {
            (0, 0)
        };
        let fit = if settings.laplace.is_linearised(resolved.method) {
            let rows = settings.laplace.curvature_rows.unwrap_or(rows);
            let sizes = [rows, network.outputs];
            settings.laplace.kept_bytes(&layout, real, sizes)
        } else {
            0
        };
        let chain = (chain as u64)
            .saturating_add(writers)
            .saturating_add(around);
        let chains = resolved.plan.schedule.chains as u64;
        let checkpoint = (parameters * (real * (3 + momenta + swag) + 16) + kept * real) as u64;
        let forward = network.operations()
            + 2.0 * (network.outputs * layout.layers.last().map_or(0, |layer| layer.rows)) as f64;
        Ok(Self {
            resolved: resolved.clone(),
            keeping,
            schema,
            parameters,
            curvature_bytes: around,
            products,
            shared_bytes: shared as u64,
            chain_bytes: chain,
            memory_bytes: (shared as u64).saturating_add(chain.saturating_mul(chains)),
            folder_bytes: disk.saturating_add(fit.saturating_mul(chains)),
            disk_bytes: disk.saturating_add((checkpoint + fit).saturating_mul(chains)),
            checkpoint_bytes: checkpoint + fit,
            operations: 3.0 * forward * resolved.batch as f64,
        })
    }

    /// What takes less memory.
    fn way_out(&self) -> &'static str {
        if self.curvature_bytes > self.memory_bytes / 2 {
            "another --hessian-structure (kron, diag), fewer --subset-of-weights, a smaller --rank, or fewer --curvature-rows"
        } else {
            "fewer rows (--train), fewer --chains, or a smaller network"
        }
    }

    /// Refuses a run that this machine has not the memory or the disk for.
    ///
    /// # Errors
    /// A wrong request.
    pub fn check(&self, place: Destination<'_>) -> Result<(), Failure> {
        let available = available_memory();
        if self.memory_bytes > available {
            return Err(Failure::request(format!(
                "the run needs {} of memory, {} are free; take {}",
                bytes(self.memory_bytes as f64),
                bytes(available as f64),
                self.way_out()
            )));
        }
        place.check(&self.schema, self.checkpoint_bytes)
    }
}

/// `reprior plan` for a minibatch method.
///
/// # Errors
/// None yet: whatever it takes is printed.
pub fn command(problem: &Problem, resolved: &Resolved, is_json: bool) -> Result<(), Failure> {
    let plan = Plan::new(problem, resolved)?;
    let available = available_memory();
    let fits = plan.memory_bytes <= available;
    let lengths = resolved.plan.schedule;
    let updates = resolved.updates.saturating_mul(lengths.chains as u64);
    let kept = kept(problem);
    if is_json {
        let document = json!({
            "memory_bytes": plan.memory_bytes,
            "memory_bytes_per_chain": plan.chain_bytes,
            "memory_bytes_available": available,
            "fits": fits,
            "disk_bytes": plan.disk_bytes,
            "run_folder_bytes": plan.folder_bytes,
            "positions_kept": kept[0],
            "predictions_recorded": kept[1],
            "parameters": plan.parameters,
            "curvature_bytes": plan.curvature_bytes,
            "curvature_products_at_most": plan.products,
            "operations_per_update": plan.operations,
            "updates_per_epoch": resolved.updates_per_epoch,
            "epochs": resolved.epochs,
            "transitions": updates,
        });
        to_stdout(&document.to_string());
        return Ok(());
    }
    to_stdout(&problem.description.in_words());
    problem
        .notes()
        .for_each(|note| to_stdout(&format!("note: {note}")));
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let million = |operations: f64| format!("{} million", number(operations / 1e6));
    let mut rows = vec![
        row("parameters of the network", plan.parameters.to_string()),
        row(
            "operations of an update's loss and gradient",
            million(plan.operations),
        ),
        row(
            "updates of an epoch",
            resolved.updates_per_epoch.to_string(),
        ),
        row("epochs of each chain", resolved.epochs.to_string()),
        row("updates of all chains", updates.to_string()),
        row("memory, shared", bytes(plan.shared_bytes as f64)),
        row("memory, each chain", bytes(plan.chain_bytes as f64)),
        row(
            "memory, in all",
            format!(
                "{} of {} free",
                bytes(plan.memory_bytes as f64),
                bytes(available as f64)
            ),
        ),
        row("disk, while it runs", bytes(plan.disk_bytes as f64)),
        row("run folder, at the end", bytes(plan.folder_bytes as f64)),
    ];
    rows.extend(kept_rows(&problem.settings, kept));
    if resolved.method.is_around_mode() {
        let of = |count: u64| match resolved.method {
            MinibatchMethod::LaplaceDiffusion => format!("{count} a draw"),
            _ => count.to_string(),
        };
        rows.push(row(
            "memory of the curvature",
            bytes(plan.curvature_bytes as f64),
        ));
        rows.push(row(
            "products with the curvature, at most",
            of(plan.products),
        ));
    }
    to_stdout(&align(&rows));
    if !fits {
        to_stdout(&format!("It does not fit; take {}.", plan.way_out()));
    }
    Ok(())
}
