//! Step sizes that follow the gradient: the law by quadrature, on a posterior that is many times narrower in one place than in another.

use reprior::chain::{Chain, Collect, Schedule};
use reprior::posterior::{EvaluationError, Target};
use reprior::sampler::{Method, SamplerSettings};

use super::{sample_on, settings, z_score};

/// Observations y of b with the scale e^{2a}: ℓ(a, b) = −½ Σ (y − b)²e^{−4a} − 2na, curved in b by n from e⁻⁴ to e⁴ and more.
struct Funnel;

const OBSERVED: [f64; 3] = [0.3, -0.2, 0.6];

impl Target for Funnel {
    type Real = f64;
    fn dim(&self) -> usize {
        2
    }
    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        self.log_ratio_and_gradient(z, &mut [0.0; 2])
    }
    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        let precision = (-4.0 * z[0]).exp();
        let residuals = OBSERVED.map(|y| y - z[1]);
        let squares: f64 = residuals.iter().map(|r| r * r).sum();
        let count = OBSERVED.len() as f64;
        gradient[0] = 2.0 * squares * precision - 2.0 * count;
        gradient[1] = residuals.iter().sum::<f64>() * precision;
        Ok(-0.5 * squares * precision - 2.0 * count * z[0])
    }
}

/// E[a], E[b], E[a²] and E[b²] by the midpoint rule.
fn moments() -> [f64; 4] {
    let (points, half) = (1200, 5.0);
    let grid: Vec<f64> = (0..points)
        .map(|k| half * ((2 * k + 1) as f64 / points as f64 - 1.0))
        .collect();
    let mut sums = [0.0; 5];
    for &a in &grid {
        for &b in &grid {
            let weight = (Funnel.log_ratio(&[a, b]).unwrap() - 0.5 * (a * a + b * b)).exp();
            let terms = [1.0, a, b, a * a, b * b];
            sums.iter_mut()
                .zip(terms)
                .for_each(|(sum, term)| *sum += weight * term);
        }
    }
    [1, 2, 3, 4].map(|k| sums[k] / sums[0])
}

/// Trajectories of so few steps are cut short, and their step sizes follow the gradient.
fn cut_short(damping: f64) -> SamplerSettings {
    SamplerSettings {
        max_steps: Some(4),
        trajectory: Some(1.5),
        damping: Some(damping),
        ..settings(Method::HmcInfinite)
    }
}

#[test]
fn a_funnel_is_as_quadrature_has_it() {
    let exact = moments();
    for (damping, seed) in [(1.0, 1), (0.5, 2), (0.1, 3)] {
        let schedule = Schedule {
            chains: 4,
            warmup: 1000,
            draws: 10_000,
            thin: 20,
            seed,
        };
        let chains = sample_on(|| Funnel, &cut_short(damping), schedule, 2);
        for (k, &expected) in exact.iter().enumerate() {
            let of_draw = |z: &Vec<f64>| z[k % 2].powi(1 + k as i32 / 2);
            let of_chain = |chain: &Collect<f64>| chain.positions.iter().map(of_draw).collect();
            let z = z_score(&chains.iter().map(of_chain).collect::<Vec<_>>(), expected);
            assert!(
                z.abs() < 4.5,
                "damping {damping}, moment {k}: {z} standard errors"
            );
        }
    }
}

/// Where trajectories have their length, each has the steps of the size that warm-up ended with; where they are cut short, some have fewer.
#[test]
fn step_sizes_vary_only_where_trajectories_are_cut_short() {
    let schedule = Schedule {
        chains: 1,
        warmup: 200,
        draws: 200,
        thin: 1,
        seed: 4,
    };
    let sampled = |settings: &SamplerSettings| {
        let mut chain = Chain::start(0, schedule, settings, Funnel).unwrap();
        let mut collected = Collect::default();
        chain.advance_to(400, &mut collected).unwrap();
        let steps = collected.statistics.iter().map(|own| own.n_steps as f64);
        (
            chain.snapshot().step_size.unwrap(),
            steps.collect::<Vec<f64>>(),
        )
    };
    let (step_size, steps) = sampled(&cut_short(1.0));
    assert!(4.0 * step_size < 1.5, "{step_size}");
    assert!(steps.contains(&4.0) && steps.iter().any(|&steps| steps < 4.0));
    let whole = SamplerSettings {
        max_steps: Some(10_000),
        ..cut_short(1.0)
    };
    let (step_size, steps) = sampled(&whole);
    let [fewest, most] = [0.75, 1.25].map(|part: f64| (part * 1.5 / step_size).round());
    assert!(most < 10_000.0 && steps.iter().all(|steps| (fewest..=most).contains(steps)));
}
