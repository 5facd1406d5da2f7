//! The front door: against the closed form of a linear network, against the chains behind it, and what it refuses.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reprior::chain::StartError;
use reprior::chain::{Chain, Collect, Control, Schedule, run};
use reprior::compute::{Purpose, Stream};
use reprior::diagnostics::Convergence;
use reprior::model::{InputReduction, Model, Noise, NoisePrior};
use reprior::network::{Activation, Composition};
use reprior::posterior::{Coordinates, Posterior};
use reprior::sampler::{Method, SamplerSettings};
use reprior::{Classification, FitError, Regression, SampleSettings};

fn normals(count: usize, index: u64) -> Vec<f64> {
    let mut values = vec![0.0; count];
    Stream::new(23, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

fn short(seed: u64) -> SampleSettings {
    SampleSettings {
        chains: 2,
        warmup: Some(60),
        draws: Some(60),
        thin: Some(1),
        seed,
        keep: 30,
        ..SampleSettings::default()
    }
}

/// Mean 0 and standard deviation 1, and what they were.
fn standardised(values: &[f64]) -> (Vec<f64>, f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let sd = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    (values.iter().map(|x| (x - mean) / sd).collect(), mean, sd)
}

/// f(x) = σ_w·x·w + σ_b·b of standardised x and y: Bayesian linear regression of two weights, solved by hand.
#[test]
fn a_linear_network_predicts_its_closed_form() {
    let x: Vec<f64> = normals(12, 0).iter().map(|x| 40.0 + 7.0 * x).collect();
    let noise = 30.0;
    let y: Vec<f64> = x
        .iter()
        .zip(normals(12, 1))
        .map(|(x, e)| 1000.0 - 11.0 * x + noise * e)
        .collect();
    let new = [35.0, 80.0];
    let fit = Regression::new(&x, &y)
        .hidden([])
        .noise(noise)
        .sample(&short(1))
        .unwrap();
    let prediction = fit.predict(&new).unwrap();
    let scale = Composition::fully_connected(1, &[], 1, Activation::Gelu).readout_scale;
    let ((x, x_mean, x_sd), (y, y_mean, y_sd)) = (standardised(&x), standardised(&y));
    let feature = |x: f64| [scale.weight * x, scale.bias];
    let variance = (noise / y_sd).powi(2);
    let (mut precision, mut right) = ([[1.0, 0.0], [0.0, 1.0]], [0.0; 2]);
    for (x, y) in x.iter().zip(&y) {
        let f = feature(*x);
        for i in 0..2 {
            right[i] += f[i] * y / variance;
            for j in 0..2 {
                precision[i][j] += f[i] * f[j] / variance;
            }
        }
    }
    let [[a, b], [_, d]] = precision;
    let determinant = a * d - b * b;
    let covariance = [
        [d / determinant, -b / determinant],
        [-b / determinant, a / determinant],
    ];
    let product = |v: [f64; 2]| covariance.map(|row| row[0] * v[0] + row[1] * v[1]);
    let weights = product(right);
    for (row, x) in new.iter().enumerate() {
        let f = feature((x - x_mean) / x_sd);
        let mean = y_mean + y_sd * (f[0] * weights[0] + f[1] * weights[1]);
        let spread = product(f);
        let of_function = y_sd * (f[0] * spread[0] + f[1] * spread[1]).sqrt();
        let close = |found: f64, expected: f64| {
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        };
        close(prediction.mean()[row], mean);
        close(prediction.sd()[row], of_function.hypot(noise));
        close(prediction.clone().without_noise().sd()[row], of_function);
        let [low, high] = prediction.interval(0.9)[row];
        close(
            high - low,
            2.0 * 1.644_853_626_951_472_7 * of_function.hypot(noise),
        );
        close(prediction.quantile(0.5)[row], mean);
    }
    // 120 independent draws: fewer than 100 of every chain
    assert_eq!(fit.summary().convergence, Convergence::Short);
    assert!(fit.summary().to_string().contains("the chains agree"));
}

/// The same positions as the model's chains with the same seed, whatever the threads.
#[test]
fn draws_are_those_of_the_chains_behind_it() {
    let (x, y) = (normals(20, 2), normals(20, 3));
    let settings = SampleSettings {
        threads: 1,
        ..short(5)
    };
    let fit = Regression::new(&x, &y)
        .hidden([6, 5])
        .sample(&settings)
        .unwrap();
    let two = SampleSettings {
        threads: 2,
        ..settings
    };
    let again = Regression::new(&x, &y).hidden([6, 5]).sample(&two).unwrap();
    let network = Composition::fully_connected(1, &[6, 5], 1, Activation::Gelu);
    let prior = NoisePrior {
        per_output: true,
        ..NoisePrior::default()
    };
    let (x, y) = (standardised(&x).0, standardised(&y).0);
    let noise = Noise::Learned(prior);
    let model =
        Arc::new(Model::<f64>::new(network, noise, &x, y, &[], InputReduction::Auto).unwrap());
    let schedule = Schedule {
        chains: 2,
        warmup: 60,
        draws: 60,
        thin: 1,
        seed: 5,
    };
    let start = |index| {
        let target = Posterior::new(Arc::clone(&model), Coordinates::Marginal).unwrap();
        let chain = Chain::start(index, schedule, &SamplerSettings::default(), target).unwrap();
        (chain, Collect::default())
    };
    let control = Control {
        threads: 1,
        checkpoint_every: Duration::from_secs(60),
        stop: &AtomicBool::new(false),
    };
    let (chains, outcome) = run((0..2).map(start).collect(), control, &|_| {});
    outcome.unwrap();
    for (kept, (_, collected)) in fit.positions().zip(&chains) {
        let kept: Vec<&[f64]> = kept.collect();
        assert_eq!(kept.len(), 30);
        // every second of sixty
        let expected = collected.positions.iter().skip(1).step_by(2);
        assert!(
            kept.iter()
                .zip(expected)
                .all(|(kept, expected)| kept == expected)
        );
    }
    let new = [0.1, 2.0];
    let (once, twice) = (fit.predict(&new).unwrap(), again.predict(&new).unwrap());
    assert_eq!((once.mean(), once.sd()), (twice.mean(), twice.sd()));
    assert_eq!(fit.summary(), again.summary());
}

/// Two planes with noise: both outputs are found, in their units, and the noise of each.
#[test]
fn several_outputs_come_in_their_own_units() {
    let x: Vec<[f64; 2]> = normals(160, 4)
        .chunks(2)
        .map(|x| [x[0], 100.0 * x[1]])
        .collect();
    let noise = normals(160, 8);
    let y: Vec<[f64; 2]> = x
        .iter()
        .zip(noise.chunks(2))
        .map(|(x, e)| {
            let first = x[0] + 0.01 * x[1] + 0.1 * e[0];
            [first, 5000.0 - 1000.0 * x[0] + 100.0 * e[1]]
        })
        .collect();
    let fit = Regression::new(&x, &y)
        .hidden([32])
        .activation(Activation::Tanh)
        .sample(&short(2))
        .unwrap();
    let prediction = fit.predict(&[[0.5, 50.0]]).unwrap();
    assert_eq!((prediction.rows(), prediction.outputs()), (1, 2));
    let (mean, sd) = (prediction.mean(), prediction.sd());
    assert!((mean[0] - 1.0).abs() < 0.2, "{mean:?}");
    assert!((mean[1] - 4500.0).abs() < 200.0, "{mean:?}");
    assert!((0.07..0.3).contains(&sd[0]), "{sd:?}");
    assert!((70.0..300.0).contains(&sd[1]), "{sd:?}");
    let narrow = prediction.without_noise().sd();
    assert!(narrow[0] < sd[0] && narrow[1] < sd[1]);
}

#[test]
fn classes_of_integers_and_of_strings() {
    let x = normals(60, 5);
    let labels: Vec<i32> = x.iter().map(|x| if *x > 0.0 { 10 } else { 9 }).collect();
    let words: Vec<&str> = x
        .iter()
        .map(|x| if *x > 0.0 { "up" } else { "down" })
        .collect();
    let settings = short(3);
    let integers = Classification::new(&x, &labels)
        .hidden([8])
        .sample(&settings)
        .unwrap();
    let strings = Classification::new(&x, &words)
        .hidden([8])
        .sample(&settings)
        .unwrap();
    let new = [-2.0, 2.0];
    let (integers, strings) = (
        integers.predict(&new).unwrap(),
        strings.predict(&new).unwrap(),
    );
    assert_eq!(integers.classes(), ["9", "10"]);
    assert_eq!(strings.classes(), ["down", "up"]);
    assert_eq!(
        (integers.labels(), strings.labels()),
        (vec!["9", "10"], vec!["down", "up"])
    );
    assert_eq!(integers.probabilities(), strings.probabilities());
    for row in integers.probabilities().chunks(2) {
        assert!((row[0] + row[1] - 1.0).abs() < 1e-12);
    }
    assert!(integers.probabilities()[0] > 0.9 && integers.probabilities()[3] > 0.9);
}

#[test]
fn what_is_wrong_is_named() {
    let refused = |regression: &Regression| regression.sample(&short(1)).err().unwrap().to_string();
    let (x, y) = ([1.0, 2.0, 3.0], [1.0, 4.0, 9.0]);
    let nothing: [f64; 0] = [];
    assert!(refused(&Regression::new(&nothing, &y)).starts_with("inputs"));
    assert!(refused(&Regression::new(&x, &nothing)).starts_with("targets"));
    assert!(refused(&Regression::new(&x, &y[..2])).contains("3 rows of inputs and 2 of targets"));
    assert!(
        refused(&Regression::new(&x, &[1.0, f64::NAN, 2.0]))
            .contains("targets: row 1, column 0 is NaN")
    );
    assert!(
        refused(&Regression::new(&[vec![1.0], vec![1.0, 2.0]], &y[..2]))
            .contains("row 1 has 2 numbers, not 1")
    );
    let regression = Regression::new(&x, &y).hidden([4]);
    assert!(refused(&regression.clone().noise(-1.0)).contains("positive"));
    assert!(
        refused(&regression.clone().noise([1.0, 2.0]))
            .contains("2 scales were given for 1 outputs")
    );
    assert!(
        refused(&regression.clone().hidden([0])).contains("width")
            || refused(&regression.clone().hidden([0])).contains('0')
    );
    let settings = |change: &dyn Fn(&mut SampleSettings)| {
        let mut settings = short(1);
        change(&mut settings);
        regression.sample(&settings).err().unwrap()
    };
    assert!(matches!(
        settings(&|s| s.chains = 0),
        FitError::Start(StartError::Zero(_))
    ));
    assert!(matches!(
        settings(&|s| s.keep = 0),
        FitError::Start(StartError::Zero(_))
    ));
    assert!(matches!(
        settings(&|s| s.sampler.step_size = Some(9.0)),
        FitError::Settings(_)
    ));
    let tangent = |s: &mut SampleSettings| s.coordinates = Some(Coordinates::Tangent);
    assert!(matches!(settings(&tangent), FitError::Posterior(_)));
    let one = Classification::new(&x, &["a", "a", "a"])
        .sample(&short(1))
        .err();
    assert_eq!(one, Some(FitError::OneClass("a".to_owned())));
    let fit = regression.sample(&short(1)).unwrap();
    assert!(fit.predict(&[[1.0, 2.0]]).is_err() && fit.predict(&[f64::INFINITY]).is_err());
}

#[test]
fn a_fit_can_be_stopped() {
    let (x, y) = (normals(10, 6), normals(10, 7));
    let control = Control {
        threads: 2,
        checkpoint_every: Duration::from_secs(60),
        stop: &AtomicBool::new(true),
    };
    let settings = SampleSettings {
        sampler: SamplerSettings {
            method: Method::Elliptical,
            ..SamplerSettings::default()
        },
        ..short(1)
    };
    let stopped = Regression::new(&x, &y)
        .hidden([4])
        .sample_with(&settings, control, &|_| {});
    assert_eq!(stopped.err(), Some(FitError::Stopped));
}
