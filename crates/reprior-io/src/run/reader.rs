//! Reads the draws of a run, whether it is running, interrupted or finished.
//!
//! A reader takes the store's description once, when it is opened; it sees the draws that all chains had written then.
//! Open another one to see later draws.

use super::labels::Labels;
use super::layout::{Array, ROOT, StoreLayout};
use super::plan::ReadPlan;
use super::relay::NEXT;
use super::schema::Schema;
use super::selection::Selection;
use super::shared::read_root;
use super::values::{DataType, Number};
use super::{Files, RunError};
use serde_json::{Map, Value};

/// The draws of a run, open for reading.
#[derive(Debug, Clone)]
pub struct DrawReader {
    files: Files,
    layout: StoreLayout,
    visible: Vec<u64>,
}

/// A group as a reader sees it.
#[derive(Debug, Clone, Copy)]
pub struct GroupInfo<'a> {
    /// Name of the group.
    pub name: &'a str,
    /// For a sampled group, the draws of each chain that can be read.
    pub draws: Option<u64>,
    /// For a sampled group, the draws of each chain at the end of the run.
    pub planned: Option<u64>,
    /// Attributes of the group.
    pub attributes: &'a Map<String, Value>,
}

/// A variable as a reader sees it.
#[derive(Debug, Clone)]
pub struct VariableInfo<'a> {
    /// Name of the variable.
    pub name: &'a str,
    /// Type of its elements.
    pub data_type: DataType,
    /// Names and lengths of its dimensions; those of a sampled group begin with `chain` and `draw`.
    pub dims: Vec<(&'a str, u64)>,
    /// Attributes of the variable.
    pub attributes: &'a Map<String, Value>,
}

/// Numbers in C order.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbers<T> {
    /// Length of each dimension.
    pub shape: Vec<usize>,
    /// The numbers.
    pub values: Vec<T>,
}

impl DrawReader {
    /// Opens the draws of a run: of a folder by its path, or of [`Files`].
    ///
    /// # Errors
    /// [`RunError::Io`] when there are none, [`RunError::Damaged`] when this crate did not write them.
    pub fn open(run: impl Into<Files>) -> Result<Self, RunError> {
        let files = run.into();
        let (layout, visible) = read_root(&files)?;
        Ok(Self {
            files,
            layout,
            visible,
        })
    }

    /// Refuses draws that are laid out otherwise than `schema` says: another number of chains or planned draws, another type,
    /// other dimensions of a variable. What follows from the schema, such as lengths to be relied on, can then be relied on.
    ///
    /// A group or variable that only one of the two has is no contradiction (another version may have recorded more): to read
    /// what is not there is an error. Attributes and labels are not compared.
    ///
    /// # Errors
    /// [`RunError::Damaged`] naming the variable; [`RunError::Request`] when the schema contradicts itself.
    pub fn check(&self, schema: &Schema) -> Result<(), RunError> {
        let expected = StoreLayout::from_schema(schema)?;
        let path = self.files.place(ROOT);
        let why = match self.files.within(NEXT).contains(ROOT) {
            true => {
                "the run is being laid out for another number of draws, or was killed meanwhile; ask again, or go on with it by `reprior resume`"
            }
            false => "it is damaged, or of another run",
        };
        let refuse = |what: String| Err(RunError::damaged(&path, format!("{what}: {why}")));
        if self.layout.chains != expected.chains {
            return refuse(format!(
                "describes {} chains where the run's settings have {}",
                self.layout.chains, expected.chains
            ));
        }
        for group in &expected.groups {
            let Ok((_, found)) = self.layout.group(&group.name) else {
                continue;
            };
            if found.draws != group.draws {
                return refuse(format!(
                    "describes {} draws of the group {:?} where the run's settings have {}",
                    found.draws.unwrap_or(0),
                    group.name,
                    group.draws.unwrap_or(0)
                ));
            }
            for array in &group.variables {
                let Ok(found) = found.variable(&array.name) else {
                    continue;
                };
                let form = |array: &Array| (array.stored, array.dims.clone(), array.shape.clone());
                if form(found) != form(array) {
                    return refuse(format!(
                        "describes the variable {:?} of the group {:?} with the shape {:?} where the run's settings and data have {:?}",
                        array.name, group.name, found.shape, array.shape
                    ));
                }
            }
        }
        Ok(())
    }

    /// Number of chains.
    pub fn chains(&self) -> u64 {
        self.layout.chains
    }

