//! The draws of a run: created once, written by one [`DrawWriter`] per chain.

use super::cursor::Cursor;
use super::folder::RunFolder;
use super::labels::Labels;
use super::layout::{Array, DRAWS, ROOT, StoreLayout};
use super::metadata::to_bytes;
use super::schema::{Group, Schema};
use super::shared::{Shared, read_root};
use super::values::{StoredType, Values};
use super::writer::DrawWriter;
use super::{Files, RunError, metadata};
use std::sync::Arc;

/// The draws of a run, open for writing.
#[derive(Debug, Clone)]
pub struct DrawStore {
    shared: Arc<Shared>,
}

impl DrawStore {
    /// Creates the store of a new run, without draws.
    ///
    /// The store counts as existing once this returns: if it is killed in between, the next `create` starts afresh.
    /// Cost: three small files for each variable and dimension, each synced.
    ///
    /// # Errors
    /// [`RunError::Request`] when the schema contradicts itself, [`RunError::Exists`] when the run has a store,
    /// [`RunError::Io`] when the disk refuses.
    pub fn create(folder: &RunFolder, schema: &Schema) -> Result<Self, RunError> {
        Self::create_in(folder.files(), schema)
    }

    pub(crate) fn create_in(files: &Files, schema: &Schema) -> Result<Self, RunError> {
        let layout = StoreLayout::from_schema(schema)?;
        if files.size(ROOT)?.is_some() {
            return Err(RunError::Exists(files.place(DRAWS)));
        }
        files.remove(DRAWS)?;
        files.create_folder(DRAWS)?;
        // nothing relies on what follows before the root is there
        for group in &schema.groups {
            let (_, layout) = layout.group(&group.name)?;
            let folder = format!("{DRAWS}/{}", group.name);
            files.create_folder_unsettled(&folder)?;
            for array in layout.variables.iter().chain(&layout.coordinates) {
                files.create_folder_unsettled(&array.folder(&group.name))?;
                let document = metadata::array_document(array, 0);
                files.write_unsettled(&array.document(&group.name), &to_bytes(document))?;
            }
            for array in &layout.coordinates {
                let labels = match schema.coordinates.get(&array.name) {
                    Some(labels) => labels.to_bytes(),
                    None => numbers(group, array).to_bytes(),
                };
                files.write_unsettled(&array.chunk(&group.name, 0, 0), &labels)?;
            }
            let document = metadata::group_document(&layout.attributes);
            files.write_unsettled(&(folder + "/zarr.json"), &to_bytes(document))?;
        }
        files.settle()?;
        let visible = vec![0; layout.groups.len()];
        let root = metadata::root_document(&layout, &visible);
        files.write(ROOT, &to_bytes(root))?;
        Ok(Self::new(files, layout, visible))
    }

    /// Opens the store of an interrupted run, to go on with it.
    ///
    /// # Errors
    /// [`RunError::Damaged`] when the metadata are not what this crate writes, [`RunError::Io`] when the store
    /// cannot be read: it is missing where the run was killed before [`create`](Self::create) returned.
    pub fn open(folder: &RunFolder) -> Result<Self, RunError> {
        let (layout, visible) = read_root(folder.files())?;
        let store = Self::new(folder.files(), layout, visible);
        store.shared.write_all_lengths()?;
        Ok(store)
    }

    fn new(files: &Files, layout: StoreLayout, visible: Vec<u64>) -> Self {
        Self {
            shared: Arc::new(Shared::new(files.clone(), layout, visible)),
        }
    }

    /// Whether the store is laid out as `schema` says, labels, draw spacing and the version that wrote it aside: ask before resuming.
    ///
    /// # Errors
    /// [`RunError::Request`] when the schema contradicts itself.
    pub fn matches(&self, schema: &Schema) -> Result<bool, RunError> {
        Ok(self
            .shared
            .layout
            .is_like(&StoreLayout::from_schema(schema)?))
    }

    /// Number of chains.
    pub fn chains(&self) -> u64 {
        self.shared.layout.chains
    }

    /// A writer for a chain that starts from its first draw. One writer per chain at a time.
    ///
    /// # Errors
    /// As [`writer_at`](Self::writer_at).
    pub fn writer(&self, chain: u64) -> Result<DrawWriter, RunError> {
        let groups = self.shared.layout.groups.iter();
        let sampled = groups.filter(|group| group.draws.is_some());
        let cursor = Cursor {
            draws: sampled.map(|group| (group.name.clone(), 0)).collect(),
        };
        self.writer_at(chain, &cursor)
    }

    /// A writer for a chain that goes on from the cursor of a checkpoint. One writer per chain at a time.
    ///
    /// Draws on disk beyond the cursor, written after the checkpoint, are no longer shown, and are overwritten.
    /// Cost: looks at the size of each chunk before the cursor, reads at most one chunk of each variable.
    ///
    /// # Errors
    /// [`RunError::Request`] for an unknown chain or a cursor of another schema; [`RunError::Damaged`] when a chunk
    /// before the cursor is missing or has the wrong size; [`RunError::Io`] when the disk refuses.
    pub fn writer_at(&self, chain: u64, cursor: &Cursor) -> Result<DrawWriter, RunError> {
        DrawWriter::new(Arc::clone(&self.shared), chain, cursor)
    }

    /// Writes the whole of a variable that has no draws, or replaces it.
    ///
    /// `values` are in C order. Each variable is replaced atomically, but several are not replaced together.
    /// Until it is written, [`DrawReader`](super::DrawReader) refuses to read it; other readers of Zarr find NaN there (zero
    /// for integers).
    ///
    /// # Errors
    /// [`RunError::Request`] for an unknown name, a sampled group, a wrong type or length; [`RunError::Io`].
    pub fn write_static(
        &self,
        group: &str,
        variable: &str,
        values: Values<'_>,
    ) -> Result<(), RunError> {
        let (_, group) = self.shared.layout.group(group)?;
        let array = group.variable(variable)?;
        if group.draws.is_some() {
            return Err(RunError::request(format!(
                "the group {:?} is written draw by draw",
                group.name
            )));
        }
        let bytes = values.to_bytes();
        if array.stored != StoredType::Number(values.data_type())
            || array.chunk_bytes() != Some(bytes.len() as u64)
        {
            return Err(RunError::request(format!(
                "the variable {variable:?} has shape {:?} and type {}, not {} values of type {}",
                array.shape,
                array.data_type()?.name(),
                values.len(),
                values.data_type().name()
            )));
        }
        let name = array.chunk(&group.name, 0, 0);
        self.shared.files.write_changed(&name, &bytes)
    }
}

/// The numbers of chains, of draws, or of what has no labels.
fn numbers(group: &Group, array: &Array) -> Labels {
    let spacing = match group.draws {
        Some(draws) if array.name == "draw" => draws.spacing as i64,
        _ => 1,
    };
    // a chunk is never empty, even of an array without elements
    let length = array.shape.first().map_or(1, |&length| length.max(1)) as i64;
    Labels::Integers((0..length).map(|i| i.wrapping_mul(spacing)).collect())
}
