//! What noise is taken to be where nothing was said: learned, the most likely one, or one that depends on the inputs.

use std::collections::HashMap;

use reprior::model::NoisePrior;
use reprior::model::dataset::{Dataset, InputKind, Targets};
use reprior::network::Composition;
use reprior::network::infinite::InfiniteNetwork;
use reprior::posterior::Coordinates;
use reprior::sampler::Method;

use super::defaults::FEW_ROWS;
use crate::settings::{Learn, MethodName, NoiseSetting, ScalesSetting, Settings};

/// The noise may depend on the inputs where at least one target in so many is a value of its own. Among few values, whole numbers
/// as a rule, such a noise shrinks about each of them; so it does about one value that more rows than one in so many have.
const ROWS_PER_VALUE: usize = 10;
/// Whether the evidence is asked if the noise of real targets depends on the inputs: for chains on a table whose targets are not few
/// values again and again, of which nothing is asked that the gaussian likelihood alone has.
pub(super) fn noise_can_vary(settings: &Settings, train: &Dataset) -> bool {
    let Targets::Real { values, names } = &train.targets else {
        return false;
    };
    let kernel = settings.sampler.method().kernel();
    let by_chains = kernel.is_some_and(Method::needs_gradients);
    let asks_nothing = settings.sampler.coordinates.is_none()
        && settings.minibatch.weights.is_none()
        && settings.model.scales.is_none()
        && settings.model.noise == Some(NoiseSetting::Learn(Learn::Learn));
    let is_of_many = |column: usize| {
        let own = values.iter().skip(column).step_by(names.len());
        let mut counts: HashMap<u64, usize> = HashMap::new();
        for value in own {
            *counts.entry(value.to_bits()).or_default() += 1;
        }
        let commonest = counts.values().max().copied().unwrap_or(0);
        counts.len() * ROWS_PER_VALUE >= train.rows && commonest * ROWS_PER_VALUE <= train.rows
    };
    let is_table = train.kind == InputKind::Table && train.rows >= FEW_ROWS;
    is_table && by_chains && asks_nothing && (0..names.len()).all(is_of_many)
}

/// Chains and training learn it, with the prior's median left to the evidence of a table; others have what is most likely under
/// the infinitely wide network, if there is one and the data are a table.
pub(super) fn choose_noise(settings: &mut Settings, architecture: &Composition, is_table: bool) {
    let is_tangent = settings.coordinates() == Coordinates::Tangent;
    let model = &mut settings.model;
    if !model.likelihood().has_scale() {
        return;
    }
    let is_gaussian = model.likelihood().is_gaussian();
    let has_limit = is_table && InfiniteNetwork::new(architecture).is_ok();
    if model.noise.is_none() && !model.is_automatic() {
        let is_trained = settings.minibatch.weights.is_some();
        model.noise = Some(match settings.sampler.method() {
            MethodName::Chain(_) | MethodName::Annealed if !is_tangent => {
                NoiseSetting::Learn(Learn::Learn)
            }
            // weights that a Laplace approximation is given stay as they are
            MethodName::Minibatch(method) if !(is_trained && method.is_around_mode()) => {
                NoiseSetting::Learn(Learn::Learn)
            }
            MethodName::Infinite(_) if is_gaussian => NoiseSetting::Auto,
            _ if is_gaussian && has_limit => NoiseSetting::Auto,
            _ => NoiseSetting::One(0.1),
        });
    }
    let is_near = is_gaussian || model.likelihood().has_row_noise();
    let is_open = is_near && has_limit || model.scales == Some(ScalesSetting::Evidence);
    if model.learns_noise() && !is_open {
        let median = NoisePrior::default().median;
        model.noise_median.get_or_insert(median);
    }
}
