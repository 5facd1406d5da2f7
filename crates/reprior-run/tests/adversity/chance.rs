//! Random choices (SplitMix64): a problem is its number.

pub struct Chance(u64);

impl Chance {
    pub fn new(number: u64) -> Self {
        Self(number.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x9e37_79b9_7f4a_7c15)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// True once in so many.
    pub fn once_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    /// About normal.
    pub fn normal(&mut self) -> f64 {
        let unit = |one: u64| (one >> 11) as f64 / (1_u64 << 53) as f64;
        (0..12).map(|_| unit(self.next())).sum::<f64>() - 6.0
    }
}
