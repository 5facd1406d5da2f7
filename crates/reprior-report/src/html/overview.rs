//! The first screen: what was run, whether it can be believed, what it predicts; and several runs in one table.

use maud::{Markup, html};

use super::{comparison, item};
use reprior_run::Nature;
use reprior_run::words::{duration, number};
use reprior_run::{Level, Metrics, Verdict, target_rows};

use crate::RunPage;

fn sign(level: Level) -> Markup {
    html! {
        span class=(format!("sign {}", level.class())) title=(level.word()) {
            span aria-hidden="true" { (level.symbol()) }
            span.unseen { (level.word()) ": " }
        }
    }
}

pub(super) fn first_screen(run: &RunPage, verdict: &Verdict) -> Markup {
    let summary = &run.summary;
    html! {
        p.sentence { (sentence(run)) }
        p.quiet {
            (run.data)
            @if run.is_in_memory { ". A run in memory." } @else { ". Folder: " code { (run.folder.display()) } }
        }
        @for note in &run.notes {
            p.quiet { "Note: " (note) }
        }
        div class=(format!("verdict {}", verdict.level.class())) {
            h2 { (sign(verdict.level)) (capital(&verdict.sentence)) "." }
            @for check in verdict.checks.iter().filter(|check| check.name == "calibration") {
                p { (capital(&check.value)) ": " (check.meaning) "." }
            }
            @if !summary.warnings.is_empty() {
                ul { @for warning in &summary.warnings { li { (capital(warning)) "." } } }
            }
        }
        div.pair {
            div {
                h3 { "Can it be believed?" }
                @if !run.nature.has_chains() {
                    p.missing { (unchecked(run)) }
                }
                @if !verdict.checks.is_empty() {
                    (checks(verdict))
                }
                (modes(run))
            }
            div {
                h3 { "What it predicts" }
                (metrics(run))
                (left_out(run))
            }
        }
    }
}

fn unchecked(run: &RunPage) -> &'static str {
    match run.nature {
        Nature::ClosedForm => {
            "There are no draws: R-hat, effective sample sizes and acceptance have no meaning here."
        }
        _ => {
            "There are no chains: R-hat, effective sample sizes and acceptance have no meaning here."
        }
    }
}

fn checks(verdict: &Verdict) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table.checks {
                tbody {
                    @for check in &verdict.checks {
                        tr {
                            td { (sign(check.level)) }
                            th scope="row" { (capital(&check.name)) }
                            td { strong { (check.value) } ": " span.meaning { (check.meaning) } }
                        }
                    }
                }
            }
        }
    }
}

fn metrics(run: &RunPage) -> Markup {
    let summary = &run.summary;
    let Some(metrics) = &summary.metrics else {
        let why = match &run.predictions {
            Err(why) => why.as_str(),
            Ok(_) => "no test rows, or no draws yet",
        };
        return html! { p.missing { "There is nothing to compare predictions with: " (why) "." } };
    };
    let minibatch = summary.minibatch.as_ref();
    let others = [
        (
            "of the draws' mean weights",
            minibatch.and_then(|own| own.metrics_of_mean.as_ref()),
        ),
        (
            "in closed form",
            minibatch.and_then(|own| own.metrics_in_closed_form.as_ref()),
        ),
    ];
    let others: Vec<_> = others
        .into_iter()
        .filter_map(|(name, found)| Some((name, found?.named())))
        .collect();
    let of = match run.nature {
        Nature::ClosedForm => "in closed form",
        _ => "draws",
    };
    let mut columns = vec!["test rows".to_owned(), of.to_owned()];
    columns.extend(others.iter().map(|(name, _)| (*name).to_owned()));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (name, value) in metrics.named() {
        let mut row = vec![name.to_owned(), number(value)];
        for (_, found) in &others {
            let same = found.iter().find(|(other, _)| *other == name);
            row.push(same.map_or_else(|| "-".to_owned(), |(_, value)| number(*value)));
        }
        rows.push(row);
    }
    if let Some(evidence) = summary.log_marginal_likelihood {
        rows.push(vec![
            "log marginal likelihood (nats)".to_owned(),
            number(evidence),
        ]);
    }
    if let Some(evidence) = &summary.evidence {
        rows.push(vec!["log evidence".to_owned(), evidence.in_words()]);
    }
    for noise in &summary.noise {
        let interval = format!(
            "{} ({} to {})",
            number(noise.mean),
            number(noise.q05),
            number(noise.q95)
        );
        rows.push(vec![
            format!("{} of {}", summary.noise_name(), noise.output),
            interval,
        ]);
    }
    let of = summary.predictions_are_of();
    let mut of_targets = target_rows(&summary.metrics_by_target, number);
    html! {
        (item::table(&columns, &rows))
        @if !of.is_empty() {
            p.quiet { "Predictions on the test rows" (of) "." }
        }
        @if !summary.metrics_by_target.is_empty() {
            (item::table(&of_targets.remove(0), &of_targets))
        }
    }
}

