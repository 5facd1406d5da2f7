//! What draws predict for some rows, position by position.

use reprior::model::likelihood::Likelihood;
use reprior::model::standardisation::Affine;
use reprior::posterior::DrawRecord;

use crate::predictive::{PredictionKind, PredictiveDraws};

/// What draws predict for some rows.
pub(crate) struct Predictions {
    /// Means, and variances without noise, in the target's own units.
    pub block: PredictiveDraws,
    /// Squared noise scales of every draw.
    pub noise: Vec<f64>,
    /// Variances that rounding made negative, set to 0.
    pub clamped: u64,
}

/// What is made of a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// Mean and variance given the inner weights, where the readout is integrated out.
    Position,
    /// One function: the readout is drawn.
    Function,
}

impl Predictions {
    /// Of no draw yet.
    pub fn none(kind: PredictionKind, rows: usize, outputs: usize) -> Self {
        Self {
            block: PredictiveDraws {
                kind,
                rows,
                outputs,
                mean: Vec::new(),
                variance: Vec::new(),
            },
            noise: Vec::new(),
            clamped: 0,
        }
    }

    /// Appends what one position predicts; `maps` are from the likelihood's units to each target's own.
    pub fn push<R>(
        &mut self,
        record: &DrawRecord<R>,
        what: Of,
        likelihood: &dyn Likelihood,
        maps: &[Affine],
    ) {
        let block = &mut self.block;
        let (kind, rows) = (block.kind, block.rows);
        let spread = kind.spread(maps.len());
        let (mean, factor) = match what {
            Of::Position => (&record.mean, 1.0),
            Of::Function => (&record.outputs, 0.0),
        };
        let outputs = mean.len() / rows.max(1);
        let (mut own, mut noise) = (Vec::new(), Vec::new());
        for row in 0..rows {
            let of_row = (0..outputs).map(|output| mean[output * rows + row]);
            own.clear();
            own.extend(of_row.clone());
            kind.push_mean(likelihood, maps, of_row, &mut block.mean);
            noise.clear();
            if PredictionKind::push_row_noise(likelihood, maps, [&own, &record.noise], &mut noise) {
                let variances = noise.iter().map(|sigma| factor * sigma * sigma);
                block.variance.extend(variances);
                continue;
            }
            for (output, map) in maps.iter().enumerate().take(spread) {
                let variance = record.variance[output * rows + row];
                block.variance.push(factor * map.scale.powi(2) * variance);
            }
        }
        // otherwise rows have variances of their own
        let has_scale = likelihood.has_scale() && !kind.has_row_noise();
        for (scale, map) in record.noise.iter().zip(maps).take(spread) {
            let variance = (map.scale * scale).powi(2);
            self.noise.push(if has_scale { variance } else { 0.0 });
        }
        self.clamped += record.clamped;
    }
}
