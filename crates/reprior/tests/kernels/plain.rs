//! Any network against the definition written down plainly: all covariances of all pixels, no displacements, no chunks.

use proptest::prelude::*;
use reprior::compute::matrix;
use reprior::network::Activation;
use reprior::network::infinite::{InfiniteNetwork, Kinds};
use reprior::network::layer::{Combination, Layer, Padding, Shape, Window};

use super::networks::*;

/// K and Θ of all pixels of one image with all of another.
#[derive(Clone)]
struct Pair {
    k: Vec<f64>,
    theta: Vec<f64>,
}

/// Three pairs: each of two images with itself, and the one with the other.
type Pairs = [Pair; 3];

/// out(p, p') = Σ weights(p, p')[q, q']·in(q, q').
fn linear(
    pairs: &Pairs,
    sizes: [usize; 2],
    weights: impl Fn(usize, usize) -> Vec<(usize, usize, f64)>,
) -> Pairs {
    let [from, to] = sizes;
    let map = |values: &[f64]| -> Vec<f64> {
        (0..to * to)
            .map(|at| {
                let terms = weights(at / to, at % to).into_iter();
                terms
                    .map(|(q, other, w)| w * values[q * from + other])
                    .sum()
            })
            .collect()
    };
    pairs.clone().map(|pair| Pair {
        k: map(&pair.k),
        theta: map(&pair.theta),
    })
}

/// Pixels under the window at each position.
fn windows(window: &Window, shape: Shape, out: Shape) -> Vec<Vec<Option<usize>>> {
    let mut all = Vec::new();
    for row in 0..out.height {
        for column in 0..out.width {
            let mut pixels = Vec::new();
            for down in 0..window.size[0] {
                for right in 0..window.size[1] {
                    let y = window.source(0, shape.height, row, down);
                    let x = window.source(1, shape.width, column, right);
                    pixels.push(y.zip(x).map(|(y, x)| y * shape.width + x));
                }
            }
            all.push(pixels);
        }
    }
    all
}

fn scaled(pairs: &Pairs, weight: f64, bias: f64) -> Pairs {
    pairs.clone().map(|pair| {
        let k: Vec<f64> = pair.k.iter().map(|k| weight * k + bias).collect();
        let theta = pair
            .theta
            .iter()
            .zip(&k)
            .map(|(t, k)| weight * t + k)
            .collect();
        Pair { k, theta }
    })
}

/// ReLU, by the angle itself (Cho & Saul 2009).
fn relu_map(pairs: &Pairs, pixels: usize) -> Pairs {
    let variance = |pair: usize, p: usize| pairs[pair].k[p * (pixels + 1)];
    let mut out = pairs.clone();
    for (index, pair) in out.iter_mut().enumerate() {
        let [first, second] = [[0, 0], [1, 1], [0, 1]][index];
        for at in 0..pixels * pixels {
            let (p, other) = (at / pixels, at % pixels);
            let root = (variance(first, p) * variance(second, other)).sqrt();
            let angle = if index < 2 && p == other {
                0.0
            } else {
                (pair.k[at] / root).clamp(-1.0, 1.0).acos()
            };
            let half = std::f64::consts::PI - angle;
            pair.k[at] = root * (angle.sin() + half * angle.cos()) / std::f64::consts::TAU;
            pair.theta[at] *= half / std::f64::consts::TAU;
        }
    }
    out
}

