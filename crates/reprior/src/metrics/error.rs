//! What cannot be measured.

use thiserror::Error;

/// Why predictions cannot be compared with what happened.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum MetricsError {
    /// Nothing was given.
    #[error("metrics need at least one {0}, but there are none")]
    Empty(&'static str),
    /// Two slices do not fit.
    #[error("{what} has {found} values where {expected} are needed")]
    Length {
        /// Which slice.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The length that fits the rest.
        expected: usize,
    },
    /// A length that is no whole number of rows.
    #[error("{values} values are not a whole number of rows of {columns}")]
    Ragged {
        /// Length of the slice.
        values: usize,
        /// Columns of every row.
        columns: usize,
    },
    /// A class beyond the last.
    #[error("the label of row {row} is {label}, but there are only {classes} classes (0 to {})", classes - 1)]
    Label {
        /// Row of the label.
        row: usize,
        /// The label.
        label: u32,
        /// Number of classes.
        classes: usize,
    },
    /// A value outside [0, 1].
    #[error("row {row} has the class probability {value}; it must be between 0 and 1")]
    Probability {
        /// Row of the value.
        row: usize,
        /// The value.
        value: f64,
    },
    /// A row that is no distribution.
    #[error("the class probabilities of row {row} sum to {sum}, not to 1")]
    Sum {
        /// The row.
        row: usize,
        /// The sum.
        sum: f64,
    },
    /// A mean that is not finite, or a variance that is not positive and finite.
    #[error(
        "component {component} has mean {mean} and variance {variance}; both must be finite and the variance positive"
    )]
    Component {
        /// Index of the component: of a draw, its position among the values.
        component: usize,
        /// Its mean.
        mean: f64,
        /// Its variance.
        variance: f64,
    },
}

/// The number of rows of `columns` values, at least one.
pub(super) fn rows(values: &[f64], columns: usize) -> Result<usize, MetricsError> {
    if columns == 0 {
        return Err(MetricsError::Empty("column"));
    }
    if values.is_empty() {
        return Err(MetricsError::Empty("row"));
    }
    if !values.len().is_multiple_of(columns) {
        return Err(MetricsError::Ragged {
            values: values.len(),
            columns,
        });
    }
    Ok(values.len() / columns)
}

/// Refuses a slice of another length.
pub(super) fn expect_length(
    what: &'static str,
    found: usize,
    expected: usize,
) -> Result<(), MetricsError> {
    if found != expected {
        return Err(MetricsError::Length {
            what,
            found,
            expected,
        });
    }
    Ok(())
}

/// Refuses a Gaussian that is none.
pub(super) fn check_component(
    component: usize,
    mean: f64,
    variance: f64,
) -> Result<(), MetricsError> {
    if !mean.is_finite() || !variance.is_finite() || variance <= 0.0 {
        return Err(MetricsError::Component {
            component,
            mean,
            variance,
        });
    }
    Ok(())
}
