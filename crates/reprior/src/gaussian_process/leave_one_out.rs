//! Leave-one-out cross-validation of Gaussian processes in closed form (Rasmussen & Williams 2006, Section 5.4.2).

use super::GaussianProcess;

/// log N(y_i; y_i − α/κ, 1/κ), where α and κ are the row's parts of K_s⁻¹y and of the diagonal of K_s⁻¹: that of y_i given all others.
pub(crate) fn log_density(alpha: f64, kappa: f64) -> f64 {
    0.5 * (kappa.ln() - alpha * alpha / kappa - std::f64::consts::TAU.ln())
}

impl GaussianProcess {
    /// log p(y_i | y_−i), and log p(y_i | y), of every training row, all outputs together. The latter follows from f | y at row i,
    /// N(y_i − σ²α_i, σ² − σ⁴κ_i). n³/3 operations.
    pub fn leave_one_out(&self) -> [Vec<f64>; 2] {
        let (n, variance) = (self.size(), self.noise * self.noise);
        let (mut left_out, mut in_sample) = (vec![0.0; n], vec![0.0; n]);
        for (row, kappa) in self.cholesky.inverse_diagonal().into_iter().enumerate() {
            // of y itself given all rows
            let spread = (2.0 * variance - variance * variance * kappa).max(variance);
            for alpha in self.weights.iter().skip(row).step_by(n) {
                left_out[row] += log_density(*alpha, kappa);
                in_sample[row] += log_density(variance * alpha / spread, 1.0 / spread);
            }
        }
        [left_out, in_sample]
    }
}
