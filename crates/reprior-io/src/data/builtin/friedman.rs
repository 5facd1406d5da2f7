//! `friedman`: the first regression function of Friedman (1991), "Multivariate adaptive regression splines", Annals of Statistics 19(1).
//!
//! Ten inputs, independent and uniform on [0, 1), of which the first five matter:
//! y = 10 sin(π x₁x₂) + 20 (x₃ − ½)² + 10 x₄ + 5 x₅ + ε, ε ~ N(0, 1).

use reprior::model::dataset::{Dataset, Targets};

use crate::data::random::RandomStream;

const ROWS: usize = 1500;
const COLUMNS: usize = 10;
const SEED: u64 = 1991;

/// All records, drawn row by row: the inputs, then the noise.
pub(super) fn draw() -> Dataset {
    let mut stream = RandomStream::new(SEED, 0);
    let (mut inputs, mut values) = (Vec::with_capacity(ROWS * COLUMNS), Vec::with_capacity(ROWS));
    for _ in 0..ROWS {
        let x: [f64; COLUMNS] = std::array::from_fn(|_| stream.uniform());
        values.push(mean(&x) + stream.normal());
        inputs.extend_from_slice(&x);
    }
    let names = (1..=COLUMNS).map(|column| format!("x{column}")).collect();
    super::table(
        inputs,
        names,
        Targets::Real {
            values,
            names: vec!["y".to_string()],
        },
    )
}

/// The function without noise.
fn mean(x: &[f64; COLUMNS]) -> f64 {
    10.0 * libm::sin(std::f64::consts::PI * x[0] * x[1])
        + 20.0 * (x[2] - 0.5) * (x[2] - 0.5)
        + 10.0 * x[3]
        + 5.0 * x[4]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noise_has_standard_deviation_one() {
        let data = draw();
        let Targets::Real { values, .. } = &data.targets else {
            unreachable!()
        };
        let inputs = data.inputs.to_reals();
        let residuals = inputs.chunks_exact(COLUMNS).zip(values).map(|(x, y)| {
            let x: &[f64; COLUMNS] = x.try_into().unwrap();
            y - mean(x)
        });
        let (sum, squares) =
            residuals.fold((0.0, 0.0), |(sum, squares), r| (sum + r, squares + r * r));
        let rows = ROWS as f64;
        assert!((sum / rows).abs() < 0.1, "{}", sum / rows);
        assert!((squares / rows - 1.0).abs() < 0.15, "{}", squares / rows);
    }
}
