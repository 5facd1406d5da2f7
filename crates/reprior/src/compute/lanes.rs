//! Numbers that are worked on a vector at a time, whatever the instruction set: what the kernels need of `pulp`.
#![allow(unsafe_code)] // vectors are read and written without bounds checks

use std::cell::RefCell;

use pulp::Simd;

/// A number with vector instructions.
pub trait Lanes: Copy + Default + Send + Sync + 'static {
    /// A vector register of instruction set `S`.
    type Vector<S: Simd>: Copy;

    /// Numbers in a vector.
    fn lanes<S: Simd>() -> usize {
        size_of::<Self::Vector<S>>() / size_of::<Self>()
    }
    /// The same number in every lane.
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    /// These numbers, at most a vector's, and zeros.
    fn of_some<S: Simd>(simd: S, values: &[Self]) -> Self::Vector<S>;
    /// a·b + c.
    fn multiply_add<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// a + b.
    fn plus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// The sum of a vector's numbers.
    fn total<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;
    /// Lends `operation` this thread's scratch space of `length` numbers, whatever they are; it is made once.
    fn with_scratch<T>(length: usize, operation: impl FnOnce(&mut [Self]) -> T) -> T;
}

/// Numbers at any address. `read_unaligned` copies, and where assertions are compiled in asks at each vector whether it overlaps its
/// copy, which takes as long as a product.
#[repr(C, packed)]
#[derive(Clone, Copy)]
struct Anywhere<V>(V);

/// The number at `from`.
///
/// # Safety
/// It can be read.
#[inline(always)]
pub unsafe fn number<R: Lanes>(from: *const R) -> R {
    // SAFETY: the caller's; any address is aligned
    unsafe { (*from.cast::<Anywhere<R>>()).0 }
}

/// The vector that begins at `from`.
///
/// # Safety
/// A vector's numbers can be read there.
#[inline(always)]
pub unsafe fn load<R: Lanes, S: Simd>(from: *const R) -> R::Vector<S> {
    // SAFETY: the caller's; any address is aligned
    unsafe { (*from.cast::<Anywhere<R::Vector<S>>>()).0 }
}

/// Writes the vector that begins at `to`.
///
/// # Safety
/// A vector's numbers can be written there.
#[inline(always)]
pub unsafe fn store<R: Lanes, S: Simd>(to: *mut R, vector: R::Vector<S>) {
    // SAFETY: the caller's; any address is aligned
    unsafe { (*to.cast::<Anywhere<R::Vector<S>>>()).0 = vector }
}

/// A thread's scratch spaces that nobody uses: a kernel that runs within another takes the next one.
type Spaces<N> = RefCell<Vec<Vec<N>>>;

#[inline(always)]
fn lend<N: Copy + Default, T>(
    spaces: &Spaces<N>,
    length: usize,
    operation: impl FnOnce(&mut [N]) -> T,
) -> T {
    let mut space = spaces.borrow_mut().pop().unwrap_or_default();
    if space.len() < length {
        space.resize(length, N::default());
    }
    let result = operation(&mut space[..length]);
    spaces.borrow_mut().push(space);
    result
}

thread_local! {
    static SINGLE: Spaces<f32> = const { RefCell::new(Vec::new()) };
    static DOUBLE: Spaces<f64> = const { RefCell::new(Vec::new()) };
}

impl Lanes for f32 {
    type Vector<S: Simd> = S::f32s;

    #[inline(always)]
    fn splat<S: Simd>(simd: S, value: Self) -> S::f32s {
        simd.splat_f32s(value)
    }
    #[inline(always)]
    fn of_some<S: Simd>(simd: S, values: &[Self]) -> S::f32s {
        simd.partial_load_f32s(values)
    }
    #[inline(always)]
    fn multiply_add<S: Simd>(simd: S, a: S::f32s, b: S::f32s, c: S::f32s) -> S::f32s {
        simd.mul_add_f32s(a, b, c)
    }
    #[inline(always)]
    fn plus<S: Simd>(simd: S, a: S::f32s, b: S::f32s) -> S::f32s {
        simd.add_f32s(a, b)
    }
    #[inline(always)]
    fn total<S: Simd>(simd: S, a: S::f32s) -> Self {
        simd.reduce_sum_f32s(a)
    }
    #[inline(always)]
    fn with_scratch<T>(length: usize, operation: impl FnOnce(&mut [Self]) -> T) -> T {
        SINGLE.with(|cell| lend(cell, length, operation))
    }
}

impl Lanes for f64 {
    type Vector<S: Simd> = S::f64s;

    #[inline(always)]
    fn splat<S: Simd>(simd: S, value: Self) -> S::f64s {
        simd.splat_f64s(value)
    }
    #[inline(always)]
    fn of_some<S: Simd>(simd: S, values: &[Self]) -> S::f64s {
        simd.partial_load_f64s(values)
    }
    #[inline(always)]
    fn multiply_add<S: Simd>(simd: S, a: S::f64s, b: S::f64s, c: S::f64s) -> S::f64s {
        simd.mul_add_f64s(a, b, c)
    }
    #[inline(always)]
    fn plus<S: Simd>(simd: S, a: S::f64s, b: S::f64s) -> S::f64s {
        simd.add_f64s(a, b)
    }
    #[inline(always)]
    fn total<S: Simd>(simd: S, a: S::f64s) -> Self {
        simd.reduce_sum_f64s(a)
    }
    #[inline(always)]
    fn with_scratch<T>(length: usize, operation: impl FnOnce(&mut [Self]) -> T) -> T {
        DOUBLE.with(|cell| lend(cell, length, operation))
    }
}
