//! Counter-based random streams keyed by (seed, chain, purpose, index).
//!
//! A stream is ChaCha8 with the key `seed ‖ chain ‖ purpose ‖ 0` (little-endian 64-bit words) and the nonce
//! `index` (say, the number of the transition). Nothing has to be saved to go on after an interruption, and no
//! stream depends on how many threads there are. Single numbers come from the blocks counted from 0, noise by the vector
//! from those counted from 2⁶³. The streams are part of the interface: a test guards their values.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

use super::chacha::{BlockGenerator, WORDS};
use super::{Real, spread};

/// What a stream's numbers are for. The numbers in the key never change meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Starting positions of a chain and its replicas; indexed by rung and try.
    Initial = 1,
    /// A transition of the sampler; the index is the transition's number.
    Transition = 2,
    /// What a recorded draw needs beyond the chain's state (readout, unseen weights); indexed by transition.
    Recording = 3,
    /// Directions on which weights are projected; shared by all chains.
    Projection = 4,
    /// Predictions for new inputs; indexed by draw.
    Prediction = 5,
    /// The order of rows in an epoch; indexed by epoch.
    Shuffle = 6,
    /// Noise of an update of a minibatch method; indexed by update and group of parameters.
    Update = 7,
    /// Targets drawn from a network for the statistics of a preconditioner; indexed by update.
    Simulation = 8,
    /// Which units an update leaves out; indexed by update, layer and unit.
    Dropout = 9,
    /// Vectors that a decomposition of a curvature begins with; indexed by decomposition.
    Curvature = 10,
    /// The search for the step size that an adaptation begins with; indexed by rung and the transition that it precedes.
    StepSize = 11,
    /// Data sets simulated to check predictions with; indexed by value.
    Check = 12,
    /// A learned noise scale's part of an update of a minibatch method; indexed by update.
    Noise = 13,
    /// Which particles go on; indexed by temperature.
    Resampling = 14,
    /// A chain's replicas: transitions, exchanges and draws of the prior; indexed by rung and transition.
    Exchange = 15,
}

/// A stream of random numbers.
#[derive(Debug)]
pub struct Stream {
    numbers: ChaCha8Rng,
    noise: BlockGenerator,
}

/// Words taken from the generator at a time when noise is made.
const BLOCK: usize = 4 * WORDS;
/// So many of these are a thread's piece.
const CHUNKS: usize = 16;
/// What a normal number takes, in operations.
const COST: usize = 64;

