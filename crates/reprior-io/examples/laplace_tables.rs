//! Laplace approximations and diffusions of LeNet (Roy, Miani et al. 2024, Tables 1 and 2, Figure 6): confidence, NLL, accuracy, Brier
//! score, calibration, detection of other data, rotated inputs; a line of JSON for each method.
//!
//! ```text
//! cargo run --release -p reprior-io --example laplace_tables -- DATA SET SEED [EPOCHS] [ALPHA] [CURVATURE-ROWS] [RANK] [STEPS]
//! ```
//!
//! DATA is a folder with mnist/, fashion-mnist/, kmnist/ and notmnist/, SET one of the first two. As in the paper: pixels from 0 to 1,
//! LeNet with tanh, Adam with step size 0.001 and batches of 128. Unlike its code: the prior of training is that of the
//! approximation, α once; all training rows; 2,000 test
//! rows of each set rather than 500; probabilities are averaged, not logits.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use reprior::compute::{Purpose, Stream, matrix, matrix_mut};
use reprior::laplace::{
    Decomposition, Diffusion, DiffusionData, DiffusionKind, DiffusionPath, HessianStructure,
    Integrator, Lanczos, Laplace, LaplaceData, OutputCurvature, PriorPrecision, Subset,
};
use reprior::metrics::{
    ClassPredictions, Detection, UncertaintyScore, expected_calibration_error,
    maximum_calibration_error,
};
use reprior::model::likelihood::Categorical;
use reprior::model::{Dataset, Targets};
use reprior::network::layer::Shape;
use reprior::network::{Activation, Composition, Executor, LayerScale, Named};
use reprior::stochastic::preconditioner::Identity;
use reprior::stochastic::{
    Dynamics, Langevin, LangevinSettings, Layout, MinibatchData, Objective, Prior, StepSize, Swag,
};
use reprior_io::data::{ExpectedInputs, Request, load, load_inputs};

const CLASSES: usize = 10;
const DRAWS: u64 = 20;
/// Of diffusions.
const PATHS: u64 = 3;
/// The first rows of every test set.
const TEST_ROWS: usize = 2000;
const ANGLES: [f64; 8] = [0.0, 15.0, 30.0, 60.0, 90.0, 120.0, 150.0, 180.0];

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Rows to predict for.
struct Inputs {
    name: String,
    pixels: Vec<f32>,
    labels: Vec<u32>,
}

impl Inputs {
    fn new(name: &str, data: &Dataset) -> Outcome<Self> {
        let Targets::Classes { labels, .. } = &data.targets else {
            return Err("the targets are not classes".into());
        };
        Ok(Self {
            name: name.to_owned(),
            pixels: data.inputs.iter().map(|x| (x / 255.0) as f32).collect(),
            labels: labels.clone(),
        })
    }

    fn rows(&self) -> usize {
        self.labels.len()
    }
}

/// The mean over draws of probabilities, and the draws' own (draws × rows × classes) for scores.
fn probabilities(outputs: &[f32], rows: usize, sum: &mut [f64]) {
    for row in 0..rows {
        let logits = (0..CLASSES).map(|c| f64::from(outputs[c * rows + row]));
        let largest = logits.clone().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = logits.clone().map(|f| (f - largest).exp()).sum();
        for (c, f) in logits.enumerate() {
            sum[row * CLASSES + c] += (f - largest).exp() / total;
        }
    }
}

struct Experiment {
    network: Composition,
    executor: Executor<f32>,
    mode: Vec<f32>,
    /// The test rows, rotated ones, other data.
    test: Vec<Inputs>,
    set: String,
    seed: u64,
}

