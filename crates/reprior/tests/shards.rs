//! A posterior whose rows are in several shards against the same rows in one piece.

use std::sync::Arc;

use reprior::compute::{Purpose, Real, Stream};
use reprior::model::likelihood::{Categorical, Gaussian, Likelihood, StudentT};
use reprior::model::{InputReduction, Model, Noise, NoisePrior, ScalePrior};
use reprior::network::{Activation, Composition};
use reprior::posterior::{
    Coordinates, Posterior, PosteriorSettings, Recorder, Shard, ShardError, Shards, Space, Target,
    Total,
};

const ROWS: usize = 23;
const INPUTS: usize = 3;
const TEST_ROWS: usize = 4;

fn normals(count: usize, index: u64) -> Vec<f64> {
    let mut values = vec![0.0; count];
    Stream::new(17, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

fn learned(per_output: bool) -> Noise {
    let (median, spread) = (0.4, 0.7);
    Noise::Learned(NoisePrior {
        median,
        spread,
        per_output,
    })
}

struct Case {
    hidden: Vec<usize>,
    outputs: usize,
    noise: Noise,
    likelihood: Arc<dyn Likelihood>,
    coordinates: Coordinates,
    learns_scales: bool,
}

impl Case {
    fn new(hidden: &[usize], noise: impl Into<Noise>, coordinates: Coordinates) -> Self {
        Self {
            hidden: hidden.to_vec(),
            outputs: 2,
            noise: noise.into(),
            likelihood: Arc::new(Gaussian),
            coordinates,
            learns_scales: false,
        }
    }

    /// A model of some of the rows.
    fn model<R: Real>(&self, rows: std::ops::Range<usize>) -> Arc<Model<R>> {
        let all = normals(ROWS * INPUTS, 1);
        let inputs = &all[rows.start * INPUTS..rows.end * INPUTS];
        let targets = match self.likelihood.is_gaussian() {
            true => normals(ROWS * self.outputs, 2),
            false => (0..ROWS * self.outputs)
                .map(|at| f64::from(u8::from(at % ROWS % self.outputs == at / ROWS)))
                .collect(),
        };
        let columns = targets.chunks_exact(ROWS);
        let targets = columns.flat_map(|column| column[rows.clone()].to_vec());
        let (activation, off) = (Activation::Gelu, InputReduction::Off);
        let network = Composition::fully_connected(INPUTS, &self.hidden, self.outputs, activation);
        let (noise, test) = (self.noise.clone(), normals(TEST_ROWS * INPUTS, 9));
        let model = Model::new(network, noise, inputs, targets.collect(), &test, off).unwrap();
        let model = model.with_likelihood(Arc::clone(&self.likelihood));
        Arc::new(match self.learns_scales {
            true => model
                .with_learned_scales(ScalePrior::HalfNormal, true)
                .unwrap(),
            false => model,
        })
    }

    /// In so many parts, of which the first ones are smaller.
    fn parts<R: Real>(&self, count: usize) -> Vec<Arc<Model<R>>> {
        let bounds: Vec<usize> = (0..=count)
            .map(|at| ROWS * at * at / (count * count))
            .collect();
        let bounds = bounds.windows(2).map(|pair| pair[0]..pair[1]);
        bounds
            .filter(|rows| !rows.is_empty())
            .map(|rows| self.model(rows))
            .collect()
    }

    fn shards<R: Real>(&self, count: usize, threads: usize) -> Shards<R> {
        Shards::new(self.parts(count), self.coordinates, threads).unwrap()
    }

    fn whole(&self) -> Posterior<f64> {
        let settings = PosteriorSettings::in_space(self.coordinates, Space::Feature);
        Posterior::new(self.model(0..ROWS), settings).unwrap()
    }
}

fn cases() -> Vec<Case> {
    use Coordinates::{Marginal, Repriorised, Standard};
    let mut cases = vec![
        Case::new(&[5], 0.3, Marginal),
        Case::new(&[4, 6], learned(true), Marginal),
        Case::new(&[], learned(false), Marginal),
        // no coordinates at all
        Case::new(&[], 0.3, Marginal),
        Case::new(&[5], learned(true), Repriorised),
        Case::new(&[4, 3], learned(false), Standard),
    ];
    cases.push(Case {
        learns_scales: true,
        ..Case::new(&[4, 3], learned(false), Marginal)
    });
    cases.push(Case {
        likelihood: Arc::new(Categorical),
        outputs: 3,
        ..Case::new(&[5], 1.0, Standard)
    });
    cases
}

/// Of all shards, and their sum in the first one's place.
fn moments<R: Real>(shards: &mut [Shard<R>], z: &[R]) -> Vec<Vec<f64>> {
    let mut all = vec![vec![0.0; shards[0].moment_count()]; shards.len()];
    for (shard, moments) in shards.iter_mut().zip(&mut all) {
        shard.moments(z, false, moments);
    }
    reprior::posterior::add(&mut all);
    all
}

#[test]
fn shards_are_the_rows_in_one_piece() {
    for (number, case) in cases().into_iter().enumerate() {
        let mut whole = case.whole();
        let dimension = whole.dim();
        for count in 1..6 {
            let mut shards = case.shards::<f64>(count, 2);
            assert_eq!(shards.dim(), dimension);
            assert_eq!(shards.held_at_modes(), whole.held_at_modes());
            for point in 0..3 {
                let z = normals(dimension, 3 + point);
                let (mut own, mut expected) = (vec![f64::NAN; dimension], vec![0.0; dimension]);
                let value = whole.log_ratio_and_gradient(&z, &mut expected).unwrap();
                let alone = shards.log_ratio(&z).unwrap();
                let both = shards.log_ratio_and_gradient(&z, &mut own).unwrap();
                let name = format!("case {number}, {count} shards");
                for found in [alone, both] {
                    assert!((found - value).abs() < 1e-9 * (1.0 + value.abs()), "{name}");
                }
                let norm = expected.iter().map(|g| g * g).sum::<f64>().sqrt();
                for (a, b) in own.iter().zip(&expected) {
                    assert!((a - b).abs() < 1e-9 * (1.0 + norm), "{name}: {a} {b}");
                }
            }
            assert_eq!(shards.corrections(), whole.corrections());
        }
    }
}

#[test]
fn a_lost_shard_is_seen() {
    for case in cases() {
        let (mut whole, parts) = (case.whole(), case.parts::<f64>(3));
        let mut fewer = Shards::new(parts[1..].to_vec(), case.coordinates, 1).unwrap();
        let z = normals(whole.dim(), 3);
        let [all, some] = [whole.log_ratio(&z), fewer.log_ratio(&z)].map(Result::unwrap);
        assert!((all - some).abs() > 1e-3, "{all} {some}");
    }
}

#[test]
fn threads_change_no_bit() {
    for case in cases() {
        let mut found = Vec::new();
        for threads in [0, 1, 2, 7] {
            let mut shards = case.shards::<f32>(4, threads);
            let z: Vec<f32> = normals(shards.dim(), 3).iter().map(|&z| z as f32).collect();
            let mut gradient = vec![0.0; z.len()];
            let value = shards.log_ratio_and_gradient(&z, &mut gradient).unwrap();
            found.push((
                value.to_bits(),
                gradient.iter().map(|g| g.to_bits()).collect::<Vec<_>>(),
            ));
        }
        assert!(found.iter().all(|own| *own == found[0]));
    }
}

/// What a worker does that was not there in the first round, or that has been at another position since.
#[test]
fn the_second_round_needs_nothing_of_the_first() {
    for case in cases() {
        let mut whole = case.shards::<f64>(2, 1);
        let dimension = whole.dim();
        let z = normals(dimension, 4);
        let mut expected = vec![0.0; dimension];
        let value = whole.log_ratio_and_gradient(&z, &mut expected).unwrap();
        let make = |(shard, model)| Shard::<f64>::new(model, case.coordinates, shard).unwrap();
        let mut shards: Vec<_> = case.parts(2).into_iter().enumerate().map(make).collect();
        let moments = moments(&mut shards, &z);
        let total = Total {
            moments: &moments[0],
            rows: ROWS,
        };
        let elsewhere = normals(dimension, 5);
        let mut sums = vec![0.0; 1 + dimension];
        for (number, own) in shards.iter_mut().enumerate() {
            own.moments(&elsewhere, true, &mut vec![0.0; own.moment_count()]);
            let mut part = vec![0.0; 1 + dimension];
            own.value_and_gradient(&z, total, &mut part).unwrap();
            sums.iter_mut()
                .zip(&part)
                .for_each(|(sum, part)| *sum += part);
            let alone = make((number, case.parts(2).swap_remove(number))).value(&z, total);
            assert!((alone.unwrap() - part[0]).abs() < 1e-12 * (1.0 + part[0].abs()));
        }
        assert!((sums[0] - value).abs() < 1e-12 * (1.0 + value.abs()));
        for (a, b) in sums[1..].iter().zip(&expected) {
            assert!((a - b).abs() < 1e-12 * (1.0 + b.abs()));
        }
    }
}

/// Sums in double precision are asked for by the noise alone, and not by what was asked before.
#[test]
fn little_noise_is_told_in_either_round() {
    let case = Case::new(&[5], 0.002, Coordinates::Marginal);
    let mut whole = case.whole();
    let wide = normals(whole.dim(), 4);
    let z: Vec<f32> = wide.iter().map(|&z| z as f32).collect();
    let make = |(shard, model)| Shard::<f32>::new(model, case.coordinates, shard).unwrap();
    let mut shards: Vec<_> = case.parts(2).into_iter().enumerate().map(make).collect();
    let moments = moments(&mut shards, &z);
    let total = Total {
        moments: &moments[0],
        rows: ROWS,
    };
    let mut sum = 0.0;
    for (number, own) in shards.iter_mut().enumerate() {
        let part = own.value(&z, total).unwrap();
        let mut other = make((number, case.parts(2).swap_remove(number)));
        assert_eq!(other.value(&z, total).unwrap(), part);
        sum += part;
    }
    let exact = whole.log_ratio(&wide).unwrap();
    assert!((sum - exact).abs() < 1e-5 * exact.abs(), "{sum} {exact}");
}

/// By a shard with one row, which needs nothing of the others but the sum of their moments.
#[test]
fn predictions_are_those_of_the_rows_in_one_piece() {
    let stream = || Stream::new(5, 0, Purpose::Prediction, 0);
    for case in cases() {
        let mut whole = case.whole();
        let z = normals(whole.dim(), 3);
        let mut recorder = Recorder::new(Arc::clone(whole.model()));
        let expected = recorder.record(&mut whole, &z, &mut stream()).unwrap();
        let make = |(shard, model)| Shard::<f64>::new(model, case.coordinates, shard).unwrap();
        let mut shards: Vec<_> = case.parts(3).into_iter().enumerate().map(make).collect();
        let moments = moments(&mut shards, &z);
        let total = Total {
            moments: &moments[0],
            rows: ROWS,
        };
        let one_row = case.model(0..1);
        let mut recorder = Recorder::new(Arc::clone(&one_row));
        let mut shard = make((0, one_row));
        // what it was asked before is forgotten
        shard.moments(&z, true, &mut vec![0.0; shard.moment_count()]);
        let found = shard.record(&mut recorder, &z, total, &mut stream());
        let found = found.unwrap();
        let near = |own: &[f64], other: &[f64]| {
            assert_eq!(own.len(), other.len());
            let mut pairs = own.iter().zip(other);
            pairs.all(|(a, b)| (a - b).abs() < 1e-9 * (1.0 + b.abs()))
        };
        assert_eq!(found.outputs.len(), TEST_ROWS * case.outputs);
        assert!(near(&found.outputs, &expected.outputs));
        assert_eq!(found.noise, expected.noise);
        if case.coordinates == Coordinates::Standard {
            assert_eq!(found.mean, found.outputs);
            assert!(found.variance.iter().all(|&variance| variance == 0.0));
        } else {
            assert!(near(&found.mean, &expected.mean));
            assert!(near(&found.variance, &expected.variance));
            // of the rows of one shard alone they are others
            let alone = Total {
                moments: &moments[1],
                rows: ROWS,
            };
            let found = shard.record(&mut recorder, &z, alone, &mut stream());
            assert!(!near(&found.unwrap().mean, &expected.mean));
        }
        // the shard goes on as if nothing had been
        let value = shard.value(&z, total).unwrap();
        let fresh = make((0, case.model(0..1))).value(&z, total).unwrap();
        assert!((value - fresh).abs() < 1e-12 * (1.0 + fresh.abs()));
    }
}

#[test]
fn parts_are_added_in_pairs() {
    for count in 1..12 {
        // numbers whose sum hangs on the order
        let mut parts: Vec<[f64; 1]> = (0..count).map(|at| [0.1 * f64::from(at) + 0.3]).collect();
        let mut level: Vec<f64> = parts.iter().map(|part| part[0]).collect();
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(|pair| pair.iter().copied().reduce(|a, b| a + b).unwrap())
                .collect();
        }
        reprior::posterior::add(&mut parts);
        assert_eq!(parts[0][0].to_bits(), level[0].to_bits(), "{count}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let case = Case::new(&[5], 0.3, Coordinates::Marginal);
    let refused = |models, coordinates| Shards::<f64>::new(models, coordinates, 1).err().unwrap();
    assert_eq!(refused(Vec::new(), case.coordinates), ShardError::None);
    let wide = Case::new(&[6], 0.3, Coordinates::Marginal);
    let two = vec![case.model(0..9), wide.model(9..ROWS)];
    let error = refused(two, case.coordinates).to_string();
    assert!(
        error.contains("shard 1 has 24 coordinates and the first one 20"),
        "{error}"
    );
    let student = Case {
        likelihood: Arc::new(StudentT::new(4.0).unwrap()),
        ..Case::new(&[5], 0.3, Coordinates::Standard)
    };
    for (coordinates, words) in [
        (
            Coordinates::Marginal,
            "integrated out for a gaussian likelihood only",
        ),
        (
            Coordinates::Repriorised,
            "repriorised coordinates are not made of sums over rows",
        ),
    ] {
        let error = refused(student.parts(2), coordinates).to_string();
        assert!(error.contains(words), "{error}");
    }
    let error = refused(case.parts(2), Coordinates::Tangent).to_string();
    assert!(
        error.contains("tangent coordinates are not made of sums"),
        "{error}"
    );
    let inputs = normals(2 * 8, 1);
    let network = Composition::fully_connected(8, &[4], 1, Activation::Gelu);
    let auto = InputReduction::Auto;
    let reduced = Model::new(network, 0.3, &inputs, vec![0.0; 2], &[], auto).unwrap();
    assert_eq!(
        refused(vec![Arc::new(reduced)], Coordinates::Marginal),
        ShardError::Reduced(0)
    );
}
