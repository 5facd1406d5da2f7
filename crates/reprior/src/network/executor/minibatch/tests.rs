//! Minibatches with statistics of their own against plain loops over all rows, and central differences of their loss.

use super::*;
use crate::compute::Real;
use crate::network::executor::tests::{Choice, noise, plain};
use crate::network::layer::{
    BatchNorm, Branch, Combination, Convolution, Dense, Layer, Padding, Parallel, Shape, Window,
    output_shape,
};
use crate::network::parameters::ParameterLayout;
use crate::network::{Activation, LayerScale};

/// All rows through some layers, number by number; batch normalisation takes its statistics of the rows, and leaves them with
/// unbiased variances.
fn plain_batch(
    layers: &[Layer],
    mut shape: Shape,
    mut rows: Vec<Vec<f64>>,
    weights: &mut &[f64],
    statistics: &mut Vec<f64>,
) -> Vec<Vec<f64>> {
    for layer in layers {
        let own = match layer {
            Layer::BatchNorm(layer) => {
                let channels = shape.channels;
                let values = |channel: usize| {
                    let of_row = move |row: &Vec<f64>| -> Vec<f64> {
                        row.iter()
                            .skip(channel)
                            .step_by(channels)
                            .copied()
                            .collect()
                    };
                    rows.iter().flat_map(of_row).collect::<Vec<f64>>()
                };
                let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
                let means: Vec<f64> = (0..channels).map(|c| mean(&values(c))).collect();
                let squares = |c: usize| {
                    let squares = values(c).into_iter().map(|v| (v - means[c]).powi(2));
                    squares.collect::<Vec<f64>>()
                };
                let variances: Vec<f64> = (0..channels).map(|c| mean(&squares(c))).collect();
                let count = values(0).len() as f64;
                statistics.extend(&means);
                statistics.extend(variances.iter().map(|v| v * count / (count - 1.0)));
                Layer::BatchNorm(BatchNorm {
                    mean: means,
                    variance: variances,
                    epsilon: layer.epsilon,
                })
            }
            other => other.clone(),
        };
        let after = output_shape(&own, shape, "").unwrap();
        rows = match &own {
            Layer::Parallel(parallel) => {
                let mut sums = vec![vec![0.0; after.features()]; rows.len()];
                let mut first = 0;
                for branch in &parallel.branches {
                    let found =
                        plain_batch(&branch.layers, shape, rows.clone(), weights, statistics);
                    let channels = found[0].len() / after.pixels();
                    for (sum, found) in sums.iter_mut().zip(&found) {
                        for (at, value) in found.iter().enumerate() {
                            let place = at / channels * after.channels + first + at % channels;
                            sum[place] += branch.factor * value;
                        }
                    }
                    if parallel.combination == Combination::Concatenate {
                        first += channels;
                    }
                }
                sums
            }
            own => {
                let start = *weights;
                let through = |row: &Vec<f64>| {
                    *weights = start;
                    plain(own, shape, row, weights)
                };
                rows.iter().map(through).collect()
            }
        };
        shape = after;
    }
    rows
}

/// A loss in which rows differ.
fn loss(row: usize, f: &[f64]) -> f64 {
    let terms = f.iter().zip(1..).map(|(f, k)| {
        let target = ((row * 7 + k) as f64).sin();
        0.5 * (f - target).powi(2)
    });
    terms.sum()
}

fn plain_loss(network: &Composition, weights: &[f64], inputs: &[Vec<f64>]) -> (f64, Vec<f64>) {
    let (mut rest, mut statistics) = (weights, Vec::new());
    let mut layers = network.layers.clone();
    layers.extend([
        Layer::Flatten,
        Layer::Dense(Dense {
            units: network.outputs,
            scale: network.readout_scale,
        }),
    ]);
    let rows = inputs.to_vec();
    let outputs = plain_batch(&layers, network.input, rows, &mut rest, &mut statistics);
    assert!(rest.is_empty());
    let total = outputs
        .iter()
        .enumerate()
        .map(|(row, f)| loss(row, f))
        .sum();
    (total, statistics)
}

