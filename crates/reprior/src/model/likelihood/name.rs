//! Likelihoods by name, for the data at hand: whether they fit, how targets are coded, how many outputs a network needs.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Bernoulli, Categorical, Gaussian, Likelihood, Poisson, StudentT};
use crate::model::{Standardisation, Targets, targets};

/// A likelihood's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LikelihoodName {
    /// N(f, σ²); classes are regressed on as e_c − 1/C.
    #[default]
    Gaussian,
    /// Softmax of one output per class.
    Categorical,
    /// Two classes, one output.
    Bernoulli,
    /// Gaussian with heavy tails.
    StudentT,
    /// Counts.
    Poisson,
}

/// Data that a likelihood cannot be of.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum LikelihoodError {
    /// Real targets.
    #[error(
        "the {0} likelihood is of classes, the target is real: use --task classification, or another --likelihood"
    )]
    NeedsClasses(LikelihoodName),
    /// Classes.
    #[error(
        "the {0} likelihood is of real targets, the target is a class: use gaussian or categorical"
    )]
    NeedsReal(LikelihoodName),
    /// Not two classes.
    #[error("the bernoulli likelihood is of two classes, the target has {0}: use categorical")]
    NeedsTwoClasses(usize),
    /// A target that is no count.
    #[error("the poisson likelihood is of counts (0, 1, 2, …), training row {row} has {value}")]
    NotACount {
        /// Training row, from 0.
        row: usize,
        /// Its target.
        value: f64,
    },
    /// ν.
    #[error("{0} degrees of freedom: the student-t likelihood needs a positive, finite number")]
    DegreesOfFreedom(f64),
}

impl LikelihoodName {
    /// Every name, for messages.
    pub const NAMES: &'static str = "gaussian, categorical, bernoulli, student-t, poisson";

    /// The likelihood of these training targets; `degrees_of_freedom` is of `student-t`.
    ///
    /// # Errors
    /// [`LikelihoodError`] if the targets are of another kind.
    pub fn of_targets(
        self,
        targets: &Targets,
        degrees_of_freedom: f64,
    ) -> Result<Arc<dyn Likelihood>, LikelihoodError> {
        match (self, targets) {
            (Self::Gaussian, _) => Ok(Arc::new(Gaussian)),
            (Self::StudentT, Targets::Real { .. }) => StudentT::new(degrees_of_freedom)
                .map(|law| Arc::new(law) as Arc<dyn Likelihood>)
                .ok_or(LikelihoodError::DegreesOfFreedom(degrees_of_freedom)),
            (Self::Poisson, Targets::Real { values, names }) => {
                let is_count = |y: f64| y >= 0.0 && y.fract() == 0.0 && y.is_finite();
                if let Some(at) = values.iter().position(|&y| !is_count(y)) {
                    return Err(LikelihoodError::NotACount {
                        row: at / names.len(),
                        value: values[at],
                    });
                }
                let counts = column_major(values, names.len());
                let law = Poisson::of_counts(&counts, names.len());
                law.map(|law| Arc::new(law) as Arc<dyn Likelihood>).ok_or(
                    LikelihoodError::NotACount {
                        row: 0,
                        value: f64::NAN,
                    },
                )
            }
            (Self::StudentT | Self::Poisson, Targets::Classes { .. }) => {
                Err(LikelihoodError::NeedsReal(self))
            }
            (Self::Categorical | Self::Bernoulli, Targets::Real { .. }) => {
                Err(LikelihoodError::NeedsClasses(self))
            }
            (Self::Categorical, Targets::Classes { .. }) => Ok(Arc::new(Categorical)),
            (Self::Bernoulli, Targets::Classes { names, .. }) if names.len() == 2 => {
                Ok(Arc::new(Bernoulli))
            }
            (Self::Bernoulli, Targets::Classes { names, .. }) => {
                Err(LikelihoodError::NeedsTwoClasses(names.len()))
            }
        }
    }

    /// Outputs that a network for these targets needs.
    pub fn outputs(self, targets: &Targets) -> usize {
        match self {
            Self::Bernoulli => 1,
            _ => targets.outputs(),
        }
    }

