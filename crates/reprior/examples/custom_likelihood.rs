//! A network with a likelihood of your own: counts that scatter more than a Poisson law allows.
//!
//! The counts follow a negative binomial law with mean μ = m·e^f, f the network's output, and variance μ + μ²/r. All the
//! library needs is an implementation of [`Likelihood`]; gradients through the network, coordinates and samplers follow. With its
//! curvature come Laplace approximations, with its family of distributions quantiles of predictions.
//!
//! ```text
//! cargo run --release -p reprior --example custom_likelihood
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reprior::chain::{Chain, Collect, Control, Schedule, run};
use reprior::compute::{Purpose, Stream};
use reprior::diagnostics::{Draws, Estimator};
use reprior::metrics::{Mixture, PredictiveFamily, PredictiveLaw};
use reprior::model::likelihood::{Approximation, Curvature, Derivatives, Likelihood};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior::posterior::{Coordinates, Posterior, Recorder};
use reprior::sampler::SamplerSettings;

/// log p(y | f) = y·log μ − (y + r)·log(r + μ) + terms without f, one output.
#[derive(Debug)]
struct NegativeBinomial {
    /// m: the mean count where the network's output is 0, which is where its prior is centred.
    mean: f64,
    /// r: the smaller, the more the counts scatter.
    size: f64,
}

impl Likelihood for NegativeBinomial {
    /// Summed over rows; where derivatives are asked for, every entry is written.
    fn log_density(
        &self,
        targets: &[f64],
        outputs: &[f64],
        _scales: &[f64],
        mut derivatives: Option<Derivatives<'_>>,
    ) -> f64 {
        let mut total = 0.0;
        for (row, (y, f)) in targets.iter().zip(outputs).enumerate() {
            let mean = self.mean * f.exp();
            total += y * mean.ln() - (y + self.size) * (self.size + mean).ln();
            if let Some(derivatives) = &mut derivatives {
                derivatives.outputs[row] = y - mean * (y + self.size) / (self.size + mean);
            }
        }
        if let Some(derivatives) = derivatives {
            derivatives.log_scales.fill(0.0); // no scale σ here
        }
        total
    }

    /// What it looks like near f = 0: with gradient g and Fisher information w there, an observation g/w of variance 1/w.
    /// This shapes the coordinates in which is sampled, not the posterior, and so need not be exact.
    fn approximation(&self, targets: &[f64], scales: &[f64]) -> Approximation {
        Approximation {
            targets: targets.iter().map(|y| y / self.mean - 1.0).collect(),
            variances: vec![1.0 / self.mean + 1.0 / self.size; scales.len()],
        }
    }

    /// The Fisher information of an output, which Laplace approximations are made of.
    fn curvature(&self, outputs: &[f64], _scales: &[f64], curvature: &mut Curvature) -> bool {
        curvature.set_diagonal(outputs.iter().map(|f| {
            let mean = self.mean * f.exp();
            mean * self.size / (self.size + mean)
        }));
        true
    }

    /// For an output f ~ N(f, v) the mean count is that of f + v/2.
    fn moderate(&self, outputs: &mut [f64], variances: &[f64], _scales: &mut [f64]) {
        outputs[0] += 0.5 * variances[0];
    }

    /// What a count is distributed as, given its mean; r is the same for all.
    fn family(&self) -> Option<PredictiveFamily> {
        Some(PredictiveFamily::new(&CountLaw, self.size))
    }

    /// The mean count for an output, in its place.
    fn mean(&self, outputs: &mut [f64]) {
        outputs[0] = self.mean * outputs[0].exp();
    }

    /// A count: the failures before the r-th success (r a whole number here), where r/(r + μ) of all trials succeed.
    fn simulate(&self, outputs: &[f64], _: &[f64], stream: &mut Stream, targets: &mut [f64]) {
        let success = self.size / (self.size + self.mean * outputs[0].exp());
        let failures = || (stream.uniform().ln() / (-success).ln_1p()).floor();
        targets[0] = std::iter::repeat_with(failures)
            .take(self.size as usize)
            .sum();
    }
}

/// The negative binomial distribution by its mean, with r as the parameter.
struct CountLaw;

