//! Means and maxima of windows, and the mean over all pixels.
//!
//! With `Padding::Same` a mean is over the pixels of the window that lie in the image, and zeros are no candidates for a
//! maximum. Of equal maxima the first has the derivative.

use std::ops::Range;

use super::axis::{AxisTerms, Term};
use super::{Shape, Window};
use crate::compute::{Real, panel_rows, simd};
use crate::network::operation::{Direction, Keeps, Operation, Point, no_tangent};

pub(super) fn output_shape(window: &Window, input: Shape) -> Result<Shape, String> {
    let [height, width] = window.output(input)?;
    Ok(Shape {
        height,
        width,
        ..input
    })
}

pub(super) fn global_output_shape(input: Shape) -> Shape {
    Shape::vector(input.channels)
}

/// Which pixels of the input each pixel of the output is made of.
#[derive(Debug)]
struct Pixels {
    channels: usize,
    /// Pixels of the input.
    input: usize,
    starts: Vec<u32>,
    sources: Vec<u32>,
    /// Whether each pixel of the input is in one window.
    is_partition: bool,
}

impl Pixels {
    fn new(window: &Window, image: Shape) -> Self {
        let (mut starts, mut sources) = (vec![0], Vec::new());
        let [rows, columns] = window.positions(image).unwrap_or([0, 0]);
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)))
        {
            for tap in 0..window.pixels() {
                let [down, across] = [tap / window.size[1], tap % window.size[1]];
                let at = window.source(0, image.height, row, down);
                let across = window.source(1, image.width, column, across);
                if let (Some(row), Some(column)) = (at, across) {
                    sources.push((row * image.width + column) as u32);
                }
            }
            starts.push(sources.len() as u32);
        }
        let mut counts = vec![0; image.pixels()];
        for &pixel in &sources {
            counts[pixel as usize] += 1;
        }
        Self {
            is_partition: counts.iter().all(|&count| count == 1),
            channels: image.channels,
            input: image.pixels(),
            starts,
            sources,
        }
    }

    /// Calls `visit` with where each pixel of the output begins, and where each of its sources does in the input; all have
    /// [`length`](Self::length) numbers. The whole loop is one call of vector code.
    #[inline(always)]
    fn each<R: Real>(&self, panels: usize, mut visit: impl FnMut(usize, Sources<'_>)) {
        let (length, positions) = (self.length::<R>(), self.starts.len() - 1);
        simd(
            #[inline(always)]
            || {
                for panel in 0..panels {
                    let first = panel * self.input * length;
                    for position in 0..positions {
                        let [from, to] = [self.starts[position], self.starts[position + 1]];
                        let sources = Sources {
                            pixels: &self.sources[from as usize..to as usize],
                            first,
                            length,
                        };
                        visit((panel * positions + position) * length, sources);
                    }
                }
            },
        );
    }

    /// Numbers of a pixel in one panel.
    fn length<R: Real>(&self) -> usize {
        self.channels * panel_rows::<R>()
    }
}

/// The pixels that one of the output is made of.
struct Sources<'a> {
    pixels: &'a [u32],
    /// Where the panel begins.
    first: usize,
    length: usize,
}

impl Sources<'_> {
    #[inline(always)]
    fn ranges(&self) -> impl DoubleEndedIterator<Item = Range<usize>> + ExactSizeIterator {
        self.pixels.iter().map(
            #[inline(always)]
            |&pixel| {
                let from = self.first + pixel as usize * self.length;
                from..from + self.length
            },
        )
    }

    /// 1/(how many there are).
    #[inline(always)]
    fn share<R: Real>(&self) -> R {
        R::from_f64(1.0 / self.pixels.len() as f64)
    }
}

/// Means of windows as an operation.
#[derive(Debug)]
pub(crate) struct Mean(Pixels);

impl Mean {
    pub fn new(window: &Window, input: Shape) -> Self {
        Self(Pixels::new(window, input))
    }

    /// Over all pixels.
    pub fn global(input: Shape) -> Self {
        let window = Window {
            size: [input.height, input.width],
            stride: [1, 1],
            padding: super::Padding::Valid,
        };
        Self::new(&window, input)
    }

