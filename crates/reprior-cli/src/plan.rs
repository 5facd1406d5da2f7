//! `reprior plan`: memory, disk, operations and time, before anything is sampled.

use reprior_run::words::align;
use reprior_run::{Failure, prepare};
use serde_json::Value;

use crate::arguments::PlanArguments;
use crate::table::to_stdout;

/// Runs the command.
///
/// # Errors
/// A wrong request. A run that does not fit is reported, not refused: that is what planning is for.
pub fn command(arguments: &PlanArguments) -> Result<(), Failure> {
    let settings = arguments.settings.settings()?;
    if arguments.threads == Some(0) {
        return Err(Failure::request("--threads is 0: it must be at least 1"));
    }
    let problem = prepare(settings)?;
    let threads = arguments
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let plan = reprior_run::plan_with_time(&problem, threads)?;
    if arguments.json {
        to_stdout(&Value::Object(plan.document).to_string());
        return Ok(());
    }
    to_stdout(&problem.description.in_words());
    for note in problem.notes() {
        to_stdout(&format!("note: {note}"));
    }
    let rows: Vec<_> = plan.rows.iter().map(|row| row.to_vec()).collect();
    to_stdout(&align(&rows));
    if !plan.fits() {
        to_stdout(&format!("It does not fit{}.", plan.way_out));
    }
    Ok(())
}
