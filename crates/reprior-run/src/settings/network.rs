//! Which network is asked for: by name, or layer by layer in a TOML file; and the order in which it takes pixels.

use std::path::Path;

use reprior::compute::Real;
use reprior::model::InputReduction;
use reprior::model::dataset::InputKind;
use reprior::network::layer::{Layer, Shape};
use reprior::network::named::NamedNetwork;
use reprior::network::{Composition, LayerScale};
use reprior_io::regular;
use serde::Deserialize;

use super::model::ModelSettings;
use crate::failure::Failure;
use crate::words::short;

/// What `network` is called in the settings once its layers have been read from a file.
const LAYERS: &str = "layers";

/// Prior variance of biases where nothing else is said.
const BIAS_VARIANCE: f64 = 0.01;

/// A network that is left to the data.
pub(crate) const NETWORK_AUTO: &str = "auto";

/// Widest hidden layer, and most weights between hidden layers, whose memory is counted rather than refused outright;
/// beyond them the count itself would not fit in 64 bits.
const MOST_WIDTH: usize = 10_000_000;
const MOST_WEIGHTS: f64 = 1e15;

/// A file that describes a network: everything below the readout, as `[[layers]]` tables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkDescription {
    layers: Vec<Layer>,
}

impl ModelSettings {
    /// Reads the layers where the network is the path of a TOML file: they become part of the settings.
    ///
    /// # Errors
    /// A wrong request: a file that cannot be read or is not understood.
    pub fn read_network(&mut self) -> Result<(), Failure> {
        let path = Path::new(&self.network);
        if path.extension().is_none_or(|extension| extension != "toml") {
            return Ok(());
        }
        let refuse = |what: String| {
            Failure::request(format!(
                "the network's description `{}` {what}",
                path.display()
            ))
        };
        let text =
            regular::read_text(path).map_err(|error| refuse(format!("cannot be read: {error}")))?;
        let description: NetworkDescription =
            toml::from_str(&text).map_err(|error| refuse(format!("is not understood: {error}")))?;
        self.set_layers(description.layers);
        Ok(())
    }

    /// Takes layers in place of a name.
    pub fn set_layers(&mut self, layers: Vec<Layer>) {
        self.layers = Some(layers);
        LAYERS.clone_into(&mut self.network);
    }

    /// Whether the network is understood, whatever its data.
    ///
    /// # Errors
    /// A wrong request: an unknown name, variances out of range or of the wrong number.
    pub fn check_network(&self) -> Result<(), Failure> {
        if self.layers.is_some() {
            return self.one_scale().map(|_| ());
        }
        if self.network == NETWORK_AUTO {
            // as many variances as there will be hidden layers
            return Ok(());
        }
        match self.named()? {
            NamedNetwork::FullyConnected(hidden) => {
                let network = self.fully_connected(1, 1, hidden)?;
                network.check().map_err(Failure::request)
            }
            _ => self.one_scale().map(|_| ()),
        }
    }

    /// The network for data of this kind and with this many inputs and outputs.
    ///
    /// # Errors
    /// A wrong request: a network that is not understood or does not fit the data, variances out of range or of the wrong
    /// number, a reduction of inputs that only fully connected networks have.
    pub fn architecture(
        &self,
        kind: InputKind,
        inputs: usize,
        outputs: usize,
        reduction: InputReduction,
    ) -> Result<Composition, Failure> {
        let named = match &self.layers {
            Some(_) => None,
            None => match self.named()? {
                NamedNetwork::FullyConnected(hidden) => {
                    return self.fully_connected(inputs, outputs, hidden);
                }
                named => Some(named),
            },
        };
        let input = match kind {
            InputKind::Image {
                height,
                width,
                channels,
            } => Shape::from([height, width, channels]),
            InputKind::Table => Shape::vector(inputs),
        };
        let composition = match (named, &self.layers) {
            (Some(named), _) => named
                .network(input, outputs, self.activation, self.one_scale()?)
                .map_err(|error| {
                    Failure::request(format!("network `{}`: {error}", self.network))
                })?,
            (None, layers) => Composition {
                input,
                layers: layers.clone().unwrap_or_default(),
                outputs,
                readout_scale: LayerScale::READOUT,
            },
        };
        let readout_scale = self.readout_scale()?;
        let network = Composition {
            readout_scale,
            ..composition
        };
        network.check().map_err(Failure::request)?;
        if reduction == InputReduction::On && network.as_fully_connected().is_none() {
            return Err(Failure::request(
                "--input-reduction on needs a fully connected network (fcn:…): leave it out",
            ));
        }
        Ok(network)
    }

    fn named(&self) -> Result<NamedNetwork, Failure> {
        if self.network == "linear" {
            return Ok(NamedNetwork::FullyConnected(Vec::new()));
        }
        if self.network == LAYERS {
            return Err(Failure::request(
                "network `layers` has no layers: describe them as [[model.layers]], or give --network FILE.toml",
            ));
        }
        let name = self.network.split(':').next().unwrap_or_default();
        match self.network.parse() {
            Ok(NamedNetwork::FullyConnected(hidden)) if hidden.is_empty() => {}
            Ok(named) => return Ok(named),
            // what is wrong with the settings of a name that is known
            Err(error) if ["fcn", "resnet", "lenet", "resnet-small"].contains(&name) => {
                return Err(Failure::request(error));
            }
            Err(_) => {}
        }
        Err(Failure::request(format!(
            "unknown network `{}`: use auto, fcn:1024 (or other widths: fcn:256,256), linear, lenet, resnet:20,width=64, resnet-small, or a TOML file with its layers",
            self.network
        )))
    }

