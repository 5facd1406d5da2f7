//! The command line, with its help texts.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use reprior::metrics::UncertaintyScore;
use reprior::model::likelihood::LikelihoodName;
use reprior::network::Activation;
use reprior::posterior::{Coordinates, Regulariser, TangentDeterminant};

use crate::method::MethodName;
use crate::minibatch::{LaplaceArguments, MinibatchArguments};
use crate::reproduce::ReproduceArguments;

/// Sample the posterior of Bayesian neural networks: draws, predictions with honest uncertainty, and diagnostics that
/// say whether to believe them.
#[derive(Debug, Parser)]
#[command(
    name = "reprior",
    version,
    max_term_width = 100,
    after_help = "\
Example:
  reprior sample --data strokes --train 500 --out runs/strokes
  reprior predict runs/strokes --data strokes

`reprior COMMAND --help` explains each command."
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Draw from the posterior; writes a run folder and prints a summary
    #[command(after_help = "\
Examples:
  A table, its target named, the noise of the target taken as 0.1 of its standard deviation:
    reprior sample --data energy.csv --target heating_load --network fcn:256,256 --out runs/energy
  The first 256 images of CIFAR-10 (a folder with its binary batches), a wide network:
    reprior sample --data cifar10/ --train 256 --test 500 --network fcn:1024 --out runs/cifar
  The same settings as an earlier run, another seed:
    reprior sample --config runs/cifar/config.toml --seed 2 --out runs/cifar-2

Ctrl-C stops cleanly: everything drawn so far is kept, and `reprior resume RUN` goes on from there.")]
    Sample(SampleArguments),
    /// Go on with a run that was interrupted; ends with the same draws as if it had not been
    #[command(after_help = "Example:\n  reprior resume runs/cifar")]
    Resume(ResumeArguments),
    /// Diagnostics and metrics of a run (finished, stopped or still going)
    #[command(after_help = "Example:\n  reprior summary runs/cifar --json | jq .rhat_max")]
    Summary(SummaryArguments),
    /// Predict for new inputs from a run
    #[command(after_help = "\
Writes CSV, one row per input. Regression: mean,sd,q05,q50,q95 per output (suffixed _NAME if there are several), in the
data's own units, noise included unless --no-noise. Classification: p_CLASS for each class,label,confidence,entropy.

Example:
  reprior predict runs/energy --data new-buildings.csv --out predictions.csv")]
    Predict(PredictArguments),
    /// One HTML page that shows a run, or several side by side: what was run, whether to believe it, what it predicts
    #[command(after_help = "\
Writes RUN/report.html, complete in itself: it loads nothing, and can be mailed or archived. Several runs make one page that
compares them, whose place --out gives.

Examples:
  reprior report runs/cifar
  reprior report runs/cifar runs/cifar-2 --out comparison.html
  reprior predict runs/strokes --data strokes --rotate 90 --out rotated.csv
  reprior report runs/strokes --ood rotated.csv")]
    Report(ReportArguments),
    /// Memory, disk space and operations that a run would take, before anything is allocated
    #[command(
        after_help = "Example:\n  reprior plan --data cifar10/ --train 2000 --network fcn:4096"
    )]
    Plan(PlanArguments),
    /// Where the time of a step goes on this machine, part by part, and how near that is to the processor's peak
    #[command(
        after_help = "Example:\n  reprior bench --data cifar10/ --train 256 --network fcn:1024"
    )]
    Bench(BenchArguments),
    /// Make a table or figure of the papers again, beside the published one; `--list` shows them all
    #[command(after_help = "\
Examples:
  reprior reproduce --list
  reprior reproduce pezzetti2024-fig1 --quick
  reprior reproduce pezzetti2024-fig1 --data DIR      (a folder with cifar10/, mnist/, ...)

Writes tables (CSV, JSON) and figures (SVG) into a folder. An experiment that was stopped goes on with the same command.")]
    Reproduce(ReproduceArguments),
}

