//! The run folder: draws that stream out, checkpoints, text files.
//!
//! * [`RunFolder`] makes or opens a folder and locks it against other writing processes; or makes a run in memory, with the
//!   same bytes in the same [`Files`].
//! * [`DrawStore`] and [`DrawWriter`] write `draws.zarr`, a Zarr v3 hierarchy in ArviZ's groups, which xarray, ArviZ and
//!   [`DrawReader`] can open at any moment: while the run goes on, after it was killed, when it is finished.
//! * [`NextLayout`] changes the number of draws that a store is laid out for.
//! * [`DrawWriter::checkpoint`] and [`checkpoint::load`] keep the state of each chain; [`laplace`] keeps what a Laplace
//!   approximation predicts with.
//!
//! From Python (zarr 3): `xarray.open_datatree("RUN/draws.zarr", engine="zarr")`, and for ArviZ before 1.0
//! `arviz.InferenceData.from_datatree` of it. Leave `consolidated` at its default: with `consolidated=False` the arrays'
//! own metadata are read one by one, and for the moment in which they change, or after a kill in that moment, they do not
//! agree on the number of draws.
//!
//! What is recorded is the caller's affair, described by a [`Schema`].
//!
//! **The promise.** Every file appears whole or not at all ([`atomic`]). A run that is killed at any moment, any number
//! of times, and each time goes on from its checkpoints, ends with the same bytes in `draws.zarr` as one that was not,
//! provided that the chains draw the same values again. At each moment a reader finds those draws that all chains have
//! written. Of a run in a folder the memory does not grow with its length.
//!
//! ```
//! use reprior_io::run::*;
//! use serde_json::{Map, json};
//!
//! # fn main() -> Result<(), RunError> {
//! # let temporary = tempfile::tempdir().unwrap();
//! # let path = &temporary.path().join("run");
//! let schema = Schema {
//!     chains: 1,
//!     groups: vec![Group {
//!         name: "posterior".into(),
//!         draws: Some(Draws::new(3)),
//!         variables: vec![Variable::new("theta", DataType::F64, &[("parameter", 2)])],
//!         attributes: Map::new(),
//!     }],
//!     coordinates: [("parameter".into(), Labels::Text(vec!["slope".into(), "offset".into()]))].into(),
//! };
//!
//! // A run that stops after its first checkpoint ...
//! {
//!     let folder = RunFolder::create(path, false)?;
//!     folder.write_text("config.toml", "seed = 1\n")?;
//!     let mut writer = DrawStore::create(&folder, &schema)?.writer(0)?;
//!     writer.push("posterior", &[Values::F64(&[0.0, 0.5])])?;
//!     let position = Tensor { name: "position", shape: &[2], values: Values::F64(&[0.0, 0.5]) };
//!     writer.checkpoint(&json!({"step": 1}), &[position])?;
//! }
//!
//! // ... goes on from there.
//! let folder = RunFolder::open(path)?;
//! let store = DrawStore::open(&folder)?;
//! let mut writer = match checkpoint::load(path, 0)? {
//!     Some(checkpoint) => store.writer_at(0, checkpoint.cursor())?,
//!     None => store.writer(0)?,
//! };
//! writer.push("posterior", &[Values::F64(&[1.0, 1.5])])?;
//! writer.push("posterior", &[Values::F64(&[2.0, 2.5])])?;
//! writer.flush()?;
//!
//! let theta = DrawReader::open(path)?.read::<f64>("posterior", "theta", &Selection::all())?;
//! assert_eq!(theta.shape, [1, 3, 2]);
//! assert_eq!(theta.values, [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]);
//! # Ok(())
//! # }
//! ```

pub mod atomic;
pub mod checkpoint;
mod chunk;
mod cursor;
#[doc(hidden)]
pub mod disk;
mod error;
#[cfg(feature = "object-store")]
pub mod export;
mod files;
mod folder;
mod in_memory;
mod labels;
pub mod laplace;
mod layout;
mod lock;
mod merge;
mod metadata;
mod plan;
mod reader;
mod relay;
mod schema;
mod selection;
mod shared;
mod space;
mod store;
mod tensor_file;
mod values;
mod writer;

pub use checkpoint::Checkpoint;
pub use cursor::Cursor;
pub use error::RunError;
pub use files::Files;
pub use folder::{RunFolder, WEIGHTS};
pub use labels::Labels;
pub use lock::is_being_written;
pub use merge::{ChainOf, merge};
pub use reader::{DrawReader, GroupInfo, Numbers, VariableInfo};
pub use relay::{NextLayout, take_over};
pub use schema::{Draws, Group, MOST_CHAINS, Schema, Variable};
pub use selection::Selection;
pub use space::{bytes_below, free_bytes, overwritten_bytes};
pub use store::DrawStore;
pub use tensor_file::Tensor;
pub use values::{DataType, Number, Values};
pub use writer::DrawWriter;
