//! Times of kernels of infinitely wide networks, in double precision on all cores.
//!
//! ```text
//! cargo bench -p reprior --bench infinite [-- PART-OF-A-NAME --only "NNGP and NTK" --threads 2 --seconds 5 --json]
//! ```
//!
//! The shortest time of several counts, as other programs only ever make it longer. The rate of an evidence is that of the factorisation's
//! and the inverse's operations, n³, in the time of all.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]

mod options;

use std::time::Duration;

use options::{Options, shortest};
use reprior::compute::kernels::{Cholesky, with_team};
use reprior::compute::{Purpose, Stream, matrix};
use reprior::gaussian_process::prior_scales::evidence_by_scales;
use reprior::network::infinite::by_scales::{KernelByScales, PriorScales};
use reprior::network::infinite::{InfiniteNetwork, Kinds};
use reprior::network::layer::{Convolution, Dense, Layer, Padding, Shape, Window};
use reprior::network::{Activation, Composition, LayerScale};

fn activation(function: Activation) -> Layer {
    Layer::Activation { function }
}

fn dense(inputs: usize, hidden: usize, function: Activation) -> Composition {
    let layer = Layer::Dense(Dense {
        units: 1,
        scale: LayerScale::HIDDEN,
    });
    let layers = (0..hidden).flat_map(|_| [layer.clone(), activation(function)]);
    network([1, 1, inputs], layers.collect())
}

fn convolutional(
    input: [usize; 3],
    hidden: usize,
    function: Activation,
    last: Layer,
) -> Composition {
    let layer = Layer::Convolution(Convolution {
        channels: 1,
        window: Window {
            size: [3; 2],
            stride: [1; 2],
            padding: Padding::Same,
        },
        scale: LayerScale::HIDDEN,
    });
    let layers = (0..hidden).flat_map(|_| [layer.clone(), activation(function)]);
    network(input, layers.chain([last]).collect())
}

fn network(input: [usize; 3], layers: Vec<Layer>) -> Composition {
    Composition {
        input: Shape::from(input),
        layers,
        outputs: 1,
        readout_scale: LayerScale::READOUT,
    }
}

/// For how long a case is repeated, and at least how often.
fn budget(options: &Options, repeats: usize) -> (Duration, usize) {
    match options.seconds {
        Some(seconds) => (Duration::from_secs_f64(seconds), 1),
        None => (Duration::ZERO, repeats),
    }
}

fn time(options: &Options, name: &str, network: &Composition, n: usize, repeats: usize) {
    if options.names.iter().any(|part| !name.contains(part)) {
        return;
    }
    let infinite = InfiniteNetwork::new(network).unwrap();
    let features = infinite.inputs();
    let mut inputs = vec![0.0_f64; n * features];
    Stream::new(0, 0, Purpose::Initial, 0).fill_normal(&mut inputs);
    let inputs = matrix(&inputs, features, n).transpose();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = options.threads.unwrap_or(cores);
    let (budget, count) = budget(options, repeats);
    for (kinds, label) in [(Kinds::Nngp, "NNGP"), (Kinds::NngpAndNtk, "NNGP and NTK")] {
        if !options.wants(label) {
            continue;
        }
        let least = shortest(budget, count, || {
            std::hint::black_box(infinite.kernels(inputs, kinds, threads).unwrap());
        });
        if options.json {
            Options::report(name, label, n, threads, least);
            continue;
        }
        let pairs = (n * (n + 1) / 2) as f64;
        println!(
            "{name:44} {label:12} {:9.1} ms {:10.3} μs a pair",
            least * 1e3,
            least / pairs * 1e6
        );
    }
}

/// The log evidence and its gradient by a prior scale for each of ten inputs, by those of the layers and by the noise; and the
/// factorisation in it alone.
fn time_evidence(options: &Options, hidden: usize, rows: usize, repeats: usize) {
    let n = options.rows.unwrap_or(rows);
    let name = format!("{n} rows of 10 numbers, {hidden} × dense gelu");
    if options.names.iter().any(|part| !name.contains(part)) {
        return;
    }
    let network = dense(10, hidden, Activation::Gelu);
    let kernel = KernelByScales::new(&network).unwrap();
    let mut stream = Stream::new(0, 0, Purpose::Initial, 0);
    let mut inputs = vec![0.0_f64; n * 10];
    stream.fill_normal(&mut inputs);
    let noisy = |row: usize| inputs[row].sin() + 0.1 * stream.normal();
    let targets: Vec<f64> = (0..n).map(noisy).collect();
    let inputs = matrix(&inputs, n, 10);
    let mut layers = network.hidden_scales();
    layers.push(network.readout_scale);
    let scales = PriorScales {
        inputs: vec![1.0; 10],
        layers,
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = options.threads.unwrap_or(cores);
    let (budget, count) = budget(options, repeats);
    let report = |label: &str, operations: usize, seconds: f64| {
        if options.json {
            return Options::report(&name, label, n, threads, seconds);
        }
        let (ms, rate) = (seconds * 1e3, operations as f64 / seconds / 1e9);
        println!("{name:44} {label:12} {ms:9.1} ms {rate:6.1} GFLOP/s");
    };
    if options.wants("evidence") {
        let least = shortest(budget, count, || {
            let found = evidence_by_scales(&kernel, inputs, &targets, &scales, 0.1, threads);
            std::hint::black_box(found.unwrap());
        });
        report("evidence", n * n * n, least);
    }
    if options.wants("factorisation") {
        let prior = kernel.forward(inputs, &scales, threads);
        let entry = |row: usize, column: usize| {
            prior[column * n + row] + if row == column { 0.01 } else { 0.0 }
        };
        let mut cholesky = Cholesky::new(n);
        let least = with_team(threads, || {
            shortest(budget, count, || {
                cholesky.factorise(entry).unwrap();
            })
        });
        report("factorisation", n * n * n / 3, least);
    }
}

fn main() {
    let options = &Options::read();
    for function in [
        Activation::Relu,
        Activation::Gelu,
        Activation::Erf,
        Activation::Sin,
    ] {
        let name = format!("1,024 vectors of 3,072, 3 × dense {function}");
        time(options, &name, &dense(3072, 3, function), 1024, 10);
    }
    time(
        options,
        "256 vectors of 3,072, 3 × dense tanh",
        &dense(3072, 3, Activation::Tanh),
        256,
        1,
    );
    for (hidden, rows) in [(4, 500), (4, 1000), (2, 2000)] {
        time_evidence(options, hidden, rows, 10);
    }
    let image = [16, 16, 3];
    let flat = convolutional(image, 3, Activation::Relu, Layer::Flatten);
    time(
        options,
        "64 images 16×16×3, 3 × conv relu, flatten",
        &flat,
        64,
        10,
    );
    for function in [Activation::Relu, Activation::Gelu] {
        let pooled = convolutional(image, 3, function, Layer::GlobalAveragePool);
        let name = format!("64 images 16×16×3, 3 × conv {function}, pool");
        time(options, &name, &pooled, 64, 2);
    }
}
