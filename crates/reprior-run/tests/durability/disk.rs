//! A disk that fails on command: a temporary folder whose every change is counted, and may be refused, interrupted, cut short, or be the last.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once};

use reprior_io::run::disk::{Call, Request, Turn, intercept};
use tempfile::TempDir;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails, once: no space.
    NoSpace,
    /// It fails, once: the device has an error.
    Device,
    /// The process dies before it: it and all later ones change nothing.
    Kill,
    /// The process dies in the middle of it: half of the bytes are written, half of the files removed.
    Torn,
    /// The power is lost before it: what was written and not made durable is there by half.
    PowerLoss,
    /// Somebody stops the run while it is made.
    Stop,
}

/// What happens to the calls on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    /// Nothing.
    Fair,
    /// Every call is interrupted by a signal once, and no write takes more than half of its bytes.
    Gusty,
    /// A fault at the call of this number.
    Storm(usize, Fault),
}

struct State {
    weather: Weather,
    /// The calls so far, by kind and name.
    calls: Vec<(Call, String)>,
    /// The call that the fault met.
    struck: Option<(Call, String)>,
    is_dead: bool,
    was_interrupted: bool,
    /// Set by [`Fault::Stop`].
    stop: Arc<AtomicBool>,
    /// Files whose bytes a loss of power may take.
    volatile: BTreeSet<PathBuf>,
}

/// A temporary folder as a disk.
pub struct Disk {
    root: TempDir,
    stop: Arc<AtomicBool>,
    state: Arc<Mutex<State>>,
}

type Mounted = Vec<(PathBuf, Arc<Mutex<State>>)>;
static MOUNTED: Mutex<Mounted> = Mutex::new(Vec::new());
static BEGUN: Once = Once::new();

