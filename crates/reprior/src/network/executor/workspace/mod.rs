//! One thread's buffers, and the passes over one block of samples: forward and forward with tangents (`forward`), reverse
//! (`reverse`).

mod forward;
mod reverse;

use std::ops::Range;

use super::program::{OperationStep, Program};
use super::slots::Slots;
use crate::compute::{Matrix, MatrixMut, Real, panel_rows};
use crate::network::operation::{Direction, Point};

/// Parameters with what [`Operation::transpose`](crate::network::operation::Operation::transpose) made of them.
#[derive(Clone, Copy)]
pub(super) struct Weights<'a, R> {
    pub values: &'a [R],
    /// Empty if there is no vjp to come.
    pub transposed: &'a [R],
}

impl<'a, R> Weights<'a, R> {
    /// For passes without a vjp.
    pub fn plain(values: &'a [R]) -> Self {
        Self {
            values,
            transposed: &[],
        }
    }
}

/// A direction of parameters and inputs; what is absent is zero.
#[derive(Clone, Copy)]
pub(super) struct Along<'a, R> {
    pub weights: Option<Weights<'a, R>>,
    pub inputs: Option<Matrix<'a, R>>,
}

impl<'a, R> Along<'a, R> {
    /// Of the parameters alone.
    pub fn weights(direction: &'a [R]) -> Self {
        Self {
            weights: Some(Weights::plain(direction)),
            inputs: None,
        }
    }
}

/// What a pass is to keep for later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DerivativeOrder {
    /// For a jvp or a vjp.
    First,
    /// For Hessian-vector products: second derivatives, and tangents of all values.
    Second,
}

/// Where the reverse pass adds what it finds.
pub(super) struct ReverseSums<'a, R> {
    /// The gradient; if `is_per_sample` not summed over the samples of the one panel that there is then.
    pub gradient: &'a mut [R],
    pub is_per_sample: bool,
    /// Products of single samples' gradients, see [`MomentSums`]; empty if not wanted.
    pub squares: &'a mut [R],
    pub cross: &'a mut [R],
    /// Matrices of Kronecker-factored curvature; empty if not wanted.
    pub kronecker: &'a mut [R],
}

impl<'a, R> ReverseSums<'a, R> {
    /// The gradient alone.
    pub fn plain(gradient: &'a mut [R]) -> Self {
        Self {
            gradient,
            is_per_sample: false,
            squares: &mut [],
            cross: &mut [],
            kronecker: &mut [],
        }
    }
}

/// Buffers; each holds at most `capacity` panels.
#[derive(Debug, Default)]
pub(super) struct Workspace<R> {
    capacity: usize,
    panels: usize,
    pub(super) rows: Range<usize>,
    forward: Vec<Vec<R>>,
    pub(super) values: Vec<Vec<R>>,
    second: Vec<Vec<R>>,
    tangents: Vec<Vec<R>>,
    pub(super) cotangents: Vec<Vec<R>>,
    cotangent_tangents: Vec<Vec<R>>,
    /// Of several cotangents at once, see `sets`.
    pub(super) sets: Vec<Vec<Vec<R>>>,
    /// One sample's outputs, their tangents, cotangents and these one's tangents.
    pub(super) sample: [Vec<R>; 4],
    /// Work space: mostly a panel's gradients, sample by sample.
    pub(super) scratch: Vec<R>,
    /// Products of all pairs of a panel's gradients.
    pub(super) products: Vec<R>,
}

/// What is done with one sample once its outputs are known: its number, outputs, their tangents, and where to write cotangents
/// and their tangents.
pub(super) type Visit<'a, R> = dyn FnMut(usize, &[R], &[R], &mut [R], &mut [R]) + 'a;

