//! Metrics of every target by itself, where there are several: their units differ, and one number for all says little.

use reprior::compute::kernels::LogSum;
use reprior::metrics::Mixture;
use reprior::model::dataset::Targets;
use serde::Serialize;

use crate::failure::Failure;
use crate::predictive::{PredictiveDraws, is_covered};

/// Metrics of the predictions of one target, in its own units.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TargetMetrics {
    /// Its name.
    pub target: String,
    /// Root of the mean squared error of the predictive mean.
    pub rmse: f64,
    /// Mean over rows of −log of the predictive density of this target.
    pub nll: f64,
    /// Share of true values within the central 90 % of the predictive distribution.
    pub coverage_90: f64,
}

/// Sums over rows of one target.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    squares: f64,
    nll: f64,
    covered: usize,
}

/// Gathered block by block.
#[derive(Debug, Default)]
pub struct ByTarget {
    rows: usize,
    names: Vec<String>,
    sums: Vec<Sums>,
}

impl ByTarget {
    /// Takes in a block (noise included) whose first row is row `start` of the truth; nothing where there is one target, or classes.
    ///
    /// # Errors
    /// Predictions that are not numbers.
    pub fn add(
        &mut self,
        block: &PredictiveDraws,
        truth: &Targets,
        start: usize,
    ) -> Result<(), Failure> {
        let Targets::Real { values, names } = truth else {
            return Ok(());
        };
        if names.len() < 2 {
            return Ok(());
        }
        self.names.clone_from(names);
        self.sums.resize(names.len(), Sums::default());
        self.rows += block.rows;
        let family = block.family();
        for row in 0..block.rows {
            for (output, sums) in self.sums.iter_mut().enumerate() {
                let y = values[(start + row) * names.len() + output];
                let (means, variances) = block.components(row, output);
                let mixture = Mixture::new(family, &means, &variances).map_err(Failure::run)?;
                let densities = means.iter().zip(&variances);
                let densities = densities.map(|(&m, &v)| family.log_density(y, m, v));
                sums.nll -= LogSum::of(densities) - (means.len() as f64).ln();
                sums.squares += (mixture.mean() - y).powi(2);
                sums.covered += usize::from(is_covered(&mixture, y, family.is_discrete()));
            }
        }
        Ok(())
    }

    /// The metrics of everything taken in; none of a single target.
    pub fn finish(self) -> Vec<TargetMetrics> {
        let rows = self.rows as f64;
        let all = self.names.into_iter().zip(self.sums);
        let metrics = all.map(|(target, sums)| TargetMetrics {
            target,
            rmse: (sums.squares / rows).sqrt(),
            nll: sums.nll / rows,
            coverage_90: sums.covered as f64 / rows,
        });
        metrics.collect()
    }
}

/// Rows of a table of such metrics, the header first.
pub fn target_rows(metrics: &[TargetMetrics], number: impl Fn(f64) -> String) -> Vec<Vec<String>> {
    let header = [
        "target",
        "rmse",
        "negative log-likelihood",
        "coverage of 90 %",
    ];
    let mut rows = vec![header.map(String::from).to_vec()];
    rows.extend(metrics.iter().map(|own| {
        let values = [own.rmse, own.nll, own.coverage_90].map(&number);
        std::iter::once(own.target.clone()).chain(values).collect()
    }));
    rows
}
