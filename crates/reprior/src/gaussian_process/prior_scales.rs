//! Prior scales of a fully connected network - one for each input, those of its layers - and the noise, by the evidence of its
//! infinitely wide limit (MacKay 1992; Neal 1996: automatic relevance determination).
//!
//! What is maximised over the logarithms p of all of them is ℓ − ½Σ((p − p₀)/τ)², the log evidence with a log-normal prior about the
//! scales that the network has: of few rows the evidence alone would turn inputs off that happen to explain little. The noise has
//! none. Gradients are exact ([`KernelByScales::pull_back`]); the search is L-BFGS.
//!
//! **Cost** of an evaluation: n³ operations for the factorisation and the inverse, and that of the kernel, its gradient included. Memory: two
//! n × n matrices.

use super::{GaussianProcess, GaussianProcessError};
use crate::compute::{Matrix, add_symmetric_product, matrix, matrix_mut, with_team};
use crate::network::infinite::by_scales::{KernelByScales, PriorScales};
use crate::network::{Composition, LayerScale};
use crate::optimise::lbfgs::{LbfgsSettings, minimise};

/// How scales are searched for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScaleSearch {
    /// τ, of the logarithms of the inputs' scales.
    pub input_spread: f64,
    /// τ, of the logarithms of the layers' scales. Those of gelu and its like are nearly without a limit: large ones make relu of them, of
    /// which only the product matters.
    pub layer_spread: f64,
    /// Where the search for σ begins.
    pub noise: f64,
    /// Whether inputs have scales of their own; without, they share one.
    pub by_input: bool,
    /// Evaluations, at most.
    pub evaluations: usize,
    /// Threads.
    pub threads: usize,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedScales {
    /// Of the inputs, what their weights' standard deviations are multiplied by; and of the layers.
    pub scales: PriorScales,
    /// σ.
    pub noise: f64,
    /// ℓ, in nats.
    pub log_marginal_likelihood: f64,
    /// Evaluations made.
    pub evaluations: usize,
    /// Whether the search ended at a maximum.
    pub has_converged: bool,
}

/// The parameters of the search, as logarithms relative to the start: inputs (or one for all), weights of the layers after the first,
/// biases of the layers that have any, the noise.
struct Parameters<'a> {
    start: &'a [LayerScale],
    inputs: usize,
    by_input: bool,
    noise: f64,
}

impl Parameters<'_> {
    fn own_inputs(&self) -> usize {
        if self.by_input { self.inputs } else { 1 }
    }

    fn biases(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.start.len()).filter(|&layer| self.start[layer].bias > 0.0)
    }

    fn count(&self) -> usize {
        self.own_inputs() + self.start.len() - 1 + self.biases().count() + 1
    }

    fn scales(&self, at: &[f64]) -> (PriorScales, f64) {
        let (of_inputs, rest) = at.split_at(self.own_inputs());
        let (of_weights, rest) = rest.split_at(self.start.len() - 1);
        let mut layers = self.start.to_vec();
        for (layer, p) in layers[1..].iter_mut().zip(of_weights) {
            layer.weight *= p.exp();
        }
        for (layer, p) in self.biases().zip(rest) {
            layers[layer].bias *= p.exp();
        }
        let inputs = match self.by_input {
            true => of_inputs.iter().map(|p| p.exp()).collect(),
            false => vec![of_inputs[0].exp(); self.inputs],
        };
        let noise = self.noise * at[at.len() - 1].exp();
        (PriorScales { inputs, layers }, noise)
    }

    /// The gradient by the parameters from that by the logarithms of the scales and of σ.
    fn gradient(&self, by: &PriorScales, by_noise: f64, gradient: &mut [f64]) {
        let weights = by.layers[1..].iter().map(|layer| layer.weight);
        let biases = self.biases().map(|layer| by.layers[layer].bias);
        let inputs: Vec<f64> = match self.by_input {
            true => by.inputs.clone(),
            false => vec![by.inputs.iter().sum()],
        };
        let all = inputs.into_iter().chain(weights).chain(biases);
        for (gradient, own) in gradient.iter_mut().zip(all.chain([by_noise])) {
            *gradient = own;
        }
    }
}

