//! What is matrix-free against dense matrices.

use reprior::compute::kernels::matrix_mut;
use reprior::compute::matrix;
use reprior::laplace::curvature::{GaussNewton, SymmetricOperator};
use reprior::laplace::row_curvature::EmpiricalFisher;
use reprior::laplace::structure::{KeptArray, KeptArrays, KeptFit};
use reprior::laplace::{
    FisherInformation, HessianStructure, Lanczos, Laplace, LaplaceData, LaplaceError,
    PriorPrecision, RowCurvature, Subset,
};
use reprior::model::likelihood::{Categorical, Gaussian};
use reprior::network::parameters::ParameterLayout;
use reprior::network::{Composition, Executor};

use super::{
    apply, close, dense_network, gauss_newton, image_network, jacobians, normals, stream, times,
};

const ROWS: usize = 21;

/// A network at a point, with classes as targets.
struct Case {
    network: Composition,
    executor: Executor<f64>,
    layout: ParameterLayout,
    weights: Vec<f64>,
    inputs: Vec<f64>,
    targets: Vec<f64>,
    curvature: Box<dyn RowCurvature<f64>>,
    dense: Vec<f64>,
    jacobians: Vec<f64>,
}

fn case(network: Composition, curvature: Box<dyn RowCurvature<f64>>) -> Case {
    let mut executor = Executor::<f64>::new(&network).unwrap().with_threads(2);
    let weights = normals(executor.parameters(), 1);
    let inputs = normals(ROWS * network.input.features(), 2);
    let (jacobians, outputs) = jacobians(&mut executor, &weights, &inputs, ROWS);
    let mut targets = vec![0.0; ROWS * network.outputs];
    for row in 0..ROWS {
        targets[row % network.outputs * ROWS + row] = 1.0;
    }
    Case {
        dense: gauss_newton(&jacobians, &outputs, network.outputs, &*curvature),
        layout: ParameterLayout::new(&network),
        network,
        executor,
        weights,
        inputs,
        targets,
        curvature,
        jacobians,
    }
}

fn cases() -> Vec<Case> {
    vec![
        case(
            dense_network(4, &[5, 6], 3),
            Box::new(FisherInformation {
                likelihood: &Categorical,
                scales: &[],
            }),
        ),
        case(
            image_network(),
            Box::new(FisherInformation {
                likelihood: &Categorical,
                scales: &[],
            }),
        ),
        case(
            dense_network(2, &[7], 2),
            Box::new(FisherInformation {
                likelihood: &Gaussian,
                scales: &[0.5, 2.0],
            }),
        ),
    ]
}

impl Case {
    fn operator(&mut self) -> GaussNewton<'_, f64> {
        GaussNewton {
            executor: &mut self.executor,
            weights: &self.weights,
            inputs: matrix(&self.inputs, ROWS, self.inputs.len() / ROWS),
            curvature: &*self.curvature,
            scale: 1.0,
        }
    }

    fn fit(
        &mut self,
        structure: HessianStructure,
        subset: Subset,
        prior: &PriorPrecision,
    ) -> Result<Laplace<f64>, LaplaceError> {
        let data = LaplaceData {
            inputs: matrix(&self.inputs, ROWS, self.inputs.len() / ROWS),
            targets: &self.targets,
            likelihood: &Categorical,
            scales: &[1.0; 3],
            curvature: &*self.curvature,
            scale: 1.0,
        };
        let (executor, weights) = (&mut self.executor, &self.weights);
        Laplace::fit(
            executor,
            &self.layout,
            weights,
            data,
            structure,
            subset,
            prior,
            &mut stream(),
        )
    }
}

fn lanczos(rank: usize) -> Lanczos {
    Lanczos {
        block: 5,
        tolerance: 1e-10,
        threshold: 1e-12,
        most: 10_000,
        ..Lanczos::of_rank(rank)
    }
}

