//! Built-in data sets: stable values, sensible splits, and `strokes` as hard as it should be.

use reprior::model::dataset::{Dataset, InputKind, Split, Targets};
use reprior_io::data::{Request, load};

fn built_in(name: &str) -> Split {
    load(&Request::new(name)).unwrap()
}

fn labels(data: &Dataset) -> &[u32] {
    match &data.targets {
        Targets::Classes { labels, .. } => labels,
        Targets::Real { .. } => panic!("classes are due"),
    }
}

/// Solves (A + ridge I) X = B in place by Cholesky; A is n × n, B is n × m.
fn solve(mut a: Vec<f64>, ridge: f64, mut b: Vec<f64>, n: usize) -> Vec<f64> {
    let m = b.len() / n;
    for i in 0..n {
        a[i * n + i] += ridge;
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| a[i * n + k] * a[j * n + k]).sum();
            let rest = a[i * n + j] - dot;
            a[i * n + j] = if i == j {
                rest.sqrt()
            } else {
                rest / a[j * n + j]
            };
        }
    }
    for i in 0..n {
        for c in 0..m {
            let dot: f64 = (0..i).map(|k| a[i * n + k] * b[k * m + c]).sum();
            b[i * m + c] = (b[i * m + c] - dot) / a[i * n + i];
        }
    }
    for i in (0..n).rev() {
        for c in 0..m {
            let dot: f64 = (i + 1..n).map(|k| a[k * n + i] * b[k * m + c]).sum();
            b[i * m + c] = (b[i * m + c] - dot) / a[i * n + i];
        }
    }
    b
}

/// Test accuracy of kernel ridge regression on one-hot targets, in per cent, at the best of several ridges (which can only flatter it).
fn accuracy(
    train: &Dataset,
    test: &Dataset,
    ridges: &[f64],
    kernel: impl Fn(&[f64], &[f64]) -> f64,
) -> f64 {
    let rows = |data: &Dataset| -> Vec<Vec<f64>> {
        // Each image has mean 0 and variance 1, so that brightness and contrast do not matter.
        data.inputs
            .to_reals()
            .chunks_exact(data.columns)
            .map(|image| {
                let mean = image.iter().sum::<f64>() / image.len() as f64;
                let sd = (image.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>()
                    / image.len() as f64)
                    .sqrt();
                image.iter().map(|x| (x - mean) / sd).collect()
            })
            .collect()
    };
    let (x, x_test, n, classes) = (rows(train), rows(test), train.rows, train.targets.outputs());
    let gram: Vec<f64> = x
        .iter()
        .flat_map(|a| x.iter().map(|b| kernel(a, b)).collect::<Vec<_>>())
        .collect();
    let mut one_hot = vec![0.0; n * classes];
    for (row, &label) in labels(train).iter().enumerate() {
        one_hot[row * classes + label as usize] = 1.0;
    }
    let cross: Vec<Vec<f64>> = x_test
        .iter()
        .map(|a| x.iter().map(|b| kernel(a, b)).collect())
        .collect();
    let at = |&ridge: &f64| {
        let weights = solve(gram.clone(), ridge, one_hot.clone(), n);
        let correct = cross.iter().zip(labels(test)).filter(|(kernels, label)| {
            let score = |class: usize| -> f64 {
                kernels
                    .iter()
                    .enumerate()
                    .map(|(row, k)| k * weights[row * classes + class])
                    .sum()
            };
            let best = (0..classes).max_by(|&a, &b| score(a).total_cmp(&score(b)));
            best == Some(**label as usize)
        });
        100.0 * correct.count() as f64 / test.rows as f64
    };
    ridges.iter().map(at).fold(0.0, f64::max)
}

#[test]
fn strokes_defeat_a_linear_model_but_not_a_kernel() {
    let split = load(&Request {
        train: Some(1000),
        ..Request::new("strokes")
    })
    .unwrap();
    assert_eq!((split.train.rows, split.test.rows), (1000, 1000));
    let linear = accuracy(&split.train, &split.test, &[30.0, 300.0, 3000.0], |a, b| {
        1.0 + a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>()
    });
    let kernel = accuracy(&split.train, &split.test, &[0.01, 0.1], |a, b| {
        let squares: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
        (-squares / 200.0).exp()
    });
    // Measured: linear 56.8 %, kernel 88.0 %.
    assert!(
        linear > 15.0 && linear < 65.0,
        "linear {linear} %, kernel {kernel} %"
    );
    assert!(
        kernel > linear + 10.0 && kernel > 70.0,
        "linear {linear} %, kernel {kernel} %"
    );
}

#[test]
fn shapes_and_default_splits() {
    let friedman = built_in("friedman");
    assert_eq!(
        (
            friedman.train.rows,
            friedman.test.rows,
            friedman.train.columns
        ),
        (1200, 300, 10)
    );
    assert_eq!(friedman.train.targets.names(), ["y"]);
    let moons = built_in("two-moons");
    assert_eq!(
        (moons.train.rows, moons.test.rows, moons.train.columns),
        (800, 200, 2)
    );
    let strokes = built_in("strokes");
    assert_eq!((strokes.train.rows, strokes.test.rows), (2000, 1000));
    assert_eq!(
        strokes.train.kind,
        InputKind::Image {
            height: 16,
            width: 16,
            channels: 1
        }
    );
    assert!(
        strokes
            .train
            .inputs
            .iter()
            .all(|x| (0.0..=255.0).contains(&x) && x.fract() == 0.0)
    );
    for class in 0..10 {
        assert_eq!(
            labels(&strokes.train)
                .iter()
                .filter(|&&label| label == class)
                .count(),
            200
        );
    }
    let more = load(&Request {
        train: Some(3000),
        ..Request::new("strokes")
    })
    .unwrap();
    assert_eq!((more.train.rows, more.test.rows), (3000, 1000));
}

#[test]
fn test_rows_follow_the_training_rows() {
    let all = load(&Request {
        train: Some(1500),
        test: Some(0),
        ..Request::new("friedman")
    })
    .unwrap();
    let some = load(&Request {
        train: Some(100),
        test: Some(50),
        ..Request::new("friedman")
    })
    .unwrap();
    assert_eq!(some.train, all.train.slice(0..100));
    assert_eq!(some.test, all.train.slice(100..150));
}

/// FNV-1a over the bits of the values.
fn fingerprint(values: &[f64]) -> u64 {
    values
        .iter()
        .flat_map(|value| value.to_bits().to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

#[test]
fn values_are_stable() {
    let friedman = built_in("friedman").train;
    let Targets::Real { values, .. } = &friedman.targets else {
        panic!()
    };
    let found = [
        fingerprint(&friedman.inputs.to_reals()),
        fingerprint(values),
        fingerprint(&built_in("two-moons").train.inputs.to_reals()),
        fingerprint(&built_in("strokes").train.inputs.to_reals()),
    ];
    assert_eq!(
        found,
        [
            11_013_176_802_404_737_264,
            668_632_065_956_677_612,
            16_308_268_491_951_002_736,
            15_151_044_809_980_413_787
        ]
    );
    assert_eq!(
        friedman.inputs.to_reals()[..2],
        [0.07275979808629529, 0.7547829795079736]
    );
}
