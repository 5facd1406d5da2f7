//! PSIS-LOO against ArviZ, and against what is known of a conjugate model; its closed form against fits without the row.

use std::sync::Arc;

use reprior::compute::{Purpose, Stream};
use reprior::diagnostics::LeaveOneOut;
use reprior::gaussian_process::GaussianProcess;
use reprior::model::likelihood::{
    Categorical, GaussianHeteroscedastic, Likelihood, Poisson, StudentT, StudentTHeteroscedastic,
};
use reprior::model::{InputReduction, Model, Noise, NoisePrior};
use reprior::network::{Activation, Composition};
use reprior::posterior::{Coordinates, Posterior, PosteriorSettings, Recorder, Space, Target};

/// Uniform numbers that any language makes alike.
fn uniforms(count: usize) -> Vec<f64> {
    let mut state = 1_u64;
    let mut next = || {
        state = (state * 1_103_515_245 + 12_345) % (1 << 31);
        (state as f64 + 0.5) / (1_u64 << 31) as f64
    };
    (0..count).map(|_| next()).collect()
}

/// Of a location with logistic draws.
fn normal(draws: usize, rows: usize) -> Vec<f64> {
    let draws = uniforms(draws).into_iter();
    draws
        .flat_map(|u| {
            let theta = (u / (1.0 - u)).ln() * 0.3;
            let y = (0..rows).map(move |row| row as f64 * 0.7 - 1.5);
            y.map(move |y| -2.0 * (y - theta).powi(2) - 0.2)
        })
        .collect()
}

/// Whose ratios have Pareto distributions of these shapes.
fn pareto(draws: usize, shapes: &[f64]) -> Vec<f64> {
    let all = uniforms(draws * shapes.len());
    let rows = all.chunks(shapes.len());
    rows.flat_map(|row| row.iter().zip(shapes).map(|(u, k)| k * (1.0 - u).ln()))
        .collect()
}

fn close(found: f64, expected: f64) -> bool {
    found == expected || (found / expected - 1.0).abs() < 1e-6
}

/// elpd_loo, its standard error, p_loo, log-densities, k.
type Golden<'a> = ([f64; 3], &'a [f64], &'a [f64]);

fn check(name: &str, log_likelihood: &[f64], efficiency: f64, (sums, densities, k): Golden<'_>) {
    let found = LeaveOneOut::new(log_likelihood, densities.len(), efficiency).unwrap();
    let elpd = found.elpd();
    let all = [
        elpd.total,
        elpd.standard_error,
        found.effective_parameters(),
    ];
    // its standard errors are with the variance by n; since 1.0 by n − 1, as here
    let rows = densities.len() as f64;
    let sums = [sums[0], sums[1] * (rows / (rows - 1.0)).sqrt(), sums[2]];
    for (found, expected) in all.iter().zip(sums) {
        assert!(close(*found, expected), "{name}: {found} {expected}");
    }
    let own = found.log_densities.iter().zip(densities);
    for (found, expected) in own.chain(found.pareto_k.iter().zip(k)) {
        assert!(close(*found, *expected), "{name}: {found} {expected}");
    }
}

