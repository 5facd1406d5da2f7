//! How much memory this process may still take: what is free on the machine, and what a limit (`ulimit -v`) leaves of its
//! address space.

use std::fs;

/// Bytes; [`u64::MAX`] where the system does not tell. Cost: three small reads.
pub fn left() -> u64 {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let free = kilobytes(&read("/proc/meminfo"), "MemAvailable:");
    let used = kilobytes(&read("/proc/self/status"), "VmSize:");
    let limit = address_space(&read("/proc/self/limits"));
    let own = limit.map(|limit| limit.saturating_sub(used.unwrap_or(0)));
    free.into_iter().chain(own).min().unwrap_or(u64::MAX)
}

/// The number in the line that begins with `name`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024)
}

/// The soft limit of the address space; `None` where there is none.
fn address_space(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_understood() {
        let memory = "MemTotal:       24689764 kB\nMemAvailable:   1024 kB\n";
        assert_eq!(kilobytes(memory, "MemAvailable:"), Some(1 << 20));
        assert_eq!(kilobytes(memory, "VmSize:"), None);
        let limits = |soft: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max address space         {soft:<20} unlimited            bytes     \n"
            )
        };
        assert_eq!(address_space(&limits("unlimited")), None);
        assert_eq!(address_space(&limits("4096000")), Some(4_096_000));
        assert!(left() > 0);
    }
}
