//! Samplers leave the right law invariant: closed forms, quadrature, the Metropolis-Hastings ratio computed directly,
//! evaluations that fail, interruptions.

mod balance;
mod failures;
mod laws;
mod local_step;
mod microcanonical;
mod readout;
mod resume;
mod search;

use std::sync::Arc;

use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior::posterior::{EvaluationError, Target};
use reprior::sampler::{Method, SamplerSettings};

use crate::common::{sample_on, settings, z_score};

/// The methods that leave the posterior invariant: `mclmc` takes every step, and its law is off by its steps' errors; that law has tests of its own
/// in `microcanonical.rs`.
fn exact_methods() -> impl Iterator<Item = Method> {
    Method::ALL.into_iter().filter(|method| method.is_exact())
}

/// One observation of z₁ + ½z₂ with Gaussian noise: a Gaussian posterior in closed form.
struct Line;

/// Settings for the narrow curved posteriors of a handful of weights: gentler steps where single gradients drive them, and
/// more damping, as a momentum that lasts is for wide networks.
fn gentle(method: Method) -> SamplerSettings {
    let drives = matches!(method, Method::Pcnl | Method::Mala | Method::Langevin);
    SamplerSettings {
        damping: match method {
            Method::Langevin => Some(0.3),
            Method::HmcInfinite => Some(1.0),
            _ => None,
        },
        target_acceptance: drives.then_some(0.8),
        ..settings(method)
    }
}

const SIGMA: f64 = 0.4;
const Y: f64 = 1.3;

impl Target for Line {
    type Real = f64;
    fn dim(&self) -> usize {
        2
    }
    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        Ok(-0.5 * ((Y - z[0] - 0.5 * z[1]) / SIGMA).powi(2))
    }
    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        let residual = (Y - z[0] - 0.5 * z[1]) / (SIGMA * SIGMA);
        gradient.copy_from_slice(&[residual, 0.5 * residual]);
        self.log_ratio(z)
    }
    fn arrives_by_gradients(&self) -> bool {
        true
    }
}

fn one_point_model(hidden: &[usize], activation: Activation, inputs: usize) -> Arc<Model<f64>> {
    let mut x = vec![0.0; inputs];
    Stream::new(5, 0, Purpose::Initial, 0).fill_normal(&mut x);
    let architecture = Composition::fully_connected(inputs, hidden, 1, activation);
    let model = Model::new(architecture, 0.3, &x, vec![1.2], &x, InputReduction::Auto).unwrap();
    Arc::new(model)
}