    /// The groups, in the schema's order.
    pub fn groups(&self) -> impl Iterator<Item = GroupInfo<'_>> {
        self.layout
            .groups
            .iter()
            .zip(&self.visible)
            .map(|(group, &visible)| GroupInfo {
                name: &group.name,
                draws: group.draws.map(|_| visible),
                planned: group.draws,
                attributes: &group.attributes,
            })
    }

    /// The variables of a group, in the schema's order.
    ///
    /// # Errors
    /// [`RunError::Request`] when there is no such group.
    pub fn variables(&self, group: &str) -> Result<Vec<VariableInfo<'_>>, RunError> {
        let (index, layout) = self.layout.group(group)?;
        let variables = layout.variables.iter().map(|array| {
            let shape = self.shape(index, array);
            Ok(VariableInfo {
                name: &array.name,
                data_type: array.data_type()?,
                dims: array.dims.iter().map(String::as_str).zip(shape).collect(),
                attributes: &array.attributes,
            })
        });
        variables.collect()
    }

    /// The labels of a dimension of a group: of chains and draws too.
    ///
    /// # Errors
    /// [`RunError::Request`] for an unknown name, [`RunError::Damaged`] or [`RunError::Io`] for an unreadable file.
    pub fn labels(&self, group: &str, dim: &str) -> Result<Labels, RunError> {
        let (index, layout) = self.layout.group(group)?;
        let array = layout.coordinates.iter().find(|array| array.name == dim);
        let array = array.ok_or_else(|| {
            RunError::request(format!("the group {group:?} has no dimension {dim:?}"))
        })?;
        let name = array.chunk(group, 0, 0);
        let bytes = self.files.read_present(&name)?;
        let damaged = |reason: String| RunError::damaged(&self.files.place(&name), reason);
        let length = self.shape(index, array).first().copied().unwrap_or(0);
        let mut labels = Labels::from_bytes(array.stored, &bytes)
            .ok_or_else(|| damaged("is not a whole list of labels".into()))?;
        if (labels.len() as u64) < length {
            return Err(damaged(format!(
                "has {} labels instead of {length}",
                labels.len()
            )));
        }
        labels.truncate(length as usize);
        Ok(labels)
    }

    /// Reads what `selection` picks of a variable: of shape (chains, draws, the other dimensions),
    /// or only the other dimensions where the group has no draws.
    ///
    /// Memory: the result, and one chunk (at most 4 MiB, or one draw).
    ///
    /// # Errors
    /// [`RunError::Request`] for an unknown name or a range outside; [`RunError::Damaged`] when a chunk is missing or has
    /// the wrong size, or an array without draws is not written yet; [`RunError::Io`].
    pub fn read<T: Number>(
        &self,
        group: &str,
        variable: &str,
        selection: &Selection,
    ) -> Result<Numbers<T>, RunError> {
        let plan = self.plan(group, variable, selection)?;
        let mut values: Vec<T> = Vec::new();
        // Looked at before memory is asked for: what a damaged description claims is not on disk.
        for chain in plan.chains.clone() {
            for chunk in plan.chunks() {
                plan.check(chain, chunk)?;
            }
        }
        let shape = plan.shape();
        let elements = shape.iter().copied().try_fold(1, usize::checked_mul);
        let reserved = elements.is_some_and(|length| values.try_reserve_exact(length).is_ok());
        if !reserved {
            return Err(RunError::request(format!(
                "the variable {variable:?} of shape {shape:?} does not fit into memory"
            )));
        }
        plan.run(|_, _, draw: &[T]| values.extend_from_slice(draw))?;
        Ok(Numbers { shape, values })
    }

    /// Calls `each(chain, draw, values)` for each draw that `selection` picks, chain after chain, with the values that it
    /// picks of the other dimensions. A variable without draws counts as one draw of one chain.
    ///
    /// Memory: one chunk (at most 4 MiB, or one draw) and one draw of `T`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn for_each_draw<T: Number>(
        &self,
        group: &str,
        variable: &str,
        selection: &Selection,
        each: impl FnMut(u64, u64, &[T]),
    ) -> Result<(), RunError> {
        self.plan(group, variable, selection)?.run(each)
    }

    fn shape(&self, group: usize, array: &Array) -> Vec<u64> {
        let mut shape = array.shape.clone();
        if let Some(length) = array.draw_axis().and_then(|axis| shape.get_mut(axis)) {
            *length = self.visible[group];
        }
        shape
    }

    fn plan<'a>(
        &'a self,
        group: &str,
        variable: &str,
        selection: &Selection,
    ) -> Result<ReadPlan<'a>, RunError> {
        let (index, group) = self.layout.group(group)?;
        let array = group.variable(variable)?;
        let shape = self.shape(index, array);
        let sampled = group.draws.is_some();
        let (chains, draws) = match (sampled, shape.as_slice()) {
            (true, &[chains, draws, ..]) => (chains, draws),
            _ => (1, 1),
        };
        let rest = if sampled {
            shape.get(2..)
        } else {
            Some(&*shape)
        };
        let (chains, draws, runs) = selection.resolve(chains, draws, rest.unwrap_or_default())?;
        Ok(ReadPlan {
            files: &self.files,
            group,
            array,
            data_type: array.data_type()?,
            chunk_bytes: array.chunk_bytes().unwrap_or(u64::MAX),
            chunk_draws: if sampled { array.chunk_shape[1] } else { 1 },
            sampled,
            chains,
            draws,
            runs,
        })
    }
}
