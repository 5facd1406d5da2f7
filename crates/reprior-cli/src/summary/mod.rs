//! `reprior summary` and `reprior report`; a summary in words and tables: few numbers and the verdict, or with `--verbose` all of them.

mod minibatches;

use std::path::Path;

use reprior_io::run::atomic;
use reprior_report::{RunPage, page};
use reprior_run::words::{align, duration, number};
use reprior_run::{
    DataDescription, Failure, LeaveOneOutSummary, Summary, kept_in_words, summarise, target_rows,
};

use crate::arguments::{ReportArguments, SummaryArguments};
use crate::progress::RowsDisplay;
use crate::table::to_stdout;

/// Metrics that a newcomer needs.
const SHORT: &[&str] = &[
    "rmse",
    "accuracy",
    "mean confidence",
    "negative log-likelihood",
    "coverage of 90 % intervals",
];

/// Runs `reprior summary`.
///
/// # Errors
/// A wrong request: not a run; a run without draws yet.
pub fn command(arguments: &SummaryArguments) -> Result<(), Failure> {
    let summary = summarise(&arguments.run)?;
    let form = match (arguments.json, arguments.verbose) {
        (true, _) => Form::Json,
        (false, true) => Form::Verbose,
        (false, false) => Form::Short,
    };
    print(&arguments.run, &summary, form)
}

/// Prints the summary of a run that has just ended.
///
/// # Errors
/// A run folder that cannot be read.
pub fn print_after_run(run: &Path, summary: &Summary, is_json: bool) -> Result<(), Failure> {
    if is_json {
        return print(run, summary, Form::Json);
    }
    print(run, summary, Form::AfterRun)?;
    to_stdout(&kept_in_words(run)?);
    Ok(())
}

/// Runs `reprior report`.
///
/// # Errors
/// A wrong request: not a run, several runs without `--out`, other predictions that cannot be compared; a disk that refuses.
pub fn report(arguments: &ReportArguments) -> Result<(), Failure> {
    let path = match (&arguments.out, arguments.runs.as_slice()) {
        (Some(path), _) => path.clone(),
        (None, [run]) => run.join("report.html"),
        (None, _) => {
            return Err(Failure::request(
                "several runs make one page that is in none of their folders: say where with --out FILE",
            ));
        }
    };
    if !arguments.ood.is_empty() && arguments.runs.len() > 1 {
        return Err(Failure::request(
            "--ood compares with the test rows of one run: give one run",
        ));
    }
    let runs = arguments.runs.iter();
    let mut shown = RowsDisplay::new("rows predicted to see what the inputs do");
    let runs: Vec<RunPage> = runs
        .map(|run| {
            RunPage::of(run, &arguments.ood, &mut |done, total| {
                shown.update(done, total);
                Ok(())
            })
        })
        .collect::<Result<_, _>>()?;
    let text = page(&runs).map_err(Failure::run)?;
    atomic::write(&path, text.as_bytes()).map_err(Failure::run)?;
    match arguments.json {
        true => to_stdout(&in_json(&path, &runs).to_string()),
        false => to_stdout(&format!("Report: {}", path.display())),
    }
    Ok(())
}

