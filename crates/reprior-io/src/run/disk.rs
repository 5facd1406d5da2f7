//! The system calls that change a run's folder: all of them are made here, so that a test can have each of them fail.
//!
//! A call that a signal interrupts (`EINTR`) is made again; the standard library does so for some calls only. A write that takes fewer
//! bytes than it was given is gone on with by `write_all`, as of any file.
//!
//! A test sees the calls, and decides about them, by [`intercept`]. Without one, the cost is a look at a cell that nobody has filled,
//! beside a system call.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::OnceLock;

/// What is asked of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// A file is made, emptied or opened to be written.
    Open,
    /// Bytes are added to a file.
    Write,
    /// A file's bytes are made durable.
    Sync,
    /// The entries of a folder are made durable.
    SyncFolder,
    /// All that was written on the disk of a folder is made durable.
    SyncDisk,
    /// A file or folder takes a name.
    Rename,
    /// A file gets a second name.
    Link,
    /// A file is copied.
    Copy,
    /// A file or an empty folder is removed.
    Remove,
    /// A folder is removed with all that is in it.
    RemoveAll,
    /// A folder is made, and what is missing above it.
    CreateFolder,
}

/// A call that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Which.
    pub call: Call,
    /// What it changes.
    pub path: &'a Path,
    /// Where that comes from, for [`Call::Rename`], [`Call::Link`] and [`Call::Copy`].
    pub from: Option<&'a Path>,
    /// Bytes to be written by [`Call::Write`].
    pub bytes: usize,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is made.
    Made,
    /// Of the bytes to be written only so many are.
    First(usize),
    /// It is taken as made. For those that make something durable, of which a test sees nothing but the time.
    Skipped,
}

/// Decides about calls, from any thread: an error is given back in the place of the call.
pub type Intercept = dyn Fn(Request<'_>) -> io::Result<Turn> + Send + Sync;

static INTERCEPT: OnceLock<Box<Intercept>> = OnceLock::new();

/// Has `by` decide about all calls of this process from now on, whatever their folder; the first that is given stays. For tests.
pub fn intercept(by: Box<Intercept>) {
    let _ = INTERCEPT.set(by);
}

fn ask(request: Request<'_>) -> io::Result<Turn> {
    match INTERCEPT.get() {
        None => Ok(Turn::Made),
        Some(by) => by(request),
    }
}

/// Makes a call until no signal interrupts it.
fn made<T: Default>(
    call: Call,
    path: &Path,
    from: Option<&Path>,
    make: impl Fn() -> io::Result<T>,
) -> io::Result<T> {
    let request = Request {
        call,
        path,
        from,
        bytes: 0,
    };
    loop {
        let done = match ask(request) {
            Ok(Turn::Skipped) => Ok(T::default()),
            Ok(_) => make(),
            Err(error) => Err(error),
        };
        match done {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// A file that is open to be written.
pub(super) struct Writing<'a> {
    file: &'a File,
    path: &'a Path,
}

impl<'a> Writing<'a> {
    pub(super) fn new(file: &'a File, path: &'a Path) -> Self {
        Self { file, path }
    }

    /// The bytes are on the disk when this returns.
    pub(super) fn sync(&self) -> io::Result<()> {
        made(Call::Sync, self.path, None, || self.file.sync_all())
    }
}

impl Write for Writing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let request = Request {
            call: Call::Write,
            path: self.path,
            from: None,
            bytes: bytes.len(),
        };
        let most = match ask(request)? {
            Turn::First(most) => most.min(bytes.len()),
            Turn::Made | Turn::Skipped => bytes.len(),
        };
        self.file.write(&bytes[..most])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Makes a file, or empties it.
pub(super) fn create(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().create(true).truncate(true))
}

/// Opens a file with what it holds, or makes it.
pub(super) fn open_or_create(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().create(true).truncate(false))
}

fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let open = || options.clone().write(true).open(path).map(Some);
    // none only where an interceptor skips what cannot be skipped
    made(Call::Open, path, None, open)?.ok_or_else(|| ErrorKind::Unsupported.into())
}

/// A file that is complete is on the disk when this returns.
pub(super) fn sync(path: &Path) -> io::Result<()> {
    made(Call::Sync, path, None, || File::open(path)?.sync_all())
}

/// The names in a folder are on the disk when this returns.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    made(Call::SyncFolder, folder, None, || {
        File::open(folder)?.sync_all()
    })
}

/// All that was written on the disk of a folder is there when this returns; whether the system can do that.
#[cfg(target_os = "linux")]
pub(super) fn sync_disk(folder: &Path) -> io::Result<bool> {
    use rustix::io::Errno;
    let cannot = made(Call::SyncDisk, folder, None, || {
        match rustix::fs::syncfs(File::open(folder)?) {
            Err(Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP) => Ok(true),
            done => Ok(done.map(|()| false)?),
        }
    });
    Ok(!cannot?)
}

/// No other system can.
#[cfg(not(target_os = "linux"))]
pub(super) fn sync_disk(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Puts `from` in the place of `to`.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    made(Call::Rename, to, Some(from), || fs::rename(from, to))
}

/// Gives the file `from` the second name `to`.
pub(super) fn link(from: &Path, to: &Path) -> io::Result<()> {
    made(Call::Link, to, Some(from), || fs::hard_link(from, to))
}

/// Copies the file `from`.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    made(Call::Copy, to, Some(from), || fs::copy(from, to).map(drop))
}

/// Removes a file.
pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    made(Call::Remove, path, None, || fs::remove_file(path))
}

/// Removes an empty folder.
pub(super) fn remove_folder(path: &Path) -> io::Result<()> {
    made(Call::Remove, path, None, || fs::remove_dir(path))
}

/// Removes a folder with all that is in it.
pub(super) fn remove_all(path: &Path) -> io::Result<()> {
    made(Call::RemoveAll, path, None, || fs::remove_dir_all(path))
}

/// Makes a folder, and what is missing above it.
pub(super) fn create_folder(path: &Path) -> io::Result<()> {
    made(Call::CreateFolder, path, None, || fs::create_dir_all(path))
}
