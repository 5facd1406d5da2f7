use super::columns::Place;
use super::importance::{Rows, Score, importance};
use super::work::{score, shuffled};
use super::*;
use crate::predictive::{PredictionKind, PredictiveDraws};
use crate::problem::DataDescription;
use reprior::compute::{Purpose, Stream};
use reprior::metrics::PredictiveFamily;
use reprior::model::standardisation::{Affine, InputScaling, Standardisation};

/// Of a row's inputs.
type Function<'a> = dyn Fn(&[f64]) -> f64 + 'a;

/// Predictions N(f, variance) for every row, one draw for each function.
fn block(rows: &[f64], width: usize, functions: &[&Function], variance: f64) -> PredictiveDraws {
    let each = functions
        .iter()
        .flat_map(|function| rows.chunks_exact(width).map(function));
    let mean: Vec<f64> = each.collect();
    PredictiveDraws {
        kind: PredictionKind::Real(PredictiveFamily::NORMAL),
        rows: rows.len() / width,
        outputs: 1,
        variance: vec![variance; mean.len()],
        mean,
    }
}

fn description(columns: usize) -> DataDescription {
    DataDescription {
        kind: InputKind::Table,
        columns,
        column_names: (0..columns).map(|index| format!("x{index}")).collect(),
        target_columns: Vec::new(),
        is_classification: false,
        output_names: vec!["y".to_owned()],
        train_rows: 0,
        test_rows: 0,
        standardisation: Standardisation {
            inputs: InputScaling::Columns(vec![Affine::IDENTITY; columns]),
            targets: vec![Affine::IDENTITY],
            constant_columns: Vec::new(),
            constant_targets: Vec::new(),
        },
        encoding: None,
        input_ranges: Vec::new(),
        notes: Vec::new(),
        fingerprint: String::new(),
    }
}

const WIDTH: usize = 3;
const COUNT: usize = 40;
const WEIGHTS: [f64; WIDTH] = [2.0, -0.5, 0.0];
const VARIANCE: f64 = 0.3;

fn inputs() -> Vec<f64> {
    let mut stream = Stream::new(3, 0, Purpose::Check, 0);
    (0..COUNT * WIDTH).map(|_| stream.normal()).collect()
}

fn linear(row: &[f64]) -> f64 {
    row.iter().zip(WEIGHTS).map(|(x, b)| x * b).sum()
}

fn of_linear(shifts: &[usize]) -> Vec<ColumnImportance> {
    let inputs = inputs();
    let names = vec!["y".to_owned()];
    let values = inputs.chunks_exact(WIDTH).map(linear).collect();
    let truth = Targets::Real { values, names };
    let order = shuffled(COUNT, 5);
    let rows = Rows {
        inputs: &inputs,
        width: WIDTH,
        order: &order,
        shifts,
        is_classes: false,
        together: 100,
    };
    let columns = TableColumn::of(&description(WIDTH));
    importance(&rows, &columns, |altered| {
        let block = block(altered, WIDTH, &[&linear], VARIANCE);
        (0..block.rows)
            .map(|row| score(&block, row, &truth, row % COUNT))
            .collect()
    })
    .expect("an importance")
}

/// Over all shifts every pair of rows takes part, and I = b² s² / σ² exactly.
#[test]
fn of_a_linear_model_the_importance_is_the_closed_form() {
    let all: Vec<usize> = (1..COUNT).collect();
    let found = of_linear(&all);
    let inputs = inputs();
    let names: Vec<&str> = found.iter().map(|own| own.column.as_str()).collect();
    assert_eq!(names, ["x0", "x1", "x2"]);
    for (column, own) in found.iter().enumerate() {
        let values: Vec<f64> = inputs.iter().skip(column).step_by(WIDTH).copied().collect();
        let mean = values.iter().sum::<f64>() / COUNT as f64;
        let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
        let variance = squares / (COUNT as f64 - 1.0);
        let expected = WEIGHTS[column].powi(2) * variance / VARIANCE;
        assert!(
            (own.nll.value - expected).abs() < 1e-9 * (1.0 + expected),
            "{own:?}"
        );
        // the predictions were exact: the new error is all there is
        let rmse = own.rmse.expect("of real targets");
        let expected = WEIGHTS[column].abs() * (2.0 * variance).sqrt();
        assert!((rmse.value - expected).abs() < 1e-9, "{own:?}");
    }
    // a column that is not looked at loses nothing, surely
    assert_eq!(
        found[2].nll,
        Rise {
            value: 0.0,
            standard_error: 0.0
        }
    );
    assert!(found[0].nll.value > 5.0 * found[0].nll.standard_error);
}

/// Some shifts are an estimate, and the error says how good.
#[test]
fn of_few_shifts_it_is_near_and_says_how_near() {
    let all: Vec<usize> = (1..COUNT).collect();
    let (exact, rough) = (of_linear(&all), of_linear(&[7, 23]));
    for (exact, rough) in exact.iter().zip(&rough) {
        let away = (exact.nll.value - rough.nll.value).abs();
        assert!(
            away <= 3.0 * rough.nll.standard_error,
            "{exact:?} {rough:?}"
        );
    }
    assert!(rough[0].nll.value != exact[0].nll.value);
}

