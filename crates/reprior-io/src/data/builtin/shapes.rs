//! The ten drawings of `strokes`, as chains of straight lines in the square [−1, 1]² (x to the right, y down).

use std::f64::consts::PI;

/// A point (x, y).
pub(super) type PlanePoint = [f64; 2];

/// Names of the drawings, which are the classes.
pub(super) const NAMES: [&str; 10] = [
    "bar", "cross", "circle", "square", "triangle", "zigzag", "arc", "corner", "tee", "rails",
];

/// The strokes of drawing number `class`, each a chain of points.
pub(super) fn strokes(class: usize) -> Vec<Vec<PlanePoint>> {
    match NAMES[class] {
        "bar" => vec![vec![[-1.0, 0.0], [1.0, 0.0]]],
        "cross" => vec![vec![[-1.0, 0.0], [1.0, 0.0]], vec![[0.0, -1.0], [0.0, 1.0]]],
        "circle" => vec![arc(0.85, 0.0, 2.0 * PI, 16)],
        "square" => vec![vec![
            [-0.8, -0.8],
            [0.8, -0.8],
            [0.8, 0.8],
            [-0.8, 0.8],
            [-0.8, -0.8],
        ]],
        "triangle" => vec![vec![[0.0, -1.0], [0.95, 0.75], [-0.95, 0.75], [0.0, -1.0]]],
        "zigzag" => vec![vec![[-1.0, 0.6], [-0.4, -0.6], [0.2, 0.6], [0.8, -0.6]]],
        "arc" => vec![arc(0.9, PI, 2.0 * PI, 8)],
        "corner" => vec![vec![[-0.7, -0.9], [-0.7, 0.7], [0.8, 0.7]]],
        "tee" => vec![
            vec![[-0.9, -0.8], [0.9, -0.8]],
            vec![[0.0, -0.8], [0.0, 1.0]],
        ],
        _ => vec![
            vec![[-0.9, -0.5], [0.9, -0.5]],
            vec![[-0.9, 0.5], [0.9, 0.5]],
        ],
    }
}

/// An arc about the origin in `pieces` chords, angles from x towards y.
fn arc(radius: f64, from: f64, to: f64, pieces: usize) -> Vec<PlanePoint> {
    (0..=pieces)
        .map(|piece| {
            let angle = from + (to - from) * piece as f64 / pieces as f64;
            [radius * libm::cos(angle), radius * libm::sin(angle)]
        })
        .collect()
}
