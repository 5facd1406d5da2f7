//! What the infinitely wide network says of a noise that is to be learned: where its prior has its median, and whether it depends on
//! the inputs.

use reprior::compute::matrix;
use reprior::gaussian_process::prior_scales::{fit_prior_scales, process_of};
use reprior::model::likelihood::name::LikelihoodName;
use reprior::network::infinite::InfiniteNetwork;

use super::evidence::Evidence;
use crate::settings::ModelSettings;
use crate::words::number;

/// Training rows by which the network's scales are fitted, and those whose residuals are tested.
const MOST_ROWS: usize = 500;
const MOST_TESTED: usize = 1500;
/// The median, in units of the standardised targets. Modes are searched with the noise held there: below the least they are
/// not found, and more noise than the targets have in all is no noise.
const MEDIANS: [f64; 2] = [0.3, 1.0];
/// The noise is taken to depend on the inputs where residuals are as unlikely as this without.
const VARYING: f64 = 0.01;
/// Below this a probability is not told.
const LEAST_P_VALUE: f64 = 1e-100;

impl Evidence<'_> {
    /// Whether a learned noise depends on the inputs, where the likelihood is open, and the median of its prior, where that is: the
    /// most likely noise where every input has a scale of its own (with one for all, inputs that do not matter are taken for noise),
    /// between bounds. What is not the usual is said.
    pub(super) fn choose_learned_noise(&self, settings: &mut ModelSettings) -> Option<String> {
        let columns = self.architecture.inputs();
        let (rows, inputs, targets) = self.rows(MOST_ROWS);
        let inputs = matrix(&inputs, columns, rows).transpose();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let by_scales = fit_prior_scales(self.architecture, inputs, &targets, self.search(threads));
        let of_network = || {
            let network = InfiniteNetwork::new(self.architecture)?;
            self.noise(&network, inputs, &targets, threads)
        };
        // the usual noise does without
        let by_scales = by_scales.ok().flatten();
        let mut said = Vec::new();
        if settings.likelihood.is_open() {
            let (rows, inputs, targets) = self.rows(MOST_TESTED);
            let inputs = matrix(&inputs, columns, rows).transpose();
            let process = by_scales.as_ref().and_then(|found| {
                process_of(self.architecture, inputs, &targets, found, threads).ok()?
            });
            let p_value = process.map_or(1.0, |process| {
                process.p_value_of_one_noise(inputs, &targets)
            });
            settings.likelihood = LikelihoodName::Gaussian.into();
            if p_value < VARYING {
                // tails that are a little heavier than the Gaussian's: single rows far out then cost little
                let likelihood = LikelihoodName::StudentTHeteroscedastic;
                settings.likelihood = likelihood.into();
                settings.choose_noise_variation();
                let p_value = match p_value < LEAST_P_VALUE {
                    true => format!("p < {LEAST_P_VALUE:.0e}"),
                    false => format!("p = {p_value:.0e}"),
                };
                said.push(format!(
                    "--likelihood {likelihood} (the noise of {rows} rows depends on the inputs, {p_value})"
                ));
            }
        }
        if settings.noise_median.is_none() {
            let noise = by_scales.map(|found| found.noise);
            let noise = noise.or_else(|| of_network().ok().map(|found| found.noise));
            let [least, most] = MEDIANS;
            let median = noise.map_or(least, |noise| noise.clamp(least, most));
            settings.noise_median = Some(median);
            if median > least {
                said.push(format!("--noise-median {}", number(median)));
            }
        }
        (!said.is_empty()).then(|| {
            format!(
                "chosen by the infinitely wide network, fitted to {rows} rows: {}",
                said.join(", ")
            )
        })
    }
}