/// Loss, gradient and statistics of a minibatch of all rows.
fn evaluated<R: Real>(
    network: &Composition,
    weights: &[f64],
    inputs: &[Vec<f64>],
    threads: usize,
) -> (f64, Vec<f64>, Vec<f64>) {
    let real = |values: &[f64]| -> Vec<R> { values.iter().map(|&v| R::from_f64(v)).collect() };
    let executor = Executor::<R>::new(network).unwrap().with_threads(threads);
    let mut gradients = Gradients::new(network, executor);
    gradients.take_batch_statistics();
    let mut team = Team::new(threads).unwrap();
    let rows: Vec<u32> = (0..inputs.len() as u32).collect();
    let row_loss = |row: usize, f: &[R], cotangent: &mut [R]| {
        let f: Vec<f64> = f.iter().map(|f| f.to_f64()).collect();
        for (k, (cotangent, f)) in (1..).zip(cotangent.iter_mut().zip(&f)) {
            *cotangent = R::from_f64(f - ((row * 7 + k) as f64).sin());
        }
        loss(row, &f)
    };
    let weights = real(weights);
    let mut gradient = vec![R::ZERO; weights.len()];
    let mut total = 0.0;
    let all = real(&inputs.concat());
    // a smaller minibatch before it leaves no trace
    for rows in [&rows[..2], &rows] {
        let batch = Minibatch {
            inputs: &all,
            columns: network.inputs(),
            rows,
            loss: &row_loss,
            statistics: GradientStatistics::None,
            dropout: None,
        };
        let evaluation = gradients.evaluate(&mut team, &weights, batch, None);
        total = evaluation.loss;
        let sums = UnitSums {
            gradient: &mut gradient,
            squares: &mut [],
            cross: &mut [],
        };
        evaluation.scaled_sums(1.0, (0, 0..0), 0..weights.len(), sums);
    }
    let statistics = gradients.batch_statistics().to_vec();
    let gradient = gradient.iter().map(|g| g.to_f64()).collect();
    (total, gradient, statistics)
}

fn close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1.0_f64, |most, e| most.max(e.abs()));
    for (at, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() < tolerance * scale, "{what} {at}: {a} {b}");
    }
}

fn check(network: &Composition, rows: usize, what: &str) {
    let weights = noise::<f64>(network.parameters(), 1);
    let columns = network.inputs();
    let inputs: Vec<Vec<f64>> = noise::<f64>(rows * columns, 2)
        .chunks_exact(columns)
        .map(<[f64]>::to_vec)
        .collect();
    let (total, statistics) = plain_loss(network, &weights, &inputs);
    let found = evaluated::<f64>(network, &weights, &inputs, 1);
    close(&[found.0], &[total], 1e-10, what);
    close(&found.2, &statistics, 1e-11, what);
    let mut numeric = Vec::new();
    let mut moved = weights.clone();
    for at in 0..weights.len() {
        let mut value = |by: f64| {
            moved[at] = weights[at] + by;
            plain_loss(network, &moved, &inputs).0
        };
        let [a, b, c, d] = [1e-4, -1e-4, 2e-4, -2e-4].map(&mut value);
        numeric.push((8.0 * (a - b) - (c - d)) / 12e-4);
        moved[at] = weights[at];
    }
    close(&found.1, &numeric, 1e-6, what);
    assert_eq!(
        evaluated::<f64>(network, &weights, &inputs, 3),
        found,
        "{what}"
    );
    let single = evaluated::<f32>(network, &weights, &inputs, 2);
    close(&[single.0], &[total], 1e-4, what);
    close(&single.1, &numeric, 1e-3, what);
}

fn norm() -> Layer {
    Layer::BatchNorm(BatchNorm {
        mean: Vec::new(),
        variance: Vec::new(),
        epsilon: 1e-5,
    })
}