/// ℓ and its gradient by the logarithms of all scales and of σ, for `inputs` (n × d) and `targets` (n × C, column-major).
///
/// # Errors
/// [`GaussianProcessError`]: sizes, targets that are not finite, a kernel that cannot be factorised.
pub fn evidence_by_scales(
    kernel: &KernelByScales,
    inputs: Matrix<'_, f64>,
    targets: &[f64],
    scales: &PriorScales,
    noise: f64,
    threads: usize,
) -> Result<(f64, PriorScales, f64), GaussianProcessError> {
    let n = inputs.nrows();
    let (value, mut cotangent) = with_team(threads, || {
        // of the matrix, its factor, the inverse and its gradient two are there at a time
        let prior = kernel.forward(inputs, scales, threads);
        let process = GaussianProcess::new(&prior, n, targets, noise)?;
        drop(prior);
        let (c, value) = (process.outputs, process.log_marginal_likelihood());
        // G = ½(AAᵀ − C·K_s⁻¹), lower half
        let mut cotangent = process.cholesky.into_inverse();
        cotangent.iter_mut().for_each(|g| *g *= -0.5 * c as f64);
        let weights = matrix(&process.weights, n, c);
        add_symmetric_product(matrix_mut(&mut cotangent, n, n), 0.25, weights, weights);
        Ok::<_, GaussianProcessError>((value, cotangent))
    })?;
    // σ² is added to the diagonal
    let trace: f64 = (0..n).map(|i| cotangent[i * (n + 1)]).sum();
    let by_noise = 2.0 * noise * noise * trace;
    let by = kernel.pull_back(inputs, scales, &mut cotangent, threads);
    Ok((value, by, by_noise))
}

/// The scales and the noise. `None` for a network that is not fully connected.
///
/// # Errors
/// As [`evidence_by_scales`], at the network's own scales.
pub fn fit_prior_scales(
    network: &Composition,
    inputs: Matrix<'_, f64>,
    targets: &[f64],
    search: ScaleSearch,
) -> Result<Option<FittedScales>, GaussianProcessError> {
    let Some(kernel) = KernelByScales::new(network) else {
        return Ok(None);
    };
    let mut start = network.hidden_scales();
    start.push(network.readout_scale);
    let parameters = Parameters {
        start: &start,
        inputs: network.inputs(),
        by_input: search.by_input,
        noise: search.noise,
    };
    let evaluate = |at: &[f64]| {
        let (scales, noise) = parameters.scales(at);
        evidence_by_scales(&kernel, inputs, targets, &scales, noise, search.threads)
    };
    let count = parameters.count();
    // what is wrong at the start is wrong with the data
    evaluate(&vec![0.0; count])?;
    let mut best = f64::NEG_INFINITY;
    let mut own_likelihood = f64::NEG_INFINITY;
    let settings = LbfgsSettings {
        evaluations: search.evaluations,
        tolerance: 1e-3,
        first_step: 0.3,
    };
    let found = minimise(&vec![0.0; count], settings, |at, gradient| {
        let Ok((likelihood, by, by_noise)) = evaluate(at) else {
            return f64::INFINITY;
        };
        parameters.gradient(&by, by_noise, gradient);
        let of_inputs = parameters.own_inputs();
        let mut penalty = 0.0;
        for (index, (gradient, p)) in gradient.iter_mut().zip(&at[..count - 1]).enumerate() {
            let spread = if index < of_inputs {
                search.input_spread
            } else {
                search.layer_spread
            };
            let precision = spread.powi(-2);
            penalty += 0.5 * precision * p * p;
            *gradient -= precision * p;
        }
        gradient.iter_mut().for_each(|g| *g = -*g);
        if likelihood - penalty > best {
            best = likelihood - penalty;
            own_likelihood = likelihood;
        }
        penalty - likelihood
    });
    let (scales, noise) = parameters.scales(&found.at);
    Ok(Some(FittedScales {
        scales,
        noise,
        log_marginal_likelihood: own_likelihood,
        evaluations: found.evaluations,
        has_converged: found.has_converged,
    }))
}

