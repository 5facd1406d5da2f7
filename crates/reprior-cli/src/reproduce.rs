//! `reprior reproduce`: the papers' tables and figures, made again.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use reprior_experiments::{
    About, Bench, DataFolder, Event, Experiment, Failure as Unmade, Size, experiments, find, judge,
    keep, ledger, perform,
};
use serde_json::json;

use reprior_run::Failure;
use reprior_run::words::align;

use crate::stop::catch_ctrl_c;
use crate::table::{to_stderr, to_stdout};

/// What to make again, and at which size.
#[derive(Debug, Args)]
pub struct ReproduceArguments {
    /// The experiment; `--list` names them
    #[arg(value_name = "NAME", required_unless_present_any = ["list", "ledger", "judge"])]
    pub name: Option<String>,
    /// Show every experiment with its paper, figure, cost and data
    #[arg(long)]
    pub list: bool,
    /// Print all claims of the results in a folder as one table, in Markdown
    #[arg(long, value_name = "DIR", conflicts_with_all = ["name", "list"])]
    pub ledger: Option<PathBuf>,
    /// Judge the results in a folder anew, by the rules of this version
    #[arg(long, value_name = "DIR", conflicts_with_all = ["name", "list", "ledger"])]
    pub judge: Option<PathBuf>,
    /// A minute: shrunk
    #[arg(long, conflicts_with_all = ["long", "full"])]
    pub quick: bool,
    /// Hours: where the paper's claims can be seen on two cores
    #[arg(long, conflicts_with = "full")]
    pub long: bool,
    /// The paper's own size; its cost is said first, and may be weeks
    #[arg(long)]
    pub full: bool,
    /// A folder with mnist/, cifar10/, ... [default: built-in images, which the results say]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The published algorithm too, where it is faulty
    #[arg(long)]
    pub as_published: bool,
    /// Folder of the results; one that was begun with the same settings is gone on with [default: results/NAME-SIZE]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// No progress on stderr
    #[arg(long, short)]
    pub quiet: bool,
}

fn failure(unmade: Unmade) -> Failure {
    match unmade {
        Unmade::Stopped => Failure::Stopped,
        Unmade::Data(_) | Unmade::Request(_) => Failure::request(unmade),
        Unmade::Failed(_) | Unmade::Io { .. } => Failure::run(unmade),
    }
}

/// Writes what today's rules say of results, and says what has changed.
fn judge_anew(folder: &Path) -> Result<(), Failure> {
    for judged in judge(folder).map_err(failure)? {
        let Some(now) = &judged.now else {
            let name = judged.name;
            to_stderr(&format!(
                "note: {name} stays as it is: the tables that its claims are judged by are not all in its folder"
            ));
            continue;
        };
        keep(folder, &judged).map_err(failure)?;
        for finding in now {
            if !judged.before.contains(finding) {
                let text = format!("{}: {}: {}", judged.name, finding.verdict, finding.claim);
                to_stdout(&text);
            }
        }
    }
    Ok(())
}

/// Runs the command.
///
/// # Errors
/// A wrong request; an experiment that failed or was stopped, whose finished parts are kept.
pub fn command(arguments: &ReproduceArguments) -> Result<(), Failure> {
    if let Some(folder) = &arguments.ledger {
        to_stdout(ledger(folder).map_err(failure)?.trim_end());
        return Ok(());
    }
    if let Some(folder) = &arguments.judge {
        return judge_anew(folder);
    }
    let Some(name) = arguments.name.as_deref().filter(|_| !arguments.list) else {
        list(arguments.json);
        return Ok(());
    };
    let experiment = find(name).ok_or_else(|| unknown(name))?;
    let size = match (arguments.quick, arguments.long, arguments.full) {
        (true, _, _) => Size::Quick,
        (_, true, _) => Size::Long,
        (_, _, true) => Size::Full,
        _ => Size::Default,
    };
    let threads = threads(arguments.threads)?;
    let data = data(arguments)?;
    let about = experiment.about();
    let cells = experiment.cells(size, arguments.as_published);
    // refused before any work
    experiment
        .check_data(size, &cells, &data)
        .map_err(failure)?;
    if arguments.as_published && cells == experiment.cells(size, false) {
        return Err(Failure::Request(format!(
            "{name} has no published algorithm of its own: leave --as-published out"
        )));
    }
    let folder = arguments
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from("results").join(format!("{name}-{size}")));
    if !arguments.quiet {
        announce(&about, size, &data, cells.len());
    }
    let stop = catch_ctrl_c()?;
    let display = ReproductionDisplay::new(arguments.quiet);
    let bench = Bench {
        size,
        data: &data,
        threads,
        stop,
        progress: &|part| display.advance(part),
    };
    let outcome = perform(experiment, &cells, &bench, &folder, &mut |event| {
        display.begin(event);
    });
    display.finish();
    let outcome = outcome.inspect_err(|unmade| {
        if matches!(unmade, Unmade::Stopped) {
            to_stderr(&format!(
                "Stopped; what was measured is kept in {}. Go on with the same command.",
                folder.display()
            ));
        }
    });
    let outcome = outcome.map_err(failure)?;
    let written = outcome.write(&folder).map_err(failure)?;
    if arguments.json {
        to_stdout(&format!("{:#}", outcome.json()));
    } else {
        to_stdout(&outcome.text());
        to_stdout(&format!(
            "\nWritten to {}: {}",
            folder.display(),
            written.join(", ")
        ));
    }
    Ok(())
}

fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = experiments()
        .iter()
        .map(|experiment| experiment.about().name)
        .collect();
    Failure::Request(format!(
        "there is no experiment `{name}`; `reprior reproduce --list` explains these: {}",
        names.join(", ")
    ))
}

fn threads(asked: Option<usize>) -> Result<usize, Failure> {
    match asked {
        Some(0) => Err(Failure::request("--threads must be at least 1")),
        Some(threads) => Ok(threads),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}

fn data(arguments: &ReproduceArguments) -> Result<DataFolder, Failure> {
    if let Some(path) = &arguments.data
        && !path.is_dir()
    {
        return Err(Failure::Request(format!(
            "--data {} is not a folder: give one that has mnist/, cifar10/ and so on in it",
            path.display()
        )));
    }
    Ok(DataFolder {
        path: arguments.data.clone(),
    })
}

fn announce(about: &About, size: Size, data: &DataFolder, cells: usize) {
    let [quick, default, long, full] = about.cost;
    let cost = size.pick(quick, default, long, full);
    let data = about
        .data
        .map_or("its own".to_owned(), |name| data.described(name));
    to_stderr(&format!(
        "{}: {}, {}; size {size}: {cells} parts, about {cost} on two cores; data: {data}",
        about.name, about.paper, about.figure
    ));
}

fn list(as_json: bool) {
    let all: Vec<About> = experiments().into_iter().map(Experiment::about).collect();
    if as_json {
        let entry = |about: &About| {
            json!({
                "name": about.name, "paper": about.paper.to_string(), "figure": about.figure,
                "what": about.what, "data": about.data,
                "cost": {"quick": about.cost[0], "default": about.cost[1], "long": about.cost[2], "full": about.cost[3]},
            })
        };
        to_stdout(&format!(
            "{:#}",
            json!(all.iter().map(entry).collect::<Vec<_>>())
        ));
        return;
    }
    let mut rows = vec![
        [
            "name", "paper", "figure", "data", "quick", "default", "long", "full",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for about in &all {
        let paper = about.paper.to_string();
        let data = about.data.unwrap_or("its own");
        let [quick, default, long, full] = about.cost;
        let row = [
            about.name,
            &paper,
            about.figure,
            data,
            quick,
            default,
            long,
            full,
        ];
        rows.push(row.map(str::to_owned).to_vec());
    }
    to_stdout(&align(&rows));
    to_stdout("");
    for about in &all {
        to_stdout(&format!("{}: {}", about.name, about.what));
    }
}

/// Parts done, as a bar or as lines.
struct ReproductionDisplay {
    bar: Option<ProgressBar>,
    is_quiet: bool,
    start: Instant,
}

/// Steps of the bar within one part.
const STEPS: u64 = 1000;

impl ReproductionDisplay {
    fn new(is_quiet: bool) -> Self {
        let bar = (!is_quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(STEPS);
            let template = "{bar:24} {percent:>3} %  {elapsed} gone, {eta} left  {msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(500));
            bar
        });
        Self {
            bar,
            is_quiet,
            start: Instant::now(),
        }
    }

    fn begin(&self, event: Event<'_>) {
        let label = event
            .cell
            .map_or_else(|| "done".to_owned(), |cell| cell.label());
        match &self.bar {
            Some(bar) => {
                bar.set_length(STEPS * event.of as u64);
                bar.set_position(STEPS * event.done as u64);
                bar.set_message(label);
            }
            None if !self.is_quiet => {
                let seconds = self.start.elapsed().as_secs();
                to_stderr(&format!(
                    "{}/{}, {seconds} s: {label}",
                    event.done, event.of
                ));
            }
            None => {}
        }
    }

    fn advance(&self, part: f64) {
        if let Some(bar) = &self.bar {
            let before = bar.position() / STEPS * STEPS;
            bar.set_position(before + ((STEPS - 1) as f64 * part.clamp(0.0, 1.0)) as u64);
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
