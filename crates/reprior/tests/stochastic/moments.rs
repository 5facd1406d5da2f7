//! Sums of products of single rows' gradients, against these gradients.

use reprior::compute::kernels::matrix_mut;
use reprior::compute::matrix;
use reprior::network::executor::GradientMoments;
use reprior::network::layer::{
    Branch, Convolution, Dense, Layer, Padding, Parallel, Shape, Window,
};
use reprior::network::parameters::ParameterLayout;
use reprior::network::{Activation, Composition, Executor, LayerScale};

use super::normals;

fn convolution(size: usize, padding: Padding, channels: usize, bias: f64) -> Layer {
    Layer::Convolution(Convolution {
        channels,
        window: Window {
            size: [size; 2],
            stride: [1; 2],
            padding,
        },
        scale: LayerScale { weight: 1.3, bias },
    })
}

fn activation() -> Layer {
    Layer::Activation {
        function: Activation::Tanh,
    }
}

fn networks() -> Vec<Composition> {
    let dense = |units, bias| {
        Layer::Dense(Dense {
            units,
            scale: LayerScale { weight: 0.8, bias },
        })
    };
    let network = |input: [usize; 3], layers| Composition {
        input: Shape::from(input),
        layers,
        outputs: 2,
        readout_scale: LayerScale::READOUT,
    };
    let branch = |layers| Branch {
        factor: 0.7,
        layers,
    };
    vec![
        network(
            [1, 1, 5],
            vec![dense(4, 0.3), activation(), dense(3, 0.0), activation()],
        ),
        network(
            [4, 4, 2],
            vec![
                convolution(3, Padding::Same, 3, 0.2),
                activation(),
                Layer::Parallel(Parallel {
                    branches: vec![
                        branch(vec![]),
                        branch(vec![convolution(1, Padding::Valid, 3, 0.0)]),
                    ],
                    combination: Default::default(),
                }),
                Layer::GlobalAveragePool,
                dense(4, 0.1),
                activation(),
            ],
        ),
    ]
}

/// 37 rows are two panels and a part of a third.
#[test]
fn squares_and_products_with_the_bias() {
    for network in networks() {
        let (rows, c) = (37, 2);
        let mut executor = Executor::<f64>::new(&network).unwrap().with_threads(2);
        let (d, dim) = (executor.inputs_count(), executor.parameters());
        let (weights, x, delta) = (normals(dim, 1), normals(rows * d, 2), normals(rows * c, 3));
        let (inputs, cotangents) = (matrix(&x, rows, d), matrix(&delta, rows, c));
        let (mut gradient, mut squares, mut cross) =
            (vec![9.0; dim], vec![9.0; dim], vec![9.0; dim]);
        let mut kronecker = vec![9.0; executor.kronecker_len()];
        let loss = |row: usize, _: &[f64], out: &mut [f64]| {
            for (k, out) in out.iter_mut().enumerate() {
                *out = delta[k * rows + row];
            }
            0.0
        };
        let moments = GradientMoments {
            squares: &mut squares,
            cross: &mut cross,
            kronecker: &mut kronecker,
        };
        executor.gradient_with_moments(&weights, inputs, &loss, &mut gradient, moments);
        let mut single = vec![0.0; rows * dim];
        executor.vjp_of_samples(
            &weights,
            inputs,
            cotangents,
            matrix_mut(&mut single, rows, dim),
        );
        let column = |at: usize| &single[at * rows..(at + 1) * rows];
        let product = |a: usize, b: usize| -> f64 {
            column(a).iter().zip(column(b)).map(|(a, b)| a * b).sum()
        };
        for layer in &ParameterLayout::new(&network).layers {
            for at in layer.range.clone() {
                let unit = (at - layer.range.start) / layer.rows;
                let bias = layer.range.start + (unit + 1) * layer.rows - 1;
                let expected = if layer.has_bias {
                    product(at, bias)
                } else {
                    0.0
                };
                let close = |a: f64, b: f64| (a - b).abs() < 1e-11 * (1.0 + b.abs());
                assert!(close(squares[at], product(at, at)), "{} {at}", layer.name);
                assert!(close(cross[at], expected), "{} {at}", layer.name);
                assert!(close(gradient[at], column(at).iter().sum()));
            }
        }
    }
}