#[test]
fn products_diagonals_and_parts() {
    for mut case in cases() {
        let size = case.weights.len();
        let vectors = normals(size * 19, 7);
        let mut products = vec![0.0; size * 19];
        let dense = case.dense.clone();
        let mut operator = case.operator();
        operator.apply(
            matrix(&vectors, size, 19),
            matrix_mut(&mut products, size, 19),
        );
        for (vector, product) in vectors.chunks_exact(size).zip(products.chunks_exact(size)) {
            close(product, &times(&dense, vector), 1e-11);
        }
        let diagonal: Vec<f64> = (0..size).map(|i| dense[i * (size + 1)]).collect();
        close(&operator.diagonal(), &diagonal, 1e-11);
        let chosen = [0, 3, size / 2, size - 1];
        let part: Vec<f64> = chosen
            .iter()
            .flat_map(|j| {
                chosen
                    .iter()
                    .map(|i| dense[*j * size + *i])
                    .collect::<Vec<_>>()
            })
            .collect();
        close(&operator.dense(&chosen), &part, 1e-11);
        // signs have exact variances: an estimate within five of its standard errors
        let estimate = operator.estimated_diagonal(2000, 3);
        for i in 0..size {
            let spread: f64 = (0..size)
                .filter(|j| *j != i)
                .map(|j| dense[j * size + i].powi(2))
                .sum();
            let error = (spread / 2000.0).sqrt();
            assert!(
                (estimate[i] - diagonal[i]).abs() < 5.0 * error + 1e-9,
                "{i}"
            );
        }
        let mut along = vec![0.0; ROWS * case.network.outputs * 2];
        let outputs = case.network.outputs;
        let inputs = matrix(&case.inputs, ROWS, case.inputs.len() / ROWS);
        let directions = matrix(&vectors[..2 * size], size, 2);
        let out = matrix_mut(&mut along, ROWS, 2 * outputs);
        case.executor.jvps(&case.weights, inputs, directions, out);
        for (at, row) in case.jacobians.chunks_exact(size).enumerate() {
            for k in 0..2 {
                let own: f64 = row
                    .iter()
                    .zip(&vectors[k * size..])
                    .map(|(a, b)| a * b)
                    .sum();
                let found = along[(k * outputs + at % outputs) * ROWS + at / outputs];
                assert!((own - found).abs() < 1e-10);
            }
        }
    }
}

/// The empirical Fisher matrix is the sum of outer products of single rows' gradients.
#[test]
fn empirical_fisher() {
    let mut case = case(
        dense_network(4, &[5], 3),
        Box::new(FisherInformation {
            likelihood: &Categorical,
            scales: &[],
        }),
    );
    let (jacobians, outputs) = jacobians(&mut case.executor, &case.weights, &case.inputs, ROWS);
    let targets: Vec<f64> = (0..ROWS * 3)
        .map(|at| case.targets[at % 3 * ROWS + at / 3])
        .collect();
    let (size, mut expected) = (case.weights.len(), vec![0.0; case.weights.len().pow(2)]);
    for row in 0..ROWS {
        let f = &outputs[row * 3..row * 3 + 3];
        let total: f64 = f.iter().map(|f| f.exp()).sum();
        let mut gradient = vec![0.0; size];
        for c in 0..3 {
            let score = targets[row * 3 + c] - f[c].exp() / total;
            for (g, j) in gradient.iter_mut().zip(&jacobians[(row * 3 + c) * size..]) {
                *g += score * j;
            }
        }
        for i in 0..size {
            for j in 0..size {
                expected[j * size + i] += gradient[i] * gradient[j];
            }
        }
    }
    let fisher = EmpiricalFisher {
        targets: &targets,
        likelihood: &Categorical,
        scales: &[1.0; 3],
    };
    let mut operator = GaussNewton {
        executor: &mut case.executor,
        weights: &case.weights,
        inputs: matrix(&case.inputs, ROWS, 4),
        curvature: &fisher,
        scale: 1.0,
    };
    let all: Vec<usize> = (0..size).collect();
    close(&operator.dense(&all), &expected, 1e-11);
    let diagonal: Vec<f64> = (0..size).map(|i| expected[i * (size + 1)]).collect();
    close(&operator.diagonal(), &diagonal, 1e-11);
    let vector = normals(size, 5);
    let mut product = vec![0.0; size];
    operator.apply(matrix(&vector, size, 1), matrix_mut(&mut product, size, 1));
    close(&product, &times(&expected, &vector), 1e-11);
}

