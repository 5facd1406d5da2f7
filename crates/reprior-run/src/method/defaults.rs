//! What is chosen for the data at hand where nothing was said: likelihood, network with its prior, noise, method, start of chains.
//!
//! The measurements are in docs/src/choosing.md, "What is chosen for the data". What is given is never changed, and what is
//! chosen is written into the settings and said in one line.

use reprior::model::InputReduction;
use reprior::model::dataset::{InputKind, Targets};
use reprior::model::likelihood::name::LikelihoodName;
use reprior::network::Composition;
use reprior::posterior::Coordinates;
use reprior::sampler::Method;

use super::chains::gradient_operations;
use super::default_noise::{choose_noise, noise_can_vary};
use crate::failure::Failure;
use crate::problem::Records;
use crate::settings::{
    Auto, MethodName, MinibatchMethod, ModelSettings, NETWORK_AUTO, Settings, StartName, given,
};

/// Tables of fewer rows have one wide layer, whose posterior is near the infinitely wide network's and quickly sampled.
pub(super) const FEW_ROWS: usize = 100;
const WIDE: &str = "fcn:512";
/// For other tables four narrow layers.
const NARROW: &str = "fcn:32,32,32,32";
/// With so many rows chains make few transitions in a minute, and three layers, whose gradients are cheaper, predict as well or better.
const MANY_ROWS: usize = 5_000;
const NARROW_OF_MANY_ROWS: &str = "fcn:32,32,32";
/// Prior variance of hidden biases.
const TABLE_BIAS_VARIANCE: f64 = 1.0;
const IMAGE_BIAS_VARIANCE: f64 = 0.01;
/// Prior variances of the readout's weights (times fan-in) and biases: of standardised targets, of a table's, and logarithms of rates, and of
/// logits. These have to reach rare classes - a base rate of 2 % is a logit of −3.9 - and sure ones. Functions of tables are rougher than those of
/// a variance of 1: measured, see `docs/src/choosing.md`.
const READOUT_VARIANCES: [f64; 2] = [1.0, 0.01];
const TABLE_READOUT_VARIANCES: [f64; 2] = [4.0, 0.01];
const LOGIT_VARIANCES: [f64; 2] = [9.0, 4.0];
/// Operations of a gradient over all rows beyond which minibatches are taken: four chains would need hours on two cores.
const MOST_OPERATIONS: f64 = 1e10;

/// Writes what is left open into the settings; returns what was chosen and why, in words.
///
/// # Errors
/// A wrong request: a network that does not fit the data.
pub(crate) fn choose(settings: &mut Settings, records: &Records) -> Result<Vec<String>, Failure> {
    let train = &records.split.train;
    let mut chosen = Vec::new();
    let is_table = train.kind == InputKind::Table;
    let was_open = settings.model.likelihood.is_open();
    if was_open {
        let (likelihood, why) = likelihood(settings, &train.targets);
        settings.model.likelihood = likelihood.into();
        if !likelihood.is_gaussian() {
            chosen.push(format!("--likelihood {likelihood} ({why})"));
        }
    }
    if settings.model.network == NETWORK_AUTO && settings.model.layers.is_none() {
        let (network, why) = network(settings.sampler.method(), is_table, train.rows);
        network.clone_into(&mut settings.model.network);
        chosen.push(format!("--network {network} ({why})"));
    }
    choose_variances(&mut settings.model, is_table);
    let outputs = settings.model.likelihood().outputs(&train.targets);
    let architecture = settings.model.architecture(
        train.kind,
        train.columns,
        outputs,
        settings.sampler.input_reduction,
    )?;
    if settings.sampler.method.is_open() {
        let method = method(settings, &architecture, train.rows);
        settings.sampler.method = method.into();
        if let MethodName::Minibatch(_) = method {
            chosen.push(format!(
                "--method {method} (gradients over all {} rows would take hours; --method hmc-infinite takes them)",
                train.rows
            ));
        }
    }
    choose_noise(settings, &architecture, is_table);
    if was_open && noise_can_vary(settings, train) {
        // the evidence says whether it does
        settings.model.likelihood = Auto::Open;
    }
    if let (MethodName::Chain(method), Auto::Open) =
        (settings.sampler.method(), &settings.sampler.start)
    {
        let start = match is_table {
            true => start(method, settings, &architecture, train.rows),
            false => StartName::Prior,
        };
        settings.sampler.start = start.into();
    }
    Ok(match chosen.is_empty() {
        true => Vec::new(),
        false => vec![format!("chosen for these data: {}", chosen.join(", "))],
    })
}

