//! How a schema lies on disk as a Zarr v3 hierarchy, and back.
//!
//! ```text
//! draws.zarr/
//!   zarr.json                    root group; its consolidated metadata describe everything below
//!   posterior/zarr.json
//!   posterior/prediction/zarr.json
//!   posterior/prediction/c.CHAIN.CHUNK.0.0     one chain, `k` draws, the whole of the other dimensions
//!   posterior/chain/, posterior/draw/, ...     coordinates of every dimension
//! ```
//!
//! Chunks are uncompressed, little endian, C order: the mantissas of draws are random (gzip takes 7 % off normal numbers in
//! single precision, 14 % after a shuffle of their bytes), so that it is thinning that makes a run small. A chunk of a
//! sampled variable holds one chain and `k` draws, so many that it stays within 4 MiB and 100 draws (but at least 1) and that
//! all chunks are about full. An array without draws is one chunk.
//!
//! The length along `draw` in the metadata is the number of draws that every chain has written; the
//! planned length stands in the root's attribute `reprior_layout`. The root's `zarr.json` is one file
//! and replaced atomically: whoever reads lengths there sees all arrays of all groups agree.

use super::RunError;
use super::labels::Labels;
use super::schema::{Group, Schema};
use super::values::{DataType, StoredType, TextType};
use serde_json::{Map, Value};

/// The name of the store in a run folder.
pub(crate) const DRAWS: &str = "draws.zarr";
/// The file that describes all of it.
pub(crate) const ROOT: &str = "draws.zarr/zarr.json";
/// The most bytes of a chunk that holds more than one draw.
const CHUNK_BYTES: u64 = 4 << 20;
/// The most draws of a chunk.
const CHUNK_DRAWS: u64 = 100;
/// The attribute of every group that says which version wrote it.
const LIBRARY_VERSION: &str = "inference_library_version";
/// Bytes allowed for one array's metadata, which stand in its own file and in the root's.
pub(crate) const METADATA_BYTES: u64 = 2 * 1024;

/// The store's description in memory, made from a [`Schema`] or read from the root's `zarr.json`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoreLayout {
    pub(crate) chains: u64,
    pub(crate) groups: Vec<GroupLayout>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GroupLayout {
    pub(crate) name: String,
    /// Planned draws, for a sampled group.
    pub(crate) draws: Option<u64>,
    pub(crate) variables: Vec<Array>,
    pub(crate) coordinates: Vec<Array>,
    pub(crate) attributes: Map<String, Value>,
}

/// One Zarr array. The length along `draw`, where there is one, is the planned one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Array {
    pub(crate) name: String,
    pub(crate) stored: StoredType,
    pub(crate) dims: Vec<String>,
    pub(crate) shape: Vec<u64>,
    pub(crate) chunk_shape: Vec<u64>,
    pub(crate) attributes: Map<String, Value>,
}

impl StoreLayout {
    pub(crate) fn from_schema(schema: &Schema) -> Result<Self, RunError> {
        schema.validate()?;
        let groups = schema
            .groups
            .iter()
            .map(|group| GroupLayout::from_schema(group, schema))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            chains: schema.chains,
            groups,
        })
    }

    /// Whether both are the same, whatever version of the library wrote them.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let without_version = |layout: &Self| {
            let mut layout = layout.clone();
            for group in &mut layout.groups {
                group.attributes.remove(LIBRARY_VERSION);
            }
            layout
        };
        without_version(self) == without_version(other)
    }

    pub(crate) fn group(&self, name: &str) -> Result<(usize, &GroupLayout), RunError> {
        self.groups
            .iter()
            .enumerate()
            .find(|(_, group)| group.name == name)
            .ok_or_else(|| RunError::request(format!("the run has no group {name:?}")))
    }

    pub(crate) fn bytes_on_disk(&self) -> Result<u64, RunError> {
        let mut total: u64 = 0;
        for group in &self.groups {
            for array in group.variables.iter().chain(&group.coordinates) {
                let chunks = array
                    .shape
                    .iter()
                    .zip(&array.chunk_shape)
                    .map(|(&length, &chunk)| length.div_ceil(chunk))
                    .try_fold(1, u64::checked_mul);
                total = chunks
                    .and_then(|chunks| chunks.checked_mul(array.chunk_bytes()?))
                    .and_then(|bytes| total.checked_add(bytes)?.checked_add(METADATA_BYTES))
                    .ok_or_else(too_large)?;
            }
        }
        Ok(total)
    }

    pub(crate) fn bytes_in_memory(&self) -> Result<u64, RunError> {
        self.groups
            .iter()
            .filter(|group| group.draws.is_some())
            .flat_map(|group| &group.variables)
            .try_fold(0_u64, |total, array| {
                total.checked_add(array.chunk_bytes()?)
            })
            .ok_or_else(too_large)
    }
}

