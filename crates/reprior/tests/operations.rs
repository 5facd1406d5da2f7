//! A step makes the operations that it needs and few more: counted, so that no clock is asked.
//!
//! Necessary are, for n rows, r = n reduced inputs, d units and C outputs: n·r·d for the triangular product with the first
//! layer's weights, n²·d for half of the kernel matrix, n³/3 for its factorisation; for the gradient 2n³/3 for the inverse,
//! 2n²·d for its product with the features and n·r·d for the way back.

use std::sync::Arc;

use reprior::compute::kernels::Operations;
use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior::posterior::{Coordinates, Posterior, Target};
use reprior::sampler::{Method, Sampler, SamplerSettings, State};

const ROWS: usize = 256;
const UNITS: usize = 1024;
const OUTPUTS: usize = 10;
/// Units that pass through the network together, and so products of each kind.
const BLOCK: usize = 126;

struct Chain {
    target: Posterior<f32>,
    sampler: Box<dyn Sampler<f32>>,
    state: State<f32>,
}

impl Chain {
    fn new(method: Method) -> Self {
        let inputs = 300;
        let mut x = vec![0.0; ROWS * inputs];
        Stream::new(1, 0, Purpose::Initial, 0).fill_normal(&mut x);
        let architecture =
            Composition::fully_connected(inputs, &[UNITS], OUTPUTS, Activation::Gelu);
        let y = vec![0.1; ROWS * OUTPUTS];
        let model = Model::new(architecture, 0.1, &x, y, &[], InputReduction::Auto).unwrap();
        let mut target = Posterior::new(Arc::new(model), Coordinates::Marginal).unwrap();
        let settings = SamplerSettings {
            method,
            step_size: (method != Method::Elliptical).then_some(0.05),
            ..SamplerSettings::default()
        };
        let mut sampler = settings.sampler();
        let mut position = vec![0.0; target.dim()];
        Stream::new(2, 0, Purpose::Initial, 0).fill_normal(&mut position);
        let state = sampler.init(&mut target, position).unwrap();
        Self {
            target,
            sampler,
            state,
        }
    }

    /// The counts of one step, and how many evaluations without and with gradients it made.
    fn step(&mut self, transition: u64) -> (Operations, u64, u64) {
        let mut stream = Stream::new(3, 0, Purpose::Transition, transition);
        let before = Operations::so_far();
        let info = self
            .sampler
            .step(&mut self.target, &mut self.state, &mut stream)
            .unwrap();
        let counts = Operations::so_far().since(before);
        (
            counts,
            u64::from(info.n_evaluations),
            u64::from(info.n_gradients),
        )
    }
}

const FIRST_LAYER: f64 = (ROWS * ROWS * UNITS) as f64;
const KERNEL: f64 = (ROWS * ROWS * UNITS) as f64;
const FACTORISATION: f64 = (ROWS * ROWS * ROWS) as f64 / 3.0;
const VALUE: f64 = FIRST_LAYER + KERNEL + FACTORISATION;
const BACK: f64 = 2.0 * FACTORISATION + 2.0 * KERNEL + FIRST_LAYER;
const BLOCKS: u64 = UNITS.div_ceil(BLOCK) as u64;

fn at_most(counts: Operations, necessary: f64) {
    let ratio = counts.flops as f64 / necessary;
    // 3 % are the Gram matrix' tiles on the diagonal, 6 the triangles', twice that where vectors have 16 numbers, and the solutions for ten outputs
    let most = 1.12;
    assert!((1.0..most).contains(&ratio), "{ratio} times the necessary");
}

#[test]
fn a_step_of_pcn_is_one_triangular_product_half_a_kernel_and_a_factorisation() {
    let (counts, evaluations, gradients) = Chain::new(Method::Pcn).step(0);
    assert_eq!((evaluations, gradients), (1, 0));
    // a product and a Gram matrix a block, and one of the constant column
    assert_eq!(counts.products, 2 * BLOCKS + 1);
    assert_eq!(counts.factorisations, 1);
    at_most(counts, VALUE);
}

#[test]
fn a_gradient_costs_one_evaluation_and_the_way_back() {
    for method in [Method::Pcnl, Method::Langevin, Method::Mala] {
        let (counts, evaluations, gradients) = Chain::new(method).step(0);
        assert_eq!((evaluations, gradients), (0, 1), "{method}");
        assert_eq!(counts.factorisations, 2);
        at_most(counts, VALUE + BACK);
    }
    let (counts, _, gradients) = Chain::new(Method::HmcInfinite).step(0);
    at_most(counts, gradients as f64 * (VALUE + BACK));
}

#[test]
fn points_of_an_ellipse_share_two_products() {
    let mut chain = Chain::new(Method::Elliptical);
    let mut most = 0;
    for transition in 0..5 {
        let (counts, evaluations, _) = chain.step(transition);
        let of_points = evaluations as f64 * (KERNEL + FACTORISATION);
        at_most(counts, 2.0 * FIRST_LAYER + of_points);
        most = most.max(evaluations);
    }
    assert!(most > 1);
}
