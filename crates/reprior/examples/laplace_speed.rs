//! Times one piece of work of a Laplace approximation of LeNet on random pictures, and prints a line of JSON.
//!
//! ```text
//! cargo run --release -p reprior --example laplace_speed -- fit-kron --rows 1000
//! ```
//!
//! Single precision on all cores, the network in the standard parametrisation with weights of the size that PyTorch begins with,
//! prior precision 1; the median of as many runs as fit into two seconds, three at least. `benches/peers/laplace.py` runs it
//! beside others.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a benchmark"
)]

use std::time::Instant;

use reprior::compute::kernels::matrix_mut;
use reprior::compute::{Matrix, Purpose, Stream, matrix};
use reprior::laplace::curvature::{GaussNewton, SymmetricOperator};
use reprior::laplace::link::log_probabilities;
use reprior::laplace::spectrum::Spectrum;
use reprior::laplace::{
    FisherInformation, HessianStructure, Lanczos, Laplace, LaplaceData, Link, PriorPrecision,
    Subset,
};
use reprior::model::likelihood::Categorical;
use reprior::network::layer::Shape;
use reprior::network::named::NamedNetwork;
use reprior::network::parameters::ParameterLayout;
use reprior::network::{Activation, Executor, LayerScale};

const FISHER: FisherInformation<'static> = FisherInformation {
    likelihood: &Categorical,
    scales: &[],
};
const CLASSES: usize = 10;

