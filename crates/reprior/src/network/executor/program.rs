//! A composition as a list of steps: nested layers flattened, each step one operation from one value to another.
//!
//! A value is what flows between steps. Parallel layers have a step for each branch that adds its part to the result, so that
//! a value may have several writers and several readers; in reverse the last reader writes its cotangent first, and the
//! others add to it.

use std::ops::Range;

use super::slots::{Lifetime, Slots};
use crate::compute::{OfPrecision, Real};
use crate::network::Composition;
use crate::network::layer::activation::ElementwiseActivation;
use crate::network::layer::batch_norm::Normalise;
use crate::network::layer::parallel::Merge;
use crate::network::layer::pooling::{Largest, Mean};
use crate::network::layer::{Combination, Dense, Layer, Parallel, Shape, ShapeError, output_shape};
use crate::network::operation::Operation;

/// One operation, from one value to another.
#[derive(Debug)]
pub(super) struct OperationStep<R> {
    pub operation: Box<dyn Operation<R>>,
    pub input: usize,
    pub output: usize,
    /// Its own among all parameters.
    pub weights: Range<usize>,
    /// Its own among all transposed weights.
    pub transposed: Range<usize>,
    /// Its own among all matrices of Kronecker-factored curvature.
    pub kronecker: Range<usize>,
    /// Where derivatives are kept: a thing of [`Memory::values`], and whether the input's own buffer is that.
    pub derivative: Option<(usize, bool)>,
    /// Whether other readers of the input have written its cotangent before, in reverse.
    pub adds_cotangent: bool,
}

/// Steps with the memory that they run in.
#[derive(Debug)]
pub(super) struct Program<R> {
    pub steps: Vec<OperationStep<R>>,
    /// Features of each value; the first is the network's input.
    pub values: Vec<usize>,
    /// What the readout reads, and what it writes.
    pub features: usize,
    pub outputs: usize,
    pub parameters: usize,
    pub transposed: usize,
    pub kronecker: usize,
    /// With nothing kept, for forward passes alone.
    pub forward: Slots,
    pub memory: Memory,
}

/// Buffers of passes that differentiate; numbers are of one sample.
#[derive(Debug)]
pub(super) struct Memory {
    /// Values, and after them derivatives that have no value's place.
    pub values: Slots,
    /// Second derivatives of the steps that have derivatives, in order.
    pub second: Vec<usize>,
    /// Tangents of values when they are only carried forward.
    pub tangents: Slots,
    /// Tangents of values when they are kept, as Hessian-vector products need.
    pub kept_tangents: Slots,
    /// Cotangents of values, and their tangents.
    pub cotangents: Slots,
}

/// What there is while steps are being added.
struct Builder<R> {
    steps: Vec<OperationStep<R>>,
    values: Vec<usize>,
    parameters: usize,
    transposed: usize,
    kronecker: usize,
}

impl<R: Real> Program<R> {
    /// # Errors
    /// The first layer that does not fit.
    pub fn new(network: &Composition) -> Result<Self, ShapeError> {
        R::of_precision(OfNetwork(network))
    }

    fn of_network(network: &Composition) -> Result<Self, ShapeError> {
        let shapes = network.shapes()?;
        let mut builder = Builder {
            steps: Vec::new(),
            values: vec![network.input.features()],
            parameters: 0,
            transposed: 0,
            kronecker: 0,
        };
        let mut features = 0;
        for (layer, &shape) in network.layers.iter().zip(&shapes) {
            features = builder.layer(layer, shape, features);
        }
        let readout = Dense {
            units: network.outputs,
            scale: network.readout_scale,
        };
        let flat = Shape::vector(builder.values[features]);
        let outputs = builder.value(network.outputs);
        builder.step(readout.with_bias_row(flat, true), features, outputs);
        Ok(builder.finish(features, outputs))
    }
}

/// The program of a network.
struct OfNetwork<'a>(&'a Composition);

impl OfPrecision for OfNetwork<'_> {
    type Of<R: Real> = Result<Program<R>, ShapeError>;

    fn single(self) -> Result<Program<f32>, ShapeError> {
        Program::of_network(self.0)
    }
    fn double(self) -> Result<Program<f64>, ShapeError> {
        Program::of_network(self.0)
    }
}

impl<R: Real> Builder<R> {
    fn value(&mut self, features: usize) -> usize {
        self.values.push(features);
        self.values.len() - 1
    }

    fn step(&mut self, operation: impl Operation<R> + 'static, input: usize, output: usize) {
        let weights = self.parameters..self.parameters + operation.parameters();
        let transposed = self.transposed..self.transposed + operation.transposed_len();
        let kronecker = self.kronecker..self.kronecker + operation.kronecker_len();
        (self.parameters, self.transposed, self.kronecker) =
            (weights.end, transposed.end, kronecker.end);
        self.steps.push(OperationStep {
            operation: Box::new(operation),
            input,
            output,
            weights,
            transposed,
            kronecker,
            derivative: None,
            adds_cotangent: false,
        });
    }

