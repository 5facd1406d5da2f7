//! How the rows of a batch are shared among threads: into the same shares however many threads there are, each with sums of
//! its own that are added up in order at the end, so that the number of threads changes no bit of a result.

use std::ops::Range;

use crate::compute::{MatrixMut, Real};

/// The most shares.
const MOST: usize = 16;
/// Numbers that all shares' gradients may have together, as long as there are two shares.
const MOST_NUMBERS: usize = 1 << 25;

/// Rows of each share: whole blocks, two of them at least if that leaves four shares. `sums` is the length of a share's sums.
pub(super) fn shares(rows: usize, block: usize, sums: usize) -> Vec<Range<usize>> {
    let blocks = rows.div_ceil(block);
    let affordable = MOST_NUMBERS.checked_div(sums).unwrap_or(MOST).max(2);
    let count = blocks.min(4).max(blocks.div_ceil(2));
    let count = count.min(MOST).min(affordable);
    let at = |share: usize| rows.min(share * blocks / count * block);
    (0..count).map(|share| at(share)..at(share + 1)).collect()
}

/// Blocks of a share's rows.
pub(super) fn blocks(rows: Range<usize>, block: usize) -> impl Iterator<Item = Range<usize>> {
    let end = rows.end;
    rows.step_by(block)
        .map(move |first| first..end.min(first + block))
}

/// The rows of `matrix` that each share has.
pub(super) fn split_rows<'a, R: Real>(
    mut matrix: MatrixMut<'a, R>,
    shares: &[Range<usize>],
) -> Vec<MatrixMut<'a, R>> {
    let mut parts = Vec::with_capacity(shares.len());
    for share in shares {
        let (own, rest) = matrix.split_at_row_mut(share.len());
        parts.push(own);
        matrix = rest;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_all_rows_in_whole_blocks() {
        for rows in [0, 1, 15, 16, 17, 128, 1000, 60_000] {
            for sums in [10, 1 << 24, 1 << 30] {
                let shares = shares(rows, 16, sums);
                assert!(shares.len() <= MOST && (shares.len() > 1 || rows <= 16));
                let mut next = 0;
                for share in &shares {
                    assert!(share.start == next && (share.end % 16 == 0 || share.end == rows));
                    next = share.end;
                    let covered: usize = blocks(share.clone(), 16).map(|block| block.len()).sum();
                    assert_eq!(covered, share.len());
                }
                assert_eq!(next, rows);
            }
        }
    }
}
