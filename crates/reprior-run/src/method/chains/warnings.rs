//! What a user should know before believing the draws of chains besides what the verdict says: acceptance, divergences,
//! corrections, approximations.

use reprior::chain::Statistics;
use reprior::posterior::{Coordinates, TangentDeterminant};
use reprior::sampler::Method;

use super::sampler_settings;
use crate::settings::Settings;
use crate::summary::Summary;

/// Acceptance rate from which on the Metropolis correction may be left out (Hron et al. 2022, Section 4).
const LEAST_UNCORRECTED: f64 = 0.98;

impl Summary {
    /// Warnings that stand beside the verdict's checks.
    pub(super) fn chain_warnings(
        &self,
        settings: &Settings,
        method: Method,
        sampling: &Statistics,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |text: String| warnings.push(text);
        if self.draws == 0 {
            return warnings;
        }
        self.warn_of_acceptance(settings, method, &mut warn);
        if settings.coordinates() == Coordinates::Tangent {
            self.warn_of_tangent(settings, sampling, &mut warn);
        } else if sampling.divergences * 1000 > sampling.transitions {
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

    fn warn_of_tangent(
        &self,
        settings: &Settings,
        sampling: &Statistics,
        warn: &mut impl FnMut(String),
    ) {
        match settings.sampler.determinant {
            Some(TangentDeterminant::Series { terms, probes }) => warn(format!(
                "the draws are of an approximation: {terms} terms of the determinant's series with {probes} probes, good for wide \
                 networks only; compare with marginal coordinates, or with more of both"
            )),
            Some(TangentDeterminant::Hessian { .. }) => warn(
                "the draws are of an approximation: of the determinant only the part of the Hessians is counted, good for wide \
                 networks and a small --regulariser only; compare with marginal coordinates, or with --determinant exact"
                    .to_owned(),
            ),
            _ => {}
        }
        if sampling.divergences * 1000 > sampling.transitions {
            warn(format!(
                "{} of {} transitions met places where tangent coordinates fold or could not be evaluated: the draws are not of \
                 the posterior; use a wider network, more --noise, or marginal coordinates",
                sampling.divergences, sampling.transitions
            ));
        }
    }

    fn warn_of_acceptance(
        &self,
        settings: &Settings,
        method: Method,
        warn: &mut impl FnMut(String),
    ) {
        let rate = self.acceptance_rate;
        if method == Method::Elliptical {
            // points tried per transition, one over the rate
            if rate < 0.1 {
                warn(format!(
                    "{:.0} points were tried for each transition: the posterior is far from its prior; try --method hmc-infinite",
                    1.0 / rate
                ));
            }
            return;
        }
        if !method.is_exact() {
            // a check of the verdict says by how much
            return;
        }
        if settings.sampler.metropolis == Some(false) && rate < LEAST_UNCORRECTED {
            warn(format!(
                "acceptance would be {rate:.3} with the Metropolis correction that was left out (below {LEAST_UNCORRECTED}): the draws are \
                 not of the posterior; lower --step-size, raise --target-acceptance, or leave --no-metropolis out"
            ));
        } else if rate < 0.1 {
            let remedy = if settings.sampler.step_size.is_some() {
                "lower --step-size, or leave it out and let it adapt"
            } else {
                "let the step size adapt with a longer --warmup"
            };
            warn(format!(
                "acceptance is {rate:.3}: the step size is too large; {remedy}"
            ));
        } else if let Some((reached, asked)) = self.shortened(settings, method) {
            let remedy = match settings.model.learns_noise() {
                true => "",
                false => "raise --noise or learn it, and ",
            };
            warn(format!(
                "trajectories stop after {} steps, at a length of {reached:.2e} in place of {asked:.2}, as the step size is \
                 so small: the posterior is much narrower than its prior in some direction; {remedy}\
                 expect draws that depend on each other (raise --thin)",
                sampler_settings(settings, method).max_steps_in_use()
            ));
        } else if rate > 0.99 && settings.sampler.step_size.is_some() && !self.is_prior_like() {
            warn(format!(
                "acceptance is {rate:.3}: the step size may be needlessly small; leave --step-size out and let it adapt"
            ));
        }
    }

    /// The mean length of trajectories that are cut short, and the length asked for.
    fn shortened(&self, settings: &Settings, method: Method) -> Option<(f64, f64)> {
        let sampler = sampler_settings(settings, method);
        let steps = self.step_size.iter().flatten().copied();
        let smallest = steps.fold(f64::INFINITY, f64::min);
        let reached = sampler.shortened_trajectory(smallest)?;
        Some((reached, sampler.trajectory_in_use()?))
    }

    /// Nearly every draw counts: small steps are no matter.
    fn is_prior_like(&self) -> bool {
        let blocks = [&self.ess.prediction, &self.ess.weights];
        blocks.into_iter().flatten().all(|ess| ess.per_draw > 0.5)
    }
}
