//! The prior's second moments in closed form.

use reprior::network::LayerScale;

pub const INPUTS: usize = 6;

/// Prior covariance of one output of a network with one hidden GELU layer of any width, at two inputs.
pub fn prior_covariance(a: &[f64], b: &[f64]) -> f64 {
    let LayerScale { weight, bias } = LayerScale::HIDDEN;
    let inner = |a: &[f64], b: &[f64]| {
        let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        weight.powi(2) / INPUTS as f64 * dot + bias.powi(2)
    };
    let (k11, k22, k12) = (inner(a, a), inner(b, b), inner(a, b));
    let (p, p1) = (k11 * k22, (1.0 + k11) * (1.0 + k22));
    let d = (p1 - k12 * k12).sqrt();
    let unit = ((k12 * k12 + p * d * d) / (p1 * d) + k12 * k12.atan2(d)) / std::f64::consts::TAU
        + k12 / 4.0;
    LayerScale::READOUT.weight.powi(2) * unit + LayerScale::READOUT.bias.powi(2)
}
