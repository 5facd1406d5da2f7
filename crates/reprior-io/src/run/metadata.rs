//! The `zarr.json` documents of the store, written and read.
//!
//! The keys are those of the [Zarr v3 specification](https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html);
//! the root carries consolidated metadata in zarr-python's form, so that one atomic replacement of one
//! file changes the length of all arrays together.

use super::RunError;
use super::layout::{Array, GroupLayout, StoreLayout};
use super::schema::{Draws, Group, MOST_CHAINS, Schema, Variable};
use super::values::{DataType, StoredType};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Version of the layout that this crate writes.
const LAYOUT_VERSION: u32 = 2;

/// The attribute of the root that says what Zarr's metadata cannot: order and planned lengths.
#[derive(Serialize, Deserialize)]
struct Order {
    version: u32,
    chains: u64,
    groups: Vec<GroupOrder>,
}

#[derive(Serialize, Deserialize)]
struct GroupOrder {
    name: String,
    draws: Option<u64>,
    variables: Vec<String>,
    coordinates: Vec<String>,
}

/// An array's `zarr.json`, with `visible` draws.
pub(crate) fn array_document(array: &Array, visible: u64) -> Value {
    let mut shape = array.shape.clone();
    if let Some(length) = array.draw_axis().and_then(|axis| shape.get_mut(axis)) {
        *length = visible;
    }
    let (fill_value, codec) = match array.stored {
        StoredType::Number(DataType::F32 | DataType::F64) => (json!("NaN"), bytes_codec()),
        StoredType::Number(DataType::Bool) => (json!(false), bytes_codec()),
        StoredType::Number(_) => (json!(0), bytes_codec()),
        StoredType::Text(_) => (json!(""), json!({"name": "vlen-utf8"})),
    };
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": array.stored,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": array.chunk_shape}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": fill_value,
        "codecs": [codec],
        "attributes": array.attributes,
        "dimension_names": array.dims,
    })
}

fn bytes_codec() -> Value {
    json!({"name": "bytes", "configuration": {"endian": "little"}})
}

/// A group's `zarr.json`.
pub(crate) fn group_document(attributes: &Map<String, Value>) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes})
}

/// The root's `zarr.json`; `visible` has the number of draws to show for each group.
pub(crate) fn root_document(layout: &StoreLayout, visible: &[u64]) -> Value {
    let mut metadata = Map::new();
    let mut groups = Vec::new();
    for (group, &visible) in layout.groups.iter().zip(visible) {
        metadata.insert(group.name.clone(), group_document(&group.attributes));
        for array in group.variables.iter().chain(&group.coordinates) {
            let path = format!("{}/{}", group.name, array.name);
            metadata.insert(path, array_document(array, visible));
        }
        let names = |arrays: &[Array]| arrays.iter().map(|array| array.name.clone()).collect();
        groups.push(GroupOrder {
            name: group.name.clone(),
            draws: group.draws,
            variables: names(&group.variables),
            coordinates: names(&group.coordinates),
        });
    }
    let mut order = json!(Order {
        version: LAYOUT_VERSION,
        chains: layout.chains,
        groups,
    });
    order.sort_all_objects();
    json!({
        "zarr_format": 3,
        "node_type": "group",
        // Text, since formats such as NetCDF cannot carry nested attributes.
        "attributes": {"reprior_layout": order.to_string()},
        "consolidated_metadata": {
            "kind": "inline",
            "must_understand": false,
            "metadata": metadata,
        },
    })
}

/// The bytes of a document, its keys in alphabetical order: another crate of the program may have serde_json keep them as they come.
pub(crate) fn to_bytes(mut document: Value) -> Vec<u8> {
    document.sort_all_objects();
    format!("{document:#}\n").into_bytes()
}

/// What is needed of an array's document.
#[derive(Deserialize)]
struct ArrayDocument {
    shape: Vec<u64>,
    data_type: StoredType,
    chunk_grid: ChunkGrid,
    dimension_names: Vec<String>,
    #[serde(default)]
    attributes: Map<String, Value>,
}

#[derive(Deserialize)]
struct ChunkGrid {
    configuration: ChunkGridConfiguration,
}

#[derive(Deserialize)]
struct ChunkGridConfiguration {
    chunk_shape: Vec<u64>,
}