fn through(layers: &[Layer], mut shape: Shape, mut pairs: Pairs) -> (Shape, Pairs) {
    for layer in layers {
        let mut single = network(shape.into(), vec![layer.clone()]);
        single.outputs = 1;
        let above = single.shapes().unwrap()[1];
        let sizes = [shape.pixels(), above.pixels()];
        pairs = match layer {
            Layer::Dense(layer) => {
                scaled(&pairs, layer.scale.weight.powi(2), layer.scale.bias.powi(2))
            }
            Layer::Convolution(layer) => {
                let at = windows(&layer.window, shape, above);
                let weight = 1.0 / layer.window.pixels() as f64;
                let mean = linear(&pairs, sizes, |p, other| {
                    let both = at[p].iter().zip(&at[other]);
                    both.filter_map(|(a, b)| Some((((*a)?), (*b)?, weight)))
                        .collect()
                });
                scaled(&mean, layer.scale.weight.powi(2), layer.scale.bias.powi(2))
            }
            Layer::Activation { .. } => relu_map(&pairs, shape.pixels()),
            Layer::AveragePool(layer) => {
                let at = windows(layer, shape, above);
                let there = |p: usize| at[p].iter().copied().flatten().collect::<Vec<_>>();
                linear(&pairs, sizes, |p, other| {
                    all_pairs(&there(p), &there(other))
                })
            }
            Layer::GlobalAveragePool => {
                let all: Vec<usize> = (0..shape.pixels()).collect();
                linear(&pairs, sizes, |_, _| all_pairs(&all, &all))
            }
            Layer::Flatten => linear(&pairs, sizes, |_, _| {
                let weight = 1.0 / shape.pixels() as f64;
                (0..shape.pixels()).map(|p| (p, p, weight)).collect()
            }),
            Layer::Parallel(parallel) => {
                let branches: Vec<(Shape, Pairs)> = parallel
                    .branches
                    .iter()
                    .map(|branch| through(&branch.layers, shape, pairs.clone()))
                    .collect();
                let mut sum = branches[0].1.clone();
                for pair in &mut sum {
                    pair.k.fill(0.0);
                    pair.theta.fill(0.0);
                }
                for ((inner, pairs), branch) in branches.iter().zip(&parallel.branches) {
                    let share = match parallel.combination {
                        Combination::Sum => 1.0,
                        Combination::Concatenate => inner.channels as f64 / above.channels as f64,
                    };
                    for (sum, pair) in sum.iter_mut().zip(pairs) {
                        let factor = share * branch.factor.powi(2);
                        let add = |s: &mut [f64], v: &[f64]| {
                            s.iter_mut().zip(v).for_each(|(s, v)| *s += factor * v);
                        };
                        add(&mut sum.k, &pair.k);
                        add(&mut sum.theta, &pair.theta);
                    }
                }
                sum
            }
            other => panic!("{} has no kernel", other.name()),
        };
        shape = above;
    }
    (shape, pairs)
}

fn all_pairs(first: &[usize], second: &[usize]) -> Vec<(usize, usize, f64)> {
    let weight = 1.0 / (first.len() * second.len()) as f64;
    let pairs = first
        .iter()
        .flat_map(|&q| second.iter().map(move |&r| (q, r, weight)));
    pairs.collect()
}

fn agrees(input: [usize; 3], mut layers: Vec<Layer>) {
    let shape = Shape::from(input);
    let composition = network(input, layers.clone());
    let n = 5;
    let values = noise(n * shape.features(), 3);
    let x = matrix(&values, n, shape.features());
    let infinite = InfiniteNetwork::new(&composition).unwrap();
    let kernels = infinite.kernels(x, Kinds::NngpAndNtk, 2).unwrap();
    let readout = reprior::network::layer::Dense {
        units: 1,
        scale: composition.readout_scale,
    };
    layers.extend([Layer::Flatten, Layer::Dense(readout)]);
    for (i, j) in [(0, 1), (2, 4), (3, 0)] {
        let data = [[i, i], [j, j], [i, j]].map(|[a, b]| {
            let pixels = shape.pixels();
            let product = |at: usize| {
                let (p, other) = (at / pixels * shape.channels, at % pixels * shape.channels);
                let terms = (0..shape.channels).map(|c| x[(a, p + c)] * x[(b, other + c)]);
                terms.sum::<f64>() / shape.channels as f64
            };
            let k: Vec<f64> = (0..pixels * pixels).map(product).collect();
            let theta = vec![0.0; k.len()];
            Pair { k, theta }
        });
        let (_, [xx, _, xy]) = through(&layers, shape, data);
        let close = |a: f64, b: f64| {
            let error = (a - b).abs() / kernels.ntk[i * (n + 1)].abs();
            assert!(error < 1e-7, "{a} {b} {layers:?}");
            error
        };
        // acos near 1 has half of the digits
        close(kernels.nngp[j * n + i], xy.k[0]);
        close(kernels.ntk[j * n + i], xy.theta[0]);
        close(kernels.nngp[i * n + i], xx.k[0]);
        close(kernels.ntk[i * n + i], xx.theta[0]);
        assert!((kernels.nngp[j * n + i] - xy.k[0]).abs() < 1e-12 * kernels.ntk[i * (n + 1)]);
    }
}

#[test]
fn chosen_networks() {
    let average = |size, stride, padding| Layer::AveragePool(window(size, stride, padding));
    use Padding::{Circular, Same, Valid};
    for layers in [
        vec![conv(3, 1, Valid), relu(), gap(), dense(), relu()],
        vec![
            conv(2, 1, Same),
            relu(),
            average(2, 2, Same),
            conv(3, 1, Same),
            relu(),
            average(3, 2, Same),
            conv(2, 1, Circular),
            relu(),
        ],
        vec![
            conv(3, 2, Circular),
            relu(),
            average(2, 1, Circular),
            dense(),
            relu(),
            gap(),
        ],
        vec![dense(), relu(), gap(), dense(), relu(), dense(), relu()],
        vec![Layer::Flatten, dense(), relu(), dense(), relu()],
        vec![
            average(3, 2, Valid),
            conv(3, 1, Same),
            relu(),
            Layer::Flatten,
            dense(),
            relu(),
        ],
        vec![gap(), dense(), relu()],
        vec![
            conv3(1),
            parallel(
                [
                    vec![relu(), conv3(2), relu(), conv3(1)],
                    vec![conv(1, 2, Same)],
                ],
                [0.6, 0.8],
                Combination::Sum,
            ),
            parallel(
                [
                    vec![relu(), average(2, 1, Same)],
                    vec![relu(), conv3(1), relu()],
                ],
                [1.5, -0.5],
                Combination::Concatenate,
            ),
            conv3(1),
            relu(),
            gap(),
        ],
        vec![
            conv3(1),
            relu(),
            parallel(
                [
                    vec![gap(), conv(1, 1, Same)],
                    vec![Layer::GlobalAveragePool],
                ],
                [1.0, 2.0],
                Combination::Sum,
            ),
            dense(),
            relu(),
        ],
    ] {
        agrees([5, 4, 2], layers);
    }
}

