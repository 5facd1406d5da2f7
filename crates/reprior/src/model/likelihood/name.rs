//! Likelihoods by name, for the data at hand: whether they fit, how targets are coded, how many outputs a network needs. What is
//! said of each is in its own file (`NamedLikelihood`).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    Bernoulli, Categorical, Gaussian, GaussianHeteroscedastic, Likelihood, Poisson, StudentT,
    StudentTHeteroscedastic,
};
use crate::metrics::PredictiveFamily;
use crate::model::dataset::Targets;
use crate::model::standardisation::Standardisation;
use crate::model::targets;

/// Numbers that some likelihoods have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LikelihoodParameters {
    /// ν of Student-t, positive and finite.
    pub degrees_of_freedom: f64,
    /// What heteroscedastic likelihoods multiply a row's g with, which makes log v: positive and finite.
    pub noise_variation: f64,
}

impl Default for LikelihoodParameters {
    fn default() -> Self {
        Self {
            degrees_of_freedom: 4.0,
            noise_variation: 1.0,
        }
    }
}

/// What a likelihood of the library's says of itself for data, or before there are any.
pub(super) trait NamedLikelihood: Likelihood + Sized + 'static {
    /// Its name in settings.
    const NAME: &str;

    /// What a draw predicts.
    const PREDICTS: &str;

    /// Whether it has degrees of freedom.
    const HAS_DEGREES_OF_FREEDOM: bool = false;

    /// The likelihood of these training targets.
    fn of_targets(
        targets: &Targets,
        parameters: LikelihoodParameters,
    ) -> Result<Self, LikelihoodError>;

    /// One for no data in particular.
    fn example(parameters: LikelihoodParameters) -> Self;

    /// Outputs that a network for these targets needs.
    fn outputs(targets: &Targets) -> usize {
        targets.outputs()
    }

    /// Training targets as the likelihood sees them, column-major rows × outputs.
    fn code(targets: &Targets, standardisation: &Standardisation) -> Vec<f64> {
        targets::code(targets, standardisation)
    }
}

/// What draws of classes predict.
pub(super) const LOG_PROBABILITIES: &str =
    "logarithms of the class probabilities of this draw, in nats";

type Made = Result<Arc<dyn Likelihood>, LikelihoodError>;

/// [`NamedLikelihood`] without a type.
struct LikelihoodEntry {
    name: &'static str,
    predicts: &'static str,
    has_degrees_of_freedom: bool,
    of_targets: fn(&Targets, LikelihoodParameters) -> Made,
    example: fn(LikelihoodParameters) -> Arc<dyn Likelihood>,
    outputs: fn(&Targets) -> usize,
    code: fn(&Targets, &Standardisation) -> Vec<f64>,
}

impl LikelihoodEntry {
    const fn of<L: NamedLikelihood>() -> Self {
        Self {
            name: L::NAME,
            predicts: L::PREDICTS,
            has_degrees_of_freedom: L::HAS_DEGREES_OF_FREEDOM,
            of_targets: |targets, parameters| Ok(Arc::new(L::of_targets(targets, parameters)?)),
            example: |parameters| Arc::new(L::example(parameters)),
            outputs: L::outputs,
            code: L::code,
        }
    }
}