/// What to sample; `sample` and `plan` share it. Flags override the configuration file.
#[derive(Debug, Clone, Default, Args)]
pub struct SettingsArguments {
    /// Read settings from this TOML file (a run's own config.toml, for instance); flags override it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Data: a built-in (friedman, two-moons, strokes), a .csv file with a header, a .npz file (x_train, y_train,
    /// x_test, y_test), or a folder of IDX files or CIFAR-10/100 binary batches
    #[arg(long, value_name = "SRC", help_heading = "Data")]
    pub data: Option<String>,
    /// Target column of a CSV file, or several with commas [default: the last column]
    #[arg(
        long,
        value_name = "COLUMN",
        value_delimiter = ',',
        help_heading = "Data"
    )]
    pub target: Option<Vec<String>>,
    /// What the target is: auto, regression or classification (auto: text and image labels are classes) [default: auto]
    #[arg(long, value_name = "TASK", help_heading = "Data")]
    pub task: Option<String>,
    /// Train on the first N records [default: four fifths of a table, all training images]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Data"
    )]
    pub train: Option<usize>,
    /// Test on the first N test records, in a table those that follow the training rows [default: the rest of a table,
    /// at most 1000 test images]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Data"
    )]
    pub test: Option<usize>,
    /// Shuffle the records with this seed before taking the first ones, balanced over classes
    #[arg(
        long,
        value_name = "SEED",
        allow_negative_numbers = true,
        help_heading = "Data"
    )]
    pub shuffle: Option<u64>,

    /// How pixels are scaled: standardised (to mean 0 and standard deviation 1 over all of them) or unit (divided by 255)
    /// [default: standardised]
    #[arg(long, value_name = "HOW", help_heading = "Data")]
    pub pixels: Option<String>,

    /// The network: fcn:WIDTH[,WIDTH...], linear, lenet, resnet:DEPTH,width=WIDTH[,scaling=NAME], resnet-small, or a TOML
    /// file that describes its layers [default: fcn:512]
    #[arg(long, value_name = "NET", help_heading = "Model")]
    pub network: Option<String>,
    /// gelu, relu, erf, tanh, identity, leaky_relu(a), sin [default: gelu]
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub activation: Option<Activation>,
    /// Prior variance of hidden weights times fan-in, one for all hidden layers or one each [default: 2]
    #[arg(
        long,
        value_name = "V",
        value_delimiter = ',',
        allow_negative_numbers = true,
        help_heading = "Model"
    )]
    pub weight_variance: Option<Vec<f64>>,
    /// Prior variance of hidden biases, one for all hidden layers or one each [default: 0.01]
    #[arg(
        long,
        value_name = "V",
        value_delimiter = ',',
        allow_negative_numbers = true,
        help_heading = "Model"
    )]
    pub bias_variance: Option<Vec<f64>>,
    /// Prior variance of readout weights times fan-in [default: 1]
    #[arg(
        long,
        value_name = "V",
        allow_negative_numbers = true,
        help_heading = "Model"
    )]
    pub readout_weight_variance: Option<f64>,
    /// Prior variance of readout biases [default: 0.01]
    #[arg(
        long,
        value_name = "V",
        allow_negative_numbers = true,
        help_heading = "Model"
    )]
    pub readout_bias_variance: Option<f64>,
    /// The likelihood: gaussian (classes are regressed on as one-hot minus 1/C), student-t (real targets with outliers),
    /// categorical (softmax over classes), bernoulli (two classes) or poisson (counts) [default: gaussian]
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub likelihood: Option<LikelihoodName>,
    /// Scale of the observation noise, in units of the standardised target: a number, one per output with commas, `auto` (that
    /// with the largest marginal likelihood of the infinitely wide network), `learn` (it gets a log-normal prior and is sampled
    /// along), or `learn-each` (one per output) [default: 0.1]
    #[arg(
        long,
        value_name = "SIGMA",
        allow_hyphen_values = true,
        help_heading = "Model"
    )]
    pub noise: Option<String>,
    /// auto: multiply all prior scales by what maximises the marginal likelihood of the infinitely wide network; with
    /// --noise auto
    #[arg(long, value_name = "auto", help_heading = "Model")]
    pub scales: Option<String>,
    /// Prior median of a learned noise scale [default: 0.3]
    #[arg(
        long,
        value_name = "M",
        allow_negative_numbers = true,
        help_heading = "Model"
    )]
    pub noise_median: Option<f64>,
    /// Prior standard deviation of the logarithm of a learned noise scale [default: 1]
    #[arg(
        long,
        value_name = "S",
        allow_negative_numbers = true,
        help_heading = "Model"
    )]
    pub noise_spread: Option<f64>,
    /// Degrees of freedom of the student-t likelihood [default: 4]
    #[arg(
        long,
        value_name = "NU",
        allow_negative_numbers = true,
        help_heading = "Model"
    )]
    pub degrees_of_freedom: Option<f64>,

    /// The sampler: hmc-infinite, hmc, nuts, pcn, pcnl, mala, langevin, elliptical or rwm; by minibatches sgld, sghmc or sgnht,
    /// and to compare with them map, dropout, swag or ensemble; around a trained mode laplace (a Gaussian) or
    /// laplace-diffusion; or the posterior of infinitely wide layers in closed form: nngp, or ntk [default: hmc-infinite]
    #[arg(long, value_name = "NAME", help_heading = "Sampler")]
    pub method: Option<MethodName>,
    /// marginal (readout integrated out; gaussian likelihood only), repriorised, standard, or tangent (all weights repriorised;
    /// gaussian likelihood, methods without gradients) [default: marginal for the gaussian likelihood, repriorised for
    /// the others]
    #[arg(long, value_name = "NAME", help_heading = "Sampler")]
    pub coordinates: Option<Coordinates>,
    /// The determinant of tangent coordinates: exact, or series(TERMS,PROBES), an approximation that wide networks need
    /// [default: exact up to 200 parameters, series(4,16) beyond]
    #[arg(long, value_name = "HOW", help_heading = "Sampler")]
    pub determinant: Option<TangentDeterminant>,
    /// Where the readout is solved for: auto (the cheaper), feature, data, or data-symmetric (the symmetric root of Hron
    /// et al. in repriorised coordinates: the same law, slower) [default: auto]
    #[arg(long, value_name = "SPACE", help_heading = "Sampler")]
    pub space: Option<String>,
    /// λ of the map T of repriorised coordinates: matched (σ², or the variance of the likelihood's own approximation), a
    /// positive number, or a multiple of n·σ² such as 1n. It changes coordinates, not the posterior [default: matched]
    #[arg(
        long,
        value_name = "LAMBDA",
        allow_negative_numbers = true,
        help_heading = "Sampler"
    )]
    pub regulariser: Option<Regulariser>,
    /// Reduce the first layer's inputs to what the training data can tell apart (exact): auto, on or off [default: auto]
    #[arg(long, value_name = "WHEN", help_heading = "Sampler")]
    pub input_reduction: Option<String>,
    /// Fixed step size: β in (0, 1] for pcn and pcnl, an angle up to π/2 for hmc-infinite, up to 1.9 for hmc, mala and
    /// langevin, up to 10 for rwm; by minibatches η, of the mean loss [default: adapted in warm-up; by minibatches a
    /// guess from likelihood, preconditioner and parametrisation]
    #[arg(
        long,
        value_name = "STEP",
        allow_negative_numbers = true,
        help_heading = "Sampler"
    )]
    pub step_size: Option<f64>,
    /// Acceptance rate that adaptation aims at [default: 0.8 for hmc-infinite, hmc and nuts, 0.3 for pcn, 0.574 for pcnl and
    /// mala, 0.97 for langevin, 0.234 for rwm]
    #[arg(
        long,
        value_name = "RATE",
        allow_negative_numbers = true,
        help_heading = "Sampler"
    )]
    pub target_acceptance: Option<f64>,
    /// Part of the momentum in (0, 1] that each transition of langevin or hmc-infinite refreshes [default: 0.03 for
    /// langevin, 0.5 for hmc-infinite]
    #[arg(
        long,
        value_name = "B",
        allow_negative_numbers = true,
        help_heading = "Sampler"
    )]
    pub damping: Option<f64>,
    /// Take every step of langevin: the law is then right only as far as the acceptance rate is near 1
    #[arg(long, help_heading = "Sampler")]
    pub no_metropolis: bool,
    /// Mean length of a trajectory of hmc-infinite or hmc, from 0.01 to 10 [default: 0.8 for hmc-infinite, π/2 for
    /// hmc]
    #[arg(
        long,
        value_name = "LENGTH",
        allow_negative_numbers = true,
        help_heading = "Sampler"
    )]
    pub trajectory: Option<f64>,
    /// Transitions of warm-up that hmc-infinite makes before the method itself starts from there; 0 for none [default:
    /// 30, at most half of the warm-up; 0 for hmc-infinite]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Sampler"
    )]
    pub arrival: Option<u64>,
    /// Precision of the network, f32 or f64 (factorisations are always f64) [default: f64 for chains where the noise is
    /// less than a hundredth of the function's prior standard deviation, f32 elsewhere]
    #[arg(long, value_name = "TYPE", help_heading = "Sampler")]
    pub precision: Option<String>,

    /// Independent chains [default: 4; 1 for map, dropout and swag, 5 for ensemble]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Length"
    )]
    pub chains: Option<usize>,
    /// Transitions of each chain before its first draw [default: 200 for hmc-infinite and hmc, 300 for nuts, 1000 for elliptical, 2000
    /// for pcnl, mala and langevin, 5000 for pcn and rwm; half of the updates of sgld, sghmc and sgnht, all those before the
    /// draws of map, dropout, swag and ensemble]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Length"
    )]
    pub warmup: Option<u64>,
    /// Draws of each chain [default: 250 for hmc-infinite, hmc and nuts, 500 for elliptical, 1000 for
    /// the others; 100 for sgld, sghmc, sgnht and dropout, 30 for swag, 1 for map and ensemble]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Length"
    )]
    pub draws: Option<u64>,
    /// Transitions from one draw to the next [default: 2 for hmc-infinite, 1 for hmc and nuts, 25 for pcn and
    /// rwm, 10 for the others; by minibatches what --epochs leaves]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Length"
    )]
    pub thin: Option<u64>,
    /// Seed of every random number; the same seed gives the same draws on any number of threads [default: 0]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Length"
    )]
    pub seed: Option<u64>,

    #[command(flatten)]
    pub minibatch: MinibatchArguments,
    #[command(flatten)]
    pub laplace: LaplaceArguments,

    /// Random projections of all weights that are recorded [default: 100]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Recording"
    )]
    pub projections: Option<usize>,
    /// Megabytes that the run folder may take: positions and predictions of evenly spaced draws are kept as far as they fit; in a
    /// folder of the default size at least 16 positions in all (32 where the readout is sampled) and predictions of 100 draws
    /// [default: 20]
    #[arg(
        long,
        value_name = "MB",
        allow_negative_numbers = true,
        help_heading = "Recording"
    )]
    pub keep_mb: Option<u64>,
    /// Positions of each chain that are kept for `predict`, evenly spaced [default: at most 100, as --keep-mb has room]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Recording"
    )]
    pub keep: Option<u64>,
    /// Draws of each chain whose predictions for all test rows are recorded, evenly spaced; metrics are of these [default: all, as
    /// --keep-mb has room]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Recording"
    )]
    pub keep_predictions: Option<u64>,
    /// Whole weight vectors of each chain that are kept, evenly spread over its draws; beyond --keep-mb [default: 0]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Recording"
    )]
    pub keep_weights: Option<u64>,
}

