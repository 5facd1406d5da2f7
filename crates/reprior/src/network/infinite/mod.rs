//! Kernels of networks whose layers are infinitely wide: the covariance K of an output's prior (NNGP) and the tangent
//! kernel Θ (NTK), in double precision.
//!
//! All layers are in the NTK parametrisation, so that Θ is the limit of J·Jᵀ over every weight and bias, readout included,
//! for one output; different outputs are independent. Sources: Neal 1996; Lee et al. 2018 (dense); Jacot, Gabriel & Hongler
//! 2018 (NTK); Novak et al. 2019 and Arora et al. 2019 (convolutions and pooling). Each layer's map is at the end of its own
//! file in [`layer`](super::layer); the recursion through all layers is in `ntk_recursion`.
//!
//! **Order of work.** First every image by itself, for the variances that activations need; then pairs of images, a few at a
//! time. Below the last pooling displacements between pixels (see `axis`) are independent of one another: they are led
//! through the layers a few at a time and added up, so that the numbers at hand stay in the nearest caches. Vectors begin with
//! one matrix product.
//!
//! **Cost.** For n vectors of d numbers n²d operations, then some 20 to 60 per pair and activation. For n images
//! of p pixels n²/2 times the layers times p (flattened without pooling) or p² (pooled over all pixels). Memory beyond the
//! results: of vectors 1,024 numbers each, the variances (n × pixels of all activations), and per thread a few thousand numbers.
//! Results do not depend on the number of threads.

mod axis;
pub mod by_scales;
mod check;
mod gram;
mod ntk_recursion;
mod pairs;
mod plan;
mod samples;

use thiserror::Error;

use super::Composition;
use super::layer::{Dense, Layer, Shape, ShapeError};
use crate::compute::{Matrix, mirror_lower};
use plan::{AxisMaps, Displacements, KernelStep};
use samples::Samples;

/// Why there is no kernel.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum InfiniteError {
    /// A layer that does not fit what is below it.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A layer without a closed map of covariances, or not after what is below it.
    #[error("layer {layer} has no infinitely wide limit here: {reason}")]
    NoKernel {
        /// Which layer.
        layer: String,
        /// Why, and what to do instead.
        reason: String,
    },
    /// Inputs that are not of the network's shape.
    #[error("inputs have {given} columns, the network takes {needed} numbers")]
    Columns {
        /// Columns of the inputs.
        given: usize,
        /// Numbers of one input.
        needed: usize,
    },
    /// An input that is NaN or infinite.
    #[error("input {row} has a number that is not finite: remove it or fill it in")]
    NotFinite {
        /// Which input, from 1.
        row: usize,
    },
}

/// Which kernels are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    /// K alone.
    Nngp,
    /// K and Θ: about twice the work and memory.
    NngpAndNtk,
}

/// Kernel matrices between two sets of inputs, column-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernels {
    /// Inputs of the first set.
    pub rows: usize,
    /// Inputs of the second set.
    pub columns: usize,
    /// K: rows × columns.
    pub nngp: Vec<f64>,
    /// Θ: rows × columns; empty if it was not wanted.
    pub ntk: Vec<f64>,
}

impl Kernels {
    fn zeros(rows: usize, columns: usize, kinds: Kinds) -> Self {
        let nngp = vec![0.0; rows * columns];
        let ntk = match kinds {
            Kinds::Nngp => Vec::new(),
            Kinds::NngpAndNtk => nngp.clone(),
        };
        Self {
            rows,
            columns,
            nngp,
            ntk,
        }
    }
}

/// A network with infinitely wide layers: its widths do not matter, its scales do.
#[derive(Debug, Clone)]
pub struct InfiniteNetwork {
    /// A vector if the network begins by flattening its input.
    input: Shape,
    /// Rows and columns of pixels at each activation.
    nodes: Vec<[usize; 2]>,
    /// Each image by itself, as far as the last activation below the cut.
    own: (Displacements, Vec<KernelStep>),
    /// Up to the cut: the last pooling, or the readout.
    lower: Vec<DisplacementChunk>,
    /// What the cut leads to: counts of displacements, rows and columns of pixels.
    cut: [[usize; 2]; 2],
    /// Above the cut.
    upper: Vec<KernelStep>,
    /// Activations above the cut.
    upper_nodes: usize,
    /// Pairs of images at a time.
    batch: usize,
}