/// The process with the scales and the noise that were found. `None` for a network that is not fully connected.
///
/// # Errors
/// As [`evidence_by_scales`].
pub fn process_of(
    network: &Composition,
    inputs: Matrix<'_, f64>,
    targets: &[f64],
    found: &FittedScales,
    threads: usize,
) -> Result<Option<GaussianProcess>, GaussianProcessError> {
    let Some(kernel) = KernelByScales::new(network) else {
        return Ok(None);
    };
    let prior = kernel.forward(inputs, &found.scales, threads);
    let factorise = || GaussianProcess::new(&prior, inputs.nrows(), targets, found.noise);
    with_team(threads, factorise).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Purpose, Stream};
    use crate::network::Activation;

    /// A function of the first of five inputs, with noise.
    fn example(n: usize) -> (Vec<f64>, Vec<f64>) {
        let mut stream = Stream::new(3, 0, Purpose::Simulation, 0);
        let mut x = vec![0.0; n * 5];
        stream.fill_normal(&mut x);
        let y = (0..n).map(|i: usize| f64::sin(2.0 * x[i]) + 0.1 * stream.normal());
        let y = y.collect();
        (x, y)
    }

    #[test]
    fn the_gradient_is_that_of_the_evidence() {
        let (x, y) = example(30);
        let network = Composition::fully_connected(5, &[1, 1], 1, Activation::Gelu);
        let kernel = KernelByScales::new(&network).unwrap();
        let mut start = network.hidden_scales();
        start.push(network.readout_scale);
        let parameters = Parameters {
            start: &start,
            inputs: 5,
            by_input: true,
            noise: 0.3,
        };
        let at: Vec<f64> = (0..parameters.count())
            .map(|i| 0.1 * i as f64 - 0.4)
            .collect();
        let evaluate = |at: &[f64]| {
            let (scales, noise) = parameters.scales(at);
            evidence_by_scales(&kernel, matrix(&x, 30, 5), &y, &scales, noise, 2).unwrap()
        };
        let (_, by, by_noise) = evaluate(&at);
        let mut gradient = vec![0.0; at.len()];
        parameters.gradient(&by, by_noise, &mut gradient);
        for (i, found) in gradient.iter().enumerate() {
            let step = 1e-5;
            let moved = |step: f64| {
                let mut at = at.clone();
                at[i] += step;
                evaluate(&at).0
            };
            let expected = (moved(step) - moved(-step)) / (2.0 * step);
            assert!(
                (found - expected).abs() < 1e-5 * (1.0 + expected.abs()),
                "{i}: {found} {expected}"
            );
        }
    }

    #[test]
    fn inputs_that_do_not_matter_are_found() {
        let (x, y) = example(120);
        let network = Composition::fully_connected(5, &[1, 1], 1, Activation::Gelu);
        let search = ScaleSearch {
            input_spread: 2.0,
            layer_spread: 2.0,
            noise: 0.3,
            by_input: true,
            evaluations: 200,
            threads: 2,
        };
        let found = fit_prior_scales(&network, matrix(&x, 120, 5), &y, search)
            .unwrap()
            .unwrap();
        let inputs = &found.scales.inputs;
        assert!(
            inputs[1..].iter().all(|s| s < &(0.2 * inputs[0])),
            "{found:?}"
        );
        assert!((found.noise - 0.1).abs() < 0.03, "{found:?}");
        assert!(found.has_converged, "{found:?}");
        let shared = ScaleSearch {
            by_input: false,
            ..search
        };
        let shared = fit_prior_scales(&network, matrix(&x, 120, 5), &y, shared)
            .unwrap()
            .unwrap();
        assert!(shared.log_marginal_likelihood < found.log_marginal_likelihood - 5.0);
    }
}
