//! `reprior plan`, and the check that `sample` makes before it allocates anything.

use reprior_io::run::{DataType, Schema};
use serde_json::json;

use crate::arguments::PlanArguments;
use crate::budget::{Budget, Sizes, available_memory};
use crate::closed_form;
use crate::disk::Destination;
use crate::error::Failure;
use crate::keeping::Keeping;
use crate::minibatch;
use crate::names::Precision;
use crate::problem::Problem;
use crate::schema::schema;
use crate::settings::Settings;
use crate::table::{align, bytes, number, to_stdout};

/// What a problem's run would take.
pub struct Plan {
    pub sizes: Sizes,
    pub budget: Budget,
    pub schema: Schema,
    /// Bytes of the run folder before the end: checkpoints included.
    pub disk_bytes: u64,
    /// Bytes of each chain's checkpoint.
    checkpoint_bytes: u64,
    /// Bytes of the finished run folder.
    pub folder_bytes: u64,
    /// Bytes of each chain's buffers for draws.
    writer_bytes: u64,
}

/// Memory in all, with so many bytes of buffers for the draws of each chain.
fn with_writers(sizes: &Sizes, writers: u64) -> u64 {
    let writers = writers.saturating_mul(sizes.chains as u64);
    sizes.budget().memory_bytes.saturating_add(writers)
}

impl Plan {
    /// The plan of a problem.
    ///
    /// # Errors
    /// A run so large that its size cannot be counted.
    pub fn new(problem: &Problem) -> Result<Self, Failure> {
        let settings = &problem.settings;
        let description = &problem.description;
        let architecture = problem.architecture.clone();
        let sizes = Sizes::new(
            settings,
            architecture,
            description.train_rows,
            description.test_rows,
        );
        let (real, data_type) = match settings.sampler.precision {
            Precision::Auto | Precision::F32 => (4, DataType::F32),
            Precision::F64 => (8, DataType::F64),
        };
        let inner = sizes.inner_parameters();
        let schema = schema(problem, inner, sizes.kept_numbers(), data_type);
        let mut budget = sizes.budget();
        let writers = schema.bytes_in_memory().map_err(Failure::request)?;
        budget.chain_bytes = budget.chain_bytes.saturating_add(writers);
        budget.memory_bytes = with_writers(&sizes, writers);
        let checkpoint = (inner + sizes.noise_coordinates + sizes.architecture.readout_parameters())
            as u64
            * (2 * real as u64 + 16);
        let disk = schema.bytes_on_disk().map_err(Failure::request)?;
        Ok(Self {
            disk_bytes: disk.saturating_add(checkpoint.saturating_mul(sizes.chains as u64)),
            checkpoint_bytes: checkpoint,
            folder_bytes: disk,
            sizes,
            budget,
            writer_bytes: writers,
            schema,
        })
    }

    /// Refuses a run that this machine has not the memory or the disk for.
    ///
    /// # Errors
    /// A wrong request, with what would fit.
    pub fn check(&self, settings: &Settings, place: Destination<'_>) -> Result<(), Failure> {
        self.check_memory(settings)?;
        place.check(&self.schema, self.checkpoint_bytes)
    }

    /// Refuses a run that this machine has not the memory for.
    ///
    /// # Errors
    /// A wrong request, with what would fit.
    pub fn check_memory(&self, settings: &Settings) -> Result<(), Failure> {
        let available = available_memory();
        if self.budget.memory_bytes > available {
            let advice = self.advice(settings, available);
            return Err(Failure::request(format!(
                "the run needs {} of memory, {} are free{advice}",
                bytes(self.budget.memory_bytes as f64),
                bytes(available as f64),
            )));
        }
        Ok(())
    }