impl PredictiveLaw for CountLaw {
    fn name(&self) -> &'static str {
        "negative-binomial"
    }

    fn log_density(&self, r: f64, y: f64, [mean, _]: [f64; 2]) -> f64 {
        let choices = libm::lgamma(y + r) - libm::lgamma(r) - libm::lgamma(y + 1.0);
        choices + y * (mean / (r + mean)).ln() + r * (r / (r + mean)).ln()
    }

    fn cdf(&self, r: f64, y: f64, member: [f64; 2]) -> f64 {
        let counts = (0..).map(f64::from).take_while(|count| *count <= y);
        let total: f64 = counts
            .map(|count| self.log_density(r, count, member).exp())
            .sum();
        total.min(1.0)
    }

    fn variance(&self, r: f64, [mean, _]: [f64; 2]) -> f64 {
        mean + mean * mean / r
    }

    fn is_discrete(&self) -> bool {
        true
    }
}

/// What the network is to find out: log-mean counts over x in [−2, 2].
fn truth(x: f64) -> f64 {
    1.5 + (2.0 * x).sin()
}

fn main() -> Result<(), Box<dyn Error>> {
    // 200 counts, and five inputs to predict at
    let mut stream = Stream::new(1, 0, Purpose::Initial, 0);
    let x: Vec<f64> = (0..200).map(|_| 4.0 * stream.uniform() - 2.0).collect();
    let law = |mean| NegativeBinomial { mean, size: 5.0 };
    let mut y = vec![0.0; x.len()];
    for (x, y) in x.iter().zip(y.chunks_mut(1)) {
        law(1.0).simulate(&[truth(*x)], &[], &mut stream, y);
    }
    let test = [-1.6, -0.8, 0.0, 0.8, 1.6];

    // the posterior of a network of 50 hidden units with that likelihood; the prior is centred at the mean count
    let mean = y.iter().sum::<f64>() / y.len() as f64;
    let mut architecture = Composition::fully_connected(1, &[50], 1, Activation::Gelu);
    // a curve needs units that bend in different places: large biases a priori
    architecture.hidden_scales_mut()[0].bias = 2.0;
    let model = Model::<f32>::new(architecture, 1.0, &x, y, &test, InputReduction::Auto)?
        .with_likelihood(Arc::new(law(mean)));
    let model = Arc::new(model);

    // four chains of the default method
    let schedule = Schedule {
        chains: 4,
        warmup: 100,
        draws: 250,
        thin: 1,
        seed: 2,
    };
    let target = || Posterior::new(Arc::clone(&model), Coordinates::Repriorised);
    let mut chains = Vec::new();
    for index in 0..schedule.chains {
        let chain = Chain::start(index, schedule, &SamplerSettings::default(), target()?)?;
        chains.push((chain, Collect::default()));
    }
    let control = Control {
        threads: 4,
        checkpoint_every: Duration::from_secs(60),
        stop: &AtomicBool::new(false),
    };
    let (chains, outcome) = run(chains, control, &|_| {});
    outcome?;

    // from positions to outputs at the test inputs, draw by draw
    let mut posterior = target()?;
    let mut recorder = Recorder::new(Arc::clone(&model));
    let mut outputs = vec![Vec::new(); test.len()];
    for z in chains
        .iter()
        .flat_map(|(_, collected)| &collected.positions)
    {
        let record = recorder.record(&mut posterior, z, &mut stream)?;
        for (values, f) in outputs.iter_mut().zip(&record.mean) {
            values.push(f + mean.ln());
        }
    }
    let family = law(mean).family().ok_or("counts have a family")?;
    println!("     x   truth    mean      sd   ESS   R-hat   (of log μ)   90 % of counts");
    for (x, values) in test.iter().zip(&outputs) {
        let s = Estimator::new().summary(Draws::new(values, chains.len())?);
        let (truth, ess) = (truth(*x), s.ess_bulk);
        let (mean, sd, rhat) = (s.mean, s.sd, s.rhat);
        // the predictive: a mixture over draws of the likelihood's own family
        let means: Vec<f64> = values.iter().map(|value| value.exp()).collect();
        let mixture = Mixture::new(family, &means, &[1.0])?;
        let [low, high] = [0.05, 0.95].map(|probability| mixture.quantile(probability));
        println!("{x:>6}{truth:>8.2}{mean:>8.2}{sd:>8.2}{ess:>6.0}{rhat:>8.3}{low:>17} to {high}");
    }
    Ok(())
}
