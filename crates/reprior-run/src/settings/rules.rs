//! What goes with what: settings that are refused before any work.

use crate::failure::Failure;

/// Flags that go with some methods, or other settings, only.
pub(crate) struct SettingRule<'a> {
    pub flags: &'a [&'a str],
    /// Whether they go with these settings.
    pub is_taken: bool,
    /// What they go with, in words.
    pub whose: &'a str,
}

/// Refuses flags that are given, and do not go with the settings.
///
/// # Errors
/// A wrong request: what the flag goes with.
pub(crate) fn refuse_others(given: &[String], rules: &[SettingRule<'_>]) -> Result<(), Failure> {
    for rule in rules.iter().filter(|rule| !rule.is_taken) {
        if let Some(flag) = rule
            .flags
            .iter()
            .find(|flag| given.iter().any(|own| own == *flag))
        {
            return Err(Failure::request(format!(
                "{flag} belongs to {}: leave it out",
                rule.whose
            )));
        }
    }
    Ok(())
}

/// Refuses counts that are given as 0.
///
/// # Errors
/// A wrong request that names the flag.
pub(crate) fn at_least_one(counts: &[(&str, Option<u64>)]) -> Result<(), Failure> {
    match counts.iter().find(|(_, count)| *count == Some(0)) {
        Some((flag, _)) => Err(Failure::request(format!(
            "{flag} is 0: it must be at least 1"
        ))),
        None => Ok(()),
    }
}
