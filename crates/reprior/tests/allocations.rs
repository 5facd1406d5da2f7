//! Transitions allocate nothing once their buffers are there.

#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use reprior::chain::{Chain, Collect, Schedule};
use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Architecture};
use reprior::posterior::{Coordinates, NetworkPosterior, Space, Target};
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
fn without_allocations() -> impl Iterator<Item = Method> {
    let all = Method::ALL.into_iter();
    all.filter(|method| *method != Method::Nuts)
}

#[test]
fn transitions_do_not_allocate() {
    let (rows, inputs, outputs) = (70, 90, 2);
    let methods = without_allocations().map(|method| (method, None));
    let with_memory = [(Method::HmcInfinite, Some(0.5))];
    let methods: Vec<_> = methods.chain(with_memory).collect();
    let mut x = vec![0.0; rows * inputs];
    Stream::new(1, 0, Purpose::Initial, 0).fill_normal(&mut x);
    for hidden in [vec![80], vec![40, 75]] {
        let architecture = Architecture::new(inputs, &hidden, outputs, Activation::Gelu);
        let model = Model::<f32>::new(
            architecture,
            0.3,
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
                    let mut target =
                        NetworkPosterior::new(Arc::clone(&model), coordinates, Some(space));
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
    let architecture = Architecture::new(inputs, &[20], 1, Activation::Gelu);
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
    for method in without_allocations() {
        let settings = SamplerSettings {
            method,
            arrival: Some(15),
            ..SamplerSettings::default()
        };
        let target = NetworkPosterior::new(Arc::clone(&model), Coordinates::Marginal, None);
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