fn tanh() -> Layer {
    Layer::Activation {
        function: Activation::Tanh,
    }
}

fn composition(input: [usize; 3], layers: Vec<Layer>) -> Composition {
    Composition {
        input: input.into(),
        layers,
        outputs: 2,
        readout_scale: LayerScale::READOUT,
    }
}

/// Of vectors, where a row has one value of a channel: two hidden layers, and normalisation of the inputs.
#[test]
fn gradients_go_through_the_statistics_of_dense_layers() {
    let scale = LayerScale::HIDDEN;
    let dense = |units| Layer::Dense(Dense { units, scale });
    let layers = vec![norm(), dense(5), norm(), tanh(), dense(3), norm(), tanh()];
    for rows in [3, 16, 61] {
        check(&composition([1, 1, 4], layers.clone()), rows, "dense");
    }
}

/// Convolutions, and a residual block with normalisation on both branches whose last readers are sums.
#[test]
fn gradients_go_through_the_statistics_of_residual_blocks() {
    let convolution = |channels, size: usize, stride: usize| {
        Layer::Convolution(Convolution {
            channels,
            window: Window {
                size: [size; 2],
                stride: [stride; 2],
                padding: Padding::Same,
            },
            scale: LayerScale {
                weight: 1.2,
                bias: 0.0,
            },
        })
    };
    let block = |shortcut: Vec<Layer>, branch: Vec<Layer>| {
        Layer::Parallel(Parallel {
            branches: [(1.0, shortcut), (0.7, branch)]
                .map(|(factor, layers)| Branch { factor, layers })
                .into(),
            combination: Combination::Sum,
        })
    };
    let first = vec![
        convolution(3, 3, 1),
        norm(),
        tanh(),
        convolution(3, 3, 1),
        norm(),
    ];
    let second = vec![
        convolution(4, 3, 2),
        norm(),
        tanh(),
        convolution(4, 3, 1),
        norm(),
    ];
    let layers = vec![
        convolution(3, 3, 1),
        norm(),
        tanh(),
        block(Vec::new(), first),
        tanh(),
        block(vec![convolution(4, 1, 2), norm()], second),
        Layer::GlobalAveragePool,
    ];
    for rows in [2, 50] {
        check(&composition([4, 3, 2], layers.clone()), rows, "residual");
    }
}