impl Experiment {
    /// Mean probabilities of positions, or of the network linearised at the mode.
    fn predict(&mut self, draws: &[Vec<f32>], is_linearised: bool) -> Vec<Vec<f64>> {
        let mut all = Vec::new();
        for inputs in &self.test {
            let rows = inputs.rows();
            let x = matrix(&inputs.pixels, 784, rows).transpose();
            let mut sum = vec![0.0; rows * CLASSES];
            let mut f = vec![0.0; rows * CLASSES];
            if is_linearised {
                let out = matrix_mut(&mut f, rows, CLASSES);
                self.executor.outputs(&self.mode, x, out);
                let size = self.mode.len();
                let away = draws.iter().flat_map(|draw| draw.iter().zip(&self.mode));
                let away: Vec<f32> = away.map(|(w, m)| w - m).collect();
                let mut moved = vec![0.0; rows * CLASSES * draws.len()];
                let out = matrix_mut(&mut moved, rows, CLASSES * draws.len());
                let directions = matrix(&away, size, draws.len());
                self.executor.jvps(&self.mode, x, directions, out);
                for own in moved.chunks_exact_mut(rows * CLASSES) {
                    own.iter_mut().zip(&f).for_each(|(own, f)| *own += f);
                    probabilities(own, rows, &mut sum);
                }
            } else {
                for draw in draws {
                    let out = matrix_mut(&mut f, rows, CLASSES);
                    self.executor.outputs(draw, x, out);
                    probabilities(&f, rows, &mut sum);
                }
            }
            sum.iter_mut().for_each(|p| *p /= draws.len() as f64);
            all.push(sum);
        }
        all
    }

    fn report(&mut self, method: &str, draws: &[Vec<f32>], linear: bool, fit: f64) -> Outcome<()> {
        let begin = Instant::now();
        let all = self.predict(draws, linear);
        let seconds = begin.elapsed().as_secs_f64();
        let score = UncertaintyScore::MaxProbability;
        let scores = |p: &[f64]| score.of_draws(p, 1, CLASSES);
        let (mut rotation, mut auroc, mut text) = (Vec::new(), Vec::new(), String::new());
        let like = scores(&all[0])?;
        for (inputs, probabilities) in self.test.iter().zip(&all) {
            let predictions = ClassPredictions::new(probabilities, &inputs.labels, CLASSES)?;
            let [accuracy, nll] = [predictions.accuracy(), predictions.nll()];
            if let Some(angle) = inputs.name.strip_prefix("rotated ") {
                let confidence = predictions.mean_confidence();
                rotation.push(format!(
                    "[{angle}, {accuracy:.4}, {nll:.4}, {confidence:.4}]"
                ));
            } else if inputs.name == "test" {
                let table = predictions.reliability(15);
                text = format!(
                    "\"conf\": {:.4}, \"nll\": {nll:.4}, \"acc\": {accuracy:.4}, \"brier\": {:.4}, \"ece\": {:.4}, \"mce\": {:.4}",
                    predictions.mean_confidence(),
                    predictions.brier(),
                    expected_calibration_error(&table),
                    maximum_calibration_error(&table)
                );
            } else {
                let found = Detection::new(&like, &scores(probabilities)?)?;
                let (name, fpr) = (&inputs.name, found.fpr95);
                auroc.push(format!("\"{name}\": [{:.4}, {fpr:.4}]", found.auroc));
            }
        }
        println!(
            "{{\"set\": \"{}\", \"seed\": {}, \"method\": \"{method}\", {text}, \"auroc, fpr95\": {{{}}}, \"angle, acc, nll, conf\": [{}], \"fit_seconds\": {fit:.1}, \"predict_seconds\": {seconds:.1}}}",
            self.set,
            self.seed,
            auroc.join(", "),
            rotation.join(", ")
        );
        Ok(())
    }
}

