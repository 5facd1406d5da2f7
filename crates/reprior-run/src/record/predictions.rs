//! Predictions of a draw for the test rows, and whole weights, as they are written.

use reprior_io::run::{DrawWriter, RunError, Values};

use super::groups::{PREDICTIONS, TRACES};
use super::keeping::{Keeping, Traces};
use super::schema::LayerTensors;
use crate::predictive::PredictionKind;

/// How predictions are recorded.
#[derive(Clone, Copy)]
pub struct PredictionRecord {
    pub kind: PredictionKind,
    pub keeping: Keeping,
    /// Predictions that are recorded at every draw, where not all are.
    pub traces: Option<Traces>,
}

impl PredictionRecord {
    /// Whether a draw's predictions are recorded, in whole or in part.
    pub fn takes(&self, draw: u64) -> bool {
        self.traces.is_some() || draw.is_multiple_of(self.keeping.predictions_every)
    }

    /// Writes the means (rows x outputs) of a draw and the roots of the variances (rows x [`PredictionKind::spread`]).
    ///
    /// # Errors
    /// A store that refuses.
    pub fn push(
        &self,
        writer: &mut DrawWriter,
        draw: u64,
        mean: &[f64],
        sd: &[f64],
    ) -> Result<(), RunError> {
        let narrow = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<_>>();
        // classes are coded near 0 and 1
        let is_narrow = self.kind.is_of_classes();
        if let Some(traces) = self.traces {
            let of = |values: &[f64]| traces.positions().map(|at| values[at]).collect();
            let traced: Vec<f64> = of(mean);
            if is_narrow {
                writer.push(TRACES, &[Values::F32(&narrow(&traced))])?;
            } else if self.kind.has_row_noise() {
                // which is traced too
                let noise: Vec<f64> = of(sd);
                writer.push(TRACES, &[Values::F64(&traced), Values::F64(&noise)])?;
            } else {
                writer.push(TRACES, &[Values::F64(&traced)])?;
            }
        }
        if !draw.is_multiple_of(self.keeping.predictions_every) {
            return Ok(());
        }
        let narrowed = is_narrow.then(|| [narrow(mean), narrow(sd)]);
        let values = match &narrowed {
            Some([mean, sd]) => [Values::F32(mean), Values::F32(sd)],
            None => [Values::F64(mean), Values::F64(sd)],
        };
        let count = 1 + usize::from(self.kind.has_variance());
        writer.push(PREDICTIONS, &values[..count])
    }
}

/// Appends the weights, and the biases if it has any, of a layer whose units follow one another.
pub fn split_layer<R: Copy>(layer: &LayerTensors, units: &[R], parts: &mut Vec<Vec<R>>) {
    let units = units.chunks_exact(layer.fan_in + usize::from(layer.has_bias));
    let weights = units.clone().flat_map(|unit| &unit[..layer.fan_in]);
    parts.push(weights.copied().collect());
    if layer.has_bias {
        parts.push(units.map(|unit| unit[layer.fan_in]).collect());
    }
}
