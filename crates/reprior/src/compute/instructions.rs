//! The instruction set that kernels run with: the widest that they know and this processor has, or the one that is asked for.
//!
//! `REPRIOR_INSTRUCTIONS` asks for a narrower one, as on a processor that has no other: tests run the kernels with each. `plain` takes
//! numbers one by one. faer's own factorisations and small products take the processor's widest all the same.

use std::sync::OnceLock;

use pulp::Arch;

/// Kernels without vector instructions.
const PLAIN: &str = "plain";

static CHOSEN: OnceLock<Arch> = OnceLock::new();

/// The instruction set of this process, by name: `avx512`, `avx2` (with FMA), `neon` or `plain`. The same seed gives the same bytes for
/// one of them; sums are rounded otherwise by others.
pub fn instructions() -> &'static str {
    name(arch())
}

fn name(arch: Arch) -> &'static str {
    match arch {
        #[cfg(target_arch = "x86_64")]
        Arch::V4(_) => "avx512",
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
    *CHOSEN.get_or_init(|| {
        let asked = std::env::var("REPRIOR_INSTRUCTIONS").ok();
        asked.and_then(|asked| of_name(&asked)).unwrap_or_default()
    })
}

/// The same with vectors of at most eight words.
#[inline]
pub(super) fn arch_of_eight_words() -> Arch {
    match arch() {
        #[cfg(target_arch = "x86_64")]
        Arch::V4(_) => of_name("avx2").unwrap_or_default(),
        other => other,
    }
}

/// The instruction set of a name, where this processor has it.
fn of_name(asked: &str) -> Option<Arch> {
    match asked {
        PLAIN => Some(Arch::Scalar),
        #[cfg(target_arch = "x86_64")]
        "avx2" => pulp::x86::V3::try_new().map(Arch::V3),
        _ => Some(Arch::default()).filter(|&widest| name(widest) == asked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `.ci/run` tests the kernels with each that is asked for here.
    #[test]
    fn instructions_are_those_that_are_asked_for() {
        let widest = name(Arch::default());
        let asked = std::env::var("REPRIOR_INSTRUCTIONS");
        assert_eq!(instructions(), asked.as_deref().unwrap_or(widest));
    }

    #[test]
    fn what_this_processor_has_can_be_asked_for() {
        for known in [PLAIN, name(Arch::default())] {
            assert_eq!(of_name(known).map(name), Some(known));
        }
        assert!(of_name("abacus").is_none());
    }

    #[test]
    fn what_has_been_chosen_stays() {
        let own = instructions();
        for name in ["avx512", "avx2", "neon", "plain", "abacus"] {
            assert_eq!(keep_to_instructions(name), own == name);
        }
        assert_eq!(instructions(), own);
    }
}
