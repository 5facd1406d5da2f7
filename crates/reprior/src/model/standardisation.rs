//! Standardisation: inputs and real targets to mean 0 and standard deviation 1, and predictions back.
//!
//! Tables are standardised per column; images by one scalar mean and one scalar standard deviation over all pixels of
//! the training images (Hron et al. 2022, their code), or divided by 255 ([`PixelScaling`]). Standard deviations divide by n. A column that does not vary
//! says nothing, and has no scale in which other values of it could be told: it is 0 in every row, of test data too, and listed in
//! [`Standardisation::constant_columns`].

use serde::{Deserialize, Serialize};

use super::dataset::{Dataset, InputKind, InputValues, Targets};
use crate::compute::Real;

/// How pixels are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PixelScaling {
    /// To mean 0 and standard deviation 1 over all pixels of the training images.
    #[default]
    Standardised,
    /// Divided by 255, from 0 to 1 for bytes.
    Unit,
}

/// x = mean + scale·(standardised x).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Affine {
    /// Mean of the training data.
    pub mean: f64,
    /// Standard deviation of the training data, or 1 where that is zero.
    pub scale: f64,
}

impl Affine {
    /// The map that leaves everything as it is.
    pub const IDENTITY: Self = Self {
        mean: 0.0,
        scale: 1.0,
    };

    /// To standardised units.
    pub fn standardise(&self, value: f64) -> f64 {
        (value - self.mean) / self.scale
    }

    /// Back to the data's own units.
    pub fn restore(&self, value: f64) -> f64 {
        self.mean + self.scale * value
    }

    /// Mean and standard deviation of `values`, and whether they are all the same.
    fn fit(values: impl Iterator<Item = f64> + Clone) -> (Self, bool) {
        let count = values.clone().count() as f64;
        // in units of a power of two, which rounds nothing, squares stay in range
        let largest = values
            .clone()
            .fold(0.0, |largest: f64, v| largest.max(v.abs()));
        let unit = power_of_two(largest);
        let scaled = values.clone().map(|v| v / unit);
        let mean = scaled.clone().sum::<f64>() / count;
        let variance = scaled.map(|v| (v - mean).powi(2)).sum::<f64>() / count;
        let (mean, scale) = (mean * unit, variance.sqrt() * unit);
        let first = values.clone().next();
        let constant = values.map(Some).all(|value| value == first);
        if constant || scale == 0.0 {
            (Self { mean, scale: 1.0 }, true)
        } else {
            (Self { mean, scale }, false)
        }
    }
}

/// The largest power of two that is not above a number ≥ 0; 1 for numbers too small to have one in normal range.
fn power_of_two(value: f64) -> f64 {
    let mantissa_bits = f64::MANTISSA_DIGITS - 1;
    let power = f64::from_bits(value.to_bits() >> mantissa_bits << mantissa_bits);
    if power.is_normal() { power } else { 1.0 }
}

/// How inputs are standardised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputScaling {
    /// One map per column.
    Columns(Vec<Affine>),
    /// One map for all pixels.
    Pixels(Affine),
}

/// What was done to inputs and targets, with what is needed to undo it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standardisation {
    /// Of the inputs.
    pub inputs: InputScaling,
    /// Of the real targets, one per output; identities for classes.
    pub targets: Vec<Affine>,
    /// Input columns that do not vary over the training data (tables only); they are 0 in standardised units, whatever their value.
    pub constant_columns: Vec<usize>,
    /// Outputs that do not vary over the training data.
    pub constant_targets: Vec<usize>,
}

impl Standardisation {
    /// Multiplies the columns of tables, once standardised, by `scales`: a prior scale for each input's weights. Pixels stay as they are: one
    /// scale of all of them is a scale of the first layer.
    #[must_use]
    pub fn with_input_scales(mut self, scales: &[f64]) -> Self {
        if let InputScaling::Columns(maps) = &mut self.inputs {
            for (map, scale) in maps.iter_mut().zip(scales) {
                map.scale /= scale;
            }
        }
        self
    }

    /// Means and standard deviations of the training data, pixels standardised.
    pub fn fit(train: &Dataset) -> Self {
        Self::fit_with(train, PixelScaling::default())
    }

    /// Means and standard deviations of the training data. `pixels` is of images alone.
    pub fn fit_with(train: &Dataset, pixels: PixelScaling) -> Self {
        let mut constant_columns = Vec::new();
        let inputs = match train.kind {
            InputKind::Table => {
                let fits = (0..train.columns).map(|column| {
                    let own = (0..train.rows).map(|row| row * train.columns + column);
                    let values = own.map(|at| train.inputs.get(at));
                    let (map, constant) = Affine::fit(values);
                    if constant {
                        constant_columns.push(column);
                    }
                    map
                });
                InputScaling::Columns(fits.collect())
            }
            InputKind::Image { .. } => InputScaling::Pixels(match pixels {
                PixelScaling::Standardised => Affine::fit(train.inputs.iter()).0,
                PixelScaling::Unit => Affine {
                    mean: 0.0,
                    scale: 255.0,
                },
            }),
        };
        let mut constant_targets = Vec::new();
        let targets = match &train.targets {
            Targets::Classes { names, .. } => vec![Affine::IDENTITY; names.len()],
            Targets::Real { values, names } => {
                let fits = (0..names.len()).map(|output| {
                    let column = values.iter().skip(output).step_by(names.len()).copied();
                    let (map, constant) = Affine::fit(column);
                    if constant {
                        constant_targets.push(output);
                    }
                    map
                });
                fits.collect()
            }
        };
        Self {
            inputs,
            targets,
            constant_columns,
            constant_targets,
        }
    }

