//! The error rates of "these draws can be believed": how often chains that disagree pass, and how often chains that do not are
//! suspected. Simulated chains of autoregressive draws, unit variance, at stationarity but for what a family does to them.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use reprior::compute::{Purpose, Stream};
use reprior::diagnostics::{Convergence, Estimator};

/// What is wrong with a set of chains.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Family {
    /// Nothing.
    Sound,
    /// The chains' means are evenly spaced, with this standard deviation.
    Spaced(f64),
    /// One chain's mean is away from the others' common one; the means have this standard deviation.
    OneAway(f64),
    /// Half of the chains around one mode, half around another; the means have this standard deviation.
    TwoModes(f64),
    /// The chains' means are drawn from a normal with this standard deviation.
    Drawn(f64),
    /// One chain's standard deviation is this many times the others'.
    Scale(f64),
    /// One chain stands still at a point of the distribution.
    Stuck,
    /// Every chain moves by this many standard deviations from its beginning to its end.
    Drift(f64),
    /// The chains move by this many standard deviations, half of them up and half of them down.
    Apart(f64),
}

impl Family {
    /// Chains × draws; `phi` is the autocorrelation of neighbours, so that a draw counts as (1 − φ)/(1 + φ).
    fn simulate(self, chains: usize, draws: usize, phi: f64, set: u64) -> Vec<f64> {
        let mut stream = Stream::new(18, 0, Purpose::Initial, set);
        let mut values = vec![0.0; chains * draws];
        stream.fill_normal(&mut values);
        let innovation = (1.0 - phi * phi).sqrt();
        for chain in values.chunks_exact_mut(draws) {
            for at in 1..draws {
                chain[at] = phi * chain[at - 1] + innovation * chain[at];
            }
        }
        let shape: Vec<f64> = (0..chains)
            .map(|chain| match self {
                Self::Spaced(_) => chain as f64,
                Self::OneAway(_) => f64::from(u8::from(chain == 0)),
                Self::TwoModes(_) | Self::Apart(_) => f64::from(u8::from(chain % 2 == 0)),
                Self::Drawn(_) => stream.normal(),
                _ => 0.0,
            })
            .collect();
        let centre = shape.iter().sum::<f64>() / chains as f64;
        let squares: f64 = shape.iter().map(|x| (x - centre).powi(2)).sum();
        let own = (squares / (chains as f64 - 1.0)).sqrt();
        let point = stream.normal();
        for (c, chain) in values.chunks_exact_mut(draws).enumerate() {
            for (at, value) in chain.iter_mut().enumerate() {
                let time = at as f64 / draws as f64 - 0.5;
                match self {
                    Self::Sound => {}
                    Self::Spaced(sd) | Self::OneAway(sd) | Self::TwoModes(sd) => {
                        *value += (shape[c] - centre) / own * sd;
                    }
                    Self::Drawn(sd) => *value += shape[c] * sd,
                    Self::Scale(ratio) if c == 0 => *value *= ratio,
                    Self::Stuck if c == 0 => *value = point,
                    Self::Scale(_) | Self::Stuck => {}
                    Self::Drift(size) => *value += size * time,
                    Self::Apart(size) => *value += size * time * (2.0 * shape[c] - 1.0),
                }
            }
        }
        values
    }

    /// Share of `sets` simulated variables with each finding: converged, short, unknown, too short, disagreeing.
    fn rates(self, chains: usize, draws: usize, phi: f64, sets: u64) -> [f64; 5] {
        let found = Estimator::map_variables(
            sets as usize,
            chains,
            draws,
            |set, out| out.copy_from_slice(&self.simulate(chains, draws, phi, set as u64)),
            |estimator, draws| Convergence::of(&estimator.summary(draws), chains),
        )
        .unwrap();
        use Convergence::{Converged, Disagreeing, Short, TooShort, Unknown};
        [Converged, Short, Unknown, TooShort, Disagreeing]
            .map(|kind| found.iter().filter(|&&f| f == kind).count() as f64 / sets as f64)
    }
}

fn print(family: Family, chains: usize, draws: usize, phi: f64, rates: [f64; 5]) {
    let [converged, short, _, too_short, disagreeing] = rates.map(|rate| 100.0 * rate);
    println!(
        "{:16} {chains} x {draws:4} draws, {:6.0} effective a chain: passes as fine {converged:6.2} %, short {short:6.2} %, \
         too short {too_short:6.2} %, disagreeing {disagreeing:6.2} %",
        format!("{family:?}"),
        draws as f64 * (1.0 - phi) / (1.0 + phi),
    );
}

