//! Means and maxima of windows, and the mean over all pixels.
//!
//! With `Padding::Same` a mean is over the pixels of the window that lie in the image, and zeros are no candidates for a
//! maximum. Of equal maxima the first has the derivative.

use serde::{Deserialize, Serialize};

use super::{Shape, Window};
use crate::compute::{Real, panel_rows, simd};
use crate::network::operation::{Direction, Keeps, Operation, Point, no_tangent, scale};

/// Means of windows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AveragePool {
    /// The windows.
    #[serde(flatten)]
    pub window: Window,
}

/// Largest numbers of windows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MaxPool {
    /// The windows.
    #[serde(flatten)]
    pub window: Window,
}

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
        Self {
            channels: image.channels,
            input: image.pixels(),
            starts,
            sources,
        }
    }

    /// Calls `visit` with each pixel of the output, as a range of `output`'s numbers, and with the number of the input where
    /// each of its sources begins; all pixels have the same length.
    #[inline(always)]
    fn each<R: Real>(
        &self,
        panels: usize,
        mut visit: impl FnMut(usize, &mut dyn Iterator<Item = usize>, usize),
    ) {
        let length = self.channels * panel_rows::<R>();
        let positions = self.starts.len() - 1;
        for panel in 0..panels {
            for position in 0..positions {
                let own = self.starts[position] as usize..self.starts[position + 1] as usize;
                let count = own.len();
                let mut sources = self.sources[own]
                    .iter()
                    .map(|&pixel| (panel * self.input + pixel as usize) * length);
                visit((panel * positions + position) * length, &mut sources, count);
            }
        }
    }

    fn length<R: Real>(&self) -> usize {
        self.channels * panel_rows::<R>()
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
        let length = self.0.length::<R>();
        self.0.each::<R>(panels, |to, sources, count| {
            let factor = R::from_f64(1.0 / count as f64);
            for (index, from) in sources.enumerate() {
                let output = &mut output[to..to + length];
                scale(output, index > 0, factor, &input[from..from + length]);
            }
        });
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
        self.0.each::<R>(at.panels, |from, sources, count| {
            let factor = R::from_f64(1.0 / count as f64);
            for to in sources {
                let out = &mut out[to..to + length];
                scale(out, true, factor, &cotangent[from..from + length]);
            }
        });
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
        self.0.each::<R>(panels, |to, sources, _| {
            let output = &mut output[to..to + length];
            for (index, from) in sources.enumerate() {
                let input = &input[from..from + length];
                if index == 0 {
                    output.copy_from_slice(input);
                    continue;
                }
                simd(
                    #[inline(always)]
                    || {
                        for (output, &value) in output.iter_mut().zip(input) {
                            // a NaN stays one
                            let is_more = value > *output || value.partial_cmp(&value).is_none();
                            *output = if is_more { value } else { *output };
                        }
                    },
                );
            }
        });
    }

    fn jvp(&self, at: Point<'_, R>, along: Direction<'_, R>, out: &mut [R]) {
        let Some(tangent) = along.input else {
            return no_tangent(false, out);
        };
        let length = self.0.length::<R>();
        R::with_scratch(length, |left| {
            self.0.each::<R>(at.panels, |to, sources, _| {
                let (output, out) = (&at.output[to..to + length], &mut out[to..to + length]);
                out.fill(R::ZERO);
                left.fill(R::ONE);
                for from in sources {
                    let (input, tangent) = (
                        &at.input[from..from + length],
                        &tangent[from..from + length],
                    );
                    simd(
                        #[inline(always)]
                        || {
                            let values = input.iter().zip(output).zip(tangent);
                            for ((out, left), ((&x, &y), &tangent)) in
                                out.iter_mut().zip(&mut *left).zip(values)
                            {
                                let taken = if x == y { *left } else { R::ZERO };
                                *out += taken * tangent;
                                *left -= taken;
                            }
                        },
                    );
                }
            });
        });
    }

    fn vjp_input(&self, at: Point<'_, R>, cotangent: &[R], accumulate: bool, out: &mut [R]) {
        no_tangent(accumulate, out);
        let length = self.0.length::<R>();
        R::with_scratch(length, |left| {
            self.0.each::<R>(at.panels, |from, sources, _| {
                let output = &at.output[from..from + length];
                left.copy_from_slice(&cotangent[from..from + length]);
                for to in sources {
                    let (input, out) = (&at.input[to..to + length], &mut out[to..to + length]);
                    simd(
                        #[inline(always)]
                        || {
                            let values = input.iter().zip(output);
                            for ((out, left), (&x, &y)) in
                                out.iter_mut().zip(&mut *left).zip(values)
                            {
                                let taken = if x == y { *left } else { R::ZERO };
                                *out += taken;
                                *left -= taken;
                            }
                        },
                    );
                }
            });
        });
    }
}
