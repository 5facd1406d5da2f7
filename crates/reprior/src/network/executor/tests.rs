//! The executor against plain loops, central differences, and itself, on networks made at random.

use super::*;
use crate::compute::{Purpose, Stream, dot, matrix, matrix_mut};
use crate::network::layer::{
    BatchNorm, Branch, Combination, Convolution, Dense, Layer, Padding, Parallel, Shape, Window,
    output_shape,
};
use crate::network::{Activation, LayerScale};

pub(super) fn noise<R: Real>(count: usize, index: u64) -> Vec<R> {
    let mut values = vec![R::ZERO; count];
    Stream::new(5, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

/// Layers at random; with `is_smooth` only such as have derivatives everywhere.
pub(super) struct Choice {
    stream: Stream,
    is_smooth: bool,
}

impl Choice {
    fn below(&mut self, count: usize) -> usize {
        ((self.stream.uniform() * count as f64) as usize).min(count - 1)
    }

    fn scale(&mut self) -> LayerScale {
        LayerScale {
            weight: 1.3,
            bias: [0.0, 0.4][self.below(2)],
        }
    }

    fn window(&mut self, shape: Shape) -> Window {
        let paddings = [
            Padding::Same,
            Padding::Valid,
            Padding::Circular,
            Padding::Half,
        ];
        let padding = paddings[self.below(4)];
        let mut size = |length: usize| match padding {
            Padding::Valid => 1 + self.below(length.min(4)),
            _ => 1 + self.below(4),
        };
        Window {
            size: [size(shape.height), size(shape.width)],
            stride: [1 + self.below(3), 1 + self.below(2)],
            padding,
        }
    }

    fn layer(&mut self, shape: Shape, depth: usize) -> Layer {
        let kinds = if self.is_smooth { 7 } else { 8 };
        match self.below(kinds) {
            0 => Layer::Dense(Dense {
                units: 1 + self.below(9),
                scale: self.scale(),
            }),
            1 => Layer::Convolution(Convolution {
                channels: 1 + self.below(9),
                window: self.window(shape),
                scale: self.scale(),
            }),
            2 => {
                let smooth = [
                    Activation::Tanh,
                    Activation::Gelu,
                    Activation::Erf,
                    Activation::Sin,
                ];
                let function = smooth[self.below(4)];
                Layer::Activation { function }
            }
            3 => Layer::AveragePool(self.window(shape)),
            4 => Layer::BatchNorm(BatchNorm {
                mean: noise(shape.channels, 8),
                variance: (0..shape.channels).map(|c| 0.5 + 0.1 * c as f64).collect(),
                epsilon: 1e-5,
            }),
            5 => [Layer::Flatten, Layer::GlobalAveragePool][self.below(2)].clone(),
            6 if depth < 2 => {
                let stay = self.below(2) == 0;
                let inner = |this: &mut Self| {
                    let convolution = Layer::Convolution(Convolution {
                        channels: if stay {
                            shape.channels
                        } else {
                            1 + this.below(4)
                        },
                        window: Window {
                            size: [3, 2],
                            stride: [1, 1],
                            padding: Padding::Same,
                        },
                        scale: this.scale(),
                    });
                    let tanh = Layer::Activation {
                        function: Activation::Tanh,
                    };
                    vec![tanh, convolution]
                };
                let mut branches = vec![
                    Branch {
                        factor: 0.8,
                        layers: inner(self),
                    },
                    Branch {
                        factor: -0.6,
                        layers: Vec::new(),
                    },
                ];
                if self.below(2) == 0 {
                    branches.reverse();
                }
                let nested = self.layer(shape, 2);
                let fits = output_shape(&nested, shape, "") == Ok(shape);
                if fits {
                    branches.push(Branch {
                        factor: 0.5,
                        layers: vec![nested],
                    });
                }
                Layer::Parallel(Parallel {
                    branches,
                    combination: if stay {
                        Combination::Sum
                    } else {
                        Combination::Concatenate
                    },
                })
            }
            7 => {
                if self.below(2) == 0 {
                    return Layer::MaxPool(self.window(shape));
                }
                let function = [Activation::Relu, Activation::LeakyRelu(0.2)][self.below(2)];
                Layer::Activation { function }
            }
            _ => Layer::Activation {
                function: Activation::Identity,
            },
        }
    }

    pub fn network(seed: u64, is_smooth: bool) -> Composition {
        let mut choice = Self {
            stream: Stream::new(seed, 1, Purpose::Initial, 0),
            is_smooth,
        };
        let mut size = |most| 1 + choice.below(most);
        let input = Shape::from([size(6), size(6), size(4)]);
        let (count, outputs) = (choice.below(7), 1 + choice.below(4));
        let (mut layers, mut shape) = (Vec::new(), input);
        for _ in 0..count {
            let layer = choice.layer(shape, 0);
            shape = output_shape(&layer, shape, "").unwrap();
            layers.push(layer);
        }
        Composition {
            input,
            layers,
            outputs,
            readout_scale: LayerScale::READOUT,
        }
    }
}

/// One sample through one layer, number by number; takes the layer's parameters off `weights`.
pub(super) fn plain(layer: &Layer, shape: Shape, input: &[f64], weights: &mut &[f64]) -> Vec<f64> {
    let after = output_shape(layer, shape, "").unwrap();
    let mut take = |count: usize| {
        let (own, rest) = weights.split_at(count);
        *weights = rest;
        own
    };
    let at = |row: usize, column: usize, channel: usize| {
        (row * shape.width + column) * shape.channels + channel
    };
    let mut out = vec![0.0; after.features()];
    // what lies under the window, by offset
    let under = |window: &Window, place: usize| {
        let [row, column] = [place / after.width, place % after.width];
        let window = *window;
        (0..window.pixels()).map(move |tap| {
            let row = window.source(0, shape.height, row, tap / window.size[1])?;
            let column = window.source(1, shape.width, column, tap % window.size[1])?;
            Some((row, column))
        })
    };
    let mut linear = |window: &Window, units: usize, scale: &LayerScale| {
        let has_bias = usize::from(scale.bias > 0.0);
        let fan_in = window.pixels() * shape.channels;
        let own = take((fan_in + has_bias) * units);
        for (index, out) in out.iter_mut().enumerate() {
            let (place, unit) = (index / units, index % units);
            let own = &own[unit * (fan_in + has_bias)..];
            for (tap, pixel) in under(window, place).enumerate() {
                let Some((row, column)) = pixel else { continue };
                for channel in 0..shape.channels {
                    let weight = own[tap * shape.channels + channel];
                    *out += scale.factor(fan_in) * weight * input[at(row, column, channel)];
                }
            }
            *out += scale.bias * if has_bias > 0 { own[fan_in] } else { 0.0 };
        }
    };
    let pool = |out: &mut [f64], window: &Window, combine: &dyn Fn(&[f64]) -> f64| {
        for (index, out) in out.iter_mut().enumerate() {
            let (place, channel) = (index / shape.channels, index % shape.channels);
            let pixels = under(window, place).flatten();
            let values: Vec<f64> = pixels
                .map(|(row, column)| input[at(row, column, channel)])
                .collect();
            *out = combine(&values);
        }
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    match layer {
        Layer::Dense(layer) => {
            let window = Window {
                size: [1, 1],
                stride: [1, 1],
                padding: Padding::Valid,
            };
            linear(&window, layer.units, &layer.scale);
        }
        Layer::Convolution(layer) => linear(&layer.window, layer.channels, &layer.scale),
        Layer::Activation { function } => {
            out.copy_from_slice(input);
            function.apply(&mut out);
        }
        Layer::AveragePool(window) => pool(&mut out, window, &mean),
        Layer::MaxPool(window) => pool(&mut out, window, &|values| {
            values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
        }),
        Layer::GlobalAveragePool => {
            for (channel, out) in out.iter_mut().enumerate() {
                let own: Vec<f64> = input
                    .iter()
                    .skip(channel)
                    .step_by(shape.channels)
                    .copied()
                    .collect();
                *out = mean(&own);
            }
        }
        Layer::Flatten => out.copy_from_slice(input),
        Layer::BatchNorm(layer) => {
            let own = take(2 * shape.channels);
            for (index, out) in out.iter_mut().enumerate() {
                let c = index % shape.channels;
                let unit =
                    (input[index] - layer.mean[c]) / (layer.variance[c] + layer.epsilon).sqrt();
                *out = own[2 * c] * unit + own[2 * c + 1];
            }
        }
        Layer::Parallel(layer) => {
            let mut first = 0;
            for branch in &layer.branches {
                let (mut values, mut shape) = (input.to_vec(), shape);
                for layer in &branch.layers {
                    values = plain(layer, shape, &values, weights);
                    shape = output_shape(layer, shape, "").unwrap();
                }
                for (index, value) in values.iter().enumerate() {
                    let (pixel, channel) = (index / shape.channels, index % shape.channels);
                    out[pixel * after.channels + first + channel] += branch.factor * value;
                }
                if layer.combination == Combination::Concatenate {
                    first += shape.channels;
                }
            }
        }
    }
    out
}

/// A network with weights, inputs, a direction and a cotangent.
struct Case {
    network: Composition,
    rows: usize,
    weights: Vec<f64>,
    inputs: Vec<f64>,
    direction: Vec<f64>,
    cotangent: Vec<f64>,
}

impl Case {
    fn new(seed: u64, is_smooth: bool, rows: usize) -> Self {
        let network = Choice::network(seed, is_smooth);
        let executor = Executor::<f64>::new(&network).unwrap();
        Self {
            rows,
            weights: noise(executor.parameters(), 1),
            inputs: noise(rows * network.input.features(), 2),
            direction: noise(executor.parameters(), 3),
            cotangent: noise(rows * network.outputs, 4),
            network,
        }
    }

    fn executor(&self) -> Executor<f64> {
        Executor::new(&self.network).unwrap()
    }

    fn inputs(&self) -> Matrix<'_, f64> {
        matrix(&self.inputs, self.rows, self.network.input.features())
    }

    fn cotangent(&self) -> Matrix<'_, f64> {
        matrix(&self.cotangent, self.rows, self.network.outputs)
    }

    fn outputs(&self, weights: &[f64], inputs: &[f64]) -> Vec<f64> {
        let mut out = vec![f64::NAN; self.cotangent.len()];
        let inputs = matrix(inputs, self.rows, self.network.input.features());
        let view = matrix_mut(&mut out, self.rows, self.network.outputs);
        self.executor().outputs(weights, inputs, view);
        out
    }

    fn vjp(&self, weights: &[f64]) -> Vec<f64> {
        let mut gradient = vec![f64::NAN; weights.len()];
        let (inputs, cotangent) = (self.inputs(), self.cotangent());
        self.executor()
            .vjp(weights, inputs, cotangent, &mut gradient, None);
        gradient
    }

    /// The Jacobian, row (output, sample) by row.
    fn jacobian(&self) -> Vec<Vec<f64>> {
        let (outputs, count) = (self.network.outputs, self.weights.len());
        let mut rows = Vec::new();
        let mut executor = self.executor();
        for output in 0..outputs {
            let mut unit = vec![0.0; self.rows * outputs];
            unit[output * self.rows..(output + 1) * self.rows].fill(1.0);
            let unit = matrix(&unit, self.rows, outputs);
            let mut out = vec![f64::NAN; self.rows * count];
            let view = matrix_mut(&mut out, self.rows, count);
            executor.vjp_of_samples(&self.weights, self.inputs(), unit, view);
            for sample in 0..self.rows {
                rows.push(
                    out.iter()
                        .skip(sample)
                        .step_by(self.rows)
                        .copied()
                        .collect(),
                );
            }
        }
        rows
    }
}

fn close(a: &[f64], b: &[f64], tolerance: f64, what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    let size = b.iter().fold(1.0_f64, |size, x| size.max(x.abs()));
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() < tolerance * size, "{what}: {x} {y}");
    }
}

