//! Hidden layers of many rows in groups of rows, which threads of a team take one by one.
//!
//! A group is a plan of its own for its blocks of rows: it evaluates them one after the other, and adds up the gradient that they give.
//! Groups follow from the number of rows alone, and their gradients are added up in order.

use std::ops::Range;

use super::hidden_layers::{HiddenLayers, block_rows, kept_rows};
use super::{FeatureCotangent, FeaturePlan, NetworkInputs, Part, Parts};
use crate::compute::{
    Matrix, MatrixMut, Real, add_scaled, copy_matrix, matrix, matrix_mut, row_pieces_from_below,
    spread,
};
use crate::network::{Composition, HiddenLayer};

/// Groups at most.
const MOST: usize = 8;

/// How rows are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Groups {
    /// Rows of a block.
    block: usize,
    /// Whether the way back finds what it needs of all rows.
    is_kept: bool,
    /// Rows of each group but the last.
    rows: usize,
    count: usize,
}

impl Groups {
    /// One where the rows are one block.
    pub fn new<R: Real>(hidden: &[HiddenLayer], rows: usize) -> Self {
        let block = block_rows::<R>(hidden, rows);
        let is_kept = kept_rows::<R>(hidden, rows, block) >= rows;
        Self::of(rows, block, is_kept)
    }

    pub fn of(rows: usize, block: usize, is_kept: bool) -> Self {
        let of_group = rows.div_ceil(block.max(1)).div_ceil(MOST).max(1) * block;
        Self {
            block,
            is_kept,
            rows: of_group,
            count: rows.div_ceil(of_group.max(1)).max(1),
        }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The rows of each, of so many together.
    pub fn ranges(self, rows: usize) -> impl Iterator<Item = Range<usize>> {
        (0..self.count).map(move |index| index * self.rows..rows.min((index + 1) * self.rows))
    }

    /// Rows of a block, and of those that are kept, in a group of so many.
    pub fn block_and_kept(&self, rows: usize) -> [usize; 2] {
        let block = self.block.min(rows);
        match self.is_kept {
            true => [block, rows.next_multiple_of(block.max(1))],
            false => [block, block],
        }
    }
}

/// Some rows.
struct RowGroup<R> {
    first: usize,
    layers: HiddenLayers<R>,
    /// The gradient that comes of them; empty until needed, and in the first group, whose gradient is the caller's.
    gradient: Vec<R>,
}

/// All rows, in groups.
pub(super) struct RowGroups<R> {
    rows: usize,
    of_group: usize,
    columns: usize,
    /// Multiplications of a row, forward.
    multiplications: usize,
    groups: Vec<RowGroup<R>>,
    /// n × (d_L + 1), the constant column included.
    output: Vec<R>,
    /// n × d_L: the cotangent of the features where it is asked for once; empty until needed.
    cotangent: Vec<R>,
}

impl<R: Real> RowGroups<R> {
    pub fn new(network: &Composition, hidden: &[HiddenLayer], rows: usize, groups: Groups) -> Self {
        let group = |range: Range<usize>| RowGroup {
            first: range.start,
            layers: HiddenLayers::in_blocks(
                network,
                hidden,
                range.len(),
                groups.block_and_kept(range.len()),
            ),
            gradient: Vec::new(),
        };
        let columns = hidden.last().map_or(0, |layer| layer.units) + 1;
        Self {
            rows,
            of_group: groups.rows,
            columns,
            multiplications: hidden.iter().map(|layer| layer.rows() * layer.units).sum(),
            groups: groups.ranges(rows).map(group).collect(),
            output: vec![R::ZERO; rows * columns],
            cotangent: Vec::new(),
        }
    }
}

/// The inputs of a group: rows counted from its first.
struct InputsOf<'a, R> {
    all: &'a dyn NetworkInputs<R>,
    first: usize,
}

