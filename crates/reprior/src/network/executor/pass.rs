//! What all of the executor's results have in common: a pass over all blocks of samples, shared among threads.

use std::ops::Range;

use super::program::Program;
use super::shares::{blocks, shares, split_rows};
use super::workspace::{Along, DerivativeOrder, ReverseSums, Weights, Workspace};
use super::{Executor, Loss};
use crate::compute::{Matrix, MatrixMut, Real, add_scaled, panel_rows, share};

/// How far a pass goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reverse {
    Not,
    ToParameters,
    ToInputs,
}

/// What a pass is made with.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a, R> {
    /// The value that is computed: the features or the outputs. Only for the features the readout's weights may be left out.
    pub value: usize,
    pub weights: &'a [R],
    pub inputs: Matrix<'a, R>,
    pub along: Option<Along<'a, R>>,
    pub reverse: Reverse,
    /// Samples that go through the network together.
    pub block: usize,
    /// Numbers of each share's sums, which begin at zero.
    pub sums: usize,
}

/// One block of a pass.
pub(super) struct SampleBlock<'a, R> {
    pub space: &'a mut Workspace<R>,
    pub program: &'a Program<R>,
    pub value: usize,
    pub weights: Weights<'a, R>,
    pub inputs: Matrix<'a, R>,
    pub along: Option<Along<'a, R>>,
    pub rows: Range<usize>,
    /// Its rows of the result, if that has rows.
    pub out: Option<MatrixMut<'a, R>>,
    /// Of its share.
    pub sums: &'a mut [R],
    pub total: &'a mut f64,
}

/// What the shares of a pass found.
pub(super) struct ShareSums<'a, R> {
    /// The sum of the shares' totals.
    pub total: f64,
    shares: &'a [Vec<R>],
}

/// A share's rows, its part of a result and its sums.
struct Share<'a, R> {
    rows: Range<usize>,
    out: Option<MatrixMut<'a, R>>,
    sums: &'a mut Vec<R>,
    total: &'a mut f64,
}

impl<R: Real> Executor<R> {
    /// A pass to the outputs, that keeps no sums and does not go back.
    pub(super) fn plain_pass<'a>(&self, weights: &'a [R], inputs: Matrix<'a, R>) -> Pass<'a, R> {
        Pass {
            value: self.program.outputs,
            weights,
            inputs,
            along: None,
            reverse: Reverse::Not,
            block: self.block_rows(),
            sums: 0,
        }
    }

    /// As [`plain_pass`](Self::plain_pass), of single panels: for what is found of each sample by itself.
    pub(super) fn pass_of_panels<'a>(
        &self,
        weights: &'a [R],
        inputs: Matrix<'a, R>,
    ) -> Pass<'a, R> {
        Pass {
            block: panel_rows::<R>(),
            ..self.plain_pass(weights, inputs)
        }
    }

    /// Has `work` done on every block of samples. Shares of blocks are taken by the threads; what they find is added up in order,
    /// so that it does not depend on how many threads there are.
    pub(super) fn run(
        &mut self,
        pass: Pass<'_, R>,
        out: Option<MatrixMut<'_, R>>,
        work: impl Fn(SampleBlock<'_, R>) + Sync,
    ) -> ShareSums<'_, R> {
        let (rows, program) = (pass.inputs.nrows(), &self.program);
        let missing = program.parameters - pass.weights.len();
        let may_miss = [0, self.readout_parameters()];
        assert!(missing == 0 || pass.value == program.features && may_miss.contains(&missing));
        assert_eq!(pass.inputs.ncols(), self.inputs_count());
        assert!(out.as_ref().is_none_or(|out| out.nrows() == rows));
        let (mut weights, mut along) = (Weights::plain(pass.weights), pass.along);
        if pass.reverse != Reverse::Not {
            weights = weights.transposed(program, pass.reverse, &mut self.transposed);
            if let Some(Along { weights: own, .. }) = &mut along {
                let space = &mut self.transposed_direction;
                *own = own.map(|own| own.transposed(program, pass.reverse, space));
            }
        }
        let shares = shares(rows, pass.block, pass.sums);
        if self.sums.len() < shares.len() {
            self.sums.resize_with(shares.len(), Vec::new);
        }
        let sums = &mut self.sums[..shares.len()];
        let mut totals = vec![0.0; shares.len()];
        let mut outs = out.map(|out| split_rows(out, &shares).into_iter());
        let items = shares.iter().zip(&mut *sums).zip(&mut totals);
        let items = items.map(|((rows, sums), total)| Share {
            rows: rows.clone(),
            out: outs.as_mut().and_then(Iterator::next),
            sums,
            total,
        });
        let work_on = |space: &mut &mut Workspace<R>, mut share: Share<'_, R>| {
            share.sums.clear();
            share.sums.resize(pass.sums, R::ZERO);
            let first = share.rows.start;
            for rows in blocks(share.rows, pass.block) {
                let out = share.out.as_mut().map(|out| {
                    let first = rows.start - first;
                    out.as_mut().subrows_mut(first, rows.len())
                });
                work(SampleBlock {
                    space,
                    program,
                    value: pass.value,
                    weights,
                    inputs: pass.inputs,
                    along,
                    rows,
                    out,
                    sums: share.sums,
                    total: share.total,
                });
            }
        };
        let items: Vec<_> = items.collect();
        share(self.workspaces.iter_mut(), items.into_iter(), work_on);
        ShareSums {
            total: totals.iter().sum(),
            shares: sums,
        }
    }
}

