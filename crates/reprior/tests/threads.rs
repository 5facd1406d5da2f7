//! A chain is the same, bit for bit, however many threads work on it together.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reprior::chain::{Chain, Collect, Control, Schedule, run};
use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior::posterior::{Coordinates, Posterior};
use reprior::sampler::{Method, SamplerSettings};

/// Rows, inputs, units of the hidden layers.
type Size<'a> = (usize, usize, &'a [usize]);

/// The last of three positions, and ℓ.
fn last(
    (rows, inputs, widths): Size<'_>,
    method: Method,
    coordinates: Coordinates,
    threads: usize,
) -> (Vec<f32>, f64) {
    let mut stream = Stream::new(1, 0, Purpose::Initial, 0);
    let (mut x, mut y) = (vec![0.0; rows * inputs], vec![0.0; rows]);
    stream.fill_normal(&mut x);
    stream.fill_normal(&mut y);
    let network = Composition::fully_connected(inputs, widths, 1, Activation::Gelu);
    let model = Model::new(network, 0.3, &x, y, &x[..inputs], InputReduction::Auto).unwrap();
    let schedule = Schedule {
        chains: 1,
        warmup: 2,
        draws: 1,
        thin: 1,
        seed: 3,
    };
    let settings = SamplerSettings {
        method,
        ..SamplerSettings::default()
    };
    let target = Posterior::<f32>::new(Arc::new(model), coordinates).unwrap();
    let chain = Chain::start(0, schedule, &settings, target).unwrap();
    let control = Control {
        threads,
        checkpoint_every: Duration::from_secs(3600),
        stop: &AtomicBool::new(false),
    };
    let (mut chains, outcome) = run(vec![(chain, Collect::default())], control, &|_| {});
    outcome.unwrap();
    let (_, mut kept) = chains.remove(0);
    (kept.positions.remove(0), kept.log_ratios[0])
}

/// Sizes whose kernels are shared: data space with and without blocks of the factorisation, feature space, several layers, blocks of
/// rows.
#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let sizes: [Size<'_>; 5] = [
        (300, 310, &[260]),
        (450, 5, &[600]),
        (900, 20, &[420]),
        (400, 10, &[128, 128, 128]),
        (3000, 8, &[32, 32, 32]),
    ];
    for size in sizes {
        for (method, coordinates) in [
            (Method::Pcn, Coordinates::Marginal),
            (Method::HmcInfinite, Coordinates::Marginal),
            (Method::Pcnl, Coordinates::Repriorised),
        ] {
            let alone = last(size, method, coordinates, 1);
            for threads in [2, 5] {
                let together = last(size, method, coordinates, threads);
                assert!(
                    alone == together,
                    "{size:?} {method} {coordinates:?} {threads}"
                );
            }
        }
    }
}