fn moved(values: &[f64], step: f64, direction: &[f64]) -> Vec<f64> {
    values
        .iter()
        .zip(direction)
        .map(|(x, d)| x + step * d)
        .collect()
}

#[test]
fn outputs_are_those_of_plain_loops() {
    for seed in 0..120 {
        let case = Case::new(seed, false, 1 + seed as usize % 11);
        let (network, shapes) = (&case.network, case.network.shapes().unwrap());
        let count: usize = shapes[shapes.len() - 1].features();
        let mut expected = vec![0.0; case.cotangent.len()];
        let mut features = vec![0.0; case.rows * count];
        for sample in 0..case.rows {
            let mut values: Vec<f64> = case
                .inputs
                .iter()
                .skip(sample)
                .step_by(case.rows)
                .copied()
                .collect();
            let mut weights = &case.weights[..];
            for (layer, &shape) in network.layers.iter().zip(&shapes) {
                values = plain(layer, shape, &values, &mut weights);
            }
            let scale = network.readout_scale;
            assert_eq!(weights.len(), (count + 1) * network.outputs);
            for (output, own) in weights.chunks_exact(count + 1).enumerate() {
                expected[output * case.rows + sample] =
                    scale.factor(count) * dot(&values, &own[..count]) + scale.bias * own[count];
            }
            for (feature, value) in values.iter().enumerate() {
                features[feature * case.rows + sample] = *value;
            }
        }
        let what = format!("{network:?}");
        close(
            &case.outputs(&case.weights, &case.inputs),
            &expected,
            1e-12,
            &what,
        );
        let mut out = vec![f64::NAN; features.len()];
        let mut executor = case.executor();
        let inner = &case.weights[..case.weights.len() - executor.readout_parameters()];
        executor.features(inner, case.inputs(), matrix_mut(&mut out, case.rows, count));
        close(&out, &features, 1e-12, &what);
    }
}

