//! Passes from the outputs back: gradients, their tangents, those of single samples.

use std::mem::take;

use super::super::program::{OperationStep, Program};
use super::{
    Along, DerivativeOrder, ReverseSums, Visit, Weights, Workspace, load, make, steps_below, store,
    tangent_slots,
};
use crate::compute::{Matrix, MatrixMut, Real, panel_rows};
use crate::network::operation::{Cotangent, MomentSums, Operation, Point};

impl<R: Real> Workspace<R> {
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
