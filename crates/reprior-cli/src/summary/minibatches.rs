//! What minibatch methods, and Laplace approximations, say in a summary with all numbers.

use super::scales_in_words;
use reprior_run::words::{align, duration, number};
use reprior_run::{LaplaceFitSummary, Metrics, MinibatchSummary, Summary, target_rows};

fn row(name: &str, value: String) -> Vec<String> {
    vec![name.to_owned(), value]
}

/// The paragraphs that are its own, between the description of the data and the effective draws.
pub fn minibatches_in_words(own: &MinibatchSummary, summary: &Summary) -> String {
    let mut text = format!(
        "{} likelihood, {} (preconditioner {}, {} parametrisation): {} chains x {} draws{}, {} updates in {} ({} a second)\n\n",
        summary.likelihood,
        summary.method,
        own.preconditioner,
        own.parametrisation,
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
    text += &metrics(own, summary);
    text += &scales_in_words(summary);
    let mut rows = vec![
        row("epochs", own.epochs.to_string()),
        row("rows of a minibatch", own.batch.to_string()),
        row("schedule", own.schedule.clone()),
    ];
    if own.held_out > 0 {
        rows.push(row("training rows held out", own.held_out.to_string()));
    }
    let steps: Vec<f64> = summary.step_size.iter().flatten().copied().collect();
    rows.push(row(
        "step size at the end",
        number(steps.iter().sum::<f64>() / steps.len() as f64),
    ));
    for (name, value) in [
        ("train NLL, last epoch", own.train_nll),
        ("validation NLL, last epoch", own.validation_nll),
        (
            "configurational temperature",
            own.configurational_temperature,
        ),
        ("kinetic temperature", own.kinetic_temperature),
        ("R-hat, largest", summary.rhat_max),
    ] {
        if value.is_finite() {
            rows.push(row(name, number(value)));
        }
    }
    for (index, fit) in own.laplace.iter().enumerate() {
        let name = |what: &str| match own.laplace.len() {
            1 => what.to_owned(),
            _ => format!("{what}, chain {}", summary.chain_number(index)),
        };
        rows.push(row(&name("log marginal likelihood"), evidence(fit)));
        rows.push(row(&name("nats below the mode"), distance(fit)));
    }
    if own.n_corrections > 0 {
        rows.push(row("corrections", own.n_corrections.to_string()));
    }
    text + &format!("{}\n\n", align(&rows))
}

/// Metrics of the draws, and beside them those of their mean or in closed form.
fn metrics(own: &MinibatchSummary, summary: &Summary) -> String {
    let Some(metrics) = &summary.metrics else {
        return String::new();
    };
    let (others, name) = match &own.metrics_in_closed_form {
        Some(closed) => (Some(closed), "closed form"),
        None => (own.metrics_of_mean.as_ref(), "their mean"),
    };
    let others = others.map(Metrics::named);
    let of = match summary.metrics_draws < summary.draws {
        true => format!("{} of {} draws", summary.metrics_draws, summary.draws),
        false => "draws".to_owned(),
    };
    let mut header = row("predictions on the test rows", of);
    header.extend(others.as_ref().map(|_| name.to_owned()));
    let mut rows = vec![header];
    for (index, (name, value)) in metrics.named().into_iter().enumerate() {
        let mut cells = row(name, number(value));
        cells.extend(others.as_ref().map(|others| number(others[index].1)));
        rows.push(cells);
    }
    let mut text = format!("{}\n\n", align(&rows));
    if !summary.metrics_by_target.is_empty() {
        let rows = target_rows(&summary.metrics_by_target, number);
        text += &format!("{}\n\n", align(&rows));
    }
    text
}

/// The evidence of a Laplace approximation, and what it is of.
fn evidence(fit: &LaplaceFitSummary) -> String {
    let [least, most] = fit.prior_precision;
    let precision = match least == most {
        true => number(least),
        false => format!("{} to {}", number(least), number(most)),
    };
    let mut text = format!(
        "{}, prior precision {precision}, {} random weights",
        number(fit.log_marginal_likelihood),
        fit.parameters
    );
    if let Some(pairs) = fit.eigenpairs {
        text += &format!(", {pairs} eigenpairs");
    }
    if fit.products > 0 {
        text += &format!(" from {} products", fit.products);
    }
    if let Some(left) = fit.left_out.filter(|left| left.directions > 0) {
        text += &format!(
            "; at most {} nats of log det in {} directions left out",
            number(left.log_determinant),
            left.directions
        );
    }
    text
}

/// How far from the mode it is.
fn distance(fit: &LaplaceFitSummary) -> String {
    let mut text = number(fit.nats_to_mode);
    if fit.climb_gradients > 0 {
        text += &format!(
            ", after rising by {} in {} gradients of all rows",
            number(fit.nats_climbed),
            fit.climb_gradients
        );
    }
    text
}