/// The numbers are those of `az.loo` (ArviZ 0.23.4, NumPy 2.4.6; those of `pareto` of arviz-stats 1.3.3, which rounds the tail's length down).
#[test]
fn leave_one_out_is_that_of_arviz() {
    let normal_400 = normal(400, 6);
    let densities = [
        -11.633785100286955,
        -4.938499512067996,
        -1.2502565612090901,
        -3.613313549192207,
        -9.708552203028892,
        -18.02951362916918,
    ];
    let k = [
        2.1511036388876614,
        1.5495181496475214,
        0.7096359140274535,
        1.4154584003877548,
        2.047042181254912,
        2.7015722715573496,
    ];
    let sums = [-49.17392055495432, 13.807963158620396, 37.063937666492926];
    check("normal", &normal_400, 1.0, (sums, &densities, &k));
    let densities = [
        -11.78403818319234,
        -5.012167782259632,
        -1.2560505951949947,
        -3.6325150599156553,
        -9.729271142108866,
        -18.04939503547841,
    ];
    let k = [
        2.3360690352231797,
        1.6533506095872323,
        0.8450023975876737,
        1.5024684951901923,
        2.1277405753602827,
        2.7824541379230743,
    ];
    let sums = [-49.4634377981499, 13.835665584767188, 37.3534549096885];
    check(
        "few effective draws",
        &normal_400,
        0.03,
        (sums, &densities, &k),
    );
    let densities = [
        0.18114141492836122,
        -0.10885992984621318,
        -0.7276586126793578,
        -1.2153221022222382,
        -2.6237081528473443,
    ];
    let k = [
        -0.9118742458032122,
        0.17158911416157369,
        0.5135285473431124,
        0.6626850962464534,
        1.0672544569902724,
    ];
    let sums = [-4.494407382666792, 2.2124788117241643, 2.85134157415692];
    let shapes = [-0.2, 0.1, 0.5, 0.8, 1.2];
    check(
        "pareto",
        &pareto(1000, &shapes),
        0.35,
        (sums, &densities, &k),
    );
    let densities = [-12.085023545806377, -5.499302623554417, -1.345867066087616];
    let sums = [-18.93019323544841, 7.65837730618574, 14.07718493543534];
    let k = [f64::INFINITY; 3];
    check("20 draws", &normal(20, 3), 1.0, (sums, &densities, &k));
    let densities = [
        -7.9813118707885895,
        -3.0713097899405337,
        -0.7646139480255929,
    ];
    let k = [1.526922387670591, 1.2556641015875398, 0.8513289772256839];
    let sums = [-11.817235608754716, 5.212475261314649, 6.725992238502667];
    check("30 draws", &normal(30, 3), 0.8, (sums, &densities, &k));
    let densities = [-952.7972090031955, -5.148050678051228];
    let k = [104.88537849608659, 1.5626542863514968];
    let sums = [-957.9452596812467, 670.0891460374337, 947.6129690490226];
    let ratios = pareto(200, &[300.0, 2.0]);
    check(
        "beyond double precision",
        &ratios,
        1.0,
        (sums, &densities, &k),
    );
}

/// y_i ~ N(θ, σ²), θ ~ N(0, 1): p(y_i | y_−i) is known, and draws of θ | y are exact.
#[test]
fn of_a_conjugate_model_it_is_the_exact_one() {
    let (rows, draws, sigma) = (30, 8000, 0.8_f64);
    let mut stream = Stream::new(5, 0, Purpose::Initial, 0);
    let y: Vec<f64> = (0..rows).map(|_| 0.4 + sigma * stream.normal()).collect();
    let precision = |count: usize| 1.0 + count as f64 / sigma.powi(2);
    let all: f64 = y.iter().sum();
    let (mean, variance) = (all / sigma.powi(2) / precision(rows), 1.0 / precision(rows));
    let mut log_likelihood = Vec::new();
    for _ in 0..draws {
        let theta = mean + variance.sqrt() * stream.normal();
        log_likelihood.extend(y.iter().map(|&y| log_normal(y, theta, sigma * sigma)));
    }
    let found = LeaveOneOut::new(&log_likelihood, rows, 1.0).unwrap();
    let without = precision(rows - 1);
    let mut exact = 0.0;
    for (&y, found) in y.iter().zip(&found.log_densities) {
        let own = log_normal(
            y,
            (all - y) / sigma.powi(2) / without,
            sigma * sigma + 1.0 / without,
        );
        assert!((own - found).abs() < 0.02, "{own} {found}");
        exact += own;
    }
    assert!((found.elpd().total - exact).abs() < 0.05);
    assert!(found.rows_above(0.7) == 0 && found.good_k() == 0.7);
    // one parameter
    assert!((found.effective_parameters() - 1.0).abs() < 0.5);
}

