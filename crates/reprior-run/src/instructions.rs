//! The instruction set that kernels run with. It rounds sums in its own way, so that a run has its bytes for one of them: `config.toml`
//! says for which, and what is made of that file keeps to it where this process can.

use reprior::compute::{instructions, keep_to_instructions};

use crate::settings::Settings;

/// Keeps to the instruction set that the settings name; what a user should know where that cannot be.
pub fn keep(settings: &Settings) -> Option<String> {
    let asked = settings.run.instructions.as_ref();
    let asked = asked.filter(|asked| !keep_to_instructions(asked))?;
    Some(format!(
        "config.toml is of {asked} instructions, and here are {}: draws made here are of the same law, but have not the same bytes",
        instructions()
    ))
}

/// The same for a run that begins: it has those that it gets.
pub fn choose(settings: &mut Settings) -> Option<String> {
    let note = keep(settings);
    settings.run.instructions = Some(instructions().to_owned());
    note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_told_and_replaced() {
        let mut settings = Settings::default();
        assert_eq!(keep(&settings), None);
        settings.run.instructions = Some("abacus".to_owned());
        let told = keep(&settings);
        assert!(told.as_ref().is_some_and(|told| told.contains("abacus")));
        assert_eq!(choose(&mut settings), told);
        assert_eq!(settings.run.instructions.as_deref(), Some(instructions()));
        assert_eq!(keep(&settings), None);
    }
}
