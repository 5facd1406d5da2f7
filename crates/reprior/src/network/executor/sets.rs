//! Reverse passes of several cotangents of the outputs at once, layer by layer: what needs all of them at a layer is not held for
//! all layers.

use std::mem::{swap, take};

use super::program::{OperationStep, Program};
use super::workspace::{Weights, Workspace, make};
use crate::compute::{Real, panel_rows};
use crate::network::operation::{Cotangents, Point};

/// Writes one of the cotangents of a sample's outputs: (sample, outputs, which, cotangent).
pub(super) type VisitSets<'a, R> = dyn Fn(usize, &[R], usize, &mut [R]) + 'a;

impl<R: Real> Workspace<R> {
    /// After [`differentiate`](Self::differentiate) of first order: `count` cotangents of the outputs, sample by sample; those of
    /// the samples that fill up the last panel are zero.
    pub fn load_sets(&mut self, program: &Program<R>, count: usize, visit: &VisitSets<'_, R>) {
        let (outputs, height) = (program.values[program.outputs], panel_rows::<R>());
        let (length, numbers) = (self.length(outputs), self.numbers());
        let slots = &program.memory.cotangents;
        if self.sets.len() != count {
            self.sets.resize_with(count, Vec::new);
        }
        let values = &self.values[program.memory.values.of[program.outputs]][..length];
        let mut sample = take(&mut self.sample);
        for own in &mut sample {
            own.resize(outputs, R::ZERO);
        }
        let [y, cotangent, ..] = &mut sample;
        for set in &mut self.sets {
            make(set, &slots.lengths, numbers);
            set[slots.of[program.outputs]][..length].fill(R::ZERO);
        }
        for (index, row) in self.rows.clone().enumerate() {
            let at = |k: usize| (index / height * outputs + k) * height + index % height;
            for (k, y) in y.iter_mut().enumerate() {
                *y = values[at(k)];
            }
            for (which, set) in self.sets.iter_mut().enumerate() {
                visit(row, y, which, cotangent);
                let to = &mut set[slots.of[program.outputs]];
                for (k, &value) in cotangent.iter().enumerate() {
                    to[at(k)] = value;
                }
            }
        }
        self.sample = sample;
    }

    /// Shows `visit` every layer with parameters, from the last to the first, with its cotangents: (step, its number among layers
    /// with parameters, the layer, cotangents, work space). Samples of the block are `rows` of the data.
    pub fn reverse_sets(
        &mut self,
        program: &Program<R>,
        weights: Weights<'_, R>,
        mut visit: impl FnMut(&OperationStep<R>, usize, Point<'_, R>, Cotangents<'_, R>, &mut Vec<R>),
    ) {
        let slots = &program.memory.cotangents;
        let has_parameters = |step: &&OperationStep<R>| !step.weights.is_empty();
        let mut layer = program.steps.iter().filter(has_parameters).count();
        let mut sets = take(&mut self.sets);
        let mut scratch = take(&mut self.scratch);
        for step in program.steps.iter().rev() {
            let [input, output] = [step.input, step.output].map(|v| self.length(program.values[v]));
            if !step.weights.is_empty() {
                layer -= 1;
                let cotangents = Cotangents {
                    sets: &sets,
                    slot: slots.of[step.output],
                    length: output,
                };
                let point = self.point(program, step, weights, usize::MAX);
                visit(step, layer, point, cotangents, &mut scratch);
            }
            if step.input == 0 {
                continue;
            }
            for set in &mut sets {
                swap(&mut self.cotangents, set);
                let mut out = take(&mut self.cotangents[slots.of[step.input]]);
                let point = self.point(program, step, weights, usize::MAX);
                let cotangent = &self.cotangents[slots.of[step.output]][..output];
                let to = &mut out[..input];
                step.operation
                    .vjp_input(point, cotangent, step.adds_cotangent, to);
                self.cotangents[slots.of[step.input]] = out;
                swap(&mut self.cotangents, set);
            }
        }
        (self.sets, self.scratch) = (sets, scratch);
    }
}