#[test]
fn jvp_agrees_with_central_differences() {
    for seed in 200..260 {
        let case = Case::new(seed, true, 1 + seed as usize % 10);
        let input_direction = noise::<f64>(case.inputs.len(), 6);
        let along = |step: f64| {
            let weights = moved(&case.weights, step, &case.direction);
            case.outputs(&weights, &moved(&case.inputs, step, &input_direction))
        };
        let (up, down) = (along(1e-5), along(-1e-5));
        let numeric: Vec<f64> = up.iter().zip(&down).map(|(a, b)| (a - b) / 2e-5).collect();
        let mut exact = vec![f64::NAN; numeric.len()];
        let input_direction = matrix(&input_direction, case.rows, case.inputs().ncols());
        case.executor().jvp(
            &case.weights,
            case.inputs(),
            Some(&case.direction),
            Some(input_direction),
            matrix_mut(&mut exact, case.rows, case.network.outputs),
        );
        close(
            &exact,
            &numeric,
            2e-8,
            &format!("{seed}: {:?}", case.network),
        );
    }
}

/// ⟨u, J v⟩ = ⟨Jᵀu, v⟩, for parameters and inputs, together and apart, also where there are kinks.
#[test]
fn vjp_is_the_transpose_of_jvp() {
    for seed in 300..420 {
        let case = Case::new(seed, false, 1 + seed as usize % 21);
        let (rows, inputs) = (case.rows, case.inputs().ncols());
        let input_direction = noise::<f64>(case.inputs.len(), 6);
        let input_view = matrix(&input_direction, rows, inputs);
        let mut executor = case.executor();
        let mut gradient = vec![f64::NAN; case.weights.len()];
        let mut input_gradient = vec![f64::NAN; case.inputs.len()];
        executor.vjp(
            &case.weights,
            case.inputs(),
            case.cotangent(),
            &mut gradient,
            Some(matrix_mut(&mut input_gradient, rows, inputs)),
        );
        close(
            &gradient,
            &case.vjp(&case.weights),
            1e-15,
            "without the inputs' gradient",
        );
        for (has_weights, has_inputs) in
            [(true, true), (true, false), (false, true), (false, false)]
        {
            let mut tangent = vec![f64::NAN; case.cotangent.len()];
            executor.jvp(
                &case.weights,
                case.inputs(),
                has_weights.then_some(&case.direction[..]),
                has_inputs.then_some(input_view),
                matrix_mut(&mut tangent, rows, case.network.outputs),
            );
            let left = dot(&case.cotangent, &tangent);
            let mut right = 0.0;
            if has_weights {
                right += dot(&gradient, &case.direction);
            }
            if has_inputs {
                right += dot(&input_gradient, &input_direction);
            }
            let size = 1.0 + left.abs() + dot(&gradient, &gradient).sqrt();
            assert!(
                (left - right).abs() < 1e-12 * size,
                "{seed}: {left} {right} {:?}",
                case.network
            );
        }
        // of the features alone
        let count = executor.features_count();
        let mut features = vec![f64::NAN; rows * count];
        executor.features(
            &case.weights,
            case.inputs(),
            matrix_mut(&mut features, rows, count),
        );
        let readout = &case.weights[case.weights.len() - executor.readout_parameters()..];
        let mut back = vec![0.0; rows * count];
        let factor = case.network.readout_scale.factor(count);
        for (output, own) in readout.chunks_exact(count + 1).enumerate() {
            for (at, back) in back.iter_mut().enumerate() {
                *back += factor * own[at / rows] * case.cotangent[output * rows + at % rows];
            }
        }
        let inner = case.weights.len() - readout.len();
        let mut own = vec![f64::NAN; inner];
        let back = matrix(&back, rows, count);
        let mut own_inputs = vec![f64::NAN; case.inputs.len()];
        let into = Some(matrix_mut(&mut own_inputs, rows, inputs));
        executor.vjp_features(&case.weights[..inner], case.inputs(), back, &mut own, into);
        close(&own, &gradient[..inner], 1e-12, "features");
        close(&own_inputs, &input_gradient, 1e-12, "features, inputs");
    }
}

