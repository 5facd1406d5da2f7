//! A summary in words: tables, and what a user should know before believing the draws.

use std::path::Path;

use reprior::chain::Statistics;
use reprior::diagnostics::rhat_by_chance;
use reprior::sampler::Method;

use crate::problem::DataDescription;
use crate::summary::Summary;
use crate::table::{align, duration, number};

/// Acceptance rate from which on the Metropolis correction may be left out (Hron et al. 2022, Section 4).
const LEAST_UNCORRECTED: f64 = 0.98;

impl Summary {
    /// What a user should know before believing the draws; `uncorrected`: made without Metropolis correction.
    pub fn warnings_for(&self, sampling: &Statistics, uncorrected: bool) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |text: String| warnings.push(text);
        if self.draws == 0 {
            warn("there are no draws yet".to_owned());
            return warnings;
        }
        if self.draws < 4 {
            warn("too few draws for effective sample sizes and R-hat: at least 4 of each chain are needed".to_owned());
        }
        if self.chains == 1 {
            warn("one chain cannot show whether different starts agree: use --chains 4".to_owned());
        }
        let blocks = [&self.ess.prediction, &self.ess.weights]
            .into_iter()
            .flatten();
        let disagreeing =
            blocks.filter(|ess| ess.rhat_max > rhat_by_chance(self.chains, ess.mean).max(1.01));
        if let Some(ess) = disagreeing.max_by(|a, b| a.rhat_max.total_cmp(&b.rhat_max)) {
            warn(format!(
                "R-hat reaches {:.3}, more than chance explains: the chains do not agree yet; raise --warmup and --draws (or --thin)",
                ess.rhat_max
            ));
        }
        if let Some(ess) = &self.ess.prediction
            && ess.min < 100.0
        {
            let other = if self.method == Method::HmcInfinite.to_string() {
                ""
            } else {
                ", or try --method hmc-infinite"
            };
            warn(format!(
                "only {:.0} effective draws of some predictions (below 100): raise --draws or --thin{other}",
                ess.min
            ));
        }
        if uncorrected && self.acceptance_rate < LEAST_UNCORRECTED {
            warn(format!(
                "acceptance would be {:.3} with the Metropolis correction that was left out (below {LEAST_UNCORRECTED}): the draws are not of the posterior; lower --step-size, raise --target-acceptance, or leave --no-metropolis out",
                self.acceptance_rate
            ));
        } else if self.acceptance_rate < 0.1 {
            warn(format!(
                "acceptance is {:.3}: the step size is too large; let it adapt with a longer --warmup, or lower --step-size",
                self.acceptance_rate
            ));
        }
        if sampling.divergences * 1000 > sampling.transitions {
            warn(format!(
                "{} of {} transitions diverged or could not be evaluated: lower --step-size, or raise --target-acceptance",
                sampling.divergences, sampling.transitions
            ));
        }
        if self.n_jitter > 0 {
            warn(format!(
                "{} factorisations needed jitter on the diagonal: the kernel is nearly singular; raise --noise",
                self.n_jitter
            ));
        }
        warnings
    }

    pub fn in_words(&self, run: &Path, description: Option<&DataDescription>) -> String {
        let row = |name: &str, value: String| vec![name.to_owned(), value];
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
        text += &format!(
            "{} in {} coordinates: {} chains x {} draws{}, {} transitions in {} ({} a second)\n\n",
            self.method,
            self.coordinates,
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
        if let Some(metrics) = &self.metrics {
            text += "predictions on the test rows\n";
            let rows: Vec<_> = metrics
                .named()
                .into_iter()
                .map(|(name, value)| row(name, number(value)))
                .collect();
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
        rows.push(row("R-hat, largest", number(self.rhat_max)));
        text += &format!("{}\n\n", align(&rows));
        let mut rows: Vec<Vec<String>> = vec![
            [
                "effective draws of",
                "mean",
                "least",
                "per draw",
                "per step",
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
                let values = [
                    ess.mean,
                    ess.min,
                    ess.per_draw,
                    ess.per_step,
                    ess.per_second,
                ];
                rows.push(
                    std::iter::once(name.to_owned())
                        .chain(values.map(number))
                        .collect(),
                );
            }
        }
        if rows.len() > 1 {
            text += &format!("{}\n\n", align(&rows));
        }
        for warning in &self.warnings {
            text += &format!("warning: {warning}\n");
        }
        if self.warnings.is_empty() {
            text += "No sign that these draws should not be believed.\n";
        }
        text + &format!("Run folder: {}", run.display())
    }
}
