//! `--scales learn`: scales of weights that chains sample along.

use reprior::model::dataset::InputKind;
use reprior::model::{InputReduction, LearnedScales, Model};

use super::{DataDescription, Problem};
use crate::failure::Failure;
use crate::settings::ModelSettings;
use crate::stored::Stored;

impl Problem {
    /// Scales of weights that chains learn, if they do: of a table one for each input.
    pub(crate) fn learned_scales(&self) -> Option<LearnedScales> {
        let prior = self.settings.model.scale_prior()?;
        LearnedScales::new(prior, &self.architecture, self.has_columns()).ok()
    }

    /// The model that chains sample: with the scales that they learn.
    ///
    /// # Errors
    /// A wrong request.
    pub(crate) fn sampled_model<R: Stored>(
        &self,
        test_inputs: &[f64],
    ) -> Result<Model<R>, Failure> {
        let model = self.model(test_inputs)?;
        match self.settings.model.scale_prior() {
            None => Ok(model),
            Some(prior) => model
                .with_learned_scales(prior, self.has_columns())
                .map_err(Failure::request),
        }
    }

    /// What the scales are of; nothing where none are learned.
    pub(crate) fn scale_names(&self) -> Vec<String> {
        // the network was made of the same settings
        scale_names(&self.settings.model, &self.description).unwrap_or_default()
    }

    /// Whether inputs are columns of a table.
    fn has_columns(&self) -> bool {
        self.train.kind == InputKind::Table
    }
}

/// What the learned scales of a run are of; nothing where none are learned.
///
/// # Errors
/// A network that does not fit the data.
pub(crate) fn scale_names(
    model: &ModelSettings,
    description: &DataDescription,
) -> Result<Vec<String>, Failure> {
    let Some(prior) = model.scale_prior() else {
        return Ok(Vec::new());
    };
    let (kind, columns) = (description.kind, description.columns);
    // the readout and its outputs have none
    let network = model.architecture(kind, columns, 1, InputReduction::Off)?;
    let scales = LearnedScales::new(prior, &network, kind == InputKind::Table);
    let scales = scales.map_err(Failure::request)?;
    Ok(match description.column_names.len() == columns {
        true => scales.names(&description.column_names),
        false => {
            let numbered = (1..=columns).map(|input| format!("input {input}"));
            scales.names(&numbered.collect::<Vec<_>>())
        }
    })
}