    fn fully_connected(
        &self,
        inputs: usize,
        outputs: usize,
        hidden: Vec<usize>,
    ) -> Result<Composition, Failure> {
        let joined = |pair: &[usize]| pair[0] as f64 * pair[1] as f64;
        let weights_between: f64 = hidden.windows(2).map(joined).sum();
        if hidden.iter().any(|&width| width > MOST_WIDTH) || weights_between > MOST_WEIGHTS {
            return Err(Failure::request(format!(
                "network `{}` is too wide for any machine: `reprior plan` says what fits this one",
                self.network
            )));
        }
        let per_layer = |variances: &[f64], name: &str| match (variances, hidden.len()) {
            ([], layers) => Ok(vec![BIAS_VARIANCE; layers]),
            ([one], layers) => Ok(vec![*one; layers]),
            (all, layers) if all.len() == layers => Ok(all.to_vec()),
            (all, layers) => Err(Failure::request(format!(
                "{} values of {name} for {layers} hidden layers: give one, or one per layer",
                all.len()
            ))),
        };
        let weights = per_layer(&self.weight_variance, "--weight-variance")?;
        let biases = per_layer(&self.bias_variance, "--bias-variance")?;
        let mut network = Composition::fully_connected(inputs, &hidden, outputs, self.activation);
        network.readout_scale = self.readout_scale()?;
        let variances = weights.into_iter().zip(biases);
        for (own, (weight, bias)) in network.hidden_scales_mut().into_iter().zip(variances) {
            *own = scale(weight, bias)?;
        }
        Ok(network)
    }

    fn readout_scale(&self) -> Result<LayerScale, Failure> {
        scale(
            self.readout_weight_variance.unwrap_or(1.0),
            self.readout_bias_variance.unwrap_or(BIAS_VARIANCE),
        )
    }

    /// Of all layers alike.
    fn one_scale(&self) -> Result<LayerScale, Failure> {
        self.readout_scale()?;
        match (
            self.weight_variance.as_slice(),
            self.bias_variance.as_slice(),
        ) {
            ([weight], []) => scale(*weight, BIAS_VARIANCE),
            ([weight], [bias]) => scale(*weight, *bias),
            _ => Err(Failure::request(format!(
                "network `{}` takes one --weight-variance and one --bias-variance for all of its layers",
                self.network
            ))),
        }
    }
}

fn scale(weight_variance: f64, bias_variance: f64) -> Result<LayerScale, Failure> {
    let checks = [
        (weight_variance, 0.0 < weight_variance),
        (bias_variance, 0.0 <= bias_variance),
    ];
    for (value, is_allowed) in checks {
        if !(is_allowed && value.is_finite()) {
            return Err(Failure::request(format!(
                "a prior variance is {}: weights need a positive one, biases zero or a positive one",
                short(value)
            )));
        }
    }
    Ok(LayerScale {
        weight: weight_variance.sqrt(),
        bias: bias_variance.sqrt(),
    })
}

/// Row-major inputs in the order that the network takes them: data come plane by plane, layers other than dense ones take
/// the channels of each pixel together.
pub fn arrange<R: Real>(architecture: &Composition, kind: InputKind, inputs: Vec<R>) -> Vec<R> {
    match kind {
        InputKind::Image {
            height,
            width,
            channels,
        } if architecture.input.pixels() > 1 && channels > 1 => {
            let pixels = height * width;
            let mut arranged = Vec::with_capacity(inputs.len());
            for image in inputs.chunks_exact(pixels * channels) {
                for pixel in 0..pixels {
                    arranged.extend((0..channels).map(|channel| image[channel * pixels + pixel]));
                }
            }
            arranged
        }
        _ => inputs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_become_pixels_for_convolutions_only() {
        let kind = InputKind::Image {
            height: 1,
            width: 2,
            channels: 3,
        };
        let planes: Vec<f64> = (0..12).map(f64::from).collect();
        let settings = |network: &str| ModelSettings {
            network: network.into(),
            ..ModelSettings::default()
        };
        let network = |name: &str| {
            settings(name)
                .architecture(kind, 6, 2, InputReduction::Auto)
                .unwrap()
        };
        assert_eq!(arrange(&network("fcn:4"), kind, planes.clone()), planes);
        let pixels = arrange(&network("resnet:8,width=2"), kind, planes);
        assert_eq!(pixels, [0., 2., 4., 1., 3., 5., 6., 8., 10., 7., 9., 11.]);
    }

    #[test]
    fn the_scaling_of_a_residual_network_is_recorded() {
        let resolved = |network: &str| {
            let mut settings = ModelSettings {
                network: network.to_owned(),
                ..ModelSettings::default()
            };
            settings.resolve();
            settings.network
        };
        assert_eq!(
            resolved("resnet:8,width=2"),
            "resnet:8,width=2,scaling=progressive-one"
        );
        for name in [
            "resnet:8,width=2,scaling=uniform",
            "fcn:4, 5",
            "lenet",
            "linear",
        ] {
            assert_eq!(resolved(name), name);
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_with_the_way_out() {
        let message = |network: &str, kind| {
            let settings = ModelSettings {
                network: network.into(),
                ..ModelSettings::default()
            };
            match settings.architecture(kind, 4, 1, InputReduction::Auto) {
                Err(Failure::Request(message)) => message,
                _ => String::new(),
            }
        };
        assert!(message("cnn", InputKind::Table).contains("lenet"));
        assert!(message("resnet:20", InputKind::Table).contains("width"));
        let found = message("lenet", InputKind::Table);
        assert!(
            found.contains("layer 1 (convolution)") && found.contains("1×1×4"),
            "{found}"
        );
    }
}
