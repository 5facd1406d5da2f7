//! What is compiled for each precision in this crate alone: kernels of products, and what networks and samplers are made of behind trait objects.
//!
//! A generic function is compiled again by every crate that calls it, and a kernel is that for each instruction set. What generic faces
//! come down to here are functions that are not generic. (The element-wise kernels of `vector.rs` are small, and generic.)

use super::Real;
use super::correlate::CorrelationInMode;
use super::gather::GatherPiece;
use super::gram::GramPiece;
use super::outer_product::OuterProduct;
use super::packed::PackedPiece;
use super::sparse::SparsePiece;
use super::tall::Strip;
use super::tile::PanelToPack;

/// Something of either precision, by functions that are not generic: [`Real::of_precision`] calls that of its own.
pub trait OfPrecision {
    /// What it is.
    type Of<R: Real>;

    /// In single precision.
    fn single(self) -> Self::Of<f32>;
    /// In double precision.
    fn double(self) -> Self::Of<f64>;
}

/// Each kernel on one thread.
pub trait CompiledKernels: Sized {
    /// Some of a Gram matrix.
    fn gram(piece: GramPiece<'_, Self>);
    /// Some columns of a product with a packed factor.
    fn packed_product(piece: PackedPiece<'_, Self>);
    /// A panel of a factor.
    fn pack(panel: PanelToPack<'_, Self>);
    /// Some rows of a product of tall matrices.
    fn tall_product(strip: Strip<'_, Self>);
    /// Products with a sparse factor.
    fn sparse_products(piece: SparsePiece<'_, Self>);
    /// Products along runs of features.
    fn gather_product(piece: GatherPiece<'_, Self>);
    /// A convolution's gradient.
    fn correlate(piece: CorrelationInMode<'_, Self>);
    /// A dense layer's gradient.
    fn outer_product(piece: OuterProduct<'_, Self>);
}

macro_rules! compile {
    ($($real:ty)*) => {$(
        impl CompiledKernels for $real {
            fn gram(piece: GramPiece<'_, Self>) {
                piece.run();
            }
            fn packed_product(piece: PackedPiece<'_, Self>) {
                piece.run();
            }
            fn pack(panel: PanelToPack<'_, Self>) {
                panel.run();
            }
            fn tall_product(strip: Strip<'_, Self>) {
                strip.run();
            }
            fn sparse_products(piece: SparsePiece<'_, Self>) {
                piece.run();
            }
            fn gather_product(piece: GatherPiece<'_, Self>) {
                piece.run();
            }
            fn correlate(piece: CorrelationInMode<'_, Self>) {
                piece.run();
            }
            fn outer_product(piece: OuterProduct<'_, Self>) {
                piece.run();
            }
        }
    )*};
}

compile!(f32 f64);
