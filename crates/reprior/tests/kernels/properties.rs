//! What every kernel has to satisfy, whatever its numbers are.

use reprior::compute::kernels::symmetric_eigen;
use reprior::compute::matrix;
use reprior::network::Activation;
use reprior::network::infinite::{InfiniteNetwork, Kernels, Kinds};
use reprior::network::layer::{Layer, Padding};

use super::networks::*;

const ALL: [Activation; 7] = [
    Activation::Gelu,
    Activation::Relu,
    Activation::Erf,
    Activation::Tanh,
    Activation::Identity,
    Activation::LeakyRelu(0.1),
    Activation::Sin,
];

fn kernels(input: [usize; 3], layers: Vec<Layer>, values: &[f64], threads: usize) -> Kernels {
    let features = input.iter().product();
    let x = matrix(values, features, values.len() / features).transpose();
    let infinite = InfiniteNetwork::new(&network(input, layers)).unwrap();
    infinite.kernels(x, Kinds::NngpAndNtk, threads).unwrap()
}

fn image_layers(function: Activation) -> Vec<Layer> {
    vec![
        conv3(1),
        act(function),
        conv3(2),
        act(function),
        pool(2, 1),
        dense(),
        act(function),
    ]
}

#[test]
fn kernels_are_symmetric_and_positive_semi_definite() {
    let values = noise(30 * 36, 5);
    for function in ALL {
        let vectors = kernels(
            [1, 1, 36],
            vec![dense(), act(function), dense(), act(function)],
            &values,
            2,
        );
        let images = kernels([4, 3, 3], image_layers(function), &values, 2);
        for kernel in [&vectors.nngp, &vectors.ntk, &images.nngp, &images.ntk] {
            for i in 0..30 {
                for j in 0..30 {
                    assert_eq!(kernel[i * 30 + j], kernel[j * 30 + i]);
                }
            }
            let (eigenvalues, _) = symmetric_eigen(kernel, 30).unwrap();
            assert!(
                eigenvalues[0] > -1e-13 * eigenvalues[29],
                "{function}: {eigenvalues:?}"
            );
        }
    }
}

/// Not one bit depends on how many threads there are or on which inputs come along.
#[test]
fn results_depend_on_the_inputs_alone() {
    for (input, layers, n) in [
        ([1, 1, 12], vec![dense(), gelu(), dense(), relu()], 1100),
        ([4, 4, 2], image_layers(Activation::Relu), 50),
        (
            [6, 5, 2],
            vec![conv3(1), gelu(), conv3(1), gelu(), gap()],
            40,
        ),
    ] {
        let features: usize = input.iter().product();
        let values = noise(n * features, 6);
        let one = kernels(input, layers.clone(), &values, 1);
        for threads in [2, 3, 7] {
            assert_eq!(kernels(input, layers.clone(), &values, threads), one);
        }
        // from input 13 on
        let part = kernels(input, layers, &values[13 * features..], 2);
        let m = n - 13;
        for j in 0..m {
            for i in 0..m {
                assert_eq!(part.ntk[j * m + i], one.ntk[(j + 13) * n + i + 13]);
            }
        }
    }
}

fn close(a: &Kernels, b: &Kernels) {
    for (a, b) in a.nngp.iter().chain(&a.ntk).zip(b.nngp.iter().chain(&b.ntk)) {
        assert!((a - b).abs() < 1e-12 * (1.0 + b.abs()), "{a} {b}");
    }
}