    /// Adds the layer's steps; its output's value.
    fn layer(&mut self, layer: &Layer, shape: Shape, input: usize) -> usize {
        let after = output_shape(layer, shape, "").map_or(0, |shape| shape.features());
        let output = match layer {
            Layer::Flatten => return input,
            _ => self.value(after),
        };
        match layer {
            Layer::Dense(layer) => self.step(layer.operation(shape), input, output),
            Layer::Convolution(layer) => self.step(layer.operation(shape), input, output),
            Layer::Activation { function } => {
                self.step(ElementwiseActivation(*function), input, output)
            }
            Layer::AveragePool(window) => self.step(Mean::new(window, shape), input, output),
            Layer::MaxPool(window) => self.step(Largest::new(window, shape), input, output),
            Layer::GlobalAveragePool => self.step(Mean::global(shape), input, output),
            Layer::BatchNorm(layer) => {
                self.step(Normalise::new(layer, shape.channels), input, output);
            }
            Layer::Parallel(layer) => self.parallel(layer, shape, input, output),
            Layer::Flatten => {}
        }
        output
    }

    fn parallel(&mut self, layer: &Parallel, shape: Shape, input: usize, output: usize) {
        let mut ends = Vec::new();
        for branch in &layer.branches {
            let (mut value, mut shape) = (input, shape);
            for layer in &branch.layers {
                value = self.layer(layer, shape, value);
                shape = output_shape(layer, shape, "").unwrap_or(shape);
            }
            ends.push((value, shape.channels, branch.factor));
        }
        let is_sum = layer.combination == Combination::Sum;
        let all = if is_sum {
            ends.first().map_or(0, |end| end.1)
        } else {
            ends.iter().map(|end| end.1).sum()
        };
        let mut first = 0;
        for (index, (value, channels, factor)) in ends.into_iter().enumerate() {
            let merge = Merge {
                factor,
                channels: [channels, all],
                first,
                adds: is_sum && index > 0,
            };
            self.step(merge, value, output);
            if !is_sum {
                first += channels;
            }
        }
    }

    /// Decides what is kept where.
    fn finish(mut self, features: usize, outputs: usize) -> Program<R> {
        let (steps, values) = (&mut self.steps, &self.values);
        let count = values.len();
        // steps run at times 1, 2, …; the input is there at 0 and the outputs are read at `end`
        let end = steps.len() + 1;
        let (mut written, mut read, mut readers) =
            (vec![end; count], vec![0; count], vec![0; count]);
        let (mut kept, mut kept_output) = (vec![false; count], vec![false; count]);
        written[0] = 0;
        for (time, step) in (1..).zip(&*steps) {
            written[step.output] = written[step.output].min(time);
            read[step.input] = time;
            readers[step.input] += 1;
            let keeps = step.operation.keeps();
            kept[step.input] |= keeps.input;
            kept_output[step.output] |= keeps.output;
        }
        read[outputs] = end;
        let lifetimes = |keeps: &dyn Fn(usize) -> bool| -> Vec<Lifetime> {
            let lifetime = |value: usize| Lifetime {
                first: written[value],
                last: if keeps(value) {
                    end
                } else {
                    read[value].max(written[value])
                },
                length: values[value],
            };
            (0..count).map(lifetime).collect()
        };
        let mut things = lifetimes(&|value| kept[value] || kept_output[value]);
        let mut second = Vec::new();
        for (time, step) in (1..).zip(&mut *steps) {
            step.adds_cotangent = read[step.input] != time;
            if step.operation.keeps().derivative {
                let input = step.input;
                second.push(values[input]);
                let is_own = input > 0
                    && readers[input] == 1
                    && !(kept[input] || kept_output[input])
                    && input != features;
                if is_own {
                    things[input].last = end;
                    step.derivative = Some((input, true));
                } else {
                    step.derivative = Some((things.len(), false));
                    things.push(Lifetime {
                        first: time,
                        last: end,
                        length: values[input],
                    });
                }
            }
        }
        let backward = |value: usize| Lifetime {
            first: end - read[value],
            last: end - written[value],
            length: values[value],
        };
        let cotangents: Vec<Lifetime> = (0..count).map(backward).collect();
        let memory = Memory {
            values: Slots::new(&things),
            second,
            tangents: Slots::new(&lifetimes(&|_| false)),
            kept_tangents: Slots::new(&lifetimes(&|_| true)),
            cotangents: Slots::new(&cotangents),
        };
        Program {
            forward: Slots::new(&lifetimes(&|_| false)),
            memory,
            features,
            outputs,
            parameters: self.parameters,
            transposed: self.transposed,
            kronecker: self.kronecker,
            steps: self.steps,
            values: self.values,
        }
    }
}
