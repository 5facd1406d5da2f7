//! Which part of a variable to read.

use super::RunError;
use std::ops::Range;

/// A part of a variable; the default is the whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The chains; all where `None`.
    pub chains: Option<Range<u64>>,
    /// The draws; all where `None`.
    pub draws: Option<Range<u64>>,
    /// Ranges of the other dimensions, in their order; those left out are whole.
    pub rest: Vec<Range<u64>>,
}

impl Selection {
    /// The whole variable.
    pub fn all() -> Self {
        Self::default()
    }

    /// Checks the ranges against a variable of this many chains and draws and of these other dimensions.
    pub(crate) fn resolve(
        &self,
        chains: u64,
        draws: u64,
        rest: &[u64],
    ) -> Result<(Range<u64>, Range<u64>, Runs), RunError> {
        let chains = check("chains", self.chains.clone(), chains)?;
        let draws = check("draws", self.draws.clone(), draws)?;
        if self.rest.len() > rest.len() {
            return Err(RunError::request(format!(
                "{} ranges were given for {} dimensions",
                self.rest.len(),
                rest.len()
            )));
        }
        let mut ranges = Vec::new();
        for (axis, &length) in rest.iter().enumerate() {
            let range = check("elements", self.rest.get(axis).cloned(), length)?;
            ranges.push(range.start as usize..range.end as usize);
        }
        let lengths: Vec<usize> = rest.iter().map(|&length| length as usize).collect();
        Ok((chains, draws, Runs::new(&lengths, &ranges)))
    }
}

fn check(what: &str, range: Option<Range<u64>>, length: u64) -> Result<Range<u64>, RunError> {
    let range = range.unwrap_or(0..length);
    if range.start > range.end || range.end > length {
        return Err(RunError::request(format!(
            "{what} {}..{} were asked for, but there are {length}",
            range.start, range.end
        )));
    }
    Ok(range)
}

/// A box of an array in C order, as runs of neighbouring elements.
#[derive(Debug, Clone)]
pub(crate) struct Runs {
    /// Lengths of the box.
    pub(crate) shape: Vec<usize>,
    /// Elements of the array.
    elements: usize,
    /// First element of each run, in order.
    starts: Vec<usize>,
    /// Length of each run.
    length: usize,
}

impl Runs {
    fn new(lengths: &[usize], ranges: &[Range<usize>]) -> Self {
        let shape: Vec<usize> = ranges.iter().map(Range::len).collect();
        let elements = lengths.iter().product();
        if shape.contains(&0) {
            return Self {
                shape,
                elements,
                starts: Vec::new(),
                length: 0,
            };
        }
        // From the last axis on, whole axes join their neighbours' runs.
        let mut starts = vec![0];
        let mut length = 1;
        let mut stride = 1;
        let mut joined = true;
        for (&axis, range) in lengths.iter().zip(ranges).rev() {
            if joined {
                length *= range.len();
                starts[0] += range.start * stride;
                joined = range.len() == axis;
            } else {
                starts = range
                    .clone()
                    .flat_map(|index| starts.iter().map(move |start| index * stride + start))
                    .collect();
            }
            stride *= axis;
        }
        Self {
            shape,
            elements,
            starts,
            length,
        }
    }

    /// Whether the box is the whole array.
    pub(crate) fn is_whole(&self) -> bool {
        self.length == self.elements
    }

    /// The first element of the box.
    pub(crate) fn start(&self) -> usize {
        self.starts.first().copied().unwrap_or(0)
    }

    /// Elements from the first of the box to its last.
    pub(crate) fn span(&self) -> usize {
        let last = self.starts.last().copied().unwrap_or(0);
        last - self.start() + self.length
    }

    /// Elements of the box.
    pub(crate) fn elements_picked(&self) -> usize {
        self.starts.len() * self.length
    }

    /// The runs, counted from the first element of the box.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<usize>> {
        let first = self.start();
        self.starts
            .iter()
            .map(move |start| start - first..start - first + self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_pick_the_elements_of_the_box() {
        let lengths = [3, 4, 5];
        for ranges in [
            [0..3, 0..4, 0..5],
            [1..2, 0..4, 0..5],
            [0..3, 1..3, 0..5],
            [0..3, 2..4, 3..5],
            [2..3, 3..4, 4..5],
            [0..3, 2..2, 0..5],
        ] {
            let mut expected = Vec::new();
            for i in ranges[0].clone() {
                for j in ranges[1].clone() {
                    for k in ranges[2].clone() {
                        expected.push((i * 4 + j) * 5 + k);
                    }
                }
            }
            let runs = Runs::new(&lengths, &ranges);
            let start = runs.start();
            let picked: Vec<usize> = runs.iter().flatten().map(|index| index + start).collect();
            assert_eq!(picked, expected);
            assert!(runs.iter().all(|run| run.end <= runs.span()));
        }
    }
}