impl Stream {
    /// The stream for `(seed, chain, purpose, index)`.
    pub fn new(seed: u64, chain: u64, purpose: Purpose, index: u64) -> Self {
        let mut key = [0_u8; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&chain.to_le_bytes());
        key[16..24].copy_from_slice(&(purpose as u64).to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(index);
        Self {
            numbers: generator,
            noise: BlockGenerator::new(key, index),
        }
    }

    /// A number uniform on (0, 1), a multiple of 2⁻⁵³ plus 2⁻⁵⁴: never 0, never 1.
    pub fn uniform(&mut self) -> f64 {
        ((self.numbers.next_u64() >> 11) as f64 + 0.5) * 2.0_f64.powi(-53)
    }

    /// One standard normal in double precision.
    pub fn normal(&mut self) -> f64 {
        let mut pair = [0.0_f64; 1];
        self.fill_normal(&mut pair);
        pair[0]
    }

    /// Fills `values` with independent standard normals (Box & Muller 1958). In single precision the
    /// largest possible magnitude is 6.7, in double precision 8.6.
    pub fn fill_normal<R: Real>(&mut self, values: &mut [R]) {
        self.fill_normal_then(values, |_, _| ());
    }

    /// The same, where each piece of the numbers is worked on further while it is in the cache, by whichever thread made it: `then` gets
    /// the place of the piece's first number and the piece.
    pub(crate) fn fill_normal_then<R: Real>(
        &mut self,
        values: &mut [R],
        then: impl Fn(usize, &mut [R]) + Sync,
    ) {
        let chunk = BLOCK / R::WORDS_PER_NORMAL;
        // pairs: an odd tail takes a whole pair's words
        let words_of = |numbers: usize| numbers.next_multiple_of(2) * R::WORDS_PER_NORMAL;
        let (first, length) = (self.noise.clone(), values.len());
        let pieces = values.chunks_mut(CHUNKS * chunk).enumerate();
        spread(COST * length, pieces, |(index, piece)| {
            let mut noise = first.after(index * CHUNKS * BLOCK);
            let mut words = [0_u32; BLOCK];
            for chunk in piece.chunks_mut(chunk) {
                let count = words_of(chunk.len());
                noise.fill(&mut words[..count.next_multiple_of(WORDS)]);
                R::normals_from_bits(&words[..count], chunk);
            }
            then(index * CHUNKS * chunk, piece);
        });
        self.noise = first.after(words_of(length).next_multiple_of(WORDS));
    }

    /// The generator itself, for distributions of other crates.
    pub fn generator(&mut self) -> &mut impl Rng {
        &mut self.numbers
    }
}

/// Standard normals, for tests of kernels.
#[cfg(test)]
pub(super) fn noise<R: Real>(count: usize, index: u64) -> Vec<R> {
    let mut values = vec![R::ZERO; count];
    Stream::new(0, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::with_team;

    #[test]
    fn value_stability() {
        let mut stream = Stream::new(1, 2, Purpose::Transition, 3);
        let uniform = stream.uniform();
        let mut single = [0.0_f32; 3];
        stream.fill_normal(&mut single);
        let mut double = [0.0_f64; 3];
        stream.fill_normal(&mut double);
        let printed = format!("{uniform:.12} {single:.5?} {double:.10?}");
        assert_eq!(
            printed,
            "0.472563240987 [-1.72761, -0.92170, 0.16781] [-0.6034772432, 2.1017442757, -0.3547461086]"
        );
    }

    #[test]
    fn streams_differ_in_every_part_of_the_key() {
        let first =
            |seed, chain, purpose, index| Stream::new(seed, chain, purpose, index).uniform();
        let base = first(0, 0, Purpose::Initial, 0);
        assert_ne!(base, first(1, 0, Purpose::Initial, 0));
        assert_ne!(base, first(0, 1, Purpose::Initial, 0));
        assert_ne!(base, first(0, 0, Purpose::Transition, 0));
        assert_ne!(base, first(0, 0, Purpose::Initial, 1));
    }

    #[test]
    fn pieces_are_worked_on_once_each_whoever_makes_them() {
        let mut expected = noise::<f32>(100_003, 3);
        for (i, value) in expected.iter_mut().enumerate() {
            *value = *value * 2.0 + i as f32;
        }
        for threads in [1, 3] {
            let mut values = vec![0.0_f32; expected.len()];
            let mut stream = Stream::new(0, 0, Purpose::Initial, 3);
            with_team(threads, || {
                stream.fill_normal_then(&mut values, |start, piece| {
                    for (i, value) in piece.iter_mut().enumerate() {
                        *value = *value * 2.0 + (start + i) as f32;
                    }
                });
            });
            assert_eq!(values, expected);
        }
    }

    fn moments_and_tails<R: Real>() {
        let count = 1 << 20;
        let mut values = vec![R::ZERO; count];
        Stream::new(7, 0, Purpose::Initial, 0).fill_normal(&mut values);
        let n = count as f64;
        let power = |k: i32| values.iter().map(|v| v.to_f64().powi(k)).sum::<f64>() / n;
        // five standard errors: Var of x, x², x³, x⁴ are 1, 2, 15, 96
        assert!(power(1).abs() < 5.0 / n.sqrt());
        assert!((power(2) - 1.0).abs() < 5.0 * (2.0 / n).sqrt());
        assert!(power(3).abs() < 5.0 * (15.0 / n).sqrt());
        assert!((power(4) - 3.0).abs() < 5.0 * (96.0 / n).sqrt());
        // Kolmogorov-Smirnov at level 1e-5: 2.47/√n
        let mut sorted: Vec<f64> = values.iter().map(|v| v.to_f64()).collect();
        sorted.sort_by(f64::total_cmp);
        let distance = sorted.iter().enumerate().map(|(i, &x)| {
            let cdf = 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
            (cdf - i as f64 / n)
                .abs()
                .max((cdf - (i + 1) as f64 / n).abs())
        });
        assert!(distance.fold(0.0, f64::max) < 2.47 / n.sqrt());
        // neighbours are uncorrelated although a pair shares its radius
        let lag = |k: usize| {
            values
                .windows(k + 1)
                .map(|w| w[0].to_f64() * w[k].to_f64())
                .sum::<f64>()
                / n
        };
        assert!((1..=4).all(|k| lag(k).abs() < 5.0 / n.sqrt()));
    }

    #[test]
    fn normals_are_normal() {
        moments_and_tails::<f32>();
        moments_and_tails::<f64>();
    }
}