#[test]
fn hessian_products_agree_with_central_differences_and_are_symmetric() {
    for seed in 500..560 {
        let case = Case::new(seed, true, 1 + seed as usize % 10);
        let product = |direction: &[f64]| {
            let mut out = vec![f64::NAN; direction.len()];
            let mut executor = case.executor();
            let (inputs, cotangent) = (case.inputs(), case.cotangent());
            executor.hessian_product(&case.weights, inputs, cotangent, direction, &mut out);
            out
        };
        let exact = product(&case.direction);
        let up = case.vjp(&moved(&case.weights, 1e-5, &case.direction));
        let down = case.vjp(&moved(&case.weights, -1e-5, &case.direction));
        let numeric: Vec<f64> = up.iter().zip(&down).map(|(a, b)| (a - b) / 2e-5).collect();
        close(
            &exact,
            &numeric,
            1e-7,
            &format!("{seed}: {:?}", case.network),
        );
        let other = noise::<f64>(exact.len(), 7);
        let (left, right) = (dot(&other, &exact), dot(&case.direction, &product(&other)));
        let size = 1.0 + dot(&exact, &exact).sqrt() * (exact.len() as f64).sqrt();
        assert!(
            (left - right).abs() < 1e-12 * size,
            "{seed}: {left} {right}"
        );
    }
}

