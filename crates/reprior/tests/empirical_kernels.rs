//! Kernels at finite width: against dense Jacobians made column by column, and against those of the infinitely wide network,
//! which are in closed form for rectifiers (Cho & Saul 2009) and erf (Williams 1997).

use std::f64::consts::{FRAC_2_PI, PI, TAU};

use reprior::compute::kernels::matrix_mut;
use reprior::compute::{Matrix, Purpose, Stream, matrix};
use reprior::network::empirical::EmpiricalKernels;
use reprior::network::layer::Shape;
use reprior::network::named::NamedNetwork;
use reprior::network::{Activation, Composition, Executor, LayerScale};

fn noise(count: usize, index: u64) -> Vec<f64> {
    let mut values = vec![0.0; count];
    Stream::new(31, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

/// ∂f_k(x_i)/∂θ for all parameters, one jvp for each of them; entry (k·n + i, parameter) row by row.
fn dense(network: &Composition, weights: &[f64], inputs: Matrix<'_, f64>) -> Vec<Vec<f64>> {
    let mut executor = Executor::new(network).unwrap();
    let size = inputs.nrows() * network.outputs;
    let mut rows = vec![Vec::new(); size];
    let mut direction = vec![0.0; weights.len()];
    let mut column = vec![f64::NAN; size];
    for parameter in 0..weights.len() {
        direction[parameter] = 1.0;
        let out = matrix_mut(&mut column, inputs.nrows(), network.outputs);
        executor.jvp(weights, inputs, Some(&direction), None, out);
        direction[parameter] = 0.0;
        for (row, value) in rows.iter_mut().zip(&column) {
            row.push(*value);
        }
    }
    rows
}

fn networks() -> Vec<Composition> {
    let named = |name: &str, input: [usize; 3]| {
        let network: NamedNetwork = name.parse().unwrap();
        let (activation, scale) = (Activation::Tanh, LayerScale::HIDDEN);
        network.network(Shape::from(input), 2, activation, scale)
    };
    let dense = Composition::fully_connected(4, &[6, 5], 3, Activation::Gelu);
    let linear = Composition::fully_connected(4, &[], 2, Activation::Gelu);
    let residual = named("resnet:8,width=2", [4, 4, 1]).unwrap();
    vec![dense, linear, residual]
}

#[test]
fn kernels_are_products_of_dense_jacobians_however_many_rows_are_kept() {
    for network in networks() {
        let mut kernels = EmpiricalKernels::new(&network, 1 << 30).unwrap();
        let mut blocked = EmpiricalKernels::new(&network, 0).unwrap();
        let (n, m) = (2 * blocked.block_rows() + 3, blocked.block_rows() + 1);
        assert!(kernels.block_rows() >= n);
        let weights = noise(kernels.executor().parameters(), 0);
        let columns = network.input.features();
        let (x, z) = (noise(n * columns, 1), noise(m * columns, 2));
        let (x, z) = (matrix(&x, n, columns), matrix(&z, m, columns));
        let (rows, others) = (dense(&network, &weights, x), dense(&network, &weights, z));
        let last = network.outputs - 1;
        for (inputs, outputs) in [(None, [0, 0]), (None, [0, last]), (Some(z), [last, 0])] {
            let (right, count) = match inputs {
                None => (&rows, n),
                Some(_) => (&others, m),
            };
            for kernels in [&mut kernels, &mut blocked] {
                let mut out = vec![f64::NAN; n * count];
                let view = matrix_mut(&mut out, n, count);
                kernels.tangent(&weights, x, inputs, outputs, view);
                let readout = kernels.executor().readout_parameters();
                let inner = weights.len() - readout;
                let mut features = vec![f64::NAN; n * count];
                let view = matrix_mut(&mut features, n, count);
                kernels.features(&weights[..inner], x, inputs, view);
                for j in 0..count {
                    for i in 0..n {
                        let (a, b) = (&rows[outputs[0] * n + i], &right[outputs[1] * count + j]);
                        let products = a.iter().zip(b).map(|(a, b)| a * b);
                        let exact: f64 = products.sum();
                        let found = out[j * n + i];
                        assert!((found - exact).abs() < 1e-11 * (1.0 + exact.abs()));
                        // the features are the derivatives along the readout of one output
                        let p = readout / network.outputs;
                        let own = &rows[i][inner..inner + p];
                        let products = own.iter().zip(&right[j][inner..inner + p]);
                        let exact: f64 = products.map(|(a, b)| a * b).sum();
                        let found = features[j * n + i];
                        assert!((found - exact).abs() < 1e-11 * (1.0 + exact.abs()));
                    }
                }
            }
        }
    }
}

/// E[f(u)f(v)] and E[f′(u)f′(v)] for Gaussian (u, v) with second moments `k11`, `k22`, `k12`.
fn unit(activation: Activation, k11: f64, k22: f64, k12: f64) -> (f64, f64) {
    match activation {
        Activation::Relu => {
            let root = (k11 * k22).sqrt();
            let angle = (k12 / root).clamp(-1.0, 1.0).acos();
            let value = root * (angle.sin() + (PI - angle) * angle.cos()) / TAU;
            (value, (PI - angle) / TAU)
        }
        Activation::Erf => {
            let p = (1.0 + 2.0 * k11) * (1.0 + 2.0 * k22);
            let value = FRAC_2_PI * (2.0 * k12 / p.sqrt()).asin();
            (value, 2.0 * FRAC_2_PI / (p - 4.0 * k12 * k12).sqrt())
        }
        other => panic!("no closed kernel of {other} here"),
    }
}

/// K and Θ at infinite width, column-major n × n.
fn limits(network: &Composition, activation: Activation, x: &[f64], n: usize) -> [Vec<f64>; 2] {
    let d = network.inputs();
    let first = network.hidden_scales()[0];
    let inner = |i: usize, j: usize| (0..d).map(|k| x[k * n + i] * x[k * n + j]).sum::<f64>();
    let pairs = (0..n * n).map(|at| (at % n, at / n));
    let mut kernel: Vec<f64> = pairs
        .clone()
        .map(|(i, j)| first.weight.powi(2) / d as f64 * inner(i, j) + first.bias.powi(2))
        .collect();
    let mut tangent = kernel.clone();
    let scales = network.hidden_scales().into_iter().skip(1);
    for scale in scales.chain([network.readout_scale]) {
        let units = pairs.clone().map(|(i, j)| {
            let (k11, k22) = (kernel[i * n + i], kernel[j * n + j]);
            unit(activation, k11, k22, kernel[j * n + i])
        });
        let units: Vec<(f64, f64)> = units.collect();
        let weight = scale.weight.powi(2);
        for (at, (value, slope)) in units.into_iter().enumerate() {
            kernel[at] = weight * value + scale.bias.powi(2);
            tangent[at] = kernel[at] + weight * slope * tangent[at];
        }
    }
    [kernel, tangent]
}

/// Root mean square over entries and draws from the prior of the distance from the limits, at widths 32, 128, 512: over each
/// factor of four it halves. With 80 draws its own error is some 10 %, an error of 0.05 in the slope.
#[test]
fn kernels_tend_to_those_of_infinite_width_at_the_rate_of_the_square_root() {
    let (n, draws) = (3, 80);
    for (depth, activation) in [
        (1, Activation::Relu),
        (2, Activation::Relu),
        (1, Activation::Erf),
        (2, Activation::Erf),
    ] {
        let x = noise(n * 4, 5);
        let mut errors = Vec::new();
        for width in [32, 128, 512] {
            let network = Composition::fully_connected(4, &vec![width; depth], 2, activation);
            let exact = limits(&network, activation, &x, n);
            let mut kernels = EmpiricalKernels::new(&network, 1 << 24).unwrap();
            let mut squares = [0.0; 2];
            let mut sums = [vec![0.0; n * n], vec![0.0; n * n]];
            for draw in 0..draws {
                let weights = noise(kernels.executor().parameters(), 100 + draw);
                let mut found = [vec![f64::NAN; n * n], vec![f64::NAN; n * n]];
                let x = matrix(&x, n, 4);
                kernels.features(&weights, x, None, matrix_mut(&mut found[0], n, n));
                let view = matrix_mut(&mut found[1], n, n);
                kernels.tangent(&weights, x, None, [1, 1], view);
                for kind in 0..2 {
                    for (at, value) in found[kind].iter().enumerate() {
                        let error = value / exact[kind][at] - 1.0;
                        squares[kind] += error.powi(2) / (draws as usize * n * n) as f64;
                        sums[kind][at] += value / draws as f64;
                    }
                }
            }
            errors.push(squares.map(f64::sqrt));
            if width == 512 {
                // no bias beyond what the mean over draws leaves open, 4.5 standard errors of an entry with three times the
                // error of all
                for kind in 0..2 {
                    for (sum, exact) in sums[kind].iter().zip(&exact[kind]) {
                        let error = (sum / exact - 1.0).abs();
                        let bound = 4.5 * 3.0 * squares[kind].sqrt() / (draws as f64).sqrt();
                        assert!(error < bound, "{activation} {depth} {kind}: {sum} {exact}");
                    }
                }
            }
        }
        for kind in 0..2 {
            let slope = (errors[2][kind] / errors[0][kind]).ln() / 16.0_f64.ln();
            assert!(
                (slope + 0.5).abs() < 0.13,
                "{activation} {depth} {kind}: {slope} {errors:?}"
            );
        }
    }
}