/// Precisions G + P of full, low-rank and diagonal structures and of subsets; with one precision, one a layer and one a parameter.
#[test]
fn posteriors_are_the_dense_ones() {
    for mut case in cases() {
        let size = case.weights.len();
        let layers = case.layout.layers.len();
        let each_layer: Vec<f64> = (0..layers).map(|l| 0.5 + l as f64).collect();
        let each: Vec<f64> = (0..size).map(|i| 0.3 + (i % 7) as f64).collect();
        let expanded: Vec<f64> = case
            .layout
            .layers
            .iter()
            .zip(&each_layer)
            .flat_map(|(layer, own)| vec![*own; layer.range.len()])
            .collect();
        for (prior, precisions) in [
            (PriorPrecision::Scalar(0.7), vec![0.7; size]),
            (PriorPrecision::PerLayer(each_layer), expanded),
            (
                PriorPrecision::PerParameter(each),
                case.weights
                    .iter()
                    .zip(0..)
                    .map(|(_, i)| 0.3 + (i % 7) as f64)
                    .collect(),
            ),
        ] {
            let readout = case.executor.readout_parameters();
            let chosen: Vec<usize> = (0..size).step_by(3).collect();
            for (structure, subset) in [
                (HessianStructure::Full(u64::MAX), Subset::All),
                (HessianStructure::LowRank(lanczos(size)), Subset::All),
                (HessianStructure::Diag, Subset::All),
                (
                    HessianStructure::Full(u64::MAX),
                    Subset::Parameters(chosen.clone()),
                ),
                (HessianStructure::Diag, Subset::Parameters(chosen.clone())),
                (HessianStructure::Full(u64::MAX), Subset::LastLayer),
                (HessianStructure::Diag, Subset::LastLayer),
            ] {
                let places: Vec<usize> = match &subset {
                    Subset::All => (0..size).collect(),
                    Subset::LastLayer => (size - readout..size).collect(),
                    Subset::Parameters(places) => places.clone(),
                };
                let (count, is_part) = (places.len(), subset != Subset::All);
                let own = match &prior {
                    // of a part there are other numbers
                    PriorPrecision::PerParameter(_) if is_part => PriorPrecision::PerParameter(
                        places.iter().map(|&at| precisions[at]).collect(),
                    ),
                    PriorPrecision::PerLayer(values) if subset == Subset::LastLayer => {
                        PriorPrecision::PerLayer(vec![*values.last().unwrap()])
                    }
                    prior => prior.clone(),
                };
                let mut precision = vec![0.0; count * count];
                for (b, &j) in places.iter().enumerate() {
                    for (a, &i) in places.iter().enumerate() {
                        let keeps = a == b || structure != HessianStructure::Diag;
                        precision[b * count + a] =
                            if keeps { case.dense[j * size + i] } else { 0.0 };
                    }
                    precision[b * (count + 1)] += precisions[j];
                }
                let laplace = case.fit(structure, subset, &own).unwrap();
                let covariance = apply(&precision, count, |value| 1.0 / value);
                let vector = normals(count, 8);
                let mut product = vector.clone();
                laplace.covariance_product(&mut product);
                close(&product, &times(&covariance, &vector), 1e-7);
                let diagonal: Vec<f64> = (0..count).map(|i| covariance[i * (count + 1)]).collect();
                close(&laplace.variances(), &diagonal, 1e-7);
                // half the covariance is that of draws: noise and its image under the root
                let (values, _) =
                    reprior::compute::kernels::symmetric_eigen(&precision, count).unwrap();
                let log_determinant: f64 = values.iter().map(|v| v.ln()).sum();
                let prior: f64 = places.iter().map(|&at| precisions[at].ln()).sum();
                let ratio = laplace.log_determinant_ratio();
                assert!(
                    (ratio - (log_determinant - prior)).abs() < 1e-6 * (1.0 + ratio),
                    "{ratio}"
                );
                predictions(&mut case, &laplace, &covariance, &places);
            }
        }
    }
}

