//! Inputs with the variances of their activations, and some of them side by side as the covariances of a batch are.

use super::InfiniteNetwork;
use crate::compute::Matrix;

/// A set of inputs.
pub(super) struct Samples<'a> {
    pub inputs: Matrix<'a, f64>,
    /// Squared norms, of vectors.
    pub squares: Vec<f64>,
    /// Of every image, node by node, pixel by pixel.
    pub variances: Vec<f64>,
}

/// Images side by side: \[row]\[column]\[image], the columns once or twice.
#[derive(Debug, Default)]
pub(super) struct ImageBlock {
    /// Images of it.
    pub count: usize,
    /// Channel by channel; empty for vectors.
    pub inputs: Vec<f64>,
    /// Variances, node by node.
    pub nodes: Vec<Vec<f64>>,
}

impl<'a> Samples<'a> {
    /// Variances are still to be filled in, and so are squared norms.
    pub fn new(network: &InfiniteNetwork, inputs: Matrix<'a, f64>) -> Self {
        let variances = vec![0.0; inputs.nrows() * network.variances()];
        Self {
            inputs,
            squares: Vec::new(),
            variances,
        }
    }

    pub fn count(&self) -> usize {
        self.inputs.nrows()
    }

    /// Fills `block` with `count` images, of which `image` tells the number; their columns twice if they are the second
    /// ones of pairs. With just the first `nodes` nodes.
    pub fn pack(
        &self,
        network: &InfiniteNetwork,
        block: &mut ImageBlock,
        count: usize,
        image: impl Fn(usize) -> usize,
        is_second: bool,
        nodes: usize,
    ) {
        let times = if is_second { 2 } else { 1 };
        block.count = count;
        block.inputs.clear();
        if network.input.pixels() > 1 {
            let [height, width, channels]: [usize; 3] = network.input.into();
            for channel in 0..channels {
                for row in 0..height {
                    for column in (0..width * times).map(|column| column % width) {
                        let feature = (row * width + column) * channels + channel;
                        let values = (0..count).map(|b| self.inputs[(image(b), feature)]);
                        block.inputs.extend(values);
                    }
                }
            }
        }
        block.nodes.resize_with(network.nodes.len(), Vec::new);
        let (total, mut offset) = (network.variances(), 0);
        for (&[height, width], node) in network.nodes.iter().zip(&mut block.nodes).take(nodes) {
            node.clear();
            for row in 0..height {
                for column in (0..width * times).map(|column| column % width) {
                    let at = offset + row * width + column;
                    node.extend((0..count).map(|b| self.variances[image(b) * total + at]));
                }
            }
            offset += height * width;
        }
    }
}

impl InfiniteNetwork {
    /// Variances of one image at all activations.
    pub(super) fn variances(&self) -> usize {
        self.nodes
            .iter()
            .map(|[height, width]| height * width)
            .sum()
    }
}
