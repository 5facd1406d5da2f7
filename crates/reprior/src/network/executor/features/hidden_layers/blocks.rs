//! How many rows go through hidden layers together, of how many the way back finds what it needs, and what that takes.

use std::ops::Range;

use super::super::row_groups::Groups;
use crate::compute::{Real, panel_rows};
use crate::network::HiddenLayer;

/// Bytes of a block's values in all layers: with their derivatives and a cotangent they stay in the second cache.
const BLOCK_BYTES: usize = 1 << 18;
/// Rows of a block at least: fewer are not worth the products' overhead.
const LEAST_ROWS: usize = 256;

/// Bytes of activations and derivatives at most that are kept for the way back, where there are several blocks: chains on all cores share
/// the last cache. With four layers of 32, evaluating again took 1.3 times as long at 1,202 rows, 1.13 at 7,372, and no longer at 16,512
/// (17 MB), where it takes a fourth of the memory.
const KEPT_BYTES: usize = 1 << 23;

/// Rows of which the inner layers' values and all derivatives have a place, if there are blocks of so many: all rows, or those of a block.
pub(in super::super) fn kept_rows<R: Real>(
    hidden: &[HiddenLayer],
    rows: usize,
    block: usize,
) -> usize {
    let units: usize = hidden.iter().map(|layer| layer.units).sum();
    let all = rows.div_ceil(block.max(1)) * block;
    match block >= rows || 2 * all * units * R::BYTES <= KEPT_BYTES {
        true => all,
        false => block,
    }
}

/// Rows that go through the network together, of so many.
pub(in super::super) fn block_rows<R: Real>(hidden: &[HiddenLayer], rows: usize) -> usize {
    let units: usize = hidden.iter().map(|layer| layer.units).sum();
    let fitting = BLOCK_BYTES / (R::BYTES * units.max(1));
    let fitting = fitting / panel_rows::<R>() * panel_rows::<R>();
    match fitting >= LEAST_ROWS && fitting < rows {
        true => fitting,
        false => rows,
    }
}

/// Whether the way back evaluates the layers again.
pub(in super::super) fn evaluates_again<R: Real>(hidden: &[HiddenLayer], rows: usize) -> bool {
    kept_rows::<R>(hidden, rows, block_rows::<R>(hidden, rows)) < rows
}

/// Bytes that the buffers take, with or without those for gradients.
pub(in super::super) fn bytes<R: Real>(
    hidden: &[HiddenLayer],
    rows: usize,
    with_gradients: bool,
) -> usize {
    let groups = Groups::new::<R>(hidden, rows);
    let of_group = |group: Range<usize>| {
        let block_and_kept = groups.block_and_kept(group.len());
        numbers(hidden, group.len(), block_and_kept, with_gradients)
    };
    let of_groups: usize = groups.ranges(rows).map(of_group).sum();
    let of_all = match groups.count() {
        1 => 0,
        count => {
            let units = hidden.last().map_or(0, |last| last.units);
            let parameters: usize = hidden.iter().map(|layer| layer.rows() * layer.units).sum();
            // the features' cotangent may be asked for once, of all rows
            let gradients = rows * units + (count - 1) * parameters;
            rows * (units + 1) + if with_gradients { gradients } else { 0 }
        }
    };
    (of_groups + of_all) * R::BYTES
}

/// Numbers in the buffers of some rows, in blocks.
fn numbers(
    hidden: &[HiddenLayer],
    rows: usize,
    [block, kept]: [usize; 2],
    with_gradients: bool,
) -> usize {
    let Some((last, inner)) = hidden.split_last() else {
        return 0;
    };
    let all: usize = hidden.iter().map(|layer| layer.units).sum();
    let widest = hidden.iter().map(|layer| layer.units).max().unwrap_or(0);
    let values = kept * (all - last.units + inner.len()) + rows * (last.units + 1);
    let cotangents = if inner.is_empty() { 1 } else { 2 };
    match with_gradients {
        true => values + kept * all + block.min(rows) * cotangents * widest,
        false => values,
    }
}