impl Disk {
    pub fn new() -> Self {
        BEGUN.call_once(|| intercept(Box::new(decide)));
        let root = in_memory().unwrap_or_else(|| tempfile::tempdir().unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let state = Arc::new(Mutex::new(State {
            weather: Weather::Fair,
            calls: Vec::new(),
            struck: None,
            is_dead: false,
            was_interrupted: false,
            stop: Arc::clone(&stop),
            volatile: BTreeSet::new(),
        }));
        let mut mounted = MOUNTED.lock().unwrap();
        mounted.push((root.path().to_path_buf(), Arc::clone(&state)));
        drop(mounted);
        Self { root, stop, state }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Another weather from now on; calls are counted anew.
    pub fn set(&self, weather: Weather) {
        let mut state = self.state.lock().unwrap();
        state.weather = weather;
        state.calls.clear();
        state.struck = None;
        (state.is_dead, state.was_interrupted) = (false, false);
        state.volatile.clear();
        self.stop.store(false, Ordering::Relaxed);
    }

    /// Whether somebody has stopped the run.
    pub fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// The calls since [`set`](Self::set): what was asked for, and of which file; numbers of processes are left out of names.
    pub fn calls(&self) -> Vec<(Call, String)> {
        self.state.lock().unwrap().calls.clone()
    }

    /// The call that the fault met.
    pub fn struck(&self) -> Option<(Call, String)> {
        self.state.lock().unwrap().struck.clone()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Ok(mut mounted) = MOUNTED.lock() {
            mounted.retain(|(root, _)| root != self.root.path());
        }
    }
}

/// A temporary folder in memory, where there are such: file systems on a disk take long to make files after many were removed.
fn in_memory() -> Option<TempDir> {
    tempfile::tempdir_in("/dev/shm").ok()
}

fn decide(request: Request<'_>) -> io::Result<Turn> {
    let mounted = MOUNTED.lock().unwrap();
    let found = mounted
        .iter()
        .find(|(root, _)| request.path.starts_with(root));
    let Some((root, state)) = found.cloned() else {
        return Ok(Turn::Made);
    };
    drop(mounted);
    state.lock().unwrap().decide(request, &root)
}

fn no_space() -> io::Error {
    io::Error::from_raw_os_error(28)
}

fn device() -> io::Error {
    io::Error::from_raw_os_error(5)
}

impl State {
    fn decide(&mut self, request: Request<'_>, root: &Path) -> io::Result<Turn> {
        if self.is_dead {
            return Err(device());
        }
        if self.weather == Weather::Gusty {
            self.was_interrupted = !self.was_interrupted;
            if self.was_interrupted {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        let number = self.calls.len();
        let call = (request.call, name(request.path, root));
        self.calls.push(call.clone());
        match self.weather {
            Weather::Storm(at, fault) if at == number => {
                self.struck = Some(call);
                return self.strike(fault, request);
            }
            Weather::Gusty if request.bytes > 1 => {
                self.note(request);
                return Ok(Turn::First(request.bytes / 2));
            }
            _ => {}
        }
        self.note(request);
        Ok(match request.call {
            Call::Sync | Call::SyncFolder | Call::SyncDisk => Turn::Skipped,
            _ => Turn::Made,
        })
    }

    fn strike(&mut self, fault: Fault, request: Request<'_>) -> io::Result<Turn> {
        match fault {
            Fault::NoSpace => return Err(no_space()),
            Fault::Device => return Err(device()),
            Fault::Kill => {}
            Fault::Stop => {
                self.stop.store(true, Ordering::Relaxed);
                self.note(request);
                return Ok(Turn::Made);
            }
            Fault::Torn => match (request.call, request.from) {
                (Call::Write, _) if request.bytes > 1 => {
                    self.is_dead = true;
                    return Ok(Turn::First(request.bytes / 2));
                }
                (Call::Copy, Some(from)) => {
                    let bytes = fs::read(from)?;
                    fs::write(request.path, &bytes[..bytes.len() / 2])?;
                }
                (Call::RemoveAll, _) => {
                    let files = files_below(request.path);
                    for file in &files[..files.len().div_ceil(2)] {
                        fs::remove_file(file)?;
                        if let Some(folder) = file.parent() {
                            // unless there is something left in it
                            let _ = fs::remove_dir(folder);
                        }
                    }
                }
                _ => {}
            },
            Fault::PowerLoss => {
                for path in &self.volatile {
                    if let Ok(file) = OpenOptions::new().write(true).open(path) {
                        file.set_len(file.metadata()?.len() / 2)?;
                    }
                }
            }
        }
        self.is_dead = true;
        Err(device())
    }

    /// Keeps account of what is durable.
    fn note(&mut self, request: Request<'_>) {
        let path = request.path;
        match (request.call, request.from) {
            (Call::Write | Call::Copy, _) => {
                self.volatile.insert(path.to_path_buf());
            }
            (Call::Sync, _) => {
                self.volatile.remove(path);
            }
            (Call::SyncDisk, _) => self.volatile.clear(),
            (Call::Rename, Some(from)) => {
                // a folder takes along what is in it
                let (moved, mut others): (BTreeSet<_>, BTreeSet<_>) =
                    std::mem::take(&mut self.volatile)
                        .into_iter()
                        .filter(|volatile| volatile != path)
                        .partition(|volatile| volatile.starts_with(from));
                others.extend(
                    moved
                        .iter()
                        .map(|volatile| match volatile.strip_prefix(from) {
                            Ok(below) if below != Path::new("") => path.join(below),
                            _ => path.to_path_buf(),
                        }),
                );
                self.volatile = others;
            }
            (Call::Remove | Call::RemoveAll, _) => {
                self.volatile.retain(|volatile| !volatile.starts_with(path));
            }
            _ => {}
        }
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => files.extend(files_below(&path)),
            path => files.push(path),
        }
    }
    files.sort();
    files
}

/// Of the path, what is the same in every run: `.NAME.PROCESS-COUNT.tmp` is `NAME~`.
fn name(path: &Path, root: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    let parts = path.iter().map(|part| {
        let part = part.to_string_lossy();
        let own = part
            .strip_prefix('.')
            .and_then(|own| own.strip_suffix(".tmp"));
        match own.and_then(|own| own.rsplit_once('.')) {
            Some((own, _)) => format!("{own}~"),
            None => part.into_owned(),
        }
    });
    parts.collect::<Vec<_>>().join("/")
}
