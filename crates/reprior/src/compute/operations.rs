//! How many products and operations this thread has made: for accounts of where time goes, and for tests that keep it so.

use std::cell::Cell;

/// Counts of a thread since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Operations {
    /// Products of matrices and Gram matrices, one for each call.
    pub products: u64,
    /// Factorisations and inversions of triangles.
    pub factorisations: u64,
    /// Multiplications and additions of products as they were made (halves that are left out are not counted, what tiles do
    /// beyond a triangle is), and of factorisations, inversions and triangular solutions as they are necessary.
    pub flops: u64,
}

thread_local! {
    static COUNTS: Cell<Operations> = const {
        Cell::new(Operations { products: 0, factorisations: 0, flops: 0 })
    };
}

impl Operations {
    /// This thread's.
    pub fn so_far() -> Self {
        COUNTS.get()
    }

    /// Those after `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            products: self.products - earlier.products,
            factorisations: self.factorisations - earlier.factorisations,
            flops: self.flops - earlier.flops,
        }
    }

    fn add(products: u64, factorisations: u64, flops: usize) {
        let before = COUNTS.get();
        COUNTS.set(Self {
            products: before.products + products,
            factorisations: before.factorisations + factorisations,
            flops: before.flops + flops as u64,
        });
    }

    pub(super) fn product(flops: usize) {
        Self::add(1, 0, flops);
    }

    pub(super) fn factorisation(flops: usize) {
        Self::add(0, 1, flops);
    }

    pub(super) fn solution(flops: usize) {
        Self::add(0, 0, flops);
    }
}
