//! Log-likelihoods of training rows at the weights of a draw.

use std::sync::Arc;

use reprior::chain::minibatch::MinibatchDraw;
use reprior::network::Composition;
use reprior::stochastic::data::MinibatchData;
use reprior::stochastic::ensemble::Ensemble;

use crate::failure::Failure;
use crate::stored::Stored;

/// Training rows, and work space for their log-likelihoods.
pub struct TrainingRows<R> {
    ensemble: Ensemble<R>,
    data: MinibatchData<R>,
    rows: Vec<usize>,
    /// What log-likelihoods are lowered by, to be those of targets in their own units.
    log_unit: f64,
    outputs: Vec<f64>,
    values: Vec<f64>,
}

impl<R: Stored> TrainingRows<R> {
    /// These rows of the data; none where there are none.
    ///
    /// # Errors
    /// A layer that does not fit.
    pub fn new(
        network: &Composition,
        data: &MinibatchData<R>,
        rows: Vec<usize>,
        log_unit: f64,
        threads: usize,
    ) -> Result<Option<Self>, Failure> {
        if rows.is_empty() {
            return Ok(None);
        }
        let columns = network.inputs();
        let of_row = |&row: &usize| &data.inputs[row * columns..(row + 1) * columns];
        let inputs: Vec<R> = rows.iter().flat_map(of_row).copied().collect();
        let likelihood = Arc::clone(&data.likelihood);
        let ensemble = Ensemble::new(network, likelihood, Arc::new(inputs), threads);
        Ok(Some(Self {
            ensemble: ensemble.map_err(Failure::request)?,
            outputs: vec![0.0; data.scales.len()],
            values: vec![0.0; rows.len()],
            data: data.clone(),
            rows,
            log_unit,
        }))
    }

    /// log p(y_i | weights) of every row, of the network linearised at `mode` where there is one.
    pub fn log_likelihood(&mut self, made: MinibatchDraw<'_, R>, mode: Option<&[R]>) -> &[f64] {
        let position = made.position;
        self.ensemble.set_statistics(made.statistics);
        let outputs = match mode {
            Some(mode) => self.ensemble.linearised(mode, position),
            None => self.ensemble.outputs(position),
        };
        let (data, count) = (&self.data, made.scales.len());
        let left_out = data.likelihood.left_out(count) - self.log_unit;
        let all = outputs.chunks_exact(count).zip(&self.rows);
        for (value, (outputs, &row)) in self.values.iter_mut().zip(all) {
            for (wide, f) in self.outputs.iter_mut().zip(outputs) {
                *wide = f.to_f64();
            }
            let targets = &data.targets[row * count..(row + 1) * count];
            let density = data
                .likelihood
                .log_density(targets, &self.outputs, made.scales, None);
            *value = density + left_out;
        }
        &self.values
    }
}
