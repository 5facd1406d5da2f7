//! The first place where a file's modules are not what the network needs.

use super::error::{dimensions, printable};
use super::file::TensorEntry;
use super::modules::{Module, Role};
use super::needs::Need;

/// In words; `None` where they agree.
pub(super) fn first_difference(
    tensors: &[TensorEntry],
    modules: &[Module],
    needs: &[Need],
) -> Option<String> {
    for (module, need) in modules.iter().zip(needs) {
        let difference = difference(tensors, module, need);
        if difference.is_some() {
            return difference;
        }
    }
    if let Some(need) = needs.get(modules.len()) {
        let (found, all) = (modules.len(), needs.len());
        return Some(format!(
            "it has {found} modules with tensors for {all} layers: nothing is left for {}",
            need.name
        ));
    }
    let module = modules.get(needs.len())?;
    let (found, all) = (modules.len(), needs.len());
    Some(format!(
        "it has {found} modules with tensors for {all} layers: nothing takes {}",
        printable(&module.name)
    ))
}

fn difference(tensors: &[TensorEntry], module: &Module, need: &Need) -> Option<String> {
    let (own, layer) = (printable(&module.name), &need.name);
    let has = |role| module.tensor(role).is_some();
    if need.is_normalisation {
        for role in [Role::RunningMean, Role::RunningVariance] {
            if !has(role) {
                return Some(format!(
                    "{own} has no {}, which {layer} needs (BatchNorm with track_running_stats=True)",
                    role.name()
                ));
            }
        }
    } else if has(Role::RunningMean) || has(Role::RunningVariance) {
        return Some(format!("{own} is batch normalisation, {layer} is not"));
    } else if !has(Role::Weight) {
        return Some(format!("{own} has no weight, which {layer} needs"));
    }
    let units = [need.units];
    for (role, shape) in [
        (Role::Weight, &need.weight_shape[..]),
        (Role::Bias, &units),
        (Role::RunningMean, &units),
        (Role::RunningVariance, &units),
    ] {
        let Some(tensor) = module.tensor(role).and_then(|index| tensors.get(index)) else {
            continue;
        };
        if role == Role::Bias && !need.has_bias {
            return Some(format!(
                "{own} has a bias, {layer} has none: give it a σ_b above 0 (its scale in the description, --bias-variance, of the readout \
                 --readout-bias-variance), or train it with bias=False"
            ));
        }
        if tensor.shape != shape {
            return Some(format!(
                "{} is {}, {layer} needs {}",
                printable(&tensor.name),
                dimensions(&tensor.shape),
                dimensions(shape)
            ));
        }
    }
    None
}