impl<R> InputsOf<'_, R> {
    fn among_all(&self, rows: &Range<usize>) -> Range<usize> {
        self.first + rows.start..self.first + rows.end
    }
}

impl<R> NetworkInputs<R> for InputsOf<'_, R> {
    fn matrix(&self) -> Matrix<'_, R> {
        self.all.matrix()
    }

    fn forward(&self, out: MatrixMut<'_, R>, weights: Matrix<'_, R>, part: &Part) {
        let part = Part {
            rows: self.among_all(&part.rows),
            units: part.units.clone(),
        };
        self.all.forward(out, weights, &part);
    }

    fn wants_all_units(&self) -> bool {
        self.all.wants_all_units()
    }

    fn vjp_weights(
        &self,
        gradient: MatrixMut<'_, R>,
        cotangent: Matrix<'_, R>,
        rows: Range<usize>,
    ) {
        self.all
            .vjp_weights(gradient, cotangent, self.among_all(&rows));
    }
}

impl<R: Real> FeaturePlan<R> for RowGroups<R> {
    fn evaluate(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        weights: &[R],
        with_derivatives: bool,
        visit: &mut dyn FnMut(Matrix<'_, R>),
    ) {
        let output = matrix_mut(&mut self.output, self.rows, self.columns);
        let pieces = row_pieces_from_below(output, self.of_group);
        let pieces = self.groups.iter_mut().rev().zip(pieces);
        let operations = 2 * self.rows * self.multiplications;
        spread(operations, pieces, |(group, (_, piece))| {
            let inputs = InputsOf {
                all: inputs,
                first: group.first,
            };
            let layers = &mut group.layers;
            layers.evaluate(&inputs, weights, with_derivatives, &mut |_| {});
            copy_matrix(piece, layers.features(inputs.matrix()));
        });
        visit(matrix(&self.output, self.rows, self.columns));
    }

    fn features<'a>(&'a self, _: Matrix<'a, R>) -> Matrix<'a, R> {
        matrix(&self.output, self.rows, self.columns)
    }

    fn backward(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        weights: &[R],
        gradient: &mut [R],
        parts: Parts,
        cotangent: &FeatureCotangent<'_, R>,
    ) {
        let (rows, units) = (self.rows, self.columns - 1);
        let features = matrix(&self.output, rows, self.columns);
        if parts != Parts::Rows {
            self.cotangent.resize(rows * units, R::ZERO);
            let all = Part {
                rows: 0..rows,
                units: 0..units,
            };
            let out = matrix_mut(&mut self.cotangent, rows, units);
            cotangent(out, features, &all);
        }
        let whole = (parts != Parts::Rows).then(|| matrix(&self.cotangent, rows, units));
        let length = gradient.len();
        let mut of_first = Some(&mut *gradient);
        let groups = self.groups.iter_mut().map(|group| {
            let own = of_first.take();
            if own.is_none() {
                group.gradient.resize(length, R::ZERO);
                group.gradient.fill(R::ZERO);
            }
            (group, own)
        });
        let operations = 4 * rows * self.multiplications;
        spread(operations, groups, |(group, own)| {
            let RowGroup {
                first,
                layers,
                gradient,
            } = group;
            let inputs = InputsOf {
                all: inputs,
                first: *first,
            };
            let write = |out: MatrixMut<'_, R>, _: Matrix<'_, R>, part: &Part| {
                let rows = inputs.among_all(&part.rows);
                match whole {
                    Some(whole) => copy_matrix(out, whole.subrows(rows.start, rows.len())),
                    None => {
                        let units = part.units.clone();
                        cotangent(out, features, &Part { rows, units });
                    }
                }
            };
            let gradient = own.unwrap_or(gradient);
            layers.backward(&inputs, weights, gradient, Parts::Rows, &write);
        });
        for group in self.groups.iter().skip(1) {
            add_scaled(gradient, 1.0, &group.gradient);
        }
    }
}
