//! The command line, with its help texts.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use reprior::metrics::detection::UncertaintyScore;
use reprior_run::{Flags, Until};

use crate::reproduce::ReproduceArguments;
use crate::shell::{CompletionsArguments, ManArguments};

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
  A table, its target named, a network of one's own:
    reprior sample --data energy.csv --target heating_load --network fcn:256,256 --out runs/energy
  A table as it is, without its identifiers, rows with missing inputs left out:
    reprior sample --data houses.csv.gz --target price --ignore id,url --missing drop --out runs/houses
  The first 256 images of CIFAR-10 (a folder with its binary batches), a wide network:
    reprior sample --data cifar10/ --train 256 --test 500 --network fcn:1024 --out runs/cifar
  The same settings as an earlier run, another seed:
    reprior sample --config runs/cifar/config.toml --seed 2 --out runs/cifar-2

Ctrl-C stops cleanly: everything drawn so far is kept, and `reprior resume RUN` goes on from there.")]
    Sample(SampleArguments),
    /// Go on with a run that was interrupted; ends with the same draws as if it had not been
    #[command(after_help = "Example:\n  reprior resume runs/cifar")]
    Resume(ResumeArguments),
    /// Put runs of other chains of the same posterior together: the run that all of these chains would have been
    #[command(after_help = "\
Runs must have the same settings and data, and different chains, such as those of an array of jobs:

  reprior sample --data energy.csv --target heating_load --warmup 500 --draws 1000 --chains 1 --first-chain $K --or-resume --out runs/energy-$K
  reprior merge runs/energy-* --out runs/energy

The draws are those that one run of all chains has, byte for byte.")]
    Merge(MergeArguments),
    /// Write a run's draws as a Zarr store to another folder, or to an object store
    #[command(after_help = "\
What is written opens in xarray and ArviZ. An object store finds its keys in the environment (AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT); it takes a program that was built with `--features s3`.

Examples:
  reprior export runs/energy --to archive/energy.zarr
  reprior export runs/energy --to s3://bucket/energy.zarr")]
    Export(ExportArguments),
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
    /// Memory, disk space, operations and time that a run would take, before anything is sampled
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
    /// Print a script by which a shell completes commands and flags
    #[command(after_help = "\
Examples, each once; then begin a new shell:
  reprior completions bash > ~/.local/share/bash-completion/completions/reprior
  reprior completions zsh > \"${fpath[1]}/_reprior\"
  reprior completions fish > ~/.config/fish/completions/reprior.fish")]
    Completions(CompletionsArguments),
    /// Write manual pages, one for each command
    #[command(after_help = "Example:\n  reprior man --out ~/.local/share/man/man1")]
    Man(ManArguments),
}

#[derive(Debug, Args)]
pub struct SampleArguments {
    #[command(flatten)]
    pub settings: Flags,
    /// The run folder to make [default: runs/ and the name of the data]
    #[arg(long, value_name = "RUN", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Replace an earlier run in that folder
    #[arg(long, help_heading = "Output")]
    pub overwrite: bool,
    /// Go on with the run in that folder if there is one of the same settings; one that is complete is left as it is
    #[arg(long, conflicts_with = "overwrite", help_heading = "Output")]
    pub or_resume: bool,
    #[command(flatten)]
    pub driving: DrivingArguments,
}

#[derive(Debug, Args)]
pub struct DrivingArguments {
    /// Threads, each working on one chain at a time; where there are more, they share the work of each chain [default: one per core]
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub threads: Option<usize>,
    /// Seconds between checkpoints of each chain
    #[arg(
        long,
        value_name = "S",
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
    /// Minutes more for chains on all data: draws go on beyond the number that the run was made with
    #[arg(long, value_name = "M", help_heading = "Length")]
    pub minutes: Option<f64>,
    /// Go on until the predictions for the test rows are so: rhat<1.01, ess>400 or both, as "rhat<1.01,ess>400"; or until the time of
    /// --minutes is up [default of --minutes with it: 10]
    #[arg(long, value_name = "BOUNDS", help_heading = "Length")]
    pub until: Option<Until>,
    #[command(flatten)]
    pub driving: DrivingArguments,
}

#[derive(Debug, Args)]
pub struct MergeArguments {
    /// Run folders; each of them complete
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The run folder to make
    #[arg(long, value_name = "RUN")]
    pub out: PathBuf,
    /// Replace an earlier run in that folder
    #[arg(long)]
    pub overwrite: bool,
    /// Leave out chains between the first and the last that no run has
    #[arg(long)]
    pub allow_gaps: bool,
    /// Take chains that several runs have from the first of them
    #[arg(long)]
    pub allow_overlaps: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ExportArguments {
    /// The run folder
    pub run: PathBuf,
    /// A folder, or the address of a place in an object store
    #[arg(long, value_name = "PLACE")]
    pub to: String,
    /// Replace draws that are there
    #[arg(long)]
    pub overwrite: bool,
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
    /// Inputs to predict for: anything that `sample` reads; a table needs the same columns, in any order, a target is not needed
    #[arg(long, value_name = "SRC")]
    pub data: String,
    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Leave the observation noise out: the uncertainty of the function itself
    #[arg(long)]
    pub no_noise: bool,
    /// Turn images counter-clockwise by so many degrees first: nearest pixels, zero where there are none
    #[arg(long, value_name = "DEGREES")]
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
    /// Print the page's numbers as JSON, the page's path among them
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct PlanArguments {
    #[command(flatten)]
    pub settings: Flags,
    /// Threads that would be used [default: one per core]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchArguments {
    #[command(flatten)]
    pub settings: Flags,
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