fn normals(count: usize, index: u64) -> Vec<f32> {
    let mut values = vec![0.0; count];
    Stream::new(0, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

/// The program's largest resident memory so far, in MB.
fn megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kilobytes.map_or(f64::NAN, |kilobytes| kilobytes * 1024.0 / 1e6)
}

/// The median of the seconds that runs take.
fn median(mut run: impl FnMut()) -> f64 {
    let begin = Instant::now();
    run();
    let mut seconds = Vec::new();
    while seconds.len() < 3 || begin.elapsed().as_secs_f64() < 2.0 {
        let start = Instant::now();
        run();
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Prints the products that 50 eigenpairs take after a step of a non-kernel diffusion, from noise and from the vectors before it.
fn warm_start(executor: &mut Executor<f32>, weights: &[f32], inputs: Matrix<'_, f32>) {
    let mut decompose = |weights: &[f32], start: Option<&Spectrum<f32>>| {
        let mut operator = GaussNewton {
            executor: &mut *executor,
            weights,
            inputs,
            curvature: &FISHER,
            scale: 60_000.0 / inputs.nrows() as f64,
        };
        let settings = Lanczos {
            most: 600,
            ..Lanczos::of_rank(50)
        };
        let mut noise = Stream::new(1, 0, Purpose::Curvature, 0);
        Spectrum::lanczos(&mut operator, settings, start, &mut noise).unwrap()
    };
    let before = decompose(weights, None);
    for steps in [10.0_f64, 100.0] {
        let mut noise = vec![0.0; weights.len()];
        Stream::new(2, 0, Purpose::Transition, 0).fill_normal(&mut noise);
        let mut moved = weights.to_vec();
        before.add_function(
            |value| (steps * (value + 1.0)).sqrt().recip(),
            &noise,
            &mut moved,
        );
        let [cold, warm] = [None, Some(&before)].map(|start| decompose(&moved, start).products);
        println!(
            "{{\"work\": \"warm-start\", \"steps\": {steps}, \"cold\": {cold}, \"warm\": {warm}}}"
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let work = arguments.first().map_or("gauss-newton", String::as_str);
    let rows = arguments.iter().position(|name| name == "--rows");
    let rows = rows.map_or(1000, |at| arguments[at + 1].parse().unwrap());
    let named: NamedNetwork = "lenet".parse().unwrap();
    let (activation, scale) = (Activation::Tanh, LayerScale::HIDDEN);
    let network = named.network(Shape::from([28, 28, 1]), CLASSES, activation, scale);
    let network = network.unwrap().in_standard_parametrisation().unwrap();
    let layout = ParameterLayout::new(&network);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut executor = Executor::<f32>::new(&network)
        .unwrap()
        .with_threads(threads);
    let mut source = Stream::new(1, 0, Purpose::Initial, 0);
    let weights = layout.draw_by_fan_in::<f32>(1.0, &mut source);
    let size = weights.len();
    let pixels: Vec<f32> = normals(rows * 784, 2)
        .iter()
        .map(|x| x.abs().min(1.0))
        .collect();
    let inputs = matrix(&pixels, rows, 784);
    let mut targets = vec![0.0; rows * CLASSES];
    for row in 0..rows {
        let label = (source.uniform() * CLASSES as f64) as usize;
        targets[label * rows + row] = 1.0;
    }
    let curvature = FISHER;
    let data = LaplaceData {
        inputs,
        targets: &targets,
        likelihood: &Categorical,
        scales: &[1.0; CLASSES],
        curvature: &curvature,
        scale: 1.0,
    };
    let (structure, subset) = match work.split_once('-').map_or("", |(_, rest)| rest) {
        "kron" => (HessianStructure::Kron, Subset::All),
        "diagonal" => (HessianStructure::Diag, Subset::All),
        _ => (HessianStructure::Full(1 << 30), Subset::LastLayer),
    };
    let prior = PriorPrecision::Scalar(1.0);
    let mut fit = |executor: &mut Executor<f32>| {
        let (subset, source) = (subset.clone(), &mut source);
        Laplace::fit(
            executor, &layout, &weights, data, structure, subset, &prior, source,
        )
        .unwrap()
    };
    let kind = work.split('-').next().unwrap_or_default();
    let seconds = match kind {
        "fit" => median(|| {
            std::hint::black_box(fit(&mut executor));
        }),
        "linearised" => {
            let laplace = fit(&mut executor);
            let mut out = vec![0.0; rows * CLASSES];
            let mut source = Stream::new(1, 0, Purpose::Prediction, 0);
            median(|| {
                let found = laplace.linearised(&mut executor, inputs);
                let numbers = [&found.means[..], &found.covariances];
                let link = Link::Probit;
                out.clear();
                log_probabilities(&Categorical, link, numbers, CLASSES, &mut source, &mut out)
                    .unwrap();
            })
        }
        "sampled" => {
            let laplace = fit(&mut executor);
            let mut source = Stream::new(1, 0, Purpose::Prediction, 0);
            let mut mean = vec![0.0; rows * CLASSES];
            median(|| {
                laplace.sampled(&mut executor, inputs, 20, &mut source, |f| {
                    for row in 0..rows {
                        let logits = (0..CLASSES).map(|c| f[c * rows + row].exp());
                        let total: f32 = logits.clone().sum();
                        for (c, p) in logits.enumerate() {
                            mean[c * rows + row] += p / total / 20.0;
                        }
                    }
                });
            })
        }
        _ => {
            let mut operator = GaussNewton {
                executor: &mut executor,
                weights: &weights,
                inputs,
                curvature: &curvature,
                scale: 1.0,
            };
            match work {
                "warm-start" => return warm_start(&mut executor, &weights, inputs),
                "lanczos" => median(|| {
                    // as many products as Lanczos' method makes in 100 iterations
                    let settings = Lanczos {
                        most: 100,
                        ..Lanczos::of_rank(84)
                    };
                    let mut noise = Stream::new(1, 0, Purpose::Curvature, 0);
                    let found = Spectrum::lanczos(&mut operator, settings, None, &mut noise);
                    let found = found.unwrap();
                    if std::env::var_os("VERBOSE").is_some() {
                        let (products, open) = (found.products, found.unconverged);
                        eprintln!(
                            "{} pairs, {products} products, {open} open",
                            found.values.len()
                        );
                    }
                }),
                _ => {
                    let count = if work == "gauss-newton" { 1 } else { 16 };
                    let vectors = normals(size * count, 3);
                    let mut out = vec![0.0; size * count];
                    let vectors = matrix(&vectors, size, count);
                    median(|| operator.apply(vectors, matrix_mut(&mut out, size, count)))
                        / count as f64
                }
            }
        }
    };
    let megabytes = megabytes();
    println!(
        "{{\"work\": \"{work}\", \"rows\": {rows}, \"seconds\": {seconds}, \"megabytes\": {megabytes:.1}}}"
    );
}
