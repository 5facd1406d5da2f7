//! A run's draws as a Zarr store somewhere else: a folder, or an object store by its address.
//!
//! Every file becomes one object. The root's `zarr.json`, which says what there is, is written last, so that nobody opens a store of which a part is missing.
//! What lets one in - keys, regions, endpoints - is read from the environment, as `AWS_ACCESS_KEY_ID` and so on.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::Path as FilePath;

use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use url::Url;

use super::layout::{DRAWS, ROOT};
use super::{Files, RunError};

/// A place in a store.
#[derive(Debug)]
pub struct Target {
    store: Box<dyn ObjectStore>,
    prefix: Path,
    name: String,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Target {
    /// A folder by its path, which need not exist, or an object store by its address, such as `s3://bucket/place`.
    ///
    /// # Errors
    /// [`RunError::Request`] for an address that is not understood, or of a store that this build does not know;
    /// [`RunError::Io`] for a folder that cannot be made.
    pub fn new(place: &str) -> Result<Self, RunError> {
        let refuse = |why: String| RunError::request(format!("{place}: {why}"));
        if !place.contains("://") {
            let path = FilePath::new(place);
            fs::create_dir_all(path).map_err(RunError::io("create", path))?;
            let store = LocalFileSystem::new_with_prefix(path)
                .map_err(|error| refuse(error.to_string()))?;
            return Ok(Self::of(Box::new(store), "", place));
        }
        let url = Url::parse(place)
            .map_err(|error| refuse(format!("{error}; use a folder, or s3://BUCKET/PLACE")))?;
        if url.scheme() == "s3" && !cfg!(feature = "s3") {
            return Err(refuse(
                "this program was built without object stores of the network: build it with `--features s3`, or export into a folder and copy that".to_owned(),
            ));
        }
        let options = env::vars().map(|(name, value)| (name.to_ascii_lowercase(), value));
        let (store, prefix) = object_store::parse_url_opts(&url, options)
            .map_err(|error| refuse(format!("{error}; use a folder, or s3://BUCKET/PLACE")))?;
        Ok(Self {
            store,
            prefix,
            name: place.to_owned(),
        })
    }

    /// A place in a store that there is already.
    pub fn of(store: Box<dyn ObjectStore>, prefix: &str, name: &str) -> Self {
        Self {
            store,
            prefix: Path::from(prefix),
            name: name.to_owned(),
        }
    }

    /// The store, to read what was written.
    pub fn store(&self) -> &dyn ObjectStore {
        &*self.store
    }

    /// Writes the draws of a run there. Memory: one chunk.
    ///
    /// # Errors
    /// [`RunError::Request`] where there are draws already, unless they may be replaced; [`RunError::Io`] for a run that cannot be read;
    /// [`RunError::Store`] when the store refuses.
    pub fn write(&self, run: impl Into<Files>, overwrite: bool) -> Result<Exported, RunError> {
        let files = run.into();
        let runtime = runtime()?;
        let root = files.read_present(ROOT)?;
        let of = |name: &str| -> Path {
            let within = name.strip_prefix(DRAWS).unwrap_or(name);
            let parts = within.split('/').filter(|part| !part.is_empty());
            parts.fold(self.prefix.clone(), |path, part| path.join(part))
        };
        let refuse = |name: &Path, error: object_store::Error| RunError::Store {
            place: format!("{} in {}", name, self.name),
            reason: match error {
                // what a store says of a bucket that it does not have is a page of XML
                object_store::Error::NotFound { .. } => {
                    "there is no such bucket or folder".to_owned()
                }
                error => error.to_string(),
            },
        };
        let last = of(ROOT);
        match runtime.block_on(self.store.head(&last)) {
            Ok(_) if !overwrite => {
                return Err(RunError::request(format!(
                    "{} holds draws already: replace them with --overwrite, or choose another --to",
                    self.name
                )));
            }
            Ok(_) => runtime
                .block_on(self.delete_draws(&last))
                .map_err(|error| refuse(&last, error))?,
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(refuse(&last, error)),
        }
        let mut all = Exported {
            objects: 0,
            bytes: 0,
        };
        let put = |path: &Path, bytes: Vec<u8>, all: &mut Exported| {
            all.objects += 1;
            all.bytes += bytes.len() as u64;
            let written = runtime.block_on(self.store.put(path, PutPayload::from(bytes)));
            written.map(drop).map_err(|error| refuse(path, error))
        };
        for name in files.names()? {
            if name.starts_with(DRAWS) && name != ROOT {
                let bytes = files.read_present(&name)?;
                put(&of(&name), bytes.to_vec(), &mut all)?;
            }
        }
        put(&last, root.to_vec(), &mut all)?;
        Ok(all)
    }

    /// Deletes the draws whose root is at `root`: it first, which says that there are any, then all objects in the groups that it names, so that of what
    /// the new run does not have nothing is left. What else is there stays.
    async fn delete_draws(&self, root: &Path) -> object_store::Result<()> {
        let description = self.store.get(root).await?.bytes().await?;
        self.store.delete(root).await?;
        let mut folders: Vec<Path> = groups(&description)
            .into_iter()
            .map(|group| self.prefix.clone().join(group))
            .collect();
        while let Some(folder) = folders.pop() {
            let found = self.store.list_with_delimiter(Some(&folder)).await?;
            folders.extend(found.common_prefixes);
            for object in found.objects {
                self.store.delete(&object.location).await?;
            }
        }
        Ok(())
    }
}

/// The groups that a root's description names; none, if it is damaged.
fn groups(description: &[u8]) -> BTreeSet<String> {
    let root: Value = serde_json::from_slice(description).unwrap_or_default();
    let nodes = root["consolidated_metadata"]["metadata"].as_object();
    let names = nodes.into_iter().flat_map(|nodes| nodes.keys());
    names
        .filter_map(|name| name.split('/').next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

fn runtime() -> Result<Runtime, RunError> {
    let mut builder = Builder::new_current_thread();
    #[cfg(feature = "s3")]
    builder.enable_all();
    builder
        .build()
        .map_err(|error| RunError::request(format!("cannot begin to write: {error}")))
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    const DESCRIPTION: &[u8] =
        br#"{"consolidated_metadata": {"metadata": {"posterior": {}, "posterior/x": {}}}}"#;

    fn run() -> Files {
        let files = Files::in_memory();
        for (name, bytes) in [
            ("config.toml", &b"seed = 1"[..]),
            (ROOT, DESCRIPTION),
            ("draws.zarr/posterior/x/zarr.json", b"{\"a\": 1}"),
            ("draws.zarr/posterior/x/c.0.0", b"12345678"),
        ] {
            files.write(name, bytes).unwrap();
        }
        files
    }

    #[test]
    fn draws_and_nothing_else_are_written() {
        let target = Target::of(Box::new(InMemory::new()), "some/place", "memory");
        let exported = target.write(run(), false).unwrap();
        assert_eq!(
            (exported.objects, exported.bytes),
            (3, 18 + DESCRIPTION.len() as u64 - 2)
        );
        let read = |name: &str| {
            let found = runtime().unwrap().block_on(async {
                let found = target.store().get(&Path::from(name)).await?;
                found.bytes().await
            });
            found.map(|bytes| bytes.to_vec())
        };
        assert_eq!(read("some/place/zarr.json").unwrap(), DESCRIPTION);
        assert_eq!(read("some/place/posterior/x/c.0.0").unwrap(), b"12345678");
        assert!(read("some/place/config.toml").is_err());
        // what is there stays unless it may be replaced
        let again = target.write(run(), false).unwrap_err().to_string();
        assert!(again.contains("holds draws already"), "{again}");
        // and of what only the earlier run has nothing is left
        let put = |name: &str| {
            let path = Path::from(name);
            let put = target.store().put(&path, b"old".to_vec().into());
            runtime().unwrap().block_on(put).unwrap();
        };
        put("some/place/posterior/x/c.1.0");
        put("some/place/of-others.txt");
        target.write(run(), true).unwrap();
        assert_eq!(read("some/place/zarr.json").unwrap(), DESCRIPTION);
        assert!(read("some/place/posterior/x/c.1.0").is_err());
        assert_eq!(read("some/place/of-others.txt").unwrap(), b"old");
    }

    #[test]
    fn addresses_that_are_none_are_refused() {
        for (place, said) in [
            ("ftp://host/place", "ftp://host/place"),
            #[cfg(not(feature = "s3"))]
            ("s3://bucket/place", "--features s3"),
        ] {
            let error = Target::new(place).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
