//! Autocovariances of chains, averaged over the chains.
//!
//! For chains x_c of n draws with means x̄_c, and lags t = 0 … n − 1,
//!
//! a_t = (1/M) Σ_c (1/n) Σ_{i < n − t} (x_{c,i} − x̄_c)(x_{c,i+t} − x̄_c),
//!
//! by the Wiener-Khinchin theorem: the chains' power spectra, zero-padded to at least 2n, are averaged and
//! transformed back once. Cost: M + 1 real transforms of about 2n points; no allocation after the first call of a size.

use realfft::{RealFftPlanner, num_complex::Complex};

use super::moments::{Running, mean};

/// Fourier plans and buffers, kept from one call to the next.
pub(super) struct Autocovariance {
    planner: RealFftPlanner<f64>,
    signal: Vec<f64>,
    spectrum: Vec<Complex<f64>>,
    power: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
}

/// What [`Autocovariance::of`] finds.
pub(super) struct Covariances<'a> {
    /// a_t for t = 0 … n − 1: divided by n at every lag, averaged over the chains.
    pub lags: &'a [f64],
    /// Moments of the chains' means.
    pub means: Running,
    /// Number of chains.
    pub chains: usize,
}

impl Autocovariance {
    pub fn new() -> Self {
        Self {
            planner: RealFftPlanner::new(),
            signal: Vec::new(),
            spectrum: Vec::new(),
            power: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Autocovariances of chains that all have `length` ≥ 1 draws.
    pub fn of<'c>(
        &mut self,
        chains: impl Iterator<Item = &'c [f64]>,
        length: usize,
    ) -> Covariances<'_> {
        let padded = transform_length(2 * length);
        let forward = self.planner.plan_fft_forward(padded);
        let inverse = self.planner.plan_fft_inverse(padded);
        let zero = Complex::new(0.0, 0.0);
        let scratch = forward.get_scratch_len().max(inverse.get_scratch_len());
        self.signal.resize(padded, 0.0);
        self.spectrum.resize(padded / 2 + 1, zero);
        self.scratch.resize(scratch, zero);
        self.power.clear();
        self.power.resize(padded / 2 + 1, zero);

        let mut means = Running::default();
        let mut count = 0;
        for chain in chains {
            let centre = mean(chain);
            means.push(centre);
            count += 1;
            for (to, from) in self.signal.iter_mut().zip(chain) {
                *to = from - centre;
            }
            self.signal[length..].fill(0.0);
            forward
                .process_with_scratch(&mut self.signal, &mut self.spectrum, &mut self.scratch)
                .expect("buffers have the plan's lengths");
            for (power, value) in self.power.iter_mut().zip(&self.spectrum) {
                power.re += value.norm_sqr();
            }
        }
        inverse
            .process_with_scratch(&mut self.power, &mut self.signal, &mut self.scratch)
            .expect("buffers have the plan's lengths and the ends of the spectrum are real");
        let scale = 1.0 / (padded as f64 * length as f64 * f64::from(count));
        let lags = &mut self.signal[..length];
        lags.iter_mut().for_each(|lag| *lag *= scale);
        Covariances {
            lags,
            means,
            chains: count as usize,
        }
    }
}

/// The smallest even 2^a 3^b that is no smaller than `least`: sizes that are transformed fast.
fn transform_length(least: usize) -> usize {
    let mut best = least.next_power_of_two().max(2);
    let mut odd = 3;
    while odd < best {
        let mut size = 2 * odd;
        while size < least {
            size *= 2;
        }
        best = best.min(size);
        odd *= 3;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transform_lengths_are_even_products_of_two_and_three() {
        for (least, length) in [
            (1, 2),
            (2, 2),
            (5, 6),
            (10, 12),
            (10_000, 10_368),
            (16_384, 16_384),
        ] {
            assert_eq!(transform_length(least), length);
        }
    }

    #[test]
    fn agrees_with_the_definition_whatever_was_asked_before() {
        let mut workspace = Autocovariance::new();
        for length in [7, 64, 5, 1] {
            let values: Vec<f64> = (0..2 * length)
                .map(|i| ((i * i) as f64).sin() + 1e3)
                .collect();
            let found = workspace.of(values.chunks_exact(length), length);
            for (t, lag) in found.lags.iter().enumerate() {
                let expected: f64 = values
                    .chunks_exact(length)
                    .map(|chain| {
                        let mean = mean(chain);
                        let products = chain.iter().zip(&chain[t..]);
                        products.map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>()
                    })
                    .sum::<f64>()
                    / (2 * length) as f64;
                assert!((lag - expected).abs() < 1e-12);
            }
        }
    }
}