#[test]
fn hessian_products_of_samples_are_those_of_one_sample_after_the_other() {
    for seed in 560..600 {
        // one panel, several, and a last one that is not full
        let case = Case::new(seed, true, 1 + (seed as usize * 7) % 23);
        let (rows, count) = (case.rows, case.weights.len());
        let mut executor = case.executor();
        let mut all = vec![f64::NAN; rows * count];
        executor.hessian_product_of_samples(
            &case.weights,
            case.inputs(),
            case.cotangent(),
            &case.direction,
            matrix_mut(&mut all, rows, count),
        );
        for sample in 0..rows {
            let mut one = vec![f64::NAN; count];
            executor.hessian_product(
                &case.weights,
                case.inputs().subrows(sample, 1),
                case.cotangent().subrows(sample, 1),
                &case.direction,
                &mut one,
            );
            let own: Vec<f64> = all.iter().skip(sample).step_by(rows).copied().collect();
            close(&own, &one, 1e-12, &format!("{seed}: {:?}", case.network));
        }
    }
}

#[test]
fn gauss_newton_products_are_those_of_the_dense_matrix() {
    for seed in 600..640 {
        let case = Case::new(seed, false, 1 + seed as usize % 19);
        let (outputs, rows) = (case.network.outputs, case.rows);
        let jacobian = case.jacobian();
        // the samples' gradients add up to the gradient
        let mut sum = vec![0.0; case.weights.len()];
        for (row, c) in jacobian.iter().zip(&case.cotangent) {
            sum.iter_mut().zip(row).for_each(|(sum, j)| *sum += c * j);
        }
        close(
            &sum,
            &case.vjp(&case.weights),
            1e-12,
            &format!("{seed}: {:?}", case.network),
        );
        let values = case.outputs(&case.weights, &case.inputs);
        let tangents: Vec<f64> = jacobian
            .iter()
            .map(|row| dot(row, &case.direction))
            .collect();
        let of_sample = |values: &[f64], sample: usize| -> Vec<f64> {
            (0..outputs).map(|k| values[k * rows + sample]).collect()
        };
        for is_categorical in [false, true] {
            let mut expected = vec![0.0; case.weights.len()];
            for sample in 0..rows {
                let (y, tangent) = (of_sample(&values, sample), of_sample(&tangents, sample));
                let weights: Vec<f64> = y.iter().map(|y| y.exp()).collect();
                let total: f64 = weights.iter().sum();
                for (a, wa) in weights.iter().enumerate() {
                    let mut h = 0.0;
                    for (b, wb) in weights.iter().enumerate() {
                        let same = f64::from(u8::from(a == b));
                        let entry = if is_categorical {
                            same * wa / total - wa * wb / total / total
                        } else {
                            same / 0.09
                        };
                        h += entry * tangent[b];
                    }
                    let row = &jacobian[a * rows + sample];
                    expected
                        .iter_mut()
                        .zip(row)
                        .for_each(|(sum, j)| *sum += h * j);
                }
            }
            let mut out = vec![f64::NAN; expected.len()];
            let (gaussian, categorical) = (gaussian_curvature(0.3), categorical_curvature());
            let curvature: &OutputCurvature<'_, f64> = if is_categorical {
                &categorical
            } else {
                &gaussian
            };
            let mut executor = case.executor();
            let (inputs, direction) = (case.inputs(), &case.direction);
            executor.gauss_newton_product(&case.weights, inputs, curvature, direction, &mut out);
            close(
                &out,
                &expected,
                1e-11,
                &format!("{seed}: {:?}", case.network),
            );
        }
    }
}