/// What the page shows beyond the summary, with the summary.
fn in_json(path: &Path, runs: &[RunPage]) -> serde_json::Value {
    let of_run = |run: &RunPage| {
        let (inputs, without_inputs) = match &run.effects {
            Some(Ok(effects)) => (Some(effects), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        serde_json::json!({
            "run": run.folder,
            "summary": run.summary,
            "pit": run.pit,
            "inputs": inputs,
            "without_inputs": without_inputs,
        })
    };
    let runs: Vec<_> = runs.iter().map(of_run).collect();
    serde_json::json!({ "report": path, "runs": runs })
}

/// How a summary is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    /// Few numbers; what there is to know of the data was said when the run began.
    AfterRun,
    /// Few numbers.
    Short,
    /// All numbers.
    Verbose,
}

fn print(run: &Path, summary: &Summary, form: Form) -> Result<(), Failure> {
    if form == Form::Json {
        to_stdout(&serde_json::to_string(summary).map_err(Failure::run)?);
    } else {
        let mut description = DataDescription::of(run)?;
        if let Some(description) = description.as_mut().filter(|_| form == Form::AfterRun) {
            description.leave_notes_out();
        }
        to_stdout(&in_words(
            summary,
            run,
            description.as_ref(),
            form == Form::Verbose,
        ));
    }
    Ok(())
}

fn in_words(
    summary: &Summary,
    run: &Path,
    description: Option<&DataDescription>,
    verbose: bool,
) -> String {
    let mut text = String::new();
    if let Some(description) = description {
        text += &format!("{}\n", description.in_words());
        text.extend(
            description
                .notes()
                .into_iter()
                .map(|note| format!("note: {note}\n")),
        );
    }
    text += &match verbose {
        true => at_length(summary),
        false => in_short(summary),
    };
    if let Some(loo) = &summary.loo {
        text += &match verbose {
            true => leave_one_out_at_length(loo),
            false => format!("{}\n\n", loo.in_short()),
        };
    }
    for warning in &summary.warnings {
        text += &format!("warning: {warning}\n");
    }
    text += &format!("Verdict: {}.\n", summary.verdict.sentence);
    text + &format!("Run folder: {}", run.display())
}

/// At most six numbers: what was run, how good its predictions are, and what the verdict rests on.
fn in_short(summary: &Summary) -> String {
    let time = duration(summary.seconds);
    let mut text = match summary.draws_planned {
        1 => format!("{} in {time}\n\n", summary.method),
        _ => format!(
            "{}: {} x {} draws in {time}\n\n",
            summary.method,
            match summary.chains {
                1 => "1 chain".to_owned(),
                many => format!("{many} chains"),
            },
            summary.draws
        ),
    };
    text += &metrics_in_words(summary, SHORT);
    let mut rows = Vec::new();
    let mut row = |name: &str, value: f64| {
        if value.is_finite() {
            rows.push(vec![name.to_owned(), number(value)]);
        }
    };
    match (&summary.ess.row_noise, summary.noise.as_slice()) {
        (Some(of_rows), _) => row("R-hat of the noise of the rows, maximum", of_rows.rhat_max),
        (None, [noise]) => row(summary.noise_name(), noise.mean),
        _ => (),
    }
    let of = [
        ("predictions", &summary.ess.prediction),
        ("weights", &summary.ess.weights),
    ];
    // predictions are what counts, where there are any
    if let Some((name, ess)) = of
        .iter()
        .find_map(|(name, ess)| Some((name, ess.as_ref()?)))
    {
        row(&format!("R-hat of {name}, maximum"), ess.rhat_max);
        row(
            &format!("effective draws of {name}, minimum"),
            ess.min.min(ess.tail_min),
        );
    }
    if let Some(evidence) = summary.log_marginal_likelihood {
        row("log marginal likelihood", evidence);
    }
    if let Some(evidence) = &summary.evidence {
        rows.push(vec!["log evidence".to_owned(), evidence.in_words()]);
    }
    if !rows.is_empty() {
        let title = match summary.ess.prediction.is_some() || summary.ess.weights.is_some() {
            true => "can it be believed",
            false => "the model",
        };
        text += &format!("{title}\n{}\n\n", align(&rows));
    }
    text
}

/// Every number.
fn at_length(summary: &Summary) -> String {
    let mut text = String::new();
    if let (Some(evidence), None) = (summary.log_marginal_likelihood, &summary.minibatch) {
        text += &format!(
            "{} likelihood, {} in closed form, in {}\n\n",
            summary.likelihood,
            summary.method,
            duration(summary.seconds)
        );
        text += &metrics_in_words(summary, &[]);
        return text + &format!("log marginal likelihood {} nats\n\n", number(evidence));
    }
    text += &match &summary.minibatch {
        Some(minibatch) => minibatches::minibatches_in_words(minibatch, summary),
        None => transitions_in_words(summary),
    };
    if let Some(stationarity) = &summary.stationarity {
        let verdict = if stationarity.is_reached {
            "has settled"
        } else {
            "has not settled"
        };
        text += &format!(
            "the log-density {verdict}: R-hat {}, its mean over the second halves of the chains {:+.1} Monte Carlo standard errors \
             from that over the first\n\n",
            number(stationarity.rhat),
            stationarity.drift
        );
    }
    let mut rows: Vec<Vec<String>> = vec![
        [
            "effective draws of",
            "mean",
            "minimum",
            "of tails",
            "per draw",
            "per step",
            "per gradient",
            "per second",
        ]
        .map(String::from)
        .to_vec(),
    ];
    let blocks = [
        ("predictions", &summary.ess.prediction),
        ("noise of the rows", &summary.ess.row_noise),
        ("weights (random projections)", &summary.ess.weights),
    ];
    for (name, ess) in blocks {
        if let Some(ess) = ess {
            let values = [ess.mean, ess.min, ess.tail_min, ess.per_draw, ess.per_step];
            let mut cells = vec![name.to_owned()];
            cells.extend(values.map(number));
            cells.push(ess.per_gradient.map_or_else(|| "-".to_owned(), number));
            cells.push(number(ess.per_second));
            rows.push(cells);
        }
    }
    if rows.len() > 1 {
        text += &format!("{}\n\n", align(&rows));
    }
    if let Some(modes) = &summary.modes {
        let rows = modes.rows(summary);
        text += &format!("{}\n{}\n\n", modes.title(), align(&rows));
    }
    text
}

/// Learned scales of the noise and of weights, if there are any.
fn scales_in_words(summary: &Summary) -> String {
    let noise = summary.noise.iter().map(|own| {
        let values = [own.mean, own.sd, own.q05, own.q95, own.rhat];
        (&own.output, values)
    });
    let weights = summary.weight_scales.iter().map(|own| {
        let values = [own.mean, own.sd, own.q05, own.q95, own.rhat];
        (&own.weights, values)
    });
    let mut text = table_of_scales(&format!("{} of", summary.noise_name()), noise);
    text += &table_of_scales("learned scale of the weights of", weights);
    text
}

fn table_of_scales<'a>(name: &str, scales: impl Iterator<Item = (&'a String, [f64; 5])>) -> String {
    let mut head = vec![name.to_owned()];
    head.extend(["mean", "sd", "5 %", "95 %", "R-hat"].map(String::from));
    let mut rows = vec![head];
    for (of, values) in scales {
        let mut row = vec![of.clone()];
        row.extend(values.map(|value| match value.is_finite() {
            true => number(value),
            false => "-".to_owned(),
        }));
        rows.push(row);
    }
    match rows.len() {
        1 => String::new(),
        _ => format!("{}\n\n", align(&rows)),
    }
}

