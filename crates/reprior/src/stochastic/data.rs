//! Rows that minibatches are taken of, and −log p of them with its derivatives in a network's outputs.

use std::sync::Arc;

use super::objective::ObjectiveError;
use crate::compute::{Real, Stream};
use crate::model::likelihood::{Derivatives, Likelihood};

/// Outputs up to which a row's numbers are kept on the stack.
const FEW: usize = 32;

/// Rows that minibatches are taken of. Shared by chains.
#[derive(Debug, Clone)]
pub struct MinibatchData<R> {
    /// Row-major, N × inputs.
    pub inputs: Arc<Vec<R>>,
    /// Row-major, N × C, coded as the likelihood wants them.
    pub targets: Arc<[f64]>,
    /// How targets depend on outputs.
    pub likelihood: Arc<dyn Likelihood>,
    /// σ of each output, where the likelihood has one: C of them.
    pub scales: Vec<f64>,
}

impl<R: Real> MinibatchData<R> {
    /// Rows, if the sizes are those of a network of so many inputs and outputs.
    pub(super) fn check(&self, columns: usize, outputs: usize) -> Result<usize, ObjectiveError> {
        let values = self.inputs.len();
        if columns == 0 || values == 0 || !values.is_multiple_of(columns) {
            return Err(ObjectiveError::Inputs { values, columns });
        }
        let rows = values / columns;
        if outputs == 0 || self.targets.len() != rows * outputs {
            let values = self.targets.len();
            return Err(ObjectiveError::Targets {
                values,
                rows,
                outputs,
            });
        }
        if self.scales.len() != outputs {
            let scales = self.scales.len();
            return Err(ObjectiveError::Scales { scales, outputs });
        }
        Ok(rows)
    }
}

/// The derivatives of −log p in the outputs `outputs` (row-major), in place of these, for targets drawn given them.
pub(super) fn simulate<R: Real>(
    data: &MinibatchData<R>,
    count: usize,
    outputs: &mut [R],
    stream: &mut Stream,
) {
    let mut targets = vec![0.0; count];
    let (mut wide, mut cotangent) = (vec![0.0; count], vec![R::ZERO; count]);
    for f in outputs.chunks_exact_mut(count) {
        for (to, from) in wide.iter_mut().zip(&*f) {
            *to = from.to_f64();
        }
        data.likelihood
            .simulate(&wide, &data.scales, stream, &mut targets);
        row_loss(data, &targets, f, &mut cotangent);
        f.copy_from_slice(&cotangent);
    }
}

/// −log p of one row, and its derivative in the outputs.
pub(crate) fn row_loss<R: Real>(
    data: &MinibatchData<R>,
    targets: &[f64],
    outputs: &[R],
    cotangent: &mut [R],
) -> f64 {
    row_loss_by_scale(data, targets, outputs, cotangent, |_| ())
}

/// The same; `take` gets ∂ log p/∂ log σ of every output.
pub(super) fn row_loss_by_scale<R: Real>(
    data: &MinibatchData<R>,
    targets: &[f64],
    outputs: &[R],
    cotangent: &mut [R],
    take: impl FnOnce(&[f64]),
) -> f64 {
    let count = outputs.len();
    let mut few = [0.0; 3 * FEW];
    let mut many = Vec::new();
    let space = if count <= FEW {
        &mut few[..3 * count]
    } else {
        many.resize(3 * count, 0.0);
        &mut many[..]
    };
    let (wide, rest) = space.split_at_mut(count);
    let (by_output, by_scale) = rest.split_at_mut(count);
    for (to, from) in wide.iter_mut().zip(outputs) {
        *to = from.to_f64();
    }
    let derivatives = Derivatives {
        outputs: by_output,
        log_scales: by_scale,
    };
    let value = data
        .likelihood
        .log_density(targets, wide, &data.scales, Some(derivatives));
    for (to, from) in cotangent.iter_mut().zip(&*by_output) {
        *to = R::from_f64(-from);
    }
    take(by_scale);
    -(value + data.likelihood.left_out(count))
}