#[derive(Debug, Args)]
pub struct SampleArguments {
    #[command(flatten)]
    pub settings: SettingsArguments,
    /// The run folder to make [default: runs/ and the name of the data]
    #[arg(long, value_name = "RUN", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Replace an earlier run in that folder
    #[arg(long, help_heading = "Output")]
    pub overwrite: bool,
    #[command(flatten)]
    pub driving: DrivingArguments,
}

#[derive(Debug, Args)]
pub struct DrivingArguments {
    /// Threads, each working on one chain at a time; those that chains by minibatches leave over share their updates [default: one per core]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Output"
    )]
    pub threads: Option<usize>,
    /// Seconds between checkpoints of each chain
    #[arg(
        long,
        value_name = "S",
        allow_negative_numbers = true,
        default_value_t = 10.0,
        help_heading = "Output"
    )]
    pub checkpoint_seconds: f64,
    /// Print the summary as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// No progress on stderr
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub struct ResumeArguments {
    /// The run folder
    pub run: PathBuf,
    #[command(flatten)]
    pub driving: DrivingArguments,
}

#[derive(Debug, Args)]
pub struct SummaryArguments {
    /// The run folder
    pub run: PathBuf,
    /// Print every number: the sampler's, and effective draws per draw, step, gradient and second
    #[arg(long, short, conflicts_with = "json")]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct PredictArguments {
    /// The run folder
    pub run: PathBuf,
    /// Inputs to predict for: anything that `sample` reads; a table needs the same columns, a target is not needed
    #[arg(long, value_name = "SRC")]
    pub data: String,
    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Leave the observation noise out: the uncertainty of the function itself
    #[arg(long)]
    pub no_noise: bool,
    /// Turn images counter-clockwise by so many degrees first: nearest pixels, zero where there are none
    #[arg(long, value_name = "DEGREES", allow_negative_numbers = true)]
    pub rotate: Option<f64>,
    /// Write a reliability table of the classes' predictions against the truth in these data: 15 bins of confidence
    #[arg(long, value_name = "FILE")]
    pub reliability: Option<PathBuf>,
    /// Say how well a score of uncertainty tells these inputs from the run's own test rows (AUROC, average precision, FPR95):
    /// max-probability, entropy or variance (over draws)
    #[arg(long, value_name = "SCORE")]
    pub detect: Option<UncertaintyScore>,
}

#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Run folders
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// File to write [default: report.html in the run folder]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Compare the confidence of the test rows with that of other inputs: a file that `predict --out` wrote for this run
    /// (may be repeated)
    #[arg(long, value_name = "FILE")]
    pub ood: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct PlanArguments {
    #[command(flatten)]
    pub settings: SettingsArguments,
    /// Threads that would be used [default: one per core]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub threads: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchArguments {
    #[command(flatten)]
    pub settings: SettingsArguments,
    /// Seconds for the timing of each part
    #[arg(
        long,
        value_name = "S",
        default_value_t = 0.5,
        allow_negative_numbers = true
    )]
    pub seconds: f64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
