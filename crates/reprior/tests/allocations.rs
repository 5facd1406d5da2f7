//! Transitions allocate nothing once their buffers are there, nor does any evaluation of ℓ or its gradient.
//!
//! Two exceptions, both of them libraries': the crate that builds the trees of `nuts`, and the eigenvalue solver behind
//! the symmetric root of the data space.

#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use reprior::chain::{Chain, Collect, Schedule};
use reprior::compute::{Purpose, Stream};
use reprior::model::likelihood::{
    Categorical, Gaussian, GaussianHeteroscedastic, Likelihood, Poisson, StudentT,
    StudentTHeteroscedastic,
};
use reprior::model::{InputReduction, Model, Noise, NoisePrior, ScalePrior};
use reprior::network::{Activation, Composition};
use reprior::posterior::{Coordinates, Posterior, PosteriorSettings, Regulariser, Space, Target};
use reprior::sampler::{Method, SamplerSettings};

/// Counts this thread's allocations.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

#[allow(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// All methods but `nuts`: nuts-rs makes the points of each trajectory anew.
fn without_nuts() -> impl Iterator<Item = Method> {
    Method::ALL.into_iter().filter(|&m| m != Method::Nuts)
}

/// T at any λ, under likelihoods for which the readout cannot be integrated out, and under the Gaussian one.
#[test]
fn evaluations_of_the_general_map_do_not_allocate() {
    let (rows, inputs, outputs) = (70, 90, 2);
    let mut x = vec![0.0; rows * inputs];
    Stream::new(1, 0, Purpose::Initial, 0).fill_normal(&mut x);
    let likelihoods: [Arc<dyn Likelihood>; 6] = [
        Arc::new(GaussianHeteroscedastic::default()),
        Arc::new(StudentTHeteroscedastic::new(4.0).unwrap()),
        Arc::new(Categorical),
        Arc::new(StudentT::new(4.0).unwrap()),
        Arc::new(Poisson::new(vec![1.0; outputs]).unwrap()),
        Arc::new(Gaussian),
    ];
    // the gaussian one also with scales of weights that are learned
    let with_scales = (&likelihoods[5], Some(ScalePrior::HalfNormal));
    let laws: Vec<_> = (likelihoods.iter().map(|law| (law, None)))
        .chain([with_scales])
        .collect();
    for (hidden, (likelihood, scales)) in [vec![80], vec![40, 75], vec![30]]
        .iter()
        .flat_map(|hidden| laws.iter().map(move |&law| (hidden, law)))
    {
        let architecture = Composition::fully_connected(inputs, hidden, outputs, Activation::Gelu);
        let y = (0..rows * outputs).map(|at| f64::from(u8::from(at % rows % 2 == at / rows)));
        let noise = Noise::Learned(NoisePrior::default());
        // learned scales need all inputs
        let reduction = match scales {
            Some(_) => InputReduction::Off,
            None => InputReduction::Auto,
        };
        let model = Model::<f32>::new(architecture, noise, &x, y.collect(), &[], reduction);
        let mut model = model.unwrap().with_likelihood(Arc::clone(likelihood));
        if let Some(prior) = scales {
            model = model.with_learned_scales(prior, true).unwrap();
        }
        let model = Arc::new(model);
        for space in [Space::Feature, Space::Data] {
            let mut target = Posterior::new(
                Arc::clone(&model),
                PosteriorSettings {
                    space: Some(space),
                    regulariser: Regulariser::Value(0.05),
                    ..Coordinates::Repriorised.into()
                },
            )
            .unwrap();
            let mut z = vec![0.0; target.dim()];
            let mut gradient = z.clone();
            let mut evaluate = |index| {
                Stream::new(2, 0, Purpose::Initial, index).fill_normal(&mut z);
                let value = target.log_ratio(&z).unwrap();
                let same = target.log_ratio_and_gradient(&z, &mut gradient).unwrap();
                assert!(value.is_finite() && same.is_finite());
            };
            evaluate(0);
            let before = COUNT.get();
            (1..4).for_each(&mut evaluate);
            let count = COUNT.get() - before;
            assert_eq!(count, 0, "{likelihood:?} {hidden:?} {space}");
        }
    }
}

