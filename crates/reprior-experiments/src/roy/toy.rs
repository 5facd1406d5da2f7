//! What draws of a toy's approximations predict: all of a draw, its part along the kernel of the curvature, and the rest.
//!
//! One step of a diffusion from the mode is the Laplace approximation, so that its kernel and non-kernel steps are the parts of a draw.

use reprior::compute::kernels::{MatrixMut, matrix_mut};
use reprior::compute::matrix;
use reprior::laplace::diffusion::{
    Decomposition, Diffusion, DiffusionData, DiffusionKind, DiffusionPath, Integrator,
};

use crate::toys::Toy;
use crate::{Bench, Cell, Failure, Row};

/// Method and part of every panel.
pub const PANELS: [(&str, &str); 10] = [
    ("sampled", "all"),
    ("sampled", "kernel"),
    ("sampled", "non-kernel"),
    ("linearised", "all"),
    ("linearised", "kernel"),
    ("linearised", "non-kernel"),
    ("diffusion", "all"),
    ("diffusion", "kernel"),
    ("diffusion", "kernel, Heun"),
    ("diffusion", "non-kernel"),
];

/// A cell for each panel.
pub fn cells(base: &Row) -> Vec<Cell> {
    let cell = |(method, part): (&str, &str)| {
        let cell = base.clone().with("method", method).with("part", part);
        match method {
            "diffusion" => cell,
            // a Laplace approximation is one step long
            _ => Row {
                values: cell
                    .values
                    .into_iter()
                    .map(|(name, value)| match name.as_str() {
                        "steps" => (name, 1_usize.into()),
                        _ => (name, value),
                    })
                    .collect(),
                ..cell
            },
        }
    };
    PANELS.map(cell).into()
}

/// Outputs of the draws that a cell names, for `points` (m × d₀, column-major): each m × C, row-major. The first ones are the mode's.
///
/// # Errors
/// A curvature that is not finite; being stopped.
pub fn outputs(
    toy: &Toy,
    cell: &Cell,
    points: &[f64],
    bench: &Bench<'_>,
) -> Result<Vec<Vec<f64>>, Failure> {
    let mut executor = toy.executor()?;
    let (columns, count) = (executor.inputs_count(), executor.outputs_count());
    let (own, rows) = (toy.targets.len() / count, points.len() / columns);
    let points = matrix(points, rows, columns);
    let data = DiffusionData {
        inputs: matrix(&toy.inputs, own, columns),
        curvature: &toy.curvature(),
        scale: 1.0,
    };
    let (method, part) = (cell.text("method"), cell.text("part"));
    let settings = Diffusion {
        kind: match part {
            "kernel" | "kernel, Heun" => DiffusionKind::Kernel,
            "non-kernel" => DiffusionKind::NonKernel,
            _ if method == "diffusion" => DiffusionKind::Alternating,
            _ => DiffusionKind::Full,
        },
        steps: cell.count("steps") as u64,
        precision: toy.precision,
        integrator: match part {
            "kernel, Heun" => Integrator::Heun,
            _ => Integrator::Euler,
        },
        decomposition: Decomposition::Exact(1e-7),
    };
    let mut at_mode = vec![0.0; rows * count];
    let out = MatrixMut::from_row_major_slice_mut(&mut at_mode, rows, count);
    executor.outputs(&toy.weights, points, out);
    let mut all = vec![at_mode.clone()];
    let (draws, seed) = (cell.count("draws") as u64, cell.count("seed") as u64);
    for chain in 0..draws {
        let mut path = DiffusionPath::new(settings, &toy.weights, seed, chain);
        while !path.is_over() {
            path.advance(&mut executor, data).map_err(Failure::failed)?;
            let done = chain as f64 + path.steps() as f64 / settings.steps as f64;
            bench.advance(done / draws as f64)?;
        }
        let mut f = at_mode.clone();
        if method == "linearised" {
            let pairs = path.position().iter().zip(&toy.weights);
            let away: Vec<f64> = pairs.map(|(w, mode)| w - mode).collect();
            let mut moved = vec![0.0; rows * count];
            let out = matrix_mut(&mut moved, rows, count);
            executor.jvp(&toy.weights, points, Some(&away), None, out);
            for (at, f) in f.iter_mut().enumerate() {
                *f += moved[at % count * rows + at / count];
            }
        } else {
            let out = MatrixMut::from_row_major_slice_mut(&mut f, rows, count);
            executor.outputs(path.position(), points, out);
        }
        all.push(f);
    }
    Ok(all)
}

/// Mean and standard deviation.
pub fn spread(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}
