//! How far chains have got.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How far a chain has got: the draws of each sampled group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor {
    pub(crate) draws: BTreeMap<String, u64>,
}

impl Cursor {
    /// Number of draws of `group`; zero for a group that has none.
    pub fn draws(&self, group: &str) -> u64 {
        self.draws.get(group).copied().unwrap_or(0)
    }
}