    fn average<R: Real>(&self, panels: usize, input: &[R], output: &mut [R]) {
        output.fill(R::ZERO);
        let length = self.0.length::<R>();
        self.0.each::<R>(
            panels,
            #[inline(always)]
            |to, sources| {
                let (factor, output) = (sources.share::<R>(), &mut output[to..to + length]);
                for from in sources.ranges() {
                    for (output, &value) in output.iter_mut().zip(&input[from]) {
                        *output += factor * value;
                    }
                }
            },
        );
    }
}

impl<R: Real> Operation<R> for Mean {
    fn keeps(&self) -> Keeps {
        Keeps::default()
    }

    fn forward(&self, _: &[R], panels: usize, input: &[R], output: &mut [R]) {
        self.average(panels, input, output);
    }

    fn jvp(&self, at: Point<'_, R>, along: Direction<'_, R>, out: &mut [R]) {
        match along.input {
            Some(tangent) => self.average(at.panels, tangent, out),
            None => no_tangent(false, out),
        }
    }

    fn vjp_input(&self, at: Point<'_, R>, cotangent: &[R], accumulate: bool, out: &mut [R]) {
        no_tangent(accumulate, out);
        let length = self.0.length::<R>();
        self.0.each::<R>(
            at.panels,
            #[inline(always)]
            |from, sources| {
                let (factor, cotangent) = (sources.share::<R>(), &cotangent[from..from + length]);
                for to in sources.ranges() {
                    for (out, &value) in out[to].iter_mut().zip(cotangent) {
                        *out += factor * value;
                    }
                }
            },
        );
    }
}

/// Largest numbers of windows as an operation. Which they are is found again from the input and the output.
#[derive(Debug)]
pub(crate) struct Largest(Pixels);

impl Largest {
    pub fn new(window: &Window, input: Shape) -> Self {
        Self(Pixels::new(window, input))
    }
}

impl<R: Real> Operation<R> for Largest {
    fn keeps(&self) -> Keeps {
        Keeps {
            input: true,
            output: true,
            derivative: false,
        }
    }

    fn forward(&self, _: &[R], panels: usize, input: &[R], output: &mut [R]) {
        let length = self.0.length::<R>();
        self.0.each::<R>(
            panels,
            #[inline(always)]
            |to, sources| {
                let output = &mut output[to..to + length];
                let mut ranges = sources.ranges();
                let Some(first) = ranges.next() else { return };
                let first = &input[first];
                // the second is the first again where there is no other
                let second = ranges.next().map_or(first, |from| &input[from]);
                for ((output, &x), &y) in output.iter_mut().zip(first).zip(second) {
                    *output = larger(x, y);
                }
                for from in ranges {
                    for (output, &value) in output.iter_mut().zip(&input[from]) {
                        *output = larger(*output, value);
                    }
                }
            },
        );
    }

    fn jvp(&self, at: Point<'_, R>, along: Direction<'_, R>, out: &mut [R]) {
        let Some(tangent) = along.input else {
            return no_tangent(false, out);
        };
        let length = self.0.length::<R>();
        self.0.each::<R>(
            at.panels,
            #[inline(always)]
            |to, sources| {
                let (output, out) = (&at.output[to..to + length], &mut out[to..to + length]);
                if sources.pixels.is_empty() {
                    out.fill(R::ZERO);
                }
                // the last to be written is the first of the largest
                for (index, from) in sources.ranges().rev().enumerate() {
                    let values = at.input[from.clone()]
                        .iter()
                        .zip(&tangent[from])
                        .zip(output);
                    for (out, ((&x, &tangent), &y)) in out.iter_mut().zip(values) {
                        // two selections, as of one the compiler makes a choice of addresses, number by number
                        let taken = if x == y { tangent } else { R::ZERO };
                        let is_kept = index > 0 && x != y;
                        *out = taken + if is_kept { *out } else { R::ZERO };
                    }
                }
            },
        );
    }

    fn vjp_input(&self, at: Point<'_, R>, cotangent: &[R], accumulate: bool, out: &mut [R]) {
        if self.0.is_partition && !accumulate {
            self.pull_back(at, cotangent, out, |out, taken| *out = taken);
        } else {
            no_tangent(accumulate, out);
            self.pull_back(at, cotangent, out, |out, taken| *out += taken);
        }
    }
}

