//! The posterior at infinite width, with the coefficients of 1/N, in closed form up to averages over single units.
//!
//! With A = K_s⁻¹Y, B = K_s⁻¹k*, r = φ* − φᵀB, q = φᵀK_s⁻¹φ, s_j = φᵀA_j the derivatives along σ_w²φφᵀ are
//!
//! | g | Dg | ½D²g |
//! |---|---|---|
//! | mean m_j of output j | σ_w² r s_j | −σ_w⁴ r q s_j |
//! | variance v | σ_w² r² | −σ_w⁴ r² q |
//! | ℓ | ½σ_w²(Σ_j s_j² − Cq) | σ_w⁴(¼Cq² − ½ Σ_j s_j² q) |
//!
//! and the spread of m_j over the inner weights adds Var_u(Dm_j) to the variance.

use reprior::compute::kernels::Cholesky;
use reprior::compute::{Purpose, Stream};
use reprior::network::{Activation, LayerScale};

use super::{INPUTS, Kinds, NOISE, OUTPUTS, Problem, TEST, TRAIN};

/// One number of the posterior.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// At infinite width.
    pub limit: f64,
    /// c, the coefficient of 1/N.
    pub correction: f64,
    /// The part of c that comes from weighing inner weights by the marginal likelihood, Cov_u(Dg, Dℓ).
    pub weighing: f64,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// E[f(u)f(v)] for Gaussian (u, v) with second moments `k11`, `k22`, `k12`.
fn unit_kernel(activation: Activation, k11: f64, k22: f64, k12: f64) -> f64 {
    use std::f64::consts::{PI, TAU};
    match activation {
        Activation::Gelu => {
            let (p, p1) = (k11 * k22, (1.0 + k11) * (1.0 + k22));
            let d = (p1 - k12 * k12).sqrt();
            ((k12 * k12 + p * d * d) / (p1 * d) + k12 * k12.atan2(d)) / TAU + k12 / 4.0
        }
        Activation::Relu => {
            // Cho & Saul 2009, degree 1
            let root = (k11 * k22).sqrt();
            let angle = (k12 / root).clamp(-1.0, 1.0).acos();
            root * (angle.sin() + (PI - angle) * angle.cos()) / TAU
        }
        other => panic!("no closed kernel of {other} here"),
    }
}

/// σ_w² E[φφᵀ] of one hidden layer with the default scales, without the readout's σ_b².
fn kernel(activation: Activation, x: &[f64], z: &[f64], inputs: usize) -> Vec<Vec<f64>> {
    let LayerScale { weight, bias } = LayerScale::HIDDEN;
    let inner = |a: &[f64], b: &[f64]| weight.powi(2) / inputs as f64 * dot(a, b) + bias.powi(2);
    let entry = |a: &[f64], b: &[f64]| {
        let unit = unit_kernel(activation, inner(a, a), inner(b, b), inner(a, b));
        LayerScale::READOUT.weight.powi(2) * unit
    };
    x.chunks(inputs)
        .map(|a| z.chunks(inputs).map(|b| entry(a, b)).collect())
        .collect()
}

/// The golden values are those of neural-tangents 0.6.5.
#[test]
fn closed_kernels_agree_with_golden_values() {
    assert!((unit_kernel(Activation::Gelu, 1.0, 1.0, 1.0) - 0.425_221).abs() < 1e-6);
    let x = [
        [1.0, 0.0, 0.0],
        [0.5, -1.0, 2.0],
        [-0.3, 0.7, 0.1],
        [-1.0, 0.0, 0.0],
    ];
    let gelu = [
        0.280570286878657,
        0.2399717782641465,
        -0.0040410320957185095,
        -0.05629294529528877,
    ];
    let relu = [
        0.3483333333333334,
        0.34722498332551643,
        0.05120775666950206,
        0.010516708824085907,
    ];
    for (activation, golden) in [(Activation::Gelu, gelu), (Activation::Relu, relu)] {
        let ours = &kernel(activation, &x[0], x.as_flattened(), 3)[0];
        for (k, golden) in ours.iter().zip(golden) {
            let k = k + LayerScale::READOUT.bias.powi(2);
            assert!((k - golden).abs() < 1e-9, "{activation}: {k} {golden}");
        }
    }
}