impl<R: Real> Workspace<R> {
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            ..Self::default()
        }
    }

    /// Numbers of all buffers.
    pub fn total(&self) -> usize {
        let sets = [
            &self.forward,
            &self.values,
            &self.second,
            &self.tangents,
            &self.cotangents,
            &self.cotangent_tangents,
        ];
        sets.iter()
            .flat_map(|set| set.iter())
            .chain(self.sets.iter().flatten())
            .map(Vec::len)
            .sum::<usize>()
            + self.scratch.len()
    }

    /// Numbers of `features` features of the block.
    pub(super) fn length(&self, features: usize) -> usize {
        features * self.panels * panel_rows::<R>()
    }

    fn begin(&mut self, rows: Range<usize>) {
        self.panels = rows.len().div_ceil(panel_rows::<R>());
        self.rows = rows;
        assert!(self.panels <= self.capacity);
    }

    pub(super) fn numbers(&self) -> usize {
        self.capacity * panel_rows::<R>()
    }

    /// The step where the last [`differentiate`](Self::differentiate) left it; `derivatives` steps before it have derivatives.
    pub(super) fn point<'a>(
        &'a self,
        program: &Program<R>,
        step: &OperationStep<R>,
        weights: Weights<'a, R>,
        derivatives: usize,
    ) -> Point<'a, R> {
        let slots = &program.memory.values;
        let [input, output] = [step.input, step.output].map(|v| self.length(program.values[v]));
        // a buffer on loan is empty: it is none of those that this step reads
        let view = |thing: usize, length: usize| -> &[R] {
            let buffer = &self.values[slots.of[thing]];
            &buffer[..length.min(buffer.len())]
        };
        let second = self
            .second
            .get(derivatives)
            .filter(|_| step.derivative.is_some());
        Point {
            panels: self.panels,
            weights: &weights.values[step.weights.clone()],
            transposed: weights
                .transposed
                .get(step.transposed.clone())
                .unwrap_or(&[]),
            input: view(step.input, input),
            output: view(step.output, output),
            derivative: step.derivative.map_or(&[], |(thing, _)| view(thing, input)),
            second: second.map_or(&[], |second| &second[..input]),
        }
    }

    fn direction<'a>(
        &'a self,
        program: &Program<R>,
        step: &OperationStep<R>,
        along: Along<'a, R>,
        slots: &Slots,
    ) -> Direction<'a, R> {
        let length = self.length(program.values[step.input]);
        let has_input = step.input > 0 || along.inputs.is_some();
        Direction {
            weights: along
                .weights
                .map(|weights| &weights.values[step.weights.clone()]),
            transposed: along.weights.map_or(&[], |weights| {
                weights
                    .transposed
                    .get(step.transposed.clone())
                    .unwrap_or(&[])
            }),
            input: has_input.then(|| &self.tangents[slots.of[step.input]][..length]),
        }
    }
}

/// Steps up to the one that writes `value`, the features or the outputs.
fn steps_below<R: Real>(program: &Program<R>, value: usize) -> &[OperationStep<R>] {
    let above = usize::from(value != program.outputs);
    &program.steps[..program.steps.len() - above]
}

fn tangent_slots<R: Real>(program: &Program<R>, order: DerivativeOrder) -> &Slots {
    match order {
        DerivativeOrder::First => &program.memory.tangents,
        DerivativeOrder::Second => &program.memory.kept_tangents,
    }
}

/// Buffers of at least `lengths`·`numbers`.
pub(super) fn make<R: Real>(buffers: &mut Vec<Vec<R>>, lengths: &[usize], numbers: usize) {
    if buffers.len() < lengths.len() {
        buffers.resize_with(lengths.len(), Vec::new);
    }
    for (buffer, length) in buffers.iter_mut().zip(lengths) {
        if buffer.len() < length * numbers {
            buffer.resize(length * numbers, R::ZERO);
        }
    }
}

/// Copies rows of a matrix to panels; rows that are not there are zeros.
fn load<R: Real>(panels: &mut [R], matrix: Matrix<'_, R>, rows: Range<usize>) {
    let (height, features) = (panel_rows::<R>(), matrix.ncols());
    let first_rows = rows.clone().step_by(height);
    for (panel, first) in panels.chunks_exact_mut(height * features).zip(first_rows) {
        let count = height.min(rows.end - first);
        let columns = matrix.subrows(first, count);
        for (to, from) in panel.chunks_exact_mut(height).zip(columns.col_iter()) {
            match from.try_as_col_major() {
                Some(from) => to[..count].copy_from_slice(from.as_slice()),
                None => {
                    for (to, &from) in to.iter_mut().zip(from.iter()) {
                        *to = from;
                    }
                }
            }
            to[count..].fill(R::ZERO);
        }
    }
}

/// Copies panels to the rows of a matrix.
fn store<R: Real>(mut matrix: MatrixMut<'_, R>, panels: &[R]) {
    let (height, features, rows) = (panel_rows::<R>(), matrix.ncols(), matrix.nrows());
    let first_rows = (0..rows).step_by(height);
    for (panel, first) in panels.chunks_exact(height * features).zip(first_rows) {
        let count = height.min(rows - first);
        let columns = matrix.as_mut().subrows_mut(first, count);
        for (from, to) in panel.chunks_exact(height).zip(columns.col_iter_mut()) {
            for (to, &from) in to.iter_mut().zip(from) {
                *to = from;
            }
        }
    }
}
