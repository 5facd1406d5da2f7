//! `reprior bench`: where the time of a step goes on this machine, as a table or as JSON.

use reprior_run::words::{align, number};
use reprior_run::{Benchmark, Failure, benchmark};
use serde_json::{Value, json};

use crate::arguments::BenchArguments;
use crate::table::to_stdout;

/// Runs the command.
///
/// # Errors
/// A wrong request; a problem whose ℓ cannot be evaluated at a draw of the prior.
pub fn command(arguments: &BenchArguments) -> Result<(), Failure> {
    let found = benchmark(arguments.settings.settings()?, arguments.seconds)?;
    to_stdout(&match arguments.json {
        true => in_json(&found).to_string(),
        false => in_words(&found),
    });
    Ok(())
}

fn necessary(found: &Benchmark) -> f64 {
    found.parts.iter().map(|part| part.seconds_at_peak).sum()
}

fn in_json(found: &Benchmark) -> Value {
    let parts: Vec<Value> = found
        .parts
        .iter()
        .map(|part| {
            json!({
                "name": part.name,
                "operations": part.operations.map(|(operations, _)| operations),
                "seconds": part.seconds,
                "seconds_at_peak": part.seconds_at_peak,
            })
        })
        .collect();
    let necessary = necessary(found);
    json!({
        "precision": found.precision,
        "peak": found.peaks[0],
        "peak_double": found.peaks[1],
        "parts": parts,
        "seconds_necessary": necessary,
        "seconds_per_step": found.seconds_per_step,
        "step_to_necessary": found.seconds_per_step / necessary,
        "seconds_per_gradient": found.seconds_per_gradient,
    })
}

fn in_words(found: &Benchmark) -> String {
    let milliseconds = |seconds: f64| format!("{:.3}", 1e3 * seconds);
    let head = format!(
        "{}, one thread; dense products: {} Gflop/s, in f64 {}",
        found.problem,
        number(found.peaks[0] / 1e9),
        number(found.peaks[1] / 1e9),
    );
    let cells = |cells: [&str; 5]| cells.map(str::to_owned).to_vec();
    let mut rows = vec![cells(["part", "Mflop", "ms at peak", "ms", "of peak"])];
    let share = |part: f64, of: f64| format!("{:.0} %", 100.0 * part / of);
    for part in &found.parts {
        let (flops, share) = match part.operations {
            Some((operations, _)) => (
                number(operations / 1e6),
                share(part.seconds_at_peak, part.seconds),
            ),
            None => ("-".into(), "-".into()),
        };
        rows.push(vec![
            part.name.into(),
            flops,
            milliseconds(part.seconds_at_peak),
            milliseconds(part.seconds),
            share,
        ]);
    }
    let necessary = necessary(found);
    let sum: f64 = found.parts.iter().map(|part| part.seconds).sum();
    rows.push(vec![
        "all parts".into(),
        "-".into(),
        milliseconds(necessary),
        milliseconds(sum),
        share(necessary, sum),
    ]);
    format!(
        "{head}\n{}\n\na step of pcn: {} ms, {:.2} times what is necessary (operations at peak, noise and activation as they are)\n\
         the log-density with its gradient: {} ms",
        align(&rows),
        milliseconds(found.seconds_per_step),
        found.seconds_per_step / necessary,
        milliseconds(found.seconds_per_gradient),
    )
}
