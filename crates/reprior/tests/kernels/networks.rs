//! Short ways to describe networks.

use reprior::compute::{Purpose, Stream};
use reprior::network::layer::{
    Branch, Combination, Convolution, Dense, Layer, Padding, Parallel, Shape, Window,
};
use reprior::network::{Activation, Composition, LayerScale};

pub fn dense() -> Layer {
    Layer::Dense(Dense {
        units: 7,
        scale: LayerScale::HIDDEN,
    })
}

pub fn act(function: Activation) -> Layer {
    Layer::Activation { function }
}

pub fn relu() -> Layer {
    act(Activation::Relu)
}

pub fn gelu() -> Layer {
    act(Activation::Gelu)
}

pub fn window(size: usize, stride: usize, padding: Padding) -> Window {
    Window {
        size: [size; 2],
        stride: [stride; 2],
        padding,
    }
}

pub fn conv(size: usize, stride: usize, padding: Padding) -> Layer {
    Layer::Convolution(Convolution {
        channels: 5,
        window: window(size, stride, padding),
        scale: LayerScale::HIDDEN,
    })
}

/// 3 × 3, zeros around.
pub fn conv3(stride: usize) -> Layer {
    conv(3, stride, Padding::Same)
}

pub fn pool(size: usize, stride: usize) -> Layer {
    Layer::AveragePool(window(size, stride, Padding::Valid))
}

pub fn gap() -> Layer {
    Layer::GlobalAveragePool
}

pub fn sum(branches: [Vec<Layer>; 2]) -> Layer {
    parallel(branches, [1.0, 1.0], Combination::Sum)
}

pub fn parallel(branches: [Vec<Layer>; 2], factors: [f64; 2], combination: Combination) -> Layer {
    let branches = branches.into_iter().zip(factors);
    let branches = branches.map(|(layers, factor)| Branch { factor, layers });
    Layer::Parallel(Parallel {
        branches: branches.collect(),
        combination,
    })
}

pub fn network(input: [usize; 3], layers: Vec<Layer>) -> Composition {
    Composition {
        input: Shape::from(input),
        layers,
        outputs: 1,
        readout_scale: LayerScale::READOUT,
    }
}

/// `hidden` times dense and activation on vectors.
pub fn fully_connected(inputs: usize, hidden: usize, function: Activation) -> Composition {
    let layers = (0..hidden).flat_map(|_| [dense(), act(function)]);
    network([1, 1, inputs], layers.collect())
}

pub fn noise(count: usize, index: u64) -> Vec<f64> {
    let mut values = vec![0.0; count];
    Stream::new(77, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}
