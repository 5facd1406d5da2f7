//! Scales of the prior's weights that are learned along with them: one for each input, or for all of them, and one for the weights of
//! every other layer below the readout.
//!
//! A scale is one more coordinate u ~ N(0, 1) of the chain's position, and multiplies weights that are N(0, 1) given it: those that the network has are s(u)·z
//! (the non-centred form, which leaves the posterior a density against the standard normal). Of an input that does not matter the scale becomes
//! small (automatic relevance determination, MacKay 1994 and Neal 1996). Biases and the readout keep their scales.

use crate::compute::Real;
use crate::network::Composition;
use crate::network::parameters::ParameterLayout;

use super::ModelError;
use super::noise::is_scale;

/// Prior of a learned scale, in units of the network's own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScalePrior {
    /// log s ~ N(0, spread²): s = exp(spread·u).
    LogNormal {
        /// Prior standard deviation of log s, positive.
        spread: f64,
    },
    /// s ~ |N(0, 1)|: s = |u|. The sign of u is that of weights whose prior has none.
    HalfNormal,
}

impl ScalePrior {
    /// What weights are multiplied by, whose size is the scale.
    fn factor(self, u: f64) -> f64 {
        match self {
            Self::LogNormal { spread } => (spread * u).exp(),
            Self::HalfNormal => u,
        }
    }

    /// The scale at a coordinate.
    pub fn scale(self, u: f64) -> f64 {
        self.factor(u).abs()
    }
}

/// Weights of one matrix of parameters: a group for each row of fan-in, or one for all.
#[derive(Debug, Clone)]
struct Block {
    /// Where the matrix begins among the inner parameters.
    start: usize,
    /// Rows of a unit, the bias included.
    rows: usize,
    units: usize,
    /// Rows with a scale, from the first on.
    scaled: usize,
    first_group: usize,
    /// Whether every row has a group of its own.
    by_row: bool,
}

/// Which weights share a learned scale.
#[derive(Debug, Clone)]
pub struct LearnedScales {
    prior: ScalePrior,
    blocks: Vec<Block>,
    count: usize,
}

impl LearnedScales {
    /// Groups of the weights below a network's readout, its inputs not reduced: one for every layer, or (`by_input`) one for each input of a fully
    /// connected network in place of its first layer's.
    ///
    /// # Errors
    /// A spread that is not positive and finite.
    pub fn new(
        prior: ScalePrior,
        network: &Composition,
        by_input: bool,
    ) -> Result<Self, ModelError> {
        if let ScalePrior::LogNormal { spread } = prior
            && !is_scale(spread)
        {
            return Err(ModelError::ScaleSpread(spread));
        }
        let inputs = network.inputs();
        let whole = network.with_design_columns(network.design_columns());
        let layout = ParameterLayout::new(&whole);
        let (mut blocks, mut count) = (Vec::new(), 0);
        for (index, layer) in layout.layers.iter().enumerate() {
            let is_inner = layer.range.end <= whole.inner_parameters();
            if !is_inner || layer.is_normalisation {
                continue;
            }
            let meets_inputs = index == 0 && network.as_fully_connected().is_some();
            let by_row = by_input && meets_inputs;
            // the first layer's bias is a column behind the inputs
            let scaled = match meets_inputs {
                true => inputs,
                false => layer.fan_in(),
            };
            blocks.push(Block {
                start: layer.range.start,
                rows: layer.rows,
                units: layer.units,
                scaled,
                first_group: count,
                by_row,
            });
            count += if by_row { inputs } else { 1 };
        }
        Ok(Self {
            prior,
            blocks,
            count,
        })
    }

    /// What each scale is of: an input, by its name, or the weights of a layer, by its number from 1.
    pub fn names(&self, inputs: &[String]) -> Vec<String> {
        let of_inputs = inputs.iter().take(self.of_inputs()).cloned();
        let by_input = usize::from(self.of_inputs() > 0);
        let of_layers = (by_input..self.blocks.len()).map(|layer| format!("layer {}", layer + 1));
        of_inputs.chain(of_layers).collect()
    }

    /// How many scales: coordinates of a position that they take.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many of them, the first, are those of inputs.
    pub fn of_inputs(&self) -> usize {
        let first = self.blocks.first().filter(|block| block.by_row);
        first.map_or(0, |block| block.scaled)
    }

    /// The scales at a position's coordinates.
    pub fn scales<'a, R: Real>(&self, coordinates: &'a [R]) -> impl Iterator<Item = f64> + 'a {
        let prior = self.prior;
        coordinates.iter().map(move |u| prior.scale(u.to_f64()))
    }

    /// What the weights of every group are multiplied by.
    pub(crate) fn factors<R: Real>(&self, coordinates: &[R], out: &mut [R]) {
        for (out, u) in out.iter_mut().zip(coordinates) {
            *out = R::from_f64(self.prior.factor(u.to_f64()));
        }
    }

    /// Multiplies numbers of inner weights by their groups' factors.
    pub(crate) fn multiply<R: Real>(&self, factors: &[R], weights: &mut [R]) {
        for block in &self.blocks {
            let own = &factors[block.first_group..];
            for unit in block.units_of(weights) {
                if block.by_row {
                    for (weight, &factor) in unit.iter_mut().zip(own) {
                        *weight *= factor;
                    }
                } else {
                    for weight in unit {
                        *weight *= own[0];
                    }
                }
            }
        }
    }

    /// ∂ℓ/∂u, given ∂ℓ/∂weights (before [`multiply`](Self::multiply)), inner coordinates z and the factors; `totals` is work space.
    pub(crate) fn pull_back<R: Real>(
        &self,
        [factors, inner, gradient]: [&[R]; 3],
        totals: &mut [f64],
        out: &mut [R],
    ) {
        totals.fill(0.0);
        for block in &self.blocks {
            let own = &mut totals[block.first_group..];
            let range = block.start..block.start + block.rows * block.units;
            let units = gradient[range.clone()].chunks_exact(block.rows);
            for (unit, z) in units.zip(inner[range].chunks_exact(block.rows)) {
                let products = unit.iter().zip(z).take(block.scaled);
                for (row, (g, z)) in products.enumerate() {
                    own[if block.by_row { row } else { 0 }] += g.to_f64() * z.to_f64();
                }
            }
        }
        for ((out, total), factor) in out.iter_mut().zip(totals).zip(factors) {
            *out = R::from_f64(match self.prior {
                ScalePrior::LogNormal { spread } => *total * spread * factor.to_f64(),
                ScalePrior::HalfNormal => *total,
            });
        }
    }
}

impl Block {
    /// The rows of every unit that have scales.
    fn units_of<'a, R>(&self, parameters: &'a mut [R]) -> impl Iterator<Item = &'a mut [R]> {
        let own = &mut parameters[self.start..self.start + self.rows * self.units];
        let scaled = self.scaled;
        own.chunks_exact_mut(self.rows)
            .map(move |unit| &mut unit[..scaled])
    }
}
