//! Which ℓ belongs into `pcnl`: a Gaussian readout on frozen features, where everything is in closed form.
//!
//! With UᵀU = σ²I + ΨᵀΨ and θ = T(φ) = U⁻¹(U⁻ᵀΨᵀy + σφ), the posterior of φ is exactly N(0, I), so that ℓ is constant:
//! ℓ(φ) = log p(y | T(φ)) − ½‖T(φ)‖² + ½‖φ‖². Published code for pCNL (Pezzetti, Favaro, Peluchetti 2024-25) has
//! log p(y | T(φ)) alone in its place. Its invariant law N(φ; 0, I)·p(y | T(φ)) counts the likelihood twice: precision
//! I + AᵀΨᵀΨA/σ² with A = σU⁻¹, which is about 2 in the directions that the data determine.

use reprior::chain::Schedule;
use reprior::compute::kernels::symmetric_eigen;
use reprior::compute::{Purpose, Stream};
use reprior::posterior::{EvaluationError, Target};
use reprior::sampler::{Method, SamplerSettings};

use super::{sample_on, settings, z_score};

/// Rows and columns of Ψ.
const N: usize = 3;
const P: usize = 5;
const SIGMA: f64 = 0.1;

#[derive(Clone)]
struct FrozenReadout {
    psi: [[f64; P]; N],
    y: [f64; N],
    /// A = σU⁻¹, upper triangular, and μ = U⁻¹U⁻ᵀΨᵀy.
    root: [[f64; P]; P],
    mean: [f64; P],
    /// With ½‖φ‖² − ½‖θ‖², as it must be, or without, as published.
    is_corrected: bool,
}

/// Solves an upper-triangular system.
fn solve_upper(u: &[[f64; P]; P], b: &[f64; P]) -> [f64; P] {
    let mut x = [0.0; P];
    for i in (0..P).rev() {
        let known: f64 = (i + 1..P).map(|j| u[i][j] * x[j]).sum();
        x[i] = (b[i] - known) / u[i][i];
    }
    x
}

impl FrozenReadout {
    fn new(is_corrected: bool) -> Self {
        let mut stream = Stream::new(11, 0, Purpose::Initial, 0);
        let (mut psi, mut y) = ([[0.0; P]; N], [0.0; N]);
        psi.iter_mut().for_each(|row| stream.fill_normal(row));
        stream.fill_normal(&mut y);
        let gram = |i: usize, j: usize| psi.iter().map(|row| row[i] * row[j]).sum::<f64>();
        // UᵀU = σ²I + ΨᵀΨ row by row
        let mut u = [[0.0; P]; P];
        for i in 0..P {
            for j in i..P {
                let noise = if i == j { SIGMA * SIGMA } else { 0.0 };
                let known: f64 = (0..i).map(|k| u[k][i] * u[k][j]).sum();
                let value = gram(i, j) + noise - known;
                u[i][j] = if i == j {
                    value.sqrt()
                } else {
                    value / u[i][i]
                };
            }
        }
        let mut root = [[0.0; P]; P];
        for j in 0..P {
            let mut unit = [0.0; P];
            unit[j] = SIGMA;
            let column = solve_upper(&u, &unit);
            (0..P).for_each(|i| root[i][j] = column[i]);
        }
        // σ⁻²A Aᵀ Ψᵀy = U⁻¹U⁻ᵀΨᵀy
        let mut scaled = [0.0; P];
        for j in 0..P {
            let projected = |i: usize| (0..N).map(|r| psi[r][i] * y[r]).sum::<f64>();
            scaled[j] = (0..P).map(|i| root[i][j] * projected(i)).sum::<f64>() / (SIGMA * SIGMA);
        }
        let mean = std::array::from_fn(|i| (0..P).map(|j| root[i][j] * scaled[j]).sum());
        Self {
            psi,
            y,
            root,
            mean,
            is_corrected,
        }
    }

    /// Eigenvalues and eigenvectors of AᵀΨᵀΨA/σ², ascending.
    fn directions(&self) -> (Vec<f64>, Vec<f64>) {
        let column = |j: usize| -> [f64; N] {
            let entry = |r: usize| (0..P).map(|i| self.psi[r][i] * self.root[i][j]).sum();
            std::array::from_fn(entry)
        };
        let mut gram = vec![0.0; P * P];
        for i in 0..P {
            for j in 0..P {
                let (a, b) = (column(i), column(j));
                gram[j * P + i] = (0..N).map(|r| a[r] * b[r]).sum::<f64>() / (SIGMA * SIGMA);
            }
        }
        symmetric_eigen(&gram, P).unwrap()
    }
}