/// Classes are classes, but for methods that have closed forms under the gaussian likelihood only.
fn likelihood(settings: &Settings, targets: &Targets) -> (LikelihoodName, String) {
    let Targets::Classes { names, .. } = targets else {
        return (LikelihoodName::Gaussian, "real targets".to_owned());
    };
    let is_gaussian = matches!(settings.sampler.method(), MethodName::Infinite(_))
        || matches!(
            settings.sampler.coordinates,
            Some(Coordinates::Marginal | Coordinates::Tangent)
        );
    match (is_gaussian, names.len()) {
        (true, _) => (LikelihoodName::Gaussian, "class codes".to_owned()),
        (false, 2) => (LikelihoodName::Bernoulli, "two classes".to_owned()),
        (false, count) => (LikelihoodName::Categorical, format!("{count} classes")),
    }
}

fn network(method: MethodName, is_table: bool, rows: usize) -> (&'static str, String) {
    match method {
        MethodName::Infinite(_) => (WIDE, "one hidden layer".to_owned()),
        _ if !is_table => (WIDE, "images".to_owned()),
        _ if rows < FEW_ROWS => (WIDE, format!("a table of {rows} training rows")),
        _ if rows < MANY_ROWS => (NARROW, format!("a table of {rows} training rows")),
        _ => (
            NARROW_OF_MANY_ROWS,
            format!("a table of {rows} training rows"),
        ),
    }
}

/// Writes prior variances that are left open; they hang on the kind of data and the likelihood alone.
pub(crate) fn choose_variances(model: &mut ModelSettings, is_table: bool) {
    if model.bias_variance.is_empty() {
        model.bias_variance = vec![match is_table {
            true => TABLE_BIAS_VARIANCE,
            false => IMAGE_BIAS_VARIANCE,
        }];
    }
    let of_logits = matches!(
        model.likelihood(),
        LikelihoodName::Bernoulli | LikelihoodName::Categorical
    );
    let of_rates = model.likelihood() == LikelihoodName::Poisson;
    let [weight, bias] = match (of_logits, is_table && !of_rates) {
        (true, _) => LOGIT_VARIANCES,
        (false, true) => TABLE_READOUT_VARIANCES,
        (false, false) => READOUT_VARIANCES,
    };
    model.readout_weight_variance.get_or_insert(weight);
    model.readout_bias_variance.get_or_insert(bias);
    model.choose_noise_variation();
}

/// Chains, unless a gradient over all rows takes too long and nothing was asked of chains.
fn method(settings: &Settings, architecture: &Composition, rows: usize) -> MethodName {
    let given = given(&settings.sampler);
    let is_reduced = settings.sampler.input_reduction != InputReduction::Off;
    let is_of_chains = |flag: &String| match flag.as_str() {
        "--precision" => false,
        "--input-reduction" => is_reduced,
        _ => true,
    };
    let of_chains = given.iter().any(is_of_chains)
        || settings.run.warmup.is_some()
        || settings.run.minutes.is_some()
        || settings.run.until.is_some()
        || settings.model.scale_prior().is_some();
    let takes_long = gradient_operations(settings, architecture, rows) > MOST_OPERATIONS;
    match takes_long && !of_chains {
        true => MethodName::Minibatch(MinibatchMethod::Sgld),
        false => MethodName::default(),
    }
}