#[test]
fn what_cannot_be_estimated_is_said() {
    // draws that do not differ weigh the same
    let same = LeaveOneOut::new(&[-1.0; 50], 1, 1.0).unwrap();
    assert_eq!(same.pareto_k, [f64::NEG_INFINITY]);
    assert!((same.elpd().total + 1.0).abs() < 1e-12);
    assert_eq!(same.rows_above(0.7), 0);
    // one draw says nothing of how they vary
    let one = LeaveOneOut::new(&[-1.0, -2.0], 2, 1.0).unwrap();
    assert_eq!(one.rows_above(0.7), 2);
    let mut values = vec![-1.0; 60];
    values[7] = f64::NEG_INFINITY;
    let wrong = LeaveOneOut::new(&values, 2, 1.0).unwrap();
    assert!(wrong.log_densities[1].is_nan() && wrong.pareto_k[1] == f64::INFINITY);
    assert!(LeaveOneOut::new(&[], 3, 1.0).is_err());
    assert!(LeaveOneOut::new(&[0.0; 4], 3, 1.0).is_err());
}

fn normals(count: usize, index: u64) -> Vec<f64> {
    let mut values = vec![0.0; count];
    Stream::new(17, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

fn log_normal(y: f64, mean: f64, variance: f64) -> f64 {
    -0.5 * (std::f64::consts::TAU * variance).ln() - 0.5 * (y - mean).powi(2) / variance
}

/// Inputs and outputs of the models below.
const SIZES: [usize; 2] = [3, 2];

/// A model of these rows (inputs row-major, targets column-major), which predicts `test`.
fn model(hidden: &[usize], noise: &Noise, x: &[f64], y: Vec<f64>, test: &[f64]) -> Arc<Model<f64>> {
    let [inputs, outputs] = SIZES;
    let network = Composition::fully_connected(inputs, hidden, outputs, Activation::Tanh);
    Arc::new(Model::new(network, noise.clone(), x, y, test, InputReduction::Off).unwrap())
}

/// Of each row the inputs or targets of the others, and its own.
fn without(values: &[f64], rows: usize, row: usize, is_row_major: bool) -> (Vec<f64>, Vec<f64>) {
    let count = values.len() / rows;
    let is_own = |at: usize| match is_row_major {
        true => at / count == row,
        false => at % rows == row,
    };
    let pick = |own: bool| {
        let all = values.iter().enumerate();
        all.filter(|(at, _)| is_own(*at) == own)
            .map(|(_, x)| *x)
            .collect()
    };
    (pick(false), pick(true))
}

/// Given the inner weights and the noise, row by row, the prediction of a model that was fitted without the row.
#[test]
fn the_closed_form_is_that_of_fits_without_the_row() {
    let [inputs, outputs] = SIZES;
    let prior = NoisePrior {
        per_output: true,
        ..NoisePrior::default()
    };
    for (rows, hidden, noise) in [
        (7, vec![12], Noise::from(0.3)),
        (300, vec![5, 4], Noise::from(0.3)),
        (9, vec![4], Noise::Known(vec![0.2, 0.7])),
        (8, vec![6], Noise::Learned(prior)),
        (6, vec![], Noise::from(0.3)),
    ] {
        let (x, y) = (normals(rows * inputs, 1), normals(rows * outputs, 2));
        let all = model(&hidden, &noise, &x, y.clone(), &[]);
        let dimension = Posterior::dimension(&all, Coordinates::Marginal);
        let z = normals(dimension, 3);
        let chosen: Vec<usize> = (0..rows).collect();
        let record = |model: &Arc<Model<f64>>, settings: PosteriorSettings, z: &[f64]| {
            let mut posterior = Posterior::new(Arc::clone(model), settings).unwrap();
            let mut recorder = Recorder::new(Arc::clone(model)).with_log_likelihood(chosen.clone());
            let mut stream = Stream::new(4, 0, Purpose::Recording, 1);
            recorder
                .record(&mut posterior, z, &mut stream)
                .unwrap()
                .clone()
        };
        let exact: Vec<f64> = chosen
            .iter()
            .map(|&row| {
                let (others, own) = without(&x, rows, row, true);
                let (targets, target) = without(&y, rows, row, false);
                let others = model(&hidden, &noise, &others, targets, &own);
                let found = record(&others, Coordinates::Marginal.into(), &z);
                let each = target.iter().enumerate().map(|(output, &y)| {
                    let variance = found.variance[output] + found.noise[output].powi(2);
                    log_normal(y, found.mean[output], variance)
                });
                each.sum()
            })
            .collect();
        for space in [Space::Feature, Space::Data] {
            for coordinates in [
                Coordinates::Marginal,
                Coordinates::Repriorised,
                Coordinates::Standard,
            ] {
                let settings = PosteriorSettings::in_space(coordinates, space);
                // whatever the readout is
                let mut z = z.clone();
                z.resize(Posterior::dimension(&all, coordinates), 0.4);
                let found = record(&all, settings, &z).log_likelihood;
                assert_eq!(found.len(), chosen.len());
                for (found, exact) in found.iter().zip(&exact) {
                    let difference = (found - exact).abs() / (1.0 + exact.abs());
                    assert!(difference < 1e-8, "{hidden:?} {space} {found} {exact}");
                }
            }
        }
    }
}

/// Under other likelihoods rows add up to log p(y | θ).
#[test]
fn of_other_likelihoods_rows_add_up() {
    let [inputs, outputs] = SIZES;
    let rows = 11;
    let x = normals(rows * inputs, 1);
    let one_hot: Vec<f64> = (0..rows * outputs)
        .map(|at| f64::from(u8::from(at % rows % 2 == at / rows)))
        .collect();
    let likelihoods: [Arc<dyn Likelihood>; 5] = [
        Arc::new(GaussianHeteroscedastic::default()),
        Arc::new(StudentTHeteroscedastic::new(4.0).unwrap()),
        Arc::new(Categorical),
        Arc::new(StudentT::new(4.0).unwrap()),
        Arc::new(Poisson::new(vec![1.0, 2.5]).unwrap()),
    ];
    for likelihood in likelihoods {
        let network = Composition::fully_connected(inputs, &[6], outputs, Activation::Tanh);
        let reduction = InputReduction::Off;
        let model = Model::<f64>::new(network, 0.4, &x, one_hot.clone(), &[], reduction);
        let model = Arc::new(model.unwrap().with_likelihood(Arc::clone(&likelihood)));
        let mut posterior = Posterior::new(Arc::clone(&model), Coordinates::Standard).unwrap();
        let z = normals(posterior.dim(), 5);
        let whole = posterior.log_ratio(&z).unwrap() + likelihood.left_out(rows * outputs);
        let mut recorder =
            Recorder::new(Arc::clone(&model)).with_log_likelihood((0..rows).collect());
        let mut stream = Stream::new(4, 0, Purpose::Recording, 1);
        let record = recorder.record(&mut posterior, &z, &mut stream).unwrap();
        let sum: f64 = record.log_likelihood.iter().sum();
        assert!((sum - whole).abs() < 1e-9, "{likelihood:?} {sum} {whole}");
    }
}

/// A process fitted without the row, and one fitted with it.
#[test]
fn of_gaussian_processes_too() {
    let (rows, outputs, noise) = (12, 2, 0.4);
    let (x, y) = (normals(rows, 1), normals(rows * outputs, 2));
    let kernel = |a: &[f64], b: &[f64]| -> Vec<f64> {
        let of = |x: f64| a.iter().map(move |y| (-(x - y).powi(2)).exp());
        b.iter().flat_map(|&x| of(x)).collect()
    };
    let whole = kernel(&x, &x);
    let predicted = |process: &GaussianProcess, cross: &[f64], target: &[f64]| -> f64 {
        let means = process.mean(cross).unwrap();
        let variance = process.variance(cross, &[1.0]).unwrap().values[0] + noise * noise;
        let each = means.iter().zip(target);
        each.map(|(mean, &y)| log_normal(y, *mean, variance)).sum()
    };
    let process = GaussianProcess::new(&whole, rows, &y, noise).unwrap();
    let [left_out, in_sample] = process.leave_one_out();
    for row in 0..rows {
        let (others, own) = without(&x, rows, row, true);
        let (targets, target) = without(&y, rows, row, false);
        let fitted =
            GaussianProcess::new(&kernel(&others, &others), rows - 1, &targets, noise).unwrap();
        let exact = predicted(&fitted, &kernel(&others, &own), &target);
        assert!((left_out[row] - exact).abs() < 1e-9, "{row}");
        let exact = predicted(&process, &kernel(&x, &own), &target);
        assert!((in_sample[row] - exact).abs() < 1e-9, "{row}");
    }
}
