//! The comparison of a model's posterior with its reference draws.

use reprior::chain::Schedule;
use reprior::compute::{Purpose, Stream};
use reprior::diagnostics::{Draws, Estimator};
use reprior::posterior::Target;
use reprior::sampler::{Method, SamplerSettings};
use serde_json::Value;

use super::files::{json, numbers};
use super::model::{Model, Whitened, Whitening};
use crate::common::sample;

/// Over all models, methods, parameters and statistics some eleven hundred z-scores are compared with this: were they
/// normal, a false alarm would have probability 6e-4.
const LIMIT: f64 = 5.0;

/// Methods with transitions per draw.
pub type Methods = &'static [(Method, u64)];

/// Where a posterior is nearly Gaussian after whitening.
pub const EASY: Methods = &[
    (Method::Nuts, 1),
    (Method::Hmc, 2),
    (Method::Mams, 2),
    (Method::HmcInfinite, 2),
    (Method::Mala, 10),
    (Method::Elliptical, 10),
];

/// Where it is not: `mala` would need a thousand steps for an independent draw.
pub const CURVED: Methods = &[
    (Method::Nuts, 1),
    (Method::Hmc, 1),
    (Method::Mams, 1),
    (Method::HmcInfinite, 1),
    (Method::Elliptical, 10),
];

/// Mean, standard deviation and three quantiles of the draws of one parameter, each with its Monte-Carlo error.
fn statistics(values: &[f64], chains: usize) -> [(f64, f64); 5] {
    let draws = Draws::new(values, chains).unwrap();
    let mut estimator = Estimator::new();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut quantile = |p: f64| {
        let at = p * (n - 1.0);
        let (below, part) = (at.floor() as usize, at.fract());
        let above = (below + 1).min(sorted.len() - 1);
        let value = sorted[below] + part * (sorted[above] - sorted[below]);
        (value, estimator.mcse_quantile(draws, p))
    };
    let quantiles = [quantile(0.05), quantile(0.5), quantile(0.95)];
    [
        (mean, estimator.mcse_mean(draws)),
        (variance.sqrt(), estimator.mcse_sd(draws)),
        quantiles[0],
        quantiles[1],
        quantiles[2],
    ]
}

/// Reference draws: parameters, each chain after chain.
fn reference(draws: &Value, names: &[String]) -> (Vec<Vec<f64>>, usize) {
    let chains = draws.as_array().unwrap();
    let parameter = |name: &String| {
        chains
            .iter()
            .flat_map(|chain| numbers(&chain[name]))
            .collect()
    };
    (names.iter().map(parameter).collect(), chains.len())
}

/// The gradient agrees with central differences, in whitened coordinates where all scales are 1.
fn check_gradient(target: &mut Whitened<'_>) {
    for index in 0..5 {
        let mut z = vec![0.0; target.dim()];
        Stream::new(1, 0, Purpose::Initial, index).fill_normal(&mut z);
        let mut gradient = vec![0.0; z.len()];
        target.log_ratio_and_gradient(&z, &mut gradient).unwrap();
        let mut at = |i: usize, shift: f64| {
            let mut moved = z.clone();
            moved[i] += shift;
            target.log_ratio(&moved).unwrap()
        };
        for (i, g) in gradient.iter().enumerate() {
            // fourth order: errors h⁴ and 10⁻¹⁶/h
            let near = at(i, STEP) - at(i, -STEP);
            let far = at(i, 2.0 * STEP) - at(i, -2.0 * STEP);
            let difference = (8.0 * near - far) / (12.0 * STEP);
            let error = (difference - g).abs() / (1.0 + g.abs());
            assert!(
                error < 1e-5,
                "derivative {i}: {g}, differences {difference}"
            );
        }
    }
}

const STEP: f64 = 3e-3;

#[allow(clippy::print_stderr, reason = "figures worth reading")]
fn report(line: std::fmt::Arguments<'_>) {
    eprintln!("{line}");
}

/// A posterior and how hard it is.
pub struct Case<M> {
    /// Its files.
    pub data: &'static str,
    pub draws: &'static str,
    pub make: fn(&Value) -> M,
    pub methods: Methods,
    /// Acceptance rate that gradient methods aim at, if not their own.
    pub acceptance: Option<f64>,
}

/// Checks one posterior with every method.
pub fn agrees<M: Model>(case: &Case<M>) {
    let files = (json("data", case.data), json("draws", case.draws));
    let (Some(data), Some(draws)) = files else {
        return;
    };
    let make = case.make;
    let model = make(&data);
    let names = model.names();
    let (reference, reference_chains) = reference(&draws, &names);
    let unconstrained: Vec<Vec<f64>> = (0..reference[0].len())
        .map(|i| model.unconstrain(&reference.iter().map(|p| p[i]).collect::<Vec<_>>()))
        .collect();
    for (i, x) in unconstrained.iter().take(20).enumerate() {
        for (there_and_back, p) in model.constrain(x).iter().zip(&reference) {
            assert!((there_and_back - p[i]).abs() < 1e-8 * (1.0 + p[i].abs()));
        }
    }
    let whitening = Whitening::new(&unconstrained);
    let make = || Whitened {
        model: &model,
        whitening: whitening.clone(),
    };
    check_gradient(&mut make());
    for &(method, thin) in case.methods {
        let settings = SamplerSettings {
            method,
            target_acceptance: case.acceptance.filter(|_| method.needs_gradients()),
            ..SamplerSettings::default()
        };
        let schedule = Schedule {
            chains: 4,
            warmup: 300 * thin,
            draws: 2000,
            thin,
            seed: 1,
        };
        let chains = sample(make, &settings, schedule);
        let parameters: Vec<Vec<f64>> = chains
            .iter()
            .flat_map(|chain| &chain.positions)
            .map(|z| model.constrain(&whitening.unwhiten(z)))
            .collect();
        let mut worst = (0.0, String::new());
        let mut smallest_ess = f64::INFINITY;
        for (k, name) in names.iter().enumerate() {
            let values: Vec<f64> = parameters.iter().map(|p| p[k]).collect();
            let ess = Estimator::new().ess_bulk(Draws::new(&values, 4).unwrap());
            smallest_ess = smallest_ess.min(ess);
            let ours = statistics(&values, 4);
            let theirs = statistics(&reference[k], reference_chains);
            let labels = ["mean", "sd", "5 %", "50 %", "95 %"];
            for ((ours, theirs), label) in ours.iter().zip(theirs).zip(labels) {
                let z = (ours.0 - theirs.0) / ours.1.hypot(theirs.1);
                if z.abs() > worst.0 || z.is_nan() {
                    let what = format!("{label} of {name}: {:.4}, {:.4}", ours.0, theirs.0);
                    worst = (z.abs(), what);
                }
            }
        }
        let gradients = chains.iter().flat_map(|c| &c.statistics);
        let evaluations: u64 = gradients.map(|s| s.n_gradients + s.n_evaluations).sum();
        report(format_args!(
            "{method}: worst z {:.2} ({}), bulk ESS >= {smallest_ess:.0} from {evaluations} evaluations",
            worst.0, worst.1
        ));
        assert!(
            smallest_ess > 400.0,
            "{method}: {smallest_ess} effective draws"
        );
        assert!(worst.0 < LIMIT, "{method}: z {:.2}, {}", worst.0, worst.1);
    }
}