/// At modes where the posterior is rough: more rows than units.
fn start(
    method: Method,
    settings: &Settings,
    architecture: &Composition,
    rows: usize,
) -> StartName {
    let narrowest = architecture.hidden_widths().into_iter().min();
    let is_rough = narrowest.is_some_and(|width| rows > width);
    let is_tangent = settings.coordinates() == Coordinates::Tangent;
    match is_rough && !is_tangent && method.needs_gradients() {
        true => StartName::Mode,
        false => StartName::Prior,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Learn, NoiseSetting};
    use reprior_io::data::BUILT_INS;

    /// Settings as chosen for a built-in, with `change` made before.
    fn chosen(source: &str, change: impl FnOnce(&mut Settings)) -> (Settings, Vec<String>) {
        assert!(BUILT_INS.contains(&source));
        let mut settings = Settings::default();
        settings.data.source = source.to_owned();
        settings.data.train = Some(120);
        change(&mut settings);
        let records = Records::load(&mut settings, None, None).unwrap();
        let choices = choose(&mut settings, &records).unwrap();
        (settings, choices)
    }

    #[test]
    fn a_table_of_numbers_has_narrow_layers_and_a_noise_that_is_learned() {
        let (settings, choices) = chosen("friedman", |_| ());
        assert_eq!(settings.model.network, NARROW);
        assert!(settings.model.likelihood.is_open());
        assert_eq!(settings.model.bias_variance, [1.0]);
        assert!(settings.model.learns_noise());
        assert_eq!(settings.sampler.start, StartName::Mode.into());
        assert_eq!(
            choices,
            ["chosen for these data: --network fcn:32,32,32,32 (a table of 120 training rows)"]
        );
        let of_rows = |rows| network(MethodName::default(), true, rows).0;
        assert_eq!([4_999, 5_000].map(of_rows), [NARROW, NARROW_OF_MANY_ROWS]);
        let (settings, _) = chosen("friedman", |settings| settings.data.train = Some(50));
        assert_eq!(settings.model.network, WIDE);
        assert_eq!(settings.model.likelihood(), LikelihoodName::Gaussian);
    }

    #[test]
    fn noise_is_one_where_more_is_asked_for_or_targets_are_few_values() {
        let is_one = |change: fn(&mut Settings)| {
            let (settings, _) = chosen("friedman", change);
            settings.model.likelihood == LikelihoodName::Gaussian.into()
        };
        assert!(!is_one(|_| ()));
        assert!(is_one(
            |settings| settings.model.noise = Some(NoiseSetting::One(0.2))
        ));
        assert!(is_one(
            |settings| settings.sampler.coordinates = Some(Coordinates::Marginal)
        ));
        assert!(is_one(
            |settings| settings.sampler.method = "sgld".parse().unwrap()
        ));
        assert!(is_one(
            |settings| settings.sampler.method = "pcn".parse().unwrap()
        ));
        let mut settings = Settings::default();
        settings.data.source = "friedman".to_owned();
        let mut records = Records::load(&mut settings, None, None).unwrap();
        let Targets::Real { values, .. } = &mut records.split.train.targets else {
            panic!("the targets are real");
        };
        values.iter_mut().for_each(|value| *value = value.round());
        choose(&mut settings, &records).unwrap();
        assert_eq!(settings.model.likelihood(), LikelihoodName::Gaussian);
        assert!(!settings.model.likelihood.is_open());
    }

    #[test]
    fn noise_is_one_where_many_targets_are_nothing() {
        let mut settings = Settings::default();
        settings.data.source = "friedman".to_owned();
        let mut records = Records::load(&mut settings, None, None).unwrap();
        let Targets::Real { values, .. } = &mut records.split.train.targets else {
            panic!("the targets are real");
        };
        // as of rain, or of claims: one row in seven
        values.iter_mut().step_by(7).for_each(|value| *value = 0.0);
        choose(&mut settings, &records).unwrap();
        assert_eq!(settings.model.likelihood, LikelihoodName::Gaussian.into());
    }

    #[test]
    fn functions_of_tables_go_further_and_their_noise_as_far() {
        let (settings, _) = chosen("friedman", |settings| {
            settings.model.likelihood = LikelihoodName::GaussianHeteroscedastic.into();
        });
        assert_eq!(settings.model.readout_weight_variance, Some(4.0));
        assert_eq!(settings.model.noise_variation, Some(0.5));
        let (settings, _) = chosen("friedman", |settings| {
            settings.model.likelihood = LikelihoodName::Poisson.into();
        });
        assert_eq!(settings.model.readout_weight_variance, Some(1.0));
        assert_eq!(settings.model.noise_variation, None);
    }

    #[test]
    fn classes_are_classes_but_in_closed_forms() {
        let (settings, choices) = chosen("two-moons", |_| ());
        assert_eq!(settings.model.likelihood(), LikelihoodName::Bernoulli);
        assert_eq!(settings.model.readout_weight_variance, Some(9.0));
        assert_eq!(settings.model.readout_bias_variance, Some(4.0));
        assert!(choices[0].contains("--likelihood bernoulli (two classes)"));
        let (settings, _) = chosen("strokes", |_| ());
        assert_eq!(settings.model.likelihood(), LikelihoodName::Categorical);
        assert_eq!(settings.model.network, WIDE);
        assert_eq!(settings.sampler.start, StartName::Prior.into());
        let (settings, _) = chosen("strokes", |settings| {
            settings.sampler.coordinates = Some(Coordinates::Marginal);
        });
        assert_eq!(settings.model.likelihood(), LikelihoodName::Gaussian);
        let (settings, _) = chosen("two-moons", |settings| {
            settings.sampler.method = "nngp".parse().unwrap();
        });
        assert_eq!(settings.model.likelihood(), LikelihoodName::Gaussian);
        assert_eq!(settings.model.noise, Some(NoiseSetting::Auto));
    }

    #[test]
    fn noise_is_learned_or_what_is_most_likely() {
        let by = |method: &str, network: &str| {
            let (settings, _) = chosen("friedman", |settings| {
                settings.sampler.method = method.parse().unwrap();
                settings.model.network = network.to_owned();
            });
            settings.model.noise
        };
        for method in ["sgld", "map", "ensemble", "laplace", "hmc-infinite"] {
            let learned = Some(NoiseSetting::Learn(Learn::Learn));
            assert_eq!(by(method, "fcn:16"), learned, "{method}");
        }
        assert_eq!(by("nngp", "fcn:16"), Some(NoiseSetting::Auto));
        let (settings, _) = chosen("friedman", |settings| {
            settings.sampler.coordinates = Some(Coordinates::Tangent);
        });
        assert_eq!(settings.model.noise, Some(NoiseSetting::Auto));
        let (settings, _) = chosen("friedman", |settings| {
            settings.sampler.method = "laplace".parse().unwrap();
            settings.minibatch.weights = Some("trained.safetensors".into());
        });
        assert_eq!(settings.model.noise, Some(NoiseSetting::Auto));
        let (settings, _) = chosen("friedman", |settings| {
            settings.sampler.method = "sgld".parse().unwrap();
            settings.model.noise = Some(NoiseSetting::One(0.2));
        });
        assert_eq!(settings.model.noise, Some(NoiseSetting::One(0.2)));
    }

    #[test]
    fn minibatches_are_taken_where_gradients_take_long_and_nothing_is_asked_of_chains() {
        let large = |settings: &mut Settings| {
            settings.model.network = "fcn:4096,4096".to_owned();
            settings.data.train = Some(2000);
        };
        let (settings, choices) = chosen("strokes", large);
        assert_eq!(settings.sampler.method().to_string(), "sgld");
        assert!(choices[0].contains("would take hours"), "{choices:?}");
        let of_chains: [fn(&mut Settings); 3] = [
            |settings| settings.sampler.trajectory = Some(1.0),
            |settings| settings.run.minutes = Some(10.0),
            |settings| settings.run.until = Some("rhat<1.01".parse().unwrap()),
        ];
        for ask in of_chains {
            let (settings, _) = chosen("strokes", |settings| {
                large(settings);
                ask(settings);
            });
            assert_eq!(settings.sampler.method(), MethodName::default());
        }
    }

    #[test]
    fn what_is_given_stays() {
        let (settings, choices) = chosen("two-moons", |settings| {
            settings.model.network = "fcn:7".to_owned();
            settings.model.likelihood = LikelihoodName::Categorical.into();
            settings.model.bias_variance = vec![0.3];
            settings.sampler.method = MethodName::default().into();
            settings.sampler.start = StartName::Prior.into();
        });
        assert_eq!(settings.model.network, "fcn:7");
        assert_eq!(settings.model.likelihood(), LikelihoodName::Categorical);
        assert_eq!(settings.model.bias_variance, [0.3]);
        assert_eq!(settings.sampler.start, StartName::Prior.into());
        assert!(choices.is_empty());
    }
}
