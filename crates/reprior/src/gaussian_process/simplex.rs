//! The simplex method of Nelder & Mead (1965) for a function of a few variables: no derivatives, a value that is not a
//! number counts as the worst.

/// Where the search ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Minimum {
    pub at: Vec<f64>,
    pub value: f64,
    pub evaluations: usize,
}

/// Searches for a minimum from `start`, with steps of `step` at first, until values of the simplex differ by less than
/// `tolerance` and its points by less than its root, or `most` evaluations are made.
pub(super) fn minimise(
    start: &[f64],
    step: f64,
    tolerance: f64,
    most: usize,
    mut function: impl FnMut(&[f64]) -> f64,
) -> Minimum {
    let count = start.len();
    let mut evaluations = 0;
    let mut evaluate = |at: &[f64]| {
        evaluations += 1;
        let value = function(at);
        if value.is_nan() { f64::INFINITY } else { value }
    };
    let mut simplex: Vec<(f64, Vec<f64>)> = Vec::with_capacity(count + 1);
    simplex.push((evaluate(start), start.to_vec()));
    for axis in 0..count {
        let mut at = start.to_vec();
        at[axis] += step;
        simplex.push((evaluate(&at), at));
    }
    let mut used = count + 1;
    while used < most {
        simplex.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (best, worst) = (&simplex[0], &simplex[count]);
        let size = simplex
            .iter()
            .flat_map(|(_, at)| at.iter().zip(&best.1).map(|(a, b)| (a - b).abs()));
        if worst.0 - best.0 < tolerance && size.fold(0.0, f64::max) < tolerance.sqrt() {
            break;
        }
        let centre: Vec<f64> = (0..count)
            .map(|axis| simplex[..count].iter().map(|(_, at)| at[axis]).sum::<f64>() / count as f64)
            .collect();
        let towards = |factor: f64| -> Vec<f64> {
            let pairs = centre.iter().zip(&simplex[count].1);
            pairs.map(|(c, w)| c + factor * (w - c)).collect()
        };
        let reflected = towards(-1.0);
        let value = evaluate(&reflected);
        used += 1;
        let (best, second, worst) = (simplex[0].0, simplex[count - 1].0, simplex[count].0);
        let replacement = if value < best {
            let expanded = towards(-2.0);
            let further = evaluate(&expanded);
            used += 1;
            if further < value {
                Some((further, expanded))
            } else {
                Some((value, reflected))
            }
        } else if value < second {
            Some((value, reflected))
        } else {
            let contracted = towards(if value < worst { -0.5 } else { 0.5 });
            let nearer = evaluate(&contracted);
            used += 1;
            (nearer < value.min(worst)).then_some((nearer, contracted))
        };
        if let Some(replacement) = replacement {
            simplex[count] = replacement;
        } else {
            let best = simplex[0].1.clone();
            for (value, at) in &mut simplex[1..] {
                at.iter_mut()
                    .zip(&best)
                    .for_each(|(a, b)| *a = 0.5 * (*a + b));
                *value = evaluate(at);
                used += 1;
            }
        }
    }
    simplex.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (value, at) = simplex.swap_remove(0);
    Minimum {
        at,
        value,
        evaluations,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_bottom_of_a_curved_valley() {
        // Rosenbrock 1960
        let valley = |x: &[f64]| (1.0 - x[0]).powi(2) + 100.0 * (x[1] - x[0] * x[0]).powi(2);
        let found = minimise(&[-1.2, 1.0], 0.5, 1e-12, 1000, valley);
        assert!(found.evaluations < 300);
        assert!(found.at.iter().all(|x| (x - 1.0).abs() < 1e-5), "{found:?}");
        let cut_off = |x: &[f64]| if x[0] < 0.5 { f64::NAN } else { x[0] };
        let found = minimise(&[2.0], 0.5, 1e-12, 1000, cut_off);
        assert!((found.at[0] - 0.5).abs() < 1e-5, "{found:?}");
    }
}