/// JΣJᵀ of each input, and of all inputs together.
fn predictions(case: &mut Case, laplace: &Laplace<f64>, covariance: &[f64], places: &[usize]) {
    let (size, count, outputs) = (case.weights.len(), places.len(), case.network.outputs);
    let rows = 4;
    let features = case.network.input.features();
    let x = normals(rows * features, 12);
    let (jacobians, f) = jacobians(&mut case.executor, &case.weights, &x, rows);
    let parts: Vec<Vec<f64>> = jacobians
        .chunks_exact(size)
        .map(|row| places.iter().map(|&at| row[at]).collect())
        .collect();
    let joint = |a: usize, b: usize| -> f64 {
        let product = times(covariance, &parts[b]);
        parts[a].iter().zip(product).map(|(a, b)| a * b).sum()
    };
    let x = matrix(&x, rows, features);
    let found = laplace.linearised(&mut case.executor, x);
    close(&found.means, &f, 1e-11);
    let own: Vec<f64> = (0..rows * outputs * outputs)
        .map(|at| {
            let (row, pair) = (at / (outputs * outputs), at % (outputs * outputs));
            joint(
                row * outputs + pair / outputs,
                row * outputs + pair % outputs,
            )
        })
        .collect();
    close(&found.covariances, &own, 1e-6);
    let [_, variances] = laplace.linearised_variances(&mut case.executor, x);
    let diagonal: Vec<f64> = (0..rows * outputs).map(|at| joint(at, at)).collect();
    close(&variances, &diagonal, 1e-6);
    if count < 60 {
        let all = laplace.joint_covariance(&mut case.executor, x);
        let total = rows * outputs;
        let expected: Vec<f64> = (0..total * total)
            .map(|at| joint(at % total, at / total))
            .collect();
        close(&all, &expected, 1e-6);
    }
}

/// Kronecker factors: the posterior is that of the matrices A ⊗ B/n which the factors' eigenpairs make; with separate biases that of
/// A without the bias, and of blocks of biases, which are the exact ones in a dense layer.
#[test]
fn kronecker_posteriors_are_those_of_their_factors() {
    let kinds = [HessianStructure::Kron, HessianStructure::KronSeparate];
    for (mut case, structure) in kinds
        .into_iter()
        .flat_map(|kind| cases().into_iter().map(move |case| (case, kind)))
    {
        let is_separate = structure == HessianStructure::KronSeparate;
        let (size, prior) = (case.weights.len(), PriorPrecision::Scalar(0.4));
        let laplace = case.fit(structure, Subset::All, &prior).unwrap();
        let matrices = case.operator().kronecker();
        let mut precision = vec![0.0; size * size];
        let (mut rest, mut first) = (&matrices[..], 0);
        let all = case.operator().diagonal();
        let mut diagonal_layers = 0;
        for layer in &case.layout.layers.clone() {
            let (a, after) = rest.split_at(layer.rows.pow(2));
            let (b, after) = after.split_at(layer.units.pow(2));
            rest = after;
            let number = layer.range.len();
            // batch normalisation, which has no factors
            let is_diagonal = a.iter().all(|value| *value == 0.0);
            diagonal_layers += usize::from(is_diagonal);
            for i in 0..number {
                for j in 0..number {
                    let [[row, unit], [other_row, other_unit]] =
                        [i, j].map(|at| [at % layer.rows, at / layer.rows]);
                    let is_bias = [row, other_row].map(|at| layer.has_bias && at + 1 == layer.rows);
                    let is_apart = is_separate && is_bias[0] != is_bias[1];
                    precision[(first + j) * size + first + i] = match is_diagonal {
                        true if i == j => all[first + i],
                        true => 0.0,
                        false if is_apart => 0.0,
                        false => {
                            a[other_row * layer.rows + row] * b[other_unit * layer.units + unit]
                                / ROWS as f64
                        }
                    };
                }
            }
            // every layer of images but the first one is dense
            let is_dense =
                case.network.layers.len() < 6 || layer.name != case.layout.layers[0].name;
            if is_dense && is_separate && !is_diagonal {
                let biases = |at: usize| first + at * layer.rows + layer.rows - 1;
                for (i, j) in (0..layer.units.pow(2)).map(|at| (at % layer.units, at / layer.units))
                {
                    let at = biases(j) * size + biases(i);
                    assert!((precision[at] - case.dense[at]).abs() < 1e-10);
                }
            }
            for i in 0..number {
                precision[(first + i) * (size + 1)] += 0.4;
            }
            first += number;
        }
        assert_eq!(laplace.report().diagonal_layers, diagonal_layers);
        let covariance = apply(&precision, size, |value| 1.0 / value);
        let mut product = normals(size, 8);
        let expected = times(&covariance, &product);
        laplace.covariance_product(&mut product);
        close(&product, &expected, 1e-9);
        let diagonal: Vec<f64> = (0..size).map(|i| covariance[i * (size + 1)]).collect();
        close(&laplace.variances(), &diagonal, 1e-9);
        let all: Vec<usize> = (0..size).collect();
        predictions(&mut case, &laplace, &covariance, &all);
        // the last layer alone is the last layer of all
        let last = case.fit(structure, Subset::LastLayer, &prior).unwrap();
        let readout = case.executor.readout_parameters();
        close(&last.variances(), &diagonal[size - readout..], 1e-9);
        let places: Vec<usize> = (size - readout..size).collect();
        let part: Vec<f64> = places
            .iter()
            .flat_map(|j| {
                places
                    .iter()
                    .map(|i| covariance[*j * size + *i])
                    .collect::<Vec<_>>()
            })
            .collect();
        predictions(&mut case, &last, &part, &places);
    }
}

