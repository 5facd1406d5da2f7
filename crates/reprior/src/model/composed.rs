//! A model's network layer by layer, as it meets the model's design: what derivatives of all parameters are taken of.

use super::Model;
use crate::compute::Real;
use crate::network::layer::{Dense, Layer, Shape};
use crate::network::{Composition, LayerScale};

impl<R: Real> Model<R> {
    /// The network whose inputs are the first columns of the [design](Model::design), as many as [`Composition::input`] says,
    /// and whose parameters are a position in `standard` coordinates with the noise known: inner weights (the first layer's
    /// reduced where inputs are), then the readout.
    pub fn composed(&self) -> Composition {
        let architecture = &self.architecture;
        let Some((&first, above)) = architecture.hidden.split_first() else {
            // a composition, or a linear model whose constant column is its readout's own
            return architecture.to_composition();
        };
        let function = architecture.activation;
        let columns = self.design.columns();
        // the design has scale and bias of the first layer
        let scale = LayerScale {
            weight: (columns as f64).sqrt(),
            bias: 0.0,
        };
        let mut layers = vec![
            Layer::Dense(Dense {
                units: first,
                scale,
            }),
            Layer::Activation { function },
        ];
        for (&units, scale) in above.iter().zip(&architecture.hidden_scales[1..]) {
            // positions have a bias even where it does nothing; a composition's layer has it only where σ_b > 0
            let bias = scale.bias.max(f64::MIN_POSITIVE);
            let scale = LayerScale { bias, ..*scale };
            layers.push(Layer::Dense(Dense { units, scale }));
            layers.push(Layer::Activation { function });
        }
        Composition {
            input: Shape::vector(columns),
            layers,
            outputs: architecture.outputs,
            readout_scale: architecture.readout_scale,
        }
    }
}
