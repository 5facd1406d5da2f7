//! The small residual network of Roy, Miani et al. (2024) for CIFAR-10, trained as theirs: SGD with momentum 0.9 and step size 0.1,
//! batch normalisation with the statistics of minibatches. After training the network is frozen: approximations have the running
//! statistics.
//!
//! Unlike theirs images are not shifted and mirrored at random, the prior of training is that of the approximations (weight decay α/N),
//! and the step size goes down half a cosine.

use reprior::network::layer::Shape;
use reprior::network::named::NamedNetwork;
use reprior::network::{Activation, Composition, LayerScale};
use reprior::stochastic::Dynamics;

use crate::Failure;
use crate::training::Training;

/// The value of a cell's `network` that asks for it.
pub const RESNET: &str = "resnet-small";

/// 272,378 parameters for colour images of ten classes, in the standard parametrisation.
///
/// # Errors
/// Images that are too small.
pub fn network(shape: Shape, classes: usize) -> Result<Composition, Failure> {
    let named: NamedNetwork = RESNET.parse().map_err(Failure::Failed)?;
    let network = named.network(shape, classes, Activation::Relu, LayerScale::HIDDEN)?;
    Ok(network.in_standard_parametrisation()?)
}

/// How it is trained.
pub fn training(seed: u64, epochs: usize, precision: f64) -> Training {
    Training {
        seed,
        dynamics: Dynamics::Hamiltonian { friction: 0.1 },
        step_size: 0.1,
        gain: 2.0,
        batch: 128,
        epochs,
        precision,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{DataFolder, shape};
    use crate::pictures::Pictures;
    use crate::trained::TrainedNetwork;

    /// Trains on images, and scores the frozen network on others: accuracy, and the accuracy without statistics.
    fn trained(rows: usize, epochs: usize, test: usize) -> [f64; 2] {
        let split = DataFolder::default().split("cifar10").unwrap();
        let classes = split.train.targets.outputs();
        let pictures = Pictures::new(&split.train).first(rows);
        let plain = network(shape(&split.train), classes).unwrap();
        let data = pictures.minibatches(classes);
        let training = training(0, epochs, 1.0);
        let (frozen, mode) = training
            .trained(&plain, data.clone(), 2, |_| Ok(()))
            .unwrap();
        let test = Pictures::new(&split.test).first(test);
        let accuracy = |network: &Composition| {
            let own = TrainedNetwork::new(network, mode.clone(), data.clone(), 1.0);
            let mut own = own.unwrap().with_threads(2);
            let draws = own.at_mode();
            let logits = own.logits(&draws, false, &test.pixels, || Ok(())).unwrap();
            let averaged = crate::scores::Averaged::Probabilities;
            logits
                .scores(averaged, &test.labels)
                .unwrap()
                .accuracy
                .value
        };
        [accuracy(&frozen), accuracy(&plain)]
    }

    #[test]
    fn the_frozen_network_tells_images_apart() {
        let [accuracy, without] = trained(256, 18, 200);
        assert!(
            accuracy > 0.5 && accuracy > without + 0.2,
            "{accuracy} {without}"
        );
    }
}
