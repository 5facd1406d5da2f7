//! Preconditioners C of Langevin updates: what shapes drift and noise. One file each: how it starts, takes a minibatch's
//! statistics in, and is applied to a gradient (C·g) and to noise (C^{1/2}·ξ).
//!
//! | name | C | statistics of a minibatch |
//! |---|---|---|
//! | [`Identity`](identity::Identity) | I | none |
//! | [RMSProp](elementwise::Elementwise::rms_prop) | 1/√(M + ε) | the squared mean gradient |
//! | [diagonal](elementwise::Elementwise::diagonal) | 1/(M + ε) | mean squares of single rows' gradients |
//! | [`QuasiDiagonal`](quasi_diagonal::QuasiDiagonal) | the inverse of a unit's Fisher matrix, of which the diagonal and the bias' row are kept | these, and mean products with the bias' gradient |
//! | [`Full`](full::Full) | (M + ε)⁻¹ | the mean of outer products |
//! | [`Kfac`](kfac::Kfac) | (A + √ε)⁻¹ ⊗ (G + √ε)⁻¹ for each layer | mean outer products of inputs, and of cotangents |
//!
//! M, A and G are moving averages, M ← (1 − γ)M + γ·(that of the minibatch), with a γ that [`Decay`] gives. As long as C
//! moves, the law has a bias besides that of the step size (the term ∇·C is left out, as by Marceau-Caron & Ollivier 2017); with
//! γ_t → 0 it goes away.

// The library's own preconditioners, which the program makes from its settings; they change without notice.
#[doc(hidden)]
pub mod elementwise;
#[doc(hidden)]
pub mod full;
#[doc(hidden)]
pub mod identity;
#[doc(hidden)]
pub mod kfac;
#[doc(hidden)]
pub mod quasi_diagonal;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::compute::Real;
use crate::network::GradientStatistics;

/// What part of the parameters a preconditioner does not mix with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One unit's weights and bias: a column of its layer's matrix.
    Unit,
    /// A layer's matrix.
    Layer,
    /// Everything.
    All,
}

/// Parameters that are preconditioned together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Rows of the matrix: weights of a unit, and its bias.
    pub rows: usize,
    /// Columns of the matrix: 1 for a unit; for everything one column of all parameters.
    pub units: usize,
    /// Whether the last row is a bias.
    pub has_bias: bool,
}

/// A minibatch's statistics for one block; empty where they were not asked for.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a, R> {
    /// The mean gradient, without the prior's.
    pub gradient: &'a [R],
    /// Mean squares of single rows' gradients.
    pub squares: &'a [R],
    /// Mean products with that of the unit's bias.
    pub cross: &'a [R],
    /// The mean outer product: D × D; or of a layer's inputs and after it of its cotangents.
    pub outer: &'a [R],
    /// The number of the update, from 0.
    pub update: u64,
}

/// A preconditioner. Its state is in the caller's hands, block by block.
pub trait Preconditioner<R: Real>: fmt::Debug + Send + Sync {
    /// What is preconditioned together.
    fn scope(&self) -> Scope;

    /// What is out of range, in words.
    ///
    /// # Errors
    /// The number and what is allowed.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// What is to be found of a minibatch besides its gradient.
    fn statistics(&self) -> GradientStatistics;

    /// Numbers of a block's state.
    fn state_len(&self, block: Block) -> usize;

    /// The state before the first update: C = I, as nearly as that can be.
    fn initialise(&self, block: Block, state: &mut [R]);

    /// Takes a minibatch in with weight γ = `rate`. Returns how many factorisations needed jitter.
    ///
    /// # Errors
    /// What went wrong, in words: a matrix that cannot be factorised.
    fn update(
        &self,
        block: Block,
        batch: Batch<'_, R>,
        rate: f64,
        state: &mut [R],
    ) -> Result<u64, String>;

    /// `gradient` ← C·`gradient` and `noise` ← C^{1/2}·`noise`, if there is any. Returns how many numbers had to be corrected.
    fn transform(&self, block: Block, state: &[R], gradient: &mut [R], noise: &mut [R]) -> u64;
}

/// γ of the moving averages at update t = 0, 1, …
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decay", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Decay {
    /// γ itself, in (0, 1].
    Constant {
        /// γ.
        rate: f64,
    },
    /// 1/√(γ₀⁻² + t), with γ₀ in (0, 1]: averages forget less and less, and C comes to rest.
    Harmonic {
        /// γ₀.
        first: f64,
    },
}

impl Default for Decay {
    /// 1/√(1 + t).
    fn default() -> Self {
        Self::Harmonic { first: 1.0 }
    }
}

impl Decay {
    /// γ_t.
    pub fn rate(&self, update: u64) -> f64 {
        match *self {
            Self::Constant { rate } => rate,
            Self::Harmonic { first } => (first.powi(-2) + update as f64).sqrt().recip(),
        }
    }

    /// What is out of range, in words.
    ///
    /// # Errors
    /// The number and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        let (Self::Constant { rate } | Self::Harmonic { first: rate }) = *self;
        if rate > 0.0 && rate <= 1.0 {
            return Ok(());
        }
        Err(format!(
            "the weight of new statistics is {rate}: it must be in (0, 1]"
        ))
    }
}

/// How ε > 0 keeps averages away from zero.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Regularisation {
    /// ε.
    pub epsilon: f64,
    /// Whether ε is added to each minibatch's statistics, so that the first state decays (the code of Marceau-Caron & Ollivier
    /// 2017), rather than to the averages when they are inverted (their paper).
    pub inside: bool,
}

impl Default for Regularisation {
    fn default() -> Self {
        Self {
            epsilon: 1e-4,
            inside: true,
        }
    }
}

impl Regularisation {
    /// What is added to statistics, and to averages.
    fn parts<R: Real>(&self) -> [R; 2] {
        let epsilon = R::from_f64(self.epsilon);
        if self.inside {
            [epsilon, R::ZERO]
        } else {
            [R::ZERO, epsilon]
        }
    }

    /// What is out of range, in words.
    ///
    /// # Errors
    /// The number and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if self.epsilon.is_finite() && self.epsilon > 0.0 {
            return Ok(());
        }
        Err(format!(
            "the preconditioner's epsilon is {}: it must be positive and finite",
            self.epsilon
        ))
    }
}

/// average ← (1 − γ)·average + γ·(values + ε).
fn average<R: Real>(average: &mut [R], values: impl Iterator<Item = R>, rate: f64, epsilon: R) {
    let (old, new) = (R::from_f64(1.0 - rate), R::from_f64(rate));
    for (average, value) in average.iter_mut().zip(values) {
        *average = old * *average + new * (value + epsilon);
    }
}
