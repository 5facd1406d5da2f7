//! Diagnostics of many variables: 4 chains × 10,000 draws, milliseconds a variable on one thread.
//!
//! ```text
//! cargo bench -p reprior --bench diagnostics
//! ```
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]

use std::hint::black_box;
use std::time::Instant;

use reprior::compute::{Purpose, Stream};
use reprior::diagnostics::{Draws, Estimator};

const CHAINS: usize = 4;
const DRAWS: usize = 10_000;
/// Different draws each time: a sort that has seen its input is predicted.
const VARIABLES: usize = 20;

fn each(name: &str, mut operation: impl FnMut(Draws<'_>)) {
    let mut values = vec![0.0_f64; CHAINS * DRAWS];
    let mut least = f64::INFINITY;
    for variable in 0..VARIABLES {
        Stream::new(0, 0, Purpose::Initial, variable as u64).fill_normal(&mut values);
        for chain in values.chunks_exact_mut(DRAWS) {
            for i in 1..DRAWS {
                chain[i] = 0.9 * chain[i - 1] + 0.19_f64.sqrt() * chain[i];
            }
        }
        let begin = Instant::now();
        operation(Draws::new(&values, CHAINS).unwrap());
        least = least.min(begin.elapsed().as_secs_f64());
    }
    println!("{name:36} {:9.3} ms a variable", least * 1e3);
}

fn main() {
    let mut estimator = Estimator::new();
    each("bulk ESS", |draws| {
        black_box(estimator.ess_bulk(draws));
    });
    each("tail ESS", |draws| {
        black_box(estimator.ess_tail(draws));
    });
    each("rank R-hat", |draws| {
        black_box(estimator.rhat_rank(draws));
    });
    each("all three, mean and its error", |draws| {
        black_box(estimator.summary(draws));
    });
}