fn main() -> Outcome<()> {
    let mut words = std::env::args().skip(1);
    let folder = words.next().ok_or("give a folder with the data sets")?;
    let set = words.next().unwrap_or_else(|| "mnist".to_owned());
    let mut number = |default: f64| words.next().map_or(Ok(default), |word| word.parse::<f64>());
    let seed = number(0.0)? as u64;
    let epochs = number(if set == "mnist" { 10.0 } else { 30.0 })?;
    let alpha = number(1.0)?;
    let (curvature_rows, rank) = (number(500.0)? as usize, number(50.0)? as usize);
    let steps = number(10.0)? as u64;
    let source = |name: &str| Path::new(&folder).join(name).to_string_lossy().into_owned();
    let split = load(&Request::new(source(&set)))?;
    let train = Inputs::new("train", &split.train)?;
    let rows = train.rows();
    let first = split.test.slice(0..split.test.rows.min(TEST_ROWS));
    let mut test = vec![Inputs::new("test", &first)?];
    for angle in ANGLES {
        let part = split.test.slice(0..1000);
        let turned = Dataset {
            inputs: part.inputs.rotated([28, 28, 1], angle),
            ..part
        };
        test.push(Inputs::new(&format!("rotated {angle}"), &turned)?);
    }
    for name in ["mnist", "fashion-mnist", "kmnist", "notmnist"] {
        if name != set {
            let expected = ExpectedInputs {
                kind: split.test.kind,
                columns: 784,
                column_names: Vec::new(),
                targets: None,
            };
            let values = load_inputs(&source(name), &expected)?.values;
            let rows = TEST_ROWS.min(values.len() / 784);
            let pixels = values.iter().take(rows * 784);
            test.push(Inputs {
                name: name.to_owned(),
                labels: vec![0; rows],
                pixels: pixels.map(|x| (x / 255.0) as f32).collect(),
            });
        }
    }
    let named: Named = "lenet".parse()?;
    let shape = Shape::from([28, 28, 1]);
    let network = named.network(shape, CLASSES, Activation::Tanh, LayerScale::HIDDEN)?;
    let network = network.in_standard_parametrisation()?;
    let (mut by_row, mut targets) = (vec![0.0; rows * CLASSES], vec![0.0; rows * CLASSES]);
    for (row, &label) in train.labels.iter().enumerate() {
        by_row[row * CLASSES + label as usize] = 1.0;
        targets[label as usize * rows + row] = 1.0;
    }
    let data = MinibatchData {
        inputs: Arc::new(train.pixels.clone()),
        targets: by_row.into(),
        likelihood: Arc::new(Categorical),
        scales: vec![1.0; CLASSES],
    };
    let objective = Objective::new(&network, data.clone(), 2)?;
    let layout = Layout::new(&network);
    let mut stream = Stream::new(seed, 0, Purpose::Initial, 0);
    let start = layout.draw_by_fan_in::<f32>(1.0, &mut stream);
    let per_epoch = rows.div_ceil(128) as u64;
    let updates = (epochs * per_epoch as f64) as u64;
    let settings = LangevinSettings {
        step_size: 0.001,
        schedule: StepSize::Cyclical {
            length: updates,
            exploration: 0.0,
        },
        batch: 128,
        dynamics: Dynamics::ADAM,
        decay: Default::default(),
        labels: Default::default(),
        priors: vec![Prior::Gaussian {
            weights: 1.0 / alpha,
            biases: 1.0 / alpha,
        }],
        seed,
        chain: 0,
        temperature: 0.0,
        dropout: 0.0,
    };
    let begin = Instant::now();
    let mut chain = Langevin::new(objective, Box::new(Identity), settings.clone(), start)?;
    for _ in 0..updates {
        chain.update()?;
    }
    let mode = chain.state().position.clone();
    let mut own = Experiment {
        executor: Executor::new(&network)?.with_threads(2),
        network,
        mode: mode.clone(),
        test,
        set,
        seed,
    };
    own.report(
        "map",
        std::slice::from_ref(&mode),
        false,
        begin.elapsed().as_secs_f64(),
    )?;

    // SWAG: 20 more epochs of SGD with momentum 0.9, a position after each
    let begin = Instant::now();
    let (network, swag_settings) = (
        own.network.clone(),
        LangevinSettings {
            step_size: 0.01,
            schedule: StepSize::Constant,
            dynamics: Dynamics::Hamiltonian { friction: 0.1 },
            ..settings
        },
    );
    let objective = Objective::new(&network, data, 2)?;
    let mut sgd = Langevin::new(objective, Box::new(Identity), swag_settings, mode.clone())?;
    let mut swag = Swag::new(mode.len(), 20);
    for update in 1..=20 * per_epoch {
        sgd.update()?;
        if update % per_epoch == 0 {
            swag.add(&sgd.state().position);
        }
    }
    let fit = begin.elapsed().as_secs_f64();
    let mut stream = Stream::new(seed, 0, Purpose::Recording, 0);
    let draws: Vec<Vec<f32>> = (0..DRAWS)
        .map(|_| {
            let mut draw = mode.clone();
            swag.draw(&mut stream, &mut draw);
            draw
        })
        .collect();
    own.report("swag", &draws, false, fit)?;

    let curvature = OutputCurvature::Categorical;
    let all = LaplaceData {
        inputs: matrix(&train.pixels, 784, rows).transpose(),
        targets: &targets,
        likelihood: &Categorical,
        scales: &[1.0; CLASSES],
        curvature: &curvature,
        scale: 1.0,
    };
    let part = curvature_rows.min(rows);
    let of_part: Vec<f64> = (0..CLASSES)
        .flat_map(|c| targets[c * rows..c * rows + part].to_vec())
        .collect();
    let some = LaplaceData {
        inputs: matrix(&train.pixels[..part * 784], 784, part).transpose(),
        targets: &of_part,
        scale: rows as f64 / part as f64,
        ..all
    };
    let lanczos = Lanczos::of_rank(rank);
    for (name, structure, subset, data) in [
        ("diag", HessianStructure::Diag, Subset::All, all),
        (
            "last layer",
            HessianStructure::Full(1 << 32),
            Subset::LastLayer,
            all,
        ),
        ("kron", HessianStructure::Kron, Subset::All, all),
        (
            "lowrank",
            HessianStructure::LowRank(lanczos),
            Subset::All,
            some,
        ),
    ] {
        let begin = Instant::now();
        let prior = PriorPrecision::Scalar(alpha);
        let mut source = Stream::new(seed, 0, Purpose::Curvature, 0);
        let executor = &mut own.executor;
        let laplace = Laplace::fit(
            executor,
            &layout,
            &mode,
            data,
            structure,
            subset,
            &prior,
            &mut source,
        )?;
        let fit = begin.elapsed().as_secs_f64();
        let draws: Vec<Vec<f32>> = (0..DRAWS)
            .map(|index| {
                let mut draw = mode.clone();
                let mut stream = Stream::new(seed, 0, Purpose::Recording, index);
                laplace.draw(&mut stream, &mut draw);
                draw
            })
            .collect();
        own.report(&format!("{name}, sampled"), &draws, false, fit)?;
        own.report(&format!("{name}, linearised"), &draws, true, fit)?;
    }
    let begin = Instant::now();
    let settings = Diffusion {
        kind: DiffusionKind::NonKernel,
        steps,
        precision: alpha,
        integrator: Integrator::Euler,
        decomposition: Decomposition::Lanczos(lanczos),
    };
    let data = DiffusionData {
        inputs: some.inputs,
        curvature: &curvature,
        scale: some.scale,
    };
    let (mut draws, mut products, mut least) = (Vec::new(), 0, usize::MAX);
    for chain in 0..PATHS {
        let mut path = DiffusionPath::new(settings, &mode, seed, chain);
        path.run(&mut own.executor, data)?;
        products += path.products;
        least = least.min(path.least_rank);
        draws.push(path.position().to_vec());
    }
    let fit = begin.elapsed().as_secs_f64();
    own.report(
        &format!("diffusion ({products} products, rank at least {least})"),
        &draws,
        false,
        fit,
    )
}