/// Some of the displacements below the cut.
#[derive(Debug, Clone)]
struct DisplacementChunk {
    inputs: Displacements,
    steps: Vec<KernelStep>,
    /// What they contribute to the cut's output.
    cut: AxisMaps,
}

/// Numbers in one set of planes: with Θ, variances and the like, what the nearest caches hold.
const PLANE: usize = 2048;
/// Pairs at a time: of images, of vectors.
const BATCH: [usize; 2] = [16, 512];

impl InfiniteNetwork {
    /// Plans the work for a network.
    ///
    /// # Errors
    /// [`InfiniteError::Shape`] if its layers do not fit, [`InfiniteError::NoKernel`] if they do not have a limit that
    /// covariances describe: max-pooling, batch normalisation, an activation on the data themselves or right after another,
    /// a sum of correlated branches.
    pub fn new(network: &Composition) -> Result<Self, InfiniteError> {
        let mut layers = network.layers.clone();
        let place = |number: usize| number.to_string();
        check::law_above(&layers, network.input, check::ChannelLaw::INPUT, &place)?;
        let readout = Dense {
            units: network.outputs,
            scale: network.readout_scale,
        };
        layers.extend([Layer::Flatten, Layer::Dense(readout)]);
        let readout = &layers[layers.len() - 1..];
        check::law_above(readout, Shape::vector(1), check::ChannelLaw::INPUT, &|_| {
            "of the readout".into()
        })?;
        let mut input = network.input;
        if layers[0] == Layer::Flatten {
            input = Shape::vector(input.features());
            layers.remove(0);
        }
        if input.pixels() == 1 {
            // nothing to flatten: the cut would come early
            layers.retain(|layer| *layer != Layer::Flatten);
        }
        let mut nodes = Vec::new();
        plan::node_shapes(&layers, input, &mut nodes);
        Ok(Self::planned(&layers, input, nodes))
    }

    fn planned(layers: &[Layer], input: Shape, nodes: Vec<[usize; 2]>) -> Self {
        let zero: Displacements = [vec![0], vec![0]];
        let is_pool =
            |layer: &Layer| matches!(layer, Layer::AveragePool(_) | Layer::GlobalAveragePool);
        let shapes = plan::shapes(layers, input);
        // without pooling the flattening is as good a cut, and with vectors, where there is none, the readout
        let cut = layers.iter().rposition(is_pool);
        let cut = cut.or_else(|| layers.iter().position(|layer| *layer == Layer::Flatten));
        let (below, above) = match cut {
            Some(cut) => (&layers[..cut], &layers[cut + 1..]),
            None => (layers, &layers[layers.len()..]),
        };
        let (wanted, upper) = plan::steps(
            above,
            shapes[cut.map_or(layers.len(), |cut| cut + 1)],
            plan::activations(below),
            zero.clone(),
        );
        let shape = shapes[below.len()];
        let identity = plan::Unchanged;
        let terms = cut
            .and_then(|cut| plan::axis_terms(&layers[cut]))
            .unwrap_or(&identity);
        let needed = plan::needed(terms, shape, &wanted);
        let lower: Vec<DisplacementChunk> = plan::chunks(below, input, &needed)
            .into_iter()
            .map(|outputs| {
                let cut = plan::linear(terms, shape, &outputs, &wanted);
                let (inputs, steps) = plan::steps(below, input, 0, outputs);
                DisplacementChunk { inputs, steps, cut }
            })
            .collect();
        let output = lower.first().map_or([1, 1], |chunk| chunk.cut.output);
        let last = below
            .iter()
            .rposition(|layer| plan::activations(std::slice::from_ref(layer)) > 0);
        let own = plan::steps(&below[..last.map_or(0, |last| last + 1)], input, 0, zero);
        let numbers = |chunk: &DisplacementChunk| {
            chunk.inputs[0].len() * chunk.inputs[1].len() * input.pixels()
        };
        let most = lower.iter().map(numbers).max().unwrap_or(1);
        let batch = if input.pixels() == 1 {
            BATCH[1]
        } else {
            (PLANE / most).clamp(1, BATCH[0])
        };
        Self {
            input,
            nodes,
            own,
            lower,
            cut: [[wanted[0].len(), wanted[1].len()], output],
            upper_nodes: plan::activations(above),
            upper,
            batch,
        }
    }

