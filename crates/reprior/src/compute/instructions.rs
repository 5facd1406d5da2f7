//! The instruction set that kernels run with: the widest that they know and this processor has, or the one that is asked for.
//!
//! `REPRIOR_INSTRUCTIONS=plain` takes numbers one by one, as on a processor without vector instructions: tests run the kernels with it
//! too.

use std::sync::OnceLock;

use pulp::Arch;

/// The instruction set of this process.
#[inline]
pub(super) fn arch() -> Arch {
    static CHOSEN: OnceLock<Arch> = OnceLock::new();
    *CHOSEN.get_or_init(|| match std::env::var("REPRIOR_INSTRUCTIONS") {
        Ok(asked) if asked == "plain" => Arch::Scalar,
        _ => Arch::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `.ci/run` tests the kernels with what is asked for here as well.
    #[test]
    fn plain_instructions_are_taken_where_they_are_asked_for() {
        let asked = std::env::var("REPRIOR_INSTRUCTIONS").is_ok_and(|asked| asked == "plain");
        let plain = matches!(arch(), Arch::Scalar);
        assert_eq!(plain, asked || matches!(Arch::new(), Arch::Scalar));
    }
}