#[test]
fn the_gradient_of_a_loss_is_the_vjp_of_its_derivatives() {
    let case = Case::new(611, false, 37);
    let outputs = case.outputs(&case.weights, &case.inputs);
    let mut gradient = vec![f64::NAN; case.weights.len()];
    let (rows, weight) = (case.rows, &case.cotangent);
    let loss = |sample: usize, y: &[f64], derivative: &mut [f64]| {
        let mut value = 0.0;
        for (k, (y, derivative)) in y.iter().zip(derivative).enumerate() {
            *derivative = weight[k * rows + sample];
            value += y * *derivative;
        }
        value
    };
    let inputs = case.inputs();
    let value = case
        .executor()
        .gradient(&case.weights, inputs, &loss, &mut gradient);
    assert!((value - dot(&outputs, weight)).abs() < 1e-10 * (1.0 + value.abs()));
    close(&gradient, &case.vjp(&case.weights), 1e-13, "gradient");
}

#[test]
fn threads_do_not_change_a_bit_and_work_space_can_be_used_again() {
    for seed in 700..712 {
        let case = Case::new(seed, true, 150);
        let all = |executor: &mut Executor<f64>, rows: usize| {
            let (weights, direction) = (&case.weights[..], &case.direction[..]);
            let inputs = case.inputs().subrows(0, rows);
            let cotangent = case.cotangent().subrows(0, rows);
            let mut results = vec![vec![f64::NAN; weights.len()]; 3];
            let [gradient, hessian, newton] = &mut results[..] else {
                unreachable!()
            };
            executor.vjp(weights, inputs, cotangent, gradient, None);
            executor.hessian_product(weights, inputs, cotangent, direction, hessian);
            let curvature = gaussian_curvature(1.0);
            executor.gauss_newton_product(weights, inputs, &curvature, direction, newton);
            let mut outputs = vec![f64::NAN; rows * case.network.outputs];
            let view = matrix_mut(&mut outputs, rows, case.network.outputs);
            executor.outputs(weights, inputs, view);
            let mut samples = vec![f64::NAN; rows * weights.len()];
            let view = matrix_mut(&mut samples, rows, weights.len());
            executor.vjp_of_samples(weights, inputs, cotangent, view);
            results.extend([outputs, samples]);
            results
        };
        let mut executor = case.executor();
        let one = all(&mut executor, 150);
        let few = all(&mut executor, 7);
        let bytes = executor.bytes();
        assert_eq!(one, all(&mut executor, 150));
        assert_eq!(bytes, executor.bytes());
        assert_eq!(few, all(&mut case.executor(), 7));
        assert_eq!(one, all(&mut case.executor().with_threads(2), 150));
        assert_eq!(one, all(&mut case.executor().with_threads(5), 150));
    }
}

