//! The position of given weights: the map T of `repriorised` coordinates is affine in φ_out, θ = μ + Aφ, so that θ at
//! φ = 0 and at unit vectors gives μ and A.

use reprior::compute::{Purpose, Stream};
use reprior::posterior::{Coordinates, Posterior, Recorder};

/// θ_out of a position.
pub fn theta(posterior: &mut Posterior<f64>, recorder: &mut Recorder<f64>, z: &[f64]) -> Vec<f64> {
    let inner = posterior.model().inner_parameters();
    let mut stream = Stream::new(0, 0, Purpose::Recording, 0);
    let record = recorder.record(posterior, z, &mut stream).unwrap();
    record.weights[inner..].to_vec()
}

/// μ, and A of every output (columns of p entries), at the inner weights and noise coordinates `start`.
fn affine(
    posterior: &mut Posterior<f64>,
    recorder: &mut Recorder<f64>,
    start: &[f64],
) -> (Vec<f64>, Vec<Vec<f64>>) {
    let p = posterior.model().architecture.readout_rows();
    let outputs = posterior.model().architecture.outputs;
    let mut z = [start, &vec![0.0; p * outputs]].concat();
    let mean = theta(posterior, recorder, &z);
    // large steps, so that large means do not drown them
    let step = mean
        .iter()
        .fold(1.0, |largest: f64, m| largest.max(m.abs()));
    let mut maps = vec![Vec::new(); outputs];
    for k in 0..p {
        // outputs do not mix: all of them at once
        (0..outputs).for_each(|j| z[start.len() + j * p + k] = step);
        let image = theta(posterior, recorder, &z);
        (0..outputs).for_each(|j| z[start.len() + j * p + k] = 0.0);
        for (j, map) in maps.iter_mut().enumerate() {
            map.extend((j * p..(j + 1) * p).map(|at| (image[at] - mean[at]) / step));
        }
    }
    (mean, maps)
}

/// Gaussian elimination with row pivots, of a copy: (A⁻¹b, log|det A|).
pub fn solve(a: &[f64], b: &[f64]) -> (Vec<f64>, f64) {
    let (n, mut a, mut b) = (b.len(), a.to_vec(), b.to_vec());
    let mut log_determinant = 0.0;
    for k in 0..n {
        let larger = |&i: &usize, &j: &usize| a[k * n + i].abs().total_cmp(&a[k * n + j].abs());
        let pivot = (k..n).max_by(larger).unwrap();
        (0..n).for_each(|column| a.swap(column * n + k, column * n + pivot));
        b.swap(k, pivot);
        log_determinant += a[k * n + k].abs().ln();
        for i in k + 1..n {
            let factor = a[k * n + i] / a[k * n + k];
            (k..n).for_each(|column| a[column * n + i] -= factor * a[column * n + k]);
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        let rest: f64 = (k + 1..n).map(|column| a[column * n + k] * b[column]).sum();
        b[k] = (b[k] - rest) / a[k * n + k];
    }
    (b, log_determinant)
}

/// The position whose weights are `weights` (inner weights, then the readout) and whose noise coordinates are `noise`.
pub fn position(
    posterior: &mut Posterior<f64>,
    recorder: &mut Recorder<f64>,
    weights: &[f64],
    noise: &[f64],
) -> Vec<f64> {
    let (inner, readout) = weights.split_at(posterior.model().inner_parameters());
    let start = [inner, noise].concat();
    match posterior.coordinates() {
        Coordinates::Marginal => start,
        Coordinates::Standard | Coordinates::Tangent => [&start, readout].concat(),
        Coordinates::Repriorised => {
            let (mean, maps) = affine(posterior, recorder, &start);
            let p = mean.len() / maps.len();
            let centred: Vec<f64> = readout.iter().zip(mean).map(|(w, m)| w - m).collect();
            let solutions = centred
                .chunks(p)
                .zip(&maps)
                .flat_map(|(b, a)| solve(a, b).0);
            let z: Vec<f64> = start.iter().copied().chain(solutions).collect();
            let again = theta(posterior, recorder, &z);
            let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-6;
            assert!(
                again.iter().zip(readout).all(close),
                "{again:?} {readout:?}"
            );
            z
        }
    }
}