impl<R: Real> ShareSums<'_, R> {
    /// total ← the sums of all shares, from number `from` of these on.
    pub fn add_up(&self, total: &mut [R], from: usize) {
        if total.is_empty() {
            return;
        }
        let own = from..from + total.len();
        match self.shares.split_first() {
            Some((first, others)) => {
                total.copy_from_slice(&first[own.clone()]);
                for other in others {
                    add_scaled(total, 1.0, &other[own.clone()]);
                }
            }
            None => total.fill(R::ZERO),
        }
    }
}

impl<R: Real> SampleBlock<'_, R> {
    /// Computes the pass' value, and keeps what derivatives of this order need.
    pub fn differentiate(&mut self, order: DerivativeOrder) {
        let (program, value, along) = (self.program, self.value, self.along);
        let rows = self.rows.clone();
        self.space.differentiate(
            program,
            value,
            self.weights,
            self.inputs,
            along,
            order,
            rows,
        );
    }

    /// Makes rows of `cotangent` those of the pass' value.
    pub fn load_cotangents(&mut self, cotangent: Matrix<'_, R>, order: DerivativeOrder) {
        self.space
            .load_cotangents(self.program, self.value, cotangent, order);
    }

    /// After a pass of first order: adds `loss` to the total, and makes its derivatives the cotangents.
    pub fn add_loss(&mut self, loss: &Loss<'_, R>) {
        let total = &mut *self.total;
        let mut visit = |sample, y: &[R], _: &[R], cotangent: &mut [R], _: &mut [R]| {
            *total += loss(sample, y, cotangent);
        };
        let order = DerivativeOrder::First;
        self.space
            .visit_outputs(self.program, false, order, &mut visit);
    }

    /// Goes back from the cotangents of the pass' value.
    pub fn reverse(&mut self, sums: ReverseSums<'_, R>, to_inputs: bool) {
        let (program, weights) = (self.program, self.weights);
        self.space
            .reverse(program, weights, self.value, sums, to_inputs);
    }
}

impl<'a, R: Real> Weights<'a, R> {
    /// With what [`Operation::transpose`](crate::network::operation::Operation::transpose) makes of those of every step whose input
    /// has a cotangent.
    pub fn transposed(
        self,
        program: &Program<R>,
        reverse: Reverse,
        transposed: &'a mut Vec<R>,
    ) -> Self {
        transposed.resize(program.transposed, R::ZERO);
        let to_inputs = reverse == Reverse::ToInputs;
        let steps = program.steps.iter();
        for step in steps.filter(|step| step.input > 0 || to_inputs) {
            // the readout's may be missing
            if let Some(own) = self.values.get(step.weights.clone()) {
                let out = &mut transposed[step.transposed.clone()];
                step.operation.transpose(own, out);
            }
        }
        Self { transposed, ..self }
    }
}
