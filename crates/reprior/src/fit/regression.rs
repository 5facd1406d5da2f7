//! Real targets with Gaussian noise.

use std::sync::Arc;

use super::data::{AsRow, RowTable};
use super::prediction::Prediction;
use super::problem::{FitProblem, HiddenWidths};
use super::{Fit, FitError, SampleSettings};
use crate::chain::{Control, Progress};
use crate::model::dataset::Targets;
use crate::model::likelihood::Gaussian;
use crate::model::{Noise, NoisePrior, targets};
use crate::network::Activation;

/// A regression: real targets, one or several a row, with Gaussian noise.
///
/// Unless told otherwise one hidden layer of 512 GELU units, and noise that is learned, a scale for each output.
#[derive(Debug, Clone)]
pub struct Regression {
    inputs: Result<RowTable, FitError>,
    targets: Result<RowTable, FitError>,
    hidden: HiddenWidths,
    noise: Option<Vec<f64>>,
}

impl Regression {
    /// Of rows of inputs and as many rows of targets, both in their own units. [`sample`](Self::sample) says what is wrong with
    /// them.
    pub fn new<X: AsRow, Y: AsRow>(inputs: &[X], targets: &[Y]) -> Self {
        Self {
            inputs: RowTable::new("inputs", inputs),
            targets: RowTable::new("targets", targets),
            hidden: HiddenWidths::default(),
            noise: None,
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

    /// Standard deviations of the noise where they are known, in the targets' own units: one, or one per output.
    #[must_use]
    pub fn noise<N: AsRow>(mut self, scales: N) -> Self {
        self.noise = Some(scales.values().to_vec());
        self
    }

    /// Samples the posterior.
    ///
    /// # Errors
    /// [`FitError`] names what is wrong with the data or the settings, and the way out.
    pub fn sample(&self, settings: &SampleSettings) -> Result<Fit<Prediction>, FitError> {
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
    ) -> Result<Fit<Prediction>, FitError> {
        Fit::sample(self.problem()?, settings, Some((control, progress)))
    }

    fn problem(&self) -> Result<FitProblem, FitError> {
        let (inputs, targets) = (self.inputs.clone()?, self.targets.clone()?);
        if inputs.rows != targets.rows {
            let (inputs, targets) = (inputs.rows, targets.rows);
            return Err(FitError::Rows { inputs, targets });
        }
        let outputs = targets.columns;
        let names = (0..outputs).map(|output| output.to_string()).collect();
        let values = targets.values;
        let real = Targets::Real { values, names };
        FitProblem::new(
            inputs,
            real,
            &self.hidden,
            Arc::new(Gaussian),
            |real, map| {
                let noise = match &self.noise {
                    None => Noise::Learned(NoisePrior {
                        per_output: true,
                        ..NoisePrior::default()
                    }),
                    Some(scales) if scales.len() != 1 && scales.len() != outputs => {
                        let found = scales.len();
                        return Err(FitError::Noise(format!(
                            "{found} scales were given for {outputs} outputs: give one, or one per output"
                        )));
                    }
                    Some(scales) => {
                        if let Some(wrong) = scales
                            .iter()
                            .find(|scale| !(scale.is_finite() && **scale > 0.0))
                        {
                            return Err(FitError::Noise(format!(
                                "a standard deviation is {wrong}: it must be positive and finite, or left out to be learned"
                            )));
                        }
                        let own = map.targets.iter().zip(scales.iter().cycle());
                        Noise::Known(own.map(|(map, scale)| scale / map.scale).collect())
                    }
                };
                Ok((targets::code(real, map), noise))
            },
        )
    }
}