    /// Whether there is a noise scale σ.
    pub fn has_scale(self) -> bool {
        matches!(self, Self::Gaussian | Self::StudentT)
    }

    /// Training targets as the likelihood sees them, column-major rows × outputs.
    pub fn code(self, targets: &Targets, standardisation: &Standardisation) -> Vec<f64> {
        match (self, targets) {
            (Self::Poisson, Targets::Real { values, names }) => column_major(values, names.len()),
            (Self::Categorical, Targets::Classes { labels, names }) => {
                let one_hot = |class: usize| {
                    let is_class = move |&label: &u32| f64::from(u8::from(label as usize == class));
                    labels.iter().map(is_class)
                };
                (0..names.len()).flat_map(one_hot).collect()
            }
            (Self::Bernoulli, Targets::Classes { labels, .. }) => labels
                .iter()
                .map(|&label| f64::from(label.min(1)))
                .collect(),
            _ => targets::code(targets, standardisation),
        }
    }
}

/// Row-major values column by column.
fn column_major(values: &[f64], columns: usize) -> Vec<f64> {
    let column = |j: usize| values.iter().skip(j).step_by(columns).copied();
    (0..columns).flat_map(column).collect()
}

impl fmt::Display for LikelihoodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gaussian => "gaussian",
            Self::Categorical => "categorical",
            Self::Bernoulli => "bernoulli",
            Self::StudentT => "student-t",
            Self::Poisson => "poisson",
        })
    }
}

impl FromStr for LikelihoodName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "gaussian" => Ok(Self::Gaussian),
            "categorical" => Ok(Self::Categorical),
            "bernoulli" => Ok(Self::Bernoulli),
            "student-t" => Ok(Self::StudentT),
            "poisson" => Ok(Self::Poisson),
            _ => Err(format!(
                "unknown likelihood `{text}`: use one of {}",
                Self::NAMES
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(count: u32) -> Targets {
        Targets::Classes {
            labels: (0..count).collect(),
            names: (0..count).map(|c| c.to_string()).collect(),
        }
    }

    #[test]
    fn targets_of_another_kind_are_refused_by_name() {
        let real = Targets::Real {
            values: vec![0.0, 2.0, 1.5, 3.0],
            names: vec!["a".into(), "b".into()],
        };
        use LikelihoodName::{Bernoulli, Categorical, Gaussian, Poisson, StudentT};
        let refusal = |name: LikelihoodName, targets: &Targets| name.of_targets(targets, 4.0).err();
        for name in [Gaussian, StudentT] {
            assert_eq!(refusal(name, &real), None);
        }
        for name in [Categorical, Bernoulli] {
            assert_eq!(
                refusal(name, &real),
                Some(LikelihoodError::NeedsClasses(name))
            );
        }
        for name in [StudentT, Poisson] {
            assert_eq!(
                refusal(name, &classes(2)),
                Some(LikelihoodError::NeedsReal(name))
            );
        }
        assert_eq!(
            refusal(Poisson, &real),
            Some(LikelihoodError::NotACount { row: 1, value: 1.5 })
        );
        assert_eq!(
            refusal(Bernoulli, &classes(3)),
            Some(LikelihoodError::NeedsTwoClasses(3))
        );
        assert_eq!(refusal(Bernoulli, &classes(2)), None);
        assert_eq!(
            StudentT.of_targets(&real, -1.0).err(),
            Some(LikelihoodError::DegreesOfFreedom(-1.0))
        );
    }

    #[test]
    fn targets_are_coded_column_by_column() {
        let counts = Targets::Real {
            values: vec![0.0, 2.0, 1.0, 3.0],
            names: vec!["a".into(), "b".into()],
        };
        let standardisation = Standardisation {
            inputs: crate::model::InputScaling::Columns(vec![]),
            targets: vec![],
            constant_columns: vec![],
            constant_targets: vec![],
        };
        let code = |name: LikelihoodName, targets: &Targets| name.code(targets, &standardisation);
        assert_eq!(code(LikelihoodName::Poisson, &counts), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(
            code(LikelihoodName::Categorical, &classes(2)),
            [1.0, 0.0, 0.0, 1.0]
        );
        assert_eq!(code(LikelihoodName::Bernoulli, &classes(2)), [0.0, 1.0]);
    }
}
