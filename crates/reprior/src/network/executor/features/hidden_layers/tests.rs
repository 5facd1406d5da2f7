//! The vjp against differences, and blocks of rows against all rows at once.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::Features;
use super::super::row_groups::{Groups, RowGroups};
use super::*;
use crate::compute::{Purpose, Stream, dot};

/// First pre-activations that do not depend on any input: the parameters of the first layer themselves.
struct Identity<'a>(Matrix<'a, f64>);

impl NetworkInputs<f64> for Identity<'_> {
    fn matrix(&self) -> Matrix<'_, f64> {
        self.0
    }

    fn forward(&self, mut out: MatrixMut<'_, f64>, weights: Matrix<'_, f64>, part: &Part) {
        out.copy_from(weights.subrows(part.rows.start, part.rows.len()));
    }

    fn vjp_weights(
        &self,
        mut gradient: MatrixMut<'_, f64>,
        cotangent: Matrix<'_, f64>,
        rows: Range<usize>,
    ) {
        if rows.start == 0 {
            gradient.fill(0.0);
        }
        let mut own = gradient.subrows_mut(rows.start, rows.len());
        own.copy_from(cotangent);
    }
}

/// ⟨cotangent, features(weights)⟩ and its gradient against central differences.
#[test]
fn vjp_agrees_with_central_differences() {
    for activation in [
        Activation::Gelu,
        Activation::Tanh,
        Activation::Sin,
        Activation::Erf,
    ] {
        let network = Composition::fully_connected(7, &[5, 4, 6], 1, activation);
        let rows = 7;
        let mut stream = Stream::new(1, 0, Purpose::Initial, 0);
        let mut noise = |n: usize| {
            let mut values = vec![0.0_f64; n];
            stream.fill_normal(&mut values);
            values
        };
        let (first, above, cotangent) = (noise(rows * 5), noise(6 * 4 + 5 * 6), noise(rows * 6));
        let weights = [first, above].concat();
        let square = vec![0.0; rows * rows];
        let inputs = Identity(matrix(&square, rows, rows));
        let mut layers = Features::<f64>::new(&network, rows);
        let mut value = |weights: &[f64]| {
            layers.evaluate(&inputs, weights, false, |_| {});
            let features = layers.features(inputs.matrix());
            let features: Vec<f64> = (0..6)
                .flat_map(|j| features.col(j).iter().copied().collect::<Vec<_>>())
                .collect();
            dot(&features, &cotangent)
        };
        let mut numeric = Vec::new();
        for at in 0..weights.len() {
            let mut moved = weights.clone();
            moved[at] += 1e-5;
            let up = value(&moved);
            moved[at] -= 2e-5;
            numeric.push((up - value(&moved)) / 2e-5);
        }
        let mut visited = 0;
        let visit = |block: Matrix<'_, f64>| visited += block.ncols();
        layers.evaluate(&inputs, &weights, true, visit);
        assert_eq!(visited, 7);
        let mut gradient = vec![f64::NAN; weights.len()];
        let view = matrix(&cotangent, rows, 6);
        layers.backward(&inputs, &weights, &mut gradient, |mut into, _| {
            into.copy_from(view);
        });
        for (a, b) in gradient.iter().zip(&numeric) {
            assert!(
                (a - b).abs() < 1e-8 * (1.0 + b.abs()),
                "{activation}: {a} {b}"
            );
        }
    }
}

/// Features and vjp in blocks of rows are those of all rows at once, however the cotangent is asked for.
#[test]
fn blocks_of_rows_change_nothing() {
    let rows = 70;
    let network = Composition::fully_connected(rows, &[5, 4, 6], 1, Activation::Gelu);
    let hidden = network.as_fully_connected().unwrap();
    let mut stream = Stream::new(1, 0, Purpose::Initial, 0);
    let mut noise = |n: usize| {
        let mut values = vec![0.0_f64; n];
        stream.fill_normal(&mut values);
        values
    };
    let (weights, cotangent) = (noise(rows * 5 + 6 * 4 + 5 * 6), noise(rows * 6));
    let square = vec![0.0; rows * rows];
    let inputs = Identity(matrix(&square, rows, rows));
    let run = |block: usize, is_kept: bool, parts: Parts| {
        let mut layers: Box<dyn FeaturePlan<f64>> = match block == rows {
            true => Box::new(HiddenLayers::in_blocks(
                &network,
                &hidden,
                rows,
                [rows, rows],
            )),
            false => Box::new(RowGroups::new(
                &network,
                &hidden,
                rows,
                Groups::of(rows, block, is_kept),
            )),
        };
        let columns = |plan: &dyn FeaturePlan<f64>| -> Vec<f64> {
            let features = plan.features(inputs.matrix());
            let columns = features.col_iter();
            columns
                .flat_map(|column| column.iter().copied().collect::<Vec<_>>())
                .collect()
        };
        layers.evaluate(&inputs, &weights, true, &mut |_| {});
        let mut gradient = vec![f64::NAN; weights.len()];
        let view = matrix(&cotangent, rows, 6);
        let asked = AtomicUsize::new(0);
        let write = |mut out: MatrixMut<'_, f64>, features: Matrix<'_, f64>, part: &Part| {
            assert_eq!(features.nrows(), rows);
            out.copy_from(view.subrows(part.rows.start, part.rows.len()));
            asked.fetch_add(1, Ordering::Relaxed);
        };
        layers.backward(&inputs, &weights, &mut gradient, parts, &write);
        let kept = columns(&*layers);
        let mut visited = 0;
        let mut count = |block: Matrix<'_, f64>| visited += block.ncols();
        layers.evaluate(&inputs, &weights, false, &mut count);
        assert_eq!(visited, 7);
        assert_eq!(kept, columns(&*layers));
        (kept, gradient, asked.into_inner())
    };
    let (features, gradient, asked) = run(rows, true, Parts::Whole);
    assert_eq!(asked, 1);
    // three blocks in three groups, and blocks of eight rows in groups of two
    for (block, is_kept) in [(32, true), (32, false), (8, true), (8, false)] {
        let blocks = rows.div_ceil(block);
        for (parts, times) in [(Parts::Whole, 1), (Parts::Units, 1), (Parts::Rows, blocks)] {
            let (own, own_gradient, asked) = run(block, is_kept, parts);
            assert_eq!(asked, times);
            let pairs = own.iter().zip(&features);
            for (a, b) in pairs.chain(own_gradient.iter().zip(&gradient)) {
                assert!(
                    (a - b).abs() < 1e-12 * (1.0 + b.abs()),
                    "{block} {parts:?}: {a} {b}"
                );
            }
        }
    }
}
