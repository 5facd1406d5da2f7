//! The posterior in different coordinates and spaces against each other, dense formulas and central differences.

use std::sync::Arc;

use reprior::compute::kernels::Cholesky;
use reprior::compute::{Purpose, Real, Stream};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior::posterior::projection::Projection;
use reprior::posterior::{Coordinates, Posterior, PosteriorSettings, Recorder, Space, Target};

const NOISE: f64 = 0.3;

fn noise(count: usize, index: u64) -> Vec<f64> {
    let mut values = vec![0.0; count];
    Stream::new(11, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

struct Case {
    architecture: Composition,
    rows: usize,
    test_rows: usize,
}

impl Case {
    fn inputs(&self) -> Vec<f64> {
        let mut inputs = noise(self.rows * self.architecture.inputs(), 1);
        if self.rows > 3 {
            let d = self.architecture.inputs();
            inputs.copy_within(0..d, 2 * d); // an exactly repeated row
        }
        inputs
    }

    fn model(&self, reduction: InputReduction) -> Arc<Model<f64>> {
        let targets = noise(self.rows * self.architecture.outputs, 2);
        let test = noise(self.test_rows * self.architecture.inputs(), 3);
        let architecture = self.architecture.clone();
        Arc::new(
            Model::new(
                architecture,
                NOISE,
                &self.inputs(),
                targets,
                &test,
                reduction,
            )
            .unwrap(),
        )
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (rows, inputs, hidden, outputs) in [
        (6, 9, vec![4], 2),
        (6, 9, vec![12, 7], 3),
        (9, 2, vec![5, 3, 4], 1),
        (80, 100, vec![70], 2),
        (1, 3, vec![4], 1),
        (5, 3, vec![], 2),
    ] {
        for activation in [Activation::Gelu, Activation::Tanh] {
            let architecture = Composition::fully_connected(inputs, &hidden, outputs, activation);
            cases.push(Case {
                architecture,
                rows,
                test_rows: 4,
            });
        }
    }
    cases
}

/// Features extended by the constant column times α, row by row, straight from the definition.
fn psi(architecture: &Composition, weights: &[f64], inputs: &[f64]) -> Vec<Vec<f64>> {
    let mut layers = Vec::new();
    let mut rest = weights;
    for layer in architecture.as_fully_connected().unwrap() {
        let (own, above) = rest.split_at(layer.rows() * layer.units);
        layers.push((layer, own));
        rest = above;
    }
    let row = |x: &[f64]| {
        let mut h = x.to_vec();
        for (layer, w) in &layers {
            let (rows, scale) = (layer.rows(), layer.scale);
            let factor = scale.weight / (h.len() as f64).sqrt();
            let unit = |w: &[f64]| {
                let sum: f64 = h.iter().zip(w).map(|(h, w)| h * w).sum();
                factor * sum + scale.bias * w[rows - 1]
            };
            let mut z: Vec<f64> = w.chunks_exact(rows).map(unit).collect();
            layer.activation.unwrap().apply(&mut z);
            h = z;
        }
        let factor = architecture.readout_scale.weight / (h.len() as f64).sqrt();
        h.iter()
            .map(|h| h * factor)
            .chain([architecture.readout_scale.bias])
            .collect()
    };
    inputs
        .chunks_exact(architecture.inputs())
        .map(row)
        .collect()
}

fn kernel(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let dot = |x: &Vec<f64>, y: &Vec<f64>| x.iter().zip(y).map(|(x, y)| x * y).sum();
    a.iter()
        .map(|x| b.iter().map(|y| dot(x, y)).collect())
        .collect()
}

/// −½ Σ yᵀK_s⁻¹y − (C/2) log det K_s by a dense factorisation.
fn dense_log_ratio(model: &Model<f64>, psi: &[Vec<f64>]) -> (f64, Cholesky) {
    let n = psi.len();
    let k = kernel(psi, psi);
    let mut cholesky = Cholesky::new(n);
    cholesky
        .factorise(|i, j| k[i][j] + if i == j { NOISE * NOISE } else { 0.0 })
        .unwrap();
    let outputs = model.architecture.outputs;
    let mut solved = model.targets.clone();
    cholesky.solve_lower(&mut solved, outputs);
    let quadratic: f64 = solved.iter().map(|v| v * v).sum();
    (
        -0.5 * quadratic - 0.5 * outputs as f64 * cholesky.log_determinant(),
        cholesky,
    )
}

fn position(model: &Model<f64>, coordinates: Coordinates, index: u64) -> Vec<f64> {
    noise(Posterior::dimension(model, coordinates), index)
}

fn relative(a: f64, b: f64) -> f64 {
    (a - b).abs() / (1.0 + b.abs())
}

#[test]
fn feature_space_data_space_and_the_dense_formula_agree() {
    for case in cases() {
        let model = case.model(InputReduction::Off);
        let z = position(&model, Coordinates::Marginal, 5);
        let psi = psi(&case.architecture, &z, &case.inputs());
        let (exact, _) = dense_log_ratio(&model, &psi);
        for space in [Space::Feature, Space::Data] {
            for coordinates in [Coordinates::Marginal, Coordinates::Repriorised] {
                let mut target = Posterior::new(
                    Arc::clone(&model),
                    PosteriorSettings::in_space(coordinates, space),
                )
                .unwrap();
                let mut z = z.clone();
                z.resize(target.dim(), 0.7);
                assert!(relative(target.log_ratio(&z).unwrap(), exact) < 1e-10);
            }
        }
    }
}

#[test]
fn reduced_and_unreduced_inputs_agree() {
    for case in cases()
        .into_iter()
        .filter(|case| case.rows <= case.architecture.inputs())
    {
        let (whole, reduced) = (
            case.model(InputReduction::Off),
            case.model(InputReduction::On),
        );
        let w = position(&whole, Coordinates::Marginal, 6);
        let units = case.architecture.hidden_widths()[0];
        // V solves L·V = B·W row by row. L is a staircase: a repeated row adds no column, so each row determines the
        // coordinate of its last nonzero entry, if that is new.
        let (l, b) = (reduced.design.matrix(), whole.design.matrix());
        let mut v = Vec::new();
        for unit in 0..units {
            let mut column = vec![0.3; l.ncols()];
            let mut known = 0;
            for i in 0..case.rows {
                let full: f64 = (0..b.ncols())
                    .map(|k| b[(i, k)] * w[unit * b.ncols() + k])
                    .sum();
                let last = (0..l.ncols())
                    .rev()
                    .find(|&k| l[(i, k)].abs() > 1e-10)
                    .unwrap();
                if last >= known {
                    let below: f64 = (0..last).map(|k| l[(i, k)] * column[k]).sum();
                    column[last] = (full - below) / l[(i, last)];
                    known = last + 1;
                }
            }
            v.extend(column);
        }
        v.extend(&w[units * b.ncols()..]);
        for space in [Space::Feature, Space::Data] {
            let coordinates = Coordinates::Marginal;
            let mut a = Posterior::new(
                Arc::clone(&whole),
                PosteriorSettings::in_space(coordinates, space),
            )
            .unwrap();
            let mut b = Posterior::new(
                Arc::clone(&reduced),
                PosteriorSettings::in_space(coordinates, space),
            )
            .unwrap();
            let (a, b) = (a.log_ratio(&w).unwrap(), b.log_ratio(&v).unwrap());
            assert!(relative(a, b) < 1e-8, "{a} {b}");
        }
    }
}

/// Hron et al. 2022, eq. 9: log p(y|T(φ)) − ½‖θ_out‖² + ½‖φ_out‖² + log|det| is the marginal ℓ, whatever φ_out is.
#[test]
fn repriorising_leaves_the_readout_standard_normal() {
    for case in cases() {
        let model = case.model(InputReduction::Auto);
        let outputs = case.architecture.outputs;
        for space in [Space::Feature, Space::Data] {
            let mut repriorised = Posterior::new(
                Arc::clone(&model),
                PosteriorSettings::in_space(Coordinates::Repriorised, space),
            )
            .unwrap();
            let mut standard = Posterior::new(Arc::clone(&model), Coordinates::Standard).unwrap();
            let z = position(&model, Coordinates::Repriorised, 8);
            let value = repriorised.log_ratio(&z).unwrap();
            let projection = Projection::new(&model, 3, 0);
            let mut recorder = Recorder::new(Arc::clone(&model)).with_projection(projection);
            let mut stream = Stream::new(0, 0, Purpose::Recording, 0);
            let theta = recorder
                .record(&mut repriorised, &z, &mut stream)
                .unwrap()
                .weights
                .clone();
            let inner = model.inner_parameters();
            let half_square = |v: &[f64]| 0.5 * v.iter().map(|x| x * x).sum::<f64>();
            // log|det ∂θ_out/∂φ_out| = (C/2) log det Σ = (C/2)(n log σ² − log det K_s)
            let psi_log_determinant = {
                let mut marginal = Posterior::new(
                    Arc::clone(&model),
                    PosteriorSettings::in_space(Coordinates::Marginal, space),
                )
                .unwrap();
                let quadratic_free = Model::new(
                    case.architecture.clone(),
                    NOISE,
                    &case.inputs(),
                    vec![0.0; model.targets.len()],
                    &[],
                    InputReduction::Auto,
                )
                .unwrap();
                let mut no_data = Posterior::new(
                    Arc::new(quadratic_free),
                    PosteriorSettings::in_space(Coordinates::Marginal, space),
                )
                .unwrap();
                marginal.log_ratio(&z[..inner]).unwrap();
                -2.0 / outputs as f64 * no_data.log_ratio(&z[..inner]).unwrap()
            };
            let n = case.rows as f64;
            let log_det = 0.5 * outputs as f64 * (n * (NOISE * NOISE).ln() - psi_log_determinant);
            let direct = standard.log_ratio(&theta).unwrap() - half_square(&theta[inner..])
                + half_square(&z[inner..])
                + log_det;
            assert!(relative(direct, value) < 1e-9, "{space}: {direct} {value}");
        }
    }
}

#[test]
fn gradients_agree_with_central_differences() {
    for case in cases() {
        for reduction in [InputReduction::Off, InputReduction::On] {
            let model = case.model(reduction);
            for (coordinates, space) in [
                (Coordinates::Marginal, Some(Space::Feature)),
                (Coordinates::Marginal, Some(Space::Data)),
                (Coordinates::Repriorised, None),
                (Coordinates::Standard, None),
            ] {
                let mut target = Posterior::new(
                    Arc::clone(&model),
                    PosteriorSettings {
                        space,
                        ..coordinates.into()
                    },
                )
                .unwrap();
                let z = position(&model, coordinates, 9);
                let mut gradient = vec![f64::NAN; z.len()];
                let value = target.log_ratio_and_gradient(&z, &mut gradient).unwrap();
                assert_eq!(value, target.log_ratio(&z).unwrap());
                // along random directions and along some axes
                for trial in 0..6 {
                    let direction = if trial < 3 || z.is_empty() {
                        noise(z.len(), 20 + trial)
                    } else {
                        let mut axis = vec![0.0; z.len()];
                        axis[(trial as usize * 7919) % z.len()] = 1.0;
                        axis
                    };
                    let mut at = |step: f64| {
                        let moved: Vec<f64> = z
                            .iter()
                            .zip(&direction)
                            .map(|(z, d)| z + step * d)
                            .collect();
                        target.log_ratio(&moved).unwrap()
                    };
                    let h = 1e-4;
                    // fourth-order central difference
                    let numeric =
                        (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
                    let exact: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum();
                    assert!(
                        relative(exact, numeric) < 1e-6,
                        "{coordinates}: {exact} {numeric}"
                    );
                }
            }
        }
    }
}

#[test]
fn single_precision_agrees_with_double() {
    let case = Case {
        architecture: Composition::fully_connected(40, &[64, 32], 3, Activation::Gelu),
        rows: 50,
        test_rows: 0,
    };
    let double = case.model(InputReduction::Off);
    let targets = double.targets.clone();
    let single = Model::<f32>::new(
        case.architecture.clone(),
        NOISE,
        &case.inputs(),
        targets,
        &[],
        InputReduction::Off,
    )
    .map(Arc::new)
    .unwrap();
    let z = position(&double, Coordinates::Marginal, 4);
    let narrow: Vec<f32> = z.iter().map(|&x| x as f32).collect();
    for space in [Space::Feature, Space::Data] {
        let mut exact = Posterior::new(
            Arc::clone(&double),
            PosteriorSettings::in_space(Coordinates::Marginal, space),
        )
        .unwrap();
        let mut ours = Posterior::new(
            Arc::clone(&single),
            PosteriorSettings::in_space(Coordinates::Marginal, space),
        )
        .unwrap();
        let (mut g, mut h) = (vec![0.0; z.len()], vec![0.0_f32; z.len()]);
        let a = exact.log_ratio_and_gradient(&z, &mut g).unwrap();
        let b = ours.log_ratio_and_gradient(&narrow, &mut h).unwrap();
        assert!((a - b).abs() < 1e-3, "{a} {b}");
        let error: f64 = g
            .iter()
            .zip(&h)
            .map(|(g, h)| (g - f64::from(*h)).powi(2))
            .sum();
        let norm: f64 = g.iter().map(|g| g * g).sum();
        assert!((error / norm).sqrt() < 1e-4);
    }
}

/// However small the noise: of sums over thousands of rows in single precision, the kernel matrix of these features, which are nearly
/// dependent, would not be positive definite.
#[test]
fn little_noise_takes_no_double_precision() {
    const SIGMA: f64 = 0.003;
    let (rows, inputs) = (8000, 1);
    let architecture = Composition::fully_connected(inputs, &[24, 24], 1, Activation::Tanh);
    let dimension = inputs * 24 + 24 + 24 * 24 + 24;
    let z: Vec<f32> = noise(dimension, 4).iter().map(|&z| z as f32).collect();
    let wide: Vec<f64> = z.iter().map(|&z| f64::from(z)).collect();
    let (x, readout) = (noise(rows * inputs, 1), noise(25, 2));
    let of_row = |(features, error): (&Vec<f64>, &f64)| {
        let products = features.iter().zip(&readout).map(|(h, w)| h * w);
        products.sum::<f64>() + SIGMA * error
    };
    let features = psi(&architecture, &wide, &x);
    let targets: Vec<f64> = features.iter().zip(&noise(rows, 3)).map(of_row).collect();
    fn posterior<R: Real>(network: &Composition, x: &[f64], targets: &[f64]) -> Posterior<R> {
        let (network, targets) = (network.clone(), targets.to_vec());
        let model = Model::new(network, SIGMA, x, targets, &[], InputReduction::Off).unwrap();
        let settings = PosteriorSettings::in_space(Coordinates::Marginal, Space::Feature);
        Posterior::new(Arc::new(model), settings).unwrap()
    }
    let mut single = posterior::<f32>(&architecture, &x, &targets);
    let mut double = posterior::<f64>(&architecture, &x, &targets);
    let (mut g, mut h) = (vec![0.0; dimension], vec![0.0_f32; dimension]);
    let exact = double.log_ratio_and_gradient(&wide, &mut g).unwrap();
    let ours = single.log_ratio_and_gradient(&z, &mut h).unwrap();
    let pairs = g.iter().zip(&h);
    let error: f64 = pairs.map(|(g, &h)| (g - f64::from(h)).powi(2)).sum();
    let norm: f64 = g.iter().map(|g| g * g).sum();
    assert!((ours - exact).abs() < 0.05, "{ours} {exact}");
    assert!((error / norm).sqrt() < 0.1, "{error} {norm}");
    assert_eq!(single.corrections(), 0);
}

#[test]
fn predictions_given_the_inner_weights_are_the_gaussian_conditional() {
    for case in cases() {
        let model = case.model(InputReduction::Off);
        let z = position(&model, Coordinates::Marginal, 5);
        let train = psi(&case.architecture, &z, &case.inputs());
        let test = psi(
            &case.architecture,
            &z,
            &noise(case.test_rows * case.architecture.inputs(), 3),
        );
        let (_, cholesky) = dense_log_ratio(&model, &train);
        let cross = kernel(&test, &train);
        let outputs = case.architecture.outputs;
        for space in [Space::Feature, Space::Data] {
            let mut target = Posterior::new(
                Arc::clone(&model),
                PosteriorSettings::in_space(Coordinates::Marginal, space),
            )
            .unwrap();
            let mut recorder =
                Recorder::new(Arc::clone(&model)).with_projection(Projection::new(&model, 2, 0));
            let mut stream = Stream::new(0, 0, Purpose::Recording, 0);
            let record = recorder.record(&mut target, &z, &mut stream).unwrap();
            for i in 0..case.test_rows {
                let mut solved = cross[i].clone();
                cholesky.solve_lower(&mut solved, 1);
                let prior: f64 = test[i].iter().map(|v| v * v).sum();
                let variance = prior - solved.iter().map(|v| v * v).sum::<f64>();
                assert!(relative(record.variance[i], variance) < 1e-9);
                cholesky.solve_upper(&mut solved, 1);
                for output in 0..outputs {
                    let y = &model.targets[output * case.rows..(output + 1) * case.rows];
                    let mean: f64 = solved.iter().zip(y).map(|(s, y)| s * y).sum();
                    assert!(relative(record.mean[output * case.test_rows + i], mean) < 1e-9);
                }
            }
        }
    }
}

/// Many exact readout draws have mean μ and covariance Σ in both spaces; z-scores below 5.
#[test]
fn readout_draws_have_the_conditional_mean_and_covariance() {
    let case = Case {
        architecture: Composition::fully_connected(3, &[4], 1, Activation::Gelu),
        rows: 3,
        test_rows: 0,
    };
    let model = case.model(InputReduction::Off);
    let z = position(&model, Coordinates::Marginal, 5);
    let psi = psi(&case.architecture, &z, &case.inputs());
    let p = case.architecture.readout_rows();
    // Σ⁻¹ = I + σ⁻²ΨᵀΨ and Σ⁻¹μ = σ⁻²ΨᵀY
    let precision = |i: usize, j: usize| {
        let sum: f64 = psi.iter().map(|row| row[i] * row[j]).sum();
        sum / (NOISE * NOISE) + f64::from(u8::from(i == j))
    };
    let mut cholesky = Cholesky::new(p);
    cholesky.factorise(precision).unwrap();
    let mut mean: Vec<f64> = (0..p)
        .map(|j| {
            psi.iter()
                .zip(&model.targets)
                .map(|(row, y)| row[j] * y)
                .sum::<f64>()
                / (NOISE * NOISE)
        })
        .collect();
    cholesky.solve_lower(&mut mean, 1);
    cholesky.solve_upper(&mut mean, 1);
    for (space, coordinates) in [
        (Space::Feature, Coordinates::Marginal),
        (Space::Data, Coordinates::Marginal),
        (Space::Feature, Coordinates::Repriorised),
        (Space::Data, Coordinates::Repriorised),
    ] {
        let mut target = Posterior::new(
            Arc::clone(&model),
            PosteriorSettings::in_space(coordinates, space),
        )
        .unwrap();
        let mut recorder =
            Recorder::new(Arc::clone(&model)).with_projection(Projection::new(&model, 1, 0));
        let count = 20_000;
        // Σ⁻¹-weighted deviations are white: check Cᵀ(θ − μ) with Σ⁻¹ = CCᵀ
        let (mut sums, mut squares) = (vec![0.0; p], vec![0.0; p * p]);
        for draw in 0..count {
            let mut stream = Stream::new(1, 0, Purpose::Recording, draw);
            let mut z = z.clone();
            if coordinates == Coordinates::Repriorised {
                let mut phi = vec![0.0; p];
                stream.fill_normal(&mut phi);
                z.extend(phi);
            }
            let record = recorder.record(&mut target, &z, &mut stream).unwrap();
            let theta = &record.weights[model.inner_parameters()..];
            let deviation: Vec<f64> = theta.iter().zip(&mean).map(|(t, m)| t - m).collect();
            for i in 0..p {
                sums[i] += deviation[i];
                for j in 0..p {
                    squares[i * p + j] += deviation[i] * deviation[j];
                }
            }
        }
        // Σ = inverse of the precision
        let (mut inverse, mut scratch) = (vec![0.0; p * p], vec![0.0; p * p]);
        cholesky.inverse(&mut inverse, &mut scratch);
        let n = count as f64;
        for i in 0..p {
            let sd = inverse[i * p + i].sqrt();
            assert!((sums[i] / n).abs() < 5.0 * sd / n.sqrt());
            for j in 0..=i {
                let covariance = inverse[j * p + i];
                let spread =
                    (inverse[i * p + i] * inverse[j * p + j] + covariance * covariance).sqrt();
                let error = squares[i * p + j] / n - covariance;
                assert!(
                    error.abs() < 5.0 * spread / n.sqrt(),
                    "{space} {coordinates}"
                );
            }
        }
    }
}

/// Over the prior, projections are N(0, ‖v‖²)-like with mean square 1 over directions, reduced or not, and each
/// layer's mean square is 1.
#[test]
fn projections_of_prior_weights_have_unit_variance_over_directions() {
    let case = Case {
        architecture: Composition::fully_connected(30, &[6, 5], 2, Activation::Gelu),
        rows: 4,
        test_rows: 0,
    };
    for reduction in [InputReduction::Off, InputReduction::On] {
        let model = case.model(reduction);
        let count = 60;
        let mut sum = 0.0;
        let mut norm = 0.0;
        let trials = 200;
        for trial in 0..trials {
            let mut projection = Projection::new(&model, count, trial);
            let mut stream = Stream::new(3, 0, Purpose::Recording, trial);
            let total = model.inner_parameters() + model.architecture.readout_parameters();
            let mut weights = vec![0.0; total];
            stream.fill_normal(&mut weights);
            let (mut z, mut norms) = (vec![0.0; count], vec![0.0; projection.layers()]);
            projection.project(&weights, &mut stream, &mut z, &mut norms);
            sum += z.iter().map(|z| z * z).sum::<f64>() / count as f64;
            norm += norms[0];
        }
        let trials = trials as f64;
        // 12,000 squares whose correlations are weak: their mean is within 10 % of 1
        assert!((sum / trials - 1.0).abs() < 0.1, "{}", sum / trials);
        // mean square of 186 weights: sd √(2/186/200)
        assert!((norm / trials - 1.0).abs() < 5.0 * (2.0_f64 / 186.0 / 200.0).sqrt());
    }
}