/// Of a method that uses all data at once: what was run, its metrics, learned noise, how the sampler fared.
fn transitions_in_words(summary: &Summary) -> String {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut text = String::new();
    text += &format!(
        "{} likelihood, {} in {} coordinates{}: {} chains x {} draws{}, {} transitions in {} ({} a second)\n\n",
        summary.likelihood,
        summary.method,
        summary.coordinates,
        match &summary.determinant {
            Some(how) => format!(" (determinant {how})"),
            None => String::new(),
        },
        summary.chains,
        summary.draws,
        if summary.draws < summary.draws_planned {
            format!(" of {}", summary.draws_planned)
        } else {
            String::new()
        },
        summary.steps,
        duration(summary.seconds),
        number(summary.steps_per_second),
    );
    text += &metrics_in_words(summary, &[]);
    text += &scales_in_words(summary);
    text += "sampler\n";
    let mut rows = vec![row("acceptance rate", number(summary.acceptance_rate))];
    let steps: Vec<f64> = summary.step_size.iter().flatten().copied().collect();
    if !steps.is_empty() {
        rows.push(row(
            "step size (mean over chains)",
            number(steps.iter().sum::<f64>() / steps.len() as f64),
        ));
    }
    if summary.divergences > 0 {
        rows.push(row("divergences", summary.divergences.to_string()));
    }
    if summary.n_clamped > 0 {
        rows.push(row("variances clamped at 0", summary.n_clamped.to_string()));
    }
    if let Some(energy) = &summary.energy_error {
        rows.push(row("energy error, sd", number(energy.sd)));
    }
    if let Some(variance) = summary.energy_variance {
        rows.push(row(
            "energy error per coordinate, mean square",
            number(variance),
        ));
    }
    if let Some(evidence) = &summary.evidence {
        rows.push(row("log evidence", evidence.in_words()));
        rows.push(row("temperatures", evidence.temperatures.to_string()));
        rows.extend(evidence.families.map(|families| {
            row(
                "prior draws that particles descend from",
                families.to_string(),
            )
        }));
    }
    if let Some(exchanges) = &summary.exchanges {
        let [least, most] = exchanges.least_and_most();
        rows.push(row(
            "exchanges refused, of each pair",
            format!("{} to {}", number(least), number(most)),
        ));
        rows.push(row("barrier, their sum", number(exchanges.barrier)));
        rows.push(row(
            "positions from the prior, of each chain at least",
            exchanges.fewest_arrivals().to_string(),
        ));
    }
    if summary.n_gradients > 0 {
        rows.push(row("gradient evaluations", summary.n_gradients.to_string()));
    }
    if summary.n_evaluations > 0 {
        rows.push(row("other evaluations", summary.n_evaluations.to_string()));
    }
    rows.push(row("R-hat, largest", number(summary.rhat_max)));
    text += &format!("{}\n\n", align(&rows));
    text
}

/// How well left-out training rows are predicted, and whether that can be trusted.
fn leave_one_out_at_length(loo: &LeaveOneOutSummary) -> String {
    let rows = loo.named().into_iter();
    let rows: Vec<_> = rows.map(|(name, value)| vec![name, value]).collect();
    format!("{}\n{}\n{}\n\n", loo.title(), align(&rows), loo.trust())
}

/// Those of these names; all, if none is named.
fn metrics_in_words(summary: &Summary, names: &[&str]) -> String {
    let Some(metrics) = &summary.metrics else {
        return String::new();
    };
    let named = metrics.named().into_iter();
    let rows: Vec<_> = named
        .filter(|(name, _)| names.is_empty() || names.contains(name))
        .map(|(name, value)| vec![name.to_owned(), number(value)])
        .collect();
    let of = summary.predictions_are_of();
    let mut text = format!("predictions on the test rows{of}\n{}\n\n", align(&rows));
    if !summary.metrics_by_target.is_empty() {
        let rows = target_rows(&summary.metrics_by_target, number);
        text += &format!("the same, each target by itself\n{}\n\n", align(&rows));
    }
    text
}