/// Draws of every structure: covariances of projections of 20,000 draws within five standard errors.
#[test]
fn draws_have_the_covariance() {
    let mut case = case(
        dense_network(2, &[3], 2),
        Box::new(FisherInformation {
            likelihood: &Categorical,
            scales: &[],
        }),
    );
    let size = case.weights.len();
    let prior = PriorPrecision::Scalar(0.5);
    for (structure, subset) in [
        (HessianStructure::Full(u64::MAX), Subset::All),
        (HessianStructure::Kron, Subset::All),
        (HessianStructure::Diag, Subset::Parameters(vec![1, 4, 10])),
        (HessianStructure::Full(u64::MAX), Subset::LastLayer),
    ] {
        let laplace = case.fit(structure, subset.clone(), &prior).unwrap();
        let readout = case.executor.readout_parameters();
        let places: Vec<usize> = match &subset {
            Subset::All => (0..size).collect(),
            Subset::LastLayer => (size - readout..size).collect(),
            Subset::Parameters(places) => places.clone(),
        };
        let (mut source, mut draw) = (stream(), vec![0.0; size]);
        let count = 20_000;
        let directions: Vec<Vec<f64>> = (0..6).map(|k| normals(places.len(), 30 + k)).collect();
        let mut sums = [0.0; 36];
        for _ in 0..count {
            laplace.draw(&mut source, &mut draw);
            let away: Vec<f64> = places
                .iter()
                .map(|&at| draw[at] - case.weights[at])
                .collect();
            let moved: f64 = (0..size)
                .filter(|at| !places.contains(at))
                .map(|at| (draw[at] - case.weights[at]).abs())
                .sum();
            assert_eq!(moved, 0.0);
            let along: Vec<f64> = directions
                .iter()
                .map(|d| d.iter().zip(&away).map(|(a, b)| a * b).sum())
                .collect();
            for at in 0..36 {
                sums[at] += along[at / 6] * along[at % 6] / f64::from(count);
            }
        }
        let expected = |a: usize, b: usize| {
            let mut product = directions[b].clone();
            laplace.covariance_product(&mut product);
            let pairs = directions[a].iter().zip(product);
            pairs.map(|(x, y)| x * y).sum::<f64>()
        };
        for a in 0..6 {
            for b in 0..6 {
                let own = expected(a, b);
                let error =
                    ((expected(a, a) * expected(b, b) + own * own) / f64::from(count)).sqrt();
                assert!(
                    (sums[a * 6 + b] - own).abs() < 5.0 * error,
                    "{structure:?} {a} {b}"
                );
            }
        }
    }
}

