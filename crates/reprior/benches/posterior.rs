//! Time of ℓ and of ℓ with its gradient, side by side, for networks with one hidden layer.
//!
//! ```text
//! cargo bench -p reprior [FILTER]
//! ```
//!
//! Both are timed in turns; the shortest time of each counts, as other programs only ever make it longer. Operations are
//! those of the products and factorisations, leading terms only. One thread, networks in single precision.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reprior::compute::{Purpose, Stream};
use reprior::model::likelihood::{Categorical, Gaussian, Likelihood};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior::posterior::{Coordinates, NetworkPosterior, Regulariser, Space, Target};

/// Time spent on each line.
const BUDGET: Duration = Duration::from_millis(800);

#[derive(Clone, Copy)]
struct Size {
    rows: usize,
    inputs: usize,
    width: usize,
    outputs: usize,
}

/// What is timed, and its operations (of ℓ, of ℓ with gradient) above the features.
struct Case {
    name: &'static str,
    likelihood: Arc<dyn Likelihood>,
    coordinates: Coordinates,
    space: Space,
    regulariser: Regulariser,
    operations: [f64; 2],
}

fn cases(size: Size) -> Vec<Case> {
    let (n, p, c) = (
        size.rows as f64,
        size.width as f64 + 1.0,
        size.outputs as f64,
    );
    // the smaller dimension is that of the factorisation
    let case = |name, likelihood, coordinates, space, regulariser, operations| Case {
        name,
        likelihood,
        coordinates,
        space,
        regulariser,
        operations,
    };
    let gaussian = || -> Arc<dyn Likelihood> { Arc::new(Gaussian) };
    let categorical = || -> Arc<dyn Likelihood> { Arc::new(Categorical) };
    let (repriorised, matched) = (Coordinates::Repriorised, Regulariser::Matched);
    let value = Regulariser::Value(0.05);
    // outputs, and twice that for their derivatives
    let fit = 2.0 * n * p * c;
    let solved = |k: f64, other: f64| {
        let map = k * k * other + k.powi(3) / 3.0;
        [map, map + 2.0 * k * k * other + 2.0 * k.powi(3) / 3.0]
    };
    let data = solved(n, p);
    let feature = solved(p, n);
    let cheaper = Space::cheaper(size.rows, size.width + 1);
    let integrated = if cheaper == Space::Feature {
        feature
    } else {
        data
    };
    let general = |[map, both]: [f64; 2], k: f64| {
        let map = map + fit;
        // maps, likelihood, pull-back; the semiseparable product and two products of low rank
        [map + fit, both + 8.0 * fit + 12.0 * k * k * c]
    };
    let symmetric = [data[0] + 9.0 * n.powi(3), data[1] + 13.0 * n.powi(3)];
    let mut all = vec![
        case(
            "marginal",
            gaussian(),
            Coordinates::Marginal,
            cheaper,
            matched,
            integrated,
        ),
        case(
            "standard",
            gaussian(),
            Coordinates::Standard,
            cheaper,
            matched,
            [fit, 3.0 * fit],
        ),
    ];
    // data space pays where there are fewer rows than features, feature space elsewhere; the other is for comparison
    let spaces = [(Space::Feature, p), (Space::Data, n)];
    for (space, k) in spaces.into_iter().filter(|(_, k)| *k < 2000.0) {
        let base = if space == Space::Feature {
            feature
        } else {
            data
        };
        for (name, likelihood, regulariser) in [
            ("repriorised, categorical", categorical(), matched),
            ("repriorised, λ given", gaussian(), value),
        ] {
            all.push(case(
                name,
                likelihood,
                repriorised,
                space,
                regulariser,
                general(base, k),
            ));
        }
    }
    if n < 500.0 && p < 1000.0 {
        all.push(case(
            "repriorised, λ given",
            gaussian(),
            repriorised,
            Space::DataSymmetric,
            value,
            general(symmetric, n),
        ));
    }
    all
}

fn model(size: Size, likelihood: Arc<dyn Likelihood>) -> Arc<Model<f32>> {
    let Size {
        rows,
        inputs,
        width,
        outputs,
    } = size;
    let mut x = vec![0.0; rows * inputs];
    Stream::new(1, 0, Purpose::Initial, 0).fill_normal(&mut x);
    let is_class = |at: usize| f64::from(u8::from(at % rows % outputs.max(2) == at / rows));
    let y = (0..rows * outputs).map(is_class).collect();
    let architecture = Composition::fully_connected(inputs, &[width], outputs, Activation::Gelu);
    let model = Model::new(architecture, 0.1, &x, y, &[], InputReduction::Auto);
    Arc::new(model.unwrap().with_likelihood(likelihood))
}

/// The shortest time of each of two operations, in seconds, that are run in turns.
fn shortest(mut operations: [&mut dyn FnMut(); 2]) -> [f64; 2] {
    let mut times = [f64::INFINITY; 2];
    operations.iter_mut().for_each(|operation| operation());
    let start = Instant::now();
    while start.elapsed() < BUDGET {
        for (operation, time) in operations.iter_mut().zip(&mut times) {
            let before = Instant::now();
            operation();
            *time = time.min(before.elapsed().as_secs_f64());
        }
    }
    times
}

fn main() {
    // cargo's own flag for benchmarks is not a filter
    let filter = std::env::args().skip(1).find(|a| !a.starts_with("--"));
    let of = |rows, inputs, width, outputs| Size {
        rows,
        inputs,
        width,
        outputs,
    };
    let sizes = [
        of(256, 3072, 512, 10),
        of(256, 3072, 1024, 10),
        of(256, 3072, 4096, 10),
        of(1000, 10, 64, 1),
        of(1000, 10, 256, 1),
    ];
    for size in sizes {
        let Size {
            rows,
            inputs,
            width,
            outputs,
        } = size;
        println!("\nn = {rows}, {inputs} inputs, width {width}, {outputs} outputs");
        println!(
            "{:<26}{:<16}{:>9}{:>9}{:>7}{:>9}{:>9}",
            "", "", "ℓ ms", "∇ℓ ms", "ratio", "Gflop/s", "Gflop/s"
        );
        for case in cases(size) {
            let label = format!("{width} {} {}", case.name, case.space);
            if filter.as_ref().is_some_and(|f| !label.contains(f)) {
                continue;
            }
            let model = model(size, case.likelihood);
            let first = (rows * width * model.design.columns()) as f64
                * if model.design.is_reduced() { 1.0 } else { 2.0 };
            let target = || {
                NetworkPosterior::with_regulariser(
                    Arc::clone(&model),
                    case.coordinates,
                    Some(case.space),
                    case.regulariser,
                )
            };
            let (mut alone, mut both) = (target(), target());
            let mut z = vec![0.0; alone.dim()];
            Stream::new(2, 0, Purpose::Initial, 0).fill_normal(&mut z);
            let mut gradient = z.clone();
            let [value, with_gradient] = shortest([
                &mut || {
                    black_box(alone.log_ratio(&z).unwrap());
                },
                &mut || {
                    black_box(both.log_ratio_and_gradient(&z, &mut gradient).unwrap());
                },
            ]);
            let [a, b] = case.operations;
            println!(
                "{:<26}{:<16}{:>9.3}{:>9.3}{:>7.2}{:>9.1}{:>9.1}",
                case.name,
                case.space.to_string(),
                value * 1e3,
                with_gradient * 1e3,
                with_gradient / value,
                (a + first) / value / 1e9,
                (b + 2.0 * first) / with_gradient / 1e9
            );
        }
    }
}
