//! The draws of one scalar variable, as every diagnostic takes them.

use thiserror::Error;

/// Why a slice cannot be read as draws.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DiagnosticsError {
    /// There is nothing to diagnose.
    #[error("draws need at least one chain, but there are none")]
    NoChains,
    /// The chains are empty.
    #[error("draws need at least one draw per chain, but there are none")]
    NoDraws,
    /// The chains would not all have the same length.
    #[error("{values} values cannot be {chains} chains of the same length")]
    UnequalChains {
        /// Length of the slice.
        values: usize,
        /// Number of chains asked for.
        chains: usize,
    },
}

/// A view of the draws of one scalar variable: chains × draws, chain-major (the first chain's draws, then the
/// second's, …), all chains of the same length. The values are in the variable's own unit and may be anything,
/// NaN included; at least one chain and one draw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draws<'a> {
    values: &'a [f64],
    length: usize,
}

impl<'a> Draws<'a> {
    /// Reads `values` as `chains` chains of the same length.
    ///
    /// # Errors
    /// No chains, no values, or a number of values that `chains` does not divide.
    pub fn new(values: &'a [f64], chains: usize) -> Result<Self, DiagnosticsError> {
        if chains == 0 {
            return Err(DiagnosticsError::NoChains);
        }
        if values.is_empty() {
            return Err(DiagnosticsError::NoDraws);
        }
        if !values.len().is_multiple_of(chains) {
            return Err(DiagnosticsError::UnequalChains {
                values: values.len(),
                chains,
            });
        }
        Ok(Self {
            values,
            length: values.len() / chains,
        })
    }

    /// All values, chain-major.
    pub fn values(&self) -> &'a [f64] {
        self.values
    }

    /// Number of chains, at least 1.
    pub fn chains(&self) -> usize {
        self.values.len() / self.length
    }

    /// Number of draws of each chain, at least 1.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The chains, one after another.
    pub fn iter(&self) -> impl Iterator<Item = &'a [f64]> + Clone + use<'a> {
        self.values.chunks_exact(self.length)
    }

    /// The first and the last `length / 2` draws of every chain. An odd chain's middle draw is left out.
    /// The chains must have at least two draws.
    pub(super) fn halves(&self) -> impl Iterator<Item = &'a [f64]> + Clone + use<'a> {
        let half = self.length / 2;
        self.iter()
            .flat_map(move |chain| [&chain[..half], &chain[chain.len() - half..]])
    }

    /// Whether ArviZ's statistics are defined: at least `chains` chains of 4 draws or more, and no NaN.
    pub(super) fn usable(&self, chains: usize) -> bool {
        self.length >= 4 && self.chains() >= chains && !self.values.iter().any(|x| x.is_nan())
    }
}