impl Target for FrozenReadout {
    type Real = f64;

    fn dim(&self) -> usize {
        P
    }

    fn log_ratio(&mut self, phi: &[f64]) -> Result<f64, EvaluationError> {
        self.log_ratio_and_gradient(phi, &mut [0.0; P])
    }

    fn log_ratio_and_gradient(
        &mut self,
        phi: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        let theta: [f64; P] = std::array::from_fn(|i| {
            self.mean[i] + (0..P).map(|j| self.root[i][j] * phi[j]).sum::<f64>()
        });
        let residual: [f64; N] = std::array::from_fn(|r| {
            self.y[r] - (0..P).map(|i| self.psi[r][i] * theta[i]).sum::<f64>()
        });
        let precision = 1.0 / (SIGMA * SIGMA);
        let mut value = -0.5 * precision * residual.iter().map(|r| r * r).sum::<f64>();
        let mut slope: [f64; P] = std::array::from_fn(|i| {
            precision * (0..N).map(|r| self.psi[r][i] * residual[r]).sum::<f64>()
        });
        if self.is_corrected {
            let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
            value += 0.5 * (norm(phi) - norm(&theta));
            (0..P).for_each(|i| slope[i] -= theta[i]);
        }
        for j in 0..P {
            gradient[j] = (0..P).map(|i| self.root[i][j] * slope[i]).sum::<f64>();
            if self.is_corrected {
                gradient[j] += phi[j];
            }
        }
        Ok(value)
    }
}

/// Variances of φ along the eigenvectors, as (κ, draws of ⟨w, φ − mean⟩² chain by chain); the law's mean along w is
/// ⟨w, Aᵀμ⟩/(1 + κ) for the published ℓ and 0 for the right one.
fn squares(target: &FrozenReadout, method: Method) -> Vec<(f64, Vec<Vec<f64>>)> {
    let schedule = Schedule {
        chains: 4,
        warmup: 500,
        draws: 4000,
        thin: 3,
        seed: 12,
    };
    let settings = SamplerSettings {
        step_size: Some(0.7),
        ..settings(method)
    };
    let chains = sample_on(|| target.clone(), &settings, schedule, 2);
    let (values, vectors) = target.directions();
    let pulled: [f64; P] =
        std::array::from_fn(|j| (0..P).map(|i| target.root[i][j] * target.mean[i]).sum());
    let along = |w: &[f64], z: &[f64]| w.iter().zip(z).map(|(w, z)| w * z).sum::<f64>();
    values
        .iter()
        .zip(vectors.chunks_exact(P))
        .map(|(&kappa, w)| {
            let mean = if target.is_corrected {
                0.0
            } else {
                along(w, &pulled) / (1.0 + kappa)
            };
            let square = |z: &Vec<f64>| (along(w, z) - mean).powi(2);
            let squares = chains
                .iter()
                .map(|c| c.positions.iter().map(square).collect());
            (kappa, squares.collect())
        })
        .collect()
}

#[test]
fn with_the_density_against_the_prior_the_readout_keeps_its_variance() {
    let target = FrozenReadout::new(true);
    let mut copy = target.clone();
    let mut gradient = [0.0; P];
    let mut at = |phi: &[f64]| copy.log_ratio_and_gradient(phi, &mut gradient).unwrap();
    let (here, there) = (at(&[0.0; P]), at(&[1.0, -2.0, 0.5, 3.0, -1.0]));
    assert!(
        (here - there).abs() < 1e-10,
        "ℓ is not constant: {here} {there}"
    );
    assert!(gradient.iter().all(|g| g.abs() < 1e-9));
    for method in [Method::Pcn, Method::Pcnl] {
        for (kappa, squares) in squares(&target, method) {
            let z = z_score(&squares, 1.0);
            assert!(z.abs() < 4.5, "{method}, κ = {kappa}: {z} standard errors");
        }
    }
}

#[test]
fn with_the_plain_likelihood_it_is_about_half() {
    let target = FrozenReadout::new(false);
    let all = squares(&target, Method::Pcnl);
    for (k, (kappa, squares)) in all.iter().enumerate() {
        let z = z_score(squares, 1.0 / (1.0 + kappa));
        assert!(z.abs() < 4.5, "κ = {kappa}: {z} standard errors");
        if k < P - N {
            assert!(*kappa < 1e-9, "{kappa}");
        } else {
            // N directions are determined by the data: far from the variance 1 that φ has
            assert!(*kappa > 0.9 && *kappa < 1.0, "{kappa}");
            assert!(z_score(squares, 1.0) < -20.0);
        }
    }
}
