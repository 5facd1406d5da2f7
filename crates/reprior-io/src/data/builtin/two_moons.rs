//! `two-moons`: two interleaved half circles with Gaussian noise, a classification task in the plane.
//!
//! Class 0, `upper`: (cos t, sin t); class 1, `lower`: (1 − cos t, ½ − sin t); t uniform on [0, π), plus N(0, 0.15²) on both coordinates. The classes alternate.

use reprior::model::dataset::{Dataset, Targets};

use crate::data::random::RandomStream;

const ROWS: usize = 1000;
const NOISE: f64 = 0.15;
const SEED: u64 = 2;

/// All records, drawn row by row: the angle, then the noise of each coordinate.
pub(super) fn draw() -> Dataset {
    let mut stream = RandomStream::new(SEED, 0);
    let (mut inputs, mut labels) = (Vec::with_capacity(2 * ROWS), Vec::with_capacity(ROWS));
    for row in 0..ROWS {
        let angle = std::f64::consts::PI * stream.uniform();
        let (x, y) = (libm::cos(angle), libm::sin(angle));
        let (x, y) = if row % 2 == 0 {
            (x, y)
        } else {
            (1.0 - x, 0.5 - y)
        };
        inputs.push(x + NOISE * stream.normal());
        inputs.push(y + NOISE * stream.normal());
        labels.push((row % 2) as u32);
    }
    let names = ["upper", "lower"].map(String::from).to_vec();
    super::table(
        inputs,
        ["x1", "x2"].map(String::from).to_vec(),
        Targets::Classes { labels, names },
    )
}
