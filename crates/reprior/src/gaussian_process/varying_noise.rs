//! Whether the noise of a regression depends on its inputs: a test of a Gaussian process's residuals.
//!
//! Given the other rows, row i has the mean μ_i = y_i − α_i/q_i and the variance 1/q_i, α = K_s⁻¹y and q the diagonal of K_s⁻¹ (Rasmussen &
//! Williams 2006, eqs 5.10-5.12). Where the noise is one everywhere, |α_i|/√q_i has the same law in all rows. So it is regressed on μ, the
//! inputs and the squares of all (Glejser 1969), and the F test of that regression says whether they explain it. What the process does not
//! fit is noise to it.

use super::GaussianProcess;
use crate::compute::{Matrix, dot};
use crate::diagnostics::beta;

/// Rows for every quantity that may explain the noise, at least: of more quantities the first count.
const ROWS_PER_COLUMN: usize = 10;
/// What is left of a column that others explain, as a share of its square.
const DEPENDENT: f64 = 1e-6;

impl GaussianProcess {
    /// The p value of "the noise is the same in every row": below p with that probability, about, where it is. `inputs` (n × d) and
    /// `targets` (n × C, column-major) are those of the process; of several outputs the least counts, times their number.
    pub fn p_value_of_one_noise(&self, inputs: Matrix<'_, f64>, targets: &[f64]) -> f64 {
        let n = self.size();
        let (mut inverse, mut work) = (vec![0.0; n * n], vec![0.0; n * n]);
        self.cholesky.inverse(&mut inverse, &mut work);
        let precision: Vec<f64> = (0..n).map(|i| inverse[i * (n + 1)]).collect();
        let outputs = self.weights.chunks_exact(n).zip(targets.chunks_exact(n));
        let by_output = outputs.map(|(weights, targets)| {
            let rows = weights.iter().zip(&precision);
            let sizes: Vec<f64> = rows.clone().map(|(a, q)| a.abs() / q.sqrt()).collect();
            let means = rows.zip(targets).map(|((a, q), y)| y - a / q).collect();
            let of_inputs = inputs.col_iter().map(|column| column.iter().copied());
            let of_inputs = of_inputs.map(Iterator::collect);
            let columns: Vec<Vec<f64>> = std::iter::once(means).chain(of_inputs).collect();
            explained_by_chance(sizes, &columns)
        });
        let least = by_output.fold(1.0, f64::min);
        (least * self.outputs() as f64).min(1.0)
    }
}

/// The p value of the F test that `columns` and their squares have nothing to do with `response`.
fn explained_by_chance(response: Vec<f64>, columns: &[Vec<f64>]) -> f64 {
    let n = response.len();
    let mut basis = vec![vec![(n as f64).sqrt().recip(); n]];
    let mut rest = response;
    remove(&mut rest, &basis);
    let total = dot(&rest, &rest);
    let squares = columns.iter().map(|column| {
        let mean = column.iter().sum::<f64>() / n as f64;
        column.iter().map(|x| (x - mean).powi(2)).collect()
    });
    for mut column in columns.iter().cloned().chain(squares) {
        if basis.len() > n / ROWS_PER_COLUMN {
            break;
        }
        let before = dot(&column, &column);
        // twice, as once leaves rounding errors of what was taken away
        remove(&mut column, &basis);
        remove(&mut column, &basis);
        let after = dot(&column, &column);
        if after > DEPENDENT * before {
            column.iter_mut().for_each(|x| *x /= after.sqrt());
            basis.push(column);
        }
    }
    let explaining = basis.len() - 1;
    remove(&mut rest, &basis[1..]);
    let share_left = dot(&rest, &rest) / total;
    if explaining == 0 || !share_left.is_finite() {
        return 1.0;
    }
    // F = ((1 − s)/k)/(s/m) is larger by chance with the probability I_s(m/2, k/2)
    let [k, m] = [explaining, n - explaining - 1].map(|count| 0.5 * count as f64);
    beta::cdf(share_left, m, k)
}

/// What orthonormal vectors explain is taken away.
fn remove(column: &mut [f64], basis: &[Vec<f64>]) {
    for own in basis {
        let along = dot(own, column);
        column
            .iter_mut()
            .zip(own)
            .for_each(|(x, b)| *x -= along * b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Purpose, Stream, matrix};

    /// p of 120 rows of three inputs, of which the first two say the function; `noise` makes σ of a row's inputs.
    fn p_value(seed: u64, noise: impl Fn(&[f64]) -> f64) -> f64 {
        let n = 120;
        let mut stream = Stream::new(seed, 0, Purpose::Simulation, 0);
        let mut x = vec![0.0; n * 3];
        stream.fill_normal(&mut x);
        let rows: Vec<&[f64]> = x.chunks_exact(3).collect();
        let y: Vec<f64> = rows
            .iter()
            .map(|x| x[0].sin() + 0.5 * x[1] + noise(x) * stream.normal())
            .collect();
        let mut kernel = vec![0.0; n * n];
        for (i, a) in rows.iter().enumerate() {
            for (j, b) in rows.iter().enumerate() {
                let away: f64 = (0..2).map(|d| (a[d] - b[d]).powi(2)).sum();
                kernel[j * n + i] = (-0.25 * away).exp();
            }
        }
        let process = GaussianProcess::new(&kernel, n, &y, 0.3).unwrap();
        process.p_value_of_one_noise(matrix(&x, 3, n).transpose(), &y)
    }

    #[test]
    fn a_noise_that_is_one_is_found_to_vary_as_rarely_as_p_says() {
        let p: Vec<f64> = (0..400).map(|seed| p_value(seed, |_| 0.3)).collect();
        for level in [0.01, 0.1, 0.5] {
            let found = p.iter().filter(|p| **p < level).count() as f64;
            let expected = 400.0 * level;
            let spread = (expected * (1.0 - level)).sqrt();
            assert!((found - expected).abs() < 4.0 * spread, "{level}: {found}");
        }
    }

    #[test]
    fn a_noise_that_varies_is_found() {
        // with an input that the function does not depend on, with its square, with the function
        let found = |noise: fn(&[f64]) -> f64| {
            let seeds = 0..40;
            seeds.filter(|&seed| p_value(seed, noise) < 0.01).count()
        };
        assert!(found(|x| 0.3 * x[2].exp().min(4.0)) > 35);
        assert!(found(|x| 0.1 + 0.3 * x[2] * x[2]) > 35);
        assert!(found(|x| 0.3 * (x[0].sin() + 0.5 * x[1]).exp()) > 35);
    }

    #[test]
    fn columns_that_are_one_another_count_once() {
        let mut stream = Stream::new(1, 0, Purpose::Simulation, 0);
        let mut column = vec![0.0; 100];
        stream.fill_normal(&mut column);
        let response: Vec<f64> = column.iter().map(|x| x + stream.normal()).collect();
        let once = explained_by_chance(response.clone(), std::slice::from_ref(&column));
        let twice = explained_by_chance(response, &[column.clone(), column]);
        assert!((once / twice - 1.0).abs() < 1e-6, "{once} {twice}");
        assert!(explained_by_chance(vec![1.0; 50], &[vec![2.0; 50]]) == 1.0);
    }
}
