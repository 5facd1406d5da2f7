//! Options of benchmarks: which cases, how long each, and lines of JSON instead of a table.
//!
//! ```text
//! [name ...] [--only OPERATION] [--rows N] [--threads N] [--seconds S] [--json]
//! ```
use std::time::{Duration, Instant};

pub struct Options {
    pub names: Vec<String>,
    /// The one operation to time.
    pub only: Option<String>,
    pub rows: Option<usize>,
    pub threads: Option<usize>,
    pub seconds: Option<f64>,
    pub json: bool,
}

impl Options {
    /// Of the command line; flags without a meaning here, as cargo's own `--bench`, are left out.
    pub fn read() -> Self {
        let mut options = Self {
            names: Vec::new(),
            only: None,
            rows: None,
            threads: None,
            seconds: None,
            json: false,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().expect("a flag needs a value");
            match word.as_str() {
                "--only" => options.only = Some(value()),
                "--rows" => options.rows = Some(value().parse().unwrap()),
                "--threads" => options.threads = Some(value().parse().unwrap()),
                "--seconds" => options.seconds = Some(value().parse().unwrap()),
                "--json" => options.json = true,
                flag if flag.starts_with('-') => {}
                _ => options.names.push(word),
            }
        }
        options
    }

    pub fn wants(&self, operation: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == operation)
    }

    /// A line of JSON of what took this long.
    pub fn report(case: &str, operation: &str, rows: usize, threads: usize, seconds: f64) {
        println!(
            r#"{{"case": "{case}", "operation": "{operation}", "rows": {rows}, "threads": {threads}, "ms": {}}}"#,
            seconds * 1e3
        );
    }
}

/// The shortest time of several, in seconds: for so long, but at least so often.
pub fn shortest(budget: Duration, count: usize, mut operation: impl FnMut()) -> f64 {
    let (start, mut least, mut done) = (Instant::now(), f64::INFINITY, 0);
    while start.elapsed() < budget || done < count {
        let begin = Instant::now();
        operation();
        least = least.min(begin.elapsed().as_secs_f64());
        done += 1;
    }
    least
}