#[test]
fn symmetries_of_the_network_are_those_of_the_kernel() {
    let [height, width, channels] = [6, 4, 2];
    let input = [height, width, channels];
    let n = 7;
    let values = noise(n * height * width * channels, 7);
    let moved = |to: &dyn Fn(usize, usize) -> [usize; 2]| -> Vec<f64> {
        let mut out = values.clone();
        for image in 0..n {
            for row in 0..height {
                for column in 0..width {
                    let [y, x] = to(row, column);
                    for c in 0..channels {
                        let at = |y, x| ((image * height + y) * width + x) * channels + c;
                        out[at(y, x)] = values[at(row, column)];
                    }
                }
            }
        }
        out
    };
    // a torus that is turned, every image by as much; pooling over all of it: one image by another amount than the others
    let torus = |last: Vec<Layer>| {
        let circular = || conv(3, 1, Padding::Circular);
        [vec![circular(), relu(), circular(), gelu()], last].concat()
    };
    let turned = moved(&|row, column| [(row + 2) % height, (column + 3) % width]);
    for last in [vec![], vec![gap()]] {
        let before = kernels(input, torus(last.clone()), &values, 2);
        close(&kernels(input, torus(last), &turned, 2), &before);
    }
    let mut one = values.clone();
    let features = height * width * channels;
    one[..features].copy_from_slice(&turned[..features]);
    let pooled = kernels(input, torus(vec![gap()]), &values, 2);
    close(&kernels(input, torus(vec![gap()]), &one, 2), &pooled);
    // mirrored, with zeros around
    let mirrored = moved(&|row, column| [height - 1 - row, width - 1 - column]);
    let layers = || vec![conv3(1), relu(), conv3(1), relu(), pool(2, 2)];
    close(
        &kernels(input, layers(), &mirrored, 2),
        &kernels(input, layers(), &values, 2),
    );
    // vectors: any rotation, here of the first two numbers
    let mut rotated = values.clone();
    let (sine, cosine) = 0.7_f64.sin_cos();
    for vector in rotated.chunks_mut(features) {
        let [a, b] = [vector[0], vector[1]];
        (vector[0], vector[1]) = (cosine * a - sine * b, sine * a + cosine * b);
    }
    let layers = || vec![Layer::Flatten, dense(), gelu(), dense(), relu()];
    close(
        &kernels(input, layers(), &rotated, 2),
        &kernels(input, layers(), &values, 2),
    );
}

#[test]
fn scaled_networks_are_those_with_other_scales() {
    let values = noise(10 * 32, 8);
    let x = matrix(&values, 10, 32);
    let layers = |weight: f64, bias: f64| {
        let mut layers = vec![
            conv3(1),
            sum([vec![relu(), conv3(1)], vec![]]),
            relu(),
            gap(),
            dense(),
            relu(),
        ];
        fn visit(layers: &mut [Layer], weight: f64, bias: f64) {
            for layer in layers {
                match layer {
                    Layer::Dense(layer) => {
                        layer.scale.weight *= weight;
                        layer.scale.bias *= bias;
                    }
                    Layer::Convolution(layer) => {
                        layer.scale.weight *= weight;
                        layer.scale.bias *= bias;
                    }
                    Layer::Parallel(parallel) => {
                        for branch in &mut parallel.branches {
                            visit(&mut branch.layers, weight, bias);
                        }
                    }
                    _ => {}
                }
            }
        }
        visit(&mut layers, weight, bias);
        let mut network = network([4, 4, 2], layers);
        network.readout_scale.weight *= weight;
        network.readout_scale.bias *= bias;
        network
    };
    let scaled = InfiniteNetwork::new(&layers(1.0, 1.0))
        .unwrap()
        .scaled(1.3, 0.4);
    let direct = InfiniteNetwork::new(&layers(1.3, 0.4)).unwrap();
    let [a, b] = [scaled, direct].map(|network| network.kernels(x, Kinds::NngpAndNtk, 1).unwrap());
    close(&a, &b);
}

#[test]
fn nothing_and_one_input() {
    let infinite = InfiniteNetwork::new(&fully_connected(3, 1, Activation::Relu)).unwrap();
    let none = infinite
        .kernels(matrix(&[], 0, 3), Kinds::NngpAndNtk, 2)
        .unwrap();
    assert_eq!((none.rows, none.nngp.len()), (0, 0));
    let one = infinite
        .kernels(matrix(&[0.0; 3], 1, 3), Kinds::NngpAndNtk, 2)
        .unwrap();
    assert!(
        (one.nngp[0] - (0.005 + 0.01)).abs() < 1e-16,
        "{}",
        one.nngp[0]
    );
    let cross = infinite
        .cross_kernels(matrix(&[], 0, 3), matrix(&[0.0; 3], 1, 3), Kinds::Nngp, 2)
        .unwrap();
    assert_eq!((cross.rows, cross.columns), (0, 1));
}
