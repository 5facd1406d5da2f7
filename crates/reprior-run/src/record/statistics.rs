//! A statistic is defined once: its name, its type, what it says, and the field that holds it. The schema follows from the definition.

use std::slice;

use reprior_io::run::{DataType, Values, Variable};

use super::schema::variable;

/// The type of a statistic.
pub trait Scalar {
    /// On disk.
    const TYPE: DataType;
    /// To be written.
    fn values(&self) -> Values<'_>;
}

impl Scalar for f64 {
    const TYPE: DataType = DataType::F64;
    fn values(&self) -> Values<'_> {
        Values::F64(slice::from_ref(self))
    }
}

impl Scalar for i64 {
    const TYPE: DataType = DataType::I64;
    fn values(&self) -> Values<'_> {
        Values::I64(slice::from_ref(self))
    }
}

impl Scalar for bool {
    const TYPE: DataType = DataType::Bool;
    fn values(&self) -> Values<'_> {
        Values::Bool(slice::from_ref(self))
    }
}

/// A count, on disk.
pub fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The variable of a statistic without dimensions.
pub fn scalar<T: Scalar>(name: &str, text: &str) -> Variable {
    variable(name, T::TYPE, &[], text)
}

/// Defines the statistics of a record: a struct whose fields are the variables, in this order, each with what it says.
macro_rules! statistics {
    ($(#[$doc:meta])* $record:ident { $($(#[$field_doc:meta])* $name:ident: $type:ty = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $record {
            $($(#[$field_doc])* pub $name: $type,)*
        }

        impl $record {
            /// What the schema says of them.
            pub(crate) fn variables() -> Vec<reprior_io::run::Variable> {
                vec![$($crate::record::scalar::<$type>(stringify!($name), $text)),*]
            }

            /// To be written, in the same order.
            pub(crate) fn values(&self) -> Vec<reprior_io::run::Values<'_>> {
                vec![$($crate::record::Scalar::values(&self.$name)),*]
            }
        }
    };
}
pub(crate) use statistics;

#[cfg(test)]
mod tests {
    use super::*;

    statistics!(
        /// Two of one type, and one of another.
        Both { first: f64 = "the first", second: f64 = "the second", n_third: i64 = "the third", }
    );

    #[test]
    fn a_column_has_the_value_of_its_own_field() {
        let both = Both {
            second: 2.0,
            n_third: 3,
            first: 1.0,
        };
        let values = both.values();
        let found: Vec<_> = Both::variables()
            .into_iter()
            .zip(&values)
            .map(|(variable, values)| match values {
                Values::F64(value) => (variable.name, variable.data_type, value[0]),
                Values::I64(value) => (variable.name, variable.data_type, value[0] as f64),
                _ => (variable.name, variable.data_type, f64::NAN),
            })
            .collect();
        let expected = [
            ("first".to_owned(), DataType::F64, 1.0),
            ("second".to_owned(), DataType::F64, 2.0),
            ("n_third".to_owned(), DataType::I64, 3.0),
        ];
        assert_eq!(found, expected);
        assert_eq!(count(u64::MAX), i64::MAX);
    }
}
