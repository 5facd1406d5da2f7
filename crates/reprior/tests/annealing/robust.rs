//! Failing evaluations, threads, and what is recorded on the way.

use reprior::annealing::{Annealing, AnnealingError};
use reprior::posterior::{EvaluationError, Target};
use reprior::sampler::Method;

use super::{anneal, log_evidence, settings};

/// N(0, 1) cut off at z₁ > 0, where ℓ cannot be evaluated, and one observation of z₂: Z = ½·σ/√(1 + σ²).
pub struct Half {
    error: EvaluationError,
    sigma: f64,
}

impl Target for Half {
    type Real = f64;
    fn dim(&self) -> usize {
        2
    }
    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        match z[0] > 0.0 {
            true => Err(self.error.clone()),
            false => Ok(-0.5 * (z[1] / self.sigma).powi(2)),
        }
    }
    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        gradient.copy_from_slice(&[0.0, -z[1] / self.sigma.powi(2)]);
        self.log_ratio(z)
    }
}

pub fn half(error: EvaluationError) -> impl Fn() -> Half {
    move || Half {
        error: error.clone(),
        sigma: 0.1,
    }
}

#[test]
fn where_nothing_can_be_evaluated_there_is_no_mass() {
    let make = half(EvaluationError::Recoverable("not here".to_owned()));
    for method in [Method::HmcInfinite, Method::Pcn, Method::Elliptical] {
        let mut own = settings(method, 200, 4);
        own.transitions = 5;
        let done = anneal(&make, &own, 10);
        let found = log_evidence(&done);
        let exact = 0.5_f64.ln() + (0.01_f64 / 1.01).ln() * 0.5;
        let z = (found.value - exact) / found.error;
        assert!(z.abs() < 6.6, "{method}: {found:?} {exact}");
        for annealing in &done {
            assert!(
                annealing
                    .particles()
                    .iter()
                    .all(|p| p.state.position[0] <= 0.0)
            );
        }
    }
}

#[test]
fn errors_are_told() {
    let own = settings(Method::Pcn, 50, 4);
    let fatal = half(EvaluationError::Fatal("on fire".to_owned()));
    let error = Annealing::start(&own, 0, vec![fatal()]).err();
    assert!(error.is_some_and(|error| error.to_string().contains("on fire")));
    let nowhere = || Half {
        error: EvaluationError::Recoverable("not here".to_owned()),
        sigma: 0.0,
    };
    let error = Annealing::start(&own, 0, vec![nowhere()]).err();
    assert!(
        matches!(error, Some(AnnealingError::NoStart { .. })),
        "{error:?}"
    );
    let error = Annealing::<Half>::start(&own, 0, Vec::new()).err();
    assert!(
        matches!(error, Some(AnnealingError::TooFew { .. })),
        "{error:?}"
    );
}

/// Threads change nothing, replicates and seeds do; the ladder rises to 1.
#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let make = half(EvaluationError::Recoverable("not here".to_owned()));
    let run = |threads: usize, replicate, seed| {
        let own = settings(Method::HmcInfinite, 40, seed);
        let targets = (0..threads).map(|_| make()).collect();
        let mut annealing = Annealing::start(&own, replicate, targets).unwrap();
        annealing.finish().unwrap();
        annealing
    };
    let one = run(1, 0, 9);
    let three = run(3, 0, 9);
    assert_eq!(one.particles(), three.particles());
    assert_eq!(one.rungs(), three.rungs());
    assert_ne!(one.log_evidence(), run(1, 1, 9).log_evidence());
    assert_ne!(one.log_evidence(), run(1, 0, 10).log_evidence());
    let betas: Vec<f64> = one.rungs().iter().map(|rung| rung.beta).collect();
    assert!(betas.windows(2).all(|pair| pair[0] < pair[1]) && betas.last() == Some(&1.0));
    assert!((1..=40).contains(&one.families()));
    // ℓ and gradients are those of the target itself
    let mut target = make();
    for particle in one.particles() {
        let mut gradient = vec![0.0; 2];
        let value = target
            .log_ratio_and_gradient(&particle.state.position, &mut gradient)
            .unwrap();
        assert!((value - particle.state.log_ratio).abs() < 1e-9 * (1.0 + value.abs()));
        assert!(
            (gradient[1] - particle.state.gradient[1]).abs() < 1e-9 * (1.0 + gradient[1].abs())
        );
    }
}
