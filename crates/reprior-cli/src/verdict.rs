//! A summary in words and tables: few numbers and the verdict, or with `--verbose` all of them.

use std::path::Path;

use crate::problem::DataDescription;
use crate::summary::Summary;
use crate::table::{align, duration, number};

/// Metrics that a newcomer needs.
const SHORT: &[&str] = &[
    "rmse",
    "accuracy",
    "mean confidence",
    "negative log-likelihood",
    "coverage of 90 % intervals",
];

impl Summary {
    pub fn in_words(
        &self,
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
            true => self.at_length(),
            false => self.in_short(),
        };
        for warning in &self.warnings {
            text += &format!("warning: {warning}\n");
        }
        text += &format!("Verdict: {}.\n", self.verdict.sentence);
        text + &format!("Run folder: {}", run.display())
    }

    /// At most six numbers: what was run, how good its predictions are, and what the verdict rests on.
    fn in_short(&self) -> String {
        let time = duration(self.seconds);
        let mut text = match self.draws_planned {
            1 => format!("{} in {time}\n\n", self.method),
            _ => format!(
                "{}: {} x {} draws in {time}\n\n",
                self.method,
                match self.chains {
                    1 => "1 chain".to_owned(),
                    many => format!("{many} chains"),
                },
                self.draws
            ),
        };
        text += &self.metrics_in_words(SHORT);
        let mut rows = Vec::new();
        let mut row = |name: &str, value: f64| {
            if value.is_finite() {
                rows.push(vec![name.to_owned(), number(value)]);
            }
        };
        if let [noise] = self.noise.as_slice() {
            row("learned noise", noise.mean);
        }
        let of = [
            ("predictions", &self.ess.prediction),
            ("weights", &self.ess.weights),
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
        if let Some(evidence) = self.log_marginal_likelihood {
            row("log marginal likelihood", evidence);
        }
        if !rows.is_empty() {
            let title = match self.ess.prediction.is_some() || self.ess.weights.is_some() {
                true => "can it be believed",
                false => "the model",
            };
            text += &format!("{title}\n{}\n\n", align(&rows));
        }
        text
    }

    /// Every number.
    fn at_length(&self) -> String {
        let mut text = String::new();
        if let (Some(evidence), None) = (self.log_marginal_likelihood, &self.minibatch) {
            text += &format!(
                "{} likelihood, {} in closed form, in {}\n\n",
                self.likelihood,
                self.method,
                duration(self.seconds)
            );
            text += &self.metrics_in_words(&[]);
            return text + &format!("log marginal likelihood {} nats\n\n", number(evidence));
        }
        text += &match &self.minibatch {
            Some(minibatch) => minibatch.in_words(self),
            None => self.transitions_in_words(),
        };
        if let Some(stationarity) = &self.stationarity {
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
            ("predictions", &self.ess.prediction),
            ("weights (random projections)", &self.ess.weights),
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
        text
    }

    /// Of a method that uses all data at once: what was run, its metrics, learned noise, how the sampler fared.
    fn transitions_in_words(&self) -> String {
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let mut text = String::new();
        text += &format!(
            "{} likelihood, {} in {} coordinates{}: {} chains x {} draws{}, {} transitions in {} ({} a second)\n\n",
            self.likelihood,
            self.method,
            self.coordinates,
            match &self.determinant {
                Some(how) => format!(" (determinant {how})"),
                None => String::new(),
            },
            self.chains,
            self.draws,
            if self.draws < self.draws_planned {
                format!(" of {}", self.draws_planned)
            } else {
                String::new()
            },
            self.steps,
            duration(self.seconds),
            number(self.steps_per_second),
        );
        text += &self.metrics_in_words(&[]);
        if !self.noise.is_empty() {
            let mut rows = vec![
                ["learned noise of", "mean", "sd", "5 %", "95 %", "R-hat"]
                    .map(String::from)
                    .to_vec(),
            ];
            for noise in &self.noise {
                let values = [noise.mean, noise.sd, noise.q05, noise.q95, noise.rhat].map(number);
                rows.push(
                    std::iter::once(noise.output.clone())
                        .chain(values)
                        .collect(),
                );
            }
            text += &format!("{}\n\n", align(&rows));
        }
        text += "sampler\n";
        let mut rows = vec![row("acceptance rate", number(self.acceptance_rate))];
        let steps: Vec<f64> = self.step_size.iter().flatten().copied().collect();
        if !steps.is_empty() {
            rows.push(row(
                "step size (mean over chains)",
                number(steps.iter().sum::<f64>() / steps.len() as f64),
            ));
        }
        if self.divergences > 0 {
            rows.push(row("divergences", self.divergences.to_string()));
        }
        if self.n_clamped > 0 {
            rows.push(row("variances clamped at 0", self.n_clamped.to_string()));
        }
        if let Some(energy) = &self.energy_error {
            rows.push(row("energy error, sd", number(energy.sd)));
        }
        if self.n_gradients > 0 {
            rows.push(row("gradient evaluations", self.n_gradients.to_string()));
        }
        if self.n_evaluations > 0 {
            rows.push(row("other evaluations", self.n_evaluations.to_string()));
        }
        rows.push(row("R-hat, largest", number(self.rhat_max)));
        text += &format!("{}\n\n", align(&rows));
        text
    }

    /// Those of these names; all, if none is named.
    fn metrics_in_words(&self, names: &[&str]) -> String {
        let Some(metrics) = &self.metrics else {
            return String::new();
        };
        let named = metrics.named().into_iter();
        let rows: Vec<_> = named
            .filter(|(name, _)| names.is_empty() || names.contains(name))
            .map(|(name, value)| vec![name.to_owned(), number(value)])
            .collect();
        let of = if self.metrics_draws < self.draws {
            format!(
                ", by {} of the {} draws of each chain (--keep-predictions)",
                self.metrics_draws, self.draws
            )
        } else {
            String::new()
        };
        format!("predictions on the test rows{of}\n{}\n\n", align(&rows))
    }
}
