//! Dropout of hidden units while a network is trained.

use rand::Rng;

use crate::compute::{Purpose, Real, Stream};

/// Activations are left out with probability `rate`, each row's by themselves, and the others are 1/(1 − rate) times as large
/// (Srivastava et al. 2014, the scale at training time).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dropout {
    pub rate: f64,
    pub seed: u64,
    pub chain: u64,
    pub update: u64,
}

impl Dropout {
    /// Activations and their derivatives of some units of a layer, the first of which is number `first`.
    pub(super) fn leave_out<R: Real>(
        self,
        layer: usize,
        first: usize,
        output: &mut [R],
        derivative: &mut [R],
    ) {
        let index = (self.update << 32) | ((layer as u64) << 24) | first as u64;
        let mut stream = Stream::new(self.seed, self.chain, Purpose::Dropout, index);
        let generator = stream.generator();
        // of 2³² numbers
        let left_out = (self.rate * 2.0_f64.powi(32)) as u32;
        let scale = R::from_f64(1.0 / (1.0 - self.rate));
        for (output, derivative) in output.iter_mut().zip(derivative) {
            let factor = if generator.next_u32() < left_out {
                R::ZERO
            } else {
                scale
            };
            *output *= factor;
            *derivative *= factor;
        }
    }
}
