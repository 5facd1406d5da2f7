//! Targets with closed forms.

use reprior::posterior::{EvaluationError, Target};
use reprior::sampler::Method;

use super::{anneal, log_evidence, settings};

/// One observation y of Σ_i z_i/√d with noise σ: Z = σ/√(σ² + 1)·exp(−y²/2(σ² + 1)).
pub struct Observation {
    dimension: usize,
    y: f64,
    sigma: f64,
}

impl Target for Observation {
    type Real = f64;
    fn dim(&self) -> usize {
        self.dimension
    }
    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        let sum: f64 = z.iter().sum();
        let f = sum / (self.dimension as f64).sqrt();
        Ok(-0.5 * ((self.y - f) / self.sigma).powi(2))
    }
    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        let root = (self.dimension as f64).sqrt();
        let f = z.iter().sum::<f64>() / root;
        gradient.fill((self.y - f) / (self.sigma * self.sigma * root));
        self.log_ratio(z)
    }
}

pub const OBSERVATION: Observation = Observation {
    dimension: 3,
    y: 1.5,
    sigma: 0.05,
};

impl Observation {
    /// The log evidence.
    pub fn exact(&self) -> f64 {
        let total = self.sigma * self.sigma + 1.0;
        self.sigma.ln() - 0.5 * (total.ln() + self.y * self.y / total)
    }
}

/// The error is what it says: over seeds, (estimate − exact)/error is like Student's t with R − 1 degrees of freedom.
#[test]
fn errors_are_honest() {
    // t of 7 degrees of freedom: variance 7/5, |t| > 2.365 in one of twenty
    let (seeds, replicates) = (60_u64, 8);
    let (mut scores, mut ratios) = (Vec::new(), Vec::new());
    for seed in 0..seeds {
        let own = settings(Method::HmcInfinite, 48, seed);
        let done = anneal(|| OBSERVATION, &own, replicates);
        let found = log_evidence(&done);
        scores.push((found.value - OBSERVATION.exact()) / found.error);
        let ratio = |own: &reprior::annealing::Annealing<Observation>| {
            (own.log_evidence() - OBSERVATION.exact()).exp()
        };
        ratios.extend(done.iter().map(ratio));
    }
    // Z is unbiased: its mean over all replicates is exact
    let all = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / all;
    let variance = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (all - 1.0);
    let z = (mean - 1.0) / (variance / all).sqrt();
    assert!(z.abs() < 4.0, "{mean} {variance} {z}");
    let count = seeds as f64;
    let mean = scores.iter().sum::<f64>() / count;
    assert!(mean.abs() < 4.0 * (1.4 / count).sqrt(), "{mean} {scores:?}");
    // binomial: 3 expected, more than 11 of 60 has probability 6e-5; errors four times too large would have none beyond 0.6
    let beyond = scores.iter().filter(|z| z.abs() > 2.365).count();
    let within = scores.iter().filter(|z| z.abs() < 0.55).count();
    assert!(beyond <= 11, "{scores:?}");
    // P(|t| < 0.55) = 0.4: 24 expected, deviation 3.8
    assert!((9..=39).contains(&within), "{scores:?}");
}

#[test]
fn every_exact_method_finds_the_evidence() {
    for method in Method::ALL.into_iter().filter(|m| m.is_exact()) {
        let mut own = settings(method, 150, 3);
        own.transitions = if method.needs_gradients() { 3 } else { 8 };
        let done = anneal(|| OBSERVATION, &own, 10);
        let found = log_evidence(&done);
        let z = (found.value - OBSERVATION.exact()) / found.error;
        // t of 9 degrees of freedom: |t| > 6.6 has probability 1e-4
        assert!(z.abs() < 6.6, "{method}: {found:?} {}", OBSERVATION.exact());
        assert!(found.error < 0.2, "{method}: {found:?}");
        // particles are draws: mean y/(σ² + 1) of the function
        let root = 3.0_f64.sqrt();
        let means: Vec<f64> = done
            .iter()
            .map(|a| {
                let f = a
                    .particles()
                    .iter()
                    .map(|p| p.state.position.iter().sum::<f64>() / root);
                f.sum::<f64>() / 150.0
            })
            .collect();
        let mean = means.iter().sum::<f64>() / 10.0;
        let spread = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / 9.0;
        let z = (mean - 1.5 / 1.0025) / (spread / 10.0).sqrt();
        assert!(z.abs() < 6.6, "{method}: {mean} {z}");
    }
}