    /// What would fit into `available` bytes.
    fn advice(&self, settings: &Settings, available: u64) -> String {
        let fits = |sizes: &Sizes| with_writers(sizes, self.writer_bytes) <= available;
        let chains = largest(self.sizes.chains, |chains| {
            fits(&Sizes {
                chains,
                ..self.sizes.clone()
            })
        });
        let rows = largest(self.sizes.rows, |rows| {
            fits(&self.sizes.with_rows(settings, rows))
        });
        let width = self
            .sizes
            .architecture
            .hidden_widths()
            .into_iter()
            .max()
            .unwrap_or(0);
        let width = largest(width, |width| fits(&self.sizes.with_width(settings, width)));
        let mut ways = Vec::new();
        if let Some(chains) = chains {
            ways.push(format!("--chains {chains}"));
        }
        if let Some(rows) = rows {
            ways.push(format!("--train {rows}"));
        }
        if let Some(width) = width {
            ways.push(format!("hidden layers of width {width}"));
        }
        if ways.is_empty() {
            return "; take a smaller network or record less (--test, --projections, --keep-weights)".to_owned();
        }
        format!("; it would fit with {}", ways.join(", or with "))
    }
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

/// Positions that the chains of a run keep together, and draws whose predictions for the test rows are recorded.
pub fn kept(problem: &Problem) -> [u64; 2] {
    let (keeping, schedule) = (Keeping::new(&problem.settings), problem.settings.schedule());
    let predictions = match problem.description.test_rows {
        0 => 0,
        _ => keeping.predictions(schedule.draws),
    };
    [keeping.positions(schedule.draws), predictions]
        .map(|count| count.saturating_mul(schedule.chains as u64))
}

/// The same in words, as rows of a table.
pub fn kept_rows(settings: &Settings, [positions, predictions]: [u64; 2]) -> [Vec<String>; 2] {
    let schedule = settings.schedule();
    let draws = schedule.draws.saturating_mul(schedule.chains as u64);
    let row = |name: &str, count: u64| vec![name.to_owned(), format!("{count} of {draws} draws")];
    [
        row("positions kept for `predict`", positions),
        row("predictions recorded", predictions),
    ]
}

/// Runs the command.
///
/// # Errors
/// A wrong request. A run that does not fit is reported, not refused: that is what planning is for.
pub fn command(arguments: &PlanArguments) -> Result<(), Failure> {
    let settings = Settings::from_arguments(&arguments.settings)?;
    if arguments.threads == Some(0) {
        return Err(Failure::request("--threads is 0: it must be at least 1"));
    }
    let problem = Problem::load(settings)?;
    if let Some(covariance) = problem.settings.sampler.method.covariance() {
        return closed_form::plan(&problem, covariance, arguments.json);
    }
    if let Some(resolved) = &problem.minibatch {
        return minibatch::plan(&problem, resolved, arguments.json);
    }
    let plan = Plan::new(&problem)?;
    let (budget, sizes) = (&plan.budget, &plan.sizes);
    let available = available_memory();
    let is_fitting = budget.memory_bytes <= available;
    let advice = if is_fitting {
        String::new()
    } else {
        plan.advice(&problem.settings, available)
    };
    let schedule = problem.settings.schedule();
    let kept = kept(&problem);
    if arguments.json {
        let document = json!({
            "memory_bytes": budget.memory_bytes,
            "memory_bytes_per_chain": budget.chain_bytes,
            "memory_bytes_available": available,
            "fits": is_fitting,
            "disk_bytes": plan.disk_bytes,
            "run_folder_bytes": plan.folder_bytes,
            "positions_kept": kept[0],
            "predictions_recorded": kept[1],
            "parameters": budget.parameters,
            "dimension": budget.dimension,
            "space": sizes.space.to_string(),
            "operations_per_value": budget.value_operations,
            "operations_per_gradient": budget.gradient_operations,
            "transitions": schedule.transitions() * schedule.chains as u64,
        });
        to_stdout(&document.to_string());
        return Ok(());
    }
    to_stdout(&problem.description.in_words());
    for note in problem.notes() {
        to_stdout(&format!("note: {note}"));
    }
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let reduced = if sizes.is_reduced() {
        format!(
            " (first layer reduced from {} to {} inputs)",
            problem.description.columns + 1,
            sizes.first_rows
        )
    } else {
        String::new()
    };
    let mut rows = vec![
        row("parameters of the network", budget.parameters.to_string()),
        row(
            "coordinates of a chain",
            format!("{}{reduced}", budget.dimension),
        ),
        row(
            "operations for the log-density",
            format!("{} million", number(budget.value_operations / 1e6)),
        ),
        row(
            "transitions of all chains",
            (schedule.transitions() * schedule.chains as u64).to_string(),
        ),
        row("memory, shared", bytes(budget.shared_bytes as f64)),
        row("memory, each chain", bytes(budget.chain_bytes as f64)),
        row(
            "memory, in all",
            format!(
                "{} of {} free",
                bytes(budget.memory_bytes as f64),
                bytes(available as f64)
            ),
        ),
        row("disk, while it runs", bytes(plan.disk_bytes as f64)),
        row("run folder, at the end", bytes(plan.folder_bytes as f64)),
    ];
    rows.extend(kept_rows(&problem.settings, kept));
    match sizes.determinant {
        Some(determinant) => {
            let how = determinant.seeded(0).to_string();
            rows.insert(2, row("determinant", how));
        }
        None => {
            let operations = budget.gradient_operations / 1e6;
            rows.insert(
                3,
                row(
                    "with its gradient",
                    format!("{} million", number(operations)),
                ),
            );
            rows.insert(
                2,
                row("readout solved for in", format!("{} space", sizes.space)),
            );
        }
    }
    to_stdout(&align(&rows));
    if !is_fitting {
        to_stdout(&format!("It does not fit{advice}."));
    }
    Ok(())
}
