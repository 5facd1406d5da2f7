//! Diagnostics of one variable, 4 chains × 10,000 draws, on one thread.
//!
//! ```text
//! cargo bench -p reprior --bench diagnostics
//! ```
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use reprior::compute::{Purpose, Stream};
use reprior::diagnostics::{Draws, Estimator};

const CHAINS: usize = 4;
const DRAWS: usize = 10_000;

/// Autoregressions, other ones each time: a processor learns the branches of a sort that it has seen.
fn draws(variable: u64) -> Vec<f64> {
    let mut values = vec![0.0_f64; CHAINS * DRAWS];
    Stream::new(0, 0, Purpose::Initial, variable).fill_normal(&mut values);
    for chain in values.chunks_exact_mut(DRAWS) {
        for i in 1..DRAWS {
            chain[i] = 0.9 * chain[i - 1] + 0.19_f64.sqrt() * chain[i];
        }
    }
    values
}

fn diagnostics(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("4 chains of 10,000 draws");
    let mut estimator = Estimator::new();
    let mut variable = 0;
    let mut each = |name: &str, statistic: &mut dyn FnMut(Draws<'_>) -> f64| {
        group.bench_function(name, |bencher| {
            let setup = || {
                variable += 1;
                draws(variable)
            };
            bencher.iter_batched(
                setup,
                |values| statistic(Draws::new(&values, CHAINS).unwrap()),
                BatchSize::LargeInput,
            );
        });
    };
    each("bulk ESS", &mut |draws| estimator.ess_bulk(draws));
    each("tail ESS", &mut |draws| estimator.ess_tail(draws));
    each("rank R-hat", &mut |draws| estimator.rhat_rank(draws));
    each("all three, mean and its error", &mut |draws| {
        estimator.summary(draws).rhat
    });
    group.finish();
}

criterion_group!(benches, diagnostics);
criterion_main!(benches);
