//! Inputs most of which are zero, such as the pixels of handwritten digits: only the others are kept, and [multiplied](products). Of
//! [batches](SparseMatrix), made again and again, and of [all rows](SparseRows).

mod products;
mod rows;

use super::{Real, Team};
pub use products::SparsePiece;
pub(crate) use rows::{SparseRows, common_numbers, sum_of};

/// Bytes of a unit's numbers in a block of rows: those of a hundred units stay in the nearest cache. A row's number in twice a block is a `u16`.
const BLOCK_BYTES: usize = 256;

/// A matrix without zeros, by its columns and by its rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct SparseMatrix<R> {
    pub by_column: SparseColumns<R>,
    /// Its transpose.
    pub by_row: SparseColumns<R>,
    /// Columns of each row's numbers, in rows of `columns` + 1, and how many there are.
    found: Vec<u32>,
    counts: Vec<u32>,
}

/// A matrix by its columns, without zeros.
#[derive(Debug, Clone, Default)]
pub(crate) struct SparseColumns<R> {
    rows: usize,
    columns: usize,
    /// Rows of a block.
    block: usize,
    /// Where the numbers of each block of rows of each column begin, and the end.
    starts: Vec<u32>,
    /// Each number's row, counted from the first of its block, and the number.
    own_rows: Vec<u16>,
    values: Vec<R>,
}

/// Rows that are fetched and searched at a time.
const SEARCHED: usize = 25;

impl<R: Real> SparseMatrix<R> {
    /// Has `fetch` write the rows, given by their numbers, of `matrix`, row-major, and takes it if anything is in it and at most a part `most`
    /// of that is not zero; whether it does.
    pub fn fetch(
        &mut self,
        team: &mut Team,
        matrix: &mut Vec<R>,
        [rows, columns]: [usize; 2],
        most: f64,
        fetch: impl Fn(usize, &mut [R]) + Sync,
    ) -> bool {
        let width = columns.max(1);
        matrix.resize(rows * columns, R::ZERO);
        self.found.resize(rows * (columns + 1), 0);
        self.counts.resize(rows, 0);
        let found = self.found.chunks_mut(SEARCHED * (columns + 1));
        let found = found.zip(self.counts.chunks_mut(SEARCHED));
        let parts = matrix.chunks_mut(SEARCHED * width).zip(found).enumerate();
        team.share(parts.collect(), |(part, (rows, (found, counts)))| {
            let (rows, counts): (&mut [R], &mut [u32]) = (rows, counts);
            // they come from far away: all threads fetch some, one after the other without a word between them
            for (at, row) in rows.chunks_exact_mut(width).enumerate() {
                fetch(part * SEARCHED + at, row);
            }
            let found = found.chunks_exact_mut(columns + 1).zip(counts);
            for (row, (found, total)) in rows.chunks_exact(width).zip(found) {
                // without a branch that nobody can foretell
                let mut count = 0;
                for (column, &value) in (0..).zip(row) {
                    found[count] = column;
                    count += usize::from(value != R::ZERO);
                }
                *total = count as u32;
            }
        });
        let total: u32 = self.counts.iter().sum();
        if matrix.is_empty() || f64::from(total) > most * matrix.len() as f64 {
            return false;
        }
        let found = self.found.chunks_exact(columns + 1).zip(&self.counts);
        let found = found.map(|(found, &count)| &found[..count as usize]);
        let rows = matrix.chunks_exact(width).zip(found);
        self.by_column.size(rows.len(), columns);
        self.by_row.size(columns, rows.len());
        let both = vec![(&mut self.by_column, false), (&mut self.by_row, true)];
        team.share(both, |(own, is_transposed)| match is_transposed {
            false => own.fill(total, rows.clone()),
            true => own.fill_transposed(rows.clone()),
        });
        true
    }
}

impl<R: Real> SparseColumns<R> {
    /// Those of a matrix's numbers, by row and column, that are not zero.
    fn of([rows, columns]: [usize; 2], number: impl Fn(usize, usize) -> R) -> Self {
        let mut own = Self::default();
        own.size(rows, columns);
        own.starts.push(0);
        for column in 0..columns {
            for first in (0..rows).step_by(own.block) {
                for row in first..rows.min(first + own.block) {
                    let value = number(row, column);
                    if value != R::ZERO {
                        own.own_rows.push((row - first) as u16);
                        own.values.push(value);
                    }
                }
                own.starts.push(own.values.len() as u32);
            }
        }
        own
    }

    /// Takes `total` numbers of rows, each with the columns of those that are not zero.
    fn fill<'a>(&mut self, total: u32, rows: impl Iterator<Item = (&'a [R], &'a [u32])> + Clone) {
        let (block, blocks) = (self.block, self.blocks());
        self.starts.clear();
        self.starts.resize(self.columns * blocks + 1, 0);
        for (row, (_, found)) in rows.clone().enumerate() {
            let after = row / block + 1;
            for &column in found {
                self.starts[column as usize * blocks + after] += 1;
            }
        }
        let mut end = 0;
        for start in &mut self.starts {
            end += *start;
            *start = end;
        }
        self.own_rows.resize(total as usize, 0);
        self.values.resize(total as usize, R::ZERO);
        for (row, (values, found)) in rows.enumerate() {
            let (own, within) = (row / block, (row % block) as u16);
            for &column in found {
                let at = &mut self.starts[column as usize * blocks + own];
                self.own_rows[*at as usize] = within;
                self.values[*at as usize] = values[column as usize];
                *at += 1;
            }
        }
        // each start has moved to the next one's place
        self.starts.rotate_right(1);
        self.starts[0] = 0;
    }

    /// The same as columns.
    fn fill_transposed<'a>(&mut self, columns: impl Iterator<Item = (&'a [R], &'a [u32])>) {
        let (block, blocks) = (self.block, self.blocks());
        self.starts.clear();
        self.starts.push(0);
        self.own_rows.clear();
        self.values.clear();
        for (values, found) in columns {
            let begun = self.starts.len();
            for &row in found {
                let row = row as usize;
                let own = row / block;
                while self.starts.len() < begun + own {
                    self.starts.push(self.values.len() as u32);
                }
                self.own_rows.push((row - own * block) as u16);
                self.values.push(values[row]);
            }
            let end = self.values.len() as u32;
            self.starts.resize(begun + blocks, end);
        }
    }

    fn size(&mut self, rows: usize, columns: usize) {
        let block = BLOCK_BYTES / R::BYTES;
        // what is twice a block stays in the cache almost as well
        let block = if rows <= 2 * block { rows } else { block };
        (self.rows, self.columns, self.block) = (rows, columns, block.max(1));
    }

    fn blocks(&self) -> usize {
        self.rows.div_ceil(self.block)
    }
}
