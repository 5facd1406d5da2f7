//! Times of general networks, in single precision: outputs, gradients, Gauss-Newton and Hessian products.
//!
//! ```text
//! cargo bench -p reprior --bench networks [-- lenet --only "outputs and gradient" --rows 128 --threads 2 --seconds 2 --json]
//! ```
//!
//! The shortest of several times, as other programs only ever make it longer. Operations are those of the products alone
//! (2 for each weight and position forward, the first layer's cotangents of the inputs left out): activations count nothing.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]

mod options;

use std::time::Duration;

use options::{Options, shortest};
use reprior::compute::kernels::matrix_mut;
use reprior::compute::{Purpose, Stream, matrix};
use reprior::network::layer::{Layer, Shape};
use reprior::network::named::NamedNetwork;
use reprior::network::{Activation, Composition, Executor, LayerScale};

/// Seconds spent on each line.
const BUDGET: f64 = 2.0;

fn noise(count: usize) -> Vec<f32> {
    let mut values = vec![0.0_f32; count];
    Stream::new(0, 0, Purpose::Initial, 0).fill_normal(&mut values);
    values
}

/// Multiplications of a sample's forward pass: of all layers, and of those that read the input.
fn multiplications(layers: &[Layer], mut shape: Shape, reads_input: bool) -> [f64; 2] {
    let (mut all, mut first, mut reads_input) = (0.0, 0.0, reads_input);
    for layer in layers {
        let network = Composition {
            input: shape,
            layers: vec![layer.clone()],
            outputs: 1,
            readout_scale: LayerScale::READOUT,
        };
        let after = network.shapes().unwrap()[1];
        if let Layer::Parallel(parallel) = layer {
            for branch in &parallel.branches {
                let [inner, own] = multiplications(&branch.layers, shape, reads_input);
                (all, first) = (all + inner, first + own);
            }
        } else if let Layer::Dense(_) | Layer::Convolution(_) = layer {
            let weights: usize = layer
                .parameter_shapes(shape)
                .iter()
                .map(|[r, c]| r * c)
                .sum();
            let own = (weights * after.pixels()) as f64;
            all += own;
            first += if reads_input { own } else { 0.0 };
        }
        reads_input &= matches!(layer, Layer::Flatten);
        shape = after;
    }
    [all, first]
}

struct Case<'a> {
    name: &'a str,
    threads: usize,
    options: &'a Options,
}

impl Case<'_> {
    fn line(&self, operation: &str, rows: usize, operations: f64, run: impl FnMut()) {
        if !self.options.wants(operation) {
            return;
        }
        let budget = Duration::from_secs_f64(self.options.seconds.unwrap_or(BUDGET));
        let seconds = shortest(budget, 3, run);
        if self.options.json {
            return Options::report(self.name, operation, rows, self.threads, seconds);
        }
        let rate = operations * rows as f64 / seconds / 1e9;
        let each = seconds / rows as f64 * 1e6;
        println!(
            "{operation:34} {rows:6} {:9.2} ms {each:8.2} µs each {rate:7.1} Gflop/s",
            seconds * 1e3
        );
    }
}

fn measure(case: &Case<'_>, input: [usize; 3], batches: &[usize]) {
    let Case {
        name,
        threads,
        options,
    } = *case;
    let named: NamedNetwork = name.parse().unwrap();
    let scale = LayerScale::HIDDEN;
    let network = named
        .network(Shape::from(input), 10, Activation::Gelu, scale)
        .unwrap();
    let mut executor = Executor::<f32>::new(&network)
        .unwrap()
        .with_threads(threads);
    let count = executor.parameters();
    if !options.json {
        println!(
            "{name}, {count} parameters, {threads} threads, blocks of {}",
            executor.block_rows()
        );
    }
    let [mut all, mut first] = multiplications(&network.layers, network.input, true);
    let readout = executor.readout_parameters() as f64;
    all += readout;
    first += if network.layers.is_empty() {
        readout
    } else {
        0.0
    };
    let (weights, direction) = (noise(count), noise(count));
    let mut gradient = vec![0.0; count];
    let only = options.rows.map(|rows| [rows]);
    for &rows in only.as_ref().map_or(batches, |only| &only[..]) {
        let inputs = noise(rows * network.input.features());
        let inputs = matrix(&inputs, rows, network.input.features());
        let cotangent = noise(rows * 10);
        let cotangent = matrix(&cotangent, rows, 10);
        let mut out = vec![0.0; rows * 10];
        case.line("outputs", rows, 2.0 * all, || {
            executor.outputs(&weights, inputs, matrix_mut(&mut out, rows, 10));
        });
        case.line(
            "outputs and gradient",
            rows,
            6.0 * all - 2.0 * first,
            || {
                executor.vjp(&weights, inputs, cotangent, &mut gradient, None);
            },
        );
        let curvature = |_: usize, _: &[f32], _: &mut [f32]| {};
        case.line(
            "Gauss-Newton product",
            rows,
            10.0 * all - 4.0 * first,
            || {
                let out = &mut gradient;
                executor.gauss_newton_product(&weights, inputs, &curvature, &direction, out);
            },
        );
        case.line("Hessian product", rows, 18.0 * all - 10.0 * first, || {
            executor.hessian_product(&weights, inputs, cotangent, &direction, &mut gradient);
        });
    }
    if !options.json {
        println!(
            "{:.1} MiB of buffers",
            executor.bytes() as f64 / f64::from(1 << 20)
        );
    }
}

fn main() {
    let options = Options::read();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = match options.threads {
        Some(threads) => vec![threads],
        None if cores > 1 => vec![1, cores],
        None => vec![1],
    };
    let (mnist, cifar) = ([28, 28, 1], [32, 32, 3]);
    let cases: [(&str, [usize; 3], &[usize]); 4] = [
        ("lenet", mnist, &[128, 1000, 10_000]),
        ("fcn:1024,1024", cifar, &[256]),
        ("resnet-small", cifar, &[128]),
        ("resnet:8,width=64", cifar, &[32]),
    ];
    let names = &options.names;
    for (name, input, batches) in cases {
        if names.is_empty() || names.iter().any(|wanted| name.starts_with(wanted.as_str())) {
            for &threads in &threads {
                let case = Case {
                    name,
                    threads,
                    options: &options,
                };
                measure(&case, input, batches);
            }
        }
    }
}
