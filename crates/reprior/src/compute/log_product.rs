//! Sums of logarithms as the logarithm of a product, whose exponents are kept apart so that nothing overflows: an addition, a product and
//! some operations on bits for each factor, in vector registers, in place of a logarithm.

/// Factors that are taken at a time.
pub(crate) const FACTORS: usize = 32;
/// Blocks after which products of numbers below two are taken apart again: 2^512 is far from what overflows.
const BLOCKS: usize = 512;

/// log Π x of what was multiplied, 32 products side by side.
#[derive(Debug, Clone)]
pub(crate) struct LogProduct {
    /// Between one and two each, when they were taken apart last.
    products: [f64; FACTORS],
    exponents: [i64; FACTORS],
    /// Of the factors themselves: tells infinite ones and NaN, which are no longer to be seen in a product.
    sums: [f64; FACTORS],
    blocks: usize,
}

impl Default for LogProduct {
    /// Of nothing.
    fn default() -> Self {
        Self {
            products: [1.0; FACTORS],
            exponents: [0; FACTORS],
            sums: [0.0; FACTORS],
            blocks: 0,
        }
    }
}

impl LogProduct {
    /// By factors of one or more.
    #[inline(always)]
    pub fn multiply(&mut self, factors: &[f64; FACTORS]) {
        if self.blocks == BLOCKS {
            let products = self.products;
            self.products = [1.0; FACTORS];
            self.blocks = 0;
            self.take(&products);
        }
        for (sum, factor) in self.sums.iter_mut().zip(factors) {
            *sum += factor;
        }
        self.take(factors);
        self.blocks += 1;
    }

    #[inline(always)]
    fn take(&mut self, factors: &[f64; FACTORS]) {
        let own = self.products.iter_mut().zip(&mut self.exponents);
        for ((product, exponent), factor) in own.zip(factors) {
            let bits = factor.to_bits();
            *exponent += (bits >> 52) as i64 - 1023;
            *product *= f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
        }
    }

    /// The logarithm of the product; infinite if a factor was, NaN if one was.
    pub fn value(&self) -> f64 {
        let sum: f64 = self.sums.iter().sum();
        if !sum.is_finite() {
            return sum;
        }
        let exponent: i64 = self.exponents.iter().sum();
        let logarithms: f64 = self.products.iter().map(|product| product.ln()).sum();
        exponent as f64 * std::f64::consts::LN_2 + logarithms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl Fn(usize) -> f64, blocks: usize) -> f64 {
        let mut product = LogProduct::default();
        for block in 0..blocks {
            product.multiply(&std::array::from_fn(|at| values(block * FACTORS + at)));
        }
        product.value()
    }

    #[test]
    fn is_the_sum_of_logarithms() {
        for (blocks, greatest) in [
            (0, 1.0),
            (1, 2.0),
            (3, 1e300),
            (1500, 1.9999),
            (1500, 1e200),
        ] {
            let value = |at: usize| 1.0 + (greatest - 1.0) * ((at * 37 % 101) as f64 / 100.0);
            let sum: f64 = (0..blocks * FACTORS).map(|at| value(at).ln()).sum();
            let own = of(value, blocks);
            assert!(
                (own - sum).abs() <= 1e-12 * (1.0 + sum),
                "{blocks}: {own} {sum}"
            );
        }
    }

    #[test]
    fn what_is_no_number_is_seen() {
        assert_eq!(
            of(|at| if at == 40 { f64::INFINITY } else { 1.5 }, 2),
            f64::INFINITY
        );
        assert!(of(|at| if at == 3 { f64::NAN } else { 1.5 }, 2).is_nan());
    }
}