#[test]
fn gradients_go_through_the_statistics_of_networks_made_at_random() {
    let mut tried = 0;
    for seed in 0..400 {
        let network = Choice::network(seed, true);
        let is_of_interest = !network.statistics().is_empty() && network.parameters() <= 120;
        // what normalises values that are all alike has no derivative that differences could find
        if !(is_of_interest && varies(&network)) {
            continue;
        }
        check(&network, 37, &format!("seed {seed}: {network:?}"));
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
}

/// Whether every normalisation has a variance to divide by.
fn varies(network: &Composition) -> bool {
    let weights = noise::<f64>(network.parameters(), 1);
    let inputs = noise::<f64>(37 * network.inputs(), 2);
    let rows: Vec<Vec<f64>> = inputs
        .chunks_exact(network.inputs())
        .map(<[f64]>::to_vec)
        .collect();
    let (_, statistics) = plain_loss(network, &weights, &rows);
    // variances come after means; a mean this small is as rare as such a variance
    statistics.iter().all(|s| s.abs() > 1e-3)
}

/// Loss, sums of gradients and, of `kinds` in all, of their squares and of products with the biases', of the rows from number `first` on; and
/// whether products were with few inputs.
fn sums<R: Real>(
    network: &Composition,
    (inputs, first): (&[f64], usize),
    leaves_out: bool,
    kinds: usize,
) -> (f64, [Vec<f64>; 3], bool) {
    let real = |values: &[f64]| -> Vec<R> { values.iter().map(|&v| R::from_f64(v)).collect() };
    let inputs = real(inputs);
    let columns = network.inputs();
    let mut gradients = Gradients::new(network, Executor::<R>::new(network).unwrap());
    if leaves_out {
        gradients.leave_out_common(&inputs, columns);
    }
    let row_loss = |row: usize, f: &[R], cotangent: &mut [R]| {
        let f: Vec<f64> = f.iter().map(|f| f.to_f64()).collect();
        for (k, (cotangent, f)) in (1..).zip(cotangent.iter_mut().zip(&f)) {
            *cotangent = R::from_f64(f - ((row * 7 + k) as f64).sin());
        }
        loss(row, &f)
    };
    let rows: Vec<u32> = (first as u32..(inputs.len() / columns) as u32).collect();
    let weights = real(&noise::<f64>(network.parameters(), 1));
    let statistics = match kinds {
        1 => GradientStatistics::None,
        2 => GradientStatistics::Squares,
        _ => GradientStatistics::SquaresAndCross,
    };
    let batch = Minibatch {
        inputs: &inputs,
        columns,
        rows: &rows,
        loss: &row_loss,
        statistics,
        dropout: None,
    };
    let mut team = Team::new(2).unwrap();
    let evaluation = gradients.evaluate(&mut team, &weights, batch, None);
    let mut found = [0, 1, 2].map(|_| Vec::new());
    for (index, layer) in ParameterLayout::new(network).layers.iter().enumerate() {
        let mut own =
            [0, 1, 2].map(|at| vec![R::ONE; if at < kinds { layer.range.len() } else { 0 }]);
        let [gradient, squares, cross] = &mut own;
        let sums = UnitSums {
            gradient,
            squares,
            cross,
        };
        evaluation.scaled_sums(1.3, (index, 0..layer.units), layer.range.clone(), sums);
        for (all, own) in found.iter_mut().zip(own) {
            all.extend(own.iter().map(|v| v.to_f64()));
        }
    }
    let loss = evaluation.loss;
    (
        loss,
        found,
        gradients.dense.is_some_and(|dense| dense.is_sparse),
    )
}

/// What most inputs of a column are is left out of products and put back; a batch that has little of it is multiplied as it is.
#[test]
fn common_inputs_are_left_out() {
    let columns = 40;
    for bias in [0.0, 0.3] {
        let mut network = Composition::fully_connected(columns, &[24, 16], 3, Activation::Tanh);
        match &mut network.layers[0] {
            Layer::Dense(layer) => layer.scale.bias = bias,
            other => panic!("{other:?}"),
        }
        let common = |column: usize| if column.is_multiple_of(3) { 0.2 } else { -0.4 };
        for (rows, first, is_sparse) in [(50, 0, true), (1_400, 0, true), (1_030, 1_000, false)] {
            let inputs = noise::<f64>(rows * columns, 2).into_iter().enumerate();
            let is_kept = |at: usize, x: f64| x >= 0.9 || (!is_sparse && at >= first * columns);
            let inputs = inputs.map(|(at, x)| {
                if is_kept(at, x) {
                    x
                } else {
                    common(at % columns)
                }
            });
            let inputs: Vec<f64> = inputs.collect();
            for kinds in [1, 2, 3] {
                let what = format!("{rows} rows, {kinds} kinds, bias {bias}");
                let rows = (&inputs[..], first);
                let (loss, expected, _) = sums::<f64>(&network, rows, false, kinds);
                let (found_loss, found, without) = sums::<f64>(&network, rows, true, kinds);
                assert_eq!(without, is_sparse, "{what}");
                close(&[found_loss], &[loss], 1e-12, &what);
                let (single_loss, single, _) = sums::<f32>(&network, rows, true, kinds);
                close(&[single_loss], &[loss], 1e-4, &what);
                for ((found, single), expected) in found.iter().zip(&single).zip(&expected) {
                    close(found, expected, 1e-11, &what);
                    close(single, expected, 1e-4, &what);
                }
            }
        }
    }
}
