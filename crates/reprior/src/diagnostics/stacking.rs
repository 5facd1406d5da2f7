//! Weights of a mixture by stacking: those with which it predicts left-out rows best.
//!
//! max over the simplex of n⁻¹ Σ_i log Σ_k w_k exp(ℓ_ik), ℓ_ik the leave-one-out log-density of row i by component k: of models (Yao, Vehtari, Simpson &
//! Gelman 2018, eq. 4), or of chains that have found different modes (Yao, Vehtari & Gelman 2022). Concave; solved by the multiplicative steps
//! of mixture weights, w_k ← w_k·g_k with g_k = n⁻¹ Σ_i exp(ℓ_ik)/Σ_j w_j exp(ℓ_ij), which never leave the simplex. The value is at most max_k g_k − 1
//! below the best one, which ends the steps. n·K operations each.

use crate::compute::LogSum;

/// Steps at most.
const MOST_STEPS: usize = 20_000;
/// What the mean log-density may be below the best one.
const TOLERANCE: f64 = 1e-7;

/// Weights that sum to 1 of components whose log-densities of the same rows these are. Of a component with −∞ a row has no density; rows that
/// have none of any component are left out, and those with a NaN or ∞ of one. The same weights for all where no row is left.
pub fn stacking_weights<T: AsRef<[f64]>>(components: &[T]) -> Vec<f64> {
    let count = components.len();
    let rows = components.iter().map(|own| own.as_ref().len()).min();
    let mut densities = Vec::new();
    for row in 0..rows.unwrap_or(0) {
        let own = components.iter().map(|own| own.as_ref()[row]);
        let largest = own.clone().fold(f64::NEG_INFINITY, f64::max);
        if largest.is_finite() && !own.clone().any(f64::is_nan) {
            densities.extend(own.map(|l| (l - largest).exp()));
        }
    }
    let mut weights = vec![1.0 / count.max(1) as f64; count];
    if densities.is_empty() {
        return weights;
    }
    let rows = (densities.len() / count) as f64;
    let mut gradient = vec![0.0; count];
    for _ in 0..MOST_STEPS {
        gradient.fill(0.0);
        for row in densities.chunks_exact(count) {
            let mixed: f64 = weights.iter().zip(row).map(|(w, p)| w * p).sum();
            for (sum, p) in gradient.iter_mut().zip(row) {
                *sum += p / mixed;
            }
        }
        let best = gradient.iter().copied().fold(0.0, f64::max) / rows;
        if best - 1.0 <= TOLERANCE {
            break;
        }
        for (weight, sum) in weights.iter_mut().zip(&gradient) {
            *weight *= sum / rows;
        }
    }
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= total);
    weights
}

/// Log-densities of the mixture with these weights, row by row.
pub fn stacked<T: AsRef<[f64]>>(components: &[T], weights: &[f64]) -> Vec<f64> {
    let rows = components.iter().map(|own| own.as_ref().len()).min();
    let of_row = |row: usize| {
        let own = components.iter().zip(weights).filter(|(_, w)| **w > 0.0);
        LogSum::of(own.map(|(own, weight)| own.as_ref()[row] + weight.ln()))
    };
    (0..rows.unwrap_or(0)).map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(components: &[Vec<f64>], weights: &[f64]) -> f64 {
        let all = stacked(components, weights);
        all.iter().sum::<f64>() / all.len() as f64
    }

    /// Two components that each know a part of the rows: the weights are known.
    #[test]
    fn a_mixture_of_two_has_the_weights_of_its_parts() {
        // of 10 rows the first knows 7, and gives the others a density that is nearly nothing
        let known = |row: usize, is_first: bool| if (row < 7) == is_first { 0.0 } else { -40.0 };
        let components = [true, false].map(|first| (0..10).map(|row| known(row, first)).collect());
        let weights = stacking_weights::<Vec<f64>>(&components);
        assert!((weights[0] - 0.7).abs() < 1e-6, "{weights:?}");
    }

    #[test]
    fn no_other_weights_predict_better() {
        let noise = |at: usize| (at as f64 * 0.618_033_988_75).fract();
        let component = |k: usize| (0..50).map(|row| -3.0 * noise(row * (k + 2) + k)).collect();
        let components: Vec<Vec<f64>> = (0..3).map(component).collect();
        let weights = stacking_weights(&components);
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let best = value(&components, &weights);
        for i in 0..=20 {
            for j in 0..=20 - i {
                let other = [f64::from(i) / 20.0, f64::from(j) / 20.0];
                let other = [other[0], other[1], (1.0 - other[0] - other[1]).max(0.0)];
                assert!(value(&components, &other) <= best + 1e-7, "{other:?}");
            }
        }
    }

    /// One row of three has no density under the first component. With the weight w of the second, whose log-density is less by d, the others
    /// sum to 2·log(1 − cw), c = 1 − e^{−d}, and that row to log w: the best w is 1/(3c), 1 at most.
    #[test]
    fn a_row_without_density_under_one_component_counts() {
        let first = vec![-1.0, -1.0, f64::NEG_INFINITY];
        for d in [0.1_f64, 2.0] {
            let components = [first.clone(), vec![-1.0 - d; 3]];
            let weights = stacking_weights(&components);
            let known = (1.0 / (3.0 * (1.0 - (-d).exp()))).min(1.0);
            assert!((weights[1] - known).abs() < 1e-4, "{d}: {weights:?}");
            let all = stacked(&components, &weights);
            assert!(all.iter().all(|l| l.is_finite()), "{all:?}");
        }
        // of rows without any density nothing is known
        let components = [[f64::NEG_INFINITY, 0.0], [f64::NEG_INFINITY, -9.0]];
        let weights = stacking_weights(&components);
        assert!(weights[0] > 0.999, "{weights:?}");
    }

    #[test]
    fn a_component_that_is_best_everywhere_has_all() {
        let weights = stacking_weights(&[vec![-1.0; 20], vec![-3.0; 20], vec![-9.0; 20]]);
        assert!(weights[0] > 0.999_99, "{weights:?}");
        assert_eq!(stacking_weights(&[vec![f64::NAN], vec![0.0]]), [0.5, 0.5]);
        assert_eq!(stacking_weights::<Vec<f64>>(&[]), [0.0; 0]);
    }
}
