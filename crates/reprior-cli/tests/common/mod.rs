//! A temporary folder in which the program runs, and what is read back from it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A small regression: seconds at most, whatever the machine.
pub const SMALL: &str =
    "--data friedman --train 40 --test 20 --network fcn:16 --warmup 20 --draws 30 --chains 2";

/// A temporary folder, the working folder of every command.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The program with these arguments, split at white space, not yet started.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("reprior"));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.0.path());
        command.stdin(Stdio::null());
        command
    }

    /// Runs to the end.
    pub fn run(&self, arguments: &str) -> Finished {
        Finished::new(arguments, &self.command(arguments).output().unwrap())
    }

    /// Runs to the end, which must be a good one.
    pub fn succeed(&self, arguments: &str) -> Finished {
        let finished = self.run(arguments);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        finished
    }

    /// Starts and goes on.
    pub fn start(&self, arguments: &str) -> Running {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(Some(command.spawn().unwrap()), arguments.to_owned())
    }

    /// `summary --json` of a run.
    pub fn summary(&self, run: &str) -> Value {
        self.succeed(&format!("summary {run} --json")).json()
    }

    /// Every file below a folder of this place, with its bytes.
    pub fn tree(&self, name: &str) -> Tree {
        let mut tree = Tree::new();
        walk(&self.path(name), Path::new(""), &mut tree);
        tree
    }
}

/// Files by their path, with their bytes; folders with none and a slash.
pub type Tree = BTreeMap<PathBuf, Vec<u8>>;

fn walk(root: &Path, below: &Path, tree: &mut Tree) {
    let Ok(entries) = fs::read_dir(root.join(below)) else {
        return;
    };
    for entry in entries {
        let entry = entry.unwrap();
        let name = below.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            tree.insert(name.join(""), Vec::new());
            walk(root, &name, tree);
        } else {
            // a temporary file of a run that goes on may be gone by now
            if let Ok(bytes) = fs::read(entry.path()) {
                tree.insert(name, bytes);
            }
        }
    }
}

/// Fails, naming the files, unless two trees are the same byte for byte.
pub fn assert_same(one: &Tree, other: &Tree) {
    let names = |tree: &Tree| tree.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(one), names(other), "the files are not the same");
    let differing: Vec<_> = one
        .keys()
        .filter(|name| one[*name] != other[*name])
        .collect();
    assert!(differing.is_empty(), "these files differ: {differing:?}");
    assert!(one.len() > 20, "hardly a run's draws: {:?}", names(one));
}

/// How a command ended.
#[derive(Debug)]
pub struct Finished {
    #[expect(dead_code, reason = "for who reads why a test failed")]
    arguments: String,
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    fn new(arguments: &str, output: &Output) -> Self {
        Self {
            arguments: arguments.to_owned(),
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout.clone()).unwrap(),
            stderr: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    /// What was printed, as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// What was printed, as CSV: the header and rows.
    pub fn table(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
        let mut lines = self.stdout.lines().map(cells);
        (lines.next().unwrap(), lines.collect())
    }

    /// Checks that this is an error of one line which names all `parts`.
    pub fn assert_error(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        assert!(self.stderr.starts_with("error: "), "{self:?}");
        // the parser of the command line adds a hint below its message
        let is_usage = self.stderr.contains("For more information, try '--help'");
        assert!(is_usage || self.stderr.lines().count() == 1, "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "`{part}` is missing: {self:?}");
        }
    }
}

/// A command that goes on; killed when dropped.
pub struct Running(Option<Child>, String);

impl Running {
    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let id = self.0.as_ref().unwrap().id().to_string();
        // the shell's own, since a bare machine has no other; an error only says that it has ended by itself
        let words = ["-c", "kill \"$@\"", "sh", name, &id];
        let _ = Command::new("sh").args(words).output().unwrap();
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.0.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// Waits for the end.
    pub fn wait(mut self) -> Finished {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        Finished::new(&self.1, &output)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A CSV table of `rows` rows: columns a, b, c; targets y and z, smooth functions of them around 50 and -3.
pub fn table(rows: usize) -> String {
    let mut text = "a,b,c,y,z\n".to_owned();
    for row in 0..rows {
        let t = row as f64;
        let (a, b, c) = (
            (0.7 * t).sin(),
            10.0 + (1.3 * t).cos(),
            (0.37 * t).sin() * 100.0,
        );
        let y = 50.0 + 5.0 * a - 2.0 * (b - 10.0) * a;
        let z = -3.0 + 0.01 * c;
        text += &format!("{a},{b},{c},{y},{z}\n");
    }
    text
}
