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

/// The name of the instruction set that kernels run with: `avx2`, `neon` or `plain`. The same seed gives the same bits with the same
/// one alone.
pub fn instruction_set() -> &'static str {
    match arch() {
        Arch::Scalar => "plain",
        #[cfg(target_arch = "x86_64")]
        Arch::V3(_) => "avx2",
        #[cfg(target_arch = "aarch64")]
        Arch::Neon(_) => "neon",
        // what pulp may come to know
        _ => "another",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says which kernels the other tests of this process are of.
    #[test]
    #[expect(clippy::print_stdout, reason = "what was tested")]
    fn the_set_in_use_has_a_name_and_is_the_one_that_was_asked_for() {
        println!("kernels run with {}", instruction_set());
        assert_ne!(instruction_set(), "another");
        if std::env::var("REPRIOR_INSTRUCTIONS").is_ok_and(|asked| asked == "plain") {
            assert_eq!(instruction_set(), "plain");
        }
    }
}
