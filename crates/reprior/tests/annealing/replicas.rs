//! Chains that exchange positions with replicas at higher temperatures: the chain's law, modes by their mass, the evidence, the ladder.

use reprior::annealing::LogEvidence;
use reprior::chain::{Chain, Collect, Schedule};
use reprior::posterior::{EvaluationError, Target};
use reprior::sampler::{Method, SamplerSettings};

use super::evidence::{Modes, OBSERVATION, SHARES};
use super::robust::half;

const CHAINS: usize = 10;
/// Student's t of 9 degrees of freedom is beyond with probability 1e-4.
const FAR: f64 = 6.6;

fn settings(method: Method, replicas: usize) -> SamplerSettings {
    SamplerSettings {
        method,
        replicas,
        ..SamplerSettings::default()
    }
}

/// Chains at their ends, with their draws.
fn sample<T: Target<Real = f64>>(
    make: impl Fn() -> T,
    settings: &SamplerSettings,
    [warmup, draws]: [u64; 2],
) -> Vec<(Chain<T>, Collect<f64>)> {
    let of = |index| {
        let schedule = Schedule {
            chains: CHAINS,
            warmup,
            draws,
            thin: 1,
            seed: 12,
        };
        let mut chain = Chain::start(index, schedule, settings, make()).unwrap();
        let mut collected = Collect::default();
        chain.advance_to(u64::MAX, &mut collected).unwrap();
        (chain, collected)
    };
    (0..CHAINS).map(of).collect()
}

/// How far the mean over chains is from what is exact, in its standard errors.
fn score(of_chains: impl Iterator<Item = f64>, exact: f64) -> f64 {
    let values: Vec<f64> = of_chains.collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean - exact) / (variance / count).sqrt()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

fn log_evidence<T: Target>(chain: &Chain<T>) -> f64 {
    let ladder = chain.snapshot().ladder.as_ref();
    ladder.unwrap().log_evidence().unwrap()
}

/// The log evidence of chains with so many replicas.
pub fn of_chains<T: Target<Real = f64>>(
    make: impl Fn() -> T,
    replicas: usize,
    lengths: [u64; 2],
) -> LogEvidence {
    let done = sample(make, &settings(Method::HmcInfinite, replicas), lengths);
    let values: Vec<f64> = done.iter().map(|(chain, _)| log_evidence(chain)).collect();
    LogEvidence::of(&values).unwrap()
}

#[test]
fn every_exact_method_keeps_its_law_and_finds_the_evidence() {
    for method in Method::ALL.into_iter().filter(|method| method.is_exact()) {
        let done = sample(|| OBSERVATION, &settings(method, 3), [300, 1500]);
        let root = 3.0_f64.sqrt();
        let f = |z: &Vec<f64>| z.iter().sum::<f64>() / root;
        // y/(σ² + 1) ± σ/√(σ² + 1), and a direction that the data do not see
        let (exact, variance) = (1.5 / 1.0025, 0.0025 / 1.0025);
        let of = |moment: &dyn Fn(&Vec<f64>) -> f64, exact| {
            let means = done
                .iter()
                .map(|(_, own)| mean(own.positions.iter().map(moment)));
            score(means, exact)
        };
        let scores = [
            of(&f, exact),
            of(&|z| (f(z) - exact).powi(2), variance),
            of(&|z| (z[0] - z[1]).powi(2) / 2.0, 1.0),
            score(
                done.iter().map(|(chain, _)| log_evidence(chain)),
                OBSERVATION.exact(),
            ),
        ];
        assert!(
            scores.iter().all(|score| score.abs() < FAR),
            "{method}: {scores:?}"
        );
    }
}

