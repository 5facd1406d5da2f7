//! Linear maps of covariances along one axis of an image.
//!
//! The covariance of pixel p of one image and pixel p' of another is kept under its *displacement* p' − p (modulo the
//! image's size, so that every pair of pixels belongs to exactly one displacement) and its *position* p. All displacements
//! at hand of one axis are a sorted list; on two axes they are the products of two lists.
//!
//! Convolutions, means of windows and flattening are linear in covariances and act on rows and columns one after the other.
//! A [layer](AxisTerms) says, displacement by displacement and position by position, which covariances of its input make one of its
//! output; what follows one another in memory is merged into runs. Convolutions of stride 1 keep the
//! displacement: they are box filters along the diagonals of the covariance matrix (Arora et al. 2019, section 4.3).

use super::super::layer::AxisTerms;
use crate::compute::simd;

/// `length` covariances at consecutive positions, added with one weight to those of the output.
#[derive(Debug, Clone, Copy)]
struct CovarianceRun {
    from: [usize; 2],
    to: [usize; 2],
    length: usize,
    weight: f64,
}

/// A linear layer along one axis, for given displacements of its input and output.
#[derive(Debug, Clone)]
pub(super) struct AxisMap {
    lengths: [usize; 2],
    planes: [usize; 2],
    runs: Vec<CovarianceRun>,
}

impl AxisMap {
    /// What the `inputs`, of an axis of `length` pixels, contribute to the `outputs`; both are displacements.
    pub fn new(
        layer: &dyn AxisTerms,
        axis: usize,
        length: usize,
        inputs: &[usize],
        outputs: &[usize],
    ) -> Self {
        let positions = layer.output_length(axis, length);
        let mut single = Vec::new();
        for (plane, &displacement) in outputs.iter().enumerate() {
            for position in 0..positions {
                for term in layer.terms(axis, length, displacement, position) {
                    if let Ok(input) = inputs.binary_search(&term.displacement) {
                        single.push(CovarianceRun {
                            from: [input, term.position],
                            to: [plane, position],
                            length: 1,
                            weight: term.weight,
                        });
                    }
                }
            }
        }
        // runs keep plane, weight and the distance between the two positions
        let key = |run: &CovarianceRun| {
            let distance = run.to[1] + length - run.from[1];
            (run.to[0], run.from[0], distance, run.weight.to_bits())
        };
        single.sort_by_key(|run| (key(run), run.to[1]));
        let mut runs: Vec<CovarianceRun> = Vec::new();
        for run in single {
            match runs.last_mut() {
                Some(last) if key(last) == key(&run) && last.to[1] + last.length == run.to[1] => {
                    last.length += 1;
                }
                _ => runs.push(run),
            }
        }
        Self {
            lengths: [length, positions],
            planes: [inputs.len(), outputs.len()],
            runs,
        }
    }

    /// Numbers of the output for one number of each other index.
    pub fn outputs(&self) -> usize {
        self.planes[1] * self.lengths[1]
    }

    /// Adds the map of `input` to `output`, both [planes of this axis][`inner` planes of the other][positions][`unit`].
    pub fn add_rows(&self, input: &[f64], output: &mut [f64], inner: usize, unit: usize) {
        simd(
            #[inline(always)]
            || self.add_rows_inline(input, output, inner, unit),
        );
    }

    #[inline(always)]
    fn add_rows_inline(&self, input: &[f64], output: &mut [f64], inner: usize, unit: usize) {
        let [from_length, to_length] = self.lengths;
        for run in &self.runs {
            for plane in 0..inner {
                let from = ((run.from[0] * inner + plane) * from_length + run.from[1]) * unit;
                let to = ((run.to[0] * inner + plane) * to_length + run.to[1]) * unit;
                let count = run.length * unit;
                add_run(
                    &mut output[to..to + count],
                    &input[from..from + count],
                    run.weight,
                );
            }
        }
    }

    /// Adds the map of `input` to `output`, both [`outer` planes of the other axis][planes of this axis][`rows` rows]
    /// [positions][`batch`].
    pub fn add_columns(&self, input: &[f64], output: &mut [f64], sizes: [usize; 3]) {
        simd(
            #[inline(always)]
            || self.add_columns_inline(input, output, sizes),
        );
    }

    #[inline(always)]
    fn add_columns_inline(
        &self,
        input: &[f64],
        output: &mut [f64],
        [outer, rows, batch]: [usize; 3],
    ) {
        let ([from_length, to_length], [from_planes, to_planes]) = (self.lengths, self.planes);
        for plane in 0..outer {
            for run in &self.runs {
                for row in 0..rows {
                    let from = (plane * from_planes + run.from[0]) * rows + row;
                    let to = (plane * to_planes + run.to[0]) * rows + row;
                    let from = (from * from_length + run.from[1]) * batch;
                    let to = (to * to_length + run.to[1]) * batch;
                    let count = run.length * batch;
                    add_run(
                        &mut output[to..to + count],
                        &input[from..from + count],
                        run.weight,
                    );
                }
            }
        }
    }
}

#[inline(always)]
fn add_run(output: &mut [f64], input: &[f64], weight: f64) {
    for (output, &input) in output.iter_mut().zip(input) {
        *output = weight.mul_add(input, *output);
    }
}