/// 3,000 classes: Kronecker factors and the diagonal of the last layer fit, the full matrix is refused with its bytes.
#[test]
fn thousands_of_classes() {
    let (rows, classes) = (12, 3000);
    let network = dense_network(3, &[4], classes);
    let mut executor = Executor::<f64>::new(&network).unwrap();
    let layout = ParameterLayout::new(&network);
    let (weights, inputs) = (normals(executor.parameters(), 1), normals(rows * 3, 2));
    let mut targets = vec![0.0; rows * classes];
    (0..rows).for_each(|row| targets[row * rows * 7 + row] = 1.0);
    let data = LaplaceData {
        inputs: matrix(&inputs, rows, 3),
        targets: &targets,
        likelihood: &Categorical,
        scales: &vec![1.0; classes],
        curvature: &FisherInformation {
            likelihood: &Categorical,
            scales: &[],
        },
        scale: 1.0,
    };
    let prior = PriorPrecision::Scalar(1.0);
    let mut fit = |structure| {
        let subset = Subset::LastLayer;
        let (executor, source) = (&mut executor, &mut stream());
        Laplace::fit(
            executor, &layout, &weights, data, structure, subset, &prior, source,
        )
    };
    let diagonal = fit(HessianStructure::Diag).unwrap();
    let kron = fit(HessianStructure::Kron).unwrap();
    let full = fit(HessianStructure::Full(1 << 30));
    assert!(matches!(
        full,
        Err(LaplaceError::Memory { size: 15_000, .. })
    ));
    let inputs = matrix(&inputs, rows, 3);
    for laplace in [diagonal, kron] {
        let [means, variances] = laplace.linearised_variances(&mut executor, inputs);
        assert_eq!([means.len(), variances.len()], [rows * classes; 2]);
        // below the prior's, (ψᵀψ)/1
        assert!(variances.iter().all(|v| *v > 0.0 && *v < 5.0));
        let mut draw = weights.clone();
        laplace.draw(&mut stream(), &mut draw);
        assert!(draw.iter().all(|w| w.is_finite()));
    }
}