/// Means and variances of predictions and ℓ of the Gaussian process of the given activation.
pub fn quantities(activation: Activation, problem: &Problem) -> Kinds<Quantity> {
    let Problem { inputs: x, targets } = problem;
    let k = kernel(activation, x, x, INPUTS);
    let bias = LayerScale::READOUT.bias.powi(2);
    let mut cholesky = Cholesky::new(TRAIN);
    let noise = |i, j| if i == j { NOISE * NOISE } else { 0.0 };
    cholesky
        .factorise(|i, j| k[i][j] + bias + noise(i, j))
        .unwrap();
    let solve = |b: &[f64]| {
        let mut b = b.to_vec();
        cholesky.solve_lower(&mut b, 1);
        cholesky.solve_upper(&mut b, 1);
        b
    };
    let a: Vec<Vec<f64>> = targets.chunks(TRAIN).map(&solve).collect();
    let cross = |t: usize| {
        (0..TRAIN)
            .map(|i| k[TRAIN + t][i] + bias)
            .collect::<Vec<_>>()
    };
    let b: Vec<Vec<f64>> = (0..TEST).map(|t| solve(&cross(t))).collect();

    let scale = LayerScale::READOUT.weight.powi(2);
    let c = OUTPUTS as f64;
    let mut means = vec![Averages::default(); OUTPUTS * TEST];
    let mut variances = means.clone();
    let mut likelihood = Averages::default();
    for_each_unit(activation, x, |phi| {
        let (train, test) = phi.split_at(TRAIN);
        let q = dot(train, &solve(train));
        let s: Vec<f64> = a.iter().map(|a| dot(a, train)).collect();
        let fit = dot(&s, &s);
        let dl = 0.5 * scale * (fit - c * q);
        likelihood.add(dl, scale * scale * q * (0.25 * c * q - 0.5 * fit), dl);
        for index in 0..OUTPUTS * TEST {
            let (s, t) = (s[index / TEST], index % TEST);
            let r = test[t] - dot(&b[t], train);
            means[index].add(scale * r * s, -scale * scale * r * q * s, dl);
            variances[index].add(scale * r * r, -scale * scale * r * r * q, dl);
        }
    });

    // second derivatives were averaged over σ_w²φφᵀ; to centre them, those along its mean E are taken off
    let mean_times = |v: &[f64]| {
        (0..TRAIN)
            .map(|i| dot(&k[i][..TRAIN], v))
            .collect::<Vec<_>>()
    };
    let mut kinds = [vec![], vec![], vec![]];
    for index in 0..OUTPUTS * TEST {
        let (a, t) = (&a[index / TEST], index % TEST);
        let r: Vec<f64> = k[TRAIN + t]
            .iter()
            .zip(mean_times(&b[t]))
            .map(|(k, e)| k - e)
            .collect();
        let solved = solve(&r);
        let (mean, variance) = (&means[index], &variances[index]);
        let expected = dot(&cross(t), a);
        kinds[0].push(mean.quantity(expected, -dot(&solved, &mean_times(a))));
        let expected = k[TRAIN + t][TRAIN + t] + bias - dot(&cross(t), &b[t]);
        let mut quantity = variance.quantity(expected, -dot(&solved, &r));
        quantity.correction += mean.variance();
        kinds[1].push(quantity);
    }
    let mut centre = 0.0;
    for a in &a {
        let s = mean_times(a);
        centre -= 0.5 * dot(&s, &solve(&s));
    }
    let columns: Vec<Vec<f64>> = (0..TRAIN).map(|i| solve(&k[i][..TRAIN])).collect();
    for (i, column) in columns.iter().enumerate() {
        let products = columns.iter().zip(column).map(|(other, x)| other[i] * x);
        centre += 0.25 * c * products.sum::<f64>();
    }
    let fit: f64 = a
        .iter()
        .zip(targets.chunks(TRAIN))
        .map(|(a, y)| dot(a, y))
        .sum();
    let expected = -0.5 * fit - 0.5 * c * cholesky.log_determinant();
    kinds[2].push(likelihood.quantity(expected, centre));
    kinds
}

/// Activations of single units on all inputs, drawn from the prior; enough for c to a few per cent.
fn for_each_unit(activation: Activation, x: &[f64], mut visit: impl FnMut(&[f64])) {
    let LayerScale { weight, bias } = LayerScale::HIDDEN;
    let mut stream = Stream::new(22, 0, Purpose::Initial, 0);
    let mut w = vec![0.0; INPUTS + 1];
    for _ in 0..100_000 {
        stream.fill_normal(&mut w);
        let z = |x: &[f64]| weight / (INPUTS as f64).sqrt() * dot(x, &w) + bias * w[INPUTS];
        let mut phi: Vec<f64> = x.chunks(INPUTS).map(z).collect();
        activation.apply(&mut phi);
        visit(&phi);
    }
}

/// Sums over units of Dg, (Dg)², Dℓ, Dg·Dℓ, ½D²g.
#[derive(Clone, Copy, Default)]
struct Averages {
    count: f64,
    sums: [f64; 5],
}

impl Averages {
    fn add(&mut self, first: f64, second: f64, likelihood: f64) {
        self.count += 1.0;
        let terms = [first, first * first, likelihood, first * likelihood, second];
        self.sums
            .iter_mut()
            .zip(terms)
            .for_each(|(sum, term)| *sum += term);
    }

    fn average(&self, index: usize) -> f64 {
        self.sums[index] / self.count
    }

    /// Var_u(Dg).
    fn variance(&self) -> f64 {
        self.average(1) - self.average(0).powi(2)
    }

    /// The quantity with value `limit`; `centre` is ½D²g along the mean of σ_w²φφᵀ.
    fn quantity(&self, limit: f64, centre: f64) -> Quantity {
        let weighing = self.average(3) - self.average(0) * self.average(2);
        Quantity {
            limit,
            weighing,
            correction: weighing + self.average(4) - centre,
        }
    }
}
