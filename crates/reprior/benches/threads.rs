//! What several threads gain: one chain on one thread and on all that there are, beside as many chains as threads, which is what
//! cores and memory have to give. In alternation, the median of some rounds (`cargo bench -p reprior --bench threads -- ROUNDS WHAT`: the cases in
//! whose name WHAT is, as "1000 [1024] pcn Marginal").

#![allow(clippy::print_stdout, reason = "a benchmark")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use reprior::chain::{Chain, Collect, Control, Schedule, run};
use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior::posterior::{Coordinates, Posterior};
use reprior::sampler::{Method, SamplerSettings};

/// Rows, inputs, units of the hidden layers.
type Size<'a> = (usize, usize, &'a [usize]);

/// Seconds of a transition of so many chains on so many threads.
fn seconds(
    model: &Arc<Model<f32>>,
    (method, coordinates): (Method, Coordinates),
    [chains, threads]: [usize; 2],
    transitions: u64,
) -> Result<f64, Box<dyn Error>> {
    let schedule = Schedule {
        chains,
        warmup: 0,
        draws: 1,
        thin: transitions,
        seed: 2,
    };
    let settings = SamplerSettings {
        method,
        ..SamplerSettings::default()
    };
    let start = |index| -> Result<_, Box<dyn Error>> {
        let target = Posterior::new(Arc::clone(model), coordinates)?;
        let chain = Chain::start(index, schedule, &settings, target)?;
        Ok((chain, Collect::default()))
    };
    let started = (0..chains).map(start).collect::<Result<Vec<_>, _>>()?;
    let control = Control {
        threads,
        checkpoint_every: Duration::from_secs(3600),
        stop: &AtomicBool::new(false),
    };
    let begin = Instant::now();
    run(started, control, &|_| {}).1?;
    Ok(begin.elapsed().as_secs_f64() / transitions as f64)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let asked = std::env::args().filter_map(|word| word.parse().ok()).next();
    let rounds: usize = asked.unwrap_or(5);
    let is_name = |word: &String| !word.starts_with('-') && word.parse::<usize>().is_err();
    let only = std::env::args().skip(1).find(is_name);
    let threads = available_parallelism()?.get();
    println!("{threads} threads, {rounds} rounds; ms a transition of one chain");
    println!("rows, units, method, coordinates: one thread, all, gain; gain of as many chains");
    let cases: [(Size<'_>, Method, Coordinates, u64); 9] = [
        ((256, 300, &[1024]), Method::Pcn, Coordinates::Marginal, 200),
        ((256, 300, &[4096]), Method::Pcn, Coordinates::Marginal, 50),
        ((256, 300, &[4096]), Method::Pcnl, Coordinates::Marginal, 25),
        (
            (1000, 1200, &[1024]),
            Method::Pcn,
            Coordinates::Marginal,
            12,
        ),
        (
            (1000, 1200, &[1024]),
            Method::Pcnl,
            Coordinates::Marginal,
            8,
        ),
        (
            (1000, 1200, &[1024]),
            Method::Pcnl,
            Coordinates::Repriorised,
            8,
        ),
        (
            (1000, 20, &[256, 256, 256]),
            Method::Pcnl,
            Coordinates::Marginal,
            30,
        ),
        ((2000, 20, &[512]), Method::Pcnl, Coordinates::Marginal, 20),
        (
            (4000, 8, &[32, 32, 32]),
            Method::Pcnl,
            Coordinates::Marginal,
            300,
        ),
    ];
    for ((rows, inputs, widths), method, coordinates, transitions) in cases {
        let name = format!("{rows} {widths:?} {method} {coordinates:?}");
        if only
            .as_ref()
            .is_some_and(|only| !name.contains(only.as_str()))
        {
            continue;
        }
        let mut stream = Stream::new(1, 0, Purpose::Initial, 0);
        let (mut x, mut y) = (vec![0.0; rows * inputs], vec![0.0; rows]);
        stream.fill_normal(&mut x);
        stream.fill_normal(&mut y);
        let network = Composition::fully_connected(inputs, widths, 1, Activation::Gelu);
        let model = Model::new(network, 0.3, &x, y, &x[..inputs], InputReduction::Auto)?;
        let (model, what) = (Arc::new(model), (method, coordinates));
        let mut found = [const { Vec::new() }; 3];
        for _ in 0..rounds {
            let ways = [[1, 1], [1, threads], [threads, threads]];
            for (found, way) in found.iter_mut().zip(ways) {
                found.push(seconds(&model, what, way, transitions)?);
            }
        }
        let [alone, together, many] = found.map(|mut found| 1e3 * median(&mut found));
        println!(
            "{name}: {alone:.2} {together:.2} {:.2}; {:.2}",
            alone / together,
            threads as f64 * alone / many
        );
    }
    Ok(())
}
