//! `--until`: what the draws have to say before a run may end.

use std::fmt;
use std::str::FromStr;

use reprior::diagnostics::Convergence;
use serde::{Deserialize, Serialize};

use super::expressions::written;

/// Minutes that a run takes at most which ends when its draws say enough.
pub const MINUTES_UNTIL: f64 = 10.0;
/// Draws of each chain before the first look at what they say, after which it may end.
pub const FIRST_LOOK: u64 = 250;

/// Bounds that the diagnostics of predictions are to reach; at least one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Until {
    /// The largest R-hat is to be below this.
    pub rhat: Option<f64>,
    /// The fewest effective draws, in the bulk and in the tails, are to be above this.
    pub ess: Option<f64>,
}
written!(Until);

impl Until {
    /// So many chains that agree, where there are several, with draws enough for quantiles: what the verdict calls converged, and when runs of
    /// no given length end.
    pub fn agreement(chains: usize) -> Self {
        Self {
            rhat: (chains > 1).then_some(Convergence::RHAT_TOGETHER),
            ess: Some(Convergence::ESS_RECOMMENDED_PER_CHAIN * chains as f64),
        }
    }

    /// Whether diagnostics have reached the bounds.
    pub fn is_reached(self, rhat: f64, ess: f64) -> bool {
        self.rhat.is_none_or(|bound| rhat < bound) && self.ess.is_none_or(|bound| ess > bound)
    }
}

impl FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not understood: give rhat<1.01, ess>400 or both with a comma between them"
            )
        };
        let mut all = Self {
            rhat: None,
            ess: None,
        };
        for part in text.split(',') {
            let (place, least, number) = match part.trim() {
                part if part.starts_with("rhat") => {
                    (&mut all.rhat, 1.0, part[4..].trim().strip_prefix('<'))
                }
                part if part.starts_with("ess") => {
                    (&mut all.ess, 0.0, part[3..].trim().strip_prefix('>'))
                }
                _ => return Err(wrong()),
            };
            let number: f64 = number
                .and_then(|number| number.trim().parse().ok())
                .ok_or_else(wrong)?;
            if !(number.is_finite() && number > least) {
                return Err(format!(
                    "`{}` cannot be reached: the bound must be above {least}",
                    part.trim()
                ));
            }
            if place.replace(number).is_some() {
                return Err(wrong());
            }
        }
        Ok(all)
    }
}

impl fmt::Display for Until {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rhat = self.rhat.map(|bound| format!("rhat<{bound}"));
        let ess = self.ess.map(|bound| format!("ess>{bound}"));
        let parts: Vec<String> = [rhat, ess].into_iter().flatten().collect();
        formatter.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_and_written() {
        for text in ["rhat<1.01,ess>400", "rhat<1.1", "ess>50"] {
            assert_eq!(text.parse::<Until>().unwrap().to_string(), text);
        }
        let both: Until = "ess > 400, rhat < 1.01".parse().unwrap();
        assert_eq!((both.rhat, both.ess), (Some(1.01), Some(400.0)));
        assert!(both.is_reached(1.005, 401.0));
        assert!(!both.is_reached(1.02, 401.0) && !both.is_reached(1.005, 10.0));
        assert!(!both.is_reached(f64::NAN, 401.0) && !both.is_reached(1.005, f64::NAN));
        for wrong in [
            "",
            "rhat",
            "rhat>1.01",
            "ess<3",
            "rhat<1",
            "ess>-1",
            "ess>nan",
            "rhat<1.1,rhat<1.2",
            "time>3",
        ] {
            assert!(wrong.parse::<Until>().is_err(), "{wrong}");
        }
    }
}