/// Four chains, 100 effective draws of each or more.
const ENOUGH: [(usize, f64); 5] = [(100, 0.0), (200, 0.0), (500, 0.6), (2000, 0.0), (2000, 0.9)];

#[test]
fn chains_that_disagree_do_not_pass() {
    for (draws, phi) in ENOUGH {
        for spread in [0.5, 1.0] {
            for family in [
                Family::Spaced(spread),
                Family::OneAway(spread),
                Family::TwoModes(spread),
            ] {
                let [passes, ..] = family.rates(4, draws, phi, 400);
                // with a true rate of half the promised one, 400 sets exceed these with probability 1e-4 and less
                let most = if spread < 0.75 { 0.05 } else { 0.005 };
                assert!(passes <= most, "{family:?} {draws} {phi}: {passes}");
            }
        }
    }
}

#[test]
fn too_few_effective_draws_never_pass() {
    for (chains, draws, phi) in [
        (2, 20, 0.0),
        (4, 20, 0.0),
        (8, 20, 0.0),
        (4, 60, 0.0),
        (4, 200, 0.6),
        (8, 100, 0.6),
        (4, 1000, 0.95),
    ] {
        for family in [
            Family::Sound,
            Family::Spaced(0.5),
            Family::Stuck,
            Family::Drift(1.0),
        ] {
            let [passes, ..] = family.rates(chains, draws, phi, 200);
            assert_eq!(passes, 0.0, "{family:?} {chains} x {draws}, {phi}");
        }
    }
}

#[test]
fn sound_chains_pass() {
    let [passes, ..] = Family::Sound.rates(4, 250, 0.0, 4000);
    assert_eq!(passes, 1.0);
}

/// All families and sizes, and false alarms of whole runs; a minute on two cores. Prints its table.
#[test]
#[ignore = "a minute; the gate runs it and shows its table"]
fn error_rates() {
    let families = [
        Family::Spaced(0.5),
        Family::Spaced(1.0),
        Family::OneAway(0.5),
        Family::OneAway(1.0),
        Family::TwoModes(0.5),
        Family::TwoModes(1.0),
        Family::Drawn(0.5),
        Family::Drawn(1.0),
        Family::Scale(2.0),
        Family::Scale(4.0),
        Family::Stuck,
        Family::Drift(0.5),
        Family::Drift(1.0),
        Family::Apart(1.0),
    ];
    for family in families {
        for chains in [2, 4, 8] {
            for (draws, phi) in [
                (20, 0.0),
                (100, 0.0),
                (250, 0.0),
                (500, 0.6),
                (2000, 0.0),
                (2000, 0.9),
                (2000, 0.98),
            ] {
                let rates = family.rates(chains, draws, phi, 200);
                print(family, chains, draws, phi, rates);
                let passes = rates[0];
                let effective = draws as f64 * (1.0 - phi) / (1.0 + phi);
                if effective < 90.0 {
                    assert_eq!(passes, 0.0, "{family:?}");
                } else if chains >= 4 {
                    let most = match family {
                        Family::Spaced(s) | Family::OneAway(s) | Family::TwoModes(s) => {
                            if s < 0.75 { 0.05 } else { 0.005 }
                        }
                        _ => 1.0,
                    };
                    assert!(passes <= most, "{family:?} {chains} x {draws}: {passes}");
                }
            }
        }
    }
    for (chains, draws) in [(4, 250), (2, 500), (8, 250), (4, 1000)] {
        let variables = 600;
        let runs = if draws > 500 { 100 } else { 400 };
        let rates = Family::Sound.rates(chains, draws, 0.0, runs * variables);
        // of one variable, so small that runs add up
        let false_alarm = 1.0 - rates[0].powi(variables as i32);
        println!(
            "sound draws, {chains} x {draws}, {runs} runs of {variables} variables: a false alarm in {:.2} % of runs \
             (of disagreement {:.2} %, of too few draws {:.2} %)",
            100.0 * false_alarm,
            100.0 * (1.0 - (1.0 - rates[4]).powi(variables as i32)),
            100.0 * (1.0 - (1.0 - rates[1] - rates[3]).powi(variables as i32)),
        );
        assert!(false_alarm <= 0.01, "{chains} x {draws}: {false_alarm}");
    }
}