impl Largest {
    /// Has what each pixel of the input takes of the cotangents stored.
    #[inline(always)]
    fn pull_back<R: Real>(
        &self,
        at: Point<'_, R>,
        cotangent: &[R],
        out: &mut [R],
        store: impl Fn(&mut R, R),
    ) {
        let length = self.0.length::<R>();
        R::with_scratch(length, |left| {
            self.0.each::<R>(
                at.panels,
                #[inline(always)]
                |from, sources| {
                    let output = &at.output[from..from + length];
                    let cotangent = &cotangent[from..from + length];
                    let mut ranges = sources.ranges();
                    let Some(first) = ranges.next() else { return };
                    let values = at.input[first.clone()].iter().zip(output).zip(cotangent);
                    let targets = out[first].iter_mut().zip(&mut *left);
                    for ((out, left), ((&x, &y), &cotangent)) in targets.zip(values) {
                        let taken = if x == y { cotangent } else { R::ZERO };
                        store(out, taken);
                        *left = cotangent - taken;
                    }
                    for to in ranges {
                        let values = at.input[to.clone()].iter().zip(output);
                        let targets = out[to].iter_mut().zip(&mut *left);
                        for ((out, left), (&x, &y)) in targets.zip(values) {
                            let taken = if x == y { *left } else { R::ZERO };
                            store(out, taken);
                            *left -= taken;
                        }
                    }
                },
            );
        });
    }
}

/// The larger of two numbers, and none if one of them is none.
#[inline(always)]
fn larger<R: Real>(a: R, b: R) -> R {
    let is_nan = a.partial_cmp(&a).is_none();
    if is_nan || a >= b { a } else { b }
}

/// At infinite width: K'(p, p') = mean over the pixels q of p's window and q' of p''s of K(q, q').
impl AxisTerms for Window {
    fn output_length(&self, axis: usize, length: usize) -> usize {
        self.positions_along(axis, length)
    }

    fn terms(&self, axis: usize, length: usize, displacement: usize, position: usize) -> Vec<Term> {
        let other = (position + displacement) % self.positions_along(axis, length);
        let pixels = |position| -> Vec<usize> {
            (0..self.size[axis])
                .filter_map(|offset| self.source(axis, length, position, offset))
                .collect()
        };
        mean_of_pairs(length, &pixels(position), &pixels(other))
    }
}

/// The mean over all pixels, at infinite width: the mean over all pairs of pixels.
pub(in crate::network) struct GlobalMean;

impl AxisTerms for GlobalMean {
    fn output_length(&self, _: usize, _: usize) -> usize {
        1
    }

    fn terms(&self, _: usize, length: usize, _: usize, _: usize) -> Vec<Term> {
        let pixels: Vec<usize> = (0..length).collect();
        mean_of_pairs(length, &pixels, &pixels)
    }
}

fn mean_of_pairs(length: usize, first: &[usize], second: &[usize]) -> Vec<Term> {
    let weight = 1.0 / (first.len() * second.len()) as f64;
    let pairs = first.iter().flat_map(|&q| {
        second
            .iter()
            .map(move |&other| Term::pair(length, q, other, weight))
    });
    pairs.collect()
}

/// Why maxima have no kernel map.
pub(in crate::network) const NO_KERNEL: &str =
    "the second moments of maxima over windows have no closed form: use an average pool";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::layer::Padding;

    /// Maxima keep what is not a number, wherever it is in the window; of equal ones the first has the derivative.
    #[test]
    fn maxima_of_nan_and_of_equal_numbers() {
        let window = Window {
            size: [1, 2],
            stride: [1, 2],
            padding: Padding::Valid,
        };
        let (pool, height) = (
            Largest::new(&window, Shape::from([1, 6, 1])),
            panel_rows::<f64>(),
        );
        let pixels = [f64::NAN, 1.0, 2.0, f64::NAN, 3.0, 3.0];
        let input: Vec<f64> = pixels.iter().flat_map(|&x| vec![x; height]).collect();
        let mut output = vec![0.0; 3 * height];
        pool.forward(&[], 1, &input, &mut output);
        assert!(output[0].is_nan() && output[height].is_nan() && output[2 * height] == 3.0);
        let point = Point {
            panels: 1,
            weights: &[],
            transposed: &[],
            input: &input,
            output: &output,
            derivative: &[],
            second: &[],
        };
        let mut back = vec![1.0; 6 * height];
        pool.vjp_input(point, &vec![5.0; 3 * height], false, &mut back);
        assert_eq!((back[4 * height], back[5 * height]), (5.0, 0.0));
    }
}
