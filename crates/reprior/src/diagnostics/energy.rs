//! Energy of Hamiltonian samplers.

use super::moments::mean_and_squares;

/// Bayesian fraction of missing information of one chain of energies (Betancourt 2016, "Diagnosing suboptimal
/// cotangent disintegrations"): (1/(S−1)) Σ (E_s − E_{s−1})² over the variance of E with 1/(S−1).
///
/// `energies` are the chain's values of the Hamiltonian in the order drawn, in nats. Near 1 or above (2 for
/// independent energies): each new momentum explores the energies freely; below about 0.3: it does not.
/// NaN for fewer than two draws, for a NaN among them, and where all are the same. Cost: O(S).
pub fn bfmi(energies: &[f64]) -> f64 {
    if energies.len() < 2 {
        return f64::NAN;
    }
    let changes = energies.windows(2).map(|pair| (pair[1] - pair[0]).powi(2));
    let (_, squares) = mean_and_squares(energies);
    changes.sum::<f64>() / squares
}