/// A mixture of two narrow Gaussians about ±a·1, with weights 0.3 and 0.7, in ten dimensions: exp ℓ is the mixture over N(0, I), so log Z = 0.
pub struct Modes {
    pub log_shift: f64,
}

const CENTRE: f64 = 0.8;
const WIDTH: f64 = 0.15;
pub const SHARES: [f64; 2] = [0.3, 0.7];

impl Modes {
    fn terms(&self, z: &[f64]) -> [f64; 2] {
        let of = |centre: f64| {
            let squares: f64 = z.iter().map(|z| (z - centre).powi(2)).sum();
            -0.5 * squares / (WIDTH * WIDTH) - z.len() as f64 * WIDTH.ln()
        };
        [SHARES[0].ln() + of(-CENTRE), SHARES[1].ln() + of(CENTRE)]
    }
}

impl Target for Modes {
    type Real = f64;
    fn dim(&self) -> usize {
        10
    }
    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        let [a, b] = self.terms(z);
        let greatest = a.max(b);
        let mixture = greatest + ((a - greatest).exp() + (b - greatest).exp()).ln();
        let norm: f64 = z.iter().map(|z| z * z).sum();
        Ok(mixture + 0.5 * norm + self.log_shift)
    }
    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        let [a, b] = self.terms(z);
        let share = 1.0 / (1.0 + (a - b).exp());
        for (g, z) in gradient.iter_mut().zip(z) {
            let centre = CENTRE * (2.0 * share - 1.0);
            *g = (centre - z) / (WIDTH * WIDTH) + z;
        }
        self.log_ratio(z)
    }
}

/// Particles fill modes by their mass, where a chain stays in the one that it met first.
#[test]
fn modes_have_their_mass() {
    let make = || Modes { log_shift: -500.0 };
    let done = anneal(make, &settings(Method::HmcInfinite, 256, 5), 10);
    let found = log_evidence(&done);
    let z = (found.value + 500.0) / found.error;
    assert!(z.abs() < 6.6, "{found:?}");
    let share = |positions: &mut dyn Iterator<Item = f64>| {
        let signs: Vec<f64> = positions.map(|z| f64::from(u8::from(z > 0.0))).collect();
        signs.iter().sum::<f64>() / signs.len() as f64
    };
    let shares: Vec<f64> = done
        .iter()
        .map(|a| share(&mut a.particles().iter().map(|p| p.state.position[0])))
        .collect();
    let mean = shares.iter().sum::<f64>() / 10.0;
    let spread = shares.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / 9.0;
    let z = (mean - SHARES[1]) / (spread / 10.0).sqrt();
    assert!(z.abs() < 6.6, "{shares:?} {z}");
    assert!((mean - SHARES[1]).abs() < 0.1, "{shares:?}");
    // a chain of the same sampler
    let schedule = reprior::chain::Schedule {
        chains: 1,
        warmup: 200,
        draws: 1000,
        thin: 1,
        seed: 5,
    };
    let own = reprior::sampler::SamplerSettings::default();
    let mut chain = reprior::chain::Chain::start(0, schedule, &own, make()).unwrap();
    let mut collected = reprior::chain::Collect::default();
    chain.advance_to(u64::MAX, &mut collected).unwrap();
    let of_chain = share(&mut collected.positions.iter().map(|z| z[0]));
    assert!(of_chain == 0.0 || of_chain == 1.0, "{of_chain}");
}
