//! Whole transitions of every method, on one thread: CIFAR-10's sizes (256 rows, ten outputs), one hidden layer.
//!
//! ```text
//! cargo bench -p reprior --bench steps [-- FILTER]
//! ```
//!
//! Inputs and targets are noise of those sizes, which takes the same time. Step sizes are small, so that chains move; a step
//! of `hmc-infinite`, `hmc`, `nuts` and `elliptical` is several evaluations.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior::posterior::{Coordinates, NetworkPosterior, Target};
use reprior::sampler::{Method, SamplerSettings};

fn steps(criterion: &mut Criterion) {
    let (rows, inputs, outputs) = (256, 3072, 10);
    let mut x = vec![0.0; rows * inputs];
    Stream::new(1, 0, Purpose::Initial, 0).fill_normal(&mut x);
    let mut y = vec![0.0; rows * outputs];
    Stream::new(1, 0, Purpose::Initial, 1).fill_normal(&mut y);
    for width in [1024, 4096] {
        let architecture =
            Composition::fully_connected(inputs, &[width], outputs, Activation::Gelu);
        let reduction = InputReduction::Auto;
        let model = Model::<f32>::new(architecture, 0.1, &x, y.clone(), &[], reduction);
        let model = Arc::new(model.unwrap());
        let mut group = criterion.benchmark_group(format!("a step at width {width}"));
        group.sample_size(20);
        for method in Method::ALL {
            let settings = SamplerSettings {
                method,
                step_size: (method != Method::Elliptical).then_some(0.05),
                ..SamplerSettings::default()
            };
            let mut target = NetworkPosterior::new(Arc::clone(&model), Coordinates::Marginal, None);
            let mut sampler = settings.sampler();
            let mut position = vec![0.0; target.dim()];
            Stream::new(2, 0, Purpose::Initial, 0).fill_normal(&mut position);
            let mut state = sampler.init(&mut target, position).unwrap();
            let mut transition = 0;
            group.bench_function(method.to_string(), |bencher| {
                bencher.iter(|| {
                    transition += 1;
                    let mut stream = Stream::new(3, 0, Purpose::Transition, transition);
                    sampler.step(&mut target, &mut state, &mut stream).unwrap()
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, steps);
criterion_main!(benches);
