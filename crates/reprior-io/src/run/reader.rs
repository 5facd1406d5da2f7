//! Reads the draws of a run, whether it is running, interrupted or finished.
//!
//! A reader takes the store's description once, when it is opened; it sees the draws that all chains had written then.
//! Open another one to see later draws.

use super::RunError;
use super::layout::{Array, GroupLayout, Layout, StoredType};
use super::schema::Labels;
use super::selection::{Runs, Selection};
use super::store::{DRAWS, read_root};
use super::values::{DataType, Number, decode};
use super::writer::check_size;
use serde_json::{Map, Value};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The draws of a run, open for reading.
#[derive(Debug, Clone)]
pub struct DrawReader {
    root: PathBuf,
    layout: Layout,
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
    /// Opens the draws of the run folder `run`.
    ///
    /// # Errors
    /// [`RunError::Io`] when there are none, [`RunError::Damaged`] when this crate did not write them.
    pub fn open(run: &Path) -> Result<Self, RunError> {
        let root = run.join(DRAWS);
        let (layout, visible) = read_root(&root)?;
        Ok(Self {
            root,
            layout,
            visible,
        })
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
        let path = array.chunk_path(&self.root.join(group), 0, 0);
        let bytes = fs::read(&path).map_err(RunError::io("read", &path))?;
        let length = self.shape(index, array).first().copied().unwrap_or(0);
        let mut labels = match array.stored {
            StoredType::Text(_) => Labels::Text(
                decode_text(&bytes)
                    .ok_or_else(|| RunError::damaged(&path, "is not a whole list of labels"))?,
            ),
            StoredType::Number(DataType::F64) => {
                let mut labels = Vec::new();
                decode(&bytes, &mut labels, f64::from_le_bytes);
                Labels::Reals(labels)
            }
            StoredType::Number(_) => {
                let mut labels = Vec::new();
                decode(&bytes, &mut labels, i64::from_le_bytes);
                Labels::Integers(labels)
            }
        };
        if (labels.len() as u64) < length {
            return Err(RunError::damaged(
                &path,
                format!("has {} labels instead of {length}", labels.len()),
            ));
        }
        match &mut labels {
            Labels::Integers(labels) => labels.truncate(length as usize),
            Labels::Reals(labels) => labels.truncate(length as usize),
            Labels::Text(labels) => labels.truncate(length as usize),
        }
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
    ) -> Result<Plan<'a>, RunError> {
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
        Ok(Plan {
            root: &self.root,
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

/// What to read of one array.
struct Plan<'a> {
    root: &'a Path,
    group: &'a GroupLayout,
    array: &'a Array,
    data_type: DataType,
    chunk_bytes: u64,
    chunk_draws: u64,
    sampled: bool,
    chains: Range<u64>,
    draws: Range<u64>,
    runs: Runs,
}

impl Plan<'_> {
    fn shape(&self) -> Vec<usize> {
        let length = |range: &Range<u64>| (range.end - range.start) as usize;
        let mut shape = Vec::new();
        if self.sampled {
            shape.extend([length(&self.chains), length(&self.draws)]);
        }
        shape.extend_from_slice(&self.runs.shape);
        shape
    }

    fn chunks(&self) -> Range<u64> {
        if self.draws.is_empty() {
            return 0..0;
        }
        self.draws.start / self.chunk_draws..self.draws.end.div_ceil(self.chunk_draws)
    }

    fn path(&self, chain: u64, chunk: u64) -> PathBuf {
        self.array
            .chunk_path(&self.root.join(&self.group.name), chain, chunk)
    }

    fn check(&self, chain: u64, chunk: u64) -> Result<(), RunError> {
        let path = self.path(chain, chunk);
        if !self.sampled
            && fs::metadata(&path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
        {
            return Err(RunError::damaged(
                &path,
                format!("the run has not written {:?} yet", self.array.name),
            ));
        }
        check_size(&path, self.chunk_bytes)
    }

    fn run<T: Number>(&self, mut each: impl FnMut(u64, u64, &[T])) -> Result<(), RunError> {
        let mut bytes = Vec::new();
        let mut values = Vec::new();
        for chain in self.chains.clone() {
            for chunk in self.chunks() {
                self.check(chain, chunk)?;
                let path = self.path(chain, chunk);
                let mut file = File::open(&path).map_err(RunError::io("read", &path))?;
                let first = chunk * self.chunk_draws;
                let draws =
                    first.max(self.draws.start)..(first + self.chunk_draws).min(self.draws.end);
                // Whole draws lie side by side and are read together; parts of draws one by one.
                let together = match self.runs.is_whole() {
                    true => draws.end - draws.start,
                    false => 1,
                };
                let size = self.data_type.size();
                let draw_bytes = self.chunk_bytes / self.chunk_draws;
                let span = self.runs.span() * size;
                let mut draw = draws.start;
                while draw < draws.end {
                    let start = (draw - first) * draw_bytes + (self.runs.start() * size) as u64;
                    bytes.resize(span * together as usize, 0);
                    file.seek(SeekFrom::Start(start))
                        .and_then(|_| file.read_exact(&mut bytes))
                        .map_err(RunError::io("read", &path))?;
                    for offset in 0..together {
                        let draw_start = span * offset as usize;
                        let draw_bytes = &bytes[draw_start..draw_start + span];
                        values.clear();
                        for run in self.runs.iter() {
                            let run = &draw_bytes[run.start * size..run.end * size];
                            T::decode(self.data_type, run, &mut values);
                        }
                        each(chain, draw + offset, &values);
                    }
                    draw += together;
                }
            }
        }
        Ok(())
    }
}

fn decode_text(bytes: &[u8]) -> Option<Vec<String>> {
    let (count, mut rest) = bytes.split_first_chunk()?;
    let count = u32::from_le_bytes(*count);
    let mut labels = Vec::new();
    for _ in 0..count {
        let (length, tail) = rest.split_first_chunk()?;
        let (label, tail) = tail.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        labels.push(String::from_utf8(label.to_vec()).ok()?);
        rest = tail;
    }
    rest.is_empty().then_some(labels)
}
