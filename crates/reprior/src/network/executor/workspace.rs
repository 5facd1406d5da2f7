//! One thread's buffers, and the passes over one block of samples: forward, forward with tangents, reverse.

use std::mem::take;
use std::ops::Range;

use super::program::{OperationStep, Program};
use super::slots::Slots;
use crate::compute::{Matrix, MatrixMut, Real, panel_rows};
use crate::network::operation::{Cotangent, Direction, MomentSums, Operation, Point};

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

    /// Runs the steps up to `value`, the features or the outputs, keeping nothing; what they left is read by [`copy_forward`](Self::copy_forward).
    pub fn forward(
        &mut self,
        program: &Program<R>,
        value: usize,
        weights: &[R],
        inputs: Matrix<'_, R>,
        rows: Range<usize>,
    ) {
        self.begin(rows);
        let numbers = self.numbers();
        let slots = &program.forward;
        make(&mut self.forward, &slots.lengths, numbers);
        let length = self.length(program.values[0]);
        let rows = self.rows.clone();
        load(&mut self.forward[slots.of[0]][..length], inputs, rows);
        for step in steps_below(program, value) {
            let [input, output] = [step.input, step.output].map(|v| self.length(program.values[v]));
            let mut out = take(&mut self.forward[slots.of[step.output]]);
            let from = &self.forward[slots.of[step.input]][..input];
            let own = &weights[step.weights.clone()];
            step.operation
                .forward(own, self.panels, from, &mut out[..output]);
            self.forward[slots.of[step.output]] = out;
        }
    }

    /// Copies a value of the last [`forward`](Self::forward) to the rows of `out`.
    pub fn copy_forward(&self, program: &Program<R>, value: usize, out: MatrixMut<'_, R>) {
        let length = self.length(program.values[value]);
        store(out, &self.forward[program.forward.of[value]][..length]);
    }

    /// Runs the steps up to `value`, the features or the outputs, and keeps what derivatives need; with `along` tangents as
    /// well.
    #[allow(clippy::too_many_arguments, reason = "a pass has that many choices")]
    pub fn differentiate(
        &mut self,
        program: &Program<R>,
        value: usize,
        weights: Weights<'_, R>,
        inputs: Matrix<'_, R>,
        along: Option<Along<'_, R>>,
        order: DerivativeOrder,
        rows: Range<usize>,
    ) {
        self.load_inputs(program, inputs, rows.clone());
        let numbers = self.numbers();
        let memory = &program.memory;
        if order == DerivativeOrder::Second {
            make(&mut self.second, &memory.second, numbers);
        }
        let slots = tangent_slots(program, order);
        let length = self.length(program.values[0]);
        if let Some(along) = along {
            make(&mut self.tangents, &slots.lengths, numbers);
            if let Some(inputs) = along.inputs {
                load(&mut self.tangents[slots.of[0]][..length], inputs, rows);
            }
        }
        let mut derivatives = 0;
        for step in steps_below(program, value) {
            self.step_forward(program, step, weights.values, order, derivatives);
            if let Some(along) = along {
                self.step_tangent(program, step, weights, along, slots, derivatives);
            }
            derivatives += usize::from(step.derivative.is_some());
        }
    }

    /// Makes these rows of the inputs the first value of a pass that differentiates.
    pub fn load_inputs(&mut self, program: &Program<R>, inputs: Matrix<'_, R>, rows: Range<usize>) {
        self.begin(rows.clone());
        let (memory, numbers) = (&program.memory, self.numbers());
        make(&mut self.values, &memory.values.lengths, numbers);
        let length = self.length(program.values[0]);
        let to = &mut self.values[memory.values.of[0]][..length];
        load(to, inputs, rows);
    }

    /// After [`differentiate`](Self::differentiate): the tangents along another direction of the parameters.
    pub fn carry(&mut self, program: &Program<R>, weights: Weights<'_, R>, direction: &[R]) {
        let (slots, numbers) = (&program.memory.tangents, self.numbers());
        make(&mut self.tangents, &slots.lengths, numbers);
        let along = Along::weights(direction);
        for step in &program.steps {
            self.step_tangent(program, step, weights, along, slots, usize::MAX);
        }
    }

    fn step_tangent(
        &mut self,
        program: &Program<R>,
        step: &OperationStep<R>,
        weights: Weights<'_, R>,
        along: Along<'_, R>,
        slots: &Slots,
        derivatives: usize,
    ) {
        let mut out = take(&mut self.tangents[slots.of[step.output]]);
        let length = self.length(program.values[step.output]);
        let point = self.point(program, step, weights, derivatives);
        let direction = self.direction(program, step, along, slots);
        step.operation.jvp(point, direction, &mut out[..length]);
        self.tangents[slots.of[step.output]] = out;
    }

    /// One step of a pass that differentiates.
    pub fn step_forward(
        &mut self,
        program: &Program<R>,
        step: &OperationStep<R>,
        weights: &[R],
        order: DerivativeOrder,
        derivatives: usize,
    ) {
        let slots = &program.memory.values;
        let [input, output] = [step.input, step.output].map(|v| self.length(program.values[v]));
        let mut out = take(&mut self.values[slots.of[step.output]]);
        if let Some((thing, is_own)) = step.derivative {
            let mut derivative = take(&mut self.values[slots.of[thing]]);
            if !is_own {
                derivative[..input].copy_from_slice(&self.values[slots.of[step.input]][..input]);
            }
            let second = match order {
                DerivativeOrder::First => None,
                DerivativeOrder::Second => Some(&mut self.second[derivatives][..input]),
            };
            let to = &mut out[..output];
            step.operation
                .forward_keeping(&mut derivative[..input], to, second);
            self.values[slots.of[thing]] = derivative;
        } else {
            let from = &self.values[slots.of[step.input]][..input];
            let own = &weights[step.weights.clone()];
            step.operation
                .forward(own, self.panels, from, &mut out[..output]);
        }
        self.values[slots.of[step.output]] = out;
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

    /// Copies the tangents of the outputs to the rows of `out`.
    pub fn copy_tangents(
        &self,
        program: &Program<R>,
        order: DerivativeOrder,
        out: MatrixMut<'_, R>,
    ) {
        let length = self.length(program.values[program.outputs]);
        let slot = tangent_slots(program, order).of[program.outputs];
        store(out, &self.tangents[slot][..length]);
    }

    /// Makes `rows` of `cotangent` the cotangent of `value`, the tangent of which is zero.
    pub fn load_cotangents(
        &mut self,
        program: &Program<R>,
        value: usize,
        cotangent: Matrix<'_, R>,
        order: DerivativeOrder,
    ) {
        let slots = &program.memory.cotangents;
        let numbers = self.numbers();
        let (length, rows) = (self.length(program.values[value]), self.rows.clone());
        make(&mut self.cotangents, &slots.lengths, numbers);
        load(
            &mut self.cotangents[slots.of[value]][..length],
            cotangent,
            rows,
        );
        if order == DerivativeOrder::Second {
            make(&mut self.cotangent_tangents, &slots.lengths, numbers);
            self.cotangent_tangents[slots.of[value]][..length].fill(R::ZERO);
        }
    }

    /// Has `visit` make the cotangents of the outputs, sample by sample; those of the samples that fill up the last panel are
    /// zero.
    pub fn visit_outputs(
        &mut self,
        program: &Program<R>,
        has_tangents: bool,
        order: DerivativeOrder,
        visit: &mut Visit<'_, R>,
    ) {
        let (count, height) = (program.values[program.outputs], panel_rows::<R>());
        let (length, numbers) = (self.length(count), self.numbers());
        let slots = &program.memory.cotangents;
        make(&mut self.cotangents, &slots.lengths, numbers);
        let slot = slots.of[program.outputs];
        let cotangents = &mut self.cotangents[slot][..length];
        cotangents.fill(R::ZERO);
        let mut second: &mut [R] = &mut [];
        if order == DerivativeOrder::Second {
            make(&mut self.cotangent_tangents, &slots.lengths, numbers);
            second = &mut self.cotangent_tangents[slot][..length];
            second.fill(R::ZERO);
        }
        let outputs = &self.values[program.memory.values.of[program.outputs]][..length];
        let tangent_slot = tangent_slots(program, order).of[program.outputs];
        for own in &mut self.sample {
            own.resize(count, R::ZERO);
        }
        let [y, tangent, cotangent, cotangent_tangent] = &mut self.sample;
        for (index, sample) in self.rows.clone().enumerate() {
            let places = (0..count).map(|k| (index / height * count + k) * height + index % height);
            for (k, at) in places.clone().enumerate() {
                y[k] = outputs[at];
                if has_tangents {
                    tangent[k] = self.tangents[tangent_slot][at];
                }
            }
            visit(sample, y, tangent, cotangent, cotangent_tangent);
            for (k, at) in places.enumerate() {
                cotangents[at] = cotangent[k];
                if let Some(second) = second.get_mut(at) {
                    *second = cotangent_tangent[k];
                }
            }
        }
    }

    /// The reverse pass from the cotangent of `from`, the features or the outputs: adds to the sums, and leaves the
    /// cotangent of the inputs if `to_inputs`.
    pub fn reverse(
        &mut self,
        program: &Program<R>,
        weights: Weights<'_, R>,
        from: usize,
        sums: ReverseSums<'_, R>,
        to_inputs: bool,
    ) {
        let mut sums = sums;
        for step in steps_below(program, from).iter().rev() {
            self.step_reverse(program, weights, step, &mut sums, to_inputs);
        }
    }

    /// One step of the reverse pass.
    pub fn step_reverse(
        &mut self,
        program: &Program<R>,
        weights: Weights<'_, R>,
        step: &OperationStep<R>,
        sums: &mut ReverseSums<'_, R>,
        to_inputs: bool,
    ) {
        self.step_reverse_weights(program, weights, step, sums);
        if step.input > 0 || to_inputs {
            self.step_reverse_input(
                program,
                weights,
                step,
                |operation, point, cotangent, out| {
                    operation.vjp_input(point, cotangent, step.adds_cotangent, out);
                },
            );
        }
    }

    /// What a step of the reverse pass adds to the sums.
    pub fn step_reverse_weights(
        &mut self,
        program: &Program<R>,
        weights: Weights<'_, R>,
        step: &OperationStep<R>,
        sums: &mut ReverseSums<'_, R>,
    ) {
        let slots = &program.memory.cotangents;
        let copies = if sums.is_per_sample {
            panel_rows::<R>()
        } else {
            1
        };
        let output = self.length(program.values[step.output]);
        let own = step.weights.start * copies..step.weights.end * copies;
        let mut scratch = take(&mut self.scratch);
        let point = self.point(program, step, weights, usize::MAX);
        let cotangent = &self.cotangents[slots.of[step.output]][..output];
        let operation = &step.operation;
        operation.vjp_weights(
            point,
            cotangent,
            sums.is_per_sample,
            &mut sums.gradient[own],
        );
        if let Some(squares) = sums.squares.get_mut(step.weights.clone()) {
            let cross = sums.cross.get_mut(step.weights.clone());
            let moments = MomentSums {
                squares,
                cross: cross.unwrap_or(&mut []),
                scratch: &mut scratch,
            };
            operation.moments(point, cotangent, moments);
        }
        if let Some(sums) = sums.kronecker.get_mut(step.kronecker.clone()) {
            let samples = self.rows.len();
            operation.kronecker_inputs(point, samples, &mut scratch, sums);
            operation.kronecker_outputs(point, cotangent, &mut scratch, sums);
        }
        self.scratch = scratch;
    }

    /// The cotangent of a step's input, as `vjp` writes it.
    pub fn step_reverse_input(
        &mut self,
        program: &Program<R>,
        weights: Weights<'_, R>,
        step: &OperationStep<R>,
        vjp: impl FnOnce(&dyn Operation<R>, Point<'_, R>, &[R], &mut [R]),
    ) {
        let slots = &program.memory.cotangents;
        let [input, output] = [step.input, step.output].map(|v| self.length(program.values[v]));
        let mut out = take(&mut self.cotangents[slots.of[step.input]]);
        let point = self.point(program, step, weights, usize::MAX);
        let cotangent = &self.cotangents[slots.of[step.output]][..output];
        vjp(&*step.operation, point, cotangent, &mut out[..input]);
        self.cotangents[slots.of[step.input]] = out;
    }

    /// The reverse pass from the outputs with tangents, after a pass of second order: adds the tangent of the gradient to
    /// `gradient`; if `is_per_sample` not summed over the samples of the one panel that there is then.
    pub fn reverse_tangent(
        &mut self,
        program: &Program<R>,
        weights: Weights<'_, R>,
        along: Along<'_, R>,
        is_per_sample: bool,
        gradient: &mut [R],
    ) {
        let slots = &program.memory.cotangents;
        let copies = if is_per_sample { panel_rows::<R>() } else { 1 };
        let tangents = tangent_slots(program, DerivativeOrder::Second);
        let mut derivatives = program.memory.second.len();
        for step in program.steps.iter().rev() {
            derivatives -= usize::from(step.derivative.is_some());
            let [input, output] = [step.input, step.output].map(|v| self.length(program.values[v]));
            let [to, from] = [step.input, step.output].map(|value| slots.of[value]);
            let mut out = take(&mut self.cotangents[to]);
            let mut out_tangent = take(&mut self.cotangent_tangents[to]);
            let point = self.point(program, step, weights, derivatives);
            let direction = self.direction(program, step, along, tangents);
            let cotangent = Cotangent {
                value: &self.cotangents[from][..output],
                tangent: &self.cotangent_tangents[from][..output],
            };
            let (operation, adds) = (&step.operation, step.adds_cotangent);
            let own = &mut gradient[step.weights.start * copies..step.weights.end * copies];
            operation.vjp_weights_tangent(point, direction, cotangent, is_per_sample, own);
            if step.input > 0 {
                operation.vjp_input(point, cotangent.value, adds, &mut out[..input]);
                let out = &mut out_tangent[..input];
                operation.vjp_input_tangent(point, direction, cotangent, adds, out);
            }
            self.cotangents[to] = out;
            self.cotangent_tangents[to] = out_tangent;
        }
    }

    /// Copies the cotangent of the inputs to the rows of `out`.
    pub fn copy_input_cotangents(&self, program: &Program<R>, out: MatrixMut<'_, R>) {
        let length = self.length(program.values[0]);
        let slot = program.memory.cotangents.of[0];
        store(out, &self.cotangents[slot][..length]);
    }

    /// As [`reverse`](Self::reverse) from the outputs of one panel, each sample's gradient to a row of `out`.
    pub fn reverse_per_sample(
        &mut self,
        program: &Program<R>,
        weights: Weights<'_, R>,
        out: MatrixMut<'_, R>,
    ) {
        let mut scratch = take(&mut self.scratch);
        scratch.clear();
        scratch.resize(program.parameters * panel_rows::<R>(), R::ZERO);
        self.reverse(
            program,
            weights,
            program.outputs,
            ReverseSums {
                is_per_sample: true,
                ..ReverseSums::plain(&mut scratch)
            },
            false,
        );
        store(out, &scratch);
        self.scratch = scratch;
    }

    /// As [`reverse_tangent`](Self::reverse_tangent) of one panel, each sample's to a row of `out`.
    pub fn reverse_tangent_per_sample(
        &mut self,
        program: &Program<R>,
        weights: Weights<'_, R>,
        along: Along<'_, R>,
        out: MatrixMut<'_, R>,
    ) {
        let mut scratch = take(&mut self.scratch);
        scratch.clear();
        scratch.resize(program.parameters * panel_rows::<R>(), R::ZERO);
        self.reverse_tangent(program, weights, along, true, &mut scratch);
        store(out, &scratch);
        self.scratch = scratch;
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