/// With one row, and one position for each unit, the Fisher matrix of a layer is the product of its factors.
#[test]
fn kronecker_factors_of_one_row() {
    let network = Composition {
        layers: vec![
            convolution(4, Padding::Valid, 3, 0.4),
            activation(),
            Layer::Dense(Dense {
                units: 3,
                scale: LayerScale {
                    weight: 0.8,
                    bias: 0.0,
                },
            }),
            activation(),
        ],
        ..networks()[1].clone()
    };
    let mut executor = Executor::<f64>::new(&network).unwrap();
    let (d, dim) = (executor.inputs_count(), executor.parameters());
    let (weights, x, delta) = (normals(dim, 1), normals(d, 2), normals(2, 3));
    let mut gradient = vec![0.0; dim];
    let mut kronecker = vec![0.0; executor.kronecker_len()];
    let loss = |_: usize, _: &[f64], out: &mut [f64]| {
        out.copy_from_slice(&delta);
        0.0
    };
    let moments = GradientMoments {
        kronecker: &mut kronecker,
        ..GradientMoments::default()
    };
    let inputs = matrix(&x, 1, d);
    executor.gradient_with_moments(&weights, inputs, &loss, &mut gradient, moments);
    let mut rest = &kronecker[..];
    for layer in &ParameterLayout::new(&network).layers {
        let (rows, units) = (layer.rows, layer.units);
        let (a, after) = rest.split_at(rows * rows);
        let (g, after) = after.split_at(units * units);
        rest = after;
        let own = &gradient[layer.range.clone()];
        for (i, gi) in own.iter().enumerate() {
            for (j, gj) in own.iter().enumerate() {
                let product = a[i % rows * rows + j % rows] * g[i / rows * units + j / rows];
                assert!(
                    (product - gi * gj).abs() < 1e-12,
                    "{} {i} {j}: {product} {}",
                    layer.name,
                    gi * gj
                );
            }
        }
    }
    assert!(rest.is_empty());
}

/// Sums over positions of the inputs that are combined, and means of cotangents, against plain loops.
#[test]
fn kronecker_factors_of_a_convolution() {
    let (channels, units, rows) = (2, 2, 19);
    let network = Composition {
        input: Shape::from([3, 3, channels]),
        layers: vec![convolution(2, Padding::Valid, units, 0.5)],
        outputs: 1,
        readout_scale: LayerScale::READOUT,
    };
    let mut executor = Executor::<f64>::new(&network).unwrap();
    let (d, dim) = (executor.inputs_count(), executor.parameters());
    let (weights, x) = (normals(dim, 1), normals(rows * d, 2));
    let mut gradient = vec![0.0; dim];
    let mut kronecker = vec![0.0; executor.kronecker_len()];
    let loss = |row: usize, _: &[f64], out: &mut [f64]| {
        out[0] = 1.0 + row as f64;
        0.0
    };
    let moments = GradientMoments {
        kronecker: &mut kronecker,
        ..GradientMoments::default()
    };
    let inputs = matrix(&x, rows, d);
    executor.gradient_with_moments(&weights, inputs, &loss, &mut gradient, moments);
    let (size, factor) = (4 * channels + 1, 1.3 / (4.0 * channels as f64).sqrt());
    // the readout reads position after position, in each unit after unit
    let readout = &weights[size * units..];
    let readout_factor = 1.0 / (4.0 * units as f64).sqrt();
    let (mut a, mut g) = (vec![0.0; size * size], vec![0.0; units * units]);
    for row in 0..rows {
        for position in 0..4 {
            let mut combined: Vec<f64> = Vec::new();
            for tap in 0..4 {
                let pixel = (position / 2 + tap / 2) * 3 + position % 2 + tap % 2;
                let features = pixel * channels..(pixel + 1) * channels;
                combined.extend(features.map(|at| factor * x[at * rows + row]));
            }
            combined.push(0.5);
            let delta: Vec<f64> = (0..units)
                .map(|unit| readout_factor * readout[position * units + unit] * (1.0 + row as f64))
                .collect();
            for i in 0..size {
                for j in 0..size {
                    a[j * size + i] += combined[i] * combined[j];
                }
            }
            for i in 0..units {
                for j in 0..units {
                    g[j * units + i] += delta[i] * delta[j] / 4.0;
                }
            }
        }
    }
    for (found, expected) in kronecker.iter().zip(a.iter().chain(&g)) {
        assert!(
            (found - expected).abs() < 1e-10 * (1.0 + expected.abs()),
            "{found} {expected}"
        );
    }
}
