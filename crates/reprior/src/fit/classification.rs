//! Classes by softmax.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use super::data::{AsRow, RowTable};
use super::prediction::ClassProbabilities;
use super::problem::{FitProblem, HiddenWidths};
use super::{Fit, FitError, SampleSettings};
use crate::chain::{Control, Progress};
use crate::model::Noise;
use crate::model::dataset::Targets;
use crate::model::likelihood::Categorical;
use crate::network::Activation;

/// A classification: one label a row, its probabilities a softmax of the network's outputs.
///
/// Unless told otherwise one hidden layer of 512 GELU units.
#[derive(Debug, Clone)]
pub struct Classification {
    inputs: Result<RowTable, FitError>,
    labels: Vec<u32>,
    classes: Vec<String>,
    hidden: HiddenWidths,
}

impl Classification {
    /// Of rows of inputs in their own units and as many labels, integers or strings; classes come in the labels' order.
    /// [`sample`](Self::sample) says what is wrong with them.
    pub fn new<X: AsRow, L: Ord + Display>(inputs: &[X], labels: &[L]) -> Self {
        let mut codes: BTreeMap<&L, u32> = labels.iter().map(|label| (label, 0)).collect();
        for (code, (_, own)) in (0..).zip(&mut codes) {
            *own = code;
        }
        Self {
            inputs: RowTable::new("inputs", inputs),
            labels: labels.iter().map(|label| codes[label]).collect(),
            classes: codes.keys().map(|label| (*label).to_string()).collect(),
            hidden: HiddenWidths::default(),
        }
    }

    /// Units of the hidden layers, lowest first; none for a linear model.
    #[must_use]
    pub fn hidden(mut self, widths: impl Into<Vec<usize>>) -> Self {
        self.hidden.widths = widths.into();
        self
    }

    /// What hidden units compute.
    #[must_use]
    pub fn activation(mut self, activation: Activation) -> Self {
        self.hidden.activation = activation;
        self
    }

    /// Samples the posterior.
    ///
    /// # Errors
    /// [`FitError`] names what is wrong with the data or the settings, and the way out.
    pub fn sample(&self, settings: &SampleSettings) -> Result<Fit<ClassProbabilities>, FitError> {
        Fit::sample(self.problem()?, settings, None)
    }

    /// The same, to be stopped and watched: [`Control`] has the threads, and `progress` is called now and then from any of them.
    ///
    /// # Errors
    /// As [`sample`](Self::sample), and [`FitError::Stopped`].
    pub fn sample_with(
        &self,
        settings: &SampleSettings,
        control: Control<'_>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Fit<ClassProbabilities>, FitError> {
        Fit::sample(self.problem()?, settings, Some((control, progress)))
    }

    fn problem(&self) -> Result<FitProblem, FitError> {
        let inputs = self.inputs.clone()?;
        if inputs.rows != self.labels.len() {
            let (inputs, targets) = (inputs.rows, self.labels.len());
            return Err(FitError::Rows { inputs, targets });
        }
        if let [one] = self.classes.as_slice() {
            return Err(FitError::OneClass(one.clone()));
        }
        let (labels, names) = (self.labels.clone(), self.classes.clone());
        let classes = Targets::Classes { labels, names };
        FitProblem::new(
            inputs,
            classes,
            &self.hidden,
            Arc::new(Categorical),
            |_, _| {
                let one_hot = |class| {
                    self.labels
                        .iter()
                        .map(move |label| f64::from(u8::from(*label == class)))
                };
                let targets = (0..self.classes.len() as u32).flat_map(one_hot).collect();
                Ok((targets, Noise::from(1.0)))
            },
        )
    }
}
