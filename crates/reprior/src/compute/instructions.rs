//! The instruction set that kernels run with: the widest that they know and this processor has, or the one that is asked for.
//!
//! `REPRIOR_INSTRUCTIONS=plain` takes numbers one by one, as on a processor without vector instructions: tests run the kernels with it
//! too.

use std::sync::OnceLock;

use pulp::Arch;

/// Kernels without vector instructions.
const PLAIN: &str = "plain";

static CHOSEN: OnceLock<Arch> = OnceLock::new();

/// The instruction set of this process, by name: `avx2` (with FMA), `neon` or `plain`. The same seed gives the same bytes for one of
/// them; sums are rounded otherwise by others.
pub fn instructions() -> &'static str {
    match arch() {
        #[cfg(target_arch = "x86_64")]
        Arch::V3(_) => "avx2",
        #[cfg(target_arch = "aarch64")]
        Arch::Neon(_) => "neon",
        _ => PLAIN,
    }
}

/// Whether kernels run with the instruction set of this name. Plain instructions are taken for it, by the whole process, where no
/// kernel has run yet; every processor has them.
pub fn keep_to_instructions(name: &str) -> bool {
    if name == PLAIN {
        CHOSEN.get_or_init(|| Arch::Scalar);
    }
    instructions() == name
}

/// The instruction set of this process.
#[inline]
pub(super) fn arch() -> Arch {
    *CHOSEN.get_or_init(|| match std::env::var("REPRIOR_INSTRUCTIONS") {
        Ok(asked) if asked == PLAIN => Arch::Scalar,
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
        assert_eq!(plain, instructions() == PLAIN);
    }

    #[test]
    fn what_has_been_chosen_stays() {
        let own = instructions();
        for name in ["avx2", "neon", "plain", "abacus"] {
            assert_eq!(keep_to_instructions(name), own == name);
        }
        assert_eq!(instructions(), own);
    }
}
