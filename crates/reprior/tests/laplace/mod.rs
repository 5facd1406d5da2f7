//! Laplace approximations: every structure against dense matrices and closed forms, and diffusions against the laws that they
//! should have.

mod dense;
mod diffusion;
mod exact;

use reprior::compute::kernels::{matrix_mut, symmetric_eigen};
use reprior::compute::{Purpose, Stream, matrix};
use reprior::laplace::RowCurvature;
use reprior::network::layer::{BatchNorm, Convolution, Layer, Padding, Shape, Window};
use reprior::network::{Activation, Composition, Executor, LayerScale};

fn normals(count: usize, index: u64) -> Vec<f64> {
    let mut values = vec![0.0; count];
    Stream::new(17, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

fn stream() -> Stream {
    Stream::new(4, 0, Purpose::Initial, 99)
}

fn dense_network(inputs: usize, widths: &[usize], outputs: usize) -> Composition {
    Composition::fully_connected(inputs, widths, outputs, Activation::Tanh)
}

/// A convolution, normalisation, maxima and two dense layers: 119 parameters on 5 × 5 images.
fn image_network() -> Composition {
    let scale = LayerScale::HIDDEN;
    let window = |size: usize, stride: usize| Window {
        size: [size; 2],
        stride: [stride; 2],
        padding: Padding::Valid,
    };
    Composition {
        input: Shape::from([5, 5, 1]),
        layers: vec![
            Layer::Convolution(Convolution {
                channels: 3,
                window: window(2, 1),
                scale,
            }),
            Layer::BatchNorm(BatchNorm {
                mean: vec![0.1, -0.2, 0.0],
                variance: vec![1.0, 0.5, 2.0],
                epsilon: 1e-5,
            }),
            Layer::Activation {
                function: Activation::Tanh,
            },
            Layer::MaxPool(window(2, 2)),
            Layer::Flatten,
            Layer::Dense(reprior::network::layer::Dense { units: 5, scale }),
            Layer::Activation {
                function: Activation::Gelu,
            },
        ],
        outputs: 3,
        readout_scale: LayerScale::READOUT,
    }
}

/// J of every sample (C × D each, row after row), and the outputs (row after row).
fn jacobians(
    executor: &mut Executor<f64>,
    weights: &[f64],
    inputs: &[f64],
    rows: usize,
) -> (Vec<f64>, Vec<f64>) {
    let (size, outputs) = (weights.len(), executor.outputs_count());
    let x = matrix(inputs, rows, inputs.len() / rows);
    let mut all = vec![0.0; rows * outputs * size];
    for c in 0..outputs {
        let mut cotangent = vec![0.0; rows * outputs];
        cotangent[c * rows..(c + 1) * rows].fill(1.0);
        let mut own = vec![0.0; rows * size];
        let out = matrix_mut(&mut own, rows, size);
        executor.vjp_of_samples(weights, x, matrix(&cotangent, rows, outputs), out);
        for row in 0..rows {
            for k in 0..size {
                all[(row * outputs + c) * size + k] = own[k * rows + row];
            }
        }
    }
    let mut f = vec![0.0; rows * outputs];
    executor.outputs(weights, x, matrix_mut(&mut f, rows, outputs));
    let f = (0..rows * outputs).map(|at| f[at % outputs * rows + at / outputs]);
    (all, f.collect())
}

/// Σ JᵀHJ, column-major.
fn gauss_newton(
    jacobians: &[f64],
    outputs: &[f64],
    count: usize,
    curvature: &dyn RowCurvature<f64>,
) -> Vec<f64> {
    let rows = outputs.len() / count;
    let size = jacobians.len() / outputs.len();
    let mut g = vec![0.0; size * size];
    for row in 0..rows {
        let mut h = vec![0.0; count * count];
        curvature.add_matrix(row, &outputs[row * count..(row + 1) * count], &mut h);
        let own = &jacobians[row * count * size..(row + 1) * count * size];
        for a in 0..count {
            for b in 0..count {
                for i in 0..size {
                    let left = own[a * size + i] * h[a * count + b];
                    for j in 0..size {
                        g[j * size + i] += left * own[b * size + j];
                    }
                }
            }
        }
    }
    g
}

/// function(matrix) of a symmetric matrix.
fn apply(values: &[f64], size: usize, function: impl Fn(f64) -> f64) -> Vec<f64> {
    let (eigenvalues, vectors) = symmetric_eigen(values, size).unwrap();
    let mut out = vec![0.0; size * size];
    for (value, vector) in eigenvalues.iter().zip(vectors.chunks_exact(size)) {
        for i in 0..size {
            for j in 0..size {
                out[j * size + i] += function(*value) * vector[i] * vector[j];
            }
        }
    }
    out
}

fn times(values: &[f64], vector: &[f64]) -> Vec<f64> {
    let size = vector.len();
    let row = |i: usize| (0..size).map(|j| values[j * size + i] * vector[j]).sum();
    (0..size).map(row).collect()
}

/// Whether two lists agree, relative to the largest number.
#[track_caller]
fn close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    let largest = b.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    for (at, (x, y)) in a.iter().zip(b).enumerate() {
        assert!(
            (x - y).abs() <= tolerance * largest,
            "{at}: {x} {y} (largest {largest})"
        );
    }
}
