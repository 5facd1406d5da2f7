//! Predictions for several rows together: the functions that draws are, their noise, and where there is a closed form its covariance.

use reprior::model::dataset::InputValues;

use crate::failure::Failure;
use crate::method::family;
use crate::predict::Predictor;
use crate::settings::{MethodName, Precision};

/// What draws predict for some rows together, in the target's own units.
pub struct JointPrediction {
    /// Functions; one, the mean, of a closed form.
    pub draws: usize,
    /// How many.
    pub rows: usize,
    /// Of each row.
    pub outputs: usize,
    /// Location of every target: draws × rows × outputs.
    pub functions: Vec<f64>,
    /// Squared scale of the noise around each.
    pub noise: Vec<f64>,
    /// Of a closed form the covariance of the function between rows: outputs × rows × rows.
    pub covariance: Option<Vec<f64>>,
}

impl Predictor {
    /// The same in double precision, whatever the chains were sampled in: the prediction for a row then hangs on the other rows that are
    /// predicted with it by rounding of double precision alone.
    #[must_use]
    pub fn in_double_precision(mut self) -> Self {
        let sampler = &mut self.problem.settings.sampler;
        let is_typed =
            matches!(sampler.method(), MethodName::Minibatch(method) if method.is_around_mode());
        // what is kept of Laplace approximations has the precision that they were made in
        if !is_typed {
            sampler.precision = Precision::F64;
        }
        self
    }

    /// Predicts for all rows together: in each draw one function, whatever is left open of it drawn.
    ///
    /// # Errors
    /// A wrong request: classes, which have no functions of their own; a run that cannot be read.
    pub fn joint(&self, inputs: &InputValues) -> Result<JointPrediction, Failure> {
        let problem = &self.problem;
        if problem.kind().is_of_classes() {
            return Err(Failure::request(
                "targets that are classes have probabilities, not functions with noise: ask for probabilities",
            ));
        }
        let values = problem.arranged(inputs);
        let family = family(problem.settings.sampler.method());
        let mut predict = family.predictor(problem, &self.run)?;
        let has_row_noise = problem.kind().has_row_noise();
        // where rows have noise of their own a position is a function, and the variances are the noise's
        let found = match has_row_noise {
            true => predict.predict(&values)?,
            false => predict.functions(&values)?,
        };
        let covariance = predict.covariance(&values)?;
        let mut block = found.block;
        if !has_row_noise {
            block.variance = vec![0.0; block.variance.len()];
            block.add_noise(&found.noise);
        }
        debug_assert!(!block.kind.is_of_classes());
        Ok(JointPrediction {
            draws: block.draws(),
            rows: block.rows,
            outputs: block.outputs,
            functions: block.mean,
            noise: block.variance,
            covariance,
        })
    }
}
