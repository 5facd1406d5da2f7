//! Data, network and likelihood of a fit, standardised.

use std::sync::Arc;

use super::FitError;
use super::data::{AsRow, RowTable};
use crate::model::dataset::{Dataset, InputKind, Targets};
use crate::model::likelihood::Likelihood;
use crate::model::standardisation::Standardisation;
use crate::model::{InputReduction, Model, Noise};
use crate::network::{Activation, Composition};

/// Fully connected hidden layers.
#[derive(Debug, Clone)]
pub(super) struct HiddenWidths {
    pub widths: Vec<usize>,
    pub activation: Activation,
}

impl Default for HiddenWidths {
    fn default() -> Self {
        Self {
            widths: vec![512],
            activation: Activation::Gelu,
        }
    }
}

/// All that the posterior is of.
pub(super) struct FitProblem {
    architecture: Composition,
    pub likelihood: Arc<dyn Likelihood>,
    noise: Noise,
    /// Row-major, standardised.
    inputs: Vec<f64>,
    rows: usize,
    /// Column-major, as the likelihood wants them.
    targets: Vec<f64>,
    pub standardisation: Standardisation,
    /// Of outputs or classes.
    pub names: Vec<String>,
}

impl FitProblem {
    /// `code` makes the likelihood's targets and its noise of the data's and of their standardisation.
    pub fn new(
        inputs: RowTable,
        targets: Targets,
        hidden: &HiddenWidths,
        likelihood: Arc<dyn Likelihood>,
        code: impl FnOnce(&Targets, &Standardisation) -> Result<(Vec<f64>, Noise), FitError>,
    ) -> Result<Self, FitError> {
        let outputs = targets.outputs();
        let data = Dataset {
            inputs: inputs.values.into(),
            rows: inputs.rows,
            columns: inputs.columns,
            column_names: (0..inputs.columns)
                .map(|column| column.to_string())
                .collect(),
            kind: InputKind::Table,
            targets,
        };
        let standardisation = Standardisation::fit(&data);
        let (targets, noise) = code(&data.targets, &standardisation)?;
        let (columns, activation) = (inputs.columns, hidden.activation);
        Ok(Self {
            architecture: Composition::fully_connected(
                columns,
                &hidden.widths,
                outputs,
                activation,
            ),
            likelihood,
            noise,
            inputs: standardisation.standardise_inputs(&data.inputs),
            rows: inputs.rows,
            targets,
            standardisation,
            names: data.targets.names().to_vec(),
        })
    }

    pub fn outputs(&self) -> usize {
        self.architecture.outputs
    }

    /// The model that predicts at new inputs, standardised.
    pub fn model(&self, new_inputs: &[f64]) -> Result<Arc<Model<f64>>, FitError> {
        let (network, targets) = (self.architecture.clone(), self.targets.clone());
        let (noise, reduction) = (self.noise.clone(), InputReduction::Auto);
        let model = Model::new(network, noise, &self.inputs, targets, new_inputs, reduction)?;
        Ok(Arc::new(
            model.with_likelihood(Arc::clone(&self.likelihood)),
        ))
    }

    /// At most `count` training rows, evenly spaced.
    pub fn some_inputs(&self, count: usize) -> Vec<f64> {
        let (columns, count) = (self.architecture.inputs(), count.min(self.rows));
        let rows = (0..count).map(|at| at * self.rows / count);
        rows.flat_map(|row| &self.inputs[row * columns..(row + 1) * columns])
            .copied()
            .collect()
    }

    /// New inputs, standardised.
    pub fn standardised<X: AsRow>(&self, new: &[X]) -> Result<(usize, Vec<f64>), FitError> {
        let table = RowTable::new("new inputs", new)?;
        let expected = self.architecture.inputs();
        if table.columns != expected {
            return Err(FitError::Columns {
                what: "new inputs",
                row: 0,
                found: table.columns,
                expected,
            });
        }
        let inputs = self
            .standardisation
            .standardise_inputs(&table.values.into());
        Ok((table.rows, inputs))
    }
}
