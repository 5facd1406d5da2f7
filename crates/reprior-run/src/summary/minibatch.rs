//! What minibatch methods, and Laplace approximations, say besides the rest.

use serde::{Deserialize, Deserializer, Serialize};

use crate::predictive::Metrics;

/// What minibatch methods say besides the rest.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MinibatchSummary {
    /// Name of the parametrisation.
    pub parametrisation: String,
    /// Name of the preconditioner.
    pub preconditioner: String,
    /// Of the step size.
    pub schedule: String,
    /// Rows of a minibatch.
    pub batch: usize,
    /// Of the training rows, those that are held out.
    pub held_out: usize,
    /// Complete ones of every chain.
    pub epochs: u64,
    /// Mean over chains of −log p of the last epoch's minibatches.
    pub train_nll: f64,
    /// Mean over chains of −log p of the held-out rows after the last epoch.
    pub validation_nll: f64,
    /// Means over the updates that lead to draws.
    pub configurational_temperature: f64,
    /// The same of the momenta.
    pub kinetic_temperature: f64,
    /// Numbers that the preconditioner had to correct, and factorisations that needed jitter.
    pub n_corrections: u64,
    /// Of the mean over chains of the predictions at each chain's running mean of draws; of samplers that have ended.
    pub metrics_of_mean: Option<Metrics>,
    /// Of the linearised network's predictions in closed form, the mean over chains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_in_closed_form: Option<Metrics>,
    /// How the Laplace approximation of each chain was fitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub laplace: Vec<LaplaceFitSummary>,
}

/// How the Laplace approximation of one chain was fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaplaceFitSummary {
    /// log p(y | ŵ) of the training rows.
    pub log_likelihood: f64,
    /// Of the training rows, in nats.
    pub log_marginal_likelihood: f64,
    /// log det(I + P⁻¹G): how much the data say, in nats.
    pub log_determinant_ratio: f64,
    /// What the log-posterior of training can still rise by, as far as the curvature says: ½·gᵀ(G + P)⁻¹g in nats, half the
    /// square of Newton's decrement. Of weights that were given with the prior precision here.
    #[serde(default, deserialize_with = "number")]
    pub nats_to_mode: f64,
    /// What it rose by between the end of training and the weights here.
    #[serde(default)]
    pub nats_climbed: f64,
    /// Gradients of all rows that this took.
    #[serde(default)]
    pub climb_gradients: usize,
    /// Weights that are random.
    pub parameters: usize,
    /// The smallest and the largest prior precision.
    pub prior_precision: [f64; 2],
    /// Of full and lowrank structures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eigenpairs: Option<usize>,
    /// Of lowrank: the eigenvalues that may be other than zero beyond those pairs, their sum, and the most nats that these would
    /// add to `log_determinant_ratio`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOutSummary>,
    /// Eigenpairs that were wanted and had not converged.
    #[serde(default)]
    pub unconverged: usize,
    /// Products with the curvature that the decomposition took.
    #[serde(default)]
    pub products: u64,
    /// Layers without Kronecker factors, whose diagonal was taken.
    #[serde(default)]
    pub diagonal_layers: usize,
}

/// What a curvature of low rank has not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LeftOutSummary {
    /// How many directions.
    pub directions: usize,
    /// Of the curvature in them.
    pub trace: f64,
    /// What they would add at most, in nats.
    pub log_determinant: f64,
}

/// A number, or null where it is not finite.
fn number<'de, D: Deserializer<'de>>(value: D) -> Result<f64, D::Error> {
    Option::<f64>::deserialize(value).map(|value| value.unwrap_or(f64::NAN))
}