/// Where two columns have the same numbers, and inputs that belong together change together.
#[test]
fn inputs_of_one_column_change_together() {
    let inputs: Vec<f64> = (0..20)
        .flat_map(|i| [f64::from(i % 2), 1.0 - f64::from(i % 2)])
        .collect();
    // the model breaks where the two are not one 0 and one 1
    let checked = |row: &[f64]| {
        if row[0] + row[1] == 1.0 {
            row[0]
        } else {
            f64::NAN
        }
    };
    let encoding = reprior_io::data::TableEncoding {
        missing: reprior_io::data::Missing::Error,
        columns: vec![reprior_io::data::ColumnEncoding {
            column: "c".to_owned(),
            becomes: reprior_io::data::Becomes::Levels {
                levels: vec!["a".to_owned(), "b".to_owned()],
                has_other: false,
                fill: None,
            },
            has_indicator: false,
        }],
    };
    let together = TableColumn::of(&DataDescription {
        encoding: Some(encoding),
        ..description(2)
    });
    assert_eq!(together.len(), 1);
    let apart = TableColumn::of(&description(2));
    let sum_is_finite = |columns: &[TableColumn]| {
        let order = shuffled(20, 1);
        let rows = Rows {
            inputs: &inputs,
            width: 2,
            order: &order,
            shifts: &[3, 8],
            is_classes: false,
            together: 1000,
        };
        let found = importance(&rows, columns, |altered| {
            let all = altered.chunks_exact(2);
            Ok(all
                .map(|row| Score {
                    nll: checked(row),
                    miss: 0.0,
                })
                .collect())
        });
        found
            .expect("an importance")
            .iter()
            .all(|own| own.nll.value.is_finite())
    };
    assert!(sum_is_finite(&together));
    assert!(!sum_is_finite(&apart));
}

fn places() -> Vec<Place> {
    (0..5)
        .map(|index| Place {
            at: f64::from(index),
            inputs: vec![f64::from(index)],
        })
        .collect()
}

fn curve(functions: &[&Function], variance: f64) -> Vec<(f64, [f64; 4])> {
    let rows = inputs();
    let found = dependence::dependence(&rows, WIDTH, 1, &places(), 1, |altered| {
        Ok(block(altered, WIDTH, functions, variance))
    });
    found.expect("a curve").remove(0)
}

#[test]
fn the_dependence_of_an_additive_function_is_that_function_up_to_a_constant() {
    let part = |x: f64| (2.0 * x).sin() + x * x;
    let additive = |row: &[f64]| row[0].exp() + part(row[1]) - 3.0 * row[2];
    let found = curve(&[&additive], 0.0);
    let constant = found[0].0 - part(0.0);
    for (place, (mean, quantiles)) in places().iter().zip(&found) {
        assert!((mean - part(place.at) - constant).abs() < 1e-9, "{place:?}");
        // one draw has no band
        assert_eq!(quantiles[0], quantiles[3]);
    }
    // and of one that is no sum, it is not
    let product = |row: &[f64]| row[0].exp() * part(row[1]);
    let found = curve(&[&product], 0.0);
    let constant = found[0].0 - part(0.0);
    assert!((found[4].0 - part(4.0) - constant).abs() > 0.1);
}

#[test]
fn bands_are_of_the_draws_and_a_closed_form_has_its_own() {
    let shifted: Vec<Box<Function>> = (0..101)
        .map(|draw| {
            Box::new(move |row: &[f64]| row[1] + f64::from(draw)) as Box<dyn Fn(&[f64]) -> f64>
        })
        .collect();
    let functions: Vec<&Function> = shifted.iter().map(AsRef::as_ref).collect();
    let (mean, quantiles) = curve(&functions, 0.0)[2];
    assert!((mean - 52.0).abs() < 1e-9);
    for (found, expected) in quantiles.iter().zip([7.0, 27.0, 77.0, 97.0]) {
        assert!((found - expected).abs() < 1e-9, "{quantiles:?}");
    }
    // a normal of standard deviation 2
    let (_, quantiles) = curve(&[&|row| row[1]], 4.0)[2];
    assert!(
        (quantiles[3] - 2.0 - 2.0 * 1.644_853_627).abs() < 1e-6,
        "{quantiles:?}"
    );
}

#[test]
fn the_work_is_bounded_by_fixed_rules() {
    let scale = |of_row: f64, columns: usize| Scale {
        columns,
        places: 120,
        train_rows: 800,
        of_row,
    };
    assert_eq!(
        scale(3e3, 8).bounded(Size::WHOLE).expect("a size"),
        Size::WHOLE
    );
    let large = scale(2e6, 8).bounded(Size::WHOLE).expect("a size");
    assert!(
        large.draws == Size::LEAST.draws && large.test_rows < Size::WHOLE.test_rows,
        "{large:?}"
    );
    assert!(scale(1e9, 8).bounded(Size::WHOLE).is_err());
    // what is little from the start is not made more
    let few = Size {
        draws: 1,
        test_rows: 3,
        shifts: 1,
        train_rows: 2,
    };
    assert_eq!(scale(1e7, 8).bounded(few).expect("a size"), few);
}