/// Makes [`LikelihoodName`] of the types' names, with an [`LikelihoodEntry`] of each.
macro_rules! register {
    ($($(#[$about:meta])* $name:ident,)*) => {
        /// A likelihood's name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum LikelihoodName {
            $($(#[$about])* $name,)*
        }

        /// In the order of the names.
        const ENTRIES: &[(LikelihoodName, LikelihoodEntry)] =
            &[$((LikelihoodName::$name, LikelihoodEntry::of::<$name>()),)*];
    };
}

// one line for each likelihood; its file says the rest
register! {
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
    /// Gaussian with a noise that depends on the inputs.
    GaussianHeteroscedastic,
    /// Heavy tails whose scale depends on the inputs.
    StudentTHeteroscedastic,
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
    #[error("{0} degrees of freedom: a student-t likelihood needs a positive, finite number")]
    DegreesOfFreedom(f64),
    /// a.
    #[error("a variation of the noise of {0}: it must be positive and finite")]
    NoiseVariation(f64),
}

impl LikelihoodName {
    fn entry(self) -> &'static LikelihoodEntry {
        &ENTRIES[self as usize].1
    }

    /// Every name, for messages.
    pub fn names() -> String {
        let names: Vec<&str> = ENTRIES.iter().map(|(_, entry)| entry.name).collect();
        names.join(", ")
    }

    /// The likelihood of these training targets.
    ///
    /// # Errors
    /// [`LikelihoodError`] if the targets are of another kind, or a parameter that it has is out of range.
    pub fn of_targets(
        self,
        targets: &Targets,
        parameters: LikelihoodParameters,
    ) -> Result<Arc<dyn Likelihood>, LikelihoodError> {
        (self.entry().of_targets)(targets, parameters)
    }

    /// Outputs that a network for these targets needs.
    pub fn outputs(self, targets: &Targets) -> usize {
        (self.entry().outputs)(targets)
    }

    /// Training targets as the likelihood sees them, column-major rows × outputs.
    pub fn code(self, targets: &Targets, standardisation: &Standardisation) -> Vec<f64> {
        (self.entry().code)(targets, standardisation)
    }

    /// One for no data in particular.
    fn example(self, parameters: LikelihoodParameters) -> Arc<dyn Likelihood> {
        (self.entry().example)(parameters)
    }

    /// Whether there is a noise scale σ, in units of standardised targets.
    pub fn has_scale(self) -> bool {
        self.example(LikelihoodParameters::default()).has_scale()
    }

    /// Whether the noise is another for every row.
    pub fn has_row_noise(self) -> bool {
        self.example(LikelihoodParameters::default())
            .scale_outputs(2)
            > 0
    }

    /// Whether its tails are those of Student-t with some degrees of freedom.
    pub fn has_degrees_of_freedom(self) -> bool {
        self.entry().has_degrees_of_freedom
    }

    /// Whether y ~ N(f, σ²).
    pub fn is_gaussian(self) -> bool {
        self.example(LikelihoodParameters::default()).is_gaussian()
    }

    /// The distribution of one real target given its output; none where the likelihood gives probabilities of classes.
    pub fn family(self, degrees_of_freedom: f64) -> Option<PredictiveFamily> {
        let parameters = LikelihoodParameters {
            degrees_of_freedom,
            ..LikelihoodParameters::default()
        };
        self.example(parameters).family()
    }

    /// What a draw predicts, in words.
    pub fn predicts(self) -> &'static str {
        self.entry().predicts
    }
}

/// Row-major values column by column.
pub(super) fn column_major(values: &[f64], columns: usize) -> Vec<f64> {
    let column = |j: usize| values.iter().skip(j).step_by(columns).copied();
    (0..columns).flat_map(column).collect()
}

impl fmt::Display for LikelihoodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry().name)
    }
}

impl FromStr for LikelihoodName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = ENTRIES.iter().find(|(_, entry)| entry.name == text);
        found
            .map(|(name, _)| *name)
            .ok_or_else(|| format!("unknown likelihood `{text}`: use one of {}", Self::names()))
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
        use LikelihoodName::{
            Bernoulli, Categorical, Gaussian, GaussianHeteroscedastic, Poisson, StudentT,
        };
        let refusal = |name: LikelihoodName, targets: &Targets| {
            name.of_targets(targets, LikelihoodParameters::default())
                .err()
        };
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
        let wrong = LikelihoodParameters {
            degrees_of_freedom: -1.0,
            noise_variation: 0.0,
        };
        assert_eq!(
            StudentT.of_targets(&real, wrong).err(),
            Some(LikelihoodError::DegreesOfFreedom(-1.0))
        );
        assert_eq!(
            GaussianHeteroscedastic.of_targets(&real, wrong).err(),
            Some(LikelihoodError::NoiseVariation(0.0))
        );
    }

    #[test]
    fn targets_are_coded_column_by_column() {
        let counts = Targets::Real {
            values: vec![0.0, 2.0, 1.0, 3.0],
            names: vec!["a".into(), "b".into()],
        };
        let standardisation = Standardisation {
            inputs: crate::model::standardisation::InputScaling::Columns(vec![]),
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

    #[test]
    fn names_are_read_back_as_in_settings() {
        for (name, _) in ENTRIES {
            assert_eq!(name.to_string().parse(), Ok(*name));
            let written = serde_json::to_string(name).unwrap();
            assert_eq!(written, format!("\"{name}\""));
        }
        let message = "unknown likelihood `probit`: use one of gaussian, categorical, bernoulli, student-t, poisson, gaussian-heteroscedastic, student-t-heteroscedastic";
        assert_eq!("probit".parse::<LikelihoodName>(), Err(message.to_owned()));
    }
}
