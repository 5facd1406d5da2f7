//! Minibatches: all rows in a new order each epoch, cut into pieces.

use crate::compute::{Purpose, Stream};

/// The minibatches of one chain. Update `t` always has the same rows, whatever was asked for before.
#[derive(Debug, Clone)]
pub struct Batches {
    size: usize,
    seed: u64,
    chain: u64,
    epoch: Option<u64>,
    order: Vec<u32>,
}

impl Batches {
    /// Of `rows` rows (at most 2³²), `size` at a time; the last of an epoch may be smaller. A size of 0 counts as 1, one
    /// beyond `rows` as `rows`.
    pub fn new(rows: usize, size: usize, seed: u64, chain: u64) -> Self {
        Self {
            size: size.clamp(1, rows.max(1)),
            seed,
            chain,
            epoch: None,
            order: (0..rows as u32).collect(),
        }
    }

    /// Updates of an epoch.
    pub fn per_epoch(&self) -> u64 {
        self.order.len().div_ceil(self.size) as u64
    }

    /// The rows of update `update`, counted from 0. With one batch an epoch, rows stay in order.
    pub fn rows(&mut self, update: u64) -> &[u32] {
        let count = self.per_epoch().max(1);
        let (epoch, index) = (update / count, (update % count) as usize);
        if self.epoch != Some(epoch) && count > 1 {
            for (row, number) in self.order.iter_mut().zip(0..) {
                *row = number;
            }
            let mut stream = Stream::new(self.seed, self.chain, Purpose::Shuffle, epoch);
            for last in (1..self.order.len()).rev() {
                let other = (stream.uniform() * (last + 1) as f64) as usize;
                self.order.swap(last, other.min(last));
            }
            self.epoch = Some(epoch);
        }
        let start = index * self.size;
        &self.order[start..self.order.len().min(start + self.size)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_has_every_row_once_in_an_order_of_its_own() {
        let mut batches = Batches::new(23, 5, 1, 0);
        assert_eq!(batches.per_epoch(), 5);
        let epoch = |batches: &mut Batches, epoch: u64| -> Vec<u32> {
            let updates = 5 * epoch..5 * epoch + 5;
            updates.flat_map(|t| batches.rows(t).to_vec()).collect()
        };
        let (first, second) = (epoch(&mut batches, 0), epoch(&mut batches, 1));
        assert_ne!(first, second);
        for order in [&first, &second] {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..23).collect::<Vec<u32>>());
        }
        // from the middle, as after an interruption
        assert_eq!(Batches::new(23, 5, 1, 0).rows(7), &second[10..15]);
        assert_ne!(epoch(&mut Batches::new(23, 5, 1, 1), 0), first);
        assert_eq!(Batches::new(4, 100, 0, 0).rows(9), [0, 1, 2, 3]);
    }

    /// Each row is as often in the first batch as any other: chi-squared with 9 degrees of freedom, 4.6e-6 beyond 41.
    #[test]
    fn orders_are_uniform() {
        let mut batches = Batches::new(10, 2, 3, 0);
        let mut counts = [0.0; 10];
        for epoch in 0..5000 {
            for &row in batches.rows(5 * epoch) {
                counts[row as usize] += 1.0;
            }
        }
        let squared: f64 = counts
            .iter()
            .map(|c: &f64| (c - 1000.0).powi(2) / 1000.0)
            .sum();
        assert!(squared < 41.0, "{squared}");
    }
}