/// Draws of the last layer with features made once are those of the whole network.
#[test]
fn sampled_outputs_are_those_of_the_draws() {
    let mut case = case(
        image_network(),
        Box::new(FisherInformation {
            likelihood: &Categorical,
            scales: &[],
        }),
    );
    let prior = PriorPrecision::Scalar(2.0);
    for subset in [Subset::All, Subset::LastLayer] {
        let laplace = case.fit(HessianStructure::Diag, subset, &prior).unwrap();
        let x = matrix(&case.inputs, ROWS, 25);
        let mut found = Vec::new();
        let executor = &mut case.executor;
        laplace.sampled(executor, x, 3, &mut stream(), |f| {
            found.extend_from_slice(f)
        });
        let (mut source, mut draw) = (stream(), case.weights.clone());
        for own in found.chunks_exact(ROWS * 3) {
            laplace.draw(&mut source, &mut draw);
            let mut f = vec![0.0; ROWS * 3];
            executor.outputs(&draw, x, matrix_mut(&mut f, ROWS, 3));
            close(own, &f, 1e-12);
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let mut case = case(
        dense_network(4, &[5], 3),
        Box::new(FisherInformation {
            likelihood: &Categorical,
            scales: &[],
        }),
    );
    let scalar = PriorPrecision::Scalar(1.0);
    let memory = case.fit(HessianStructure::Full(1000), Subset::All, &scalar);
    assert!(
        memory
            .unwrap_err()
            .to_string()
            .contains("use the structure kron, diag or lowrank")
    );
    let kron = case.fit(HessianStructure::Kron, Subset::Parameters(vec![1]), &scalar);
    assert!(kron.unwrap_err().to_string().contains("use full or diag"));
    let each =
        PriorPrecision::PerParameter((0..case.weights.len()).map(|i| 1.0 + i as f64).collect());
    let kron = case.fit(HessianStructure::Kron, Subset::All, &each);
    assert_eq!(kron.unwrap_err(), LaplaceError::PrecisionWithinLayer);
    for wrong in [0.0, -1.0, f64::NAN] {
        let prior = PriorPrecision::Scalar(wrong);
        assert!(
            case.fit(HessianStructure::Diag, Subset::All, &prior)
                .is_err()
        );
    }
    let three = PriorPrecision::PerParameter(vec![1.0; 7]);
    let wrong = case
        .fit(HessianStructure::Diag, Subset::All, &three)
        .unwrap_err();
    assert!(
        wrong
            .to_string()
            .starts_with("7 prior precisions were given")
    );
    case.weights[0] = f64::NAN;
    for structure in [
        HessianStructure::Full(u64::MAX),
        HessianStructure::Diag,
        HessianStructure::Kron,
        HessianStructure::LowRank(lanczos(3)),
    ] {
        assert!(case.fit(structure, Subset::All, &scalar).is_err());
    }
}

/// A fit that was kept and loaded predicts the same to the bit, and draws the same; what is missing or of another network is refused.
#[test]
fn kept_fits_are_the_same_to_the_bit() {
    for mut case in cases() {
        let size = case.weights.len();
        let readout = case.layout.layers.last().unwrap().range.len();
        let per_weight: Vec<f64> = (0..size).map(|at| 0.3 + 0.01 * at as f64).collect();
        let each = |count: usize| PriorPrecision::PerParameter(per_weight[..count].to_vec());
        let same = PriorPrecision::Scalar(0.7);
        let full = HessianStructure::Full(u64::MAX);
        let low_rank = HessianStructure::LowRank(lanczos(6));
        let some = Subset::Parameters(vec![0, 3, 5, 8]);
        for (structure, subset, prior) in [
            (HessianStructure::Diag, Subset::All, each(size)),
            (HessianStructure::Kron, Subset::All, same.clone()),
            (HessianStructure::KronSeparate, Subset::All, same.clone()),
            (full, Subset::All, same.clone()),
            (full, Subset::All, each(size)),
            (low_rank, Subset::All, each(size)),
            (full, some.clone(), each(4)),
            (HessianStructure::Diag, some, same.clone()),
            (full, Subset::LastLayer, each(readout)),
            (HessianStructure::Kron, Subset::LastLayer, same.clone()),
            (HessianStructure::Diag, Subset::LastLayer, each(readout)),
        ] {
            let mut laplace = case.fit(structure, subset, &prior).unwrap();
            laplace.rescale(1.3, -17.5).unwrap();
            let (about, arrays) = laplace.keep();
            let text = serde_json::to_string(&about).unwrap();
            let about: KeptFit = serde_json::from_str(&text).unwrap();
            let mut kept = KeptArrays::default();
            for (name, array) in arrays {
                match array {
                    KeptArray::Weights(own) => drop(kept.weights.insert(name, own.to_vec())),
                    KeptArray::Double(own) => drop(kept.double.insert(name, own.to_vec())),
                }
            }
            let loaded = Laplace::load(&case.layout, about.clone(), kept.clone()).unwrap();
            let x = matrix(&case.inputs, ROWS, case.inputs.len() / ROWS);
            let executor = &mut case.executor;
            assert_eq!(
                loaded.linearised(executor, x),
                laplace.linearised(executor, x)
            );
            assert_eq!(
                loaded.linearised_variances(executor, x),
                laplace.linearised_variances(executor, x)
            );
            let draw = |laplace: &Laplace<f64>| {
                let mut draw = vec![0.0; size];
                laplace.draw(&mut stream(), &mut draw);
                draw
            };
            assert_eq!(draw(&loaded), draw(&laplace));
            assert_eq!(
                loaded.log_marginal_likelihood(),
                laplace.log_marginal_likelihood()
            );
            assert_eq!(loaded.left_out(), laplace.left_out());
            // every array is needed
            for name in kept.double.keys().chain(kept.weights.keys()) {
                let mut less = kept.clone();
                less.double.remove(name);
                less.weights.remove(name);
                let found = Laplace::load(&case.layout, about.clone(), less);
                assert!(matches!(found, Err(LaplaceError::Kept(_))), "{name}");
            }
            let other = ParameterLayout::new(&dense_network(3, &[4], 2));
            let found = Laplace::load(&other, about, kept);
            assert!(matches!(found, Err(LaplaceError::Kept(_))));
        }
    }
}
