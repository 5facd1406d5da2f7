//! Steps that covariances go through, with just the displacements that the layers above need.
//!
//! Planned from the top down: the readout needs the pairs of equal pixels, displacement 0; a mean over windows needs all
//! displacements between pixels of a window; a convolution of stride 1 those that its output needs. A network that is
//! flattened without pooling so costs pixels, not pixels², per pair of images.

use super::super::Activation;
use super::super::layer::{AxisTerms, Flattened, GlobalMean, Layer, Shape, Term, output_shape};
use super::axis::AxisMap;

/// Sorted displacements of rows and of columns; a pair of pixels has one of each.
pub(super) type Displacements = [Vec<usize>; 2];

/// One step.
#[derive(Debug, Clone)]
pub(super) enum KernelStep {
    /// K ← weight·K + bias, Θ ← weight·Θ + K.
    Scale { weight: f64, bias: f64 },
    /// A linear map of rows, then of columns.
    Linear(AxisMaps),
    /// The map of an activation, whose variances are those of `node`.
    Activation {
        function: Activation,
        node: usize,
        displacements: Displacements,
    },
    /// Branches with the same input, added up.
    Parallel { branches: Vec<BranchPlan> },
}

/// Maps along both axes.
#[derive(Debug, Clone)]
pub(super) struct AxisMaps {
    pub axes: [AxisMap; 2],
    /// Rows and columns of pixels of the output.
    pub output: [usize; 2],
}

/// One branch.
#[derive(Debug, Clone)]
pub(super) struct BranchPlan {
    /// Which of the input's displacements, by their place in its lists.
    pub select: Displacements,
    /// What the result is multiplied by.
    pub factor: f64,
    pub steps: Vec<KernelStep>,
}

/// Activations of `layers`, those in branches included.
pub(super) fn activations(layers: &[Layer]) -> usize {
    let count = |layer: &Layer| match layer {
        Layer::Activation { .. } => 1,
        Layer::Parallel(parallel) => {
            let branches = parallel.branches.iter();
            branches.map(|branch| activations(&branch.layers)).sum()
        }
        _ => 0,
    };
    layers.iter().map(count).sum()
}

/// Rows and columns of pixels at each activation, in their order. The layers must fit.
pub(super) fn node_shapes(layers: &[Layer], mut shape: Shape, nodes: &mut Vec<[usize; 2]>) {
    for layer in layers {
        match layer {
            Layer::Activation { .. } => nodes.push([shape.height, shape.width]),
            Layer::Parallel(parallel) => {
                for branch in &parallel.branches {
                    node_shapes(&branch.layers, shape, nodes);
                }
            }
            _ => {}
        }
        shape = above(layer, shape);
    }
}

/// The shape above a layer that fits.
pub(super) fn above(layer: &Layer, shape: Shape) -> Shape {
    output_shape(layer, shape, "").unwrap_or(shape)
}

/// Shapes below each layer and above the last.
pub(super) fn shapes(layers: &[Layer], mut shape: Shape) -> Vec<Shape> {
    let mut shapes = vec![shape];
    for layer in layers {
        shape = above(layer, shape);
        shapes.push(shape);
    }
    shapes
}

/// The linear map of a layer that has one.
pub(super) fn axis_terms(layer: &Layer) -> Option<&dyn AxisTerms> {
    match layer {
        Layer::Convolution(layer) => Some(layer),
        Layer::AveragePool(layer) => Some(layer),
        Layer::GlobalAveragePool => Some(&GlobalMean),
        Layer::Flatten => Some(&Flattened),
        _ => None,
    }
}

/// Displacements that `layer` needs of its input for `outputs`.
pub(super) fn needed(
    layer: &dyn AxisTerms,
    input: Shape,
    outputs: &Displacements,
) -> Displacements {
    [
        layer.needed(0, input.height, &outputs[0]),
        layer.needed(1, input.width, &outputs[1]),
    ]
}

/// The linear step of `layer` between displacements of its input and output.
pub(super) fn linear(
    layer: &dyn AxisTerms,
    input: Shape,
    inputs: &Displacements,
    outputs: &Displacements,
) -> AxisMaps {
    let lengths = [input.height, input.width];
    let axes =
        [0, 1].map(|axis| AxisMap::new(layer, axis, lengths[axis], &inputs[axis], &outputs[axis]));
    AxisMaps {
        axes,
        output: [0, 1].map(|axis| layer.output_length(axis, lengths[axis])),
    }
}

