//! The low-rank Laplace approximation of Roy, Miani et al. (2024), along leading eigenpairs of the curvature and by the prior elsewhere,
//! and the diffusion along the same number of eigenpairs: what both are made of.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use reprior::compute::kernels::add_scaled;
use reprior::compute::{Purpose, Stream};
use reprior::laplace::Lanczos;
use reprior::laplace::diffusion::{Decomposition, Diffusion, DiffusionKind, Integrator};
use reprior::laplace::spectrum::Spectrum;

use super::lenet::LeNet;
use super::methods::Tuning;
use crate::scores::Averaged;
use crate::trained::TrainedNetwork;
use crate::{Cell, Failure};

/// The diffusion of a cell, with eigenpairs by Lanczos, or all of them where its rank is 0.
pub fn diffusion(cell: &Cell, precision: f64) -> Diffusion {
    Diffusion {
        kind: DiffusionKind::NonKernel,
        steps: cell.long("steps"),
        precision,
        integrator: Integrator::Euler,
        decomposition: match cell.count("rank") {
            0 => Decomposition::Exact(crate::trained::ROUNDING),
            rank => Decomposition::Lanczos(Lanczos::of_rank(rank)),
        },
    }
}

/// The covariance of the low-rank approximation: `part`·(Λ + `precision` + `shift`)⁻¹ along eigenpairs, `part`/`precision` elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct Covariance {
    /// Of all of it.
    pub part: f64,
    /// α.
    pub precision: f64,
    /// What is added to it along eigenpairs.
    pub shift: f64,
}

impl Covariance {
    /// That of the equations, or that of the published code.
    pub fn of(is_published: bool, precision: f64) -> Self {
        Self {
            part: if is_published { 0.5 } else { 1.0 },
            precision,
            shift: if is_published { precision } else { 0.0 },
        }
    }

    /// As many draws around `mode` as a cell says, with the `rank` leading eigenpairs (0: all).
    pub fn draws(
        self,
        mode: &[f32],
        spectrum: &Spectrum<f32>,
        rank: usize,
        cell: &Cell,
    ) -> Vec<Vec<f32>> {
        let mut leading = spectrum.clone();
        if rank > 0 {
            leading.values.truncate(rank);
            leading.vectors.truncate(rank * mode.len());
        }
        let scale = self.part.sqrt();
        let prior = scale / self.precision.sqrt();
        let along = |value: f64| scale / (value + self.precision + self.shift).sqrt();
        let draw = |index| {
            let mut noise = vec![0.0; mode.len()];
            Stream::new(cell.long("seed"), 0, Purpose::Recording, index).fill_normal(&mut noise);
            let mut draw = mode.to_vec();
            add_scaled(&mut draw, prior, &noise);
            leading.add_function(|value| along(value) - prior, &noise, &mut draw);
            draw
        };
        (0..cell.long("draws")).map(draw).collect()
    }
}

/// The last decomposition with what it is of: cells that follow one another share it.
static LAST: Mutex<Option<(String, Arc<Spectrum<f32>>)>> = Mutex::new(None);

/// The leading eigenpairs of a cell's curvature; all of them where its rank is 0.
///
/// # Errors
/// A curvature that is not finite; `stop`, once it is set.
pub fn leading(
    network: &mut TrainedNetwork<f32>,
    lenet: &LeNet,
    cell: &Cell,
    stop: &AtomicBool,
) -> Result<Arc<Spectrum<f32>>, Failure> {
    let rank = cell.count("rank");
    let rows = cell.number("curvature rows");
    let key = format!("{} {rows} {rank}", lenet.key);
    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, found)) = last().as_ref().filter(|(other, _)| *other == key) {
        return Ok(Arc::clone(found));
    }
    let lanczos = (rank > 0).then(|| Lanczos::of_rank(rank));
    let found = Arc::new(network.spectrum(lanczos, cell.long("seed"), stop)?);
    *last() = Some((key, Arc::clone(&found)));
    Ok(found)
}

/// The α with which sampled Laplace with the `rank` leading eigenpairs (0: all) predicts validation images best, with the covariance and
/// the averages of the equations or of the published code.
///
/// # Errors
/// Logits that are not finite.
pub fn tuned_precision(
    network: &mut TrainedNetwork<f32>,
    lenet: &LeNet,
    spectrum: &Spectrum<f32>,
    rank: usize,
    is_published: bool,
    cell: &Cell,
) -> Result<f64, Failure> {
    let tuning = Tuning {
        lenet,
        is_linearised: false,
        averaged: Averaged::of(is_published),
    };
    let found = tuning.best(network, |network, precision| {
        Ok(Covariance::of(is_published, precision).draws(&network.mode, spectrum, rank, cell))
    })?;
    Ok(found.0)
}
