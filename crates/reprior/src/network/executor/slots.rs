//! Which buffers hold what and when: numbers that are never wanted at the same time share one.

/// From when to when (both included) something is wanted, and how long it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lifetime {
    pub first: usize,
    pub last: usize,
    pub length: usize,
}

/// Buffers, and which of them each thing has.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Slots {
    /// Length of each buffer.
    pub lengths: Vec<usize>,
    /// The buffer of each thing.
    pub of: Vec<usize>,
}

impl Slots {
    /// Gives each thing, in the order of its first use, the free buffer that fits best, or a new one.
    pub fn new(lifetimes: &[Lifetime]) -> Self {
        let mut order: Vec<usize> = (0..lifetimes.len()).collect();
        order.sort_by_key(|&thing| lifetimes[thing].first);
        let (mut lengths, mut busy_until) = (Vec::<usize>::new(), Vec::<usize>::new());
        let mut of = vec![0; lifetimes.len()];
        for thing in order {
            let Lifetime {
                first,
                last,
                length,
            } = lifetimes[thing];
            let free = (0..lengths.len()).filter(|&slot| busy_until[slot] < first);
            // the smallest that is large enough, else the largest
            let best = free.min_by_key(|&slot| match lengths[slot].checked_sub(length) {
                Some(surplus) => (0, surplus),
                None => (1, length - lengths[slot]),
            });
            let slot = best.unwrap_or_else(|| {
                lengths.push(0);
                busy_until.push(0);
                lengths.len() - 1
            });
            lengths[slot] = lengths[slot].max(length);
            busy_until[slot] = last;
            of[thing] = slot;
        }
        Self { lengths, of }
    }

    /// Numbers of all buffers.
    pub fn total(&self) -> usize {
        self.lengths.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_shared_one_after_the_other_only() {
        let lifetime = |first, last, length| Lifetime {
            first,
            last,
            length,
        };
        let slots = Slots::new(&[
            lifetime(0, 1, 10),
            lifetime(1, 2, 5),
            lifetime(2, 3, 8),
            lifetime(3, 9, 4),
            lifetime(4, 5, 10),
        ]);
        assert_eq!(slots.of, [0, 1, 0, 1, 0]);
        assert_eq!(slots.lengths, [10, 5]);
        assert_eq!(slots.total(), 15);
    }
}