/// Reads the root's `zarr.json` at `path`: the layout, and the draws shown of each group.
///
/// Whatever is accepted here was written by [`root_document`], to the letter.
pub(crate) fn parse_root(path: &Path, bytes: &[u8]) -> Result<(StoreLayout, Vec<u64>), RunError> {
    let damaged = |reason: String| RunError::damaged(path, reason);
    let document: Value = serde_json::from_slice(bytes)
        .map_err(|error| damaged(format!("is not valid JSON: {error}")))?;
    let order = document
        .pointer("/attributes/reprior_layout")
        .and_then(Value::as_str)
        .ok_or_else(|| damaged("has no attribute reprior_layout: not written by reprior".into()))?;
    let order: Order = serde_json::from_str(order)
        .map_err(|error| damaged(format!("cannot read the attribute reprior_layout: {error}")))?;
    if order.version != LAYOUT_VERSION {
        return Err(damaged(format!(
            "has layout version {}, but this program reads version {LAYOUT_VERSION}",
            order.version
        )));
    }
    if order.chains == 0 || order.chains > MOST_CHAINS {
        return Err(damaged(format!("has {} chains", order.chains)));
    }
    let mut groups = Vec::new();
    let mut visible = Vec::new();
    for group in order.groups {
        let (group, draws) = parse_group(&document, group).map_err(&damaged)?;
        groups.push(group);
        visible.push(draws);
    }
    let layout = StoreLayout {
        chains: order.chains,
        groups,
    };
    let is_own = is_of_a_schema(&layout).map_err(|error| damaged(error.to_string()))?;
    if !is_own || root_document(&layout, &visible) != document {
        return Err(damaged(
            "describes a layout that reprior does not write".into(),
        ));
    }
    Ok((layout, visible))
}

fn parse_group(document: &Value, order: GroupOrder) -> Result<(GroupLayout, u64), String> {
    let metadata = document
        .pointer("/consolidated_metadata/metadata")
        .ok_or("has no consolidated metadata")?;
    let attributes = metadata
        .get(&order.name)
        .and_then(|group| group.get("attributes"))
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let mut visible = None;
    let mut parse = |name: &String| -> Result<Array, String> {
        let path = format!("{}/{name}", order.name);
        let document = metadata
            .get(&path)
            .ok_or_else(|| format!("has no metadata of {path}"))?;
        let document = ArrayDocument::deserialize(document)
            .map_err(|error| format!("has unusable metadata of {path}: {error}"))?;
        let mut array = Array {
            name: name.clone(),
            stored: document.data_type,
            dims: document.dimension_names,
            shape: document.shape,
            chunk_shape: document.chunk_grid.configuration.chunk_shape,
            attributes: document.attributes,
        };
        check_shape(&array)
            .map_err(|reason| format!("has unusable metadata of {path}: {reason}"))?;
        if let Some(length) = array.draw_axis().and_then(|axis| array.shape.get_mut(axis)) {
            let planned = order
                .draws
                .ok_or_else(|| format!("{path} has draws, but its group has none"))?;
            if *length > planned {
                return Err(format!("{path} has {length} draws of {planned}"));
            }
            visible = Some(*length);
            *length = planned;
        }
        Ok(array)
    };
    let variables = order.variables.iter().map(&mut parse);
    let variables = variables.collect::<Result<_, _>>()?;
    let coordinates = order.coordinates.iter().map(&mut parse);
    let coordinates = coordinates.collect::<Result<_, _>>()?;
    let group = GroupLayout {
        name: order.name,
        draws: order.draws,
        variables,
        coordinates,
        attributes,
    };
    Ok((group, visible.unwrap_or(0)))
}

/// Whether the shapes, the chunks and the coordinates are those that the variables' names, types and dimensions lead to.
fn is_of_a_schema(layout: &StoreLayout) -> Result<bool, RunError> {
    let variable = |array: &Array, is_sampled: bool| {
        let own = array.dims.iter().cloned().zip(array.shape.iter().copied());
        Ok(Variable {
            name: array.name.clone(),
            data_type: array.data_type()?,
            // a sampled variable's first two are chains and draws
            dims: own.skip(if is_sampled { 2 } else { 0 }).collect(),
            attributes: array.attributes.clone(),
        })
    };
    let group = |group: &GroupLayout| {
        let variables = group.variables.iter();
        let variables = variables.map(|array| variable(array, group.draws.is_some()));
        Ok(Group {
            name: group.name.clone(),
            draws: group.draws.map(Draws::new),
            variables: variables.collect::<Result<_, RunError>>()?,
            attributes: group.attributes.clone(),
        })
    };
    let schema = Schema {
        chains: layout.chains,
        groups: layout
            .groups
            .iter()
            .map(group)
            .collect::<Result<_, RunError>>()?,
        // labels decide nothing but the type of a coordinate
        coordinates: BTreeMap::new(),
    };
    let mut expected = StoreLayout::from_schema(&schema)?;
    for (expected, found) in expected.groups.iter_mut().zip(&layout.groups) {
        for (expected, found) in expected.coordinates.iter_mut().zip(&found.coordinates) {
            expected.stored = found.stored;
        }
    }
    Ok(expected == *layout)
}

fn check_shape(array: &Array) -> Result<(), &'static str> {
    if array.shape.len() != array.dims.len() || array.chunk_shape.len() != array.dims.len() {
        return Err("shape, chunk shape and dimensions differ in number");
    }
    if array.chunk_shape.contains(&0) {
        return Err("a chunk is empty");
    }
    match array.chunk_bytes() {
        Some(bytes) if usize::try_from(bytes).is_ok() => Ok(()),
        _ => Err("a chunk is larger than the memory's address space"),
    }
}