/// Each chain is in both modes, by their mass; without replicas it is in one.
#[test]
fn modes_have_their_mass() {
    let make = || Modes { log_shift: -500.0 };
    let share = |own: &Collect<f64>| {
        mean(
            own.positions
                .iter()
                .map(|z| f64::from(u8::from(z[0] > 0.0))),
        )
    };
    for method in [Method::HmcInfinite, Method::Mams, Method::Pcn] {
        let done = sample(make, &settings(method, 7), [600, 3000]);
        let shares: Vec<f64> = done.iter().map(|(_, own)| share(own)).collect();
        let found = score(shares.iter().copied(), SHARES[1]);
        assert!(found.abs() < FAR, "{method}: {shares:?}");
        assert!(
            shares.iter().all(|share| (0.2..0.99).contains(share)),
            "{method}: {shares:?}"
        );
        let found = score(done.iter().map(|(chain, _)| log_evidence(chain)), -500.0);
        assert!(found.abs() < FAR, "{method}: {found}");
        for (chain, _) in &done {
            let ladder = chain.snapshot().ladder.as_ref().unwrap();
            assert!(ladder.arrivals >= 10, "{method}: {}", ladder.arrivals);
            let refusals = ladder.exchanges.iter().map(|own| own.refusal());
            let [least, most] = refusals.fold([1.0, 0.0], |[least, most]: [f64; 2], rate| {
                [least.min(rate), most.max(rate)]
            });
            assert!(most - least < 0.25, "{method}: {:?}", ladder.exchanges);
        }
        let alone = sample(make, &settings(method, 0), [200, 300]);
        for (_, own) in &alone {
            assert!([0.0, 1.0].contains(&share(own)), "{method}");
        }
    }
}

/// β falls from the chain to the last replica, what is kept of each is that of its temperature, and Λ hardly depends on their number.
#[test]
fn ladders_are_in_order() {
    let barriers = [6, 12].map(|replicas| {
        let own = settings(Method::HmcInfinite, replicas);
        let done = sample(|| Modes { log_shift: 3.0 }, &own, [520, 1000]);
        for (chain, _) in &done {
            let ladder = chain.snapshot().ladder.as_ref().unwrap();
            let betas: Vec<f64> = ladder.replicas.iter().map(|own| own.beta).collect();
            assert!(
                betas.windows(2).all(|pair| pair[0] > pair[1]) && betas[0] < 1.0,
                "{betas:?}"
            );
            assert!(betas[replicas - 1] > 0.0, "{betas:?}");
            let mut target = Modes { log_shift: 3.0 };
            for replica in &ladder.replicas {
                let mut gradient = vec![0.0; 10];
                let state = &replica.state;
                let value = target
                    .log_ratio_and_gradient(&state.position, &mut gradient)
                    .unwrap();
                let close = |a: f64, b: f64| (a - b).abs() < 1e-9 * (1.0 + b.abs());
                assert!(close(state.log_ratio, replica.beta * value));
                for (kept, own) in state.gradient.iter().zip(&gradient) {
                    assert!(close(*kept, replica.beta * own));
                }
                assert!(replica.adaptation.is_none() && replica.step_size.is_some());
            }
        }
        let barriers = done
            .iter()
            .map(|(chain, _)| chain.snapshot().ladder.as_ref().unwrap().barrier());
        mean(barriers)
    });
    assert!(
        (barriers[0] / barriers[1] - 1.0).abs() < 0.3 && barriers[1] > 1.5,
        "{barriers:?}"
    );
}

/// A prior half of which cannot be evaluated: Z = ½·σ/√(1 + σ²).
#[test]
fn where_nothing_can_be_evaluated_there_is_no_mass() {
    let make = half(EvaluationError::Recoverable("not here".to_owned()));
    let done = sample(make, &settings(Method::HmcInfinite, 3), [200, 1500]);
    let exact = 0.5_f64.ln() + (0.01_f64 / 1.01).ln() * 0.5;
    let found = score(done.iter().map(|(chain, _)| log_evidence(chain)), exact);
    assert!(found.abs() < FAR, "{found}");
    for (_, own) in &done {
        assert!(own.positions.iter().all(|z| z[0] <= 0.0));
    }
}

#[test]
fn replicas_are_of_exact_methods() {
    for method in Method::ALL {
        let message = settings(method, 4).check().err().map(|e| e.to_string());
        assert_eq!(message.is_none(), method.is_exact(), "{method}");
        assert!(message.is_none_or(|message| message.contains("exact methods")));
    }
    let many = settings(Method::HmcInfinite, 1001).check().unwrap_err();
    assert!(many.to_string().contains("up to 1000"), "{many}");
}
