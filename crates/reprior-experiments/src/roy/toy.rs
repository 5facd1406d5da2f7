//! What draws of a toy's approximations predict: all of a draw, its part along the kernel of the curvature, and the rest.
//!
//! One step of a diffusion from the mode is the Laplace approximation, so that its kernel and non-kernel steps are the parts of a draw.

use reprior::laplace::diffusion::{Decomposition, Diffusion, DiffusionKind, Integrator};

use crate::trained::TrainedNetwork;
use crate::{Bench, Cell, Failure, Row};

/// Method and part of every panel.
const PANELS: [(&str, &str); 10] = [
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

/// A cell for each panel, with diffusions of so many steps.
pub fn cells(base: &Row, steps: usize) -> Vec<Cell> {
    let cell = |(method, part): (&str, &str)| {
        // a Laplace approximation is one step long
        let steps = if method == "diffusion" { steps } else { 1 };
        base.clone()
            .with("steps", steps)
            .with("method", method)
            .with("part", part)
    };
    PANELS.map(cell).into()
}

/// Outputs of the mode and of the draws that a cell names, for `points` (m × d₀, row-major): each m × C, row-major.
///
/// # Errors
/// A curvature that is not finite; being stopped.
pub fn outputs(
    toy: &mut TrainedNetwork<f64>,
    cell: &Cell,
    points: &[f64],
    bench: &Bench<'_>,
) -> Result<Vec<Vec<f64>>, Failure> {
    let (method, part) = (cell.text("method"), cell.text("part"));
    let settings = Diffusion {
        kind: match part {
            "kernel" | "kernel, Heun" => DiffusionKind::Kernel,
            "non-kernel" => DiffusionKind::NonKernel,
            _ if method == "diffusion" => DiffusionKind::Alternating,
            _ => DiffusionKind::Full,
        },
        steps: cell.long("steps"),
        precision: toy.precision,
        integrator: match part {
            "kernel, Heun" => Integrator::Heun,
            _ => Integrator::Euler,
        },
        decomposition: Decomposition::Exact(1e-7),
    };
    let (seed, draws) = (cell.long("seed"), cell.long("draws"));
    let ends = toy.diffusions(settings, None, seed, draws, |done| bench.advance(done))?;
    let draws: Vec<_> = ends.into_iter().map(|end| end.position).collect();
    let mut all = Vec::new();
    for (draws, is_linearised) in [(toy.at_mode(), false), (draws, method == "linearised")] {
        toy.predict(&draws, is_linearised, points, |f| {
            all.push(f.to_vec());
            Ok(())
        })?;
    }
    Ok(all)
}
