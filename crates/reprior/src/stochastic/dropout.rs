//! Draws of Monte-Carlo dropout (Gal & Ghahramani 2016): a position with hidden units left out, for all inputs alike.

use crate::compute::{Real, Stream};
use crate::network::parameters::ParameterLayout;

/// Leaves each input of every layer but the first out with probability `rate` in [0, 1), and multiplies the others' weights by
/// 1/(1 − rate), as dropout in training does. Of fully connected networks, where a layer's inputs are the units below.
pub fn leave_units_out<R: Real>(
    layout: &ParameterLayout,
    rate: f64,
    stream: &mut Stream,
    position: &mut [R],
) {
    let scale = R::from_f64(1.0 / (1.0 - rate));
    for layer in layout.layers.iter().skip(1) {
        let fan_in = layer.fan_in();
        let factor = |_| {
            if stream.uniform() < rate {
                R::ZERO
            } else {
                scale
            }
        };
        let factors: Vec<R> = (0..fan_in).map(factor).collect();
        for unit in position[layer.range.clone()].chunks_exact_mut(layer.rows.max(1)) {
            for (weight, &factor) in unit[..fan_in].iter_mut().zip(&factors) {
                *weight *= factor;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::Purpose;
    use crate::network::{Activation, Composition};

    #[test]
    fn a_unit_is_left_out_of_all_units_above_it_and_means_are_kept() {
        let network = Composition::fully_connected(3, &[50, 40], 2, Activation::Relu);
        let layout = ParameterLayout::new(&network);
        let mut stream = Stream::new(1, 0, Purpose::Recording, 0);
        let (mut left_out, mut total) = (0, 0);
        for _ in 0..40 {
            let mut position = vec![1.0_f64; layout.len()];
            leave_units_out(&layout, 0.25, &mut stream, &mut position);
            assert!(
                position[layout.layers[0].range.clone()]
                    .iter()
                    .all(|&w| w == 1.0)
            );
            for layer in &layout.layers[1..] {
                let own = &position[layer.range.clone()];
                let first = &own[..layer.fan_in()];
                assert!(first.iter().all(|&w| w == 0.0 || w == 1.0 / 0.75));
                for unit in own.chunks_exact(layer.rows) {
                    assert_eq!(&unit[..layer.fan_in()], first);
                    assert_eq!(unit[layer.fan_in()], 1.0);
                }
                left_out += first.iter().filter(|&&w| w == 0.0).count();
                total += first.len();
            }
        }
        // 3,600 units: a standard error of 0.007
        let share = left_out as f64 / f64::from(u32::try_from(total).unwrap());
        assert!((share - 0.25).abs() < 0.03, "{share}");
    }
}
