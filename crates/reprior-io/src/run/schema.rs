//! What a run records: groups of variables, with types, dimensions and lengths.
//!
//! The caller describes the whole of `draws.zarr` once, before the first draw; from the schema alone
//! follow the layout on disk, the shape of the chunks, and the bytes that the run will take.
//! Groups are named as ArviZ names them: `posterior`, `sample_stats`, `warmup_posterior`,
//! `observed_data`, ...

use super::RunError;
use super::labels::Labels;
use super::values::DataType;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};

/// The most chains of a run: a bound for what a damaged file may ask for.
pub const MOST_CHAINS: u64 = 1 << 20;

/// Everything that a run records.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// Number of chains.
    pub chains: u64,
    /// The groups, in the caller's order.
    pub groups: Vec<Group>,
    /// Labels along dimensions, for all groups that use them; without labels: 0, 1, 2, ... Those of `chain` are integers.
    pub coordinates: BTreeMap<String, Labels>,
}

/// One group of variables.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Name of the group, such as `posterior`.
    pub name: String,
    /// For a sampled group, its draws; `None` for a group written as a whole, such as `observed_data`.
    pub draws: Option<Draws>,
    /// The variables, in the order in which their values are given.
    pub variables: Vec<Variable>,
    /// Attributes of the group, such as `created_at`, `inference_library`.
    pub attributes: Map<String, Value>,
}

/// The draws that a sampled group will have at the end, in each chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draws {
    /// Final number of draws of each chain.
    pub length: u64,
    /// Difference of the `draw` coordinate between neighbours: 1, or the thinning of this group
    /// relative to the others. Draw `i` has the coordinate `i * spacing`.
    pub spacing: u64,
}

impl Draws {
    /// `length` draws, numbered 0, 1, 2, ...
    pub fn new(length: u64) -> Self {
        Self { length, spacing: 1 }
    }
}

/// One variable.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Name of the variable.
    pub name: String,
    /// Type of its elements.
    pub data_type: DataType,
    /// Names and lengths of its dimensions, without `chain` and `draw`.
    pub dims: Vec<(String, u64)>,
    /// Attributes of the variable, such as `units`.
    pub attributes: Map<String, Value>,
}

impl Variable {
    /// A variable without attributes.
    pub fn new(name: impl Into<String>, data_type: DataType, dims: &[(&str, u64)]) -> Self {
        Self {
            name: name.into(),
            data_type,
            dims: dims
                .iter()
                .map(|&(name, length)| (name.into(), length))
                .collect(),
            attributes: Map::new(),
        }
    }
}

impl Schema {
    /// Checks names and lengths, so that whatever passes can be stored and opened by xarray.
    pub(crate) fn validate(&self) -> Result<(), RunError> {
        if self.chains == 0 {
            return Err(RunError::request("a run needs at least one chain"));
        }
        if self.chains > MOST_CHAINS {
            return Err(RunError::request(format!(
                "a run has at most {MOST_CHAINS} chains, not {}",
                self.chains
            )));
        }
        if self.coordinates.contains_key("draw") {
            return Err(RunError::request(
                "the store numbers the dimension \"draw\" itself: give no labels for it",
            ));
        }
        match self.coordinates.get("chain") {
            None => {}
            Some(Labels::Integers(numbers)) if numbers.len() as u64 == self.chains => {}
            Some(_) => {
                return Err(RunError::request(format!(
                    "the labels of the dimension \"chain\" must be {} integers",
                    self.chains
                )));
            }
        }
        let mut groups = HashSet::new();
        for group in &self.groups {
            check_name("group", &group.name)?;
            if !groups.insert(&group.name) {
                return Err(twice("group", &group.name));
            }
            group.validate(&self.coordinates)?;
        }
        Ok(())
    }
}

impl Group {
    fn validate(&self, coordinates: &BTreeMap<String, Labels>) -> Result<(), RunError> {
        let mut lengths = BTreeMap::new();
        for variable in &self.variables {
            check_name("variable", &variable.name)?;
            let mut dims = HashSet::new();
            for (dim, length) in &variable.dims {
                check_name("dimension", dim)?;
                if !dims.insert(dim) {
                    return Err(twice("dimension", dim));
                }
                if dim == "chain" || dim == "draw" {
                    return Err(RunError::request(format!(
                        "variable {:?}: the dimension {dim:?} is added by the store",
                        variable.name
                    )));
                }
                if *length == 0 {
                    return Err(RunError::request(format!(
                        "variable {:?}: its dimension {dim:?} has length 0",
                        variable.name
                    )));
                }
                let known = *lengths.entry(dim.as_str()).or_insert(*length);
                if known != *length {
                    return Err(RunError::request(format!(
                        "group {:?}: the dimension {dim:?} has length {known} in one variable and {length} in another",
                        self.name
                    )));
                }
                if let Some(labels) = coordinates.get(dim)
                    && labels.len() as u64 != *length
                {
                    return Err(RunError::request(format!(
                        "group {:?}: the dimension {dim:?} has length {length} but {} labels",
                        self.name,
                        labels.len()
                    )));
                }
            }
        }
        let mut names = HashSet::from(["chain", "draw"]);
        names.extend(lengths.keys());
        for variable in &self.variables {
            if !names.insert(&variable.name) {
                return Err(RunError::request(format!(
                    "group {:?}: two variables or dimensions are called {:?}",
                    self.name, variable.name
                )));
            }
        }
        Ok(())
    }
}

fn twice(kind: &str, name: &str) -> RunError {
    RunError::request(format!("there are two {kind}s called {name:?}"))
}

/// A name becomes a folder of the store.
fn check_name(kind: &str, name: &str) -> Result<(), RunError> {
    let refused = name.is_empty()
        || name.len() > 200
        || name.starts_with("__")
        || name.chars().all(|character| character == '.')
        || name == "zarr.json"
        || name.contains(|character: char| "/\\:*?\"<>|".contains(character))
        || name.contains(char::is_control);
    if refused {
        return Err(RunError::request(format!(
            "{name:?} cannot be the name of a {kind}: it becomes a folder's name, so leave out / \\ : * ? \" < > | and control characters, and do not begin with two underscores"
        )));
    }
    Ok(())
}