fn too_large() -> RunError {
    RunError::request("the run would take more than 2^64 bytes")
}

impl GroupLayout {
    fn from_schema(group: &Group, schema: &Schema) -> Result<Self, RunError> {
        let draws = group.draws.map(|draws| draws.length);
        let mut variables = Vec::new();
        let mut coordinates: Vec<Array> = Vec::new();
        if let Some(draws) = draws {
            coordinates.push(Array::coordinate("chain", schema.chains, DataType::I64));
            coordinates.push(Array::coordinate("draw", draws, DataType::I64));
        }
        for variable in &group.variables {
            let mut array = Array {
                name: variable.name.clone(),
                stored: StoredType::Number(variable.data_type),
                dims: variable.dims.iter().map(|(dim, _)| dim.clone()).collect(),
                shape: variable.dims.iter().map(|&(_, length)| length).collect(),
                chunk_shape: variable.dims.iter().map(|&(_, length)| length).collect(),
                attributes: variable.attributes.clone(),
            };
            let draw_bytes = array.chunk_bytes().ok_or_else(too_large)?;
            if let Some(draws) = draws {
                let most = (CHUNK_BYTES / draw_bytes).clamp(1, CHUNK_DRAWS);
                // chunks of equal length, so that the last one is not padded for the most part
                let chunk_draws = draws.div_ceil(draws.div_ceil(most).max(1));
                array.dims.splice(0..0, ["chain".into(), "draw".into()]);
                array.shape.splice(0..0, [schema.chains, draws]);
                array.chunk_shape.splice(0..0, [1, chunk_draws.max(1)]);
            }
            variables.push(array);
            for (dim, length) in &variable.dims {
                if coordinates.iter().all(|known| known.name != *dim) {
                    let mut coordinate = Array::coordinate(dim, *length, DataType::I64);
                    match schema.coordinates.get(dim) {
                        Some(Labels::Text(_)) => {
                            coordinate.stored = StoredType::Text(TextType::String);
                        }
                        Some(Labels::Reals(_)) => {
                            coordinate.stored = StoredType::Number(DataType::F64);
                        }
                        Some(Labels::Integers(_)) | None => {}
                    }
                    coordinates.push(coordinate);
                }
            }
        }
        Ok(Self {
            name: group.name.clone(),
            draws,
            variables,
            coordinates,
            attributes: group.attributes.clone(),
        })
    }

    pub(crate) fn variable(&self, name: &str) -> Result<&Array, RunError> {
        self.variables
            .iter()
            .find(|variable| variable.name == name)
            .ok_or_else(|| {
                RunError::request(format!(
                    "the group {:?} has no variable {name:?}",
                    self.name
                ))
            })
    }
}

impl Array {
    fn coordinate(dim: &str, length: u64, data_type: DataType) -> Self {
        Self {
            name: dim.into(),
            stored: StoredType::Number(data_type),
            dims: vec![dim.into()],
            shape: vec![length],
            chunk_shape: vec![length.max(1)],
            attributes: Map::new(),
        }
    }

    /// Bytes of an element. Of text the length is unknown beforehand; 32 is taken for it.
    fn element_bytes(&self) -> u64 {
        match self.stored {
            StoredType::Number(data_type) => data_type.size() as u64,
            StoredType::Text(_) => 32,
        }
    }

    /// Bytes of a chunk, if they are fewer than 2^64.
    pub(crate) fn chunk_bytes(&self) -> Option<u64> {
        self.chunk_shape
            .iter()
            .copied()
            .try_fold(self.element_bytes(), u64::checked_mul)
    }

    /// The type of the numbers.
    pub(crate) fn data_type(&self) -> Result<DataType, RunError> {
        match self.stored {
            StoredType::Number(data_type) => Ok(data_type),
            StoredType::Text(_) => Err(RunError::request(format!(
                "{:?} holds text, not numbers",
                self.name
            ))),
        }
    }

    /// The axis that grows with the run.
    pub(crate) fn draw_axis(&self) -> Option<usize> {
        self.dims.iter().position(|dim| dim == "draw")
    }

    /// The array's folder in `group`.
    pub(crate) fn folder(&self, group: &str) -> String {
        format!("{DRAWS}/{group}/{}", self.name)
    }

    /// The file with the array's own metadata.
    pub(crate) fn document(&self, group: &str) -> String {
        self.folder(group) + "/zarr.json"
    }

    /// The file of a chunk: of `chain`, number `chunk` along `draw`.
    pub(crate) fn chunk(&self, group: &str, chain: u64, chunk: u64) -> String {
        let mut name = self.folder(group) + "/c";
        for (axis, _) in self.shape.iter().enumerate() {
            let index = match self.dims.get(axis).map(String::as_str) {
                Some("chain") => chain,
                Some("draw") => chunk,
                _ => 0,
            };
            name.push('.');
            name.push_str(&index.to_string());
        }
        name
    }
}
