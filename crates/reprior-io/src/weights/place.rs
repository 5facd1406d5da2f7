//! Tensors of a file that fits, to their places among the network's parameters.

use std::io::{Read, Seek};

use reprior::network::Composition;

use super::WeightsError;
use super::file::TensorFile;
use super::modules::{Module, Role};
use super::needs::Need;

/// What parameters must be, beyond the file's own numbers.
const TOO_LARGE: &str = "divided by its layer's prior scale it is too large for a number; give the network larger scales";

/// The network with its statistics, and all parameters.
///
/// # Errors
/// Numbers that are not finite, or variances that are not positive.
pub(super) fn place(
    file: &mut TensorFile<impl Read + Seek>,
    modules: &[Module],
    needs: &[Need],
    network: &Composition,
) -> Result<(Composition, Vec<f64>), WeightsError> {
    let mut all_statistics = Vec::new();
    let length = needs.last().map_or(0, |need| need.parameters.range.end);
    let mut parameters = vec![0.0; length];
    for (module, need) in modules.iter().zip(needs) {
        let own = &mut parameters[need.parameters.range.clone()];
        if need.is_normalisation {
            normalisation(file, module, need, own)?;
            for role in [Role::RunningMean, Role::RunningVariance] {
                all_statistics.extend(statistics(file, module, need, role)?);
            }
        } else {
            combination(file, module, need, own)?;
        }
    }
    Ok((network.with_statistics(&all_statistics), parameters))
}

/// Weights and biases of a dense layer, a convolution or the readout.
fn combination(
    file: &mut TensorFile<impl Read + Seek>,
    module: &Module,
    need: &Need,
    own: &mut [f64],
) -> Result<(), WeightsError> {
    let (rows, fan_in) = (need.parameters.rows, need.parameters.fan_in());
    let [weight_factor, bias_factor] = need.parameters.factors;
    if let Some(index) = module.tensor(Role::Weight) {
        let values = file.read(index)?;
        for (unit, column) in own.chunks_exact_mut(rows.max(1)).enumerate() {
            for (row, parameter) in column.iter_mut().take(fan_in).enumerate() {
                let at = unit * fan_in + need.weight(row);
                *parameter = divided(file, index, at, values[at], weight_factor)?;
            }
        }
    }
    if let Some(index) = module.tensor(Role::Bias) {
        let values = file.read(index)?;
        let biases = own.iter_mut().skip(fan_in).step_by(rows.max(1));
        for (at, (parameter, &bias)) in biases.zip(&values).enumerate() {
            *parameter = divided(file, index, at, bias, bias_factor)?;
        }
    }
    Ok(())
}

/// γ and β of batch normalisation, 1 and 0 where the file has none.
fn normalisation(
    file: &mut TensorFile<impl Read + Seek>,
    module: &Module,
    need: &Need,
    own: &mut [f64],
) -> Result<(), WeightsError> {
    for (row, (role, default)) in [(Role::Weight, 1.0), (Role::Bias, 0.0)]
        .into_iter()
        .enumerate()
    {
        let values = module.tensor(role).map(|index| file.read(index));
        let values = values.transpose()?;
        for (channel, pair) in own.chunks_exact_mut(2).enumerate() {
            let of_file = values.as_ref().map(|values| values[need.feature(channel)]);
            pair[row] = of_file.unwrap_or(default);
        }
    }
    Ok(())
}

/// Means or variances of each channel; the file has them.
fn statistics(
    file: &mut TensorFile<impl Read + Seek>,
    module: &Module,
    need: &Need,
    role: Role,
) -> Result<Vec<f64>, WeightsError> {
    let Some(index) = module.tensor(role) else {
        return Ok(Vec::new());
    };
    let values = file.read(index)?;
    if role == Role::RunningVariance {
        let wrong = |value: &f64| *value < 0.0 || *value + need.epsilon <= 0.0;
        if let Some(at) = values.iter().position(wrong) {
            let allowed = "variances must not be negative, and with ε positive";
            return Err(file.wrong_number(index, at, values[at], allowed));
        }
    }
    let channels = 0..need.units;
    Ok(channels
        .map(|channel| values[need.feature(channel)])
        .collect())
}

/// value/factor.
fn divided(
    file: &TensorFile<impl Read + Seek>,
    tensor: usize,
    at: usize,
    value: f64,
    factor: f64,
) -> Result<f64, WeightsError> {
    let parameter = value / factor;
    if parameter.is_finite() {
        Ok(parameter)
    } else {
        Err(file.wrong_number(tensor, at, value, TOO_LARGE))
    }
}
