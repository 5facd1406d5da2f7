//! `strokes`: grey images of 16 × 16 pixels, each one of ten little drawings of pen strokes, to be told apart.
//!
//! Every image has a position, size, rotation, slant, width of pen and brightness of its own and a noisy background. Moved and turned lines share few pixels
//! with one another, so that a linear model of the pixels does poorly, while a smooth kernel does well. Classes take turns (record i shows drawing i mod 10), so
//! that any first 10 k records hold k of each. Pixels are whole numbers from 0 to 255, rows from the top, as in the common sets of digits.

use reprior::model::dataset::{Dataset, InputKind, Targets};

use super::shapes::{self, NAMES, PlanePoint};
use crate::data::random::RandomStream;

const ROWS: usize = 4000;
const SIZE: usize = 16;
const SEED: u64 = 16;

/// How the drawings vary: bounds of uniform distributions unless said otherwise.
const TURN: f64 = 0.6;
const SHIFT: f64 = 2.0;
const SCALE: [f64; 2] = [3.8, 5.8];
const SLANT: f64 = 0.25;
const PEN: [f64; 2] = [0.5, 1.1];
const BACKGROUND: [f64; 2] = [10.0, 70.0];
const INK: [f64; 2] = [90.0, 180.0];
/// Standard deviation of the noise of each pixel.
const NOISE: f64 = 16.0;

/// All records, drawn image by image: the variations in the order of the constants above, then the noise of each pixel.
pub(super) fn draw() -> Dataset {
    let mut stream = RandomStream::new(SEED, 0);
    let mut inputs = Vec::with_capacity(ROWS * SIZE * SIZE);
    for row in 0..ROWS {
        image(row % NAMES.len(), &mut stream, &mut inputs);
    }
    Dataset {
        inputs: inputs.into(),
        rows: ROWS,
        columns: SIZE * SIZE,
        column_names: Vec::new(),
        kind: InputKind::Image {
            height: SIZE,
            width: SIZE,
            channels: 1,
        },
        targets: Targets::Classes {
            labels: (0..ROWS).map(|row| (row % NAMES.len()) as u32).collect(),
            names: NAMES.map(String::from).to_vec(),
        },
    }
}

/// Appends one image of drawing number `class`.
fn image(class: usize, stream: &mut RandomStream, pixels: &mut Vec<f64>) {
    let turn = stream.between(-TURN, TURN);
    let (sine, cosine) = (libm::sin(turn), libm::cos(turn));
    let centre = (SIZE as f64 - 1.0) / 2.0;
    let shift: PlanePoint = std::array::from_fn(|_| centre + stream.between(-SHIFT, SHIFT));
    let scale: PlanePoint = std::array::from_fn(|_| stream.between(SCALE[0], SCALE[1]));
    let slant = stream.between(-SLANT, SLANT);
    let pen = stream.between(PEN[0], PEN[1]);
    let background = stream.between(BACKGROUND[0], BACKGROUND[1]);
    let ink = stream.between(INK[0], INK[1]);
    let place = |[x, y]: PlanePoint| {
        let (x, y) = (scale[0] * (x + slant * y), scale[1] * y);
        [
            shift[0] + cosine * x - sine * y,
            shift[1] + sine * x + cosine * y,
        ]
    };
    let strokes: Vec<Vec<PlanePoint>> = shapes::strokes(class)
        .into_iter()
        .map(|stroke| stroke.into_iter().map(place).collect())
        .collect();
    for y in 0..SIZE {
        for x in 0..SIZE {
            let pixel = [x as f64, y as f64];
            let chords = strokes.iter().flat_map(|stroke| stroke.windows(2));
            let nearest = chords
                .map(|ends| distance(pixel, ends[0], ends[1]))
                .fold(f64::INFINITY, f64::min);
            // A pixel's share of ink falls from 1 to 0 over one pixel at the edge of the line.
            let share = (pen + 0.5 - nearest).clamp(0.0, 1.0);
            let grey = background + ink * share + NOISE * stream.normal();
            pixels.push(grey.clamp(0.0, 255.0).round());
        }
    }
}

/// Distance of a point from the line between two others.
fn distance(point: PlanePoint, from: PlanePoint, to: PlanePoint) -> f64 {
    let along = [to[0] - from[0], to[1] - from[1]];
    let away = [point[0] - from[0], point[1] - from[1]];
    let length = along[0] * along[0] + along[1] * along[1];
    let share = ((away[0] * along[0] + away[1] * along[1]) / length).clamp(0.0, 1.0);
    let (x, y) = (away[0] - share * along[0], away[1] - share * along[1]);
    (x * x + y * y).sqrt()
}
