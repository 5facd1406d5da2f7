//! Random numbers whose values are part of the interface.
//!
//! Counter-based ChaCha with 8 rounds, keyed by (seed, stream). Everything drawn from it is spelled out here, and transcendental functions come from one
//! portable implementation, so that no new version of a library or a platform changes a data set or a shuffle.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

/// A stream of random numbers.
pub(super) struct RandomStream(ChaCha8Rng);

impl RandomStream {
    /// Stream number `stream` of `seed`.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(stream);
        Self(generator)
    }

    /// Uniform on [0, 1), a multiple of 2⁻⁵³.
    pub(super) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform on [low, high).
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Standard normal, by Box and Muller's transformation (two uniforms a value).
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.uniform())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }

    /// Uniform on 0..bound, without bias (multiply and reject, Lemire 2019). `bound` must not be 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        loop {
            let wide = u128::from(self.0.next_u64()) * u128::from(bound);
            if wide as u64 >= bound.wrapping_neg() % bound {
                return (wide >> 64) as u64;
            }
        }
    }

    /// A uniform permutation of 0..count (Fisher and Yates, from the end).
    pub(super) fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            order.swap(last, self.below(last as u64 + 1) as usize);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_keep_every_row_once() {
        let mut order = RandomStream::new(3, 0).permutation(1000);
        assert_ne!(order, (0..1000).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..1000).collect::<Vec<_>>());
        assert!(RandomStream::new(3, 0).permutation(0).is_empty());
    }

    #[test]
    fn permutations_of_three_are_equally_likely() {
        let mut stream = RandomStream::new(8, 0);
        let mut counts = [0_u32; 27];
        for _ in 0..6000 {
            let order = stream.permutation(3);
            counts[order[0] * 9 + order[1] * 3 + order[2]] += 1;
        }
        // Expectation 1,000, standard deviation 29: six of them once in 10⁸.
        assert_eq!(counts.iter().filter(|&&count| count > 0).count(), 6);
        assert!(
            counts
                .iter()
                .all(|&count| count == 0 || count.abs_diff(1000) < 174),
            "{counts:?}"
        );
    }

    #[test]
    fn normals_have_mean_zero_and_variance_one() {
        let mut stream = RandomStream::new(1, 0);
        let draws: Vec<f64> = (0..20_000).map(|_| stream.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / 20_000.0;
        assert!(
            mean.abs() < 0.04 && (variance - 1.0).abs() < 0.06,
            "{mean} {variance}"
        );
    }
}