fn layer() -> impl Strategy<Value = Vec<Layer>> {
    let padding = prop_oneof![
        Just(Padding::Same),
        Just(Padding::Valid),
        Just(Padding::Circular)
    ];
    let kind = 0..5_usize;
    (kind, 1..4_usize, 1..3_usize, padding).prop_map(|(kind, size, stride, padding)| match kind {
        0 => vec![conv(size, stride, padding), relu()],
        1 => vec![Layer::AveragePool(window(size, stride, padding))],
        2 => vec![dense(), relu()],
        3 => vec![conv(size, 1, padding)],
        _ => {
            let branch = vec![conv(size, stride, padding), relu(), dense()];
            vec![sum([branch, vec![conv(size, stride, padding)]]), relu()]
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn any_network(
        height in 1_usize..7, width in 1_usize..6, layers in prop::collection::vec(layer(), 0..4), end in 0..3_usize,
    ) {
        let mut layers = layers.concat();
        layers.extend([vec![], vec![gap()], vec![gap(), dense(), relu()]][end].clone());
        // windows may have become larger than the image
        prop_assume!(network([height, width, 2], layers.clone()).shapes().is_ok());
        agrees([height, width, 2], layers);
    }
}

#[test]
fn what_has_no_kernel_is_refused_with_its_reason() {
    let refused = |layers: Vec<Layer>| {
        InfiniteNetwork::new(&network([4, 4, 2], layers))
            .unwrap_err()
            .to_string()
    };
    let max = Layer::MaxPool(window(2, 2, Padding::Valid));
    let message = refused(vec![conv3(1), relu(), max]);
    assert_eq!(
        message,
        "layer 3 (max-pool) has no infinitely wide limit here: the second moments of maxima over windows have no closed \
         form: use an average pool"
    );
    let norm = Layer::BatchNorm(reprior::network::layer::BatchNorm {
        mean: vec![],
        variance: vec![],
        epsilon: 1e-5,
    });
    assert!(refused(vec![conv3(1), norm]).contains("layer 2 (batch-norm)"));
    for (layers, place) in [
        (vec![relu()], "layer 1 (activation)"),
        (
            vec![dense(), relu(), act(Activation::Erf)],
            "layer 3 (activation)",
        ),
        (
            vec![conv3(1), Layer::Flatten, relu()],
            "layer 3 (activation)",
        ),
        (vec![dense(), sum([vec![], vec![]])], "layer 2 (parallel)"),
        (
            vec![dense(), sum([vec![relu()], vec![]])],
            "layer 2 (parallel)",
        ),
        (
            vec![dense(), sum([vec![relu(), dense()], vec![relu(), relu()]])],
            "layer 2, branch 2, 2 (activation)",
        ),
        (
            vec![dense(), relu(), sum([vec![], vec![dense(), relu()]])],
            "layer 3 (parallel)",
        ),
        (
            vec![
                dense(),
                sum([vec![], vec![relu(), dense(), relu()]]),
                relu(),
            ],
            "layer 3 (activation)",
        ),
        (
            vec![
                dense(),
                parallel([vec![dense()], vec![]], [1.0; 2], Combination::Concatenate),
                relu(),
            ],
            "layer 3 (activation)",
        ),
        (vec![conv(5, 1, Padding::Valid)], "layer 1 (convolution)"),
    ] {
        let message = refused(layers);
        assert!(message.starts_with(place), "{message}");
    }
    let infinite = InfiniteNetwork::new(&network([1, 1, 2], vec![])).unwrap();
    let wrong = infinite
        .kernels(matrix(&[1.0; 3], 1, 3), Kinds::Nngp, 1)
        .unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "inputs have 3 columns, the network takes 2 numbers"
    );
    let wrong = infinite.kernels(matrix(&[1.0, 2.0, 3.0, f64::NAN], 2, 2), Kinds::Nngp, 1);
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "input 2 has a number that is not finite: remove it or fill it in"
    );
}