#[test]
fn single_precision_agrees_with_double() {
    for seed in 800..830 {
        let case = Case::new(seed, true, 40);
        let single = |values: &[f64]| -> Vec<f32> { values.iter().map(|&x| x as f32).collect() };
        let double =
            |values: &[f32]| -> Vec<f64> { values.iter().map(|&x| f64::from(x)).collect() };
        let (weights, inputs) = (single(&case.weights), single(&case.inputs));
        let (direction, cotangent) = (single(&case.direction), single(&case.cotangent));
        let inputs = matrix(&inputs, case.rows, case.inputs().ncols());
        let cotangent = matrix(&cotangent, case.rows, case.network.outputs);
        let mut executor = Executor::<f32>::new(&case.network).unwrap();
        let mut out = vec![f32::NAN; case.cotangent.len()];
        let view = matrix_mut(&mut out, case.rows, case.network.outputs);
        executor.outputs(&weights, inputs, view);
        let what = format!("{:?}", case.network);
        close(
            &double(&out),
            &case.outputs(&case.weights, &case.inputs),
            3e-5,
            &what,
        );
        let mut gradient = vec![f32::NAN; weights.len()];
        executor.vjp(&weights, inputs, cotangent, &mut gradient, None);
        close(&double(&gradient), &case.vjp(&case.weights), 3e-5, &what);
        let mut exact = vec![f64::NAN; weights.len()];
        let (own, other) = (case.inputs(), case.cotangent());
        case.executor()
            .hessian_product(&case.weights, own, other, &case.direction, &mut exact);
        executor.hessian_product(&weights, inputs, cotangent, &direction, &mut gradient);
        close(&double(&gradient), &exact, 1e-4, &what);
    }
}

/// Views of other strides, and more rows than a share's block.
#[test]
fn inputs_may_have_rows_one_after_the_other() {
    let case = Case::new(611, false, 45);
    let count = case.inputs().ncols();
    let turned: Vec<f64> = (0..case.inputs.len())
        .map(|at| case.inputs[at % count * case.rows + at / count])
        .collect();
    let mut out = vec![f64::NAN; case.cotangent.len()];
    let view = matrix_mut(&mut out, case.rows, case.network.outputs);
    case.executor().outputs(
        &case.weights,
        matrix(&turned, count, case.rows).transpose(),
        view,
    );
    assert_eq!(out, case.outputs(&case.weights, &case.inputs));
}

/// Gaussian with standard deviation `sigma`: H = I/σ².
fn gaussian_curvature<R: Real>(sigma: f64) -> impl Fn(usize, &[R], &mut [R]) + Sync {
    let precision = R::from_f64(1.0 / (sigma * sigma));
    move |_, _, tangent| {
        for value in tangent {
            *value = precision * *value;
        }
    }
}

/// Categorical with logits as outputs: H = diag(p) − p·pᵀ with p = softmax(outputs).
fn categorical_curvature<R: Real>() -> impl Fn(usize, &[R], &mut [R]) + Sync {
    |_, outputs, tangent| {
        let logits = || outputs.iter().map(|y| y.to_f64());
        let largest = logits().fold(f64::NEG_INFINITY, f64::max);
        let (mut total, mut mean) = (0.0, 0.0);
        for (logit, value) in logits().zip(&*tangent) {
            let weight = (logit - largest).exp();
            total += weight;
            mean += weight * value.to_f64();
        }
        mean /= total;
        for (logit, value) in logits().zip(tangent) {
            let p = (logit - largest).exp() / total;
            *value = R::from_f64(p * (value.to_f64() - mean));
        }
    }
}