    /// The one that leaves inputs and targets as they are.
    pub fn none(train: &Dataset) -> Self {
        Self {
            inputs: match train.kind {
                InputKind::Table => InputScaling::Columns(vec![Affine::IDENTITY; train.columns]),
                InputKind::Image { .. } => InputScaling::Pixels(Affine::IDENTITY),
            },
            targets: vec![Affine::IDENTITY; train.targets.outputs()],
            constant_columns: Vec::new(),
            constant_targets: Vec::new(),
        }
    }

    /// Row-major inputs in standardised units, rounded to the precision asked for.
    pub fn standardise_inputs<R: Real>(&self, inputs: &InputValues) -> Vec<R> {
        let standardise = |map: &Affine, x| R::from_f64(map.standardise(x));
        match &self.inputs {
            InputScaling::Pixels(map) => inputs.iter().map(|x| standardise(map, x)).collect(),
            InputScaling::Columns(maps) => {
                let varies = (0..maps.len()).map(|column| !self.constant_columns.contains(&column));
                let maps: Vec<_> = maps.iter().zip(varies).collect();
                let columns = maps.iter().cycle();
                let standardise = |(x, (map, varies)): (f64, &(&Affine, bool))| match varies {
                    true => standardise(map, x),
                    false => R::ZERO,
                };
                inputs.iter().zip(columns).map(standardise).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Dataset {
        Dataset {
            inputs: vec![1.0, 5.0, 3.0, 5.0].into(),
            rows: 2,
            columns: 2,
            column_names: vec!["a".into(), "b".into()],
            kind: InputKind::Table,
            targets: Targets::Real {
                values: vec![10.0, 30.0],
                names: vec!["y".into()],
            },
        }
    }

    #[test]
    fn tables_per_column_with_constant_columns_listed() {
        let fitted = Standardisation::fit(&table());
        assert_eq!(fitted.constant_columns, [1]);
        assert_eq!(
            fitted.targets,
            [Affine {
                mean: 20.0,
                scale: 10.0
            }]
        );
        assert_eq!(
            fitted.standardise_inputs::<f64>(&table().inputs),
            [-1.0, 0.0, 1.0, 0.0]
        );
        assert_eq!(
            fitted.targets[0].restore(fitted.targets[0].standardise(17.0)),
            17.0
        );
    }

    #[test]
    fn nothing_is_scaled_where_nothing_is_to_be() {
        let kind = InputKind::Image {
            height: 1,
            width: 2,
            channels: 1,
        };
        for data in [table(), Dataset { kind, ..table() }] {
            let none = Standardisation::none(&data);
            let inputs: Vec<f64> = data.inputs.iter().collect();
            assert_eq!(none.standardise_inputs::<f64>(&data.inputs), inputs);
            assert_eq!(none.targets, [Affine::IDENTITY]);
        }
    }

    #[test]
    fn images_by_one_scalar() {
        let kind = InputKind::Image {
            height: 1,
            width: 2,
            channels: 1,
        };
        let fitted = Standardisation::fit(&Dataset { kind, ..table() });
        let InputScaling::Pixels(map) = fitted.inputs else {
            panic!("images have one scale")
        };
        assert_eq!(map.mean, 3.5);
        assert!((map.scale - 2.75_f64.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn other_values_of_a_constant_column_are_not_extrapolated() {
        let fitted = Standardisation::fit(&table());
        assert_eq!(
            fitted.standardise_inputs::<f64>(&vec![2.0, 900.0].into()),
            [0.0, 0.0]
        );
    }

    #[test]
    fn a_constant_whose_mean_rounds_is_still_constant() {
        let inputs = vec![0.1; 3];
        let fitted = Standardisation::fit(&Dataset {
            inputs: inputs.into(),
            rows: 3,
            columns: 1,
            targets: Targets::Real {
                values: vec![0.1; 3],
                names: vec!["y".into()],
            },
            ..table()
        });
        assert_eq!(
            (fitted.constant_columns, fitted.constant_targets),
            (vec![0], vec![0])
        );
    }

    #[test]
    fn values_whose_squares_leave_the_range_are_standardised() {
        for unit in [1e-300, 1e-200, 1e200, 8e307] {
            let fitted = Standardisation::fit(&Dataset {
                inputs: vec![-unit, 0.5, 2.0 * unit, 0.5].into(),
                ..table()
            });
            assert_eq!(fitted.constant_columns, [1]);
            let standardised =
                fitted.standardise_inputs::<f64>(&vec![-unit, 0.5, 2.0 * unit, 0.5].into());
            for (ours, exact) in standardised.iter().zip([-1.0, 0.0, 1.0, 0.0]) {
                assert!((ours - exact).abs() < 1e-12, "{unit}: {standardised:?}");
            }
        }
    }
}
