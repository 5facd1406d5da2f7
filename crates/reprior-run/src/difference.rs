//! Where the settings of two runs differ.

use std::fmt;

use toml::{Table, Value};

use crate::failure::Failure;
use crate::settings::Settings;

/// What may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    Nothing,
    /// Numbers of transitions and draws, and what is kept of them.
    Lengths,
    /// Which chains a run has, and where its data are.
    Chains,
}

impl Ignored {
    fn has(self, section: &str, name: &str) -> bool {
        let lengths = ["warmup", "draws", "thin", "minutes", "until"];
        let chains = ["chains", "first-chain", "chain-numbers"];
        // of the machine, not of what is asked for
        if section == "run" && name == "instructions" {
            return true;
        }
        match self {
            Self::Nothing => false,
            Self::Lengths => section == "record" || section == "run" && lengths.contains(&name),
            Self::Chains => match section {
                "run" => chains.contains(&name),
                "data" => name == "source",
                _ => false,
            },
        }
    }
}

/// A setting that is not the same.
#[derive(Debug)]
pub struct Difference {
    name: String,
    values: [Option<Value>; 2],
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, other] = self.values.each_ref().map(|value| match value {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => "not given".to_owned(),
        });
        write!(f, "{} is {one}, not {other}", self.name)
    }
}

/// The first setting that two runs do not share; the second value is the one that is asked for.
///
/// # Errors
/// None in practice; reported rather than hidden.
pub fn difference(
    one: &Settings,
    other: &Settings,
    ignored: Ignored,
) -> Result<Option<Difference>, Failure> {
    let table = |settings: &Settings| settings.to_toml()?.parse::<Table>().map_err(Failure::run);
    let (one, other) = (table(one)?, table(other)?);
    // the seed first: other settings may follow it
    let first = String::from("run");
    let sections = one.keys().chain(other.keys());
    for section in std::iter::once(&first).chain(sections) {
        let of = |all: &Table| all.get(section).and_then(Value::as_table).cloned();
        let (one, other) = (of(&one).unwrap_or_default(), of(&other).unwrap_or_default());
        for name in one.keys().chain(other.keys()) {
            let values = [one.get(name).cloned(), other.get(name).cloned()];
            if values[0] != values[1] && !ignored.has(section, name) {
                let name = name.clone();
                return Ok(Some(Difference { name, values }));
            }
        }
    }
    Ok(None)
}
