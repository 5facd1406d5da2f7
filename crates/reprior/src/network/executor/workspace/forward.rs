//! Passes from the inputs on: values alone, what derivatives need, tangents.

use std::mem::take;
use std::ops::Range;

use super::super::program::{OperationStep, Program};
use super::super::slots::Slots;
use super::{
    Along, DerivativeOrder, Weights, Workspace, load, make, steps_below, store, tangent_slots,
};
use crate::compute::{Matrix, MatrixMut, Real};

impl<R: Real> Workspace<R> {
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
}
