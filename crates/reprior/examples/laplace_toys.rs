//! The panels of Roy, Miani et al. (2024), Figure 2, as CSV: what approximations of a network that fits a sine predict, mean and standard
//! deviation over draws; and the uncertainty of two classes on a grid.
//!
//! ```text
//! cargo run --release -p reprior --example laplace_toys [DRAWS] [STEPS]
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use reprior::experiment::{Approximation, Toy};
use reprior::laplace::{DiffusionKind, HessianStructure};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let mut number = |default: u64| words.next().map_or(Ok(default), |word| word.parse());
    let (draws, steps) = (number(20)?, number(50)?);
    let full = HessianStructure::Full(1 << 30);
    let panels = [
        ("sampled", Approximation::Sampled(full)),
        ("diagonal", Approximation::Sampled(HessianStructure::Diag)),
        ("linearised", Approximation::Linearised(full)),
        (
            "non-kernel",
            Approximation::Diffusion(DiffusionKind::NonKernel, steps),
        ),
        (
            "kernel",
            Approximation::Diffusion(DiffusionKind::Kernel, steps),
        ),
        (
            "alternating",
            Approximation::Diffusion(DiffusionKind::Alternating, steps),
        ),
    ];
    println!("toy,panel,x,y,mean,sd");
    let sine = Toy::sine(0, 10_000)?;
    for (x, y) in sine.inputs.iter().zip(&sine.targets) {
        println!("sine,data,{x},,{y},0");
    }
    let grid: Vec<f64> = (0..100)
        .map(|at| -1.0 + 3.0 * f64::from(at) / 99.0)
        .collect();
    for (name, approximation) in panels {
        let all = sine.outputs(approximation, draws, 3, &grid)?;
        for (at, x) in grid.iter().enumerate() {
            let (mean, sd) = spread(all.iter().map(|f| f[at]));
            println!("sine,{name},{x},,{mean},{sd}");
        }
    }
    let mixture = Toy::mixture(0, 100, 2000)?;
    let axis = || (0..15).map(|at| -7.0 + f64::from(at));
    let mut points: Vec<f64> = axis().flat_map(|_| axis()).collect();
    points.extend(axis().flat_map(|y| axis().map(move |_| y)));
    let count = points.len() / 2;
    for (name, approximation) in panels {
        let all = mixture.outputs(approximation, draws, 3, &points)?;
        for at in 0..count {
            let second = |f: &Vec<f64>| 1.0 / (1.0 + (f[2 * at] - f[2 * at + 1]).exp());
            let (mean, sd) = spread(all.iter().map(second));
            println!(
                "mixture,{name},{},{},{mean},{sd}",
                points[at],
                points[count + at]
            );
        }
    }
    Ok(())
}

/// Mean and standard deviation.
fn spread(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}
