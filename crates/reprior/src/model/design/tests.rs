//! Reduced designs against the prior covariance, products against plain ones, and what whole weights reproduce.

use super::*;
use crate::compute::{Operations, Purpose, Stream};
use crate::network::{Activation, Parts};

fn noise(count: usize, index: u64) -> Vec<f32> {
    let mut values = vec![0.0; count];
    Stream::new(3, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

/// The covariance of first-layer pre-activations over the prior must be B·Bᵀ over all rows, train and test.
#[test]
fn reduced_designs_keep_the_prior_covariance() {
    for (n, t, d) in [(4, 3, 10), (4, 20, 10), (9, 3, 5), (1, 1, 1), (3, 0, 6)] {
        let architecture = Composition::fully_connected(d, &[2], 1, Activation::Gelu);
        let mut inputs = vec![0.0; n * d];
        let mut test = vec![0.0; t * d];
        let mut stream = Stream::new(2, 0, Purpose::Initial, 0);
        stream.fill_normal(&mut inputs);
        stream.fill_normal(&mut test);
        if n > 2 {
            inputs.copy_within(0..d, d); // a repeated row
        }
        let (design, tests) = designs::<f64>(&architecture, &inputs, &test, InputReduction::On);
        assert_eq!(design.columns(), n.min(d + 1));
        let b = [
            extended(&architecture, &inputs),
            extended(&architecture, &test),
        ]
        .concat();
        let row = |i: usize| -> Vec<f64> {
            if i < n {
                let mut row: Vec<f64> = design.matrix().row(i).iter().copied().collect();
                row.resize(design.columns() + tests.residual_columns(), 0.0);
                row
            } else {
                let known = tests.known();
                let mut row: Vec<f64> = known.row(i - n).iter().copied().collect();
                let at = |j: usize| tests.residual[j * t + i - n];
                row.extend((0..tests.residual_columns()).map(at));
                row
            }
        };
        for i in 0..n + t {
            for j in 0..=i {
                let exact: f64 = (0..=d)
                    .map(|k| b[i * (d + 1) + k] * b[j * (d + 1) + k])
                    .sum();
                let ours: f64 = row(i).iter().zip(row(j)).map(|(x, y)| x * y).sum();
                assert!(
                    (exact - ours).abs() < 1e-12,
                    "n={n} t={t} d={d}: {exact} {ours}"
                );
            }
        }
    }
}

/// The product of the transposed design with cotangents, which has a way for few columns: in one piece, block by block of rows, and, to the bit, unit by unit.
#[test]
fn gradients_of_the_first_layer_are_products() {
    let (rows, units) = (600, 7);
    for columns in [1, 9, 24, 25, 60] {
        let values: Vec<f32> = noise(rows * columns, 1);
        let shape = [rows, columns];
        let design = Design::new(values.clone(), shape, columns, false, Some(rows));
        assert_eq!(design.has_few_columns, columns <= 24);
        let cotangent = noise(rows * units, 2);
        let cotangent = matrix(&cotangent, rows, units);
        let mut expected = vec![0.0_f32; columns * units];
        let of_values = matrix(&values, rows, columns).transpose();
        let out = matrix_mut(&mut expected, columns, units);
        multiply(out, false, 1.0, of_values, cotangent);
        let [mut whole, mut blocks, mut single] = [(); 3].map(|()| noise(columns * units, 3));
        design.vjp_weights(matrix_mut(&mut whole, columns, units), cotangent, 0..rows);
        for rows in [0..256, 256..512, 512..rows] {
            let own = cotangent.subrows(rows.start, rows.len());
            design.vjp_weights(matrix_mut(&mut blocks, columns, units), own, rows);
        }
        for (unit, out) in single.chunks_exact_mut(columns).enumerate() {
            let own = cotangent.subcols(unit, 1);
            design.vjp_weights(matrix_mut(out, columns, 1), own, 0..rows);
        }
        let near = |(&x, &y): (&f32, &f32)| (x - y).abs() < 1e-4 * (1.0 + y.abs());
        assert!(whole.iter().zip(&expected).all(near), "{columns} columns");
        assert!(blocks.iter().zip(&expected).all(near), "{columns} columns");
        assert_eq!(single, whole, "{columns} columns");
    }
}

/// Inputs most of which are one number give the same features and gradients as inputs that are not quite, block by block and as a whole.
#[test]
fn common_numbers_are_left_out() {
    // blocks of 512 rows, two of them in a group; of 585; one
    let (n, d) = (6_000, 80);
    let mut inputs = vec![0.0; n * d];
    Stream::new(6, 0, Purpose::Initial, 0).fill_normal(&mut inputs);
    for (widths, parts) in [
        (&[64][..], Parts::Rows),
        (&[24, 32], Parts::Whole),
        (&[300], Parts::Rows),
        (&[300], Parts::Units),
    ] {
        let architecture = Composition::fully_connected(d, widths, 1, Activation::Gelu);
        let with = |spread: f64| {
            let inputs = inputs.iter();
            let inputs = inputs.map(|&x| if x < 0.9 { -0.4 + spread * x } else { x });
            let inputs: Vec<f64> = inputs.collect();
            let auto = InputReduction::Auto;
            let (design, _) = designs::<f64>(&architecture, &inputs, &[], auto);
            assert_eq!(design.sparse.is_some(), spread == 0.0);
            let count = architecture.inner_parameters();
            let mut weights = vec![0.0; count];
            Stream::new(7, 0, Purpose::Initial, 0).fill_normal(&mut weights);
            if spread == 0.0 {
                let (units, before) = (widths[0], Operations::so_far());
                design.multiply(&weights[..(d + 1) * units], &mut vec![0.0; n * units]);
                let made = Operations::so_far().since(before).flops;
                assert_eq!(made, (design.operations() * units) as u64);
                assert!(design.operations() < 2 * n * d / 4);
            }
            let mut features = Features::new(&architecture, n);
            features.evaluate(&design, &weights, true, |_| {});
            let mut gradient = vec![0.0; count];
            features.backward_in_parts(
                &design,
                &weights,
                &mut gradient,
                parts,
                |mut out, h, part| {
                    for (column, unit) in part.units.clone().enumerate() {
                        for (row, at) in part.rows.clone().enumerate() {
                            out[(row, column)] = h[(at, unit)].sin();
                        }
                    }
                },
            );
            let features = features.features(design.matrix());
            let features = features
                .col_iter()
                .flat_map(|column| column.iter().copied().collect::<Vec<_>>());
            (features.collect::<Vec<_>>(), gradient)
        };
        let (features, gradient) = with(0.0);
        let (dense_features, dense_gradient) = with(1e-13);
        for (a, b) in [(features, dense_features), (gradient, dense_gradient)] {
            let near = |(x, y): (&f64, &f64)| (x - y).abs() < 1e-9 * (1.0 + y.abs());
            assert!(a.iter().zip(&b).all(near), "{widths:?} {parts:?}");
        }
    }
}

/// L·V = B·W of the V that the network's own weights W are reduced to.
#[test]
fn weights_are_reduced_to_those_of_the_same_function() {
    let (n, d, width) = (3, 6, 2);
    let architecture = Composition::fully_connected(d, &[width], 1, Activation::Gelu);
    let mut inputs = vec![0.0; n * d];
    let mut weights = vec![0.0; (d + 1) * width];
    let mut stream = Stream::new(5, 0, Purpose::Initial, 0);
    stream.fill_normal(&mut inputs);
    stream.fill_normal(&mut weights);
    let (design, _) = designs::<f64>(&architecture, &inputs, &[], InputReduction::On);
    let whole = whole_weights(&architecture, &design, &inputs).unwrap();
    let reduced = whole.reduce(&weights);
    let b = extended(&architecture, &inputs);
    for unit in 0..width {
        for i in 0..n {
            let own: f64 = (0..=d)
                .map(|k| b[i * (d + 1) + k] * weights[unit * (d + 1) + k])
                .sum();
            let columns = design.columns();
            let ours: f64 = (0..columns)
                .map(|k| design.matrix()[(i, k)] * reduced[unit * columns + k])
                .sum();
            assert!((own - ours).abs() < 1e-12, "{own} {ours}");
        }
    }
}

/// W = known·V + residual·ε has B·W = L·V whatever ε is, and identity covariance.
#[test]
fn whole_weights_reproduce_the_pre_activations() {
    let (n, d) = (3, 6);
    let architecture = Composition::fully_connected(d, &[2], 1, Activation::Gelu);
    let mut inputs = vec![0.0; n * d];
    Stream::new(4, 0, Purpose::Initial, 0).fill_normal(&mut inputs);
    inputs.copy_within(0..d, d);
    let (design, _) = designs::<f64>(&architecture, &inputs, &[], InputReduction::Auto);
    let whole = whole_weights(&architecture, &design, &inputs).unwrap();
    let b = extended(&architecture, &inputs);
    let basis = |row: usize, k: usize| {
        if k < design.columns() {
            whole.known()[(row, k)]
        } else {
            whole.residual[(k - design.columns()) * (d + 1) + row]
        }
    };
    for i in 0..n {
        for k in 0..=d {
            let product: f64 = (0..=d)
                .map(|row| b[i * (d + 1) + row] * basis(row, k))
                .sum();
            let expected = if k < design.columns() {
                design.matrix()[(i, k)]
            } else {
                0.0
            };
            assert!((product - expected).abs() < 1e-12);
        }
    }
    for i in 0..=d {
        for j in 0..=d {
            let gram: f64 = (0..=d).map(|k| basis(i, k) * basis(j, k)).sum();
            assert!((gram - f64::from(u8::from(i == j))).abs() < 1e-12);
        }
    }
}