    /// The same network with all σ_w multiplied by `weight` and all σ_b by `bias`, the readout's included.
    #[must_use]
    pub fn scaled(&self, weight: f64, bias: f64) -> Self {
        let mut scaled = self.clone();
        let lower = scaled.lower.iter_mut().map(|chunk| &mut chunk.steps);
        for steps in lower.chain([&mut scaled.own.1, &mut scaled.upper]) {
            plan::scale(steps, weight * weight, bias * bias);
        }
        scaled
    }

    /// Whether any layer has σ_b > 0.
    pub fn has_bias(&self) -> bool {
        plan::has_bias(&self.upper) || self.lower.iter().any(|chunk| plan::has_bias(&chunk.steps))
    }

    /// Numbers of one input.
    pub fn inputs(&self) -> usize {
        self.input.features()
    }

    /// K and Θ between all pairs of `inputs` (n × features, feature (row·width + column)·channels + channel).
    ///
    /// # Errors
    /// [`InfiniteError::Columns`], [`InfiniteError::NotFinite`].
    pub fn kernels(
        &self,
        inputs: Matrix<'_, f64>,
        kinds: Kinds,
        threads: usize,
    ) -> Result<Kernels, InfiniteError> {
        self.check(inputs)?;
        let n = inputs.nrows();
        let mut out = Kernels::zeros(n, n, kinds);
        let mut samples = Samples::new(self, inputs);
        if self.input.pixels() == 1 {
            gram::products(&mut out.nngp, inputs, inputs, true, threads);
            samples.squares = (0..n).map(|i| out.nngp[i * (n + 1)]).collect();
        }
        self.fill_variances(&mut samples, threads);
        self.fill(&mut out, &samples, &samples, true, threads);
        for kernel in [&mut out.nngp, &mut out.ntk] {
            if !kernel.is_empty() {
                mirror_lower(kernel, n);
            }
        }
        Ok(out)
    }

    /// K and Θ between `first` (the rows) and `second` (the columns).
    ///
    /// # Errors
    /// As [`kernels`](Self::kernels).
    pub fn cross_kernels(
        &self,
        first: Matrix<'_, f64>,
        second: Matrix<'_, f64>,
        kinds: Kinds,
        threads: usize,
    ) -> Result<Kernels, InfiniteError> {
        self.check(first)?;
        self.check(second)?;
        let mut out = Kernels::zeros(first.nrows(), second.nrows(), kinds);
        let [a, b] = [first, second].map(|inputs| self.samples(inputs, threads));
        if self.input.pixels() == 1 {
            gram::products(&mut out.nngp, first, second, false, threads);
        }
        self.fill(&mut out, &a, &b, false, threads);
        Ok(out)
    }

    /// K and Θ of every input with itself: n × 1.
    ///
    /// # Errors
    /// As [`kernels`](Self::kernels).
    pub fn diagonals(
        &self,
        inputs: Matrix<'_, f64>,
        kinds: Kinds,
        threads: usize,
    ) -> Result<Kernels, InfiniteError> {
        self.check(inputs)?;
        let mut out = Kernels::zeros(inputs.nrows(), 1, kinds);
        let samples = self.samples(inputs, threads);
        self.fill_diagonals(&mut out, &samples, threads);
        Ok(out)
    }

    fn samples<'a>(&self, inputs: Matrix<'a, f64>, threads: usize) -> Samples<'a> {
        let mut samples = Samples::new(self, inputs);
        if self.input.pixels() == 1 {
            samples.squares = gram::squares(inputs);
        }
        self.fill_variances(&mut samples, threads);
        samples
    }

    fn check(&self, inputs: Matrix<'_, f64>) -> Result<(), InfiniteError> {
        let (given, needed) = (inputs.ncols(), self.inputs());
        if given != needed {
            return Err(InfiniteError::Columns { given, needed });
        }
        // column by column: in the order of most matrices
        let mut row = usize::MAX;
        for column in inputs.col_iter() {
            if let Some(at) = column.iter().position(|value| !value.is_finite()) {
                row = row.min(at + 1);
            }
        }
        if row == usize::MAX {
            Ok(())
        } else {
            Err(InfiniteError::NotFinite { row })
        }
    }
}