/// Steps through `layers`, of which the first activation is number `node`, for displacements `outputs` above them; and the
/// displacements that they need of the input. The layers must fit and have kernel maps.
pub(super) fn steps(
    layers: &[Layer],
    input: Shape,
    node: usize,
    outputs: Displacements,
) -> (Displacements, Vec<KernelStep>) {
    let shapes = shapes(layers, input);
    let mut node = node + activations(layers);
    let mut wanted = outputs;
    let mut reversed = Vec::new();
    for (layer, &shape) in layers.iter().zip(&shapes).rev() {
        match layer {
            Layer::Dense(layer) => {
                let [weight, bias] = layer.covariance_scale();
                reversed.push(KernelStep::Scale { weight, bias });
            }
            Layer::Convolution(layer) => {
                let [weight, bias] = layer.covariance_scale();
                reversed.push(KernelStep::Scale { weight, bias });
            }
            &Layer::Activation { function } => {
                node -= 1;
                reversed.push(KernelStep::Activation {
                    function,
                    node,
                    displacements: wanted.clone(),
                });
            }
            Layer::Parallel(parallel) => {
                let mut outputs = Vec::new();
                let mut branches = Vec::new();
                for branch in parallel.branches.iter().rev() {
                    node -= activations(&branch.layers);
                    branches.push(steps(&branch.layers, shape, node, wanted.clone()));
                    let above = branch.layers.iter().fold(shape, |s, layer| above(layer, s));
                    outputs.push(above);
                }
                branches.reverse();
                outputs.reverse();
                wanted = [0, 1].map(|axis| {
                    let mut union: Vec<usize> =
                        branches.iter().flat_map(|b| b.0[axis].clone()).collect();
                    union.sort_unstable();
                    union.dedup();
                    union
                });
                let factors = parallel.covariance_factors(&outputs);
                let branches = branches.into_iter().zip(factors);
                let plan = |((needed, steps), factor): ((Displacements, _), _)| BranchPlan {
                    select: [0, 1].map(|axis: usize| places(&wanted[axis], &needed[axis])),
                    factor,
                    steps,
                };
                let branches = branches.map(plan).collect();
                reversed.push(KernelStep::Parallel { branches });
            }
            Layer::AveragePool(_)
            | Layer::GlobalAveragePool
            | Layer::Flatten
            | Layer::MaxPool(_)
            | Layer::BatchNorm(_) => {}
        }
        if let Some(terms) = axis_terms(layer) {
            let inputs = needed(terms, shape, &wanted);
            reversed.push(KernelStep::Linear(linear(terms, shape, &inputs, &wanted)));
            wanted = inputs;
        }
    }
    reversed.reverse();
    (wanted, reversed)
}

/// Where each of `some` is in `all`.
fn places(all: &[usize], some: &[usize]) -> Vec<usize> {
    some.iter()
        .filter_map(|displacement| all.binary_search(displacement).ok())
        .collect()
}

/// How many covariances the layers work on for `outputs`: the cost of a plan, in numbers.
pub(super) fn cost(layers: &[Layer], input: Shape, outputs: &Displacements) -> usize {
    let shapes = shapes(layers, input);
    let count =
        |shape: &Shape, wanted: &Displacements| shape.pixels() * wanted[0].len() * wanted[1].len();
    let mut wanted = outputs.clone();
    let mut total = 0;
    for (index, layer) in layers.iter().enumerate().rev() {
        total += count(&shapes[index + 1], &wanted);
        if let Some(terms) = axis_terms(layer) {
            wanted = needed(terms, shapes[index], &wanted);
        } else if let Layer::Parallel(parallel) = layer {
            let branches = parallel.branches.iter();
            let costs = branches.map(|branch| cost(&branch.layers, shapes[index], &wanted));
            total += costs.sum::<usize>();
            wanted = steps(std::slice::from_ref(layer), shapes[index], 0, wanted).0;
        }
    }
    total + count(&shapes[0], &wanted)
}

/// Multiplies all σ_w² and σ_b².
pub(super) fn scale(steps: &mut [KernelStep], weight_factor: f64, bias_factor: f64) {
    for step in steps {
        match step {
            KernelStep::Scale { weight, bias } => {
                *weight *= weight_factor;
                *bias *= bias_factor;
            }
            KernelStep::Parallel { branches } => {
                for branch in branches {
                    scale(&mut branch.steps, weight_factor, bias_factor);
                }
            }
            KernelStep::Linear(_) | KernelStep::Activation { .. } => {}
        }
    }
}

/// Whether any σ_b is positive.
pub(super) fn has_bias(steps: &[KernelStep]) -> bool {
    steps.iter().any(|step| match step {
        KernelStep::Scale { bias, .. } => *bias > 0.0,
        KernelStep::Parallel { branches } => branches.iter().any(|branch| has_bias(&branch.steps)),
        KernelStep::Linear(_) | KernelStep::Activation { .. } => false,
    })
}

/// No layer at all, as a linear map.
pub(super) struct Unchanged;

impl AxisTerms for Unchanged {
    fn output_length(&self, _: usize, length: usize) -> usize {
        length
    }

    fn terms(&self, _: usize, _: usize, displacement: usize, position: usize) -> Vec<Term> {
        vec![Term {
            displacement,
            position,
            weight: 1.0,
        }]
    }
}

/// `all` displacements above `layers` in parts: one by one, or row displacement by row displacement, or all at once, where
/// smaller parts would repeat too much of the work below.
pub(super) fn chunks(layers: &[Layer], input: Shape, all: &Displacements) -> Vec<Displacements> {
    let whole = vec![all.clone()];
    let rows: Vec<Displacements> = all[0]
        .iter()
        .map(|&down| [vec![down], all[1].clone()])
        .collect();
    let single: Vec<Displacements> = rows
        .iter()
        .flat_map(|row| row[1].iter().map(|&right| [row[0].clone(), vec![right]]))
        .collect();
    let total = |chunks: &[Displacements]| -> usize {
        chunks.iter().map(|chunk| cost(layers, input, chunk)).sum()
    };
    let least = total(&whole);
    // a tenth more is made up for by the caches
    [single, rows]
        .into_iter()
        .find(|chunks| total(chunks) <= least + least / 10)
        .unwrap_or(whole)
}