/// Leave-one-out cross-validation, or why there is none.
fn left_out(run: &RunPage) -> Markup {
    let found = match &run.left_out {
        Ok(found) => &found.summary,
        Err(why) => {
            return html! { p.missing { "There is no leave-one-out cross-validation: " (why) "." } };
        }
    };
    let rows = found.named().into_iter();
    let rows: Vec<_> = rows.map(|(name, value)| vec![name, value]).collect();
    let columns = ["left-out training rows", "nats"].map(str::to_owned);
    html! {
        (item::table(&columns, &rows))
        p.quiet { (capital(&found.title())) ". " (capital(&found.trust())) "." }
    }
}

/// The chains one by one, where they disagree.
fn modes(run: &RunPage) -> Markup {
    let summary = &run.summary;
    let Some(modes) = &summary.modes else {
        return html! {};
    };
    let mut rows = modes.rows(summary);
    let header = rows.remove(0);
    html! {
        (item::table(&header, &rows))
        p.quiet { (capital(&modes.title())) "." }
    }
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters
        .next()
        .map(|first| first.to_uppercase().collect::<String>());
    first.unwrap_or_default() + characters.as_str()
}

/// What was run.
fn sentence(run: &RunPage) -> String {
    let summary = &run.summary;
    let configuration: toml::Table = toml::from_str(&run.configuration).unwrap_or_default();
    let setting = |section: &str, key: &str| {
        let value = configuration.get(section)?.get(key)?;
        match value {
            toml::Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    };
    let network = setting("model", "network").unwrap_or_else(|| "unknown".to_owned());
    let source = setting("data", "source").unwrap_or_else(|| "unknown".to_owned());
    let method = &summary.method;
    // number and unit stay on one line
    let time = duration(summary.seconds).replace(' ', "\u{a0}");
    let likelihood = &summary.likelihood;
    let problem = format!("the network {network} with the {likelihood} likelihood, given {source}");
    let count = match summary.draws < summary.draws_planned {
        true => format!("{} of {}", summary.draws, summary.draws_planned),
        false => summary.draws.to_string(),
    };
    let draws = format!("{count} draws");
    match run.nature {
        Nature::Chains if run.has_particles() => format!(
            "{} of {method} in {} coordinates approximated the posterior of {problem}: {count} particles each, {} at each temperature, in {time}.",
            plural(summary.chains, "replicate"),
            summary.coordinates,
            plural(summary.thin as usize, "transition"),
        ),
        Nature::Chains => {
            let chains = plural(summary.chains, "chain");
            format!(
                "{chains} of {method} in {} coordinates sampled the posterior of {problem}: {draws} each, one every {} after {} of warm-up, \
                 in {time}.",
                summary.coordinates,
                plural(summary.thin as usize, "transition"),
                summary.warmup,
            )
        }
        Nature::ApproximateChains => {
            let chains = plural(summary.chains, "chain");
            let own = summary.minibatch.clone().unwrap_or_default();
            format!(
                "{chains} of {method} (preconditioner {}, minibatches of {} rows, {}) sampled the posterior of {problem}, approximately: \
                 {draws} each, in {time}.",
                own.preconditioner,
                own.batch,
                plural(own.epochs as usize, "epoch"),
            )
        }
        Nature::Draws => format!(
            "{} approximated the posterior of {problem}: {draws} each from {}, in {time}.",
            capital(method),
            plural(summary.chains, "start"),
        ),
        Nature::ClosedForm => format!(
            "{}, the posterior of {problem} with infinitely wide layers, in closed form, in {time}.",
            method.to_uppercase()
        ),
    }
}

fn plural(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    }
}

/// One metric; NaN where there is none.
fn metric(metrics: Option<&Metrics>, name: &str) -> f64 {
    let mut all = metrics.into_iter().flat_map(Metrics::named);
    let found = all.find(|(own, _)| *own == name);
    found.map_or(f64::NAN, |(_, value)| value)
}

/// One row per run.
pub(super) fn compared(runs: &[RunPage], names: &[String], verdicts: &[&Verdict]) -> Markup {
    let columns = [
        "run",
        "verdict",
        "method",
        "coordinates",
        "R-hat, largest",
        "effective predictions, mean",
        "acceptance",
        "negative log-likelihood",
        "rmse",
        "accuracy",
        "time",
    ];
    html! {
        p { "Runs of the same data can be compared; of different data, their metrics cannot." }
        div.scroll tabindex="0" {
            table.comparison {
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody {
                    @for (index, (run, verdict)) in runs.iter().zip(verdicts).enumerate() {
                        @let summary = &run.summary;
                        tr {
                            th scope="row" { a href=(format!("#run-{index}")) { (names[index]) } }
                            td { (sign(verdict.level)) span aria-hidden="true" { (verdict.level.word()) } }
                            td { (summary.method) }
                            td { (summary.coordinates) }
                            td { (number(summary.rhat_max)) }
                            td { (number(summary.ess.prediction.as_ref().map_or(f64::NAN, |ess| ess.mean))) }
                            td { (number(summary.acceptance_rate)) }
                            td { (number(metric(summary.metrics.as_ref(), "negative log-likelihood"))) }
                            td { (number(metric(summary.metrics.as_ref(), "rmse"))) }
                            td { (number(metric(summary.metrics.as_ref(), "accuracy"))) }
                            td { (duration(summary.seconds)) }
                        }
                    }
                }
            }
        }
        (comparison::left_out(runs, names))
    }
}