#[test]
fn transitions_do_not_allocate() {
    let (rows, inputs, outputs) = (70, 90, 2);
    let methods = without_nuts().map(|method| (method, None));
    let with_memory = [(Method::HmcInfinite, Some(0.5))];
    let methods: Vec<_> = methods.chain(with_memory).collect();
    let mut x = vec![0.0; rows * inputs];
    Stream::new(1, 0, Purpose::Initial, 0).fill_normal(&mut x);
    // with little noise, sums are in double precision
    for (hidden, noise) in [(vec![80], 0.3), (vec![40, 75], 0.3), (vec![12], 0.003)] {
        let architecture = Composition::fully_connected(inputs, &hidden, outputs, Activation::Gelu);
        let model = Model::<f32>::new(
            architecture,
            noise,
            &x,
            vec![0.1; rows * outputs],
            &[],
            InputReduction::Auto,
        );
        let model = Arc::new(model.unwrap());
        for coordinates in [
            Coordinates::Marginal,
            Coordinates::Repriorised,
            Coordinates::Standard,
        ] {
            for space in [Space::Feature, Space::Data] {
                for &(method, damping) in &methods {
                    let mut target = Posterior::new(
                        Arc::clone(&model),
                        PosteriorSettings::in_space(coordinates, space),
                    )
                    .unwrap();
                    let settings = SamplerSettings {
                        method,
                        damping,
                        ..SamplerSettings::default()
                    };
                    let mut sampler = settings.sampler();
                    let mut position = vec![0.0; target.dim()];
                    Stream::new(2, 0, Purpose::Initial, 0).fill_normal(&mut position);
                    let mut state = sampler.init(&mut target, position).unwrap();
                    let mut step = |transition| {
                        let mut stream = Stream::new(3, 0, Purpose::Transition, transition);
                        sampler.step(&mut target, &mut state, &mut stream).unwrap();
                    };
                    step(0);
                    let before = COUNT.get();
                    (1..5).for_each(&mut step);
                    let count = COUNT.get() - before;
                    assert_eq!(count, 0, "{settings:?} {coordinates} {space}");
                }
            }
        }
    }
}

/// A chain allocates where it passes from its arrival to the method itself, and nowhere else.
#[test]
fn chains_allocate_only_where_the_sampler_changes() {
    let (rows, inputs) = (30, 5);
    let mut x = vec![0.0; rows * inputs];
    Stream::new(1, 0, Purpose::Initial, 0).fill_normal(&mut x);
    let architecture = Composition::fully_connected(inputs, &[20], 1, Activation::Gelu);
    let y = vec![0.1; rows];
    let model = Model::<f32>::new(architecture, 0.3, &x, y, &[], InputReduction::Auto);
    let model = Arc::new(model.unwrap());
    let schedule = Schedule {
        chains: 1,
        warmup: 40,
        draws: 100,
        thin: 10,
        seed: 4,
    };
    for method in without_nuts() {
        let settings = SamplerSettings {
            method,
            arrival: Some(15),
            ..SamplerSettings::default()
        };
        let target = Posterior::new(Arc::clone(&model), Coordinates::Marginal).unwrap();
        let mut chain = Chain::start(0, schedule, &settings, target).unwrap();
        let mut collect = Collect::default();
        for transition in 1..=49 {
            let before = COUNT.get();
            chain.advance_to(transition, &mut collect).unwrap();
            let count = COUNT.get() - before;
            // first steps make their buffers
            if ![1, 15, 16].contains(&transition) {
                assert_eq!(count, 0, "{method} {transition}");
            }
        }
    }
}
